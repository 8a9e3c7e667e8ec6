"""A suite: its runs, each in a folder of its own, executed with any executor, and its summaries.

A run is identified by a hash of what it depends on. It covers contents if they are available
locally (the rows of a built probe, the weights in a model's folder), otherwise the name and
revision. It does not depend on the suite: the same run of another study, in another order or on
another machine, has the same hash.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from evaluation.executors.base import Executor
from evaluation.names import folder_name, options_name
from evaluation.results.types import RESULTS, Model, read_results
from evaluation.runs.checks import check_runs
from evaluation.runs.folders import load
from evaluation.runs.identity import RequestKeys
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, StudyRequest, write_summary
from evaluation.studies.run import check_request
from evaluation.suites.file import MAX_RUNS
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files.targets import OTHER_FOLDER, unwritable
from kbprobe.format.sealed import Sealed, write_sealed

RUNS = "runs"
"""The folder of all runs, within the suite's folder."""
_HASH = 16
"""Number of hexadecimal digits of a run's hash at the end of its folder's name."""
_LONGEST = 120
"""Maximum length of a folder's name before the hash."""
_ENDING = re.compile(rf"-([0-9a-f]{{{_HASH}}})$")


@dataclass
class PlannedRun:
    """A run of a suite.

    Attributes:
        key: the hash of what it depends on; its folder's name ends in it.
        studies: the indices of the requests that need it.
        error: why it failed; None if it did not.
        rows: the number of rows scored; None if it is not finished.
    """

    key: str
    spec: RunSpec
    studies: list[int] = field(default_factory=list)
    error: str | None = None
    rows: int | None = None
    accuracy: float | None = None

    @property
    def finished(self) -> bool:
        """Whether its results exist."""
        return self.rows is not None

    @property
    def to_execute(self) -> bool:
        """Whether it is still to be executed: it has neither results nor an error."""
        return self.rows is None and self.error is None

    def look(self) -> None:
        """Read its results, if they exist; if they are damaged, that is the run's error."""
        if not (self.folder / RESULTS).is_file():
            return
        try:
            metrics = read_results(self.folder).metrics
        except UsageError as error:
            self.error = str(error)
            return
        self.rows, self.accuracy, self.error = metrics.scored, metrics.accuracy.value, None

    @property
    def folder(self) -> Path:
        """The folder of its results, which may not exist yet."""
        assert self.spec.folder is not None
        return self.spec.folder


@dataclass
class SuitePlan:
    """All runs of a suite.

    Attributes:
        runs: the distinct runs, by key.
        asked: for each request, the keys of its runs, in the order of the study.
    """

    folder: Path
    requests: Sequence[StudyRequest]
    runs: dict[str, PlannedRun] = field(default_factory=dict)
    asked: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Look once at what is there already."""
        self._keys = RequestKeys()
        self._there = _folders_by_key(self.folder / RUNS)

    @classmethod
    def of(cls, requests: Sequence[StudyRequest], folder: Path) -> SuitePlan:
        """Expand all requests; errors in any of them are found before anything runs.

        Raises:
            UsageError: an option, a probe or a model is invalid.
        """
        plan = cls(folder, requests)
        for number, request in enumerate(requests):
            assert request.study.expand is not None
            check_request(request)
            plan.asked.append([])
            specs = request.study.expand(request)
            if (runs := sum(map(len, plan.asked)) + len(specs)) > MAX_RUNS:
                raise UsageError(
                    f"the studies have {runs:,} runs so far, more than the {MAX_RUNS:,} of a "
                    "suite. Divide it into several suites."
                )
            plan.add(number, specs)
        return plan

    def add(self, request: int, specs: Iterable[RunSpec]) -> list[PlannedRun]:
        """Add runs of a request, given its index; return those that are new to the suite.

        Raises:
            UsageError: a run is impossible as requested.
        """
        new = []
        for spec in specs:
            key = self._keys.key(spec)[:_HASH]
            if key not in self.runs:
                place = self._there.get(key, self.folder / RUNS / f"{_readable(spec)}-{key}")
                run = PlannedRun(key, replace(spec, folder=place))
                run.look()
                self.runs[key] = run
                new.append(run)
            run = self.runs[key]
            if request not in run.studies:
                run.studies.append(request)
            self.asked[request].append(key)
        check_runs([run.spec for run in new if run.to_execute], overwrite=False)
        return new

    @property
    def sorted_runs(self) -> list[PlannedRun]:
        """All runs sorted by key, an order that does not depend on workers or files."""
        return [self.runs[key] for key in sorted(self.runs)]


def _readable(spec: RunSpec) -> str:
    names = [folder_name(str(spec.probe)), folder_name(spec.model)]
    if options := options_name(spec.named_options()):
        names.append(options)
    return "+".join(names)[:_LONGEST].rstrip("+-.")


def _folders_by_key(folder: Path) -> dict[str, Path]:
    """Return the folders of runs by the hash at the end of their names."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return {}
    matches = ((folder / name, _ENDING.search(name)) for name in names if name[:1] != ".")
    return {match[1]: path for path, match in matches if match}


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


def record_of(plan: SuitePlan) -> SuiteRecord:
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
    plan: SuitePlan,
    executor: Executor,
    retries: int = 0,
    report: Report = lambda _run, _done, _all: None,
) -> Done:
    """Execute the runs of a suite that are not finished, and summarise its studies.

    A failed run is tried again, unless its options, its probe or its model are invalid.

    Raises:
        KbprobeError: nothing can be executed at all, or the suite's folder cannot be written.
    """
    executed = _execute(plan.sorted_runs, executor, retries, report)
    for number, request in enumerate(plan.requests):
        if request.study.follow is not None and not _errors(plan, number):
            further = request.study.follow(request, _finished(plan, number))
            new = plan.add(number, further)
            executed += _execute(new, executor, retries, report)
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


def _execute(runs: Sequence[PlannedRun], executor: Executor, retries: int, report: Report) -> int:
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


def _errors(plan: SuitePlan, request: int) -> list[str]:
    runs = (plan.runs[key] for key in plan.asked[request])
    return [
        f"{run.spec.probe_name} with {run.spec.model}: {run.error}" for run in runs if run.error
    ]


def _finished(plan: SuitePlan, request: int) -> list[Finished]:
    runs = [plan.runs[key] for key in plan.asked[request]]
    return [Finished(load(run.folder), run.spec, run.folder) for run in runs]


def _summarise(plan: SuitePlan, number: int, request: StudyRequest, output: Path) -> Any:
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
