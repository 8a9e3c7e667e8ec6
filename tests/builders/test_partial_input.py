"""The audit where all rows choose among the same answers: leaks are found, and none in noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from builders.engine.pipeline import build
from evaluation.results.metrics import of_audit
from kb_cache.frequency import zipf_frequencies
from kbprobe.arrays import Floats, Ints
from kbprobe.audit.baselines import PartialInput, of_questions
from kbprobe.audit.features import character_features, numbers, shared_ends
from kbprobe.audit.rows import Rows, Sample, has_constant_choices
from kbprobe.audit.verdicts import Bar, Shortcut
from kbprobe.format.manifest import read_manifest
from kbprobe.intervals import Estimate
from tests.builders.toy_cloze import request, words, written

Report = dict[str, Any]

ALONE = ["first alone", "frequency of first", "length of first"]
ALONE += [name.replace("first", "second") for name in ALONE]
BOTH = ["likeness of the arguments", "arguments without the carrier sentence"]
ANY = ["majority answer", "majority position", "template majority"]


def audit_of(**options: Any) -> Report:
    report = build(request(**options)).manifest["audit"]
    assert isinstance(report, dict)
    return report


def flagged(report: Report) -> set[str]:
    return {flag.split(" is ")[0] for flag in report["flags"]}


@pytest.mark.slow
def test_a_balanced_probe_is_at_chance_whatever_is_seen_of_it() -> None:
    report = audit_of(pairs=3000)
    assert report["constant_choices"]
    assert report["chance"] == 0.5
    assert list(report["baselines"]) == ["template only", *ALONE, *BOTH, *ANY]
    assert report["picks"].keys() == report["baselines"].keys()
    assert report["flags"] == []
    for cells in report["baselines"].values():
        assert cells.keys() == {"all", "constant"}
        assert cells["all"].keys() == {"accuracy", "low", "high", "rows", "verdict"}
        assert cells["all"]["accuracy"] == pytest.approx(0.5, abs=0.05)
        assert cells["all"]["low"] < 0.5 < cells["all"]["high"]


@pytest.mark.parametrize(
    ("leak", "expected"),
    [
        ("frame", {"template only"}),
        ("prefix", {"second alone", "arguments without the carrier sentence"}),
        ("length", {"second alone", "length of second", "arguments without the carrier sentence"}),
        (
            "frequency",
            {
                "second alone",
                "frequency of second",
                "length of second",
                "arguments without the carrier sentence",
            },
        ),
        ("likeness", {"likeness of the arguments", "arguments without the carrier sentence"}),
    ],
)
def test_planted_shortcuts_are_found_and_told_apart(leak: str, expected: set[str]) -> None:
    report = audit_of(leak=leak)
    assert flagged(report) == expected
    for name in expected:
        assert report["baselines"][name]["all"]["verdict"] == "high"
        assert report["baselines"][name]["all"]["accuracy"] > 0.7
    assert len(report["flags"]) == len(expected), "a lone family is not flagged twice"


@pytest.mark.slow
def test_a_probe_of_open_choices_is_audited_by_its_choices() -> None:
    import builders.engine.probe as registry
    from builders.engine.request import Request

    probe = registry.find_probe("wordnet_hypernymy")
    options = probe.options.parse({"pos": ("verb",), "limit": 400}, probe.name)
    report = build(Request(probe, options)).manifest["audit"]
    assert not report["constant_choices"]
    assert "choice-only model" in report["baselines"]
    assert "template only" not in report["baselines"]


@pytest.mark.slow
def test_card_summary_and_evaluation_read_the_report(tmp_path: Path) -> None:
    from io import StringIO

    import rich.console

    folder = written(tmp_path / "toy", leak="prefix")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "All rows choose among the same few answers" in card
    assert "| second alone | a linear model" in card
    assert "- second alone is high on all: 100.0%" in card
    assert "5 points (10 for what sees arguments)" in card
    manifest = read_manifest(folder)
    assert manifest.audit is not None
    assert of_audit(manifest.audit)["baselines"]["second alone"] == 1.0

    from builders.engine import summary

    output = StringIO()
    with pytest.MonkeyPatch.context() as patch:
        console = rich.console.Console(file=output, width=200)
        patch.setattr(summary, "Console", lambda **_: console)
        summary.show(manifest.content, build(request(leak="prefix")), folder)
    assert "second alone is high on all: 100.0%" in output.getvalue()


def test_without_a_train_split_nothing_is_fitted() -> None:
    report = audit_of(split_shares=(0.0, 0.0, 1.0))
    assert report["baselines"] == {}
    assert report["fitted_rows"] == 0
    assert build(request(split_shares=(0.0, 0.0, 1.0))).manifest["counts"]["splits"]["test"] == 1200


@pytest.mark.parametrize(
    ("accuracy", "low", "high", "rows", "tolerance", "verdict"),
    [
        (0.601, 0.55, 0.65, 500, 0.10, "high"),
        (0.600, 0.55, 0.65, 500, 0.10, "ok"),
        (0.601, 0.49, 0.70, 100, 0.10, "ok"),
        (0.56, 0.51, 0.61, 500, 0.05, "high"),
        (0.39, 0.34, 0.44, 500, 0.10, "low"),
        (0.39, 0.27, 0.51, 100, 0.10, "ok"),
        (0.99, 0.98, 1.00, 99, 0.10, "few rows"),
    ],
)
def test_words_are_held_to_sixty_per_cent_and_frames_to_chance(
    accuracy: float, low: float, high: float, rows: int, tolerance: float, verdict: str
) -> None:
    found = Estimate(value=accuracy, low=low, high=high, n=rows, method="")
    assert Bar(0.5, tolerance).verdict(found) == verdict


def test_what_is_high_is_held_against_the_commonest_answer() -> None:
    accuracy = Estimate(value=0.55, low=0.51, high=0.59, n=500, method="")
    assert Bar(1 / 3, 0.1).verdict(accuracy) == "high"
    assert Bar(1 / 3, 0.1, guess=0.5).verdict(accuracy) == "ok"


# What counts as constant


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ([[0, 1], [1, 0]], True),
        ([[0, 1], [1, 0], [0, 2], [2, 0]], True),
        ([[0, 1], [2, 3]], False),  # no set twice
        ([[0, 1, 2, 3, 4]] * 5, True),
        ([[i, i + 1] for i in range(5)] * 20, False),  # five sets
        ([[i, i + 1] for i in range(4)] * 20, True),
    ],
)
def test_constant_choices_are_few_sets_that_recur(choices: list[list[int]], expected: bool) -> None:
    assert has_constant_choices(np.array(choices)) is expected


def test_constant_choices_may_be_asked_to_be_fewer() -> None:
    choices = np.arange(12).reshape(1, 12).repeat(4, axis=0)
    assert has_constant_choices(choices)
    assert not has_constant_choices(choices, most=10)
    assert not has_constant_choices(np.empty((0, 2), dtype=np.int64))


# Features


def dense(features: Any) -> Floats:
    table: Floats = features.toarray()
    return table


def test_character_ngrams_are_those_of_a_plain_reading() -> None:
    texts = ["Unhappy", "ab", "", "happy ab", "über", "aaaa"]

    def plain(text: str) -> set[str]:
        framed = f"\x02{text.lower()}\x03"
        runs = {framed[i : i + n] for n in range(1, 5) for i in range(len(framed) - n + 1)}
        return runs | {f"word {word}" for word in text.lower().split()}

    table = dense(character_features(pa.array(texts)))
    sets = [plain(text) for text in texts]
    assert ((table > 0).sum(axis=1) == [len(some) for some in sets]).all()
    shared = (table > 0).astype(int) @ (table > 0).astype(int).T
    assert shared.tolist() == [[len(one & other) for other in sets] for one in sets]
    assert np.allclose((table**2).sum(axis=1), 1.0)


def test_shared_ends_are_those_of_a_plain_reading() -> None:
    pairs = [("happy", "unhappy"), ("Hope", "hopeless"), ("a", "b"), ("same", "same"), ("", "x")]
    pairs += [("x" * 50, "x" * 40 + "y"), ("über", "üben")]

    def plain(left: str, right: str) -> tuple[int, int]:
        left, right = left.lower(), right.lower()
        most = min(len(left), len(right), 32)
        start = next((i for i in range(most) if left[i] != right[i]), most)
        end = next((i for i in range(most) if left[-1 - i] != right[-1 - i]), most)
        return start, end

    columns = shared_ends(*(pa.array(side) for side in zip(*pairs, strict=True)))
    expected = [plain(*pair) for pair in pairs]
    assert list(zip(columns[0].tolist(), columns[1].tolist(), strict=True)) == expected
    assert columns[2].tolist() == [0, 1, 0, 1, 1, 1, 0]
    assert columns[3].tolist() == [1, 0, 0, 1, 1, 0, 0]


def test_numbers_are_scaled_and_stand_beside_a_one() -> None:
    assert np.allclose(dense(numbers(np.array([1.0, 3.0]))), [[1, -1], [1, 1]])
    assert np.allclose(dense(numbers(np.array([2.0, 2.0]))), [[1, 0], [1, 0]])


def shortcuts(texts: pa.Array, gold: Ints, train: int) -> dict[str, Shortcut]:
    """Those of rows that ask about a word each, with two answers; the first rows are train."""
    line = np.arange(len(texts))
    same = np.zeros_like(line)
    rows = Rows(
        texts=pa.array(["no", "yes"]),
        choices=np.tile([0, 1], (line.size, 1)),
        answer=gold,
        questions=texts,
        question=line,
        split=np.where(line < train, 0, 2),
        cluster=line,
        family=same,
        family_names=("constant",),
        sample=Sample(2, line[train:], line[:train]),
    )
    partial = PartialInput(same, {"word": texts}, zipf_frequencies)
    return {shortcut.name: shortcut for shortcut in of_questions(rows, partial)}


@pytest.mark.needs("sklearn")
def test_the_model_of_an_argument_agrees_with_scikit_learn() -> None:
    """Both are logistic regressions; with two answers ours has twice the weights, tied."""
    from sklearn.linear_model import LogisticRegression

    chance = np.random.default_rng(5)
    texts = words(900, 3)
    gold = np.array([(text[0] < "h") ^ (chance.random() < 0.2) for text in texts]).astype(int)
    found = shortcuts(pa.array(texts), gold, 600)
    assert list(found) == ["template only", "word alone", "frequency of word", "length of word"]
    ours = np.diff(found["word alone"].scores, axis=1).ravel()
    table = dense(character_features(pa.array(texts)))
    table[:, (table[:600] > 0).sum(axis=0) < 2] = 0
    theirs = LogisticRegression(C=2.0).fit(table[:600], gold[:600]).decision_function(table[600:])
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98
    assert ((ours > 0) == gold[600:]).mean() > 0.65


def test_a_leak_that_flips_between_splits_is_low() -> None:
    plan = build(replace(request(leak="length"), audit=False))
    assert plan.manifest["audit"] is None
    texts = pa.array(words(600, 9))
    gold = np.arange(600) % 2
    longer = pa.array(
        [
            t + "x" * int(g ^ (at >= 300))
            for at, (t, g) in enumerate(zip(texts.to_pylist(), gold, strict=True))
        ]
    )
    baseline = shortcuts(longer, gold, 300)["length of word"]
    assert not (baseline.scores.argmax(axis=1) == gold[300:]).any()
    never = Estimate(value=0.0, low=0.0, high=0.0, n=300, method="")
    assert Bar(0.5, baseline.tolerance).verdict(never) == "low"
