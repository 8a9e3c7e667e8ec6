"""Running a study: its runs, its summary, and the file that the summary goes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel

from evaluation.items.sources import ProbeSource, UnknownSplit
from evaluation.learners.registry import LEARNERS
from evaluation.runs.checks import check_model, check_names, check_runs, check_split
from evaluation.runs.executor import Outcome, announce_requests
from evaluation.runs.folders import holding
from evaluation.runs.side_by_side import execute_side_by_side
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Failed, Finished, StudyRequest, write_summary
from evaluation.tracking import TrackingOptions, check_trackers, log_runs
from evaluation.workers import QUIET, Session
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files.targets import OTHER_FOLDER
from kbprobe.format.suite import suite_of
from kbprobe.options import option_name


def run_study(
    request: StudyRequest,
    session: Session = QUIET,
    *,
    tracking: TrackingOptions | None = None,
    report: Callable[[Outcome], None] = lambda _outcome: None,
) -> BaseModel:
    """Execute a study's runs and summarise their results.

    Raises:
        UsageError: the request cannot be expanded into runs, or all runs were refused.
        KbprobeError: a run failed that the summary needs; finished runs are reused next time.
    """
    check_request(request)
    if tracking is not None:
        check_trackers(tracking)
    specs = request.study.expand(request) if request.study.expand is not None else []
    if not specs:
        raise UsageError(f"{request.study.name} has no runs: name at least one probe and one model")
    study = request.study
    _refuse_shared_places(specs)
    check_runs(specs, session.overwrite)
    finished: list[Finished] = []
    failed: list[Failed] = []

    def run_all(specs: Sequence[RunSpec], lone: bool) -> None:
        done = 0

        def number() -> str:
            return f"run {done + 1} of {len(specs)}: " if len(specs) > 1 else ""

        numbered = replace(session.prefixed(number), reports=study.reports_runs)
        for outcome in execute_side_by_side(specs, numbered):
            done += 1
            if isinstance(outcome.result, KbprobeError):
                if lone:
                    raise outcome.result
                failed.append(Failed(outcome.spec, outcome.result))
            else:
                finished.append(Finished(outcome.result, outcome.spec, outcome.spec.folder))
            report(outcome)

    with ExitStack() as stack:
        if request.output is not None and not study.independent:
            stack.enter_context(holding(request.output, session))
        run_all(specs, lone=len(specs) == 1)
        if study.follow is not None and not failed:
            further = study.follow(request, finished)
            _refuse_shared_places([*specs, *further])
            run_all(further, lone=False)
            specs = [*specs, *further]
        if not failed:
            summary = study.summarise(request, finished)
        elif finished and study.partial:
            summary = study.summarise(request, finished, failed)
        else:
            raise KbprobeError(
                f"{len(failed)} of the {len(specs)} runs of {study.name} failed, the first "
                f"with: {failed[0].error} The others are kept: the same command goes on from them."
            )
        if session.workers.leads and request.output is not None and not study.independent:
            write_summary(study, summary, request.output)
        if session.workers.leads and study.finish is not None:
            study.finish(request, summary)
        if session.workers.leads and study.track is not None and tracking is not None:
            log_runs(study.track(summary), tracking)
        return summary


def forecast_study(request: StudyRequest) -> int:
    """Report what a study's runs would send to an endpoint, and return the number of runs.

    Raises:
        UsageError: the request cannot be expanded into runs, or the runs use no endpoint.
        KbprobeError: a probe or stored answers cannot be read.
    """
    check_request(request)
    specs = request.study.expand(request) if request.study.expand is not None else []
    return len(announce_requests(specs))


def check_request(request: StudyRequest) -> None:
    """Check the names in a request, as far as possible without loading a model.

    Raises:
        UsageError: an unknown scorer or learner; no such probe, config, split or model.
    """
    study, options = request.study, request.defaults.run
    if request.output is not None:
        for probe in request.probes:
            _refuse_inside(request.output, probe)
    if options.scorer is not None or options.learner is not None:
        check_names("", options)
    for name in getattr(request.options, "learners", ()):
        LEARNERS.get(name)
    for probe in request.probes:
        try:
            check_split(probe, options.split, options.config)
        except UnknownSplit:
            # A study that chooses its splits itself does not need the default one.
            if "split" not in study.fixed:
                raise
    if not request.models:
        raise UsageError(
            "no model is named: name one with --model, as a folder, a .gguf file or a Hub id"
        )
    if request.loaded is None and not getattr(request.options, "revisions", ()):
        # With revisions, the folder need not be a checkpoint: the study finds the checkpoints in
        # it.
        for model in request.models:
            check_model(model, options.revision)


def _refuse_inside(output: Path, probe: ProbeSource) -> None:
    """Refuse a folder of results within a probe or its suite: the results would be part of it."""
    if not isinstance(probe, str) or not Path(probe).is_dir():
        return
    built = suite_of(probe)
    place = Path(probe) if built is None else built[0]
    if output.resolve().is_relative_to(place.resolve()):
        raise UsageError(
            f"{output} is within {place}, which holds the {'suite' if built else 'probe'} itself: "
            f"results there would be published with it, and read as a part of it. {OTHER_FOLDER}"
        )


def _refuse_shared_places(specs: Sequence[RunSpec]) -> None:
    """Refuse runs that would write to the same folder or the same checkpoint."""
    folders: dict[Path, RunSpec] = {}
    for spec in specs:
        if spec.folder is None:
            continue
        other = folders.setdefault(spec.folder, spec)
        if other is not spec:
            raise UsageError(
                f"{other.probe_name} with {other.model} and {spec.probe_name} with {spec.model} "
                f"would both go to {spec.folder}. Evaluate them one at a time, each with its own "
                "-o."
            )
    if len(specs) > 1 and (kept := specs[0].single_options()):
        raise UsageError(
            f"{option_name(kept[0])} is for a single run: name one probe and one model"
        )
