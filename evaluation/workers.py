"""The processes that share a run: one, or as many as ``accelerate launch`` started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from evaluation.options import ModelOptions
from kbprobe.errors import KbprobeError, MissingDependencyError, UsageError
from kbprobe.terminal.progress import Progress, silent

UNITS = {
    "tokenizing": "rows",
    "scoring": "rows",
    "reading vectors": "texts",
    "fine-tuning": "steps",
    "training heads": "heads",
}
"""What progress counts, by what is done."""


@dataclass(frozen=True)
class Workers:
    """This process's rank, the number of processes, and how to synchronise and communicate.

    ``gather`` takes this process's message and returns those of all, in order of rank.
    """

    rank: int = 0
    count: int = 1
    wait: Callable[[], None] = lambda: None
    gather: Callable[[str | None], list[str | None]] = lambda message: [message]

    @property
    def leads(self) -> bool:
        """Whether this process writes results and talks to the user."""
        return self.rank == 0

    @contextmanager
    def together(self) -> Iterator[None]:
        """Run a block that may fail; if it fails in one process, it fails in all.

        Raises:
            KbprobeError: the error of the first process that had one.
        """
        error: KbprobeError | None = None
        try:
            yield
        except KbprobeError as caught:
            error = caught
        messages = self.gather(None if error is None else str(error))
        if error is not None:
            raise error
        for rank, message in enumerate(messages):
            if message is not None:
                raise KbprobeError(f"process {rank}: {message}")


ALONE = Workers()


@dataclass(frozen=True)
class Session:
    """How a command executes its runs.

    Attributes:
        overwrite: whether other results in their folders are replaced.
        workers: the processes that share them.
        progress: shows what is done.
        reports: whether folders get a ``report.html``.
        processes: how many may be forked to execute several runs side by side; None: as many as
            fit on this machine, where it pays. See `evaluation.runs.side_by_side`.
        line: returns what shows the progress of a forked process, by its number.
    """

    overwrite: bool = False
    workers: Workers = ALONE
    progress: Progress = silent
    reports: bool = True
    processes: int | None = 1
    line: Callable[[int], Progress] = lambda _process: silent

    def prefixed(self, prefix: Callable[[], str]) -> Session:
        """Return the session with a text, made when it is shown, before what progress shows."""

        def prefixed(what: str, finished: int, total: int) -> None:
            self.progress(f"{prefix()}{what}", finished, total)

        return replace(self, progress=prefixed)


QUIET = Session()
"""A single process that shows no progress and replaces nothing."""


def find_workers(options: ModelOptions) -> Workers:
    """Join the processes that a launcher started; without one, there is a single process.

    With the device ``cpu`` they communicate without a GPU.

    Raises:
        MissingDependencyError: there is a launcher, and accelerate is not installed.
        UsageError: each of the processes would spread a model over the GPUs of all.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return ALONE
    if options.device_map is not None:
        raise UsageError(
            "--device-map spreads one model over all GPUs, and accelerate launch starts a copy "
            "of it for each: run evaluate-probe without accelerate launch, or leave --device-map "
            "out"
        )
    try:
        from accelerate import PartialState
    except ImportError:
        raise MissingDependencyError("accelerate", "eval", "running on several devices") from None
    # All but one wait while that one fine-tunes, which may take hours.
    state = PartialState(cpu=options.device == "cpu", timeout=timedelta(days=2))
    return Workers(state.process_index, state.num_processes, state.wait_for_everyone, _gather)


def _gather(message: str | None) -> list[str | None]:
    from accelerate.utils import gather_object

    gathered: list[str | None] = gather_object([message])
    return gathered
