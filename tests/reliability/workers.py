"""Runs a target's cases in forked processes, within limits of time and memory."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from kbprobe.errors import KbprobeError
from tests.reliability.mutations import mutate
from tests.reliability.target import Refused, Target, Undecided

#: Seconds of computing that a case may take; and, where other processes share the processors or it
#: waits for something, seconds by the clock.
TIME_LIMIT, CLOCK_LIMIT = 10.0, 60.0
#: Bytes of memory that a case may take above what the worker had before its first.
MEMORY_LIMIT = 1 << 30
#: Seconds between two looks at a worker's memory.
_LOOK = 0.1
#: Outcomes that are no failures.
PASSED = ("read", "refused")


@dataclass
class Failure:
    """A case that failed: its number, in what way, and what was said."""

    case: int
    outcome: str
    said: str


@dataclass
class Outcomes:
    """What became of a target's cases: how many of each outcome, the failures, the maxima."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    slowest: float = 0.0
    largest: int = 0
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        """How many cases were run."""
        return self.counts.total()

    def add(self, case: int, outcome: str, said: str) -> None:
        """Count a case."""
        self.counts[outcome] += 1
        if outcome not in PASSED:
            self.failures.append(Failure(case, outcome, said))


def run_target(target: Target, cases: range, seed: int, keep: Path | None = None) -> Outcomes:
    """Run cases of a target and count their outcomes.

    Besides those of `PASSED` they are: ``traceback`` (another exception than a
    `KbprobeError`), ``unnamed`` (a refusal that does not name the file), ``differs`` (from the
    independent reading), ``hang``, ``memory``, ``died``.

    Args:
        target: what reads.
        cases: numbers of the cases; the same number and seed make the same mutation.
        seed: of the mutations.
        keep: a folder that takes the files of failures.
    """
    outcomes = Outcomes(target.name)
    context = multiprocessing.get_context("fork")
    began = time.monotonic()
    at = 0
    while at < len(cases):
        ours, theirs = context.Pipe(duplex=False)
        with tempfile.TemporaryDirectory(prefix="kbprobe-reliability-") as folder:
            arguments = (target, cases[at:], seed, Path(folder), theirs, keep)
            worker = context.Process(target=_work, args=arguments, daemon=True)
            worker.start()
            theirs.close()
            at += _watch(worker, ours, outcomes, cases[at:])
            worker.kill()
            worker.join()
    outcomes.seconds = time.monotonic() - began
    return outcomes


def _watch(worker: object, pipe: Connection, outcomes: Outcomes, cases: range) -> int:
    """Take the outcomes of a worker until it ends or has to be ended; return how many cases."""
    assert isinstance(worker, multiprocessing.context.ForkProcess)
    # The first message says that the worker is ready, and how much memory it has.
    if not pipe.poll(120):
        raise RuntimeError(f"{outcomes.name}: the worker did not begin in two minutes")
    try:
        baseline = pipe.recv()
    except EOFError:
        raise RuntimeError(f"{outcomes.name}: the worker ended before its first case") from None
    for done, case in enumerate(cases):
        began, computed = time.monotonic(), _computed(worker.pid)
        while not pipe.poll(_LOOK):
            waited = time.monotonic() - began
            if waited > CLOCK_LIMIT or _computed(worker.pid) - computed > TIME_LIMIT:
                outcomes.add(case, "hang", f"no end after {waited:.0f} s")
                return done + 1
            if (held := _resident(worker.pid)) - baseline > MEMORY_LIMIT:
                outcomes.add(case, "memory", f"took {(held - baseline) >> 20:,} MiB")
                return done + 1
        try:
            outcome, said, seconds, peak = pipe.recv()
        except EOFError:
            worker.join()
            outcomes.add(case, "died", f"the process ended with exit code {worker.exitcode}")
            return done + 1
        outcomes.slowest = max(outcomes.slowest, seconds)
        outcomes.largest = max(outcomes.largest, peak - baseline)
        if peak - baseline > MEMORY_LIMIT:
            outcomes.add(case, "memory", f"took {(peak - baseline) >> 20:,} MiB")
            return done + 1  # the peak would count against all further cases
        outcomes.add(case, outcome, said)
    return len(cases)


def _work(
    target: Target, cases: range, seed: int, folder: Path, pipe: Connection, keep: Path | None
) -> None:
    """Run cases in this process and send what became of each."""
    os.chdir(folder)
    seeds = target.seeds(folder)
    sound = {path: path.read_bytes() for path in seeds}
    for path in seeds:  # imports what readers import, and shows that the input is sound
        _, said = _outcome(target, path)
        if said:
            raise RuntimeError(f"{target.name}: {path.name} is not sound: {said}")
    # What the parent left is freed now, and the peak set back to what remains: memory that is
    # freed during a case would hide what the case takes.
    gc.collect()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    pipe.send(_peak())
    for case in cases:
        random = Random(f"{seed}/{target.name}/{case}")
        path = random.choice(seeds)
        path.write_bytes(mutate(path.name, sound[path], random))
        if keep:  # before it is read: the worker may not survive that
            keep.mkdir(parents=True, exist_ok=True)
            kept = keep / f"{target.name}-{case}-{path.name}"
            kept.write_bytes(path.read_bytes())
        began = time.process_time()  # not the clock's, which runs for other processes as well
        outcome, said = _outcome(target, path)
        seconds = time.process_time() - began
        if keep and outcome in PASSED:
            kept.unlink()
        path.write_bytes(sound[path])
        pipe.send((outcome, said, seconds, _peak()))


def _outcome(target: Target, path: Path) -> tuple[str, str]:
    """Read a file, and compare; the second is what to say of it, "" where there is nothing."""
    refused: KbprobeError | None = None
    found: object = None
    try:
        found = target.read(path)
    except KbprobeError as error:
        refused = error
        if target.names_file and path.name not in str(error):
            return "unnamed", f"{type(error).__name__}: {error}"
    except Exception:
        return "traceback", traceback.format_exc(limit=-6)
    said = f"refused: {refused}" if refused else ""
    if target.expected is not None:
        try:
            expected = target.expected(path)
        except Undecided:
            pass
        except Refused as error:
            if refused is None:
                return "differs", f"accepted what an independent reader refuses: {error}"
        else:
            if refused is not None and target.both_refuse:
                return "differs", f"refused what an independent reader accepts: {refused}"
            if refused is None and found != expected:
                return "differs", _difference(found, expected)
    return ("refused", said) if refused else ("read", "")


def _difference(found: object, expected: object) -> str:
    if isinstance(found, list) and isinstance(expected, list):
        for at, (one, other) in enumerate(zip(found, expected, strict=False)):
            if one != other:
                return f"entry {at}: read {one!r:.300}; an independent reader: {other!r:.300}"
        return f"{len(found)} entries; an independent reader has {len(expected)}"
    return f"read {found!r:.300}; an independent reader: {expected!r:.300}"


def _peak() -> int:
    """Peak of this process's resident memory, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _computed(process: int | None) -> float:
    """Seconds that a process has computed for, 0 if it has ended or the system does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(process: int | None) -> int:
    """Resident memory of a process in bytes, 0 if it has ended or the system does not tell."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()
