"""Runs a suite: its unfinished runs, with any executor, and then its summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from evaluation.executors.base import Executor
from evaluation.results.sealed import Sealed, write_sealed
from evaluation.results.types import Model
from evaluation.runs.folders import load
from evaluation.studies.base import Finished, StudyRequest, write_summary
from evaluation.suites.plan import Plan, PlannedRun
from kbprobe.errors import KbprobeError
from kbprobe.targets import OTHER_FOLDER, unwritable

RECORD = "suite.json"
SCHEMA_VERSION = "1.0"


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
    """Return the record of a suite whose runs have all ended."""
    names = [request.output.name for request in plan.requests if request.output is not None]
    return SuiteRecord(
        runs=[
            RecordedRun(
                key=run.key,
                folder=run.folder.relative_to(plan.folder).as_posix(),
                probe=str(run.spec.probe),
                model=run.spec.model,
                options=run.spec.named_options(),
                studies=[names[number] for number in run.studies],
                state="finished" if run.finished else "failed",
                error=run.error,
                rows=run.rows,
                accuracy=run.accuracy,
            )
            for run in plan.sorted_runs
        ]
    )


Report = Callable[[PlannedRun, int, int], None]


@dataclass(frozen=True)
class Done:
    """A suite that was run.

    Attributes:
        record: the contents of ``suite.json``.
        executed: the number of runs executed now; all others were finished before.
        summaries: the studies that have a summary, with their summaries.
        lacking: studies that could not be summarised, by folder name, with the reason.
    """

    record: SuiteRecord
    executed: int
    summaries: Sequence[tuple[StudyRequest, Any]]
    lacking: dict[str, str]

    @property
    def failed(self) -> bool:
        """Whether a run failed, or a summary could not be made."""
        return bool(self.lacking) or any(run.state == "failed" for run in self.record.runs)


def run_suite(
    plan: Plan,
    executor: Executor,
    retries: int = 0,
    report: Report = lambda _run, _done, _all: None,
) -> Done:
    """Execute the runs of a suite that are not finished, and summarise its studies.

    Args:
        plan: the suite's runs.
        executor: what executes them.
        retries: how many more times a failed run is tried, unless its options, its probe or its
            model are invalid.
        report: called with each run as it ends, the number of runs that have ended, and the number
            of runs to execute.

    Raises:
        KbprobeError: nothing can be executed at all, or the suite's folder cannot be written.
    """
    executed = _execute(plan, plan.sorted_runs, executor, retries, report)
    for number, request in enumerate(plan.requests):
        if request.study.follow is not None and not _errors(plan, number):
            further = request.study.follow(request, _finished(plan, number))
            new = plan.add(number, further)
            executed += _execute(plan, new, executor, retries, report)
    summaries, lacking = [], {}
    for number, request in enumerate(plan.requests):
        assert request.output is not None
        if request.study.independent:
            continue
        try:
            summaries.append((request, _summarise(plan, number, request, request.output)))
        except KbprobeError as error:
            lacking[request.output.name] = str(error)
    record = record_of(plan)
    try:
        write_sealed(plan.folder / RECORD, record.model_dump_json(indent=2))
    except OSError as error:
        raise unwritable(plan.folder, error, OTHER_FOLDER) from error
    return Done(record, executed, summaries, lacking)


def _execute(
    plan: Plan, runs: Sequence[PlannedRun], executor: Executor, retries: int, report: Report
) -> int:
    """Execute those of some runs that are not finished; return how many."""
    waiting = first = [run for run in runs if run.to_execute]
    done = 0
    for left in reversed(range(retries + 1)):
        again = []
        for ended in executor.execute([run.spec for run in waiting]) if waiting else ():
            run = waiting[ended.run]
            run.look()
            run.error = ended.error or run.error
            if run.error is not None and left and not ended.lasting:
                again.append(run)
                continue
            done += 1
            report(run, done, len(first))
        # In an order that does not depend on the workers.
        waiting = sorted(again, key=lambda run: run.key)
        for run in waiting:
            run.error = None
    return len(first)


def _errors(plan: Plan, request: int) -> list[str]:
    runs = (plan.runs[key] for key in plan.asked[request])
    return [
        f"{run.spec.probe_name} with {run.spec.model}: {run.error}" for run in runs if run.error
    ]


def _finished(plan: Plan, request: int) -> list[Finished]:
    runs = [plan.runs[key] for key in plan.asked[request]]
    return [Finished(load(run.folder), run.spec, run.folder) for run in runs]


def _summarise(plan: Plan, number: int, request: StudyRequest, output: Path) -> Any:
    if errors := _errors(plan, number):
        raise KbprobeError(
            f"{len(errors)} of its {len(plan.asked[number])} runs failed, the first with: "
            f"{errors[0]}"
        )
    summary = request.study.summarise(request, _finished(plan, number))
    write_summary(request.study, summary, output)
    if request.study.finish is not None:
        request.study.finish(request, summary)
    return summary
