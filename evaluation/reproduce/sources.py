"""The probes of a paper: built before, built now, or the paper's own files."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess  # nosec B404 # of this interpreter, with a command of ours
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kbprobe.errors import UsageError
from kbprobe.format.manifest import holds_manifest
from kbprobe.processes import python_command, python_environment
from kbprobe.terminal import echo
from kbprobe.terminal.progress import Progress

_METADATA = "_metadata"


def built_probes(
    names: Iterable[str],
    folder: Path,
    options: Sequence[str],
    dry_run: bool,
    left_out: list[str],
    progress: Progress,
) -> dict[str, str]:
    """Return the probes in a folder, each in one of its name; build those that are missing.

    Args:
        names: their names.
        folder: where they are, or are built.
        options: the options that they are built with, as they are spelled.
        dry_run: whether to say what would be built, instead of building it.
        left_out: where it is noted which could not be built, and why.
        progress: told what is being done.
    """
    found = {}
    for name in names:
        place = folder / name
        if not holds_manifest(place):
            words = [name, *options, "-o", str(place)]
            command = f"build-probe {shlex.join(words)}"
            echo(f"{'To be built' if dry_run else 'Building'}: {command}", err=True)
            why = None if dry_run else build(words, progress)
            if why is not None:
                left_out.append(f"{name} could not be built ({command}): {why}")
        if holds_manifest(place):
            found[name] = str(place)
    return found


def build(words: Sequence[str], progress: Progress) -> str | None:
    """Build a probe with ``build-probe``, a process of its own: evaluation imports no builder.

    Args:
        words: the arguments of the command, the name of the probe first.
        progress: told what is being done.

    Returns:
        Why it was not built; None if it was.
    """
    progress(f"building {words[0]}", 0, 0)
    command = python_command("-m", "kbprobe", "build-probe", *words)
    done = subprocess.run(  # nosec B603
        command, env=python_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {done.returncode}"


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
