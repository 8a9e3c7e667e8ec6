"""What every executor is: runs in, one note of how each ended out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from evaluation.runs.spec import RunSpec


@dataclass(frozen=True)
class Ended:
    """How a run ended. Its results are in its folder, wherever it was executed.

    Attributes:
        run: the place of its specification among those given.
        error: what went wrong; None: nothing.
        lasting: whether the same error is to be expected again: an option, a probe or a model is
            at fault.
    """

    run: int
    error: str | None = None
    lasting: bool = False


class Executor(Protocol):
    """Executes runs; each has a folder of its own."""

    def execute(self, specs: Sequence[RunSpec]) -> Iterator[Ended]:
        """Execute runs, and yield each one's end, in any order.

        A run whose folder holds its results is found there. An error ends its own run alone.

        Raises:
            KbprobeError: nothing can be executed at all.
        """


def batches(specs: Sequence[RunSpec]) -> list[list[int]]:
    """Divide runs into those that must be executed together, by their places.

    Runs that fit something on the same model share the work (frozen vectors, heads trained side
    by side, longer trainings that go on from shorter ones); all others stand alone.

    >>> from evaluation.runs.spec import RunSpec
    >>> plain = RunSpec("probe", "bert")
    >>> trained = [plain.vary(train=rows) for rows in (10, 20)]
    >>> batches([plain, *trained, plain.vary(seed=1)])
    [[0], [1, 2], [3]]
    """
    from evaluation.runs.executor import model_of

    together: dict[str, list[int]] = {}
    for at, spec in enumerate(specs):
        model, options = model_of(spec)
        alone = spec.run.train is None
        key = f"{at}" if alone else f"{model} {options.model_dump_json()}"
        together.setdefault(key, []).append(at)
    return list(together.values())
