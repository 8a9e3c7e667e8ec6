"""What readers judged of pairs, the models of it, and the features that these are made of."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.engine.rows import Asking
from builders.judged.model import (
    CROSSES,
    DATA,
    JUDGED,
    MATCHED_PAIRS,
    MODELS,
    STRATA,
    JudgedModel,
    judged_kinds,
    judged_model,
    judgements,
)
from builders.wordnet.features import FARTHEST, THINGS, Glosses, PairFeatures, features_of
from builders.wordnet.neighbourhoods import main_parents
from builders.wordnet.synsets import alike, generality, path_facts, vague_synsets
from builders.wordnet.truths import arguable_distractors
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Ints, sorted_unique

Row = dict[str, str]
LABELS = {"true", "arguable", "false"}


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return load_wordnet("3.0")


@pytest.fixture(scope="module")
def known(wordnet: WordNet) -> PairFeatures:
    return features_of(wordnet)


@pytest.fixture(scope="module")
def pairs() -> list[Row]:
    with (DATA / "pairs.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# The pairs


def test_every_pair_is_judged_and_names_synsets(pairs: list[Row], wordnet: WordNet) -> None:
    names = set(wordnet.synsets["name"].to_pylist())
    for row in pairs:
        assert row["probe"] in (*JUDGED, "dictionary", "taxonomy_conjunction")
        assert row["reader_a"] in LABELS, row
        assert row["reader_b"] in {*LABELS, ""}, row
        assert (row["family"] == "gold") == (row["candidate"] == row["gold"]), row
        assert 0 <= int(row["hops"]) <= 9
        if row["probe"] in JUDGED:
            assert {row["concept"], row["gold"], row["candidate"]} <= names, row
        if row["sentence"]:
            assert row["word"] in row["sentence"], row
    shown = ("probe", "concept", "gold", "candidate", "sentence", "word")
    assert max(Counter(tuple(row[key] for key in shown) for row in pairs).values()) == 1


# The models


def test_models_were_fitted_on_the_pairs_that_there_are(pairs: list[Row]) -> None:
    models = json.loads(MODELS.read_text(encoding="utf-8"))
    antonyms = models.pop("antonym")["about"]
    with (DATA / "word_pairs.csv").open(encoding="utf-8", newline="") as file:
        judged = [row for row in csv.DictReader(file) if row["relation"] == "antonym"]
    # Without those of words that are not asked about any more.
    assert 0.8 * len(judged) < antonyms["pairs"] < len(judged)
    assert antonyms["log_loss"] < antonyms["log_loss_of_the_mean"]
    distractors = {"distractor", "matched_distractor"}
    assert models.keys() == {"hypernymy_gold", "hyponymy_gold"} | distractors
    with MATCHED_PAIRS.open(encoding="utf-8", newline="") as file:
        of_groups = Counter(row["family"] not in ("gold", "people") for row in csv.DictReader(file))
    golds = Counter(row["probe"] for row in pairs if row["family"] == "gold")
    others = [row for row in pairs if row["family"] != "gold" and row["probe"] in JUDGED]
    for name, model in models.items():
        probe = name.removesuffix("_gold")
        expected = golds[probe] if name not in distractors else len(others)
        expected += of_groups[True] * (name == "matched_distractor")
        assert model["about"]["pairs"] == expected
        kinds = [f"{probe}:{s}" for probe in JUDGED for s in STRATA]
        golds_of = {probe, f"{probe}:far"}
        assert model["thresholds"].keys() == (set(kinds) if name in distractors else golds_of)
        assert all(0 <= value <= 1 for value in model["thresholds"].values())
        assert model["about"]["passing"].keys() == model["thresholds"].keys()
        # They tell more than the mean does, of concepts that they have not seen.
        assert model["about"]["log_loss"] < model["about"]["log_loss_of_the_mean"]


@pytest.mark.slow
def test_models_weigh_features_that_there_are(known: PairFeatures, wordnet: WordNet) -> None:
    one = np.array([wordnet.synset_id("dog.n.01")])
    other = np.array([wordnet.synset_id("canine.n.02")])
    beside = {*known.beside(one, other, one), *JUDGED}
    assert judged_model("distractor").weights.keys() <= beside
    of_gold = gold_features(known, wordnet, one, other, np.array([1]))
    for probe in ("hypernymy", "hyponymy"):
        assert judged_model(f"{probe}_gold").weights.keys() <= of_gold.keys()


@given(
    st.floats(-3, 3),
    st.dictionaries(st.sampled_from("abc"), st.floats(-3, 3)),
    st.lists(st.tuples(*[st.floats(-3, 3)] * 3), max_size=5),
)
def test_chance_is_the_logistic_of_a_weighted_sum(
    intercept: float, weights: dict[str, float], lines: list[tuple[float, float, float]]
) -> None:
    columns = np.array(lines, dtype=np.float64).reshape(-1, 3).T
    features = dict(zip("abc", columns, strict=True))
    found = JudgedModel(intercept, weights, {}).chance(features)
    for at, line in enumerate(lines):
        values = dict(zip("abc", line, strict=True))
        score = intercept + sum(weight * values[name] for name, weight in weights.items())
        assert np.broadcast_to(found, len(lines))[at] == pytest.approx(1 / (1 + math.exp(-score)))


def test_the_same_word_counts_for_more_than_the_same_parent(
    known: PairFeatures, wordnet: WordNet
) -> None:
    """Of a dachshund that is a dog: how near are other answers?"""
    near = {
        "chihuahua.n.03": "field",
        "cat.n.01": "field",
        "wolf.n.01": "sibling",
        "chair.n.01": "other",
        "dachshund.n.01": "field",
    }
    nodes = np.array([wordnet.synset_id(name) for name in near])
    ends = (wordnet.synset_id(name) for name in ("dachshund.n.01", "dog.n.01"))
    concept, gold = (np.full(nodes.size, end) for end in ends)
    assert [STRATA[at] for at in known.stratum(concept, gold, nodes)] == list(near.values())
    word = np.array([wordnet.synset_id("dog.n.03")])
    assert STRATA[known.stratum(gold[:1], gold[:1], word)[0]] == "same_word"


def test_kinds_are_judged_once_and_name_synsets(wordnet: WordNet) -> None:
    names = set(wordnet.synsets["name"].to_pylist())
    with (DATA / "kinds.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({(row["kind"], row["of"]) for row in rows}) == len(rows) > 15_000
    for row in rows:
        assert {row["kind"], row["of"]} <= names, row
        assert row["reader_a"] in LABELS, row
        assert row["reader_b"] in {*LABELS, ""}, row
    judged, again = judged_kinds(), {(row["kind"], row["of"]) for row in rows}
    for (concept, candidate), labels in judgements("hyponymy").items():
        if (candidate, concept) not in again:
            worth = {"true": 1.0, "false": 0.0}
            expected = worth.get(labels[0], 0.5) if len(set(labels)) == 1 else 0.5
            assert judged[candidate, concept] == expected


def test_words_without_definitions_are_judged_once_and_name_synsets(
    known: PairFeatures, wordnet: WordNet
) -> None:
    names = set(wordnet.synsets["name"].to_pylist())
    with (DATA / "alone.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({(row["kind"], row["of"]) for row in rows}) == len(rows) > 4_000
    for row in rows:
        assert {row["kind"], row["of"]} <= names, row
        assert row["reader_a"] in LABELS, row
    worth = {"true": 1.0, "arguable": 0.5, "false": 0.0}
    lower, upper = (
        np.array([wordnet.synset_id(row[end]) for row in rows]) for end in ("kind", "of")
    )
    assert known.judged_alone(lower, upper).tolist() == [worth[row["reader_a"]] for row in rows]


def test_readers_decide_what_they_judged(known: PairFeatures, wordnet: WordNet) -> None:
    judged = judged_kinds()
    some = sorted(judged)[::97]
    lower, upper = (
        np.array([wordnet.synset_id(name) for name in end]) for end in zip(*some, strict=True)
    )
    assert known.judged_kind(lower, upper).tolist() == [judged[pair] for pair in some]
    swapped = [judged.get(pair[::-1], np.nan) for pair in some]
    np.testing.assert_array_equal(known.judged_kind(upper, lower), swapped)


@pytest.mark.parametrize("probe", ["definitions", "hyponymy"])
def test_distractors_are_as_arguable_as_the_model_says(
    probe: str, known: PairFeatures, wordnet: WordNet, triples: tuple[Ints, Ints, Ints]
) -> None:
    """Chances computed ahead are those of each triple by itself."""
    concept, gold, node = triples
    asked = np.repeat(np.arange(concept.size), 3)
    others = np.concatenate([node, gold, np.roll(gold, 5)]).reshape(3, -1).T.ravel()
    line = np.arange(gold.size)
    asking = Asking(line, line, concept, gold, line)
    found = arguable_distractors(wordnet, probe, False, asking)(concept[asked], gold[asked], others)
    model = judged_model("distractor")
    most = np.array([model.thresholds[f"{probe}:{name}"] for name in STRATA])
    features = known.beside(concept[asked], gold[asked], others)
    features |= {name: np.full(others.size, float(name == probe)) for name in JUDGED}
    limit = most[known.stratum(concept[asked], gold[asked], others)]
    expected = (model.chance(features) > limit) & (limit < 1)
    assert 0 < expected.sum() < expected.size
    if probe == "hyponymy":
        # What readers judged is decided by that; near a class that cuts across others, nothing is.
        crossing = known.crosses[concept[asked]] == CROSSES["cross-cutting"]
        same = known.file[gold[asked]] == known.file[others]
        judged = known.judged_kind(others, concept[asked])
        expected = np.where(np.isnan(judged), expected | (same & crossing), judged > 0)
    is_candidate = np.isin(others, gold)
    assert (found == expected)[is_candidate].all()


# The features


@pytest.fixture(scope="module")
def triples(pairs: list[Row], wordnet: WordNet) -> tuple[Ints, Ints, Ints]:
    """Return concepts, golds and candidates of some pairs of each family."""
    some = [row for row in pairs if row["probe"] in JUDGED and row["family"] != "gold"][::20]
    ends = ("concept", "gold", "candidate")
    found = [np.array([wordnet.synset_id(row[end]) for row in some]) for end in ends]
    return found[0], found[1], found[2]


def common(main: Ints, one: int, other: int) -> int:
    """Edges up to the first common ancestor at one level."""
    for reach in range(1, FARTHEST):
        one, other = (int(main[node]) if node >= 0 else -1 for node in (one, other))
        if one == other >= 0:
            return reach
    return FARTHEST


def test_features_of_pairs(
    known: PairFeatures, wordnet: WordNet, triples: tuple[Ints, Ints, Ints]
) -> None:
    main, general, likes = main_parents(wordnet), generality(wordnet), alike(wordnet)
    files = wordnet.synsets["lexname"].to_pylist()
    number = np.asarray(wordnet.senses["number"])
    found = known.beside(*triples)
    same_word = known.same_word(triples[0], triples[2])
    assert len({common(main, gold, node) for gold, node in zip(*triples[1:], strict=True)}) > 2
    for at, (concept, gold, node) in enumerate(zip(*(e.tolist() for e in triples), strict=True)):
        values = {name: float(value[at]) for name, value in found.items()}
        nearest = common(main, gold, node)
        expected = {
            "verb": files[concept].startswith("verb."),
            "other_pos": files[concept].startswith("adj.") or files[concept].startswith("adv."),
            "thing": files[node] in {f"noun.{name}" for name in THINGS},
            "same_file": files[concept] == files[node],
            "sense": min(number[wordnet.sense_start[node]], 8),
            "sense_concept": min(number[wordnet.sense_start[concept]], 8),
            "generality": general[node],
            "generality_concept": general[concept],
            "more_general": general[node] - general[gold],
            "same_word": node in likes.neighbours(concept),
            "common_concept": common(main, concept, node),
            "verb_common": files[concept].startswith("verb.") and nearest == 1,
        }
        expected |= {f"common_{reach}": nearest == reach for reach in range(1, FARTHEST)}
        assert {name: values[name] for name in expected} == pytest.approx(
            {name: float(value) for name, value in expected.items()}
        )
        assert same_word[at] == expected["same_word"]
        overlaps = {name for name in values if "overlap" in name or "names" in name}
        assert len(overlaps) == 8
        assert all(0 <= values[name] <= 1 + 1e-9 for name in overlaps)


@pytest.mark.parametrize(
    ("concept", "node", "name", "shares"),
    [
        # "a small long-bodied short-legged dog"; "a member of the genus Canis".
        ("dachshund.n.01", "dog.n.01", "concept_names_node", True),
        ("dachshund.n.01", "dog.n.01", "node_names_concept", False),
        ("dog.n.01", "dachshund.n.01", "node_names_concept", True),
        ("dog.n.01", "toy_dog.n.01", "lemma_overlap", True),
        ("dog.n.01", "canine.n.02", "lemma_overlap", False),
        ("dog.n.01", "stone.n.01", "gloss_overlap", False),
    ],
)
def test_texts_that_share_words(
    known: PairFeatures, wordnet: WordNet, concept: str, node: str, name: str, shares: bool
) -> None:
    ends = (np.array([wordnet.synset_id(end)]) for end in (concept, node))
    assert (known.of_pair(*ends)[name][0] > 0) == shares


def test_a_text_shares_all_words_with_itself(known: PairFeatures, wordnet: WordNet) -> None:
    nodes = np.arange(0, len(wordnet), 997, dtype=np.int64)
    overlap = known.of_pair(nodes, nodes)["gloss_overlap"]
    assert set(np.round(overlap, 6).tolist()) <= {0.0, 1.0}
    assert overlap.mean() > 0.95


def gold_features(
    known: PairFeatures, wordnet: WordNet, concept: Ints, gold: Ints, hops: Ints
) -> dict[str, np.ndarray]:
    names = wordnet.synsets["name"].combine_chunks()
    facts = path_facts(wordnet.hypernyms, concept, gold, hops, "hypernym", names)
    ends = np.concatenate([facts.subject.codes, facts.object.codes])
    return known.of_gold(facts, concept, gold, Glosses.of(wordnet, sorted_unique(ends)))


def test_features_of_golds(known: PairFeatures, wordnet: WordNet, pairs: list[Row]) -> None:
    some = [row for row in pairs if row["probe"] == "hypernymy" and row["family"] == "gold"][::20]
    concept, gold = (
        np.array([wordnet.synset_id(row[end]) for row in some]) for end in ("concept", "gold")
    )
    hops = np.array([int(row["hops"]) for row in some])
    names = wordnet.synsets["name"].combine_chunks()
    facts = path_facts(wordnet.hypernyms, concept, gold, hops, "hypernym", names)
    ends = np.concatenate([facts.subject.codes, facts.object.codes])
    glosses = Glosses.of(wordnet, sorted_unique(ends))
    found = known.of_gold(facts, concept, gold, glosses)
    vague, depths = set(vague_synsets(wordnet).tolist()), wordnet.isa.depths()
    files = wordnet.synsets["lexname"].to_pylist()
    assert set(hops.tolist()) >= {1, 2}
    for at in range(len(some)):
        edge = slice(facts.indptr[at], facts.indptr[at + 1])
        path = [int(concept[at]), *facts.object.codes[edge].tolist()]
        assert path[-1] == gold[at]
        steps = [(np.array([below]), np.array([up])) for below, up in pairwise(path)]
        expected = {
            **{f"hops_{least}": hops[at] >= least for least in (2, 3, 4)},
            "confirmed": all(glosses.bear_out(*step)[0] for step in steps),
            "named_steps": all(glosses.name(*step)[0] for step in steps),
            "gloss_names": glosses.name(concept[at : at + 1], gold[at : at + 1])[0],
            "vague": any(node in vague for node in path[1:]),
            "depth": min(depths[gold[at]], 8),
            f"gold_{files[gold[at]]}": 1,
        }
        got = {name: float(found[name][at]) for name in expected}
        assert got == {name: float(value) for name, value in expected.items()}, path
