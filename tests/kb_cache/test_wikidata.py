"""Wikidata in process: the same answers as a real SPARQL server gives for the same triples."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kb_cache import store
from kb_cache.fetching import fetch
from kb_cache.wikidata.load import load_wikidata
from kb_cache.wikidata.sparql.endpoint import QueryLimits, SparqlEndpoint
from kb_cache.wikidata.sparql.session import QuerySession, select_values
from kb_cache.wikidata.sparql.types import SparqlAnswer, Term, prepared
from kb_cache.wikidata.types import Wikidata
from kbprobe.errors import SnapshotError, UsageError
from tests.oxigraph import serving
from tests.real_data import MINIATURE, SAMPLE

XSD = "http://www.w3.org/2001/XMLSchema#"
WD = "http://www.wikidata.org/entity/"

#: Real queries, and how many rows each has in the miniature and in the sample.
QUERIES = {
    "spouses of actors": (
        """SELECT ?film ?filmLabel ?actor ?spouse ?spouseLabel WHERE {
             ?film wdt:P31 wd:Q11424 ; wdt:P161 ?actor ; rdfs:label ?filmLabel .
             ?actor wdt:P26 ?spouse . ?spouse rdfs:label ?spouseLabel
             FILTER(LANG(?filmLabel) = "en" && LANG(?spouseLabel) = "en") }""",
        (545, 803),
    ),
    "starts of bands": (
        """SELECT DISTINCT ?member ?band ?start ?founded WHERE {
             { ?member wdt:P463 ?band } UNION { ?band wdt:P527 ?member }
             ?band wdt:P2031 ?start OPTIONAL { ?band wdt:P571 ?founded } }""",
        (188, 207),
    ),
    "headquarters and their countries": (
        """SELECT ?founder ?company ?place ?country WHERE {
             ?company wdt:P112 ?founder ; wdt:P159 ?place . ?founder wdt:P31 wd:Q5
             OPTIONAL { ?place wdt:P17 ?country } }""",
        (57, 70),
    ),
    "countries of directors, counted": (
        """SELECT ?country (COUNT(DISTINCT ?film) AS ?films) WHERE {
             ?film wdt:P31/wdt:P279* wd:Q11424 ; wdt:P57/wdt:P27 ?country }
           GROUP BY ?country HAVING(COUNT(DISTINCT ?film) > 3)""",
        (9, 9),
    ),
    "labels beyond ASCII, with quotes and backslashes": (
        r"""SELECT ?item ?label WHERE { ?item rdfs:label ?label
              FILTER(REGEX(STR(?label), "[^ -~]|\\\\") && STRLEN(STR(?label)) > 40) }""",
        (9, 504),
    ),
    "qualifiers and sitelinks, of which there are none": (
        """SELECT ?end ?links WHERE { wd:Q2685 wdt:P26 ?spouse
             OPTIONAL { wd:Q2685 p:P26 ?s . ?s ps:P26 ?spouse ; pq:P582 ?end }
             OPTIONAL { ?spouse wikibase:sitelinks ?links } }""",
        (1, 1),
    ),
    "nothing": ("SELECT ?x WHERE { wd:Q42 wdt:P26 ?x, wd:Q42 }", (0, 0)),
}

MINI = """\
<http://www.wikidata.org/entity/Q1> <http://www.w3.org/2000/01/rdf-schema#label> "œuf\\u2014\\"x\\""@en-GB .
<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P1> "plain" .
<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P2> "007"^^<http://www.w3.org/2001/XMLSchema#string> .
<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P571> "-0044-03-15T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P571> "1950-00-00T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P3> "+12.50"^^<http://www.w3.org/2001/XMLSchema#decimal> .
<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P4> <http://www.wikidata.org/entity/Q2> .
"""  # noqa: E501


class Served:
    """A server as a source, without a cache before it."""

    name, licence = "server", "CC0-1.0"

    def __init__(self, url: str) -> None:
        self._endpoint = SparqlEndpoint(url, limits=QueryLimits(pause=0.0))

    @property
    def version(self) -> str:
        return ""

    def select(self, query: str) -> SparqlAnswer:
        return self._endpoint.ask(prepared(query))


@pytest.fixture(scope="module")
def sample(wikidata: str) -> Wikidata:
    return load_wikidata(wikidata)


@pytest.fixture
def mini(cache: Path, tmp_path: Path) -> Wikidata:
    path = tmp_path / "mini.nt"
    path.write_text(MINI, encoding="utf-8")
    fetch("wikidata", source=path)
    return load_wikidata("mini")


@pytest.mark.parametrize("name", QUERIES)
def test_server_and_process_answer_alike(
    name: str, sample: Wikidata, oxigraph_server: str, extent: str
) -> None:
    query, rows = QUERIES[name]
    ours = sample.select(query)
    assert len(ours.rows) == rows[(MINIATURE, SAMPLE).index(extent)]
    assert ours == Served(oxigraph_server).select(query)


def test_chunks_of_values_are_answered_alike(
    sample: Wikidata, oxigraph_server: str, extent: str
) -> None:
    query = "SELECT ?actor ?country WHERE { $values ?actor wdt:P27 ?country }"
    actors = [row[0] for row in sample.select("SELECT ?a WHERE { ?f wdt:P161 ?a }").rows]
    values = {actor.value for actor in actors if actor}
    assert len(values) == {MINIATURE: 375, SAMPLE: 2904}[extent]
    sessions = [QuerySession(sample), QuerySession(Served(oxigraph_server))]
    answers = [select_values(session, query, "actor", values) for session in sessions]
    assert answers[0] == answers[1]
    assert len(answers[0].rows) == {MINIATURE: 373, SAMPLE: 1985}[extent]
    assert [asked.query for asked in sessions[0].queries] == [a.query for a in sessions[1].queries]
    assert sessions[0].digest == sessions[1].digest


def test_every_kind_of_term(mini: Wikidata) -> None:
    found = mini.select("SELECT ?p ?o WHERE { wd:Q1 ?p ?o }")
    assert found.variables == ("p", "o")
    objects = {row[1] for row in found.rows}
    assert objects == {
        Term('œuf—"x"', "literal", language="en-gb"),
        Term("plain", "literal"),
        Term("007", "literal"),
        Term("-0044-03-15T00:00:00Z", "literal", f"{XSD}dateTime"),
        Term("1950-00-00T00:00:00Z", "literal", f"{XSD}dateTime"),
        Term("12.5", "literal", f"{XSD}decimal"),
        Term(f"{WD}Q2"),
    }
    assert mini.select("SELECT ?x ?y WHERE { wd:Q1 wdt:P4 ?x }").rows == ((Term(f"{WD}Q2"), None),)


def test_a_server_over_our_own_store_leaves_it_as_it_is(mini: Wikidata) -> None:
    query = "SELECT ?s ?p ?o WHERE { ?s ?p ?o }"
    with serving(mini.folder) as url:
        assert Served(url).select(query) == mini.select(query)
    assert len(load_wikidata("mini").select(query).rows) == len(mini) == 7
    assert store.verify(store.find("wikidata-mini")) == []


def test_what_a_source_says_of_itself(sample: Wikidata, wikidata_file: Path, extent: str) -> None:
    triples = {MINIATURE: 21_807, SAMPLE: 368_514}[extent]
    assert sample.name == f"wikidata-{extent}"
    assert sample.licence == "CC-BY-4.0 AND MIT AND BSD-3-Clause"
    assert sample.version == hashlib.sha256(wikidata_file.read_bytes()).hexdigest()[:12]
    assert len(sample) == triples
    assert repr(sample).startswith(f"<Wikidata wikidata-{extent}: {triples:,} triples, digest ")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT ?x WHERE { ?x wdt:P26", "the query is not SPARQL"),
        ("SELECT ?x WHERE { ?x no:P26 ?y }", "the query is not SPARQL"),
        ("ASK { ?x wdt:P26 ?y }", "not a SELECT query"),
        ("CONSTRUCT WHERE { ?x wdt:P26 ?y }", "not a SELECT query"),
        ("DELETE WHERE { ?x ?y ?z }", "the query is not SPARQL"),
        ("SELECT ?x WHERE { ?x wdt:P26 'Ann }", "a string that does not end"),
    ],
)
def test_what_is_no_select_query_is_refused(mini: Wikidata, query: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        mini.select(query)


@pytest.mark.parametrize("ending", ["nt", "ttl"])
def test_a_mark_of_utf_8_is_skipped_and_merged_entities_are_followed(
    ending: str, cache: Path, tmp_path: Path
) -> None:
    born, same = "http://www.wikidata.org/prop/direct/P19", "http://www.w3.org/2002/07/owl#sameAs"
    triples = [("Q1", born, "Q7"), ("Q7", same, "Q8"), ("Q8", same, "Q9"), ("Q2", born, "Q9")]
    lines = "".join(f"<{WD}{one}> <{name}> <{WD}{two}> .\n" for one, name, two in triples)
    file = tmp_path / f"merged.{ending}"
    file.write_text(lines, encoding="utf-8-sig")
    fetch("wikidata", source=file, name="merged")
    answer = QuerySession(load_wikidata("merged")).select("SELECT ?p ?o { ?p wdt:P19 ?o }")
    assert {(row[0].value, row[1].value) for row in answer.rows} == {
        (f"{WD}Q1", f"{WD}Q9"),
        (f"{WD}Q2", f"{WD}Q9"),
    }


def test_a_snapshot_that_is_not_there(cache: Path) -> None:
    with pytest.raises(UsageError, match="kb-cache fetch wikidata --from"):
        load_wikidata("nothing")


def test_who_has_it_open_keeps_it_when_it_is_replaced(mini: Wikidata, tmp_path: Path) -> None:
    query = "SELECT ?s ?p ?o WHERE { ?s ?p ?o }"
    before = mini.select(query)
    other = tmp_path / "other.nt"
    other.write_text(f"<{WD}Q9> <{WD}Q9> <{WD}Q9> .\n")
    fetch("wikidata", source=other, name="mini")
    assert mini.select(query) == before
    assert load_wikidata("mini").select(query).rows == ((Term(f"{WD}Q9"),) * 3,)


def test_files_changed_behind_our_back_are_rebuilt_or_named(mini: Wikidata, tmp_path: Path) -> None:
    next(mini.folder.glob("*.sst")).unlink()
    assert len(load_wikidata("mini")) == 7  # its source is still there
    next(mini.folder.glob("MANIFEST-*")).write_bytes(b"")
    (tmp_path / "mini.nt").unlink()
    with pytest.raises(SnapshotError, match=r"MANIFEST-\d+ has 0 bytes.*no longer there"):
        load_wikidata("mini")
