"""The audit finds shortcuts that are there, and none in noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbprobe.arrays import Floats, Ints
from kbprobe.audit import report as reports
from kbprobe.audit.baselines import BASELINES, BuildRows
from kbprobe.audit.features import ngram_features
from kbprobe.audit.learners import fit_choice_model
from kbprobe.audit.report import spread
from kbprobe.audit.rows import Sample, choose_rows, in_choice_groups
from kbprobe.audit.verdicts import Bar, credit_of
from kbprobe.format.manifest import BaselineCell
from kbprobe.intervals import Estimate, mean_credit

Built = Callable[[str, str], Path]
Report = dict[str, Any]

WIDTH = 5
TEXTS = 600
ROWS = 6_000


def noise(seed: int = 0) -> BuildRows:
    """Rows without any rule: texts of random words of one length, drawn and placed at random.

    Every text is as often gold as any other, rows come three to a concept, and splits hold
    whole concepts: a third each.
    """
    chance = np.random.default_rng(seed)
    words = [f"w{i:03d}" for i in range(300)]
    texts = [" ".join(chance.choice(words, 6)) for _ in range(TEXTS)]
    choices = np.array([chance.choice(TEXTS, WIDTH, replace=False) for _ in range(ROWS)])
    answer = chance.integers(0, WIDTH, ROWS)
    concept = np.arange(ROWS) // 3
    questions = [" ".join(chance.choice(words, 8)) for _ in range(ROWS // 3)]
    return BuildRows(
        texts=pa.array(texts),
        choices=choices,
        answer=answer,
        questions=pa.array(questions),
        question=concept,
        split=concept % 3,
        family=np.arange(ROWS) % 2,
        family_names=("near", "far"),
        template=np.arange(ROWS) % 4,
        cluster=concept,
        sample=Sample(0, concept[:0], concept[:0]),
        frequency=chance.uniform(0, 7, TEXTS),
        generality=chance.uniform(0, 9, TEXTS),
    )


def with_answer(rows: BuildRows, answer: Ints) -> BuildRows:
    """The same rows, with other golds."""
    return replace(rows, answer=answer)


def audit(rows: BuildRows) -> Report:
    """Sample some rows, and run every baseline on them."""
    parts = (rows.answer, rows.split, rows.cluster, rows.question, rows.gold)
    totals = reports.Totals.of(rows.choices.shape[1], *parts)
    sample = choose_rows(rows.split, rows.cluster, rows.choices, seed=0)
    return reports.audit(replace(rows, sample=sample), totals)


def verdicts(report: Report, baseline: str) -> set[str]:
    return {cell["verdict"] for cell in report["baselines"][baseline].values()}


def flagged(report: Report) -> set[str]:
    return {flag.split(" is ")[0] for flag in report["flags"]}


def lengths(rows: BuildRows) -> Ints:
    return np.array([len(text) for text in rows.texts.to_pylist()])


@pytest.mark.slow
def test_noise_is_not_flagged() -> None:
    report = audit(noise())
    assert report["flags"] == []
    assert report["chance"] == 1 / WIDTH
    assert report["baselines"].keys() == BASELINES.keys()
    for cells in report["baselines"].values():
        assert cells.keys() == {"all", "near", "far"}
        for cell in cells.values():
            assert cell["low"] <= cell["accuracy"] <= cell["high"]
            assert cell["accuracy"] == pytest.approx(0.2, abs=0.06)
    in_split = np.bincount(noise().split)
    assert (report["scored_split"], report["scored_rows"]) == ("test", in_split[2])
    assert report["fitted_rows"] == in_split[0]
    assert sum(report["positions"]) == pytest.approx(1)


def longest_is_gold(rows: BuildRows) -> BuildRows:
    texts = [f"{text}{'!' * (i % 29)}" for i, text in enumerate(rows.texts.to_pylist())]
    rows = replace(rows, texts=pa.array(texts))
    return with_answer(rows, lengths(rows)[rows.choices].argmax(axis=1))


def shortest_is_gold(rows: BuildRows) -> BuildRows:
    texts = [f"{text}{'!' * (i % 29)}" for i, text in enumerate(rows.texts.to_pylist())]
    rows = replace(rows, texts=pa.array(texts))
    return with_answer(rows, lengths(rows)[rows.choices].argmin(axis=1))


def first_is_gold(rows: BuildRows) -> BuildRows:
    return with_answer(rows, np.zeros(ROWS, dtype=np.int64))


def position_follows_wording(rows: BuildRows) -> BuildRows:
    return with_answer(rows, rows.template)


def a_word_marks_golds(rows: BuildRows) -> BuildRows:
    """Half of the texts hold the word "thing"; each row shows one of them, its gold."""
    texts = [text + " thing" * (i < TEXTS // 2) for i, text in enumerate(rows.texts.to_pylist())]
    choices = rows.choices % (TEXTS // 2) + TEXTS // 2
    line = np.arange(ROWS)
    choices[line, rows.answer] -= TEXTS // 2
    return replace(rows, texts=pa.array(texts), choices=choices)


def stem_holds_gold(rows: BuildRows) -> BuildRows:
    """Each question quotes a word of its gold."""
    texts = rows.texts.to_pylist()
    questions = [
        f"something about {texts[node].split()[2]} and {question}"
        for node, question in zip(
            rows.gold, rows.questions.take(pa.array(rows.question)).to_pylist(), strict=True
        )
    ]
    return replace(rows, questions=pa.array(questions), question=np.arange(ROWS))


def some_are_always_gold(rows: BuildRows) -> BuildRows:
    """The text with the lowest number is right: some texts are gold far more often."""
    return with_answer(rows, rows.choices.argmin(axis=1))


def most_frequent_is_gold(rows: BuildRows) -> BuildRows:
    assert rows.frequency is not None
    return with_answer(rows, rows.frequency[rows.choices].argmax(axis=1))


def most_general_is_gold(rows: BuildRows) -> BuildRows:
    assert rows.generality is not None
    return with_answer(rows, rows.generality[rows.choices].argmax(axis=1))


def gold_is_like_the_others(rows: BuildRows) -> BuildRows:
    """Distractors are made from the gold's words, two of each, as a careless author would."""
    texts = rows.texts.to_pylist()
    made: list[str] = []
    for gold in rows.gold:
        words = texts[gold].split()
        own = [f"x{len(made)}y{i}" for i in range(16)]
        made.append(texts[gold])
        made += [" ".join([words[i], words[i + 1], *own[4 * i : 4 * i + 4]]) for i in range(4)]
    numbers = np.arange(ROWS)[:, None] * WIDTH
    turned = (np.arange(WIDTH)[None, :] - rows.answer[:, None]) % WIDTH
    return replace(
        rows, texts=pa.array(made), choices=numbers + turned, frequency=None, generality=None
    )


