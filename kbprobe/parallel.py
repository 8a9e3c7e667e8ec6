"""Parallel work in threads, forked processes or Ray workers, and the workers of a build."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from kbprobe.errors import KbprobeError, MissingDependencyError
from kbprobe.processes import outside_working_directory

JobT = TypeVar("JobT")
DoneT = TypeVar("DoneT")

PASSED_ON = ("KBPROBE_CACHE", "HF_HOME", "HF_HUB_OFFLINE", "NLTK_DATA")
"""Environment variables that are passed on to workers."""


def side_by_side(
    function: Callable[[JobT], DoneT], jobs: Sequence[JobT], workers: int, *, fork: bool
) -> Iterator[DoneT]:
    """Apply a function to jobs, several at a time; yield what it returns, in order of the jobs.

    Args:
        function: has no side effects other than writing to its own files.
        jobs: its arguments.
        workers: how many jobs at a time.
        fork: whether the work holds the interpreter's lock, so that separate processes are worth
            it. They are forked, so that they share this one's memory, and what they return is
            pickled. Only Linux does that safely: elsewhere there are threads.
    """
    count = min(workers, len(jobs))
    if not fork or count < 2 or sys.platform != "linux":
        with ThreadPoolExecutor(max_workers=max(count, 1)) as threads:
            yield from threads.map(function, jobs)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("fork")
    # Processes inherit the function and the jobs, so only numbers are sent to them.
    with ProcessPoolExecutor(count, context, _begin, (function, jobs)) as pool:
        yield from pool.map(_run, range(len(jobs)))


_inherited: tuple[Callable[[Any], Any], Sequence[Any]]
"""In a forked process: its function, and the jobs."""


def _begin(function: Callable[[Any], Any], jobs: Sequence[Any]) -> None:
    """Prepare a forked process: use one thread, and exit when the parent process exits."""
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


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect to a running cluster, or start workers on this machine (None); yield ``ray``.

    Raises:
        MissingDependencyError: Ray is not installed.
        KbprobeError: the cluster cannot be reached.
    """
    ray = _connect(address)
    try:
        yield ray
    finally:
        if address is None:
            ray.shutdown()


def spread(
    function: Callable[[JobT], DoneT], jobs: Sequence[JobT], address: str | None = None
) -> Iterator[DoneT]:
    """Apply a function to jobs in Ray's workers; yield what it returns, in order of the jobs.

    The jobs are sent together, once, and held in Ray's object store. If a worker is lost, another
    repeats its job.

    Raises:
        KbprobeError: see :func:`connected`; or a job was lost with its worker four times.
    """
    with connected(address) as ray:
        held = ray.put((function, list(jobs)))
        variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        folder = os.getcwd()
        remote = ray.remote(num_cpus=1, max_retries=3)(_in_ray)
        waiting = [remote.remote(held, number, folder, variables) for number in range(len(jobs))]
        while waiting:
            try:
                yield ray.get(waiting.pop(0))
            except ray.exceptions.RayTaskError as error:
                raise error.as_instanceof_cause() from None
            except ray.exceptions.RayError as error:
                reason = str(error).splitlines()[0]
                raise KbprobeError(
                    f"Ray lost a worker: {reason}. Leave --executor ray out to do without."
                ) from error


def _in_ray(
    held: tuple[Callable[[Any], Any], Sequence[Any]], number: int, folder: str, variables: Any
) -> Any:
    os.environ.update(variables)
    with suppress(OSError):  # another machine may not have it
        os.chdir(folder)
    function, jobs = held
    return function(jobs[number])


def _connect(address: str | None) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise MissingDependencyError("ray", "ray", "--executor ray") from None
    if ray.is_initialized():
        return ray
    settings: dict[str, Any] = {"include_dashboard": False} if address is None else {}
    try:
        with outside_working_directory():  # Ray's workers import from where it is started.
            ray.init(
                address=address,
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=False,
                **settings,
            )
    except (ConnectionError, ValueError, RuntimeError) as error:
        where = "on this machine" if address is None else f"at {address}"
        raise KbprobeError(
            f"Ray cannot be used {where}: {str(error).strip()}. Name a running cluster with "
            "--address, or leave --executor ray out."
        ) from error
    return ray


@dataclass(frozen=True)
class Workers:
    """The workers of a build.

    Attributes:
        count: the number of workers on this machine.
        ray: whether Ray's workers render and write the files of large builds.
        address: the address of the Ray cluster; if None, workers are started on this machine.
    """

    count: int = 2
    ray: bool = False
    address: str | None = None


THIS_MACHINE = Workers()
_workers = ContextVar("workers", default=THIS_MACHINE)


def workers() -> Workers:
    """Return the workers of the current build."""
    return _workers.get()


@contextmanager
def using_workers(chosen: Workers) -> Iterator[None]:
    """Use other workers for builds within the block."""
    token = _workers.set(chosen)
    try:
        yield
    finally:
        _workers.reset(token)
