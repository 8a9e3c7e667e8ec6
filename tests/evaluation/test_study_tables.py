"""Tables of studies: described columns, contrasts by family, and the summary made of them."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from evaluation.cli import main
from evaluation.results.types import Estimate
from evaluation.studies import base, baselines, registry
from evaluation.studies.base import Finished, Study, finished_in, write_record
from evaluation.studies.compare import COMPARE
from evaluation.studies.table import (
    Column,
    Contrast,
    DataTable,
    RunRow,
    Section,
    StudyTables,
    fields,
    run_rows,
    runs_table,
    summary_of,
)
from kbprobe.errors import KbprobeError
from kbprobe.format.sealed import read_sealed
from tests.evaluation.saved_runs import save_run

AXES: dict[str, Column[Finished]] = {
    "model": Column("The model.", lambda run: run.results.model.id)
}


@pytest.fixture
def rows(tmp_path: Path) -> list[RunRow]:
    clusters, families = list("aabbcc"), ["x", "x", "x", "y", "y", "y"]
    answers = {"one": [0, 0, 1, 2, 1, 0], "two": [0, 1, 0, 1, 1, 0]}
    folders = [
        save_run(tmp_path / name, name, own, clusters, families=families)
        for name, own in answers.items()
    ]
    return run_rows([finished_in(folder) for folder in folders], AXES)


def test_rows_are_runs_by_their_axes_and_draws_are_averaged_together(rows: list[RunRow]) -> None:
    runs = [run for row in rows for run in row.runs]
    assert [row.label for row in rows] == ["one", "two"]
    assert [row.accuracy for row in rows] == [run.results.metrics.accuracy for run in runs]
    assert rows[0].less(rows[1]) is None, "runs by themselves are compared row by row"
    (mean,) = run_rows(runs, {}, average=0)
    assert mean.accuracy.value == pytest.approx(0.5)
    over = mean.less(mean.chance)
    assert over is not None
    assert over.value == pytest.approx(100 * (0.5 - mean.chance))


def test_a_contrast_is_of_all_rows_or_of_a_family(rows: list[RunRow]) -> None:
    (pair,) = (Contrast.of(*both, seed=0) for both in combinations(rows, 2))
    assert pair.only_right == (1, 1)
    parts = pair.by("distractor_family")
    assert [(part.name, part.clusters.size) for part in parts] == [("x", 3), ("y", 3)]
    assert sum(part.only_right[0] for part in parts) == pair.only_right[0]
    assert parts[0].same.value == pytest.approx(1 / 3)


def test_a_summary_is_its_tables_with_what_their_columns_mean(
    rows: list[RunRow], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = runs_table(rows, AXES)
    spread = DataTable("spread", [{"mean": 0.25}], fields({"mean": "Mean."}), "Spread")
    sections = [
        Section(
            {"probe": name, "split": "test"},
            [table, spread],
            [table.shown("Accuracy", ("model", "accuracy")), table.dots("Accuracy")],
            [f"Sentence {number}." for number in range(9)],
        )
        for name in ("first", "second")
    ]
    summary = summary_of("made", "Made", sections, "probes")
    assert len(summary.sentences) == 2 * 5, "at most five a section"
    assert summary.columns["runs"]["model"] == "The model."
    (row,) = summary.rows("runs", probe="second", model="two")
    assert isinstance(row["accuracy"], Estimate)
    assert row["source"] == rows[1].runs[0].results.probe.source
    assert summary.document is not None
    overview, first, _ = summary.document.sections
    assert overview.title == "All probes"
    (merged,) = overview.shown
    assert merged == spread_of_all()
    assert [type(part).__name__ for part in first.shown] == ["Findings", "Table", "Dots"]
    write_record("made", summary, {}, tmp_path)
    again = StudyTables.model_validate(read_sealed(tmp_path / "made.json", "", "2.0"))
    assert again.tables == summary.tables
    with pytest.raises(KbprobeError, match="made when it is run"):
        COMPARE.display(again)
    with pytest.raises(SystemExit):
        main(["table", str(tmp_path / "made.json"), "--name", "spread"])
    assert capsys.readouterr().out.splitlines()[1:] == ["first,test,0.25", "second,test,0.25"]


def spread_of_all() -> object:
    from kbprobe.document import Table

    rows = [("first (test)", 0.25), ("second (test)", 0.25)]
    return Table(("", "mean"), rows, "Spread")


def test_a_heat_map_has_the_numbers_of_pairs() -> None:
    records = [{"a": a, "b": b, "n": n} for n, (a, b) in enumerate([("x", "x"), ("x", "y")])]
    table = DataTable("pairs", records, fields({"a": "Row.", "b": "Column.", "n": "Number."}))
    shown = table.heat_map("Pairs", "a", "b", "n", marked=lambda pair: pair["a"] == pair["b"])
    assert (shown.corner, shown.rows, shown.columns) == ("a / b", ["x"], ["x", "y"])
    assert shown.cells == [[0, 1]]
    assert shown.marked == {(0, 0)}


def test_a_study_is_named_and_described_by_its_module() -> None:
    docstring = "Do it.\n\nListed under: Commands to evaluate.\n\nIn detail.\n"
    study = Study("my_package.sizes", docstring, None, print)
    assert (study.name, study.help) == ("sizes", "Do it.\n\nIn detail.")
    assert not any("Listed under" in (study.help or "") for study in registry.STUDIES)
    assert [study.name for study in registry.STUDIES] == list(registry.STUDIES.names())


def test_every_module_with_a_study_is_listed() -> None:
    folder = Path(registry.__file__).parent
    files = [path for path in folder.rglob("*.py") if path.stem not in ("base", "registry")]
    declared = {
        name.lower()
        for path in files
        for name in re.findall(r"^([A-Z_]+) = Study\($", path.read_text("utf-8"), re.MULTILINE)
    }
    assert declared == registry.OWN.keys()
    assert base._readings().keys() == registry.OWN.keys() - {registry.DEFAULT}


def test_what_each_baseline_reads_is_described() -> None:
    assert baselines.READS.keys() == baselines._known_baselines().keys()
