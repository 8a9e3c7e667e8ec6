"""Rows of labels: read, put into words, scored by every kind of model, measured and reported."""

import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import evaluation
from evaluation.cli import main
from evaluation.items.sources import open_probe
from evaluation.items.types import Item, ItemColumns, ProbeSplit, fingerprint
from evaluation.items.wordings import worded, wordings
from evaluation.results.analyses.labels import labels_of, measure_labels
from evaluation.results.metrics import Scores, measure, predictions_table
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.setups import MASK, SETUPS
from tests.evaluation import labelled_probe, tiny_causal, tiny_masked
from tests.evaluation.test_classifier import COLA, MNLI, write
from tests.evaluation.test_evaluate import subprocess_environment

ACCEPTABILITY, NLI = SETUPS["acceptability"].labels, SETUPS["nli"].labels


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Two probes, and tiny seeded models: two classifiers, a causal and a masked LM."""
    folder = tmp_path_factory.mktemp("world")
    labelled_probe.write(folder / "sentences", "acceptability")
    labelled_probe.write(folder / "pairs", "nli")
    write(folder / "tiny-cola", COLA, seed=3)
    write(folder / "tiny-nameless", ["LABEL_0", "LABEL_1"], seed=3)
    write(folder / "tiny-mnli", MNLI, seed=1)
    tiny_causal.write("gpt2", folder / "tiny-gpt2")
    tiny_masked.write("bert-uncased", folder / "tiny-bert")
    return folder


pytestmark = pytest.mark.usefixtures("in_world")


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def answered(setup, gold, given, clusters=None, confidence=2.0):
    """Rows whose labels, and those that a model gives, are known."""
    labels = SETUPS[setup].labels
    items = ItemColumns.of(
        [Item(f"r{at}", setup, f"Text {at}.", labels, g) for at, g in enumerate(gold)]
    )
    names = clusters or [item.id for item in items]
    text = pa.nulls(len(items), pa.string())
    number = pa.nulls(len(items), pa.int32())
    about = {name: text for name in ("distractor_family", "pos", "template", "concept")}
    about |= {"cluster": pa.array(names), "hops": number, "distractor_hops": number}
    split = ProbeSplit(
        "p", "here", "test", items, pa.table(about), clusters is not None, fingerprint(items)
    )
    scores = np.zeros((len(items), len(labels)))
    scores[np.arange(len(items)), given] = confidence
    held = Scores(scores.ravel(), np.ones(scores.size, int), {}, {}, "logit", 1, 1, 7)
    return split, predictions_table(split, held, "sum", 1e-4)


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize("setup", ["acceptability", "nli"])
def test_numbers_are_those_of_scikit_learn(setup):
    from sklearn import metrics

    random = np.random.default_rng(0)
    size = len(SETUPS[setup].labels)
    for rows in (7, 400):
        gold = random.integers(0, size, rows)
        given = np.where(random.random(rows) < 0.6, gold, random.integers(0, size, rows))
        block = measure_labels(answered(setup, gold.tolist(), given)[1], setup, 0)
        expected = metrics.matthews_corrcoef(gold, given)
        assert block.matthews_correlation.value == pytest.approx(expected)
        assert block.macro_f1.value == pytest.approx(metrics.f1_score(gold, given, average="macro"))
        names = list(SETUPS[setup].labels)
        table = metrics.confusion_matrix(gold, given, labels=range(size))
        assert [[one.given[name] for name in names] for one in block.labels] == table.tolist()
        for at, one in enumerate(block.labels):
            assert one.recall.value == pytest.approx((given[gold == at] == at).mean())
            assert one.precision == pytest.approx((gold[given == at] == at).mean())
        most = np.bincount(gold).argmax()
        assert (block.majority, block.majority_accuracy) == (names[most], (gold == most).mean())
        always = metrics.f1_score(gold, np.full(rows, most), average="macro", zero_division=0)
        assert block.majority_macro_f1 == pytest.approx(always)


def test_a_model_that_gives_one_label_has_no_correlation_and_no_interval():
    block = measure_labels(answered("acceptability", [0, 1] * 60, [1] * 120)[1], "acceptability", 0)
    assert block.matthews_correlation.value == 0
    assert block.matthews_correlation.low is None
    assert block.labels[0].precision is None
    assert block.labels[0].recall.value == 0


def test_intervals_are_over_clusters_and_wider_where_rows_of_one_are_alike():
    random = np.random.default_rng(1)
    right = random.random(100) < 0.6
    gold = random.integers(0, 2, 100)
    alone = answered("acceptability", gold.tolist(), np.where(right, gold, 1 - gold))[1]
    gold, right = np.repeat(gold, 4), np.repeat(right, 4)
    clusters = [f"c{at // 4}" for at in range(400)]
    given = np.where(right, gold, 1 - gold)
    alike = answered("acceptability", gold.tolist(), given, clusters)[1]
    one, four = (measure_labels(table, "acceptability", 0) for table in (alone, alike))
    for name in ("matthews_correlation", "macro_f1"):
        narrow, wide = getattr(one, name), getattr(four, name)
        assert narrow.value == pytest.approx(wide.value)
        assert narrow.low < narrow.value < narrow.high
        # Four copies of each row say no more than one.
        assert wide.high - wide.low == pytest.approx(narrow.high - narrow.low, rel=0.05)


def test_strict_accuracy_is_the_share_of_pairs_with_both_rows_right():
    gold = [1, 0] * 50
    given = [1, 0] * 20 + [1, 1] * 25 + [0, 1] * 5
    clusters = [f"c{at // 2}" for at in range(100)]
    split, predictions = answered("acceptability", gold, given, clusters)
    metrics = measure(
        predictions, clustered=split.clustered, normalization="sum", by_length=False, seed=0,
        tie_tolerance=1e-4,
    )  # fmt: skip
    assert metrics.strict_accuracy.value == 20 / 50
    assert metrics.strict_accuracy.n == 50
    assert metrics.accuracy.value == (40 + 25) / 100


@pytest.mark.parametrize("probe", ["sentences", "pairs"])
def test_json_lines_say_what_the_built_files_say(probe, tmp_path):
    built = open_probe(probe)
    setup = built.items[0].setup
    rows = labelled_probe.rows_of(setup)
    lines = open_probe(write_rows(tmp_path / "test.jsonl", rows))
    assert lines.items == built.items
    assert lines.about.equals(built.about)
    assert len(built.items) == 2 * labelled_probe.PAIRS
    if setup == "nli":
        assert [(i.premise, i.question) for i in built.items] == [
            (row["premise"], row["hypothesis"]) for row in rows
        ]


def test_a_fold_goes_into_the_predictions_where_rows_have_one(tmp_path):
    rows = [
        row | {"fold": at // 2 % 10}
        for at, row in enumerate(labelled_probe.rows_of("acceptability"))
    ]
    done = evaluation.evaluate(write_rows(tmp_path / "test.jsonl", rows), "tiny-cola")
    assert done.predictions["fold"].to_pylist() == [row["fold"] for row in rows]
    assert "premise" not in done.predictions.column_names
    without = evaluation.evaluate("sentences", "tiny-cola")
    assert "fold" not in without.predictions.column_names


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"answer": -1, "answerKey": ""}, "have no answer yet"),
        ({"premise": " "}, "premise is empty"),
        ({"hypothesis": None}, "hypothesis is missing"),
        ({"hypothesis": f"A {MASK}."}, "hypothesis must show no"),
        ({"choices": {"text": ["yes", "no"], "label": ["A", "B"]}}, "must be the labels of nli"),
    ],
)
def test_rows_that_cannot_be_scored_are_named(changes, said, tmp_path):
    rows = labelled_probe.rows_of("nli", pairs=3)
    rows[0] |= changes
    with pytest.raises(KbprobeError, match=said):
        open_probe(write_rows(tmp_path / "test.jsonl", rows))


def test_wordings_hold_the_texts_once_and_their_words_differ():
    assert set(wordings()) == {"acceptability", "nli"}
    for setup, wording in wordings().items():
        assert tuple(wording.words) == SETUPS[setup].labels
        assert len(set(wording.words.values())) == len(wording.words)
        for asked, text in wording.templates.items():
            assert text.count("{question}") == 1
            assert text.count("{premise}") == (setup == "nli")
            assert text.count(MASK) == (asked == "mc_mlm")


def test_a_row_in_words_keeps_its_id_order_of_choices_and_answer():
    item = Item("a", "nli", "It {is} wet.", NLI[::-1], 2, "It rains.")
    [asked] = worded([item], "mc_qa")
    assert (asked.id, asked.answer, asked.choices) == ("a", 2, ("No", "Maybe", "Yes"))
    assert "Premise: It rains.\nHypothesis: It {is} wet.\n" in asked.question
    other = Item("b", "mc_qa", "What?", ("this", "that"), 0)
    assert worded([other], "mc_mlm") == (other,)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("probe", "model", "score"),
    [
        ("sentences", "tiny-cola", "log-probability of the class"),
        ("pairs", "tiny-mnli", "log-probability of the class"),
        ("sentences", "tiny-gpt2", "log-likelihood"),
        ("pairs", "tiny-gpt2", "log-likelihood"),
        ("sentences", "tiny-bert", "log-likelihood"),
        ("pairs", "tiny-bert", "log-likelihood"),
    ],
)
def test_every_kind_of_model_is_scored_measured_and_reported(probe, model, score, tmp_path, capsys):
    out = tmp_path / "out"
    words = [probe, "--model", model, "-o", str(out), "--device", "cpu"]
    if model == "tiny-cola":  # once in a process of its own
        done = subprocess.run(
            [sys.executable, "-m", "evaluation.cli", *words],
            env=subprocess_environment(tmp_path),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        shown = done.stdout
    else:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert not ended.value.code
        shown = capsys.readouterr().out
    held = evaluation.load(out)
    block, metrics = labels_of(held.results), held.results.metrics
    assert held.results.scoring.score == score
    assert metrics.normalization == "sum"
    assert list(metrics.accuracies) == ["acc"]
    frame = held.to_pandas()
    labels = SETUPS[block.setup].labels
    assert set(frame.choices.map(tuple)) == {labels}, "labels, whatever stood for them"
    for at, one in enumerate(block.labels):
        assert one.rows == (frame.answer == at).sum()
        assert one.predicted == (frame.prediction == at).sum()
    both = frame.groupby("cluster").correct.all()
    assert metrics.strict_accuracy.value == pytest.approx(both.mean())
    assert (block.wording is None) == (model in ("tiny-cola", "tiny-mnli"))
    assert f"Matthews correlation {block.matthews_correlation.value:.3f}" in shown
    page = re.sub(r"<[^>]+>", " ", (out / "report.html").read_text())
    for said in ("Labels: which are distinguished?", "macro-F1", f"always “{block.majority}”"):
        assert said in page
    assert "Confusion table" in page
    if probe == "pairs":
        assert any(f"{row.premise}\n{row.question}" in page for row in frame.itertuples())


@pytest.mark.slow
def test_scores_of_words_are_those_of_the_same_questions_as_a_probe_of_its_own(tmp_path):
    for model, setup in (("tiny-gpt2", "mc_qa"), ("tiny-bert", "mc_mlm")):
        done = evaluation.evaluate("pairs", model, limit=20)
        rows = [
            {
                "id": item.id,
                "setup": setup,
                "question": item.question,
                "choices": {"text": list(item.choices), "label": list("ABC")},
                "answer": item.answer,
                "answerKey": "ABC"[item.answer],
            }
            for item in worded(open_probe("pairs").items, setup)
            if item.id in set(done.predictions["id"].to_pylist())
        ]
        again = evaluation.evaluate(
            write_rows(tmp_path / f"{setup}.jsonl", rows), model, normalization="sum"
        )
        assert again.predictions["scores"].to_pylist() == done.predictions["scores"].to_pylist()
        assert again.predictions["choices"][0].as_py() == ["Yes", "Maybe", "No"]


def test_examples_from_train_are_put_into_words_as_well():
    plain = evaluation.evaluate("sentences", "tiny-gpt2", limit=8)
    shots = evaluation.evaluate("sentences", "tiny-gpt2", limit=8, shots=1)
    assert shots.results.timings.tokens > 1.5 * plain.results.timings.tokens


def test_scores_are_found_in_the_cache_unless_the_meaning_of_classes_changes():
    named = evaluation.evaluate("sentences", "tiny-cola")
    stated = [
        evaluation.evaluate("sentences", "tiny-nameless", class_labels=order)
        for order in (ACCEPTABILITY, ACCEPTABILITY[::-1])
    ]
    again = evaluation.evaluate("sentences", "tiny-nameless", class_labels=ACCEPTABILITY)
    assert again.results.timings.scored_sequences == 0
    held = [one.predictions["prediction"].to_pylist() for one in (named, *stated)]
    assert held[0] == held[1] == [1 - given for given in held[2]]


@pytest.mark.slow
def test_the_pipeline_gives_the_same_labels():
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

    model = AutoModelForSequenceClassification.from_pretrained("tiny-mnli").eval()
    tokenizer = AutoTokenizer.from_pretrained("tiny-mnli")
    pipe = pipeline("text-classification", model=model, tokenizer=tokenizer)
    done = evaluation.evaluate("pairs", "tiny-mnli", device="cpu").to_pandas()
    shown = [{"text": row.premise, "text_pair": row.question} for row in done.itertuples()]
    expected = [said["label"].lower() for said in map(pipe, shown)]
    assert [NLI[at] for at in done.prediction] == expected


@pytest.mark.parametrize(
    ("probe", "model", "options", "said"),
    [
        ("sentences", "tiny-nameless", {}, "--class-labels unacceptable,acceptable"),
        ("sentences", "tiny-mnli", {}, "tells 3 classes apart"),
        ("pairs", "tiny-mnli", {"config": "minimal_pairs"}, r"mc_qa.*Name another --model"),
        ("sentences", "tiny-bert", {"scorer": "multiple_choice"}, r"--config \(minimal_pairs\)"),
        ("sentences", "tiny-bert", {"train": 4}, "leave --train out"),
        ("sentences", "tiny-bert", {"scorer": "classifier"}, "no trained classification head"),
        ("sentences", "tiny-gpt2", {"class_labels": ("a", "b")}, "scored as a causal LM"),
        ("sentences", "tiny-gpt2", {"normalization": "char"}, "labels or clozes"),
    ],
)
def test_what_cannot_be_scored_is_refused_with_the_remedy(probe, model, options, said):
    with pytest.raises(UsageError, match=said):
        evaluation.evaluate(probe, model, **options)