@pytest.mark.parametrize(
    ("plant", "baseline", "verdict"),
    [
        (longest_is_gold, "longest choice", "high"),
        (longest_is_gold, "shortest choice", "low"),
        (shortest_is_gold, "shortest choice", "high"),
        (shortest_is_gold, "longest choice", "low"),
        (first_is_gold, "majority position", "high"),
        (position_follows_wording, "template majority", "high"),
        (a_word_marks_golds, "choice-only model", "high"),
        (a_word_marks_golds, "choice-only model, inverted", "low"),
        (stem_holds_gold, "most like the question", "high"),
        (some_are_always_gold, "majority answer", "high"),
        (some_are_always_gold, "choice-only model", "high"),
        (most_frequent_is_gold, "most frequent choice", "high"),
        (most_general_is_gold, "most general choice", "high"),
        (most_general_is_gold, "most specific choice", "low"),
        *(
            pytest.param(gold_is_like_the_others, *found, marks=pytest.mark.slow)
            for found in (("most like the others", "high"), ("least like the others", "low"))
        ),
    ],
)
def test_planted_shortcuts_are_found(
    plant: Callable[[BuildRows], BuildRows], baseline: str, verdict: str
) -> None:
    report = audit(plant(noise()))
    assert verdicts(report, baseline) == {verdict}
    assert baseline in flagged(report)
    assert f"{baseline} is {verdict} on all" in " ".join(report["flags"])


