"""Item analysis by hand, on simulated models of known abilities, and what is refused."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.cli import main
from evaluation.results.items import ItemAnswers, point_biserial, rivals
from evaluation.studies.base import StudyRequest, summarise_folders
from evaluation.studies.items import ITEMS, ItemRow, ItemsOptions
from evaluation.studies.table import StudyTables
from kbprobe.arrays import Ints
from kbprobe.errors import UsageError
from tests.evaluation.saved_runs import save_run
from tests.evaluation.test_curve_page import HOSTILE, read

Save = Callable[..., Path]
ROWS, WRONG, FIRST = 500, 5, 25
DATA = Path(__file__).parent / "data"
USED = range(1, 11)
"""Columns of the answers of a real probe: choices, key, changed, and seven models."""


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write the folder of a run whose predictions are given."""
    count = iter(range(100))

    def write(model: str, *arguments: Any, **named: Any) -> Path:
        return save_run(tmp_path / f"run{next(count)}", model, *arguments, **named)

    return write


def analyse(*folders: Path, output: Path | None = None, **options: Any) -> StudyTables:
    request = StudyRequest(ITEMS, options=ItemsOptions(**options), output=output)
    summary: StudyTables = summarise_folders(request, folders)
    return summary


def items_of(summary: StudyTables) -> list[ItemRow]:
    names = ItemRow.model_fields
    return [ItemRow(**{name: row[name] for name in names}) for row in summary.tables["items"]]


def simulate(seed: int, models: int, choices: int = 4) -> tuple[ItemAnswers, Ints]:
    """Draw models of different abilities on items of different difficulty (a 3PL model).

    Their errors are alike: each item's wrong choices attract all models unequally. The keys of
    five items are changed; their numbers are returned.
    """
    generator = np.random.default_rng(seed)
    ability = np.linspace(-0.5, 2.5, models)
    difficulty = generator.normal(0, 1, (ROWS, 1))
    slope = generator.lognormal(0, 0.3, (ROWS, 1))
    knows = 1 / (1 + np.exp(-slope * (ability - difficulty)))
    is_right = generator.random(knows.shape) < 1 / choices + (1 - 1 / choices) * knows
    true = generator.integers(0, choices, ROWS)
    attraction = generator.dirichlet(np.ones(choices - 1), ROWS)
    drawn = [generator.choice(choices - 1, models, p=shares) for shares in attraction]
    errors = (true[:, None] + 1 + np.stack(drawn)) % choices
    changed = generator.choice(ROWS, WRONG, replace=False)
    key = true.copy()
    key[changed] = (true[changed] + generator.integers(1, choices, WRONG)) % choices
    said = np.where(is_right, true[:, None], errors)
    return ItemAnswers(key, np.full(ROWS, choices), said), changed


def found_among_first(answers: ItemAnswers, changed: Ints) -> int:
    order = np.argsort(-rivals(answers).evidence, kind="stable")
    return int(np.isin(changed, order[:FIRST]).sum())


def test_point_biserial_is_pearsons_correlation_with_the_rest() -> None:
    answers, _ = simulate(0, models=7)
    holes = np.random.default_rng(1).random(answers.chosen.shape) < 0.1
    answers = answers._replace(chosen=np.where(holes, -1, answers.chosen))
    found = point_biserial(answers)
    for item in range(60):
        scored = answers.scored[item]
        rest = np.delete(answers.right, item, axis=0)[:, scored].sum(axis=0)
        rest = rest / np.delete(answers.scored, item, axis=0)[:, scored].sum(axis=0)
        right = answers.right[item, scored]
        if right.all() or not right.any():
            assert np.isnan(found[item])
        else:
            assert found[item] == pytest.approx(np.corrcoef(right, rest)[0, 1])


def test_evidence_by_hand() -> None:
    """Models right on 8, 8 and 2 of the 10 other items; the first two choose 1 and not the key."""
    key = np.zeros(11, dtype=np.int64)
    said = np.ones((11, 3), dtype=np.int64)
    said[1:9, :2] = 0
    said[1:3, 2] = 0
    said[0] = (1, 1, 0)
    found = rivals(ItemAnswers(key, np.full(11, 3), said))
    good, poor = 8.5 / 11, 2.5 / 11
    assert poor < 1 / 3, "no better than chance: no vote"
    assert found.choice[0] == 1
    assert found.evidence[0] == pytest.approx(2 * math.log(good * 2 / (1 - good)))
    # All models right: no rival, and the evidence is for the key.
    assert found.choice[1] == -1
    assert found.evidence[1] < 0


@pytest.mark.parametrize("models", [6, 12])
def test_wrong_keys_are_among_the_first(models: int) -> None:
    """Five of 500 keys are wrong: of 20 such probes nearly all are found among the first 25."""
    probes = [simulate(seed, models) for seed in range(20)]
    found = sum(found_among_first(*probe) for probe in probes)
    assert found >= 0.96 * WRONG * len(probes)
    # The correlation alone finds far fewer: items that no model gets right have none.
    by_correlation = 0
    for answers, changed in probes:
        order = np.argsort(np.nan_to_num(point_biserial(answers)), kind="stable")
        by_correlation += int(np.isin(changed, order[:FIRST]).sum())
    assert by_correlation < found / 2


