"""Reading the answers of SPARQL endpoints; only complete and well-formed ones are accepted.

The format is that of SPARQL 1.1 Query Results JSON (W3C, 2013), sections 3.1 and 3.2. Services
send much else with status 200: a web page, an error in JSON, rows broken off with a stack trace
in the middle of a string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from kb_cache.wikidata.sparql.types import QueryTimeout, Row, SparqlAnswer, Term, answer, literal
from kbprobe.http import ServerError, printable

#: Messages of servers if a query takes too long or too much memory: Blazegraph, QLever, Virtuoso,
#: Oxigraph, and proxies before them.
_TOO_EXPENSIVE = re.compile(
    rb"TimeoutException|QueryTimeout|query timeout|timed[ -]?out|deadline exceeded"
    rb"|OutOfMemoryError|AllocationExceedsLimit|memory limit|tried to allocate"
    rb"|estimated execution time",
    re.IGNORECASE,
)
#: Bytes at the end of a broken answer in which a stack trace is looked for.
_TAIL = 1 << 16
_IRI = re.compile(r"[^\x00-\x20]+")
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
_VARIABLE = re.compile(r"\w+")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
_MARKUP = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_TERM_KEYS = {
    "uri": {"type", "value"},
    "bnode": {"type", "value"},
    "literal": {"type", "value", "datatype", "xml:lang"},
    "typed-literal": {"type", "value", "datatype"},  # of drafts, and still of some servers
}


class MalformedAnswer(ServerError):
    """A response that is not a valid answer; the server may send one on another attempt."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(
            f"{where} sent no valid answer: {problem}. Nothing of it was kept. See whether it is "
            "the address of a SPARQL 1.1 endpoint, and try again later.",
            transient=True,
        )


class _Invalid(ValueError):
    """An answer is invalid."""


class _BrokenOff(_Invalid):
    """The server stopped before the end, or says that it failed: it may also say why."""


def parse(body: bytes, where: str) -> SparqlAnswer:
    """Read the answer to a SELECT query, a response's uncompressed body; ``where`` sent it.

    Raises:
        MalformedAnswer: it is not a complete and well-formed answer.
        QueryTimeout: the same, and it ends with the trace of a query that took too long.
    """
    try:
        return _answer(_json(body))
    except _BrokenOff as error:
        if not is_too_expensive(body[-_TAIL:]):
            raise MalformedAnswer(where, str(error)) from error
        raise QueryTimeout(
            f"{where} broke its answer off: the query took too long or too much memory. "
            "Ask for less at a time."
        ) from error
    except _Invalid as error:
        raise MalformedAnswer(where, str(error)) from error


def is_too_expensive(body: bytes) -> bool:
    """Return whether an error says that a query took too long or too much memory."""
    return bool(_TOO_EXPENSIVE.search(body))


def server_message(body: bytes) -> str:
    """Return the first line of a server's error message, or "" if there is none."""
    try:
        said = _json(body)
        if isinstance(said, dict):
            for key in ("exception", "error", "message", "detail"):
                if isinstance(said.get(key), str):
                    return printable(said[key])
    except _Invalid:
        pass
    text = _MARKUP.sub(" ", body[:_TAIL].decode("utf-8", "replace"))
    # Blazegraph repeats the query first, on a line of its own since we send it as one.
    lines = [line for line in text.splitlines() if not line.startswith("SPARQL-QUERY:")]
    return printable("\n".join(lines)) or printable(text)


def _json(body: bytes) -> Any:
    """Parse JSON as in RFC 8259, in UTF-8, with unique keys."""
    if b"\x00" in body:
        raise _Invalid("it holds NUL characters")
    try:
        return json.loads(
            body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_number
        )
    except UnicodeDecodeError as error:
        raise _Invalid(f"byte {error.start:,} is not UTF-8") from error
    except RecursionError as error:
        raise _Invalid("it is nested too deeply") from error
    except json.JSONDecodeError as error:
        if not body.strip():
            raise _Invalid("it is empty") from error
        start = printable(body[:60].decode("utf-8", "replace"), 40)
        raise _BrokenOff(
            f"it is not JSON, or was cut off ({error.msg} at character {error.pos:,} of "
            f"{len(body):,} bytes; it begins {start!r})"
        ) from error
    except ValueError as error:  # a number of thousands of digits, or one of the two below
        raise _Invalid(printable(str(error))) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Invalid("it has a key twice in one object")
    return found


def _no_number(text: str) -> NoReturn:
    raise _Invalid(f"it holds {text}, which is not JSON")


def _answer(said: Any) -> SparqlAnswer:
    top = _mapping(said, "the answer")
    for key in ("exception", "error"):
        if key in top:
            raise _BrokenOff(f"it reports an error: {printable(str(top[key]))}")
    if "boolean" in top:
        raise _Invalid("it is yes or no; a table was asked for")
    variables = _mapping(top.get("head"), "head").get("vars")
    if not isinstance(variables, list) or not all(
        isinstance(name, str) and _VARIABLE.fullmatch(name) for name in variables
    ):
        raise _Invalid("its head has no list of variables")
    if len(set(variables)) != len(variables):
        raise _Invalid("its head names a variable twice")
    bindings = _mapping(top.get("results"), "results").get("bindings")
    if not isinstance(bindings, list):
        raise _Invalid("it has no list of bindings")
    return answer(variables, [_row(binding, variables) for binding in bindings])


def _row(binding: Any, variables: list[str]) -> Row:
    bound = _mapping(binding, "a row")
    if unknown := bound.keys() - set(variables):
        raise _Invalid(f"a row binds {printable(min(unknown), 40)!r}, which its head does not name")
    return tuple(_term(bound[name]) if name in bound else None for name in variables)


def _term(said: Any) -> Term:
    term = _mapping(said, "a term")
    kind = term.get("type")
    allowed = _TERM_KEYS.get(kind) if isinstance(kind, str) else None
    if allowed is None:
        raise _Invalid(f"a term is of the unknown type {printable(str(kind), 40)!r}")
    if not term.keys() <= allowed:
        raise _Invalid(
            f"a term of type {kind} has {printable(str(min(term.keys() - allowed)), 40)}"
        )
    value = _text(term.get("value"), "the value of a term")
    if kind in ("uri", "bnode"):
        if not _IRI.fullmatch(value):
            raise _Invalid(f"{printable(value, 80)!r} cannot be an IRI or the name of a blank node")
        return Term(value, str(kind))
    datatype = _text(term.get("datatype", ""), "a datatype")
    language = _text(term.get("xml:lang", ""), "a language")
    if (kind == "typed-literal" or "datatype" in term) and not _IRI.fullmatch(datatype):
        raise _Invalid("a literal's datatype is not an IRI")
    if "xml:lang" in term and not _LANGUAGE.fullmatch(language):
        raise _Invalid(f"{printable(language, 40)!r} is not a language tag")
    if language and datatype and not datatype.endswith("#langString"):
        raise _Invalid("a literal has both a language and a datatype")
    return literal(value, datatype, language)


def _text(said: Any, what: str) -> str:
    if not isinstance(said, str):
        raise _Invalid(f"{what} is not a string")
    # Escapes can express characters that neither UTF-8 nor RDF allows.
    if _NO_TEXT.search(said):
        raise _Invalid(f"{what} holds NUL or half a character")
    return said


def _mapping(said: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(said, dict):
        raise _Invalid(f"{what} is not a JSON object")
    return said
