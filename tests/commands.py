"""The commands of kbprobe, run in this process or in one of their own, which takes seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO
from typing import Any

import pytest

HEAVY = (
    *("torch", "transformers", "pandas", "datasets", "scipy.stats", "scipy.optimize"),
    *("statsmodels", "matplotlib", "requests", "huggingface_hub", "nltk", "wordfreq"),
)
"""Packages that take long to import, and that few commands need."""


def imported_by(module: str, *words: object) -> list[str]:
    """Run a command in a process of its own; return which of ``HEAVY`` it imported."""
    script = (
        f"import sys\nfrom {module} import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as ended: assert not ended.code\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        check=True, capture_output=True, text=True, env=dict(os.environ),
    )  # fmt: skip
    return done.stdout.splitlines()[-1].split()


def interrupted(
    words: Sequence[str], ready: Callable[[], object], group: bool, **options: Any
) -> tuple[int, str]:
    """Start a command, interrupt it once it is ready; return its exit code and what it printed.

    None of its processes may be left. ``group`` interrupts all of them, as a terminal does, or else
    the first alone; ``options`` are those of `subprocess.Popen`.
    """
    process = subprocess.Popen(
        words,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )
    try:
        deadline = time.monotonic() + 100
        while process.poll() is None and not ready():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=100)
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    finally:
        process.kill()
    return process.returncode, errors


def run_here(module: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a command, given the module of its ``main``, and return what a process would."""
    given = [str(word) for word in words]
    with redirect_stdout(StringIO()) as output, redirect_stderr(StringIO()) as errors:
        try:
            code = import_module(module).main(given)
        except SystemExit as ended:
            code = ended.code
    assert code is None or isinstance(code, int)
    return subprocess.CompletedProcess(given, code or 0, output.getvalue(), errors.getvalue())
