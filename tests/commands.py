"""The commands of kbprobe, run in this process or in one of their own, which takes seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO

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
