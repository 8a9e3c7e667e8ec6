"""Reading of OBO files and OBO Graphs.

Strict readers refuse a file of tens of thousands of terms for one line that is not as the format
demands. This one takes what it understands, and counts the rest by the number of its first line.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kb_cache.ontologies.types import OntologyTerm, Stated
from kbprobe.errors import UsageError

HAS_PART = ("has_part", "BFO:0000051", "http://purl.obolibrary.org/obo/BFO_0000051")
"""The names of the relation of a whole to its part."""

PART_OF = ("part_of", "BFO:0000050", "http://purl.obolibrary.org/obo/BFO_0000050")
"""The names of the relation of a part to its whole."""

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(\w*)')
_ESCAPED = re.compile(r"\\(.)")
_LICENCE = re.compile(r"\S*(?:license|rights)\s+\"?([^\"\s]+(?:[^\"]*[^\"\s])?)\"?")
_AFTER = re.compile(r"\s*(?:!.*|\{[^}]*\}\s*(?:!.*)?)?$")

_LETTERS = {"n": "\n", "t": "\t", "W": " "}


def read_obo(lines: Iterable[str]) -> Stated:
    """Read the lines of an OBO file."""
    skipped: Counter[str] = Counter()
    first: dict[str, int] = {}
    licence = title = namespace = ""
    terms: dict[str, OntologyTerm] = {}
    stanza, term = "", None
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("!"):
            continue
        if text.startswith("["):
            stanza, term = text, None
            continue
        tag, colon, value = text.partition(":")
        value = value.strip()
        if not stanza:
            if tag == "default-namespace":
                namespace = value
            elif tag == "property_value" and (named := _LICENCE.match(value)):
                licence = licence or named[1].removesuffix(" xsd:string").removesuffix(
                    " xsd:anyURI"
                )
            elif tag == "property_value" and "title" in value.split(" ")[0]:
                title = _quoted(value)[0]
            continue
        if stanza != "[Term]":
            continue
        understood = bool(colon)
        if tag == "id":
            term = terms.setdefault(value, OntologyTerm(value, namespace=namespace))
        elif term is not None and colon:
            understood = _read_tag(term, tag, value)
        if not understood:
            skipped["a line is not understood"] += 1
            first.setdefault("line", number)
    if skipped:
        reason = f"a line is not understood (the first is line {first['line']:,})"
        skipped = Counter({reason: sum(skipped.values())})
    return Stated(terms.values(), licence, title, skipped)


def _read_tag(term: OntologyTerm, tag: str, value: str) -> bool:
    """Add to a term what a line says; return whether the line is understood."""
    if tag == "name":
        term.name = _unescaped(_AFTER.sub("", value))
    elif tag == "namespace":
        term.namespace = value
    elif tag == "is_obsolete":
        term.obsolete = value.startswith("true")
    elif tag == "xref":
        term.references.append(_first(value))
    elif tag == "is_a":
        term.is_a.append(_first(value))
    elif tag in ("relationship", "intersection_of"):
        relation, _, target = value.partition(" ")
        if relation in PART_OF:
            term.part_of.append(_first(target))
        elif relation in HAS_PART:
            term.has_part.append(_first(target))
        elif tag == "intersection_of" and (not target or target.startswith(("!", "{"))):
            term.is_a.append(relation)
    elif tag == "equivalent_to":
        term.same.append(_first(value))
    elif tag == "alt_id":
        term.others.append(_first(value))
    elif tag == "replaced_by":
        term.replaced_by.append(_first(value))
    elif tag in ("def", "synonym") or tag.endswith("_synonym"):
        text, scope = _quoted(value)
        if not text:
            return False
        if tag == "def":
            term.definition = text
        else:
            exact = tag == "exact_synonym" or scope == "EXACT"
            (term.synonyms if exact else term.related).append(text)
    return True


def _first(value: str) -> str:
    """Return the identifier before modifiers and comments."""
    return value.split(" ", 1)[0]


def _quoted(value: str) -> tuple[str, str]:
    """Return the text between quotes, and the word after it; empty if there is none."""
    found = _QUOTED.match(value[value.find('"') :]) if '"' in value else None
    return (_unescaped(found[1]), found[2]) if found else ("", "")


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: _LETTERS.get(found[1], found[1]), text).strip()


def read_obo_graphs(text: str, place: str) -> Stated:
    """Read OBO Graphs JSON.

    Raises:
        UsageError: it is not JSON, or holds no graph.
    """
    try:
        graphs = [dict(graph) for graph in json.loads(text)["graphs"]]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"{place} is no OBO Graphs JSON: {error!r}. A table of facts is read as JSON lines: "
            f"name it .jsonl, with one fact in each line"
        ) from error
    terms: dict[str, OntologyTerm] = {}
    skipped: Counter[str] = Counter()
    licence = title = ""
    for graph in graphs:
        for pair in _dicts(_meta(graph).get("basicPropertyValues")):
            name = _text(pair, "pred").rpartition("/")[2].lower()
            licence = licence or (_text(pair, "val") if name in ("license", "rights") else "")
            title = title or (_text(pair, "val") if name == "title" else "")
        for node in _dicts(graph.get("nodes")):
            if not _text(node, "id"):
                skipped["a node without an id"] += 1
            elif (node.get("type") or "CLASS") == "CLASS":
                terms.setdefault(node["id"], _term_of(node))
        for edge in _dicts(graph.get("edges")):
            term, target = terms.get(_text(edge, "sub")), _text(edge, "obj")
            if term is None or not target:
                skipped["a relation of a term that is absent"] += 1
            elif edge.get("pred") == "is_a":
                term.is_a.append(target)
            elif edge.get("pred") in PART_OF:
                term.part_of.append(target)
            elif edge.get("pred") in HAS_PART:
                term.has_part.append(target)
    return Stated(terms.values(), licence, title, skipped)


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _meta(entry: Mapping[str, Any]) -> dict[str, Any]:
    meta = entry.get("meta")
    return meta if isinstance(meta, dict) else {}


def _term_of(node: Mapping[str, Any]) -> OntologyTerm:
    meta = _meta(node)
    values = {
        _text(pair, "pred").rpartition("#")[2]: _text(pair, "val")
        for pair in _dicts(meta.get("basicPropertyValues"))
    }
    definition = meta.get("definition")
    exact: list[str] = []
    related: list[str] = []
    for synonym in _dicts(meta.get("synonyms")):
        same = synonym.get("pred") == "hasExactSynonym"
        (exact if same else related).append(_text(synonym, "val"))
    return OntologyTerm(
        node["id"],
        _text(node, "lbl"),
        _text(definition, "val") if isinstance(definition, dict) else "",
        values.get("hasOBONamespace", ""),
        [*filter(None, exact)],
        [*filter(None, related)],
        [text for one in _dicts(meta.get("xrefs")) if (text := _text(one, "val"))],
        obsolete=bool(meta.get("deprecated")),
    )
