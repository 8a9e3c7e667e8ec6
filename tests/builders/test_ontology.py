"""Probes of ontologies: formats read alike, golds true and distractors false in the file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import builders
from kb_cache.fetching import fetch
from kb_cache.ontologies.kind import kept_ontology
from kb_cache.ontologies.read import read_ontology
from kb_cache.ontologies.types import Ontology
from kbprobe.errors import UsageError
from tests.real_data import OWN

UNITS = OWN / "unit.obo"


@pytest.fixture(scope="module")
def units() -> Ontology:
    return read_ontology(UNITS)


def rows_of(ask: str, **options: Any) -> list[dict[str, Any]]:
    made = builders.build(f"{UNITS}:{ask}", audit=False, stem_overlap="keep", **options)
    return [row for split in made.values() for row in split]


def above(units: Ontology) -> dict[str, set[str]]:
    """Return the labels of all that is above each label."""
    names = units.column("name").to_pylist()
    found: dict[str, set[str]] = {}
    for start in range(len(names)):
        waiting, seen = [start], set[int]()
        while waiting:
            node = waiting.pop()
            own = units.is_a.indices[units.is_a.indptr[node] : units.is_a.indptr[node + 1]]
            for parent in own.tolist():
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        found[names[start]] = {names[node] for node in seen}
    return found


@pytest.mark.parametrize("ask", ["hypernymy", pytest.param("hyponymy", marks=pytest.mark.slow)])
def test_kinds_are_true_and_distractors_false(units: Ontology, ask: str) -> None:
    over = above(units)
    rows = rows_of(ask, max_hops=3)
    assert len(rows) > 200
    assert {row["hops"] for row in rows} >= {1, 2}
    columns = (list_of(units.column(name)) for name in ("id", "name"))
    word = dict(zip(*columns, strict=True))
    for row in rows:
        own = word[row["concept"]]
        for place, other in enumerate(row["choices"]["text"]):
            right = other in over[own] if ask == "hypernymy" else own in over[other]
            assert right == (place == row["answer"]), row
            if place != row["answer"]:
                assert other not in over[own]
                assert own not in over[other]


@pytest.mark.slow
def test_definitions_and_synonyms_are_those_of_the_term(units: Ontology) -> None:
    columns = map(units.column, ("id", "definition", "synonyms"))
    stated = {one: (text, names) for one, text, names in zip(*map(list_of, columns), strict=True)}
    for ask in ("definitions", "synonymy"):
        rows = rows_of(ask)
        assert len(rows) > 50
        for row in rows:
            gold = row["choices"]["text"][row["answer"]]
            definition, names = stated[row["concept"]]
            assert gold == definition if ask == "definitions" else gold in names


def list_of(column: Any) -> list[Any]:
    return column.to_pylist()


def test_labels_that_are_given_away_are_left_out_by_default() -> None:
    made = builders.build(f"{UNITS}:hypernymy", audit=False)
    for row in made["test"]:
        gold = row["choices"]["text"][row["answer"]]
        asked = re.search(r'"(.+)"', row["question"])
        assert asked is not None
        assert not {*asked[1].split()} & {*gold.split()}


OBO = """format-version: 1.2
ontology: tiny
property_value: dcterms:license https://creativecommons.org/licenses/by/4.0/

[Term]
id: T:1
name: animal
def: "A \\"living\\" thing." [x:y]

[Term]
id: T:2
name: dog ! a comment
synonym: "hound" EXACT []
synonym: "pet" RELATED []
is_a: T:1 {source="x"} ! animal
relationship: part_of T:9 ! absent
xref: WN:1 "a dog"
this line is no tag

[Term]
id: T:3
name: old dog
is_obsolete: true

[Typedef]
id: part_of
name: part of
"""

TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<http://x/1> a skos:Concept ; skos:prefLabel "animal"@en, "eläin"@fi .
<http://x/2> a skos:Concept ; skos:prefLabel "dog"@en ; skos:altLabel "hound"@en ;
    skos:broader <http://x/1> .
"""

OWL = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
  xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xmlns:owl="http://www.w3.org/2002/07/owl#"
  xmlns:oio="http://www.geneontology.org/formats/oboInOwl#">
<owl:Class rdf:about="http://x/1"><rdfs:label>animal</rdfs:label></owl:Class>
<owl:Class rdf:about="http://x/2"><rdfs:label>dog</rdfs:label>
  <oio:hasExactSynonym>hound</oio:hasExactSynonym>
  <rdfs:subClassOf rdf:resource="http://x/1"/>
  <rdfs:subClassOf><owl:Restriction>
    <owl:onProperty rdf:resource="http://purl.obolibrary.org/obo/BFO_0000050"/>
    <owl:someValuesFrom rdf:resource="http://x/1"/>
  </owl:Restriction></rdfs:subClassOf></owl:Class>
