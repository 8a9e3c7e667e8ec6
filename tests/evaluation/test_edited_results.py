"""Edited and damaged results are refused, whatever reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation import compare
from evaluation.report.page import make_report
from evaluation.results.types import PREDICTIONS, RESULTS
from evaluation.runs.folders import earlier_results, load
from kbprobe.errors import KbprobeError, UsageError
from tests.evaluation.saved_runs import reseal, save_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_run(tmp_path / "run", "org/model", [0, 1, 2, 0, None], list("aabbc"))


def edit(folder: Path, *keys: str, value: Any) -> None:
    held = json.loads((folder / RESULTS).read_text())
    place = held
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    (folder / RESULTS).write_text(json.dumps(held, indent=2))


def set_column(folder: Path, name: str, values: Any) -> None:
    table = pq.read_table(folder / PREDICTIONS)
    at = table.schema.get_field_index(name)
    changed = pa.array(values, table.schema.field(at).type) if isinstance(values, list) else values
    pq.write_table(table.set_column(at, name, changed), folder / PREDICTIONS)


def test_results_say_by_themselves_whether_they_were_changed(folder: Path) -> None:
    assert load(folder).results.metrics.accuracy.value == 0.5
    sums = json.loads((folder / RESULTS).read_text())["checksums"]
    assert list(sums) == [PREDICTIONS, RESULTS]
    edit(folder, "metrics", "accuracy", "value", value=0.99)
    for read in (load, make_report, lambda path: earlier_results(path, overwrite=False)):
        with pytest.raises(UsageError, match=r"results\.json was changed.*--overwrite"):
            read(folder)
    assert earlier_results(folder, overwrite=True) is None


def test_formatting_and_line_ends_are_no_change(folder: Path) -> None:
    path = folder / RESULTS
    path.write_text(json.dumps(json.loads(path.read_text()), indent=7), newline="\r\n")
    assert load(folder).results.metrics.scored == 4


def test_results_whose_checksums_fit_are_compared_with_the_predictions(folder: Path) -> None:
    whole = (folder / RESULTS).read_text()
    edit(folder, "metrics", "accuracy", "value", value=0.99)
    reseal(folder)
    with pytest.raises(UsageError, match=r"counts 5 items, 4 scored and 4 right.*5, 4 and 2"):
        load(folder)
    held = json.loads(whole)
    del held["checksums"]
    (folder / RESULTS).write_text(json.dumps(held))
    with pytest.raises(UsageError, match="lacks its checksums"):
        load(folder)


def test_all_marked_as_correct(folder: Path, tmp_path: Path) -> None:
    other = save_run(tmp_path / "other", "org/other", [0, 1, 2, 0, 1], list("aabbc"))
    set_column(folder, "correct", [True, True, True, True, None])
    with pytest.raises(UsageError, match=r"predictions\.parquet was changed"):
        compare([folder, other])
    reseal(folder)
    with pytest.raises(UsageError, match=r"'correct' is not whether 'prediction' is the 'answer'"):
        compare([folder, other])
    set_column(folder, "prediction", [0, 0, 0, 0, None])
    reseal(folder)
    with pytest.raises(UsageError, match="row i1 is not the choice with the best score"):
        compare([folder, other])


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("answer", [0, 0, 0, 9, 0], "'answer' names a choice that is not there"),
        ("prediction", [0, 1, -1, 0, None], "'prediction' names a choice that is not there"),
        ("answer", pa.array(list("00000")), r"'answer' holds string instead of int32"),
        ("id", ["a", "b", None, "d", "e"], "'id' lacks 1 value"),
        ("choices", [["a"]] * 5, "'scores' has not one value for each choice"),
        ("choices", [["a", None, "c"]] * 5, "list in the column 'choices' lacks a value"),
        ("tie", [False] * 5, "'prediction' and 'tie' disagree"),
        ("set_aside", [None] * 5, "'prediction' and 'set_aside' disagree"),
        ("scores", [[1.0, float("nan"), 0.0]] * 4 + [[]], "a score is not a number"),
    ],
)
def test_rows_that_no_run_gives(folder: Path, name: str, values: Any, problem: str) -> None:
    set_column(folder, name, values)
    reseal(folder)
    with pytest.raises(UsageError, match=rf"predictions\.parquet.*{problem}.*--overwrite"):
        load(folder)


def flipped(content: bytes, random: Random) -> bytes:
    damaged = bytearray(content)
    damaged[random.randrange(len(content))] ^= 1 << random.randrange(8)
    return bytes(damaged)


@pytest.mark.slow
@pytest.mark.parametrize("checksums", [True, False])
def test_damaged_predictions_never_raise_anything_else(folder: Path, checksums: bool) -> None:
    path, random = folder / PREDICTIONS, Random(0)
    sound, told = path.read_bytes(), load(folder).predictions
    refusals = []
    damages: list[Callable[[], bytes]] = [lambda: flipped(sound, random)] * 3
    damages.append(lambda: sound[: random.randrange(len(sound))])
    for number in range(120):
        path.write_bytes(damages[number % len(damages)]())
        if not checksums:
            reseal(folder)
        try:
            found = load(folder).predictions
        except KbprobeError as error:
            refusals.append(str(error))
        else:
            assert not checksums or found.equals(told)
    assert len(refusals) > 60
    assert all(PREDICTIONS in said for said in refusals)