def test_wrong_keys_of_a_real_probe_are_among_the_first() -> None:
    """Answers of six models and a random one to 500 rows of taxonomy_conjunction.

    The keys of five rows were changed; one model, SmolLM2-135M, is good, the others are weak
    (docs/statistics.md says how they were made).
    """
    table = np.loadtxt(DATA / "wrong_keys.csv", delimiter=",", dtype=str, skiprows=1, usecols=USED)
    table = table.astype(np.int64)
    choices, key, changed, said = table[:, 0], table[:, 1], table[:, 2], table[:, 3:]
    assert (len(key), changed.sum()) == (ROWS, WRONG)
    answers = ItemAnswers(key, choices, said)
    assert found_among_first(answers, np.flatnonzero(changed)) == WRONG


def test_models_that_guess_tell_nothing() -> None:
    generator = np.random.default_rng(3)
    key = np.zeros(200, dtype=np.int64)
    found = rivals(ItemAnswers(key, np.full(200, 4), generator.integers(0, 4, (200, 5))))
    assert np.abs(found.evidence).max() < math.log(100)


@pytest.mark.slow
def test_the_study(save: Save, tmp_path: Path) -> None:
    answers, changed = simulate(1, models=8, choices=3)
    # Golds of saved runs are choice 0: choices are numbered from the key.
    turned = (answers.chosen - answers.key[:, None]) % 3
    folders = [save(f"m{n}", turned[:, n].tolist()) for n in range(8)]
    summary = analyse(*folders, output=tmp_path / "out")
    items, (about,) = items_of(summary), summary.tables["probes"]
    first = {item.id for item in items[:FIRST]}
    assert {f"i{row}" for row in changed} <= first
    assert about["suspected"] == sum("suspected key" in item.remarks for item in items)
    right = answers.right.sum(axis=1)
    assert (about["none_right"], about["all_right"]) == ((right == 0).sum(), (right == 8).sum())
    evidence = [item.evidence for item in items]
    assert evidence == sorted(evidence, reverse=True)
    item = items[0]
    row = int(item.id[1:])
    assert item.chosen == turned[row].tolist()
    assert (item.right, item.for_rival) == (right[row], item.chosen.count(item.rival))
    written = json.loads((tmp_path / "out" / "items.json").read_text())
    assert written["tables"]["items"] == summary.tables["items"]
    with (tmp_path / "out" / "items.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [line["id"] for line in rows] == [item.id for item in items]
    assert rows[0]["other_text"] == ("gold", "wrong", "worse")[item.rival or 0]
    assert int(rows[0]["m7"]) == item.chosen[7]
    page = (tmp_path / "out" / "items.html").read_text()
    assert read(page).tags["script"] == 0
    assert page == ITEMS.files(summary)["items.html"], "the same bytes each time"
    assert f"Suspected wrong keys: {about['suspected']} of 500 items" in page


def test_rows_set_aside_and_partial_runs(save: Save) -> None:
    ids = [f"i{row}" for row in range(4)]
    folders = [save("a", [0, 1, None, 0]), save("b", [0, 1, None, 1]), save("c", [0, 0, None, 1])]
    assert {item.id for item in items_of(analyse(*folders))} == {"i0", "i1", "i3"}, (
        "i2 was scored by none"
    )
    other = save("d", [2, 1], ids=[*ids[:1], "i9"])
    with pytest.raises(UsageError, match="with --partial"):
        analyse(*folders, other)
    items = {item.id: item for item in items_of(analyse(*folders, other, partial=True))}
    assert set(items) == {"i0", "i1", "i3", "i9"}
    assert items["i0"].chosen == [0, 0, 0, 2]
    assert items["i9"].chosen == [None, None, None, 1]
    assert items["i1"].chosen == [1, 1, 0, None]
    elsewhere = save("e", [0, 1, 0], ids=ids[:3], choices=("gold", "other", "worse"))
    with pytest.raises(UsageError, match="same ids with other choices"):
        analyse(*folders, elsewhere, partial=True)


def test_what_a_reader_must_know(save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [save(name, [0, 1, 2, 1, 1, 2]) for name in ("one", "two", HOSTILE)]
    with pytest.raises(SystemExit) as ended:
        main(["items", *map(str, folders)])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "0 of 3 models are above chance" in shown
    assert "one and two give the same answer to every item, and count twice" in shown
    page = ITEMS.files(analyse(*folders))["items.html"]
    assert read(page).tags["script"] == 0


def test_too_few_runs(save: Save) -> None:
    with pytest.raises(UsageError, match="at least 3"):
        analyse(save("one", [0]), save("two", [0]))
    folders = [save(name, [0, 1]) for name in ("one", "two", "three")]
    with pytest.raises(UsageError, match="those of 3 models or more"):
        analyse(*folders, save("one", [0], probe="other", ids=["x"]))
