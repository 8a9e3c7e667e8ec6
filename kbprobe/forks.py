"""Work shared out to forked processes, which have all that this one has loaded, without a copy.

Only on Linux is forking safe: system libraries of macOS fail in forked processes, and Windows has
none.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
Work = Callable[[int, Callable[[str], None]], Result]
"""Does the job of a number; tells the phases that it reaches."""


def can_fork() -> bool:
    """Return whether this process may fork others; daemonic ones may not."""
    return sys.platform == "linux" and not multiprocessing.current_process().daemon


def process_limit(memory: int) -> int:
    """Return how many processes that take so many bytes have a processor and memory; at least 1.

    Processors and memory are those that the system gives this process (affinity, cgroup v2). Only
    for Linux.
    """
    available = 1024 * int(_field("/proc/meminfo", "MemAvailable:") or 0)
    group = Path(f"/sys/fs/cgroup{_field('/proc/self/cgroup', '0::')}")
    for folder in (group, *group.parents):
        with suppress(OSError, ValueError):  # no group, or "max"
            most = int((folder / "memory.max").read_text(encoding="ascii"))
            used = int((folder / "memory.current").read_text(encoding="ascii"))
            cached = int(_field(str(folder / "memory.stat"), "inactive_file "))
            available = min(available, most - used + cached)
    return max(1, min(len(os.sched_getaffinity(0)), available // memory))


def _field(path: str, start: str) -> str:
    """Return what follows a start of a line, up to a space; empty if no line starts so."""
    with suppress(OSError):
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line.startswith(start) and (words := line.removeprefix(start).split()):
                return words[0]
    return ""


def end_with_parent() -> None:
    """In a forked process: leave Ctrl-C to the parent, and end when the parent does."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Forks(Generic[Result]):
    """Forked processes that take jobs as they become free; they end with the block.

    Make it before threads start, such as that of a progress display.
    """

    def __init__(self, count: int, work: Work[Result]) -> None:
        """Fork ``count`` processes; what ``work`` returns must be picklable."""
        context = multiprocessing.get_context("fork")
        self._processes, self._pipes = [], list[Connection]()
        usual = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            for _ in range(count):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs, work), daemon=True)
                process.start()
                theirs.close()  # so that reading ends when the process does
                self._processes.append(process)
                self._pipes.append(ours)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, usual)

    def __enter__(self) -> Forks[Result]:
        """Return the processes."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        self.end()

    def end(self) -> None:
        """Interrupt all processes, as Ctrl-C would, and wait until they have ended."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()

    def results(
        self, jobs: Iterable[int], show: Callable[[str, int], None]
    ) -> Iterator[tuple[int, Result]]:
        """Share jobs out in their order; yield the number and result of each as it is done.

        At the end all processes have ended.

        A job is not yielded if it raised an error or its process was killed: done in this process,
        it says why. ``show`` is called with each phase and the number of the process.
        """
        waiting, busy = deque(jobs), dict[Connection, int]()

        def give(pipe: Connection) -> None:
            if waiting:
                with suppress(OSError):  # the process was killed
                    pipe.send(waiting[0])
                    busy[pipe] = waiting.popleft()

        for pipe in self._pipes:
            give(pipe)
        while busy:
            ready = wait(list(busy))
            for number, pipe in enumerate(self._pipes):
                if pipe not in ready:
                    continue
                try:
                    done, told = pipe.recv()
                except (EOFError, OSError):
                    del busy[pipe]
                    show("", number)
                    continue
                if not done:
                    show(told, number)
                    continue
                job = busy.pop(pipe)
                show("", number)
                give(pipe)
                yield job, told
        self.end()


def _serve(pipe: Connection, work: Work[Any]) -> None:
    """Do one job after the other until interrupted; an error ends the process without a word."""

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    try:
        end_with_parent()
        signal.signal(signal.SIGTERM, interrupt)
        while True:
            pipe.send((True, work(pipe.recv(), lambda phase: pipe.send((False, phase)))))
    finally:
        os._exit(1)  # Nothing that the parent holds, such as locks, is given up here.