def test_an_inverted_shortcut_is_low() -> None:
    """The word "thing" stands in all distractors and no gold: known to be wrong is known."""
    rows = a_word_marks_golds(noise())
    choices = (rows.choices + TEXTS // 2) % TEXTS
    report = audit(replace(rows, choices=choices))
    assert verdicts(report, "choice-only model") == {"high"}
    # As balancing over all splits at once does: what train shows as gold, test shows as wrong.
    marked = np.where((rows.split == 0)[:, None], rows.choices, choices)
    report = audit(replace(rows, choices=marked))
    assert verdicts(report, "choice-only model") == {"low"}
    assert verdicts(report, "choice-only model, inverted") <= {"high", "ok"}


def test_a_shortcut_in_one_family_is_told_from_the_rest() -> None:
    rows = noise()
    first = np.where(rows.family == 1, 0, rows.answer)
    cells = audit(with_answer(rows, first))["baselines"]["majority position"]
    assert (cells["far"]["verdict"], cells["near"]["verdict"]) == ("high", "ok")
    assert cells["far"]["accuracy"] == 1.0


def test_leaks_between_splits_are_counted() -> None:
    rows = noise()
    clean = audit(rows)["leakage"]
    assert clean["clusters in train and elsewhere"] == 0
    assert clean["questions in train and elsewhere"] == 0
    # The texts are few, so that nearly all are gold everywhere.
    train, rest = set(rows.gold[rows.split == 0]), rows.gold[rows.split != 0]
    assert clean["golds in train and elsewhere"] == len(train & set(rest))
    assert clean["rows elsewhere whose gold is a gold in train"] == sum(g in train for g in rest)
    torn = rows.split.copy()
    torn[:90:3] = (torn[:90:3] + 1) % 3  # 30 concepts lose a row to another split
    leaks = audit(replace(rows, split=torn))["leakage"]
    assert leaks["clusters in train and elsewhere"] == 20
    assert leaks["questions in train and elsewhere"] == 20


def test_ties_get_fractionalcredit_of() -> None:
    scores = np.array([[1.0, 1.0, 0.0], [2.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    credit = credit_of(scores, np.array([1, 0, 2, 2]))
    assert credit.tolist() == [0.5, 1.0, 0.0, pytest.approx(1 / 3)]


def test_choices_that_all_tie_score_at_chance() -> None:
    """One position for all is no tie of choices, one length for all is."""
    rows = replace(noise(), texts=pa.array([f"same {i:03d}" for i in range(TEXTS)]))
    report = audit(rows)
    assert report["baselines"]["longest choice"]["all"]["accuracy"] == pytest.approx(0.2)
    assert report["baselines"]["shortest choice"]["all"]["accuracy"] == pytest.approx(0.2)


def test_a_sample_of_rows_holds_whole_choice_groups() -> None:
    rows, generator = np.arange(50_000), np.random.default_rng(0)
    group, cluster = rows // 5, generator.integers(0, 2500, rows.size)
    choices = generator.permuted(group[:, None] * 5 + np.arange(5), axis=1)
    split = np.full(rows.size, 2)
    chosen = choose_rows(split, cluster, choices, seed=0).scored
    assert chosen.size == 20_000
    assert set(np.bincount(group[chosen])) == {0, 5}
    # Where all rows show the same choices, clusters stay whole.
    chosen = choose_rows(split, cluster, choices * 0, seed=0).scored
    assert 19_000 < chosen.size <= 20_000
    assert np.isin(rows[np.isin(cluster, cluster[chosen])], chosen).all()


@pytest.mark.parametrize(
    ("shown", "gold", "grouped"),
    [
        ([0, 0, 0, 1, 1, 1], [1, 2, 3, 4, 5, 6], True),
        ([0, 0, 0, 0, 0, 0], [1, 2, 3, 3, 2, 1], False),  # the same few answers in all rows
        ([0, 0, 0, 1, 1, 1], [1, 2, 2, 4, 5, 6], False),
        ([0, 0, 0, 1, 1], [1, 2, 3, 4, 5], False),
        ([0, 1, 2, 3], [1, 2, 3, 4], False),
    ],
)
def test_groups_are_where_each_choice_is_right_equally_often(
    shown: list[int], gold: list[int], grouped: bool
) -> None:
    width = np.full(len(shown), 3)
    assert in_choice_groups(np.array(shown), np.array(gold), width) is grouped


def test_what_is_not_flagged_is_told_with_the_widest_interval() -> None:
    def cell(accuracy: float, margin: float, verdict: str = "ok") -> BaselineCell:
        ends = {"low": accuracy - margin, "high": accuracy + margin}
        values = {"accuracy": accuracy, **ends, "rows": 500, "verdict": verdict}
        return BaselineCell.model_validate(values)

    cells = {"longest": cell(0.192, 0.02), "first": cell(0.209, 0.04)}
    more = {"most similar": cell(0.6, 0.05, "reported"), "fitted": cell(0.3, 0.2, "few rows")}
    assert spread({**cells, **more}, 0.2) == (
        "Shortcuts are right in 19.2% to 20.9% (chance 20.0%); the widest interval is that of "
        "'first', 16.9% to 24.9%"
    )
    assert spread(more, 0.2) == ""


def test_intervals_take_clusters_as_units() -> None:
    """Ten equal rows of one concept say no more than one."""
    single = np.array([1.0, 0.0] * 50)
    alone = mean_credit(single, np.arange(100))
    repeated = mean_credit(np.repeat(single, 10), np.repeat(np.arange(100), 10))
    assert alone.value == repeated.value == 0.5
    assert (alone.high - alone.low) == pytest.approx(repeated.high - repeated.low)
    assert (alone.high - alone.low) / 2 == pytest.approx(1.96 * 0.05, rel=0.02)


@pytest.mark.parametrize(
    ("low", "high", "rows", "verdict"),
    [
        (0.26, 0.30, 1000, "high"),
        (0.24, 0.30, 1000, "ok"),
        (0.10, 0.14, 1000, "low"),
        (0.10, 0.16, 1000, "ok"),
        (0.90, 0.99, 99, "few rows"),
    ],
)
def test_verdicts_ask_for_the_whole_interval_off_chance(
    low: float, high: float, rows: int, verdict: str
) -> None:
    accuracy = Estimate(value=(low + high) / 2, low=low, high=high, n=rows, method="")
    assert Bar(0.2, whole_interval=True).verdict(accuracy) == verdict


def test_a_build_of_one_split_is_audited_without_fitting() -> None:
    rows = noise()
    report = audit(replace(rows, split=np.zeros_like(rows.split)))
    assert (report["scored_split"], report["scored_rows"]) == ("train", ROWS)
    assert report["fitted_rows"] == 0
    fitted = {
        name for name in BASELINES if name.startswith(("choice-only", "majority", "template"))
    }
    assert len(fitted) == 5
    assert not fitted & report["baselines"].keys()
    assert report["baselines"]["longest choice"]["all"]["verdict"] == "ok"


# Against another implementation, on a probe as it was published


@pytest.mark.needs("sklearn")
@pytest.mark.slow
def test_the_choice_model_agrees_with_scikit_learn_and_finds_the_published_flaw(
    built: Built, manifest_of: Callable[[str, str], Report]
) -> None:
    """Uniform sampling of the paper's families can be solved without the questions."""
    folder = built("wordnet_hypernymy", "published") / "data"
    train, test = (
        pq.read_table(folder / f"{split}-00000-of-00001.parquet", columns=["choices", "answer"])
        .slice(0, rows)
        .to_pylist()
        for split, rows in (("train", 3_000), ("test", 4_000))
    )
    number: dict[str, int] = {}
    shown = [
        np.array(
            [[number.setdefault(t, len(number)) for t in row["choices"]["text"]] for row in part]
        )
        for part in (train, test)
    ]
    answer = [np.array([row["answer"] for row in part]) for part in (train, test)]
    texts = list(number)

    features = ngram_features(pa.array(texts))
    ours = (features @ fit_choice_model(features, shown[0], answer[0]))[shown[1]]
    theirs = logistic_regression(texts, shown[0], answer[0])[shown[1]]
    mine, reference = (
        float((scores.argmax(axis=1) == answer[1]).mean()) for scores in (ours, theirs)
    )
    assert mine > 0.5
    assert reference > 0.45
    assert mine == pytest.approx(reference, abs=0.06)
    alike = (ours.argmax(axis=1) == theirs.argmax(axis=1)).mean()
    assert alike > 0.7

    report = manifest_of("wordnet_hypernymy", "published")["audit"]
    assert report["baselines"]["choice-only model"]["all"]["verdict"] == "high"
    assert report["baselines"]["choice-only model"]["all"]["accuracy"] > 0.5
    assert "choice-only model" in flagged(report)


def logistic_regression(texts: list[str], choices: Ints, answer: Ints) -> Any:
    """Score texts by a logistic regression of gold or not on 1-2-grams and length."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    counts = CountVectorizer(ngram_range=(1, 2), token_pattern=r"[^\W_]+").fit_transform(texts)
    length = csr_matrix([[len(text.split()) / 10] for text in texts])
    matrix = hstack([counts, length]).tocsr()
    is_gold = np.arange(choices.shape[1]) == answer[:, None]
    model = LogisticRegression(solver="liblinear").fit(matrix[choices.ravel()], is_gold.ravel())
    return model.decision_function(matrix)


def test_the_choice_model_is_at_its_minimum() -> None:
    """The gradient of the penalised likelihood, computed row by row, is nearly zero."""
    rows = a_word_marks_golds(noise())
    choices, answer = rows.choices[:300], rows.answer[:300]
    features = ngram_features(rows.texts)
    used = np.unique(features.indices)
    dense = features[:, used].toarray()
    fitted = fit_choice_model(features, choices, answer)

    def gradient(weights: Floats) -> Floats:
        total = weights.copy()
        for line, right in zip(choices, answer, strict=True):
            odds = np.exp(dense[line] @ weights)
            total += (odds / odds.sum() - (np.arange(WIDTH) == right)) @ dense[line]
        return total

    assert np.count_nonzero(fitted) == np.count_nonzero(fitted[used]) > 0
    at_zero, at_minimum = (gradient(some) for some in (np.zeros(used.size), fitted[used]))
    assert np.linalg.norm(at_minimum) < 0.01 * np.linalg.norm(at_zero)
