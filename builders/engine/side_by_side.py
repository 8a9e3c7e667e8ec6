"""Probes built side by side, in processes that share the knowledge bases loaded before."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from builders.engine.listing import default_rows
from builders.engine.pipeline import Built, build, write
from builders.engine.request import Request
from kbprobe.errors import KbprobeError
from kbprobe.forks import Forks, can_fork, process_limit

MEMORY = 3 << 29
"""Bytes that a process is expected to take; one that makes all default builds takes 1.4 GiB."""

Report = Callable[[dict[str, Any], Built, Path], None]
"""Prints what was built, given the manifest, the build and the folder."""


class BuildOutcome(NamedTuple):
    """How a build ended: what it printed, and why it failed."""

    output: str
    errors: str
    failure: str | None

    def show(self) -> None:
        """Print what the process has printed, unchanged."""
        for text, stream in ((self.errors, sys.stderr), (self.output, sys.stdout)):
            stream.write(text)
            stream.flush()


class _Copy(StringIO):
    """Keeps what is printed, and looks like the stream that it is for, which may be a terminal."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self._stream.isatty()


def process_count(jobs: int, workers: int | None) -> int:
    """Return how many processes build some probes: by default, as many as fit on this machine."""
    if jobs < 2 or not can_fork() or threading.active_count() > 1:
        return 1
    return min(jobs, workers or process_limit(MEMORY))


def start_builds(
    jobs: Sequence[tuple[Request, Path]], report: Report, count: int
) -> Forks[BuildOutcome]:
    """Fork processes that build probes by their numbers; each keeps what ``report`` prints."""

    def work(number: int, tell: Callable[[str], None]) -> BuildOutcome:
        (request, folder), failure = jobs[number], None
        output, errors = _Copy(sys.stdout), _Copy(sys.stderr)
        with redirect_stdout(output), redirect_stderr(errors):
            try:
                built = build(request, tell)
                tell(f"{request.probe.name}: write")
                report(write(built, folder), built, folder)
            except KbprobeError as error:
                failure = str(error)
        return BuildOutcome(output.getvalue(), errors.getvalue(), failure)

    return Forks(count, work)


def build_outcomes(
    forks: Forks[BuildOutcome],
    jobs: Sequence[tuple[Request, Path]],
    show: Callable[[str, int], None],
) -> Iterator[BuildOutcome | None]:
    """Yield how each build ended, in the given order; None if its process did.

    Those that are largest by default are built first, so that no long one is left to the end.
    """
    rows = default_rows()
    sizes = [rows.get(request.probe.name, math.inf) for request, _ in jobs]
    order = sorted(range(len(jobs)), key=lambda number: -sizes[number])
    done: dict[int, BuildOutcome] = {}
    finished = following = 0

    def shown(phase: str, process: int) -> None:
        show(phase and f"{phase} ({finished} of {len(jobs)} finished)", process)

    for number, ended in forks.results(order, shown):
        done[number] = ended
        finished += 1
        while following in done:
            yield done.pop(following)
            following += 1
    for number in range(following, len(jobs)):
        yield done.get(number)
