"""Questions with several right answers: pooled as a plain loop does, and where it is sound."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import evaluation
from evaluation.items.types import Item
from evaluation.results.analyses.several import ANALYSIS, NAME, SeveralAnswers, measure_several
from tests.evaluation import jsonl_probe, tiny_causal

pytestmark = pytest.mark.usefixtures("own_cache")

WORDS = ("red", "blue", "green", "white", "black", "brown", "grey")


def items(answers: int = 2, count: int = 12) -> list[Item]:
    """Rows of questions with so many right answers, each with two wrong choices of its own."""
    rows = []
    for number in range(count):
        right, wrong = WORDS[:answers], WORDS[answers:]
        for place, gold in enumerate(right):
            shown = (wrong[place % len(wrong)], gold, wrong[(number + place) % len(wrong)])
            shown = tuple(dict.fromkeys(shown))
            name = f"{number}-{place}"
            rows.append(Item(name, "mc_qa", f"A colour of flag {number} is", shown, 1))
    return rows


def evaluated(folder: Path, rows: list[Item], **options):
    probe = jsonl_probe.write(folder, {"test": rows})
    return evaluation.evaluate(probe, "none", scorer="random", **options)


def block(run) -> SeveralAnswers | None:
    return run.results.analysis(NAME, SeveralAnswers)


def test_any_each_and_all_are_those_of_a_plain_loop(tmp_path):
    run = evaluated(tmp_path / "probe", [*items(2), *items(1, 30)[12:], *items(3, 50)[90:]])
    pooled: dict[str, tuple[dict[str, float], dict[str, float]]] = {}
    for row in run.predictions.to_pylist():
        right, wrong = pooled.setdefault(row["question"], ({}, {}))
        for number, (text, score) in enumerate(zip(row["choices"], row["scores"], strict=True)):
            (right if number == row["answer"] else wrong)[text] = score
    sets = [(right, wrong) for right, wrong in pooled.values() if len(right) > 1]
    one = block(run)
    assert one.questions == len(sets) == 32
    assert one.answers == sum(len(right) for right, _ in sets)
    best = [max({**right, **wrong}.items(), key=lambda pair: pair[1])[0] for right, wrong in sets]
    assert one.any.value == np.mean(
        [text in right for text, (right, _) in zip(best, sets, strict=True)]
    )
    every = [min(right.values()) > max(wrong.values()) for right, wrong in sets]
    assert one.all.value == np.mean(every)
    each = [score > max(wrong.values()) for right, wrong in sets for score in right.values()]
    assert one.each.value == np.mean(each)
    assert one.any_chance == pytest.approx(
        np.mean([len(right) / (len(right) + len(wrong)) for right, wrong in sets])
    )
    orders = [
        [set(first) == set(right) for first in combinations([*right, *wrong], len(right))]
        for right, wrong in sets
    ]
    assert one.all_chance == pytest.approx(np.mean([np.mean(some) for some in orders]))
    said, _ = ANALYSIS.parts(None, one)
    assert f"{one.questions} questions have {one.answers} right answers" in said.text


def test_one_right_answer_or_few_clusters_say_nothing(tmp_path):
    assert block(evaluated(tmp_path / "one", items(1))) is None
    assert block(evaluated(tmp_path / "few", items(2, 9))) is None


def test_a_choice_that_is_right_and_wrong_is_in_no_set(tmp_path):
    rows = items(2)
    contested = [
        Item(f"{n}-x", "mc_qa", f"A colour of flag {n} is", ("red", "pink"), 1) for n in (0, 1)
    ]
    run = evaluated(tmp_path / "probe", [*rows, *contested])
    assert block(run).questions == 10
    assert measure_several(run.predictions.slice(0, 0), "sum", 0) is None


@pytest.mark.parametrize("letters", [False, True])
def test_scores_that_depend_on_the_other_choices_are_not_pooled(tmp_path, letters):
    probe = jsonl_probe.write(tmp_path / "probe", {"test": items(2)})
    model = tiny_causal.write("gpt2", tmp_path / "gpt2")
    run = evaluation.evaluate(probe, str(model), letters=letters)
    assert (block(run) is None) == letters
