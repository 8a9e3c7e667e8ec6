"""Runs of commands as forks of a process that has imported them: each takes a fraction of a second.

``python -m tests.reliability.forks`` is that process. It reads requests from stdin, a line of JSON
each, and answers on stdout; `ForkServer` starts it and talks to it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

#: What is imported before the first fork, where it is installed.
PRELOADED = (
    "builders.cli", "builders.engine.command", "builders.english.kin", "kb_cache.cli",
    "kb_cache.fetching", "release.cli", "release.annotation.command", "release.exports.exporting",
    "release.hub.publishing", "pyarrow.parquet", "pyarrow.compute", "pyarrow.dataset",
    "pyarrow.csv", "datasets", "rich.table",
)  # fmt: skip
EVALUATION = (
    "evaluation.cli", "torch", "transformers", "evaluation.runs.executor", "evaluation.studies.run",
    "evaluation.report.page", "safetensors.torch",
)  # fmt: skip
#: Seconds after which a run counts as hanging.
LIMIT = 120.0
#: Events of Python's audit that change files; a kill can be timed by their number.
_WRITING = {
    "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.truncate", "os.link", "os.symlink",
    "shutil.rmtree", "fcntl.flock",
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One run of a command.

    Attributes:
        main: the module whose ``main`` it is.
        argv: the words after the program's name.
        cwd: where it runs.
        env: variables added.
        kill_after: seconds after which it is killed with SIGKILL; None: it is not.
        kill_at: the number of the file operation before which it is killed; None: it is not.
        largest_file: bytes that a file may have (RLIMIT_FSIZE); None: as many as there is room.
        learn: whether later runs are forked with all modules imported that this one imports.
    """

    main: str
    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)
    kill_after: float | None = None
    kill_at: int | None = None
    largest_file: int | None = None
    learn: bool = False


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code (minus the signal that ended it), and what it said.

    ``operations`` is how many file operations it made; 0 if it was killed.
    """

    code: int
    seconds: float
    said: str
    operations: int

    @property
    def killed(self) -> bool:
        """Whether it was killed before it ended by itself."""
        return self.code == -signal.SIGKILL


class ForkServer:
    """A process that forks runs."""

    def __init__(self, folder: Path, evaluation: bool = True) -> None:
        """Start it; importing takes it some seconds.

        Args:
            folder: for what the runs print, and the home of libraries.
            evaluation: whether what evaluates is imported as well.
        """
        home = folder / "home"
        home.mkdir(parents=True)
        environment = {
            **os.environ, "HOME": str(home), "HF_HOME": str(home / "hf"), "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "COLUMNS": "100",
            "TQDM_DISABLE": "1", "PYTHONHASHSEED": "0", "HF_DATASETS_OFFLINE": "1",
        }  # fmt: skip
        environment.pop("HF_TOKEN", None)
        words = [sys.executable, "-m", "tests.reliability.forks", str(folder)]
        self._process = subprocess.Popen(
            words + ["evaluation"] * evaluation,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=Path(__file__).parents[2],
        )

    def run(self, *runs: Run, apart: float = 0.0) -> list[Ended]:
        """Run commands at once, the start of each ``apart`` seconds after that of the last."""
        assert self._process.stdin
        assert self._process.stdout
        request = {"runs": [asdict(run) for run in runs], "apart": apart}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the process that forks runs has ended")
        return [Ended(**one) for one in json.loads(answer)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _serve(folder: Path, modules: Sequence[str]) -> None:
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"not preloaded: {name} ({error})", file=sys.stderr)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        started = []
        for number, run in enumerate(request["runs"]):
            if number:
                time.sleep(request["apart"])
            started.append((_fork(Run(**run), folder / f"said-{number}"), time.monotonic()))
        ended = _wait(request["runs"], started, folder)
        if request["runs"][0]["learn"] and (folder / "said-0.modules").exists():
            for name in (folder / "said-0.modules").read_text().split():
                with suppress(Exception):
                    importlib.import_module(name)
        answers.write(json.dumps(ended) + "\n")
        answers.flush()


def _wait(
    runs: Sequence[Mapping[str, Any]], started: list[tuple[int, float]], folder: Path
) -> list[dict[str, Any]]:
    """Kill runs when it is time to, and return how each ended."""
    ended: dict[int, dict[str, Any]] = {}
    while len(ended) < len(runs):
        for number, (process, began) in enumerate(started):
            if number in ended:
                continue
            done, status = os.waitpid(process, os.WNOHANG)
            seconds = time.monotonic() - began
            if done:
                output = (folder / f"said-{number}").read_text("utf-8", "replace")
                said, _, operations = output.rpartition("\0")
                code = os.waitstatus_to_exitcode(status)
                known = operations if operations.isdigit() else ""
                ended[number] = asdict(
                    Ended(code, seconds, said if known else output, int(known or 0))
                )
            elif seconds > (runs[number]["kill_after"] or LIMIT):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.001)
    return [ended[number] for number in range(len(runs))]


def _fork(run: Run, said: Path) -> int:
    """Run a command in a child of its own session; return the child's number."""
    if process := os.fork():
        return process
    code = 1
    try:
        os.setsid()
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = _child(run, output)
        if run.learn:
            said.with_name(f"{said.name}.modules").write_text("\n".join(sys.modules))
    finally:
        os._exit(code)


def _child(run: Run, output: int) -> int:
    import tempfile

    os.environ.update(run.env)
    os.chdir(run.cwd)
    tempfile.tempdir = None
    if run.largest_file is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (run.largest_file, run.largest_file))
    operations = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal operations
        opened = event == "open" and arguments[2] is not None
        if event in _WRITING or (opened and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
            operations += 1
            if operations == run.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    sys.argv = [run.main, *run.argv]
    try:
        code = importlib.import_module(run.main).main(list(run.argv))
    except SystemExit as error:
        code = error.code
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(output, f"\0{operations}".encode())
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), PRELOADED + EVALUATION * (sys.argv[2:] == ["evaluation"]))
