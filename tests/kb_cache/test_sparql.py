"""What all sources share: queries in one form, many values by chunks, sessions that record."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb_cache.wikidata.sparql.session import QuerySession, select_values
from kb_cache.wikidata.sparql.types import (
    PREFIXES,
    QueryTimeout,
    SparqlAnswer,
    Term,
    answer,
    answer_digest,
    literal,
    normalise,
    prepared,
    query_digest,
)
from kbprobe.errors import SourceError, UsageError

QUERY = "SELECT ?film ?x { $values ?film wdt:P161 ?x }"


class Films:
    """A source in which every film has one actor, and queries for too many films take too long."""

    name, licence = "films", "CC0-1.0"

    def __init__(self, most: int = 1000, hopeless: str = "Q0") -> None:
        self.most, self.hopeless = most, hopeless
        self.asked: list[list[str]] = []

    @property
    def version(self) -> str:
        return "1"

    def select(self, query: str) -> SparqlAnswer:
        films = re.findall(r"wd:(Q\d+)", query)
        self.asked.append(films)
        if len(films) > self.most or self.hopeless in films:
            raise QueryTimeout("too many films")
        rows = [(Term(film), Term(f"actor of {film}")) for film in reversed(films)]
        return answer(("film", "x"), rows)


class Keeping(Films):
    """The same, with a memory of its answers."""

    def __init__(self, most: int = 1000) -> None:
        super().__init__(most)
        self.kept: dict[str, SparqlAnswer] = {}

    def has(self, query: str) -> bool:
        return query in self.kept

    def select(self, query: str) -> SparqlAnswer:
        if query not in self.kept:
            self.kept[query] = replace(super().select(query), date="2026-01-01T00:00:00Z")
        return self.kept[query]


FILMS = [f"Q{number}" for number in range(1, 501)]


def test_normalise() -> None:
    query = """
        # comment with "quotes' and <brackets
        SELECT ?a\t?b   # more
        WHERE { ?a <http://example.org/a#b> "# no  comment", 'it''s', "a \\" # b" ;
                rdfs:label \"\"\"two
   lines # "here" \"\"\"@en ; wd:a\\#b '''x ' '' # '''.  # end
                FILTER(?a < 3 && ?b > 2) }  # done"""
    assert normalise(query) == (
        'SELECT ?a ?b WHERE { ?a <http://example.org/a#b> "# no  comment", '
        '\'it\'\'s\', "a \\" # b" ; rdfs:label """two\n   lines # "here" """@en ; '
        "wd:a\\#b '''x ' '' # '''. FILTER(?a < 3 && ?b > 2) }"
    )


@pytest.mark.parametrize("query", ['SELECT "a', "'a\nb'", '"""a""', "'''a", 'a """b"""" c'])
def test_strings_without_end(query: str) -> None:
    with pytest.raises(UsageError, match="line 1 of the query begins a string"):
        normalise(query)


def test_what_cannot_be_sent() -> None:
    with pytest.raises(UsageError, match="cannot be sent"):
        normalise("SELECT ?x { ?x rdfs:label '\ud800' }")


def quoted(mark: str) -> Callable[[str], str]:
    def quote(text: str) -> str:
        text = text.replace("\\", "\\\\").replace(mark[0], "\\" + mark[0])
        if len(mark) == 1:
            text = text.replace("\n", "\\n").replace("\r", "\\r")
        return f"{mark}{text}{mark}"

    return quote


hard = st.text("ab #<>\"'\\\n\r\t{}?:", max_size=12)
strings = st.one_of(*(hard.map(quoted(mark)) for mark in ('"', "'", '"""', "'''")))
iris = st.text("ab#/:.?&'", max_size=12).map(lambda text: f"<http://{text}>")
words = st.sampled_from(
    ["SELECT", "?x", "{", "}", ".", "wd:Q1", "<", ">", "&&", "a\\#b", "ä", "@en"]
)
tokens = st.lists(st.one_of(strings, iris, words), max_size=8)
gaps = st.lists(
    st.one_of(
        st.text(" \t\r\n", min_size=1, max_size=4),
        st.text("ab #<>\"'\\{}", max_size=8).map(lambda text: f" #{text}\n"),
    ),
    min_size=9,
    max_size=9,
)


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(tokens, gaps)
def test_only_comments_and_space_between_tokens_go(parts: list[str], between: list[str]) -> None:
    query = between[0] + "".join(map(str.__add__, parts, between[1:]))
    assert normalise(query) == " ".join(parts)
    assert normalise(normalise(query)) == normalise(query)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.text("ab #<>\"'\\\n\r\t{}?:", max_size=40))
def test_normalise_settles(query: str) -> None:
    try:
        once = normalise(query)
    except UsageError:
        return
    assert normalise(once) == once


def test_prepared_queries_are_one_line_with_all_prefixes() -> None:
    query = prepared("\n  SELECT ?x  { ?x wdt:P31 wd:Q5 }\n")
    assert "\n" not in query
    assert query.endswith("SELECT ?x { ?x wdt:P31 wd:Q5 }")
    for name in ("wd", "wdt", "p", "ps", "pq", "rdfs", "schema", "wikibase", "xsd"):
        assert f"PREFIX {name}: <" in query
    assert query_digest("SELECT  ?x{}") == query_digest("SELECT ?x{} # it")
    assert PREFIXES.endswith("\n")


def test_a_real_parser_reads_the_same_from_the_normal_form() -> None:
    import pyoxigraph

    query = "SELECT ?a ('# it''s' AS ?b) ('''x\n  \"#\" ''' AS ?c) { VALUES ?a { <http://a#b> } }"
    store = pyoxigraph.Store()
    found = [
        [str(value) for value in next(iter(store.query(PREFIXES + text)))]
        for text in (query.replace("''s", "s"), normalise(query.replace("''s", "s")))
    ]
    assert found[0] == found[1]


