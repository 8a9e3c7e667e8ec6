"""Work that is done side by side: in threads, or in processes forked from this one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, TypeVar

JobT = TypeVar("JobT")
DoneT = TypeVar("DoneT")


def side_by_side(
    function: Callable[[JobT], DoneT], jobs: Sequence[JobT], workers: int, *, fork: bool
) -> Iterator[DoneT]:
    """Apply a function to jobs, several at a time; yield what it returns, in order of the jobs.

    Args:
        function: with no effect but what it returns, or writes to files of its own.
        jobs: its arguments.
        workers: how many jobs at a time.
        fork: whether the work is worth processes of its own, where it holds the interpreter's
            lock. They are forked, so that they share this one's memory, and what they return is
            pickled. Only Linux does that safely: elsewhere there are threads.
    """
    count = min(workers, len(jobs))
    if not fork or count < 2 or sys.platform != "linux":
        with ThreadPoolExecutor(max_workers=max(count, 1)) as threads:
            yield from threads.map(function, jobs)
        return
    import multiprocessing

    context = multiprocessing.get_context("fork")
    # Processes inherit the function and the jobs: they are told numbers.
    with ProcessPoolExecutor(count, context, _begin, (function, jobs)) as pool:
        yield from pool.map(_run, range(len(jobs)))


_inherited: tuple[Callable[[Any], Any], Sequence[Any]]
"""Of a forked process: what it does, and to what."""


def _begin(function: Callable[[Any], Any], jobs: Sequence[Any]) -> None:
    """Prepare a forked process: one thread, and an end when the process that forked it ends."""
    import ctypes
    import signal

    import pyarrow as pa

    global _inherited
    _inherited = function, jobs
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pa.set_cpu_count(1)


def _run(number: int) -> Any:
    function, jobs = _inherited
    return function(jobs[number])