</rdf:RDF>
"""

GRAPHS = {
    "graphs": [
        {
            "nodes": [
                {"id": "x:1", "lbl": "animal", "type": "CLASS"},
                {"id": "x:2", "lbl": "dog", "type": "CLASS",
                 "meta": {"synonyms": [{"pred": "hasExactSynonym", "val": "hound"}]}},
                {"id": "x:3", "lbl": "old dog", "type": "CLASS", "meta": {"deprecated": True}},
            ],
            "edges": [{"sub": "x:2", "pred": "is_a", "obj": "x:1"}],
        }
    ]
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.obo", OBO), ("a.ttl", TURTLE), ("a.owl", OWL), ("a.json", json.dumps(GRAPHS))],
)
def test_all_formats_are_read_alike(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    read = read_ontology(path)
    assert read.column("name").to_pylist() == ["animal", "dog"]
    assert read.column("synonyms").to_pylist() == [[], ["hound"]]
    assert read.is_a.sources.tolist() == [1]
    assert read.is_a.indices.tolist() == [0]


def test_what_an_obo_file_states_besides(tmp_path: Path) -> None:
    path = tmp_path / "a.obo"
    path.write_text(OBO, encoding="utf-8")
    read = read_ontology(path)
    assert read.licence == "CC-BY-4.0"
    assert read.column("references").to_pylist() == [[], ["WN:1"]]
    assert read.column("definition")[0].as_py() == 'A "living" thing.'
    assert dict(read.left_out) == {
        "a line is not understood (the first is line 18)": 1,
        "the term is obsolete": 1,
        "a part of a term that is absent or obsolete": 1,
    }


def small(count: int = 120, more: str = "") -> str:
    """Return an OBO file of a tree, of which each node has three children."""
    names = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}thing" for n in range(count)]
    return "format-version: 1.2\n\n" + "".join(
        f"[Term]\nid: T:{n}\nname: {name}\n{f'is_a: T:{(n - 1) // 3}' if n else ''}\n\n"
        for n, name in enumerate(names)
    ) + more  # fmt: skip


def built(tmp_path: Path, content: str, ask: str, **options: Any) -> list[dict[str, Any]]:
    path = tmp_path / "small.obo"
    path.write_text(content, encoding="utf-8")
    options = {"stem_overlap": "keep", "match": "none", **options}
    return list(builders.build(f"{path}:{ask}", audit=False, **options)["test"])


def test_terms_that_are_called_alike_are_told_apart_by_nothing(tmp_path: Path) -> None:
    twin = '[Term]\nid: T:200\nname: zzz\nsynonym: "bathing" EXACT []\nis_a: T:5\n'
    rows = built(tmp_path, small(more=twin), "hyponymy", min_depth=0)
    assert {"bathing", "zzz"} & {text for row in rows for text in row["choices"]["text"]}
    for row in rows:
        texts = row["choices"]["text"]
        assert not {"bathing", "zzz"} <= {*texts}
        assert row["concept"] != "T:200"


def test_related_labels_are_no_distractors_of_synonymy(tmp_path: Path) -> None:
    content = small()
    for n in range(120):
        name = f"{chr(97 + n % 26)}{chr(97 + n // 26)}thing"
        near = f"{chr(97 + (n + 1) % 26)}{chr(97 + (n + 1) // 26)}ish"
        content = content.replace(
            f"name: {name}\n",
            f'name: {name}\nsynonym: "{name[:2]}ish" EXACT []\nsynonym: "{near}" RELATED []\n'
            f'synonym: "{name.upper()}" EXACT []\n',
        )
    rows = built(tmp_path, content, "synonymy")
    assert rows
    for row in rows:
        asked = re.search(r'"(..)thing"', row["question"])
        assert asked is not None
        first, second = map(ord, asked[1])
        number = (second - 97) * 26 + first - 97 + 1
        texts = row["choices"]["text"]
        assert f"{chr(97 + number % 26)}{chr(97 + number // 26)}ish" not in texts
        assert row["choices"]["text"][row["answer"]] == f"{asked[1]}ish"


def test_parts_of_a_broader_term_are_no_distractors(tmp_path: Path) -> None:
    parts = "".join(
        f"[Term]\nid: P:{n}\nname: part{n}q\nrelationship: part_of T:{n}\n\n" for n in range(120)
    )
    rows = built(tmp_path, small(more=parts), "meronymy")
    assert rows
    for row in rows:
        whole = int(row["concept"][2:])
        above = {whole}
        while whole:
            whole = (whole - 1) // 3
            above.add(whole)
        numbers = [int(re.sub(r"\D", "", text)) for text in row["choices"]["text"]]
        assert [number in above for number in numbers].count(True) == 1, row


def test_two_terms_have_the_nearest_kind_of_both(units: Ontology) -> None:
    over = above(units)
    rows = rows_of("conjunction", max_hops=3, min_depth=0)
    assert len(rows) > 100
    for row in rows:
        one, other = re.findall(r'"([^"]+)"', row["question"])
        common = over[one] & over[other]
        texts = row["choices"]["text"]
        assert [text in common for text in texts].index(True) == row["answer"]
        assert sum(text in common for text in texts) == 1
        assert not any(texts[row["answer"]] in over[nearer] for nearer in common)


def test_an_ontology_that_is_kept_is_that_of_its_file(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBPROBE_CACHE", str(cache))
    fetch("ontology", source=UNITS, name="units")
    kept, read = kept_ontology("units"), read_ontology(UNITS)
    assert kept.terms == read.terms
    assert kept.is_a.keys.tolist() == read.is_a.keys.tolist()
    assert (kept.licence, kept.left_out) == (read.licence, read.left_out)
    assert builders.build("ontology", file="units", ask="hyponymy", audit=False)["test"].num_rows


def test_what_is_above_a_term_left_out_stays_above_its_kinds(tmp_path: Path) -> None:
    path = tmp_path / "a.obo"
    path.write_text(
        "[Term]\nid: 1\nname: top\nalt_id: 9\n\n[Term]\nid: 2\nis_a: 1\n\n"
        "[Term]\nid: 3\nname: old\nis_obsolete: true\nreplaced_by: 1\n\n"
        "[Term]\nid: 4\nname: of unnamed\nis_a: 2\n\n[Term]\nid: 5\nname: of old\nis_a: 3\n\n"
        "[Term]\nid: 6\nname: of other\nis_a: 9\n\n"
        "[Term]\nid: 7\nname: met\nintersection_of: 6\nintersection_of: has_part 4\n",
        encoding="utf-8",
    )
    read = read_ontology(path)
    names = read.column("name").to_pylist()
    pairs = {(names[one], names[other]) for one, other in zip(
        read.is_a.sources.tolist(), read.is_a.indices.tolist(), strict=True)}  # fmt: skip
    assert pairs == {("of unnamed", "top"), ("of old", "top"), ("of other", "top"),
                     ("met", "of other")}  # fmt: skip
    assert [names[at] for at in read.has_part.indices.tolist()] == ["of unnamed"]


def test_the_licence_is_that_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    head = (
        "@prefix dct: <http://purl.org/dc/terms/> .\n@prefix cc: <https://creativecommons.org/> .\n"
    )
    term = "<http://x/1> dct:license <http://creativecommons.org/publicdomain/zero/1.0/> .\n"
    path.write_text(head + TURTLE + term, encoding="utf-8")
    assert read_ontology(path).licence == "LicenseRef-unstated"
    header = (
        "<http://x/> a skos:ConceptScheme ; "
        "dct:license <http://creativecommons.org/licenses/by/4.0/> .\n"
    )
    path.write_text(head + TURTLE + term + header, encoding="utf-8")
    assert read_ontology(path).licence == "CC-BY-4.0"


def test_classes_described_by_intersections(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_text(
        "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        '<x:1> a owl:Class ; rdfs:label "animal"@en-GB .\n'
        '<x:2> a owl:Class ; rdfs:label "dog", "hound" ; owl:equivalentClass '
        "[ a owl:Class ; owl:intersectionOf ( <x:1> [ a owl:Restriction ] ) ] .\n",
        encoding="utf-8",
    )
    read = read_ontology(path)
    assert read.column("name").to_pylist() == ["animal", "dog"]
    assert read.column("synonyms").to_pylist() == [[], ["hound"]]
    assert (read.is_a.sources.tolist(), read.is_a.indices.tolist()) == ([1], [0])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.obo", "", "no term with a label"),
        ("a.json", "{}", "no OBO Graphs JSON"),
        ("a.json", "nothing", "no OBO Graphs JSON"),
        ("a.ttl", "<x> <y", "cannot be read as TURTLE"),
        ("a.owl", "no xml", "cannot be read as RDF_XML"),
        ("a.obo.gz", "no gzip", "no gzip file"),
        (
            "a.json",
            '{"graphs": [{"meta": null, "nodes": [{"id": null}, 3], "edges": null}]}',
            "no term with a label",
        ),
        ("a.json", '{"graphs": 3}', "name it .jsonl"),
        ("a.ttl", TURTLE.replace("@en", "@fi"), "it has some in fi (--labels CODE)"),
    ],
)
def test_what_is_wrong_with_an_ontology_is_said(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        builders.build(str(path), audit=False)
    assert message in str(raised.value)
