"""The commands of kbprobe, run in this process: a process of their own takes seconds to start."""

from __future__ import annotations

import subprocess
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO


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
