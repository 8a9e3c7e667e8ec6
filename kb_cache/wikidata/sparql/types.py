"""Terms, answers and queries of SPARQL, the same for every source.

A source is an endpoint behind its cache of answers (`kb_cache.wikidata.sparql.session`) or a store
in process (`kb_cache.wikidata.types`). All take plain SPARQL 1.1 and give the same answers for the
same data: rows are sorted and literals have one form, so no server's order or habits show.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol

from kbprobe.errors import SourceError, UsageError

WIKIDATA_ENTITY = "http://www.wikidata.org/entity/"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

#: Holds the address that is sent to the query service, whose rules ask for one.
CONTACT_VARIABLE = "KBPROBE_CONTACT"
#: Put before every query by every source, see `prepared`.
PREFIXES = f"""\
PREFIX wd: <{WIKIDATA_ENTITY}>
PREFIX wdt: <http://www.wikidata.org/prop/direct/>
PREFIX p: <http://www.wikidata.org/prop/>
PREFIX ps: <http://www.wikidata.org/prop/statement/>
PREFIX pq: <http://www.wikidata.org/prop/qualifier/>
PREFIX wikibase: <http://wikiba.se/ontology#>
PREFIX schema: <http://schema.org/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX rdf: <{_RDF}>
PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
PREFIX xsd: <{_XSD}>
"""

# Text in which white space and '#' are content, white space itself, and comments. The order
# matters: a long string begins like a short one, and '\#' may occur in a prefixed name.
_TOKEN = re.compile(
    r'''(?P<kept>"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^'\\]|\\.|'(?!\'\'))*\'\'\''''
    r"""|"(?!"")(?:[^"\\\n\r]|\\.)*"|'(?!'')(?:[^'\\\n\r]|\\.)*'"""
    r"""|<[^\x00-\x20<>"{}|^`\\]*>|\\.)"""
    r"""|(?P<gap>(?:[ \t\r\n]+|\#[^\r\n]*)+)|(?P<stray>["'])""",
    re.DOTALL,
)


class QueryTimeout(SourceError):
    """A query was too expensive for the endpoint; a smaller one may succeed."""


class Term(NamedTuple):
    """An RDF term. ``kind`` is "uri", "literal" or "bnode"; see `literal` for literals."""

    value: str
    kind: str = "uri"
    datatype: str = ""
    language: str = ""


Row = tuple[Term | None, ...]


@dataclass(frozen=True)
class SparqlAnswer:
    """The result of a SELECT query: a term or None for each variable, in sorted rows.

    Duplicate rows are kept. Make it with `answer`, which sorts. ``date`` is when a cached answer
    was given, in ISO 8601 and UTC; "" for others. Answers of different dates may be equal.
    """

    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    date: str = field(default="", compare=False)


class QuerySource(Protocol):
    """Anything that answers SELECT queries about Wikidata.

    ``name`` is for the manifest ("wikidata-query.wikidata.org"), ``licence`` the data's SPDX
    expression ("CC0-1.0"), ``version`` the source's own statement of its data version, "" if it
    makes none. One that keeps its answers tells with ``has(query)`` which it has.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def licence(self) -> str: ...  # noqa: D102
    @property
    def version(self) -> str: ...  # noqa: D102

    def select(self, query: str) -> SparqlAnswer:
        """Answer a SELECT query, which is given without `PREFIXES`.

        Raises:
            QueryTimeout: it was too expensive for the endpoint.
            SourceError: there is no valid answer.
        """
        ...


def literal(value: str, datatype: str = "", language: str = "") -> Term:
    """Return a literal in the one form that answers use.

    Simple literals are strings (RDF 1.1, section 3.3) and language tags ignore case; both are
    written without the datatype, and the tag in lower case.
    """
    if language or datatype in (f"{_XSD}string", f"{_RDF}langString"):
        datatype = ""
    return Term(value, "literal", datatype, language.lower())


def answer(variables: Iterable[str], rows: Iterable[Row], date: str = "") -> SparqlAnswer:
    """Return an answer with its rows sorted; unbound comes before any term."""
    in_order = sorted(rows, key=lambda row: [term or () for term in row])
    return SparqlAnswer(tuple(variables), tuple(in_order), date)


def answer_json(found: SparqlAnswer) -> str:
    """Return an answer as JSON text, the same for the same rows: what is hashed and cached."""
    return json.dumps([found.variables, found.rows], ensure_ascii=True, separators=(",", ":"))


def answer_digest(found: SparqlAnswer) -> str:
    """Return the sha256 of an answer, in hex: the same for the same rows from any source."""
    return hashlib.sha256(answer_json(found).encode()).hexdigest()


def normalise(query: str) -> str:
    r"""Return a query without comments and superfluous white space.

    Strings and IRIs are untouched.

    >>> normalise("SELECT ?a  # all\n{ ?a ?b '# x  y' }")
    "SELECT ?a { ?a ?b '# x  y' }"

    Raises:
        UsageError: a string in it has no end, or it cannot be encoded as UTF-8.
    """
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the query cannot be sent: {error}") from error

    def replaced(match: re.Match[str]) -> str:
        if match["stray"]:
            line = query.count("\n", 0, match.start()) + 1
            raise UsageError(f"line {line} of the query begins a string that does not end")
        return match["kept"] or " "

    return _TOKEN.sub(replaced, query).strip(" ")


@lru_cache(maxsize=8)  # a query is sent, recorded and hashed
def prepared(query: str) -> str:
    """Return the query that is really sent: `PREFIXES` and the query, normalised."""
    return normalise(PREFIXES + query)


def query_digest(query: str) -> str:
    """Return the sha256 of the prepared query, in hex."""
    return hashlib.sha256(prepared(query).encode()).hexdigest()
