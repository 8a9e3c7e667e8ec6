"""Always-Never: candidates that make sense, the way from votes to labels, a proposer."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders.always_never.candidates import draw, levels, pool, size_levels
from builders.always_never.options import SCALE
from builders.always_never.probes import FAMILIES, AlwaysNeverOptions
from builders.always_never.slots import FAMILIES as DECLARED
from builders.always_never.slots import KINDS, Slots, SlotWords
from builders.comparisons.objects import load_things
from builders.engine.pipeline import Built, build, write
from builders.engine.probe import find_probe
from builders.engine.request import Request
from builders.labels.verdicts import (
    BALANCE,
    FEW,
    NO_ANSWER,
    SPLIT,
    TIE,
    agreed,
    balanced,
    decide,
    read_verdicts,
    readings,
)
from builders.properties.facts import SENSITIVE
from kb_cache.conceptnet.load import load_conceptnet
from kb_cache.wordnet.load import load_wordnet
from kbprobe.errors import MissingDependencyError, UsageError
from kbprobe.format.items import LABELS, UNKNOWN, plain
from kbprobe.format.labels import LabelVote
from kbprobe.rng import RandomGenerator
from tests.real_data import MINIATURE, ON_MINIATURE, ON_SAMPLE, SAMPLE

NAME = "always_never"
PUBLISHED = 1_284
MIX = {"never": 0.244, "rarely": 0.11, "sometimes": 0.346, "often": 0.074, "always": 0.226}
"""The published shares of the answers."""

Rows = list[dict[str, Any]]


def built(conceptnet: str, seed: int = 0, audit: bool = True, **options: Any) -> Built:
    probe = find_probe(NAME)
    asked = {"conceptnet": conceptnet, "readings": False, "per_family": 230, **options}
    parsed = probe.options.parse(asked, NAME)
    return build(Request(probe, parsed, seed, audit=audit))


def rows_of(done: Built, config: str = "default") -> Rows:
    return [
        {**row, "split": split}
        for split, items in done.configs[config].items()
        for row in plain(items.table()).to_pylist()
    ]


@pytest.fixture(scope="module")
def candidates(conceptnet: str) -> Built:
    return built(conceptnet)


@pytest.fixture(scope="module")
def rows(candidates: Built) -> Rows:
    return rows_of(candidates)


def truth(row: dict[str, Any]) -> str:
    """A made-up answer of each row, in the published shares."""
    lot = RandomGenerator.of(5, "truth", row["id"]).uniform(0).item()
    edges = np.cumsum(list(MIX.values()))
    return list(MIX)[min(int(np.searchsorted(edges, lot)), 4)]


def said(row: dict[str, Any], annotator: int) -> str:
    """What one of five annotators says of a row: the made-up answer, or, now and then, another."""
    lot = RandomGenerator.of(5, "vote", row["id"], str(annotator)).uniform(0, 1)
    return truth(row) if lot[0] < 0.7 else SCALE[int(5 * lot[0] * 7 % 5)]


@pytest.fixture(scope="module")
def votes(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item_id", "annotator", "vote"])
        for row in rows:
            for who in range(5):
                writer.writerow([row["id"], f"ann-{who}@example.org", said(row, who)])
    return path


@pytest.fixture(scope="module")
def voted(conceptnet: str, votes: Path) -> Built:
    return built(conceptnet, labels=(str(votes),))


@pytest.mark.slow
def test_candidates_are_as_many_as_published_and_have_no_answer(
    candidates: Built, rows: Rows
) -> None:
    assert len(rows) >= PUBLISHED
    assert Counter(row["distractor_family"] for row in rows).keys() == set(FAMILIES[:6])
    for row in rows:
        assert (row["answer"], row["answerKey"]) == (UNKNOWN, "")
        assert row["choices"]["text"] == list(SCALE)
        assert row["choice_nodes"] == list(SCALE)
        assert "gold" not in row["choice_families"]
        assert row["relation"] == "unlabelled"
    assert candidates.manifest["audit"] is None
    assert candidates.manifest["counts"]["golds"] == 0
    assert candidates.manifest["counts"]["unlabelled"] == len(rows)
    assert len({row["question"] for row in rows}) == len(rows)


@pytest.mark.slow
def test_words_are_of_their_slots_kind(conceptnet: str, rows: Rows) -> None:
    cn = load_conceptnet(conceptnet)
    triples = [triple for row in rows for triple in row["triples"]]
    terms = sorted({triple[end] for triple in triples for end in ("subject", "object")})
    number = dict(zip(terms, cn.lookup(terms).tolist(), strict=True))
    stated: dict[tuple[str, bool], set[tuple[int, int]]] = {}
    for name in {triple["relation"].removeprefix("Not") for triple in triples}:
        for negated in (False, True):
            start, end, _ = cn.edges(name, negated)
            joined = zip(cn.terms[start].tolist(), cn.terms[end].tolist(), strict=True)
            stated[name, negated] = set(joined)
    for row in rows:
        for triple in row["triples"]:
            relation = triple["relation"]
            negated = relation.startswith("Not")
            ends = number[triple["subject"]], number[triple["object"]]
            assert ends in stated[relation.removeprefix("Not"), negated], triple
        kinds = DECLARED[row["distractor_family"]].subjects
        goals = {name for kind in kinds for name in KINDS[kind].isa}
        way = row["triples"][: 2 if row["triples"][0]["object"] not in goals else 1]
        assert way[0]["subject"] == row["concept"]
        assert way[-1]["relation"] == "IsA"
        assert way[-1]["object"] in goals


@pytest.mark.slow
def test_candidates_of_every_level_are_drawn(conceptnet: str, extent: str) -> None:
    """Each family has candidates that should hold always, never, and something in between."""
    slots = Slots(load_conceptnet(conceptnet), load_wordnet("3.0"), 2.8)
    for name in FAMILIES[:6]:
        found = pool(slots, name)
        level = levels(found, slots)
        drawn = draw(found, slots, 230, RandomGenerator.of(0, name))
        counts = np.bincount(level[drawn], minlength=5)
        assert (level[drawn] >= 0).all()
        middle = counts[1:4].sum() / counts.sum()
        if extent == SAMPLE:
            assert middle > 0.2, name
        if not found.family.sources:
            assert counts.min() > 0.15 * counts.sum(), name


def test_levels_of_sizes_follow_the_estimates() -> None:
    sizes = {thing.name: thing.metres for thing in load_things().things}
    names = [name for name in ("ant", "goose", "rooster", "elephant", "horse") if sizes[name]]
    terms = SlotWords(np.arange(5), names, ["animal"] * 5, names, [True] * 5)
    larger, smaller = (size_levels(terms, terms, one) for one in (False, True))
    assert (np.where(larger < 0, larger, 4 - larger) == smaller).all()
    place = names.index
    assert larger[place("elephant"), place("ant")] == 4
    assert larger[place("ant"), place("elephant")] == 0
    assert larger[place("goose"), place("rooster")] == 3
    assert (np.diag(larger) == 2).all()


@ON_SAMPLE
def test_what_is_stated_of_a_kind_is_expected_of_its_members(conceptnet: str) -> None:
    slots = Slots(load_conceptnet(conceptnet), load_wordnet("3.0"), 2.8)
    found = pool(slots, "body_part")
    level, at = levels(found, slots), found.subjects.text.index
    part = found.objects.text.index
    assert level[at("starling"), part("wing")] >= 3
    assert level[at("beagle"), part("wing")] < 3


@pytest.mark.slow
def test_statements_read_well(rows: Rows, extent: str) -> None:
    for row in rows:
        words = set(row["question"].lower().replace(".", " ").replace(",", " ").split())
        assert not words & SENSITIVE, row["question"]
        assert row["question"][0].isupper()
        assert row["question"].endswith(".")
        arguments = {one["name"]: one["value"] for one in row["arguments"]}
        assert arguments["subject"] != arguments["object"]
    for name in ("subject", "object"):
        shown = Counter(
            (row["distractor_family"], one["value"])
            for row in rows
            for one in row["arguments"]
            if one["name"] == name
        )
        assert shown.most_common(1)[0][1] <= {MINIATURE: 25, SAMPLE: 20}[extent], name


def test_plurals() -> None:
    from builders.english.inflection import is_plural, noun_plural

    terms = ("rhinoceros", "mouse", "wolf", "polar bear", "fish", "knife", "sheep", "goose")
    plurals = ["rhinoceroses", "mice", "wolves", "polar bears", "fish", "knives", "sheep", "geese"]
    assert list(map(noun_plural, terms)) == plurals
    assert [is_plural(term) for term in ("oats", "glass", "harmonica")] == [True, False, False]


@pytest.mark.slow
@ON_MINIATURE
def test_labels_come_from_the_majority_and_ids_stay(rows: Rows, voted: Built, votes: Path) -> None:
    candidates = {row["id"]: row for row in rows}
    labelled = rows_of(voted)
    assert len(labelled) > 300
    assert {row["id"] for row in labelled} <= candidates.keys()
    for row in labelled:
        before = candidates[row["id"]]
        ranked = Counter(said(before, who) for who in range(5)).most_common()
        assert row["choices"]["text"][row["answer"]] == ranked[0][0]
        assert len(ranked) == 1 or ranked[0][1] > ranked[1][1]
        assert row["answerKey"] == LABELS[row["answer"]]
        assert row["choice_families"][row["answer"]] == "gold"
        assert row["relation"] == "voted"
        for same in ("question", "choices", "template", "split", "cluster", "triples", "arguments"):
            assert row[same] == before[same], same
    for control in ("no_language", "perturbed"):
        other = rows_of(voted, control)
        assert [row["id"] for row in other] == [row["id"] for row in labelled]
        assert [row["answer"] for row in other] == [row["answer"] for row in labelled]


@pytest.mark.slow
def test_the_labelled_probe_is_balanced(voted: Built) -> None:
    labelled = rows_of(voted)
    cells: dict[tuple[str, str], Counter[int]] = {}
    for row in labelled:
        cell = row["split"], row["distractor_family"]
        cells.setdefault(cell, Counter())[row["answer"]] += 1
    for cell, answers in cells.items():
        assert max(answers.values()) <= 0.26 * sum(answers.values()) + 1e-9, cell
    report = voted.manifest["audit"]
    assert report["constant_choices"]
    assert report["chance"] == pytest.approx(0.2)
    for name in ("template only", "template majority", "majority answer"):
        assert report["baselines"][name]["all"]["accuracy"] < 0.3, name
    assert "subject alone" in report["baselines"]


@pytest.mark.slow
def test_agreement_is_kept_beside_the_data(voted: Built, rows: Rows, tmp_path: Path) -> None:
    folder = tmp_path / NAME
    manifest = write(voted, folder)
    about = manifest["annotation"]
    lines = [
        json.loads(line)
        for line in (folder / "annotations.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert about["file"]["rows"] == len(lines) == len(rows)
    kept = [line for line in lines if line["kept"]]
    assert {line["id"] for line in kept} == {row["id"] for row in rows_of(voted)}
    assert about["labels"] == len(kept)
    shares = [line["agreement"] for line in kept]
    assert about["mean_agreement"] == pytest.approx(np.mean(shares), abs=1e-4)
    assert about["annotator_kind"] == "human"
    reasons = Counter(line["reason"] for line in lines if not line["kept"])
    dropped = manifest["counts"]["dropped"]
    assert reasons.keys() <= {TIE, SPLIT, BALANCE}
    assert {f"labels: {reason}": count for reason, count in reasons.items()} == {
        reason: count for reason, count in dropped.items() if reason.startswith("labels")
    }
    text = (folder / "annotations.jsonl").read_text(encoding="utf-8")
    assert "example.org" not in text
    assert "Votes of annotators" in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
@ON_MINIATURE
def test_a_labels_file_makes_the_same_probe_as_the_votes(
    conceptnet: str, voted: Built, votes: Path, rows: Rows, tmp_path: Path
) -> None:
    verdicts = read_verdicts([votes], [row["id"] for row in rows], SCALE, 1)
    lines = [
        {
            "id": verdict.id,
            "answer": verdict.answer,
            "label": SCALE[verdict.answer] if verdict.answer >= 0 else "",
            "kept": verdict.kept,
            "reason": verdict.reason,
            "agreement": verdict.agreement,
            "rule": "majority",
            "votes": [],
        }
        for verdict in verdicts
    ]
    # Sheets are made of one split at a time: so are labels files.
    paths = [tmp_path / f"labels-{part}.jsonl" for part in range(2)]
    for part, path in enumerate(paths):
        text = "".join(json.dumps(line) + "\n" for line in lines[part::2])
        path.write_text(text, encoding="utf-8")
    again = rows_of(built(conceptnet, audit=False, labels=tuple(map(str, paths))))
    assert again == rows_of(voted)


@pytest.mark.slow
@ON_MINIATURE
def test_few_labels_and_high_demands_leave_rows_out(
    conceptnet: str, votes: Path, voted: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builders.always_never.probes.MAX_MAJORITY", 1)
    strict = built(conceptnet, audit=False, labels=(str(votes),), min_agreement=0.8)
    assert strict.manifest["annotation"]["labels"] > 0
    assert strict.manifest["annotation"]["mean_agreement"] >= 0.8
    assert strict.manifest["counts"]["dropped"][f"labels: {SPLIT}"] > 100
    with pytest.raises(UsageError, match=r"no labelled row is left.*too few votes"):
        built(conceptnet, audit=False, labels=(str(votes),), min_votes=6)


@pytest.mark.slow
def test_another_labels_file_is_another_knowledge_base(
    conceptnet: str, votes: Path, tmp_path: Path
) -> None:
    probe = find_probe(NAME)
    other = tmp_path / "other.csv"
    other.write_text(votes.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    opened = [
        probe.open(probe.options.parse({"conceptnet": conceptnet, "labels": (str(path),)}, NAME))
        for path in (votes, other)
    ]
    assert opened[0].digest != opened[1].digest
    assert opened[0].name == opened[1].name


@pytest.mark.parametrize(
    ("suffix", "text", "problem"),
    [
        ("csv", "id,annotator,vote\n{id},a,often\n{id},b,maybe\n", "row 3: 'maybe' is none of"),
        ("csv", "id,annotator,vote\n{id},a,2\n", "row 2: '2' is none of"),
        ("csv", "id,annotator,vote\nnope,a,often\n", "row 2: no candidate has the id 'nope'"),
        ("csv", "id,annotator,vote\n{id},a,B\n{id},a,B\n", "row 3: '{id}' is judged a second time"),
        ("csv", "annotator,vote\na,often\n", "row 2: no id"),
        ("csv", "id,vote\n{id},often\n", "row 2: it names no annotator"),
        ("jsonl", '{{"id": "{id}", "answer": 7}}', "row 1: '7' is none of"),
        ("jsonl", '{{"id": "{id}", "answer": 1, "label": "often"}}', "row 1: the answer is 1, but"),
        ("jsonl", '{{"id": "{id}", "answer": 1, "agreement": 3}}', "row 1: agreement is 3"),
        ("jsonl", '{{"id": "{id}"', "row 1: is not JSON"),
        ("jsonl", "[1]", "row 1: not an object"),
        ("jsonl", "", "neither votes nor labels"),
    ],
)
def test_errors_in_labels_name_the_row(
    suffix: str, text: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / f"labels.{suffix}"
    path.write_text(text.format(id="a1b2"), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_verdicts([path], ["a1b2"], SCALE, 1)
    assert problem.format(id="a1b2") in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_labels_file_is_named(conceptnet: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--labels .*nowhere\.csv"):
        built(conceptnet, labels=(str(tmp_path / "nowhere.csv"),))


def test_deciding() -> None:
    def verdict(*words: str, least: int = 1) -> tuple[int, str, float | None]:
        cast = [
            LabelVote("x", str(at), SCALE.index(word) if word in SCALE else UNKNOWN, word)
            for at, word in enumerate(words)
        ]
        (found,) = agreed([decide("x", cast, least)], 0.5)
        return found.answer, found.reason, found.agreement

    assert verdict("often", "often", "never") == (3, "", pytest.approx(2 / 3))
    assert verdict("often", "never") == (UNKNOWN, TIE, 0.5)
    assert verdict("often", "often", least=3) == (UNKNOWN, FEW, 1.0)
    assert verdict("nonsense", "none") == (UNKNOWN, NO_ANSWER, 0.0)
    # Marks count among the votes.
    assert verdict("often", "often", "two", "none", "never")[1] == SPLIT


def test_balancing_keeps_as_many_rows_as_it_can() -> None:
    answer = np.repeat(np.arange(5), [8, 3, 11, 2, 7])
    cell = np.zeros_like(answer)
    identity = np.arange(answer.size)
    keep = balanced(cell, answer, 5, 0.25, RandomGenerator.of(0), identity)
    assert np.bincount(answer[keep]).tolist() == [5, 3, 5, 2, 5]
    assert balanced(cell, answer, 5, 1.0, RandomGenerator.of(0), identity).all()
    # Three answers cannot be balanced to a quarter each.
    few = np.repeat(np.arange(3), 10)
    assert not balanced(
        np.zeros_like(few), few, 5, 0.25, RandomGenerator.of(0), np.arange(30)
    ).any()


@pytest.mark.slow
def test_what_was_read_is_answered_by_its_readings(
    conceptnet: str, extent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builders.always_never.probes.MAX_MAJORITY", 1)
    done = built(conceptnet, audit=False, readings=True)
    read = readings(NAME, "builders.always_never").votes
    labelled = rows_of(done)
    assert len(labelled) > {MINIATURE: 50, SAMPLE: 770}[extent]
    assert {row["relation"] for row in labelled} == {"read"}
    about = done.manifest["annotation"]
    assert about["annotator_kind"] == "language model"
    assert "No person has voted" in about["source"]
    assert about["krippendorff_alpha"] > 0.7
    names = {(family, one) for family, one, _ in read}
    assert {(row["distractor_family"], row["concept"]) for row in labelled} <= names
    # Other families were not read: they are candidates.
    other = built(conceptnet, audit=False, readings=True, families=("deed",))
    assert other.manifest["counts"]["unlabelled"]


@pytest.mark.slow
def test_sizes_are_not_compared_in_the_other_order_in_an_earlier_split(
    candidates: Built, rows: Rows, extent: str
) -> None:
    dropped = candidates.manifest["counts"]["dropped"]
    if extent == SAMPLE:
        assert dropped["the pair is in a later split in the other order"] > 0
    split_of = {}
    for row in rows:
        if row["distractor_family"] in ("larger", "smaller"):
            words = {argument["name"]: argument["value"] for argument in row["arguments"]}
            split_of[words["subject"], words["object"]] = row["split"]
    assert split_of
    assert all(split_of.get(pair[::-1], split) == split for pair, split in split_of.items())


def test_families_are_checked() -> None:
    with pytest.raises(UsageError, match=r"no family 'diets'. Did you mean 'diet'"):
        AlwaysNeverOptions.parse({"families": ("diets",)}, NAME)
    assert AlwaysNeverOptions.parse({"families": ("diet", "dish")}, NAME).families == (
        "dish",
        "diet",
    )


@pytest.fixture(scope="module")
def masked_lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny seeded masked LM: its words are real, what it makes of them is not."""
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("masked")
    words = ("wings", "tails", "fur", "cheese", "tomatoes", "lions", "birds", "mice", "have", "eat")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32,
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    return folder


