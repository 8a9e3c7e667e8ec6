"""Workers that Ray starts, on this machine or on a cluster's.

Each worker is an actor that holds one model at a time: it is given runs of that model as long as
there are any, then those of the model with the most left to do. Runs are handed out one at a time
(those that train together, together), so that no worker waits while another has work. A worker
that is lost is replaced, and its runs are handed out again: what it had finished is found in their
folders. Nothing depends on the order in which runs end.
"""

from __future__ import annotations

import logging
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from evaluation.executors.base import Ended
from evaluation.runs.folders import OWN
from evaluation.runs.spec import RunSpec
from evaluation.workers import Session
from kbprobe.errors import KbprobeError, MissingDependencyError
from kbprobe.files import replacing_folder
from kbprobe.files.targets import unwritable
from kbprobe.forks import next_job
from kbprobe.processes import outside_working_directory
from kbprobe.terminal.progress import Progress, silent

LOST = 3
"""Maximum number of times that runs are reassigned because their worker was lost."""
PASSED_ON = ("KBPROBE_CACHE", "HF_HOME", "HF_HUB_OFFLINE", "NLTK_DATA")
"""Environment variables that are passed on to workers."""
_MARKER = ".kbprobe-suite"
Files = Mapping[str, bytes]


class Worker:
    """Executes runs in a separate process, keeping the model of the last one loaded.

    Args:
        marker: a file in the suite's folder, and what it holds: a worker that cannot read it sends
            results back instead of writing them.
        folder: where the driver runs: paths are relative to it.
        environment: environment variables of this process.
    """

    def __init__(
        self, marker: tuple[str, str], folder: str, environment: Mapping[str, str]
    ) -> None:
        os.environ.update(environment)
        with suppress(OSError):
            os.chdir(folder)
        try:
            self._shared = Path(marker[0]).read_text(encoding="utf-8") == marker[1]
        except OSError:
            self._shared = False
        self._runs: Any = None

    def run(self, specs: Sequence[RunSpec]) -> list[tuple[Ended, Files | None]]:
        """Execute runs of one model; return how each ended, and its files if they are not shared.

        The numbers of the runs are their indices among those given.
        """
        from evaluation.executors.base import ended, unexpected
        from evaluation.runs.executor import RunsOfModels

        self._runs = self._runs or RunsOfModels(Session(reports=False))
        found: list[tuple[Ended, Files | None]] = []
        with tempfile.TemporaryDirectory() as own:
            places = specs
            if not self._shared:
                places = [replace(s, folder=Path(own, str(n))) for n, s in enumerate(specs)]
            while len(found) < len(places):
                left = places[len(found) :]
                try:
                    for outcome in self._runs.outcomes(left):
                        done = ended(len(found), outcome.result)
                        files = None if self._shared or done.error else _files(outcome.spec.folder)
                        found.append((done, files))
                except KbprobeError as error:  # heads cannot be trained
                    left = places[len(found) :]
                    found += [(ended(len(found) + at, error), None) for at in range(len(left))]
                except Exception as error:  # of a plugin, or a bug: it ends only its own run
                    self._runs.close()
                    found.append((unexpected(len(found), error), None))
        return found


def _files(folder: Path | None) -> Files:
    assert folder is not None
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@dataclass
class _RunBatch:
    """Runs that one worker executes together: their places, and how often they were handed out."""

    places: list[int]
    model: str
    lost: int = 0


@dataclass
class RayWorkers:
    """Executes runs in workers that Ray starts.

    Attributes:
        workers: how many; None: one for each processor, or for each share of a GPU.
        address: of a cluster; None: workers on this machine.
        gpus: of each worker, which may be a fraction; None: 1 where there are GPUs.
        progress: told how many runs have ended.
    """

    workers: int | None = None
    address: str | None = None
    gpus: float | None = None
    progress: Progress = silent

    def execute(self, specs: Sequence[RunSpec]) -> Iterator[Ended]:
        """See `evaluation.executors.base.Executor`.

        Raises:
            MissingDependencyError: Ray is not installed.
            KbprobeError: the cluster cannot be reached.
        """
        with connected(self.address) as ray:
            yield from self._execute(ray, specs)

    def _execute(self, ray: Any, specs: Sequence[RunSpec]) -> Iterator[Ended]:
        from evaluation.runs.executor import model_key
        from evaluation.runs.side_by_side import batches

        resources = ray.cluster_resources()
        gpus = (1.0 if resources.get("GPU") else 0.0) if self.gpus is None else self.gpus
        have = resources.get("GPU", 0) / gpus if gpus else resources.get("CPU", 1)
        folder = specs[0].folder
        assert folder is not None
        waiting = [_RunBatch(places, model_key(specs[places[0]])) for places in batches(specs)]
        count = min(self.workers or max(1, int(have)), len(waiting))
        with _marked(folder.parent) as marker:
            new = _starter(ray, gpus, marker)
            yield from self._hand_out(ray, specs, waiting, [new() for _ in range(count)], new)

    def _hand_out(
        self,
        ray: Any,
        specs: Sequence[RunSpec],
        waiting: list[_RunBatch],
        idle: list[Any],
        new: Any,
    ) -> Iterator[Ended]:
        held: dict[Any, str] = {}
        running: dict[Any, tuple[Any, _RunBatch]] = {}
        done = 0
        while waiting or running:
            while idle and waiting:
                worker = idle.pop()
                batch = next_job(
                    waiting, attrgetter("model"), held.get(worker), list(held.values())
                )
                held[worker] = batch.model
                running[worker.run.remote([specs[at] for at in batch.places])] = worker, batch
            self.progress("runs", done, len(specs))
            (ready,), _ = ray.wait(list(running), num_returns=1)
            worker, batch = running.pop(ready)
            try:
                found = ray.get(ready)
            except ray.exceptions.RayActorError as error:
                held.pop(worker, None)
                idle.append(new())
                batch.lost += 1
                if batch.lost <= LOST:
                    waiting.append(batch)
                    continue
                said = f"its worker was lost {batch.lost} times: {str(error).splitlines()[0]}"
                found = [(Ended(at, said), None) for at in range(len(batch.places))]
            except ray.exceptions.RayError as error:
                idle.append(worker)
                said = f"unexpected {type(error).__name__}: {str(error).splitlines()[-1]}"
                found = [(Ended(at, said), None) for at in range(len(batch.places))]
            else:
                idle.append(worker)
            for ended, files in found:
                place = batch.places[ended.run]
                folder = specs[place].folder
                if files is not None and folder is not None:
                    _write(files, folder)
                done += 1
                yield replace(ended, run=place)


def _starter(ray: Any, gpus: float, marker: tuple[str, str]) -> Any:
    """Return a function that starts a worker."""
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environment["TQDM_DISABLE"] = "1"
    # On GPUs a worker needs a processor to feed it; without any, one to compute on.
    actor = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=0)(Worker)
    return lambda: actor.remote(marker, os.getcwd(), environment)


@contextmanager
def _marked(folder: Path) -> Iterator[tuple[str, str]]:
    """Put a file into a folder during the block; yield its path and its content."""
    text = uuid.uuid4().hex
    path = folder.absolute() / f"{_MARKER}-{text[:8]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        yield str(path), text
    finally:
        path.unlink(missing_ok=True)


def _write(files: Files, folder: Path) -> None:
    """Write the results that a worker sent, atomically."""
    with replacing_folder(folder, OWN) as aside:
        for name, content in files.items():
            path = aside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


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
