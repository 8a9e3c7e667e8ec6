"""The probes of a paper: built before, built now, or the paper's own files."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess  # nosec B404 # of this interpreter, with a command of ours
import sys
from collections.abc import Mapping
from pathlib import Path

from kbprobe.errors import UsageError
from kbprobe.format.manifest import MANIFEST
from kbprobe.progress import Progress

_METADATA = "_metadata"


def built_probes(names: Mapping[str, str], folder: Path) -> tuple[dict[str, str], list[str]]:
    """Return the probes that were built in a folder, each in one of its name; and those missing."""
    found = {name: str(folder / name) for name in names if (folder / name / MANIFEST).is_file()}
    return found, [name for name in names if name not in found]


def build_command(name: str, folder: Path) -> str:
    """Return the command that builds a probe, for people."""
    return f"build-probe {name} -o {shlex.quote(str(folder / name))}"


def build(name: str, folder: Path, progress: Progress) -> str | None:
    """Build a probe with ``build-probe``, a process of its own: evaluation imports no builder.

    Returns:
        Why it was not built; None if it was.
    """
    progress(f"building {name}", 0, 0)
    words = [sys.executable, "-m", "kbprobe", "build-probe", name, "-o", str(folder / name)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # nosec B603
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    said = lines[-1] if lines else f"exit code {done.returncode}"
    return f"{name} could not be built ({build_command(name, folder)}): {said}"


def published_probes(names: Mapping[str, str], folder: Path, copies: Path) -> dict[str, str]:
    """Find the published files of probes in a folder, by their names.

    A probe's files are in a folder of their own, or one file, or several that name their splits;
    of several, which studies cannot name together, copies are made in a folder.

    Args:
        names: what the names of its files or of its folder contain, by probe: a regular expression.
        folder: where they are.
        copies: where folders of copies are made.

    Raises:
        UsageError: there is no such folder, or no file of any of the probes in it.
    """
    if not folder.is_dir():
        raise UsageError(f"--data {folder}: there is no such folder")
    entries = sorted(path for path in folder.iterdir() if path.name[:1] != ".")
    found = {}
    for name, part in names.items():
        mine = [path for path in entries if re.search(part, _letters(path.name))]
        mine = [path for path in mine if _METADATA not in path.name]
        inner = [path for path in mine if path.is_dir()]
        if inner or len(mine) == 1:
            found[name] = str((inner or mine)[0])
        elif mine:
            (copies / name).mkdir(parents=True, exist_ok=True)
            for path in mine:
                shutil.copy(path, copies / name / path.name)
            found[name] = str(copies / name)
    if not found:
        parts = ", ".join(names.values()).replace("|", " or ")
        raise UsageError(
            f"--data {folder}: nothing there is named after a probe of the paper ({parts})"
        )
    return found


def _letters(name: str) -> str:
    """Return a file's name without what published names vary in."""
    return re.sub(r"[^a-z_]", "", name.lower().replace("-", "_"))