@pytest.mark.slow
@ON_MINIATURE
def test_a_masked_lm_proposes_objects(
    conceptnet: str, masked_lm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builders.always_never.probes.PROPOSALS", 12)
    options = {"proposer": str(masked_lm), "families": ("body_part", "diet"), "per_family": 40}
    proposed = rows_of(built(conceptnet, audit=False, **options))
    objects = {row["distractor_family"]: set[str]() for row in proposed}
    for row in proposed:
        objects[row["distractor_family"]].add(row["arguments"][1]["value"])
    assert objects["body_part"] <= {"wings", "tails", "fur"}
    assert objects["diet"] <= {"cheese", "tomatoes", "lions", "birds", "mice"}
    assert min(map(len, objects.values())) > 1
    again = rows_of(built(conceptnet, audit=False, **options))
    assert again == proposed
    monkeypatch.setattr("builders.always_never.probes.PROPOSALS", 1)
    with pytest.raises(UsageError, match=r"no candidate is left"):
        built(conceptnet, audit=False, proposer=str(masked_lm), families=("larger",))


def test_a_proposer_that_is_none_is_refused(
    conceptnet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"--proposer .*no masked LM can be loaded"):
        built(conceptnet, proposer=str(tmp_path))
    monkeypatch.setattr("kbprobe.errors.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="eval"):
        built(conceptnet, proposer=str(tmp_path))
