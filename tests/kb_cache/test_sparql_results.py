"""The reader of answers: what is well formed is read as it is, everything else is refused."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb_cache.wikidata.sparql.results import MalformedAnswer, parse, server_message
from kb_cache.wikidata.sparql.types import QueryTimeout, Term
from kbprobe.http import printable

XSD = "http://www.w3.org/2001/XMLSchema#"
VARIABLES = ["x", "y", "z"]


def body(*rows: Any, variables: Any = ("x",), **more: Any) -> bytes:
    said = {"head": {"vars": list(variables)}, "results": {"bindings": list(rows)}} | more
    return json.dumps(said).encode()


def test_every_kind_of_term() -> None:
    found = parse(
        body(
            {
                "a": {"type": "uri", "value": "http://example.org/ä"},
                "b": {"type": "bnode", "value": "b0"},
                "c": {"type": "literal", "value": "New\nYork", "xml:lang": "en-GB"},
                "d": {"type": "literal", "value": "1", "datatype": XSD + "integer"},
                "e": {"type": "typed-literal", "value": "1", "datatype": XSD + "integer"},
                "f": {"type": "literal", "value": "x", "datatype": XSD + "string"},
                "g": {"type": "literal", "value": ""},
            },
            variables="abcdefgh",
        ),
        "here",
    )
    assert found.variables == tuple("abcdefgh")
    assert found.rows == (
        (
            Term("http://example.org/ä"),
            Term("b0", "bnode"),
            Term("New\nYork", "literal", "", "en-gb"),
            Term("1", "literal", XSD + "integer"),
            Term("1", "literal", XSD + "integer"),
            Term("x", "literal"),
            Term("", "literal"),
            None,
        ),
    )


def test_rows_are_sorted_and_kept_as_often_as_they_come() -> None:
    rows: list[Any] = [{"x": {"type": "uri", "value": v}} for v in ("b", "a", "b")]
    found = parse(body(*rows, {}), "here")
    assert found.rows == ((None,), (Term("a"),), (Term("b"),), (Term("b"),))


def test_members_that_the_format_allows_to_add() -> None:
    said = json.loads(body())
    said["head"]["link"] = []
    said["results"] |= {"distinct": False, "ordered": True}
    said["meta"] = {"query-time-ms": 3}
    assert parse(json.dumps(said).encode(), "here").rows == ()


URI = '{"type": "uri", "value": "http://a"}'
ROW = '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": %s}]}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("<!doctype html>", "not JSON"),
        ("[]", "the answer is not a JSON object"),
        ("null", "not a JSON object"),
        ("{}", "head is not a JSON object"),
        ('{"head": {"vars": []}}', "results is not a JSON object"),
        ('{"head": {"vars": []}, "results": {}}', "no list of bindings"),
        ('{"head": {"vars": []}, "results": {"bindings": {}}}', "no list of bindings"),
        ('{"head": {"vars": "x"}, "results": {"bindings": []}}', "no list of variables"),
        ('{"head": {"vars": ["?x"]}, "results": {"bindings": []}}', "no list of variables"),
        ('{"head": {"vars": [1]}, "results": {"bindings": []}}', "no list of variables"),
        ('{"head": {"vars": ["x", "x"]}, "results": {"bindings": []}}', "variable twice"),
        ('{"head": {}, "boolean": true}', "yes or no"),
        ('{"head": {"vars": []}, "results": {"bindings": []}, "boolean": true}', "yes or no"),
        ('{"head": {"vars": []}, "results": {"bindings": []}, "error": "disk"}', "error: disk"),
        ('{"head": {"vars": []}, "results": {"bindings": [7]}}', "a row is not a JSON object"),
        (ROW.replace('"x":', '"y":') % URI, "'y', which its head does not name"),
        (ROW % "null", "a term is not a JSON object"),
        (ROW % '"http://a"', "a term is not a JSON object"),
        (ROW % '{"value": "a"}', "unknown type 'None'"),
        (ROW % '{"type": "triple", "value": {}}', "unknown type 'triple'"),
        (ROW % '{"type": ["uri"], "value": "a"}', "unknown type"),
        (ROW % '{"type": "uri"}', "value of a term is not a string"),
        (ROW % '{"type": "uri", "value": 7}', "value of a term is not a string"),
        (ROW % '{"type": "uri", "value": ""}', "cannot be an IRI"),
        (ROW % '{"type": "uri", "value": "a b"}', "cannot be an IRI"),
        (ROW % '{"type": "uri", "value": "a", "xml:lang": "en"}', "of type uri has xml:lang"),
        (ROW % '{"type": "literal", "value": "a", "its:dir": "ltr"}', "has its:dir"),
        (ROW % '{"type": "literal", "value": "a", "xml:lang": ""}', "not a language tag"),
        (ROW % '{"type": "literal", "value": "a", "xml:lang": 7}', "a language is not a string"),
        (ROW % '{"type": "literal", "value": "a", "datatype": ""}', "datatype is not an IRI"),
        (ROW % '{"type": "typed-literal", "value": "a"}', "datatype is not an IRI"),
        (ROW % '{"type": "literal", "value": "a", "xml:lang": "en", "datatype": "b"}', "both"),
        (ROW % '{"type": "literal", "value": "\\u0000"}', "NUL"),
        (ROW % '{"type": "literal", "value": "\\ud800"}', "half a character"),
        (ROW % URI + " trailing", "not JSON, or was cut off"),
        (ROW % URI + "{}", "not JSON, or was cut off"),
        ("\ufeff" + ROW % URI, "not JSON"),
        (ROW % '{"type": "literal", "value": NaN}', "NaN"),
        (ROW % '{"type": "literal", "value": -Infinity}', "-Infinity"),
        (ROW % '{"type": "uri", "value": "a", "value": "b"}', "key twice"),
        (ROW % ("9" * 5000), "digits"),
        ("[" * 200_000 + "]" * 200_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        (ROW % '{"type": "literal", "value": "tab\there"}', "not JSON"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(MalformedAnswer) as caught:
        parse(text.encode(), "http://here/")
    assert message in str(caught.value)
    assert str(caught.value).startswith("http://here/ sent no valid answer")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_bytes_that_are_no_text() -> None:
    for bad in (b"\x00", b"\xff", b"\xc3", body() + b"\x00", body().decode().encode("utf-16")):
        with pytest.raises(MalformedAnswer):
            parse(bad, "here")


def test_a_label_about_time_is_no_timeout() -> None:
    label = {"type": "literal", "value": "Timed Out (2010 film)", "xml:lang": "en"}
    assert len(parse(body({"x": label}), "here").rows) == 1
    with pytest.raises(MalformedAnswer):
        parse(body({"y": label}), "here")


def test_a_trace_in_the_middle_of_a_string() -> None:
    whole = body(*[{"x": {"type": "uri", "value": f"http://example.org/{n}"}} for n in range(99)])
    trace = b"SPARQL-QUERY: queryStr=SELECT ?x\njava.util.concurrent.TimeoutException\n\tat java"
    for cut in range(60, 200):
        with pytest.raises(QueryTimeout, match="less at a time"):
            parse(whole[:cut] + trace, "here")


def test_messages_are_short_and_printable() -> None:
    assert printable("\n \x1b[2J\x07 boo  hoo \nmore") == "[2J boo hoo"
    assert len(printable("x" * 1000)) == 200
    assert server_message(b"") == ""
    assert server_message(b'{"exception": "Bad\\nquery"}') == "Bad"
    assert server_message(b"<html><title>502 Bad Gateway</title>") == "502 Bad Gateway"
    assert server_message(b"SPARQL-QUERY: queryStr=S\njava.lang.X: no") == "java.lang.X: no"
    assert server_message(b"SPARQL-QUERY: queryStr=S") == "SPARQL-QUERY: queryStr=S"


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
names = st.text(
    st.characters(exclude_categories=["Cs"], min_codepoint=0x21), min_size=1, max_size=8
)
terms = st.one_of(
    st.builds(lambda value: {"type": "uri", "value": value}, names),
    st.builds(lambda value: {"type": "bnode", "value": value}, names),
    st.builds(lambda value: {"type": "literal", "value": value}, texts),
    st.builds(
        lambda value, tag: {"type": "literal", "value": value, "xml:lang": tag},
        texts, st.sampled_from(["en", "de-AT", "zh-hant"]),
    ),
    st.builds(
        lambda value, kind: {"type": "literal", "value": value, "datatype": XSD + kind},
        texts, st.sampled_from(["string", "date", "decimal"]),
    ),
)  # fmt: skip
answers = st.lists(st.dictionaries(st.sampled_from(VARIABLES), terms), max_size=3).map(
    lambda rows: {"head": {"vars": VARIABLES}, "results": {"bindings": rows}}
)


def plainly(said: Any) -> list[tuple[Any, ...]]:
    """What a plain reading of the JSON finds, in the order of the answer."""
    rows = []
    for binding in said["results"]["bindings"]:
        row: list[Any] = []
        for name in said["head"]["vars"]:
            term = binding.get(name)
            if term is None:
                row.append(())
                continue
            datatype = term.get("datatype", "")
            datatype = "" if datatype == XSD + "string" else datatype
            row.append((term["value"], term["type"], datatype, term.get("xml:lang", "").lower()))
        rows.append(tuple(row))
    return sorted(rows)


def mutated(said: Any, text: bytes, seed: int) -> bytes:
    """An answer with one thing about it changed, which may leave it valid."""
    chance = random.Random(seed)
    way = chance.randrange(7)
    where = chance.randrange(len(text))
    if way == 0:
        return text[:where]
    if way == 1:
        return text[:where] + bytes([chance.randrange(256)]) + text[where + 1 :]
    if way == 2:
        return text + chance.choice([b"x", b"\x00", b"{}", b"]", b"\njava.lang.Exception\n\tat x"])
    if way == 3:
        return text[:where] + chance.randbytes(chance.randrange(1, 9)) + text[where:]
    said = copy.deepcopy(said)
    holders: list[Any] = []

    def visit(value: Any) -> None:
        if isinstance(value, dict | list):
            if value:
                holders.append(value)
            for inner in value.values() if isinstance(value, dict) else value:
                visit(inner)

    visit(said)
    holder = chance.choice(holders)
    key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    if way == 4:
        del holder[key]
    elif way == 5:
        holder[key] = chance.choice(
            [None, 7, -1.5, True, "", "x", [], {}, [[]], {"x": 1}, float("nan"), "\ud800", "\x00"]
        )
    elif isinstance(holder, dict):
        holder[chance.choice(["x", "type", "value", "datatype", "boolean", "error"])] = holder[key]
    else:
        holder.append(holder[key])
    return json.dumps(said).encode()


def read(text: bytes) -> list[tuple[Any, ...]] | None:
    """The rows as `plainly` gives them, None if the answer is refused in the way it should be."""
    try:
        return [tuple(term or () for term in row) for row in parse(text, "here").rows]
    except (MalformedAnswer, QueryTimeout) as error:
        return None if str(error).isprintable() else [("unprintable",)]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(answers, st.booleans())
def test_valid_answers_are_read_as_they_are(said: Any, escaped: bool) -> None:
    text = json.dumps(said, ensure_ascii=escaped).encode()
    assert read(text) == plainly(said)
    assert parse(text, "here").variables == tuple(VARIABLES)


@settings(max_examples=100, deadline=None)
@given(answers, st.integers(0, 2**32))
def test_mutated_answers_are_refused_or_still_valid(said: Any, seed: int) -> None:
    """10,000 of them: nothing but a SourceError, and nothing accepted that is not valid."""
    text = json.dumps(said).encode()
    for change in range(100):
        damaged = mutated(said, text, seed + change)
        found = read(damaged)
        assert found is None or found == plainly(json.loads(damaged))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_noise(noise: bytes) -> None:
    with pytest.raises((MalformedAnswer, QueryTimeout)):
        parse(noise, "here")
    assert server_message(noise).isprintable()
