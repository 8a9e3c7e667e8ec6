"""Answers of SPARQL endpoints, compared with pyoxigraph's reader of the same format."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tests.reliability.target import Refused, Target, Undecided

_XSD = "http://www.w3.org/2001/XMLSchema#"


def _seeds(folder: Path) -> list[Path]:
    entity = "http://www.wikidata.org/entity/"
    rows = [
        {
            "film": {"type": "uri", "value": f"{entity}Q{100 + at}"},
            "name": {"type": "literal", "value": f"Film \u201c{at}\u201d", "xml:lang": "en"},
            "year": {"type": "literal", "value": str(1980 + at), "datatype": f"{_XSD}gYear"},
            **({"cast": {"type": "bnode", "value": f"b{at}"}} if at % 3 else {}),
        }
        for at in range(20)
    ]
    answer = {"head": {"vars": ["film", "name", "year", "cast"]}, "results": {"bindings": rows}}
    (folder / "answer.json").write_text(json.dumps(answer))
    return [folder / "answer.json"]


def _read(path: Path) -> tuple[tuple[str, ...], list[str]]:
    from kb_cache.wikidata.sparql.results import parse

    found = parse(path.read_bytes(), path.name)
    rows = [repr([tuple(term) if term else None for term in row]) for row in found.rows]
    return found.variables, sorted(rows)


def _expected(path: Path) -> tuple[tuple[str, ...], list[str]]:
    from pyoxigraph import QueryResultsFormat, QuerySolutions, parse_query_results

    try:
        found = parse_query_results(path.read_bytes(), QueryResultsFormat.JSON)
        if not isinstance(found, QuerySolutions):
            raise Refused("no table")
        names = [variable.value for variable in found.variables]
        rows = [repr([_term(row[name]) for name in names]) for row in found]
    except (SyntaxError, OSError, ValueError) as error:
        # IRIs that services send, although RDF has no such IRIs; further members, which the
        # format allows and this reader does not.
        if "Invalid" in str(error) or "after the end of the bindings" in str(error):
            raise Undecided(str(error)) from error
        raise Refused(str(error)) from error
    return tuple(names), sorted(rows)


def _term(term: object) -> tuple[str, str, str, str] | None:
    from pyoxigraph import BlankNode, Literal, NamedNode

    match term:
        case NamedNode():
            return term.value, "uri", "", ""
        case BlankNode():
            return term.value, "bnode", "", ""
        case Literal():
            kind = term.datatype.value
            plain = kind == f"{_XSD}string" or term.language
            return term.value, "literal", "" if plain else kind, (term.language or "").lower()
    return None


def _cached(folder: Path) -> list[Path]:
    """Write a cached answer where the cache would keep it."""
    from kb_cache.wikidata.sparql.answers import CachedAnswer, slug, write
    from kb_cache.wikidata.sparql.types import Term, answer, prepared

    query = prepared("SELECT ?x { ?x a ?y }")
    rows = [(Term(f"http://example.org/{at}"), None) for at in range(9)]
    url = "http://localhost/sparql"
    name = hashlib.sha256(query.encode()).hexdigest()
    path = folder / slug(url) / f"{name}.json.gz"
    found = answer(("x", "y"), rows, "2024-01-01T00:00:00Z")
    write(path, CachedAnswer(url, query, "", found))
    (folder / "rows").write_text(repr(found.rows))
    return [path]


def _read_cached(path: Path) -> str:
    from kb_cache.wikidata.sparql.answers import DamagedAnswer, read
    from kbprobe.errors import CacheError

    try:
        return repr(read(path).answer.rows)
    except DamagedAnswer as error:  # the cache then asks again
        raise CacheError(f"{path}: {error}") from error


def _as_written(path: Path) -> str:
    return (path.parent.parent / "rows").read_text()


TARGETS = [
    Target("sparql-answers", _seeds, _read, _expected, both_refuse=False),
    Target("sparql-cached", _cached, _read_cached, _as_written, both_refuse=False),
]
