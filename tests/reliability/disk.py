"""Commands on file systems that are full or read-only: the folder is named, and nothing is left.

Output, cache and temporary folder each lie on a small file system of their own in turn, with no
room, with part of the room that the command needs, or read-only. A command may fail there, with a
message that names the folder and what moves it; with room again, the same command succeeds.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from kbprobe.files.locks import REMAINS
from tests.reliability.commands import COMMANDS, Command, Held, Stage, staged
from tests.reliability.forks import Ended

#: What a message must name for each folder: the option or variable that moves it.
REMEDIES = {
    "out": re.compile(r"(?<!\S)(-o|--output|--labels)\b"),
    "cache": re.compile(r"KBPROBE_CACHE|--no-cache"),
    "tmp": re.compile(r"TMPDIR"),
}
#: Shares of the room that a command needs which it is given.
SHARES = (0.0, 0.3, 0.6, 0.9)
#: Bytes that are taken as needed where nothing stays.
_LEAST = 128 << 10
#: What no message may hold.
_FAULT = re.compile(r"Traceback|unexpected|a fault of kbprobe")
_FILLER = "filler"
#: Size of the file systems when there is room again.
_AGAIN = "1g"


class NoMounts(Exception):
    """This process may not mount file systems."""


@dataclass
class OnDisk:
    """What became of a command on small file systems.

    Attributes:
        name: the command.
        runs: how many were tried.
        succeeded: of these, how many had room enough, or needed none.
        failures: what was wrong, one text for each failed case.
    """

    name: str
    runs: int = 0
    succeeded: int = 0
    failures: list[str] = field(default_factory=list)


@contextmanager
def small_disk(folder: Path, room: int) -> Iterator[None]:
    """Lay a file system with so many bytes of room over a folder, with the folder's content.

    Raises:
        NoMounts: only the superuser may (``unshare --map-root-user --mount`` makes one).
    """
    held = sum(path.lstat().st_size + 4096 for path in folder.rglob("*"))
    with tempfile.TemporaryDirectory() as kept:
        shutil.copytree(folder, kept, dirs_exist_ok=True)
        size = held + room + (1 << 20)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        try:
            done = subprocess.run(mount, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise NoMounts("there is no mount command") from error
        if done.returncode:
            raise NoMounts(done.stderr.strip())
        try:
            shutil.copytree(kept, folder, dirs_exist_ok=True)
            fill(folder, room)
            yield
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, room: int) -> None:
    """Fill a file system with one file until so many bytes are free."""
    with (folder / _FILLER).open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
    with (folder / _FILLER).open("ab", buffering=0) as file:
        file.truncate(max(0, file.tell() - room))


def remount(folder: Path, option: str) -> None:
    """Change an option of a file system: ``ro``, ``rw`` or its size."""
    subprocess.run(["mount", "-o", f"remount,{option}", str(folder)], check=True)


def on_small_disks(
    stage: Stage,
    command: Command,
    places: Sequence[str] = tuple(REMEDIES),
    shares: Sequence[float] = SHARES,
) -> OnDisk:
    """Run a command with each folder in turn on full and on read-only file systems."""
    done = OnDisk(command.name)
    command.prepare(stage)
    before = Held.of(stage)
    sizes = {place: _size(stage.world / place) for place in places}
    stage.must(command.run(stage, learn=True))
    reference = Held.of(stage)
    for place in places:
        needed = _size(stage.world / place) - sizes[place] or _LEAST
        for share in (*shares, None):
            command.prepare(stage)
            folder = stage.world / place
            case = f"{place} {'read-only' if share is None else f'with {share:.0%} of the room'}"
            done.runs += 1
            with small_disk(folder, int(needed * (share or 0.0))):
                if share is None:
                    remount(folder, "ro")
                (ended,) = stage.run(command.run(stage))
                if share is None:
                    remount(folder, "rw")
                (folder / _FILLER).unlink()
                remount(folder, f"size={_AGAIN}")
                done.succeeded += not ended.code
                found = _wrong(ended, place, folder, before, Held.of(stage), reference)
                (again,) = stage.run(command.run(stage))
                if again.code:
                    found.append(f"with room again: exit code {again.code}: {again.said[-300:]}")
                else:
                    found += [
                        f"with room again: {d}" for d in Held.of(stage).differences(reference)
                    ]
                done.failures += [f"{case}: {what}" for what in found]
    return done


def _wrong(
    ended: Ended, place: str, folder: Path, before: Held, held: Held, reference: Held
) -> list[str]:
    """Say what is wrong with how a run ended, and with what it left."""
    found = []
    said = " ".join(ended.said.split())
    if ended.code not in (0, 1, 2) or _FAULT.search(said):
        found.append(f"exit code {ended.code}: {said[-400:]}")
    elif ended.code:
        # Long paths are broken over lines; outputs may be named as the user named them.
        names = [str(folder), *(name.partition("/")[2] for name in reference.outputs)]
        if not any(name in ended.said.replace("\n", "") for name in names):
            found.append(f"does not name {folder}: {said[-300:]}")
        if not REMEDIES[place].search(said):
            found.append(f"does not say what moves it: {said[-300:]}")
    elif held.outputs != reference.outputs:
        found.append("succeeded with another result")
    # What is computed is kept in the cache for the next run; that one removes it, or uses it.
    for name in sorted(held.others - before.others - reference.others):
        if name.startswith("tmp/") or REMAINS.fullmatch(name.rpartition("/")[2]):
            found.append(f"left: {name}")
    for name, digest in sorted(held.outputs.items()):
        if digest not in (before.outputs.get(name), reference.outputs.get(name)):
            found.append(f"left: {name}")
    return found


def _size(folder: Path) -> int:
    return sum(-(-path.lstat().st_size // 4096) * 4096 for path in folder.rglob("*"))


def run_disks(only: str, _seed: int) -> int:
    """Run each command on small file systems, print a table, and return how many cases failed."""
    found, console = [], Console(stderr=True)
    with tempfile.TemporaryDirectory() as folder, staged(Path(folder)) as stage:
        for command in (command for command in COMMANDS if only in command.name):
            done = on_small_disks(stage, command)
            found.append(done)
            for failure in done.failures:
                console.print(f"{done.name}: {failure}", markup=False, highlight=False)
    shown = Table(title="On full and read-only file systems")
    for name in ("command", "runs", "succeeded", "failed"):
        shown.add_column(name, justify="left" if name == "command" else "right")
    for done in found:
        shown.add_row(done.name, str(done.runs), str(done.succeeded), str(len(done.failures)))
    Console(width=100, file=sys.stdout).print(shown)
    return sum(len(done.failures) for done in found)
