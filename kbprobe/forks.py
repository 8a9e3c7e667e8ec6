"""Work shared out to forked processes, which have all that this one has loaded, without a copy.

Only on Linux is forking safe: system libraries of macOS fail in forked processes, and Windows has
none.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from io import StringIO
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Generic, NamedTuple, TextIO, TypeVar

from kbprobe.errors import KbprobeError, UsageError

PATIENCE = 10.0
"""Seconds in which an interrupted process must end."""

Result = TypeVar("Result")
Told = TypeVar("Told")
Work = Callable[[int, Callable[[Told], None]], Result]
"""Does the job of a number; tells what it reaches."""
Show = Callable[[Told | None, int, int], None]
"""Shows what the process of a number tells, None at the end of a job, and how many jobs ended."""


def can_fork() -> bool:
    """Return whether this process may fork others; daemonic ones may not."""
    return sys.platform == "linux" and not multiprocessing.current_process().daemon


def process_count(jobs: int, workers: int | None, memory: int) -> int:
    """Return how many processes do some jobs: ``workers``, or as many as fit on this machine.

    1 where nothing can be forked: threads of this process might hold locks.
    """
    if jobs < 2 or not can_fork() or threading.active_count() > 1:
        return 1
    return min(jobs, workers or process_limit(memory))


def processor_count() -> int:
    """Return how many processors the system gives this process. Only for Linux."""
    return len(os.sched_getaffinity(0))


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
    return max(1, min(processor_count(), available // memory))


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


class JobOutcome(NamedTuple, Generic[Result]):
    """How a job ended: its result, or why it has none, and what it printed."""

    result: Result | None
    error: KbprobeError | None
    output: str
    errors: str

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


class Forks(Generic[Told, Result]):
    """Forked processes that take jobs as they become free; they end with the block.

    Make it before threads start, such as that of a progress display.
    """

    def __init__(
        self,
        count: int,
        work: Work[Told, Result],
        around: AbstractContextManager[object] | None = None,
    ) -> None:
        """Fork ``count`` processes.

        Args:
            count: how many.
            work: does a job; what it tells and returns must be picklable.
            around: entered by each process before its first job, and left when it ends.
        """
        context = multiprocessing.get_context("fork")
        self._processes, self._pipes = [], list[Connection]()
        usual = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            for _ in range(count):
                ours, theirs = context.Pipe()
                words = theirs, work, around or nullcontext()
                process = context.Process(target=_serve, args=words, daemon=True)
                process.start()
                theirs.close()  # so that reading ends when the process does
                self._processes.append(process)
                self._pipes.append(ours)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, usual)

    def __enter__(self) -> Forks[Told, Result]:
        """Return the processes."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        self.end()

    def end(self) -> None:
        """Interrupt all processes, as Ctrl-C would, wait until they have ended, or kill them."""
        for process in self._processes:
            process.terminate()
        last = time.monotonic() + PATIENCE
        for process in self._processes:
            process.join(max(0.0, last - time.monotonic()))
            if process.exitcode is None:  # Stopped, or code that ignores interrupts.
                process.kill()
                process.join()

    def outcomes(
        self,
        jobs: Sequence[int],
        show: Show[Told],
        kind: Callable[[int], Hashable] = lambda _job: None,
    ) -> Iterator[JobOutcome[Result] | None]:
        """Share jobs out, and yield how each ended, by number, as soon as all before it have ended.

        None is yielded for a job that raised an error other than a `KbprobeError`, or whose process
        was killed: done in this process, it says why.

        Args:
            jobs: the numbers from 0 on, in the order in which they are to be started.
            show: called with all that is told.
            kind: a process prefers jobs of the kind of its last one: see `next_job`.
        """
        ended: dict[int, JobOutcome[Result]] = {}
        following = 0
        for job, outcome in self._results(list(jobs), show, kind):
            ended[job] = outcome
            while following in ended:
                yield ended.pop(following)
                following += 1
        for number in range(following, len(jobs)):
            yield ended.get(number)

    def _results(
        self, waiting: list[int], show: Show[Told], kind: Callable[[int], Hashable]
    ) -> Iterator[tuple[int, JobOutcome[Result]]]:
        """Share jobs out; yield number and outcome of each as it ends, then end all processes."""
        busy, last, ended = dict[Connection, int](), dict[Connection, Hashable](), 0

        def give(pipe: Connection) -> None:
            if waiting:
                job = next_job(waiting, kind, last.get(pipe), list(last.values()))
                try:
                    pipe.send(job)
                except OSError:  # the process was killed
                    waiting.insert(0, job)
                else:
                    busy[pipe], last[pipe] = job, kind(job)

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
                    last.pop(pipe, None)
                    show(None, number, ended)
                    continue
                if not done:
                    show(told, number, ended)
                    continue
                job = busy.pop(pipe)
                ended += 1
                show(None, number, ended)
                give(pipe)
                yield job, told
        self.end()


Job = TypeVar("Job")


def next_job(
    waiting: list[Job], kind: Callable[[Job], Hashable], own: Hashable, others: Sequence[Hashable]
) -> Job:
    """Take the next job of a process: of the kind of its last one, else of the most delayed kind.

    That is the kind with the most jobs left for each process that does them.

    >>> waiting = ["a1", "b1", "b2", "c1"]
    >>> [next_job(waiting, lambda job: job[0], own, ["b"]) for own in ("c", "d", "b")]
    ['c1', 'a1', 'b1']
    """
    left: dict[Hashable, int] = {}
    for job in waiting:
        left[kind(job)] = left.get(kind(job), 0) + 1
    wanted = own if own in left else max(left, key=lambda one: left[one] / (1 + others.count(one)))
    return waiting.pop(next(at for at, job in enumerate(waiting) if kind(job) == wanted))


def _serve(pipe: Connection, work: Work[Any, Any], around: AbstractContextManager[object]) -> None:
    """Do one job after the other until interrupted.

    An error other than a `KbprobeError` ends the process without a word.
    """

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    try:
        end_with_parent()
        signal.signal(signal.SIGTERM, interrupt)
        with around:
            while True:
                job = pipe.recv()
                pipe.send((True, _done(work, job, lambda told: pipe.send((False, told)))))
    finally:
        os._exit(1)  # Nothing that the parent holds, such as locks, is given up here.


def _done(work: Work[Any, Any], job: int, tell: Callable[[Any], None]) -> JobOutcome[Any]:
    """Do a job, keeping what it prints."""
    output, errors, error = _Copy(sys.stdout), _Copy(sys.stderr), None
    result = None
    with redirect_stdout(output), redirect_stderr(errors):
        try:
            result = work(job, tell)
        except KbprobeError as caught:
            error = sendable(caught)
    return JobOutcome(result, error, output.getvalue(), errors.getvalue())


def sendable(error: KbprobeError) -> KbprobeError:
    """Return an error with the same message that another process can be sent.

    >>> sendable(UsageError("no such probe"))
    UsageError('no such probe')
    """
    return (UsageError if isinstance(error, UsageError) else KbprobeError)(str(error))
