"""Facts that changed between two snapshots: what is asked again, and what is counted."""

from __future__ import annotations

import csv
import gzip
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

import builders
import evaluation
from evaluation.studies import snapshots
from evaluation.studies.base import StudyRequest
from evaluation.studies.snapshots import SNAPSHOTS, compare_builds
from kb_cache.fetching import fetch
from kbprobe.errors import UsageError
from tests import real_data

pytestmark = pytest.mark.usefixtures("own_cache", "own_scorers")

COUNTRIES, CHANGED = 60, 12


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Two builds of a table, of which the second has other capitals for some countries."""
    folder = tmp_path_factory.mktemp("tables")
    for name, changed in (("old", 0), ("new", CHANGED)):
        path = folder / f"{name}.csv"
        with path.open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(("subject", "relation", "object"))
            for number in range(COUNTRIES):
                capital = (number + 7) % COUNTRIES if number < changed else number
                lines.writerow((f"Country{number:02}x", "capital", f"Q{capital:02} City"))
                for language in {number % 31, (number + 1) % 31}:
                    lines.writerow((f"Country{number:02}x", "language", f"Speech{language:02}"))
        build(path, folder / name)
    return str(folder / "old"), str(folder / "new")


def build(path: Path, folder: Path, **options):
    given = {"match": "none", "controls": False, "closed": "language", **options}
    builders.build("facts", table=str(path), output=folder, audit=False, **given)


def test_changed_facts_show_both_answers_and_unchanged_ones_are_a_reference(tables):
    rows, counts = compare_builds(*tables, 0)
    kinds = Counter(row["distractor_family"] for row in rows)
    assert kinds["changed"] == CHANGED
    assert kinds["unchanged"] > 30
    # Languages have several right answers: another one is no change.
    assert counts["several right answers"] > 0
    assert {row["template"] for row in rows} == {"capital"}
    for row in rows:
        texts, number = row["choices"]["text"], int(row["concept"][7:9])
        own = dict(zip(row["choice_families"], texts, strict=True))
        assert len(texts) == len(set(texts)) > 4
        if row["distractor_family"] == "changed":
            assert own["old"] == f"Q{number:02} City"
            assert own["new"] == f"Q{(number + 7) % COUNTRIES:02} City"
        else:
            assert "old" not in own
            assert own["new"] == f"Q{number:02} City"
        assert texts["ABCDEFGHIJKLMNOPQRSTUVWXYZ".index(row["answerKey"])] == own["new"]


def test_one_who_knows_what_is_right_now_prefers_the_new_answers(tables):
    summary = evaluation.study("snapshots", tables, "none", scorer="right")
    *_, changed = summary.rows("changed")
    assert (changed["relation"], changed["facts"]) == ("all", CHANGED)
    assert [changed[name].value for name in ("old", "new", "preferred")] == [0, 1, 1]
    assert summary.rows("unchanged")[-1]["right"].value == 1
    # Named the other way round, the old answers are the new ones.
    turned = evaluation.study("snapshots", tables[::-1], "none", scorer="right")
    assert turned.rows("changed")[-1]["preferred"].value == 1
    assert f"Of {CHANGED} facts that changed" in summary.sentences[0]
    assert "several right answers" in summary.notes[0]


def test_another_spelling_is_no_change(tmp_path):
    """The second table has capital letters, other separators, and one other answer for each."""
    for name in ("old", "new"):
        path = tmp_path / f"{name}.csv"
        with path.open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(("subject", "relation", "object"))
            for number in range(COUNTRIES):
                capital, people = f"Q{number:02} City", 7_000 + 1_000 * number
                if name == "new":
                    changed = number == 0
                    capital, people = capital.upper(), people + 500 * changed
                    capital = "Q01 CITY" if changed else capital
                shown = f"{people:,}" if name == "old" else str(people)
                lines.writerow((f"Country{number:02}x", "capital", capital))
                lines.writerow((f"Country{number:02}x", "people", shown))
        build(path, tmp_path / name, closed=())
    rows, _ = compare_builds(str(tmp_path / "old"), str(tmp_path / "new"), 0)
    changed = {row["id"]: row for row in rows if row["distractor_family"] == "changed"}
    assert {*changed} == {"Country00x/capital", "Country00x/people"}
    own = changed["Country00x/capital"]
    kinds = dict(zip(own["choice_families"], own["choices"]["text"], strict=True))
    assert (kinds["old"], kinds["new"]) == ("Q00 City", "Q01 CITY")
    for row in rows:
        texts = [text.casefold().replace(",", "") for text in row["choices"]["text"]]
        assert len(texts) == len(set(texts)), "a choice is offered in two spellings"


def answered(gold, node, **wrong):
    nodes, texts = [node, *wrong], [gold, *wrong.values()]
    row = {"choice_nodes": nodes, "choices": {"text": texts}, "answer": 0, "concept": "Q1"}
    words = {"question": "What is its capital?", "relation": "P36", "cluster": "Q1"}
    return {**row, **words, "setup": "mc_qa", "template": "P36-1"}


def test_a_renamed_answer_is_offered_by_its_new_name_alone(monkeypatch):
    """The capital is still Q2, and the wrong choice Q3 was renamed as well."""
    builds = {
        "old": [answered("Astana", "Q2", Q3="Kiev", Q4="Oslo")],
        "new": [answered("Nur-Sultan", "Q2", Q3="Kyiv", Q5="Rome")],
    }
    monkeypatch.setattr(snapshots, "manifest_of_build", lambda *_: manifest_of_none())
    monkeypatch.setattr(snapshots, "rows_of_build", lambda probe, *_: iter(builds[probe]))
    (row,), _ = compare_builds("old", "new", 0)
    assert row["distractor_family"] == "unchanged"
    kinds = dict(zip(row["choices"]["text"], row["choice_families"], strict=True))
    assert kinds == {"Nur-Sultan": "new", **dict.fromkeys(("Kyiv", "Oslo", "Rome"), "wrong")}


def manifest_of_none():
    request = SimpleNamespace(seed=0, options={})
    return SimpleNamespace(probe="encyclopedic_composition", request=request)


def test_one_question_is_no_questions():
    counts = {"only in the older": 1, "only in the newer": 1_002}
    assert snapshots._counted(counts) == (
        "1 question that only the older build asks, 1,002 questions that only the newer build asks"
    )


def test_other_builds_are_refused(tables, tmp_path):
    with pytest.raises(UsageError, match="takes two builds of one probe"):
        evaluation.study("snapshots", tables[0], "none", scorer="random")
    other = tmp_path / "other"
    build(Path(tables[0] + ".csv"), other, choices=4)
    with pytest.raises(UsageError, match="they differ in choices"):
        evaluation.study("snapshots", [tables[0], str(other)], "none", scorer="random")
    same = tmp_path / "same"
    build(Path(tables[0] + ".csv"), same)
    with pytest.raises(UsageError, match=r"no question in common with another right answer, and"):
        evaluation.study("snapshots", [tables[0], str(same)], "none", scorer="random")
    (tmp_path / "rows.jsonl").write_text("{}")
    with pytest.raises(UsageError, match="only folders written by build-probe"):
        evaluation.study("snapshots", [tables[0], str(tmp_path)], "none", scorer="random")
    with pytest.raises(UsageError, match="snapshots sets config itself"):
        evaluation.study("snapshots", tables, "none", scorer="random", config="no_language")


@pytest.mark.slow
def test_two_snapshots_of_wikidata(tmp_path):
    """The second snapshot is the first with the places of birth (P19) of every third swapped."""
    triples = gzip.decompress(real_data.wikidata_file(real_data.MINIATURE).read_bytes())
    lines = triples.decode().splitlines()
    born = [at for at, line in enumerate(lines) if "/direct/P19>" in line][::3]
    places = [lines[at].split()[2] for at in born]
    for at, place in zip(born, places[1:] + places[:1], strict=True):
        person, relation, _, end = lines[at].split()
        lines[at] = f"{person} {relation} {place} {end}"
    files = {"older": triples, "newer": "\n".join([*lines, ""]).encode()}
    for name, content in files.items():
        (tmp_path / f"{name}.nt.gz").write_bytes(gzip.compress(content))
        fetch("wikidata", source=tmp_path / f"{name}.nt.gz", name=name, licence="CC0-1.0")
        options = {"dump": name, "paths": "P19:birthplace", "min_sitelinks": 0, "max_listed": 0}
        builders.build(
            "encyclopedic_composition", output=tmp_path / name, unambiguous=True, **options
        )
    builds = [str(tmp_path / name) for name in files]
    summary = evaluation.study("snapshots", builds, "none", scorer="right")
    *_, changed = summary.rows("changed")
    assert 5 < changed["facts"] <= len(born)
    assert changed["new"].value == 1
    (spec,) = SNAPSHOTS.expand(StudyRequest.parse(SNAPSHOTS, builds, ["none"], {}))
    moved = {lines[at].split()[0].rpartition("/")[2].rstrip(">") for at in born}
    asked = {row["concept"] for row in spec.probe if row["distractor_family"] == "changed"}
    assert asked <= moved
    ambiguous = [str(tmp_path / name) for name in ("ambiguous", "copy")]
    builders.build("encyclopedic_composition", output=ambiguous[0], **options)
    shutil.copytree(*ambiguous)
    with pytest.raises(UsageError, match="build both with --unambiguous"):
        evaluation.study("snapshots", ambiguous, "none", scorer="random")