def test_literals_have_one_form() -> None:
    xsd = "http://www.w3.org/2001/XMLSchema#"
    assert literal("a", xsd + "string") == literal("a") == Term("a", "literal")
    assert literal("a", "", "EN-gb") == Term("a", "literal", "", "en-gb")
    assert literal("1", xsd + "integer").datatype == xsd + "integer"


def test_chunks_are_the_same_for_the_same_values() -> None:
    first, second = Films(), Films()
    found = select_values(first, QUERY, "film", FILMS)
    again = select_values(second, QUERY, "film", [*reversed(FILMS), *FILMS])
    assert found == again
    assert len(found.rows) == 500
    assert first.asked == second.asked
    assert [len(films) for films in first.asked] == [200, 200, 100]


def test_how_values_are_written() -> None:
    asked = []

    class Ear(Films):
        def select(self, query: str) -> SparqlAnswer:
            asked.append(query)
            return answer(("film",), [])

    values = ["http://www.wikidata.org/entity/Q7", "Q7", "P31", "http://example.org/x#y"]
    select_values(Ear(), "SELECT ?film { $values }", "film", values)
    assert asked == ["SELECT ?film { VALUES ?film { <http://example.org/x#y> wd:P31 wd:Q7 } }"]


@pytest.mark.parametrize(
    "value", ["", "q42", "Q0", "Q42 } UNION {", "http://a> <b", "a:b c", "Q4\n"]
)
def test_values_that_are_no_iris(value: str) -> None:
    source = Films()
    with pytest.raises(UsageError, match="neither an id of Wikidata"):
        select_values(source, QUERY, "film", ["Q1", value])
    assert not source.asked


@pytest.mark.parametrize(
    ("query", "variable", "chunk"),
    [
        ("SELECT ?x {}", "x", 1),
        (QUERY + "$values", "film", 1),
        (QUERY, "?film", 1),
        (QUERY, "x", 0),
    ],
)
def test_queries_that_cannot_take_values(query: str, variable: str, chunk: int) -> None:
    with pytest.raises(UsageError, match="once"):
        select_values(Films(), query, variable, ["Q1"], chunk)


def test_without_values_nothing_is_asked() -> None:
    source = Films()
    assert select_values(source, QUERY, "film", []) == SparqlAnswer((), ())
    assert not source.asked


@pytest.mark.parametrize("most", [1, 2, 3, 7, 60, 199])
def test_chunks_are_halved_until_they_are_answered(most: int) -> None:
    session, whole = QuerySession(Films(most)), QuerySession(Films())
    found = select_values(session, QUERY, "film", FILMS)
    assert found == select_values(whole, QUERY, "film", FILMS)
    assert session.digest == whole.digest, "halving must not show"
    assert all(asked.rows <= most for asked in session.queries)
    assert sum(asked.rows for asked in session.queries) == 500


def test_a_single_value_may_be_too_much() -> None:
    source = Films(hopeless="Q7")
    with pytest.raises(QueryTimeout):
        select_values(source, QUERY, "film", ["Q1", "Q2", "Q7", "Q8"])
    assert ["Q7"] in source.asked
    assert len(source.asked) < 8


def test_what_was_halved_once_is_not_tried_whole_again() -> None:
    source = Keeping(most=60)
    select_values(source, QUERY, "film", FILMS)
    source.asked.clear()
    select_values(source, QUERY, "film", FILMS)
    assert source.asked == []
    # A run that was killed after its first answers.
    source.kept = dict(list(source.kept.items())[:2])
    select_values(source, QUERY, "film", FILMS[:200])
    assert [len(films) for films in source.asked] == [100, 50, 50]


def test_parts_with_different_variables() -> None:
    class Fickle(Films):
        def select(self, query: str) -> SparqlAnswer:
            return answer((f"v{len(query)}",), [])

    with pytest.raises(SourceError, match="different variables"):
        select_values(Fickle(), QUERY, "film", FILMS)


def test_sessions_record_each_query_once() -> None:
    session = QuerySession(Films(), now=lambda: "2026-11-21T00:00:00Z")
    for _ in range(2):
        session.select("SELECT ?film ?x { wd:Q1  wdt:P161 ?x }")
    session.select("SELECT ?film ?x { wd:Q2 wdt:P161 ?x }")
    first, second = (recorded._asdict() for recorded in session.queries)
    found = answer(("film", "x"), [(Term("Q1"), Term("actor of Q1"))])
    assert first == {
        "query": query_digest("SELECT ?film ?x { wd:Q1 wdt:P161 ?x }"),
        "date": "2026-11-21T00:00:00Z",
        "rows": 1,
        "answer": answer_digest(found),
    }
    assert second["query"] != first["query"]


def test_digests_depend_on_queries_and_answers_alone() -> None:
    def digest(*films: str, most: int = 1000, now: str = "1") -> str:
        session = QuerySession(Films(most), now=lambda: now)
        for film in films:
            session.select(f"SELECT ?film ?x {{ wd:{film} wdt:P161 ?x }}")
        return session.digest

    assert digest("Q1", "Q2") == digest("Q2", "Q1", now="2")
    assert len({digest(), digest("Q1"), digest("Q1", "Q2"), digest("Q2")}) == 4


def test_dates_are_those_of_kept_answers(tmp_path: Path) -> None:
    session = QuerySession(Keeping())
    session.select("SELECT ?film ?x { wd:Q1 wdt:P161 ?x }")
    assert session.queries[0].date == "2026-01-01T00:00:00Z"
