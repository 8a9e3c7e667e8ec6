"""The executor that is always there: one run after another, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluation.executors.base import Ended
from evaluation.runs.spec import RunSpec
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.progress import Progress, silent


@dataclass(frozen=True)
class InProcess:
    """Executes runs in this process, those of one model after each other.

    Attributes:
        progress: told what is being done.
    """

    progress: Progress = silent

    def execute(self, specs: Sequence[RunSpec]) -> Iterator[Ended]:
        """See `evaluation.executors.base.Executor`; a model is loaded once for all of its runs."""
        from evaluation.runs.executor import execute, model_of

        models: dict[str, list[int]] = {}
        for at, spec in enumerate(specs):
            model, options = model_of(spec)
            models.setdefault(f"{model} {options.model_dump_json()}", []).append(at)
        places = [at for some in models.values() for at in some]
        done = 0

        def numbered(what: str, finished: int, total: int) -> None:
            self.progress(f"run {done + 1} of {len(specs)}: {what}", finished, total)

        while done < len(places):
            left = places[done:]
            outcomes = execute([specs[at] for at in left], progress=numbered, reports=False)
            try:
                for at, outcome in zip(left, outcomes, strict=True):
                    yield ended(at, outcome.result)
                    done += 1
            except Exception as error:  # of a plugin, or a fault: it ends its own run alone
                yield unexpected(places[done], error)
                done += 1


def ended(run: int, result: object) -> Ended:
    """Note how a run ended, given its evaluation or its error."""
    if isinstance(result, KbprobeError):
        return Ended(run, str(result), isinstance(result, UsageError))
    return Ended(run)


def unexpected(run: int, error: BaseException) -> Ended:
    """Note an error that no part of kbprobe expects."""
    return Ended(run, f"unexpected {type(error).__name__}: {error}")
