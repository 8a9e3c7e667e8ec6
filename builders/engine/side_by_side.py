"""Probes built side by side, in processes that share the knowledge bases loaded before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from builders.engine.listing import default_rows
from builders.engine.pipeline import Built, build, write
from builders.engine.request import Request
from kbprobe.forks import Forks, JobOutcome

MEMORY = 3 << 29
"""Bytes that a process is expected to take; one that makes all default builds takes 1.4 GiB."""

Report = Callable[[dict[str, Any], Built, Path], None]
"""Prints what was built, given the manifest, the build and the folder."""


def start_builds(
    jobs: Sequence[tuple[Request, Path]], report: Report, count: int
) -> Forks[str, None]:
    """Fork processes that build probes by their numbers, and ``report`` each."""

    def work(number: int, tell: Callable[[str], None]) -> None:
        request, folder = jobs[number]
        built = build(request, tell)
        tell(f"{request.probe.name}: write")
        report(write(built, folder), built, folder)

    return Forks(count, work)


def build_outcomes(
    forks: Forks[str, None],
    jobs: Sequence[tuple[Request, Path]],
    show: Callable[[str, int], None],
) -> Iterator[JobOutcome[None] | None]:
    """Yield how each build ended, in the given order; None if its process did.

    Those that are largest by default are built first, so that no long one is left to the end.
    """
    rows = default_rows()
    sizes = [rows.get(request.probe.name, math.inf) for request, _ in jobs]
    order = sorted(range(len(jobs)), key=lambda number: -sizes[number])

    def shown(phase: str | None, process: int, ended: int) -> None:
        show(f"{phase} ({ended} of {len(jobs)} finished)" if phase else "", process)

    return forks.outcomes(order, shown)
