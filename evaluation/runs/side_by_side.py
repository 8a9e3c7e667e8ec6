"""Several runs on a CPU side by side, in forked processes.

By default only where models are tiny, or none is needed: two threads of one process compute at 94
to 96 percent of twice the speed of one with SmolLM2-135M and MiniLM-L6, but at 74 percent with
BERT-tiny, and all that is not a forward pass takes one. See ``benchmarks/README.md``.

Each process reads probes, loads models and computes on its share of the processors. What a run
writes is what it writes alone. Runs that train together are executed by one process, and a process
prefers runs of the model that it has loaded.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from evaluation.models.checkpoint import NO_MODEL
from evaluation.models.loading import is_cpu
from evaluation.runs.evaluation import Evaluation
from evaluation.runs.executor import Outcome, RunsOfModels, execute, model_key
from evaluation.runs.spec import RunSpec
from evaluation.workers import Session
from kbprobe.checkpoint_files import local_weights_size
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.forks import Forks, process_count, processor_count, sendable
from kbprobe.terminal.progress import Progress

MEMORY = 1 << 30
"""Bytes that a process is expected to take without weights."""
TINY = 64 << 20
"""Maximum number of bytes that loading a tiny model takes: about five million weights."""
_LOADED = {".gguf": 8, "": 3}
"""Bytes that loading takes for a byte of a file, by its ending: GGUF files have 4 of 32 bits."""
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
"""Environment variables that torch and tokenizers read when they are imported."""
_TOLD_SECONDS = 0.1
"""Least time between two reports of one task's progress."""

_Told = tuple[str, int, int]
_Ended = list[tuple[Evaluation | KbprobeError, bool]]


def batches(specs: Sequence[RunSpec]) -> list[list[int]]:
    """Group runs that must be executed together, by their indices.

    Runs that fit something on the same model share the work (frozen vectors, heads trained side
    by side, longer trainings that continue shorter ones); all others are separate.

    >>> from evaluation.runs.spec import RunSpec
    >>> plain = RunSpec("probe", "bert")
    >>> trained = [plain.vary(train=rows) for rows in (10, 20)]
    >>> batches([plain, *trained, plain.vary(seed=1)])
    [[0], [1, 2], [3]]
    """
    together: dict[str, list[int]] = {}
    for at, spec in enumerate(specs):
        key = f"{at}" if spec.run.train is None else model_key(spec)
        together.setdefault(key, []).append(at)
    return list(together.values())


def execute_side_by_side(specs: Sequence[RunSpec], session: Session) -> Iterator[Outcome]:
    """Execute runs side by side if they may be, else one after another; see :func:`execute`.

    A run whose process ends, for want of memory or because of an error other than a `KbprobeError`,
    is repeated in this process when all others have ended.

    Raises:
        UsageError: several processes are asked for, and a run is not on the CPU.
    """
    check_processes(specs, session.processes)
    jobs = batches(specs)
    count = _process_count(specs, len(jobs), session)
    if count == 1:
        yield from execute(specs, session)
        return
    following, ended = 0, dict[int, Outcome]()

    def show(told: _Told | None, process: int, finished: int) -> None:
        what, done, total = told or ("", 0, 0)
        more = f" ({finished} of {len(jobs)} finished)" if len(jobs) > count else ""
        session.line(process)(what and f"{what}{more}", done, total)

    with _forks(specs, jobs, session, count) as forks:
        outcomes = forks.outcomes(
            range(len(jobs)), show, lambda job: model_key(specs[jobs[job][0]])
        )
        for places, outcome in zip(jobs, outcomes, strict=True):
            some = [specs[run] for run in places]
            if outcome is None:
                ended |= zip(places, execute(some, session), strict=True)
            else:
                outcome.show()
                if outcome.error is not None:
                    raise outcome.error
                results = zip(places, some, outcome.result or (), strict=True)
                ended |= {run: Outcome(spec, *result) for run, spec, result in results}
            while following in ended:
                yield ended.pop(following)
                following += 1


def _process_count(specs: Sequence[RunSpec], jobs: int, session: Session) -> int:
    wanted = session.processes
    if wanted == 1 or session.workers.count > 1 or jobs < 2 or not all(map(_on_cpu, specs)):
        return 1
    if "torch" in sys.modules:
        return 1  # A forked process would wait forever for torch's threads.
    if wanted is not None:
        return process_count(jobs, wanted, 0)
    sizes = [_weights(*model) for model in {(spec.model, spec.run.revision) for spec in specs}]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes) or max(known) > TINY:
        return 1
    return process_count(jobs, None, MEMORY + max(known))


def check_processes(specs: Sequence[RunSpec], processes: int | None) -> None:
    """Check that models are on the CPU where several processes are asked for.

    Raises:
        UsageError: one is not.
    """
    if processes not in (None, 1) and not all(map(_on_cpu, specs)):
        raise UsageError(
            f"--workers {processes} is for models that are loaded here, on the CPU: leave it out. "
            "A GPU computes one run after another, and an endpoint is asked by several threads "
            "(--concurrency)."
        )


def _on_cpu(spec: RunSpec) -> bool:
    elsewhere = spec.loaded or spec.run.endpoint or spec.run.device_map
    return not elsewhere and (spec.model == NO_MODEL or is_cpu(spec.run.device))


def _weights(model: str, revision: str | None) -> int | None:
    """Return about how many bytes a model takes to load; None if its files are not here yet."""
    if model == NO_MODEL:
        return 0
    size = local_weights_size(model, revision)
    return size and size * _LOADED[".gguf" if model.endswith(".gguf") else ""]


def _forks(
    specs: Sequence[RunSpec], jobs: Sequence[Sequence[int]], session: Session, count: int
) -> Forks[_Told, _Ended]:
    """Fork processes that execute the runs of a job, by its number."""
    show: list[Progress] = []

    def progress(what: str, done: int, total: int) -> None:
        show[-1](what, done, total)

    runs = RunsOfModels(replace(session, progress=progress))

    @contextmanager
    def around() -> Iterator[None]:
        for name in _THREADS:
            share = max(1, processor_count() // count)
            own = os.environ.get(name, "")
            os.environ[name] = str(min(share, int(own)) if own.isdecimal() else share)
        with runs:
            yield

    def work(job: int, tell: Callable[[_Told], None]) -> _Ended:
        first = jobs[job][0]
        prefix = f"run {first + 1} of {len(specs)}: "
        last, then = "", 0.0

        def told(what: str, done: int, total: int) -> None:
            nonlocal last, then
            if what != last or time.monotonic() >= then:
                last, then = what, time.monotonic() + _TOLD_SECONDS
                tell((f"{prefix}{what}", done, total))

        show[:] = [told]
        outcomes = runs.outcomes([specs[run] for run in jobs[job]])
        return [
            (
                sendable(one.result) if isinstance(one.result, KbprobeError) else one.result,
                one.found,
            )
            for one in outcomes
        ]

    return Forks(count, work, around())
