"""Scorers and learners that need no model: guessing, VecSimilarity, majority."""

from pathlib import Path

import numpy as np
import pytest
import yaml

import evaluation
from evaluation.cli import main
from evaluation.items.types import Item, choice_starts
from evaluation.learners.registry import choose_learner
from evaluation.models.checkpoint import no_checkpoint
from evaluation.scorers.base import ScorerInputs
from evaluation.scorers.entries import VEC_SIMILARITY, VEC_SIMILARITY_PUBLISHED
from evaluation.scorers.model_free import GuessingScorer, MajorityScorer
from evaluation.scorers.registry import choose_scorer
from evaluation.vectors.options import VectorsOption, word_vectors
from kb_cache.fetching import fetch
from kbprobe.errors import UsageError
from kbprobe.format.setups import ACCEPTABILITY, NLI
from tests.evaluation import jsonl_probe, labelled_probe, tiny_masked

SAMPLE = Path(__file__).parents[1] / "data" / "glove.sample.50d.txt"
LABELS = ("unacceptable", "acceptable")


@pytest.fixture(scope="module", autouse=True)
def vectors(tmp_path_factory):
    """The sample of GloVe in a cache of this module's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBPROBE_CACHE", str(tmp_path_factory.mktemp("vectors")))
        fetch("vectors", source=SAMPLE, name="sample")
        yield word_vectors(VectorsOption())


def scores(scorer, items):
    encoded = scorer.encode(items)
    order = np.random.default_rng(0).permutation(len(encoded.lengths))
    found = np.empty(len(encoded.slot_choice))
    for some in np.array_split(order, 3):
        found[encoded.slot_choice[encoded.slots(some)[1]]] = scorer.score(encoded, some)
    return np.split(found, choice_starts(items)[1:-1])


def questions(count, gold="dog", others=("car", "piano", "house", "fire")):
    """Rows whose gold has one text, at a place that varies."""
    rows = []
    for number in range(count):
        shown = list(others)
        shown.insert(number % 5, gold)
        rows.append(Item(f"q{number}", "mc_qa", "Is it a cat?", tuple(shown), number % 5))
    return rows


# Guessing


def test_guesses_depend_on_seed_id_and_choice_alone():
    items = questions(400)
    first, again, other = (scores(GuessingScorer(seed), items) for seed in (0, 0, 1))
    np.testing.assert_array_equal(np.concatenate(first), np.concatenate(again))
    assert np.concatenate(first).tolist() != np.concatenate(other).tolist()
    turned = [Item(i.id, i.setup, "?", i.choices[::-1], 4 - i.answer) for i in items]
    for row, back in zip(first, scores(GuessingScorer(0), turned), strict=True):
        np.testing.assert_array_equal(row, back[::-1])
    right = [row.argmax() == item.answer for row, item in zip(first, items, strict=True)]
    assert np.mean(right) == pytest.approx(0.2, abs=0.06)
    places = np.bincount([row.argmax() for row in first], minlength=5)
    assert places.min() > 50


# VecSimilarity


def similarity(entry=VEC_SIMILARITY):
    return entry.make(ScorerInputs(None, None, VectorsOption()))


def unit(found):
    return found / np.linalg.norm(found)


def test_similarity_is_the_cosine_of_the_means_of_content_words(vectors):
    def mean(words):
        return vectors.matrix[vectors.rows(words.split())].astype(float).mean(axis=0)

    item = Item("a", "mc_qa", "What is the dog's house?", ("a red car", "cat"), 1)
    [found] = scores(similarity(), [item, item])[:1]
    for choice, score in zip(("red car", "cat"), found, strict=True):
        assert score == pytest.approx(unit(mean("dog house")) @ unit(mean(choice)), abs=1e-6)
    assert VEC_SIMILARITY.version == 2, "the scores of version 1 were the published ones"


def test_function_words_are_all_that_some_texts_have(vectors):
    item = Item("a", "mc_qa", "the dog", ("the", "of which"), 0)
    [found] = scores(similarity(), [item, item])[:1]
    assert (found != 0).all()


def test_published_similarity_is_the_mean_cosine_of_all_pairs_of_words(vectors):
    def unit_of(word):
        return unit(vectors.matrix[vectors.rows([word])[0]].astype(float))

    item = Item("a", "mc_qa", "the dog", ("a red car", "cat"), 1)
    [found] = scores(similarity(VEC_SIMILARITY_PUBLISHED), [item, item])[:1]
    for choice, score in zip(item.choices, found, strict=True):
        pairs = [unit_of(one) @ unit_of(two) for one in ("the", "dog") for two in choice.split()]
        assert score == pytest.approx(np.mean(pairs), abs=1e-6)
    assert found.argmax() == 1


def test_words_without_a_vector_are_similar_to_themselves():
    item = Item("a", "mc_qa", "a blicket", ("the blicket", "the toma"), 0)
    encoded = similarity().encode([item])
    assert encoded.notes == {"unknown_words": 2}
    assert encoded.scores[0] > encoded.scores[1] + 0.1


@pytest.mark.parametrize("entry", [VEC_SIMILARITY, VEC_SIMILARITY_PUBLISHED])
def test_a_mask_is_no_word_and_an_empty_question_is_similar_to_nothing(entry):
    scorer = similarity(entry)
    cloze = Item("a", "mc_mlm", "[MASK] dog", ("cat", "car"), 0)
    plain = Item("b", "mc_qa", "dog", ("cat", "car"), 0)
    empty = Item("c", "mc_qa", "", ("cat", "car"), 0)
    first, second, nothing = scores(scorer, [cloze, plain, empty])
    np.testing.assert_array_equal(first, second)
    assert nothing.tolist() == [0, 0]


# Majority


def test_the_answer_of_most_training_rows_wins():
    train = [*questions(3, gold="dog"), *questions(2, gold="cat")]
    item = Item("t", "mc_qa", "?", ("fire", "cat", "dog", "piano"), 0)
    [row] = scores(MajorityScorer(train, seed=0), [item, item])[:1]
    assert row.argmax() == 2
    assert np.argsort(row)[-2] == 1


def test_ties_are_broken_by_a_hash_in_the_same_way_in_all_rows():
    train = [Item(f"{at}", ACCEPTABILITY, "A dog.", LABELS, at % 2) for at in range(10)]
    test = [Item(f"t{at}", ACCEPTABILITY, "A cat.", LABELS, at % 2) for at in range(20)]
    predicted = {
        seed: {int(row.argmax()) for row in scores(MajorityScorer(train, seed), test)}
        for seed in range(20)
    }
    assert all(len(found) == 1 for found in predicted.values())
    assert {0, 1} == set.union(*predicted.values())


# In runs


def run(probe, **options):
    return evaluation.evaluate(probe, "none", device="cpu", **options)


def test_they_run_without_a_model(tmp_path):
    train = questions(60)
    test = [
        Item(f"test-{item.id}", item.setup, item.question, item.choices, item.answer)
        for item in questions(40)
    ]
    probe = jsonl_probe.write(tmp_path / "probe", {"train": train, "test": test})
    majority = run(probe, learner="majority", train=50)
    assert majority.results.metrics.accuracy.value == 1
    assert majority.results.scoring.score == "log frequency"
    guesses = [run(probe, scorer="random", guess_seed=seed) for seed in (0, 1, 1)]
    tables = [done.predictions["scores"] for done in guesses]
    assert tables[1].equals(tables[2])
    assert not tables[0].equals(tables[1])
    similar = run(probe, scorer="vec_similarity", vectors="sample")
    assert similar.results.metrics.accuracy.value == 1
    digest = word_vectors(VectorsOption(vectors="sample")).digest
    assert similar.results.scoring.options["vectors_digest"] == digest
    with pytest.raises(UsageError, match="no snapshot 'acme'"):
        run(probe, scorer="vec_similarity", vectors="acme")


@pytest.mark.parametrize(("setup", "classes"), [(ACCEPTABILITY, 2), (NLI, 3)])
def test_labels_are_guessed_and_counted(setup, classes, tmp_path):
    probe = labelled_probe.write(tmp_path / "probe", setup)
    majority = run(probe, learner="majority", train=90)
    predicted = set(majority.predictions["prediction"].to_pylist())
    assert len(predicted) == 1
    assert majority.results.metrics.accuracy.value == pytest.approx(1 / classes)
    guessed = run(probe, scorer="random")
    assert set(guessed.predictions["prediction"].to_pylist()) == set(range(classes))
    with pytest.raises(UsageError, match="vec_similarity takes only mc_mlm, mc_qa"):
        run(probe, scorer="vec_similarity")


@pytest.mark.parametrize(
    "options",
    [
        {"scorer": "random"},
        {"scorer": "vec_similarity"},
        *({"learner": name, "train": 20} for name in ("majority", "esim", "mlm_baseline")),
    ],
)
def test_a_model_that_would_take_no_part_is_refused(options, tmp_path, capsys):
    """Results must not be recorded as those of a model that nothing reads."""
    rows = {"train": questions(30), "test": questions(30)}
    probe = jsonl_probe.write(tmp_path / "probe", rows)
    model = tmp_path / "bert"
    tiny_masked.write("bert-uncased", model)
    kind = "learner" if "learner" in options else "scorer"
    needed = f"--model none --{kind} {options[kind]}" + " --train N" * (kind == "learner")
    with pytest.raises(UsageError, match=needed):
        evaluation.evaluate(probe, model, **options)
    with pytest.raises(UsageError, match=needed):
        evaluation.study("zero_shot", probe, model, **options)
    suite = {"probes": [probe], "models": [str(model), "none"], "options": options}
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(suite))
    for words in (
        [probe, "--model", model, *(f"--{name}={value}" for name, value in options.items())],
        ["suite", tmp_path / "suite.yaml", "-o", tmp_path / "out"],
    ):
        with pytest.raises(SystemExit, match="2"):
            main([str(word) for word in words])
        assert needed in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_nothing_is_taken_that_was_not_named():
    with pytest.raises(UsageError, match="name with --scorer one that needs none"):
        choose_scorer(no_checkpoint())
    with pytest.raises(UsageError, match="--train"):
        choose_learner(no_checkpoint(), None, None)
