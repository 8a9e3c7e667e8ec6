"""The executor interface: executes runs, and reports how each of them ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from evaluation.runs.spec import RunSpec
from evaluation.workers import QUIET, Session
from kbprobe.errors import KbprobeError, UsageError


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


@dataclass(frozen=True)
class InProcess:
    """Executes runs in this process, grouped by model, or in forked ones.

    Attributes:
        session: how; reports are not written.
    """

    session: Session = QUIET

    def execute(self, specs: Sequence[RunSpec]) -> Iterator[Ended]:
        """See `evaluation.executors.base.Executor`; a model is loaded once for all of its runs."""
        from evaluation.runs.executor import model_key
        from evaluation.runs.side_by_side import check_processes, execute_side_by_side

        check_processes(specs, self.session.processes)  # An error of the command, not of a run.
        models: dict[str, list[int]] = {}
        for at, spec in enumerate(specs):
            models.setdefault(model_key(spec), []).append(at)
        places = [at for some in models.values() for at in some]
        done = 0

        session = replace(self.session, reports=False)
        session = session.prefixed(lambda: f"run {done + 1} of {len(specs)}: ")
        while done < len(places):
            left = places[done:]
            outcomes = execute_side_by_side([specs[at] for at in left], session)
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
