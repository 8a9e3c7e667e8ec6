"""Analyses of the papers: viability, a nearer distractor, what was seen, shared words."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import evaluation
from builders.wordnet.families import CHILD, LEVELS, OTHER_SENSE, PARENT, SISTER
from builders.wordnet.options import NEAR
from evaluation.items.text_files import TextFiles
from evaluation.items.types import Item
from evaluation.report.page import render
from evaluation.results.analyses.answers import frequency_of_picks, with_frequencies
from evaluation.results.analyses.distances import nearer_distractors
from evaluation.results.analyses.errors import ERRORS, error_kinds
from evaluation.results.analyses.seen import Seen, concept_words, measure_seen, with_words
from evaluation.results.analyses.viability import viability
from evaluation.results.analyses.vocabulary import (
    HYPOTHESIS,
    TRAINING,
    Vocabulary,
    measure_vocabulary,
    words_of,
)
from evaluation.results.breakdown import by_frequency, by_negation
from kbprobe.errors import UsageError
from kbprobe.format.negation import PATTERNS
from kbprobe.format.setups import NLI
from tests.evaluation import jsonl_probe, tiny_causal, tiny_masked, tiny_multiple_choice
from tests.evaluation.folded_probe import write as write_labelled

torch.set_num_threads(1)

CLOZES = [
    Item("c0", "mc_mlm", "A dog is a kind of [MASK].", ("animal", "car", "house"), 0),
    Item("c1", "mc_mlm", "The child's toy is [MASK] and red.", ("small", "larger", "fast"), 0),
    Item("c2", "mc_mlm", "Paris is the [MASK] of France.", ("capital", "word"), 0),
    Item("c3", "mc_mlm", "A car is a kind of [MASK].", ("vehicle", "rodent"), 0),
]


pytestmark = pytest.mark.usefixtures("own_cache")


def rank(logits: Any, token: int) -> int:
    """The place of a token among all, by sorting."""
    return int((logits.argsort(descending=True) == token).nonzero()) + 1


# --- viability ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_ranks_at_the_mask_are_those_of_a_plain_pass(tmp_path: Path) -> None:
    folder = tiny_masked.write("bert-uncased", tmp_path / "bert")
    probe = jsonl_probe.write(tmp_path / "probe", {"test": CLOZES})
    done = evaluation.evaluate(probe, str(folder), scorer="masked_rank")
    plain = evaluation.evaluate(probe, str(folder), multi_piece="skip")
    model, tokenizer = tiny_masked.load(folder)
    rows = done.predictions.to_pylist()
    assert any(row["set_aside"] is None for row in rows)
    for row, other in zip(rows, plain.predictions.to_pylist(), strict=True):
        assert (row["set_aside"], row["prediction"]) == (other["set_aside"], other["prediction"])
        if row["set_aside"] is not None:
            continue
        text = tokenizer(row["question"], return_tensors="pt")
        mask = (text["input_ids"][0] == tokenizer.mask_token_id).nonzero().item()
        logits = model(**text).logits[0, mask]
        pieces = [tokenizer(choice)["input_ids"][1] for choice in row["choices"]]
        assert [-score for score in row["scores"]] == [rank(logits, piece) for piece in pieces]
    page = render(done.results, done.predictions)
    assert "Viability: would the model say it?" in page
    assert "Viability" not in render(plain.results, plain.predictions)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_ranks_of_a_causal_model_are_of_first_tokens(tmp_path: Path, family: str) -> None:
    folder = tiny_causal.write(family, tmp_path / family)
    probe = jsonl_probe.write(tmp_path / "probe", {"test": CLOZES})
    done = evaluation.evaluate(probe, str(folder), scorer="causal_rank")
    model, tokenizer = tiny_causal.load(family, folder)
    for row in done.predictions.to_pylist():
        before = row["question"].partition("[MASK]")[0].rstrip()
        context = tokenizer(before)["input_ids"]
        for choice, score in zip(row["choices"], row["scores"], strict=True):
            whole = tokenizer(f"{before} {choice}")["input_ids"]
            assert whole[: len(context)] == context
            logits = model(torch.tensor([context])).logits[0, -1]
            assert -score == rank(logits, whole[len(context)])


def test_the_share_in_the_top_ten_by_hand() -> None:
    predictions = pa.table(
        {
            "prediction": pa.array([0, 1, None], pa.int32()),
            "answer": pa.array([0, 0, 0], pa.int32()),
            "choices": [["yes", "no"]] * 3,
            "scores": pa.array([[-2.0, -30.0], [-11.0, -10.0], []], pa.list_(pa.float32())),
            "cluster": ["a", "b", "c"],
        }
    )
    found = {one.name: (one.top.value, one.rank) for one in viability(predictions)}
    assert found == {
        "the right answer": (0.5, 6.5),
        "any choice": (1.0, 6.0),
        "every choice": (0.0, 20.5),
        "“no”": (0.5, 20.0),
        "“yes”": (0.5, 6.5),
    }


# --- a nearer distractor ---------------------------------------------------------------------


def test_a_nearer_distractor_is_counted_where_there_is_one() -> None:
    rows = [  # distances, gold, given, family
        ([3, 2, 4], 0, 1, "conjunction"),  # the nearer one
        ([3, 2, 4], 0, 2, "conjunction"),  # wrong, but farther than the gold
        ([3, 2, 1], 0, 0, "conjunction"),  # right, though both are nearer
        ([1, 2, 4], 0, 1, "conjunction"),  # none is nearer
        ([2, 2, 4], 0, 1, "conjunction"),  # as near
        ([3, 2, 1], 0, None, "conjunction"),  # set aside
        ([3, 0, 2, 5], 0, 2, "paper"),
        ([3, 0, 2, 5], 0, 1, "paper"),  # the chosen one's distance is not known
        ([0, 1, 2, 5], 0, 1, "paper"),  # the gold's is not
        (None, 0, 1, "paper"),
    ]
    hops, gold, given, families = zip(*rows, strict=True)
    predictions = pa.table(
        {
            "choice_hops": pa.array(hops, pa.list_(pa.int32())),
            "choices": [["w"] * (4 if family == "paper" else 3) for family in families],
            "answer": gold,
            "prediction": pa.array(given, pa.int32()),
            "distractor_family": families,
            "cluster": [str(at) for at in range(len(rows))],
        }
    )
    found = {
        one.family: (one.chosen.value, one.chosen.n, one.random, one.right.value)
        for one in nearer_distractors(predictions)
    }
    assert found == {
        "all": (0.4, 5, pytest.approx((1 / 3 + 1 / 3 + 2 / 3 + 1 / 4 + 1 / 4) / 5), 0.2),
        "conjunction": (pytest.approx(1 / 3), 3, pytest.approx(4 / 9), pytest.approx(1 / 3)),
        "paper": (0.5, 2, 0.25, 0.0),
    }
    assert nearer_distractors(predictions.drop_columns(["choice_hops"])) == []
    assert nearer_distractors(predictions.slice(3, 3)) == []


def test_wrong_answers_are_counted_by_their_relation_to_the_answer() -> None:
    rows = [  # scores, families, gold, the row's family
        ([3.0, 1.0, 2.0], ["gold", "child", "sibling"], 0, "mixed"),
        ([1.0, 2.0, 1.0], ["child", "other sense", "gold"], 2, "mixed"),
        ([1.0, 2.0, 0.0], None, 0, "second_cousin_branch"),
        ([1.0, 2.0, 0.0], ["gold", "1 bucket apart", "random"], 0, "random"),  # not known
        ([0.0, 1.0], ["gold", "random"], 0, "random"),
    ]
    scores, families, gold, family = zip(*rows, strict=True)
    given = [int(np.argmax(one)) for one in scores]
    predictions = pa.table(
        {
            "scores": pa.array(scores, pa.list_(pa.float32())),
            "tokens": [[1] * len(one) for one in scores],
            "choices": [["w"] * len(one) for one in scores],
            "choice_families": pa.array(families, pa.list_(pa.string())),
            "distractor_family": family,
            "answer": gold,
            "prediction": given,
            "cluster": [str(at) for at in range(len(rows))],
        }
    )
    found = {
        one.kind: (one.told_apart.value, one.told_apart.n, one.chosen and one.chosen.value)
        for one in error_kinds(predictions, "sum", 0)
    }
    assert found == {
        "too specific": (0.75, 2, 0.0),
        "other sense": (0.0, 1, 1.0),
        "co-hyponym": (1.0, 1, None),
        "distant co-hyponym": (0.5, 1, None),
        "unrelated": (0.0, 1, None),
    }
    expected = {one.kind: one.random for one in error_kinds(predictions, "sum", 0)}
    assert (expected["too specific"], expected["distant co-hyponym"]) == (0.5, None)
    # Without a distractor that is related there is nothing to tell.
    assert error_kinds(predictions.slice(4), "sum", 0) == []


def test_every_kind_of_distractor_in_matched_groups_is_an_error() -> None:
    names = (NEAR, OTHER_SENSE, CHILD, PARENT, SISTER, *LEVELS)
    assert {name.replace("_", " ") for name in names} <= ERRORS.keys()


def test_rows_are_grouped_by_how_frequent_the_word_asked_about_is() -> None:
    words = ["the", "the", "anvil", "qqzzx", None]
    predictions = pa.table(
        {
            "surface_form": words,
            "prediction": pa.array([0] * len(words), pa.int32()),
            "correct": [True, False, True, True, True],
            "cluster": [str(at) for at in range(len(words))],
        }
    )
    assert by_frequency(predictions) == [], "too many words are not known"
    found = by_frequency(predictions.filter(pa.array([True, True, True, False, True])))
    assert [(one.name[0], one.accuracy.value) for one in found] == [("3", 1.0), ("5", 0.5)]
    assert by_frequency(predictions.drop_columns(["surface_form"])) == []


# --- concepts and golds seen --------------------------------------------------------------------


def test_accuracy_of_what_was_seen_by_hand() -> None:
    predictions = pa.table(
        {
            "prediction": pa.array([0, 1, 0, 1, None], pa.int32()),
            "answer": pa.array([0, 0, 0, 1, 0], pa.int32()),
            "correct": pa.array([True, False, True, True, None]),
            "choices": [["x", "y"], ["x", "y"], ["z", "y"], ["x", "y"], ["x", "y"]],
            "concept": ["a", "a", "b", None, "a"],
            "cluster": ["1", "2", "3", "4", "5"],
        }
    )
    found = measure_seen(predictions, pa.array(["a", None]), {"x"}, seed=0)
    values = {name: one and (one["value"], one["n"]) for name, one in found.model_dump().items()}
    assert values == {
        "concept": (0.5, 2),
        "other_concept": (1.0, 1),
        "gold": (0.5, 2),
        "other_gold": (1.0, 2),
        "in_texts": None,
        "not_in_texts": None,
    }
    none = measure_seen(predictions, pa.array([], pa.string()), {"x", "y", "z"}, seed=0)
    assert (none.concept, none.other_gold) == (None, None)


@pytest.mark.slow
def test_a_trained_run_says_what_it_had_seen(tmp_path: Path) -> None:
    def questions(split: str, golds: tuple[str, ...]) -> list[Item]:
        return [
            Item(f"{split}{at}", "mc_qa", f"What is {gold}?", (gold, "a house", "a toy"), 0)
            for at, gold in enumerate(golds)
        ]

    splits = {
        "train": questions("train", ("a dog", "a cat") * 4),
        "test": questions("test", ("a dog", "a bus", "a car")),
    }
    probe = jsonl_probe.write(tmp_path / "probe", splits)
    model = str(tiny_multiple_choice.write(tmp_path / "bert", "Bert"))
    trained = evaluation.evaluate(probe, model, train=8, epochs=1, training={"train_batch": 4})
    block = Seen.model_validate(trained.results.analyses["seen"])
    assert block.concept is None
    assert block.gold is not None
    assert block.other_gold is not None
    assert (block.gold.n, block.other_gold.n) == (1, 2)
    page = render(trained.results, trained.predictions)
    assert "another gold" in page
    assert "another concept" not in page
    assert "seen" not in evaluation.evaluate(probe, model).results.analyses


CONCEPTS = [  # the word asked about, the concept, the gold, whether it is right
    ("Sea dogs", "sea_dog.n.01", 0, True),
    (None, "sea_dog.n.01", 0, False),
    (None, "hot", 0, True),
    ("bus", "bus.n.01.bus", 0, False),
    (None, None, 0, True),
]


def concept_rows() -> pa.Table:
    words, concepts, answer, right = zip(*CONCEPTS, strict=True)
    return pa.table(
        {
            "surface_form": pa.array(words, pa.string()),
            "concept": pa.array(concepts, pa.string()),
            "answer": answer,
            "correct": right,
            "prediction": pa.array([0 if one else 1 for one in right], pa.int32()),
            "choices": [["an animal", "a car"]] * len(CONCEPTS),
            "scores": pa.array(
                [[1.0, 0.0] if one else [0.0, 1.0] for one in right], pa.list_(pa.float32())
            ),
            "cluster": [str(at) for at in range(len(CONCEPTS))],
        }
    )


def test_concepts_are_looked_up_in_the_texts_of_a_task() -> None:
    rows = concept_rows()
    words = concept_words(rows)
    assert words.to_pylist() == ["Sea dogs", "sea dog", "hot", "bus", None]
    found = with_words(Seen(), rows, words, {"sea dog", "bus"}, 0)
    assert found.in_texts is not None
    assert found.not_in_texts is not None
    assert (found.in_texts.value, found.in_texts.n) == (0.0, 2)
    assert (found.not_in_texts.value, found.not_in_texts.n) == (1.0, 2)
    nothing = with_words(Seen(gold=found.in_texts), rows, words, (), 0)
    assert (nothing.in_texts, nothing.gold) == (None, found.in_texts)


def test_texts_of_any_format_say_which_phrases_occur(tmp_path: Path) -> None:
    row = {"question": "Is a Sea Dog old?", "choices": {"text": ["a hot-dog", "buses"]}, "n": 3}
    names = ("a.txt", "a.txt.gz", "a.jsonl", "a.json", "a.parquet")
    (tmp_path / "a.txt").write_text("A sea\tDog, and\na hot\ndog: buses\n")
    with gzip.open(tmp_path / "a.txt.gz", "wt") as file:
        file.write("one sea dog; hot\nbuses")
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(row)}\n\n{json.dumps(row)}\n")
    (tmp_path / "a.json").write_text(json.dumps([row], indent=1))
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    phrases = ("sea dog", "dogs", "hot", "text", "question", "bus", "...", "buses")
    for name in names:
        texts = TextFiles("--seen", str(tmp_path / name))
        assert texts.phrases(phrases) == {"sea dog", "hot", "buses"}, name
    whole = TextFiles("--seen", str(tmp_path))
    assert whole.phrases(phrases) == {"sea dog", "hot", "buses"}
    before = whole.sha256
    (tmp_path / "a.txt").write_text("the dogs")
    assert whole.sha256 != before
    assert whole.phrases(phrases) == {"sea dog", "hot", "buses", "dogs"}


def test_counts_and_texts_give_the_same_frequencies(tmp_path: Path) -> None:
    (tmp_path / "counts").write_text("The\t2\nthe\t1\ndog\t1\nnever\t0\n")
    (tmp_path / "texts").write_text("The dog.\nThe the\n")
    for name in ("counts", "texts"):
        found = TextFiles("--unigrams", str(tmp_path / name)).inverse_frequencies()
        assert found == {"the": 4 / 3, "dog": 4.0}


@pytest.mark.parametrize(
    "content",
    [
        "word\tcount\nthe\t30\ndog\t2\n",
        "the,30\ndog,2\n",
        '"the",30\n"dog",2\n',
        "the 30\ndog 2\n",
        "     30 the\n      2 dog\n",
        "the\t-30\ndog\t1e3\n",
        "the\t30\t7\nsea dog\t2\t1\n",
    ],
)
def test_counts_in_another_form_are_not_read_as_prose(tmp_path: Path, content: str) -> None:
    (tmp_path / "counts").write_text(content)
    with pytest.raises(UsageError, match=r"counts looks like a table .*the<TAB>1024"):
        TextFiles("--unigrams", str(tmp_path / "counts")).inverse_frequencies()


def test_prose_with_numbers_is_read(tmp_path: Path) -> None:
    (tmp_path / "prose").write_text("Chapter 1\nA dog, born in 1900.\nIt ran 3 miles in 20\n")
    assert TextFiles("--unigrams", str(tmp_path / "prose")).word_count()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"a": "b"}\n{"a": ', r"--seen \S*a.jsonl, line 2, is not JSON"),
        ("a.json", b"words", r"--seen \S*a.json is not JSON"),
        ("a.txt", b"caf\xe9", r"--seen \S*a.txt is not text in UTF-8"),
        ("a.txt.gz", b"plain", r"--seen \S*a.txt.gz cannot be read: Not a gzipped file"),
        ("a.parquet", b"plain", r"--seen \S*a.parquet cannot be read"),
        ("a.counts", b"the\t3\nof 4\n", r"'of 4' is not a word, a tab and a number"),
        ("a.none", b"... !\n", r"--seen: there is no word in \S*a.none"),
    ],
)
def test_files_that_are_no_texts_are_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        TextFiles("--seen", str(tmp_path / name)).inverse_frequencies()


def test_absent_texts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no such file or folder\. Name a file of texts"):
        TextFiles("--seen", str(tmp_path / "none")).files()
    with pytest.raises(UsageError, match="there is no file in this folder"):
        TextFiles("--seen", str(tmp_path)).files()


def test_frequencies_of_a_corpus_replace_those_of_wordfreq() -> None:
    rows = concept_rows()
    found = with_frequencies(rows, {"animal": 1e3, "a": 1e1, "car": 1e6, "an": 1e2, "bus": 1e5})
    assert found["choice_frequency"].to_pylist() == [
        pytest.approx([5.96, 3.0], abs=0.01) for _ in CONCEPTS
    ]
    assert found["word_frequency"].to_pylist() == [0.0, None, None, pytest.approx(4.0), None]
    picks, plain = frequency_of_picks(found), frequency_of_picks(rows)
    assert picks is not None
    assert plain is not None
    assert picks.correlation == -plain.correlation
    assert (picks.given, picks.right, picks.accuracy) == (0.6, 1.0, None)
    assert [(part.name, part.accuracy.n) for part in by_frequency(found)] == [
        ("0: does not occur", 1),
        ("4 to 5", 1),
    ]


def test_a_run_reports_what_its_task_and_corpus_hold(tmp_path: Path) -> None:
    texts = tmp_path / "task.jsonl"
    texts.write_text(json.dumps({"question": "Is a dog an animal?"}))
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("a vehicle, a vehicle and an animal")
    questions = [
        Item(str(at), "mc_qa", f"What is a {word}?", ("animal", "vehicle"), at % 2)
        for at, word in enumerate(("dog", "bus", "cat", "car"))
    ]
    without = jsonl_probe.write(tmp_path / "without", {"test": questions})
    probe = str(tmp_path / "test.jsonl")
    lines = (tmp_path / "without" / "test.jsonl").read_text().splitlines()
    named = [
        json.dumps(json.loads(line) | {"concept": item.question[10:-1]})
        for line, item in zip(lines, questions, strict=True)
    ]
    Path(probe).write_text("\n".join(named))
    folder = str(tiny_causal.write("gpt2", tmp_path / "gpt2"))
    plain = evaluation.evaluate(probe, folder)
    done = evaluation.evaluate(probe, folder, seen=str(texts), unigrams=str(corpus))
    block = Seen.model_validate(done.results.analyses["seen"])
    assert block.in_texts is not None
    assert block.not_in_texts is not None
    assert (block.in_texts.n, block.not_in_texts.n) == (1, 3)
    assert done.predictions["scores"] == plain.predictions["scores"]
    assert {"seen_sha256", "unigrams_sha256"} <= done.results.scoring.options.keys()
    page = render(done.results, done.predictions)
    assert "concept that occurs in the texts" in page
    assert "the frequency of choices in corpus.txt" in page
    assert "7 words in the corpus of --unigrams, too few to tell" in page
    assert "Zipf frequency" not in page
    text = render(plain.results, plain.predictions)
    assert "concept that occurs" not in text
    kept = evaluation.evaluate(probe, folder, seen=str(texts), output=tmp_path / "out")
    same = evaluation.evaluate(probe, folder, seen=str(texts), output=tmp_path / "out")
    assert same.results == kept.results
    texts.write_text(json.dumps({"question": "Is a dog a cat?"}))
    with pytest.raises(UsageError, match="out holds other results: seen sha256 is"):
        evaluation.evaluate(probe, folder, seen=str(texts), output=tmp_path / "out")
    with pytest.raises(UsageError, match=r"--seen .*there is no such file"):
        evaluation.evaluate(probe, folder, seen=str(tmp_path / "none"))
    with pytest.raises(UsageError, match=r"--seen: the rows of .* ask about no concept"):
        evaluation.evaluate(without, folder, seen=str(texts))


# --- negation -----------------------------------------------------------------------------------


def test_patterns_of_negation_are_pooled() -> None:
    rows = pa.table(
        {
            "distractor_family": PATTERNS,
            "prediction": pa.array([None, *range(15)], pa.int32()),
            "correct": pa.array([None, *(at % 2 == 0 for at in range(15))]),
            "cluster": PATTERNS,
        }
    )
    found = {one.name: one.accuracy.n for one in by_negation(rows)}
    # none, none was set aside; both texts without "not": 3 others, and without an antonym: 3.
    assert found == {"lexical": 3, "explicit": 3, "lexical and explicit": 9}
    other = rows.set_column(0, "distractor_family", pa.array(["swapped", *PATTERNS[1:]]))
    assert by_negation(other) == by_negation(rows), "the row that was set aside names no pattern"
    assert by_negation(rows.set_column(0, "distractor_family", [["swapped"] * 16])) == []


# --- shared words -------------------------------------------------------------------------------


def pairs(count: int) -> tuple[pa.Table, set[str]]:
    """Pairs that are right by chance, the more often the more words the two sentences share."""
    chance = np.random.default_rng(3)
    shared = chance.integers(0, 5, count)
    known = chance.integers(0, 5, count)
    right = chance.random(count) < 0.1 + 0.2 * shared
    table = pa.table(
        {
            "prediction": pa.array(np.where(right, 0, 1), pa.int32()),
            "answer": pa.array(np.zeros(count), pa.int32()),
            "correct": right,
            "premise": ["s0 s1 s2 s3"] * count,
            "question": [
                " ".join([*(f"s{at}" for at in range(n)), *(f"n{at}" for at in range(4 - n))])
                + "".join(f" k{at}" for at in range(m))
                for n, m in zip(shared, known, strict=True)
            ],
            "cluster": [f"c{at // 2}" for at in range(count)],
        }
    )
    return table, {"k0", "k1", "k2", "k3"}


def test_the_slope_of_accuracy_over_shared_words_is_found() -> None:
    table, known = pairs(2000)
    found = measure_vocabulary([(table, known)])
    assert found is not None
    premise, training = found.slopes
    assert (premise.what, training.what) == (HYPOTHESIS, TRAINING)
    assert premise.points.low > 0
    assert premise.p_value < 1e-4
    words = [text.split() for text in table["question"].to_pylist()]
    share = np.array([sum(word[0] == "s" for word in own) / len(own) for own in words])
    seen = np.array([sum(word[0] == "k" for word in own) / (4 + len(own)) for own in words])
    design = np.column_stack([share, seen, np.ones(len(share))])
    slopes = np.linalg.lstsq(design, table["correct"].to_numpy().astype(float), rcond=None)[0]
    assert [one.points.value for one in found.slopes] == pytest.approx(10 * slopes[:2])
    parts = [(table.slice(0, 900), known), (table.slice(900), known)]
    assert measure_vocabulary(parts) == found


def test_nothing_is_said_of_few_clusters_or_equal_overlaps() -> None:
    table, known = pairs(40)
    assert measure_vocabulary([(table, known)]) is None
    same = table.set_column(table.column_names.index("question"), "question", [["s0"] * 40])
    whole = pa.concat_tables([same] * 2)
    assert measure_vocabulary([(whole, ())]) is None


@pytest.mark.parametrize("places", [[0], [0, 1]])
@pytest.mark.filterwarnings("error")
def test_nothing_is_said_where_nothing_is_left_to_explain(places: list[int]) -> None:
    """All answers are one label, in all folds or in each: slopes are what rounding left."""
    table, known = pairs(400)
    answer = np.arange(400) % 2  # each cluster has a row of either label, of the same words
    given = np.repeat(np.resize(places, 4), 100)
    columns = {
        "answer": pa.array(answer, pa.int32()),
        "correct": answer == given,
        "question": np.repeat(table["question"].to_pylist()[::2], 2),
    }
    for name, column in columns.items():
        table = table.set_column(table.column_names.index(name), name, [column])
    assert measure_vocabulary([(table, known)]) is None


@pytest.mark.slow
def test_a_run_and_a_cross_validation_have_a_section_on_words(tmp_path: Path) -> None:
    probe = write_labelled(tmp_path / "pairs", NLI)
    names = dict(enumerate(("entailment", "neutral", "contradiction")))
    folder = tiny_multiple_choice.write(
        tmp_path / "bert",
        "Bert",
        "ForSequenceClassification",
        id2label=names,
        label2id={name: number for number, name in names.items()},
    )
    done = evaluation.evaluate(
        probe, str(folder), split="all", fold=0, learner="pooled", train=60, epochs=1
    )
    if "vocabulary" in done.results.analyses:
        block = Vocabulary.model_validate(done.results.analyses["vocabulary"])
        assert {one.what for one in block.slopes} <= {HYPOTHESIS, TRAINING}
    out = tmp_path / "out"
    summary = evaluation.study("crossval", probe, str(folder), output=out, epochs=1)
    (fitted,) = summary.rows("runs", kind="learner")
    slopes = summary.rows("vocabulary", name=fitted["name"])
    assert {row["words"] for row in slopes} <= {HYPOTHESIS, TRAINING}
    assert slopes
    text = json.loads((out / "crossval.json").read_text())
    assert text["tables"]["runs"]
    assert "Accuracy and shared words" in (out / "crossval.html").read_text()


def test_words_are_those_of_both_sentences() -> None:
    item = Item("i", "nli", "It doesn't RAIN.", ("a", "b"), 0, "Rain, again")
    assert words_of([item]) == {"it", "doesn't", "rain", "again"}
