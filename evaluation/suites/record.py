"""``suite.json``: what a suite consists of, and what became of each run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from evaluation.results.sealed import Sealed, read_sealed, write_sealed
from evaluation.results.types import Model
from evaluation.suites.plan import Plan, PlannedRun
from kbprobe.parsing import validated

RECORD = "suite.json"
SCHEMA_VERSION = "1.0"
_REMEDY = "Run the suite again to write it anew: finished runs are kept."


class RecordedRun(Model):
    """A run of the suite."""

    key: str = Field(description="Hash of what the run depends on.")
    folder: str = Field(description="Where its results are, relative to the suite's folder.")
    probe: str = Field(description="The probe, as it was given.")
    model: str = Field(description="The model, as it was given.")
    options: dict[str, Any] = Field(description="Options that differ from their defaults.")
    studies: list[str] = Field(description="The studies that need it, by their folders' names.")
    state: Literal["finished", "failed"]
    error: str | None = Field(description="What went wrong; null: nothing.")
    rows: int | None = Field(description="Rows that were scored.")
    accuracy: float | None = Field(description="The run's accuracy.")


class SuiteRecord(Model, Sealed):
    """All of ``suite.json``; runs are sorted by key."""

    schema_version: str = Field(SCHEMA_VERSION, description="Version of this schema.")
    runs: list[RecordedRun]


def record_of(plan: Plan) -> SuiteRecord:
    """Describe the runs of a suite, all of which have ended."""
    names = [request.output.name for request in plan.requests if request.output is not None]
    return SuiteRecord(
        runs=[_recorded(run, plan.folder, names) for run in plan.sorted_runs],
    )


def _recorded(run: PlannedRun, folder: Path, names: list[str]) -> RecordedRun:
    return RecordedRun(
        key=run.key,
        folder=run.folder.relative_to(folder).as_posix(),
        probe=str(run.spec.probe),
        model=run.spec.model,
        options=run.spec.named_options(),
        studies=[names[number] for number in run.studies],
        state="finished" if run.finished else "failed",
        error=run.error,
        rows=run.rows,
        accuracy=run.accuracy,
    )


def write_record(record: SuiteRecord, folder: Path) -> Path:
    """Write ``suite.json`` into a suite's folder, whole or not at all; return its path.

    Raises:
        OSError: it cannot be written.
    """
    write_sealed(folder / RECORD, record.model_dump_json(indent=2))
    return folder / RECORD


def read_record(folder: Path) -> SuiteRecord:
    """Read a suite's record.

    Raises:
        FileNotFoundError: there is none.
        UsageError: it is damaged, edited or of another version.
    """
    path = folder / RECORD
    held = read_sealed(path, _REMEDY, [SCHEMA_VERSION])
    return validated(held, SuiteRecord, str(path), _REMEDY)
