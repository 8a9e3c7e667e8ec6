"""Executing runs: models loaded once, finished runs found again, and one folder of results each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from evaluation.models.handle import ModelHandle
from evaluation.options import ModelOptions
from evaluation.progress import Progress, silent
from evaluation.results.types import Results
from evaluation.runs.evaluation import Evaluation, evaluate_run
from evaluation.runs.folders import earlier_results, refuse_other_files, save
from evaluation.runs.run import Run, open_run, ready_scorers
from evaluation.runs.spec import RunSpec
from evaluation.runs.sub_questions import open_sub_questions, relate_sub_questions
from evaluation.workers import ALONE, Workers
from kbprobe.errors import KbprobeError, UsageError


@dataclass(frozen=True)
class Outcome:
    """A run that ended: with an evaluation (made now, or found in its folder) or an error."""

    spec: RunSpec
    result: Evaluation | KbprobeError
    found: bool = False

    def or_raise(self) -> Evaluation:
        """Return the evaluation, or raise the error."""
        if isinstance(self.result, KbprobeError):
            raise self.result
        return self.result


def execute(
    specs: Sequence[RunSpec],
    overwrite: bool = False,
    workers: Workers = ALONE,
    progress: Progress = silent,
) -> Iterator[Outcome]:
    """Execute runs in this process and those that share it, and write their results.

    A model is opened and loaded once for runs that follow each other. An error ends its own run
    alone. Scores of runs that are finished, or were interrupted, are found by the hash of what
    they depend on (:attr:`evaluation.runs.run.Run.key`), whichever study asked for them. With
    ``overwrite``, other results in their folders are replaced.

    Yields:
        The outcome of each run, in order.
    """
    for (name, options), group in groupby(specs, key=_model_of):
        try:
            model = ModelHandle(name, options)
        except KbprobeError as error:
            yield from (Outcome(spec, error) for spec in group)
            continue
        for spec in group:
            try:
                yield _execute(spec, model, overwrite, workers, progress)
            except KbprobeError as error:
                yield Outcome(spec, error)
            except OSError as error:
                reason = f"{error.strerror or error}: {error.filename or spec.folder}"
                yield Outcome(spec, KbprobeError(f"{reason}. Choose another folder with -o."))


def _model_of(spec: RunSpec) -> tuple[str, ModelOptions]:
    return spec.model, ModelOptions(**spec.run.model_dump(include=set(ModelOptions.model_fields)))


def _execute(
    spec: RunSpec, model: ModelHandle, overwrite: bool, workers: Workers, progress: Progress
) -> Outcome:
    progress(f"reading {spec.probe_name}", 0, 0)
    run = open_run(spec, model)
    facts = open_sub_questions(run)
    earlier = None if spec.folder is None else earlier_results(spec.folder, overwrite)
    # Every process must have looked before one of them writes.
    workers.wait()
    done = None
    if earlier is not None and spec.folder is not None and not run.must_fit:
        known = facts is None or earlier.facts is None or _is_of(earlier.facts.results, facts)
        if not (known and _is_of(earlier.results, run)):
            raise UsageError(
                f"{spec.folder} holds other results (of another model, other rows or other "
                "options). Replace them with --overwrite, or choose another folder with -o."
            )
        if facts is None or earlier.facts is not None:
            return Outcome(spec, earlier, found=True)
        refuse_other_files(spec.folder, "written anew with the facts")
        done = earlier
    evaluation = _evaluate(run, facts, workers, progress, done)
    if workers.leads and spec.folder is not None:
        save(evaluation, spec.folder)
    return Outcome(spec, evaluation)


def _is_of(results: Results, run: Run) -> bool:
    """Tell whether results are those that a run would lead to."""
    return (
        results.scoring.key == run.key
        and results.seed == run.spec.run.seed
        and results.metrics.normalization == run.normalization
    )


def _evaluate(
    run: Run,
    facts: Run | None,
    workers: Workers,
    progress: Progress,
    done: Evaluation | None = None,
) -> Evaluation:
    """Evaluate a run, unless that is done, and the facts that its rows rest on, with one model."""

    def facts_progress(what: str, finished: int, total: int) -> None:
        progress(f"facts: {what}", finished, total)

    with ready_scorers(run, workers, progress) as ready:
        if done is None:
            done = evaluate_run(run, ready, workers, progress)
        if facts is None:
            return done
        try:
            alone = evaluate_run(facts, ready, workers, facts_progress)
        except UsageError as error:
            raise UsageError(
                f"{facts.rows.name}: {error} (--no-facts evaluates {run.rows.name} alone)"
            ) from error
    return relate_sub_questions(run, done, alone)
