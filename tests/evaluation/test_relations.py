"""Relations told apart: what rows state is asked for in turn, and counted as by a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

import builders
import evaluation
from evaluation.report.suite.collect import collect
from evaluation.studies.base import StudyRequest
from evaluation.studies.relations import RELATIONS, questions, tables
from evaluation.studies.relations.questions import AskedWord, expand, read_people, read_relata
from kbprobe.errors import UsageError
from tests.evaluation.saved_runs import save_run

pytestmark = pytest.mark.usefixtures("own_cache", "own_scorers")


def stated(*triples, content="common", nodes=(), texts=()):
    return {
        "triples": [dict(zip(("subject", "relation", "object"), t, strict=True)) for t in triples],
        "choice_nodes": list(nodes),
        "choices": {"text": list(texts)},
        "content": content,
    }


ROWS = [
    stated(("dog.n.01", "hypernym", "animal.n.01"), ("animal.n.01", "hypernym", "being.n.01")),
    stated(("dog.n.01", "hyponym", "poodle.n.01"), ("dog.n.01", "member", "tail.n.01")),
    stated(*(("dog.n.01", "lemma", word) for word in ("dog", "hound", "police dog"))),
    stated(("hot.a.01", "antonym", "cold.a.01")),
    stated(*(("hot.a.01", "lemma", word) for word in ("hot", "torrid"))),
    stated(*(("cold.a.01", "lemma", word) for word in ("cold", "icy"))),
    stated(("poodle.n.01", "hyponym", "toy_poodle.n.01"), nodes=("being.n.01",), texts=("Being",)),
]


@pytest.fixture
def handmade(monkeypatch):
    monkeypatch.setattr(questions, "_probe_rows", lambda probe: iter(ROWS))
    return read_relata(("handmade",))


def test_a_relation_holds_in_both_directions_and_giveaways_are_left_out(handmade):
    dog = AskedWord("dog", "noun", "dog.n.01")
    assert handmade[dog] == {
        "hypernym": ["animal"],
        "hyponym": ["poodle"],
        "meronym": ["tail"],
        "synonym": ["hound"],
    }
    assert handmade[AskedWord("animal", "noun", "animal.n.01")] == {
        "hypernym": ["Being"],
        "hyponym": ["dog"],
    }
    assert handmade[AskedWord("cold", "adjective", "cold.a.01")] == {
        "antonym": ["hot"],
        "synonym": ["icy"],
    }
    # The other name of the node is asked for its synonyms; a word in one relation is not asked.
    assert handmade[AskedWord("hound", "noun", "dog.n.01")]["synonym"] == ["dog", "police dog"]
    assert not [asked for asked in handmade if asked.word in ("tail", "poodle")]


def test_what_is_related_in_two_ways_is_neither_right_nor_wrong(monkeypatch):
    rows = [*ROWS, stated(("dog.n.02", "hypernym", "hound.n.05"), ("dog.n.02", "lemma", "dog"))]
    monkeypatch.setattr(questions, "_probe_rows", lambda probe: iter(rows))
    own = read_relata(("handmade",))[AskedWord("dog", "noun", "dog.n.01")]
    assert "synonym" not in own


def test_words_are_asked_about_in_their_first_sense_alone(monkeypatch):
    rows = [
        stated(("bank.n.09", "hypernym", "act.n.02"), ("bank.n.09", "hyponym", "roll.n.05")),
        stated(*(("bank.n.09", "lemma", word) for word in ("bank", "tilt"))),
    ]
    monkeypatch.setattr(questions, "_probe_rows", lambda probe: iter([*ROWS, *rows]))
    relata = read_relata(("handmade",))
    assert not [asked for asked in relata if asked.word in ("bank", "act", "tilt")]
    assert AskedWord("dog", "noun", "dog.n.01") in relata


@pytest.fixture(scope="module")
def probes(tmp_path_factory, open_wordnet):
    folder, wordnet = tmp_path_factory.mktemp("relations"), open_wordnet()
    names = ["wordnet_hypernymy", "wordnet_hyponymy", "wordnet_synonymy"]
    given = {"wordnet": wordnet, "match": "none", "tier": "full", "controls": False, "limit": 3000}
    for name in names:
        builders.build(name, output=folder / name, audit=False, **given)
    return [str(folder / name) for name in names]


@pytest.mark.slow
def test_one_who_knows_tells_all_apart_and_a_liking_for_words_tells_nothing(probes):
    knows = evaluation.study("relations", probes, "none", scorer="right")
    *_, overall = knows.rows("relations")
    assert overall["relation"] == "all"
    assert overall["questions"] > 50
    for name in ("soundness", "completeness", "told_apart", "both"):
        assert overall[name].value == 1, name
    assert {row["relation"] for row in knows.rows("relations")} == {
        *("hypernym", "hyponym", "synonym", "all"),
    }
    for row in knows.rows("asymmetry"):
        assert (row["accepted"].value, row["asymmetry"].value) == (1, 1)
    assert {row["both"].value for row in knows.rows("symmetry")} == {1}
    likes = evaluation.study("relations", probes, "none", scorer="favourites")
    *_, overall = likes.rows("relations")
    assert overall["both"].value == 0
    (least,) = (text for text in likes.sentences if "least told apart" in text)
    assert "of 3 combinations" in least.casefold()
    assert "(chance 25%)" in least
    by_chance = evaluation.study("relations", probes, "none", scorer="random")
    assert not any("least told apart" in text for text in by_chance.sentences)
    for first in likes.rows("against"):
        (second,) = likes.rows("against", asked=first["other"], other=first["asked"])
        assert first["preferred"].value + second["preferred"].value == pytest.approx(1)


@pytest.mark.slow
def test_shares_are_those_of_a_plain_loop(probes):
    request = StudyRequest.parse(RELATIONS, probes, ["none"], {"scorer": "random"})
    (spec,) = expand(request)
    rows = spec.probe.to_list()
    summary = evaluation.study("relations", probes, "none", scorer="favourites")
    asked = {}
    for row in rows:
        likings = {text: sum(map(ord, text)) for text in row["choices"]["text"]}
        gold = row["choices"]["text"]["ABCDEFGHIJKLMNOPQRSTUVWXYZ".index(row["answerKey"])]
        right, wrong = asked.setdefault(row["question"], ([], []))
        right.append(likings.pop(gold))
        wrong[:] = likings.values()
    *_, overall = summary.rows("relations")
    sound = [max(right) > max(wrong) for right, wrong in asked.values()]
    assert overall["soundness"].value == np.mean(sound)
    accepted = [score > max(wrong) for right, wrong in asked.values() for score in right]
    assert overall["completeness"].value == np.mean(accepted)
    assert overall["answers"] == len(rows) == len(accepted)


@pytest.mark.slow
def test_relations_of_few_words_or_none_are_named(probes, tmp_path):
    few = evaluation.study("relations", probes, "none", scorer="right", words=12)
    notes = " ".join(few.notes)
    assert "Few words are asked about for hypernym" in notes
    assert "--tier full" not in notes, "the probes have that tier already"
    assert "Not asked for: holonym, meronym, antonym." in notes
    assert tables._few([{"relation": "meronym", "questions": 3}], ["wordnet_meronymy", "x"]) == [
        "Few words are asked about for meronym (3): look at the intervals, or build "
        "wordnet_meronymy with --tier full."
    ]
    place = tmp_path / "study"
    evaluation.study("relations", probes, "none", output=place, scorer="right", words=12)
    save_run(tmp_path / "own", "m", [0] * 8)
    found = collect(tmp_path, 0)
    assert [run.folder for run in found.runs] == ["own"]
    assert "of the study relations, which asks questions of its own" in found.left_out[0]
    assert [run.folder for run in collect(place, 0).runs] == ["none/relations"]


@pytest.mark.slow
def test_fewer_words_still_ask_both_directions(probes):
    few = evaluation.study("relations", probes, "none", scorer="right", words=12)
    assert sum(row["pairs"] for row in few.rows("asymmetry")) > 0
    assert few.rows("relations")[-1]["questions"] < 40


PEOPLE = """word,relation,prompt,answers
dog,hypernymy,a dog is a,animal; pet
dog,hypernymy,a dog is a,Animal
dog,hypernymy,a dog is a kind of,animal;pet
dog,hypernym,a dog is a kind of,thing
"""


@pytest.mark.slow
def test_answers_of_people_are_counted_and_compared(probes, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    assert read_people(str(path)) == {("dog", "hypernym"): {"animal": 3, "pet": 2, "thing": 1}}
    summary = evaluation.study("relations", probes, "none", scorer="right", people=str(path))
    row, _ = summary.rows("people")
    assert (row["relation"], row["questions"], row["prototypicality"].value) == ("hypernym", 1, 1)
    assert (row["first"].value, row["chance"]) == (1, 0.5)
    likes = evaluation.study("relations", probes, "none", scorer="favourites", people=str(path))
    assert likes.rows("people")[0]["prototypicality"].value == 1  # of "pet" and "animal"


def test_an_answer_may_be_null(tmp_path):
    path = tmp_path / "people.jsonl"
    rows = ('[null, "Animal"]', '["animal", "pet"]', "null", '["pet", "animal", null]')
    path.write_text(
        "".join(f'{{"word": "dog", "relation": "hypernym", "answers": {row}}}\n' for row in rows)
    )
    assert read_people(str(path)) == {("dog", "hypernym"): {"animal": 3, "pet": 2}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word,answers\ndog,animal\n", "no column relation"),
        ("word,relation,answers\ndog,hypernimy,animal\n", "'hypernimy' is none of the relations"),
        ("", "cannot be read|no column"),
        ("word,relation,answers\ndog,hypernym,animal\ndog,hypernym,animal\n", "no word has two"),
    ],
)
def test_a_damaged_file_of_answers_is_refused(probes, tmp_path, text, message):
    path = tmp_path / "people.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        evaluation.study("relations", probes, "none", scorer="random", people=str(path))


def test_probes_that_state_no_relation_are_refused(monkeypatch):
    rows = {"stating": ROWS, "other": [stated(("boy.n.01", "younger", "man.n.01"))], "empty": []}
    monkeypatch.setattr(questions, "_probe_rows", lambda probe: iter(rows[probe]))
    assert read_relata(("stating",))
    with pytest.raises(UsageError, match=r"^other, empty: no row states any of the relations hyp"):
        read_relata(("stating", "other", "empty"))


@pytest.mark.slow
def test_other_probes_are_refused(probes, tmp_path):
    (tmp_path / "rows.jsonl").write_text("{}")
    with pytest.raises(UsageError, match="only folders written by build-probe"):
        evaluation.study("relations", str(tmp_path / "rows.jsonl"), "none", scorer="random")
    with pytest.raises(UsageError, match="there is no such file"):
        evaluation.study("relations", probes, "none", scorer="random", people="nowhere.csv")
