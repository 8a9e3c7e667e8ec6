"""The executor interface: executes runs, and reports how each of them ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from evaluation.runs.spec import RunSpec
from evaluation.workers import Session
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.terminal.progress import Progress, silent


@dataclass(frozen=True)
class Ended:
    """How a run ended. Its results are in its folder, wherever it was executed.

    Attributes:
        run: the index of its specification among those given.
        error: what went wrong, if anything.
        lasting: whether a retry would fail in the same way, because of an option, a probe or a
            model.
    """

    run: int
    error: str | None = None
    lasting: bool = False


class Executor(Protocol):
    """Executes runs, each of which has a separate folder."""

    def execute(self, specs: Sequence[RunSpec]) -> Iterator[Ended]:
        """Execute runs, and yield each one's end, in any order.

        A run whose folder holds its results is not repeated. An error ends only its own run.

        Raises:
            KbprobeError: nothing can be executed at all.
        """


def batches(specs: Sequence[RunSpec]) -> list[list[int]]:
    """Group runs that must be executed together, by their indices.

    Runs that fit something on the same model share the work (frozen vectors, heads trained side
    by side, longer trainings that continue shorter ones); all others are separate.

    >>> from evaluation.runs.spec import RunSpec
    >>> plain = RunSpec("probe", "bert")
    >>> trained = [plain.vary(train=rows) for rows in (10, 20)]
    >>> batches([plain, *trained, plain.vary(seed=1)])
    [[0], [1, 2], [3]]
    """
    from evaluation.runs.executor import model_key

    together: dict[str, list[int]] = {}
    for at, spec in enumerate(specs):
        key = f"{at}" if spec.run.train is None else model_key(spec)
        together.setdefault(key, []).append(at)
    return list(together.values())


@dataclass(frozen=True)
class InProcess:
    """Executes runs in this process, grouped by model."""

    progress: Progress = silent

    def execute(self, specs: Sequence[RunSpec]) -> Iterator[Ended]:
        """See `evaluation.executors.base.Executor`; a model is loaded once for all of its runs."""
        from evaluation.runs.executor import execute, model_key

        models: dict[str, list[int]] = {}
        for at, spec in enumerate(specs):
            models.setdefault(model_key(spec), []).append(at)
        places = [at for some in models.values() for at in some]
        done = 0

        session = Session(progress=self.progress, reports=False)
        session = session.prefixed(lambda: f"run {done + 1} of {len(specs)}: ")
        while done < len(places):
            left = places[done:]
            outcomes = execute([specs[at] for at in left], session)
            try:
                for at, outcome in zip(left, outcomes, strict=True):
                    yield ended(at, outcome.result)
                    done += 1
            except Exception as error:  # an error of a plugin, or a bug: it ends only its own run
                yield unexpected(places[done], error)
                done += 1


def ended(run: int, result: object) -> Ended:
    """Return how a run ended, given its evaluation or its error."""
    if isinstance(result, KbprobeError):
        return Ended(run, str(result), isinstance(result, UsageError))
    return Ended(run)


def unexpected(run: int, error: BaseException) -> Ended:
    """Return the end of a run with an unexpected error."""
    return Ended(run, f"unexpected {type(error).__name__}: {error}")
