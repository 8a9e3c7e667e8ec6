"""What a suite will take: rows and tokens of each run, and time from a short timed sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.runs.checks import check_split
from evaluation.runs.spec import RunSpec
from evaluation.suites.plan import PlannedRun
from kbprobe.errors import KbprobeError
from kbprobe.progress import Progress, silent

SAMPLE = 16
"""Rows that are scored to find out tokens a row, and tokens a second."""


@dataclass(frozen=True)
class Forecast:
    """What one run is expected to take.

    Attributes:
        run: the run.
        rows: rows to score; None: not known without reading the probe.
        tokens: of all sequences, padding left out; None: not known.
        seconds: of scoring; None: not known.
        problem: why the sample could not be scored; "": it could.
    """

    run: PlannedRun
    rows: int | None
    tokens: int | None = None
    seconds: float | None = None
    problem: str = ""


def forecast(
    runs: Sequence[PlannedRun], sample: int = SAMPLE, progress: Progress = silent
) -> list[Forecast]:
    """Estimate what runs will take; finished ones take nothing.

    Of each probe and model some rows are scored as the run would score them, without the cache and
    without training; tokens and seconds are scaled by the number of rows. Loading a model,
    training and writing results are not part of it.

    Args:
        runs: of a suite.
        sample: rows to score; 0: none, and neither tokens nor seconds are estimated.
        progress: told what is being done.
    """
    known: dict[str, tuple[float, float] | str] = {}
    found = []
    for done, run in enumerate(runs):
        rows = 0 if run.finished else _rows(run.spec)
        if run.finished or not sample or rows is None:
            found.append(Forecast(run, rows, 0 if run.finished else None))
            continue
        plain = _sampled(run.spec, sample)
        name = plain.run.model_dump_json() + f"{plain.probe} {plain.model} {dict(plain.options)}"
        if name not in known:
            progress("timing samples", done, len(runs))
            known[name] = _measured(plain)
        measured = known[name]
        if isinstance(measured, str):
            found.append(Forecast(run, rows, problem=measured))
        else:
            tokens, seconds = measured
            found.append(Forecast(run, rows, round(rows * tokens), rows * seconds))
    return found


def _rows(spec: RunSpec) -> int | None:
    """Return how many rows a run scores, as far as a manifest tells."""
    found = check_split(spec.probe, spec.run.split, spec.run.config)
    if found is None or not found.entries:
        return None
    rows = sum(entry.rows for entry in found.entries)
    return rows if spec.run.limit is None else min(rows, spec.run.limit)


_OF_LEARNING = ("train", "learner", "train_seed", "train_on", "mix_in", "mix_rows", "fold")


def _sampled(spec: RunSpec, sample: int) -> RunSpec:
    """Return a run over few rows of the same probe, without anything that is learnt."""
    values = spec.run.model_dump(exclude_unset=True, exclude=set(_OF_LEARNING) | {"labels"})
    changes = {"limit": sample, "limit_by": "rows", "cache": False, "facts": False, "seed": 0}
    return RunSpec.parse(spec.probe, spec.model, {**values, **changes})


def _measured(spec: RunSpec) -> tuple[float, float] | str:
    """Return tokens and seconds of scoring a row, or what went wrong."""
    from evaluation.runs.executor import execute

    (outcome,) = execute([spec])
    if isinstance(outcome.result, KbprobeError):
        return str(outcome.result)
    results = outcome.result.results
    rows = max(1, results.metrics.items)
    return results.timings.tokens / rows, (results.timings.encode + results.timings.score) / rows


def totals(found: Sequence[Forecast]) -> Counter[str]:
    """Sum up: ``runs``, ``finished``, ``unknown`` (of these), ``rows``, ``tokens``, ``seconds``."""
    total: Counter[str] = Counter(runs=len(found))
    for one in found:
        total["finished"] += one.run.finished
        total["rows"] += one.rows or 0
        total["tokens"] += one.tokens or 0
        total["seconds"] += round(one.seconds or 0)
        total["unknown"] += not one.run.finished and one.seconds is None
    return total
