"""Atomic writing and safe replacement of files and folders, and checksums.

A writer locks its target (`kbprobe.files.locks`), fills a folder (or file) under a hidden name next
to it and renames it when it is complete. A hidden file or folder whose target nobody has locked was
left by a dead writer: it is removed by the next command that writes into the same parent folder, or
on request (`sweep`).
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import sys
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files.locks import (
    LOCK_ENDING,
    REMAINS,
    hidden_sibling,
    is_shortened,
    lock_path,
    short_name,
    try_lock,
    unlock,
    wait_for_lock,
    writers_name,
)
from kbprobe.reading import check_plain, open_file
from kbprobe.terminal import echo


def keep_others(target: Path, new: Path, ours: Collection[str]) -> None:
    """Keep a folder's files that are not kbprobe's, by adding them to the folder that replaces it.

    They are linked, or copied where the file system has no links: the old folder stays whole.

    Args:
        target: the folder that will be replaced; it need not exist.
        new: the folder that replaces it, complete.
        ours: the files in ``target`` that are not kept, as paths within it with forward slashes.

    Raises:
        UsageError: a file that is to be kept is where a new one belongs. Nothing was changed.
        OSError: a file cannot be copied.
    """
    others = [path for path in _entries(target) if path.as_posix() not in ours]
    if taken := [path.as_posix() for path in others if _collides(target / path, new, path)]:
        raise UsageError(
            f"{target} holds files that are not kbprobe's, where new ones belong: {listed(taken)}. "
            "Move them elsewhere."
        )
    for path in others:
        (new / path).parent.mkdir(parents=True, exist_ok=True)
        _keep(target / path, new / path)


def listed(names: Iterable[Any], shown: int = 10, total: int | None = None) -> str:
    """Return the first few names and how many more there are (of ``total``, if names are cut off).

    >>> listed("abcde", 3)
    'a, b, c and 2 more'
    """
    found = [str(name) for name in names]
    more = (len(found) if total is None else total) - shown
    return ", ".join(found[:shown]) + (f" and {more:,} more" if more > 0 else "")


def refuse_working_directory(folder: Path) -> None:
    """Refuse to replace the working directory, which would leave this process in a deleted one.

    Raises:
        UsageError: the folder is there, and is the working directory or holds it.
    """
    try:
        working = Path(os.path.realpath("."))
    except FileNotFoundError:  # it was removed before
        return
    place = Path(os.path.realpath(folder))
    if place.exists() and working.is_relative_to(place):
        raise UsageError(
            f"{folder} is the working directory, or holds it, and would be replaced as a whole. "
            "Run the command from elsewhere, or name a folder within it."
        )


def _entries(folder: Path) -> Iterator[Path]:
    """Yield the files, links and empty folders in a folder, as paths within it."""
    for parent, folders, files in os.walk(folder, onerror=_fail):
        inside = Path(parent).relative_to(folder)
        links = [name for name in folders if Path(parent, name).is_symlink()]
        yield from (inside / name for name in sorted([*links, *files]))
        if not folders and not files and parent != str(folder):
            yield inside


def _fail(error: OSError) -> None:
    """Raise the error for a folder that cannot be listed, since its contents would be lost."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _collides(there: Path, new: Path, path: Path) -> bool:
    """Return whether the new folder has something at the path of an entry to be kept."""
    if there.is_dir() and not there.is_symlink() and (new / path).is_dir():
        return False
    above = (new / parent for parent in path.parents)
    return os.path.lexists(new / path) or any(
        os.path.lexists(parent) and not parent.is_dir() for parent in above
    )


def _keep(there: Path, here: Path) -> None:
    if there.is_symlink():
        here.symlink_to(os.readlink(there))
    elif there.is_dir():
        here.mkdir(exist_ok=True)
    else:
        try:
            os.link(there, here)
        except OSError:  # no links on this file system, or none to files of another user
            shutil.copy2(there, here)


UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
"""Errors that choosing another folder can avoid: no space, no permission."""

State = frozenset[tuple[str, int, int]] | None
"""Content of a folder: path, size and modification time of each file; None if it is missing."""
_NOT_OURS = ("Thumbs.db", "desktop.ini")
"""Files that file managers create in folders they show; others begin with a dot."""

_expected: dict[Path, State] = {}
"""The content that folders taken by this process (`kbprobe.files.targets`) are expected to have."""
_places: dict[str, Path] = {}
"""Where the paths of these folders led when they were taken: links may be changed since."""
_writers: dict[Path, int] = {}
"""The threads of this process that write targets, by the targets' resolved paths."""
_swept: set[tuple[int, Path]] = set()
"""The folders that this process has swept already, with its process number."""


def file_sha256(path: Path) -> str:
    """Return the sha256 (hex) of a file."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_damage(
    folder: Path, expected: Mapping[str, tuple[str, int | None]], *, full: bool = True
) -> list[str]:
    """Return a sentence for each file that is missing or differs from its record.

    ``expected`` gives sha256 and size (None if not recorded) by the path within the folder.
    Without ``full``, only presence and size are compared.
    """
    damage = []
    for name, (sha256, size) in expected.items():
        path = folder / name
        try:
            found = path.stat().st_size
            if size not in (None, found):
                damage.append(f"{path} has {found:,} bytes instead of {size:,}")
            elif full and file_sha256(path) != sha256:
                damage.append(f"{path} is corrupt: its sha256 is not the recorded one")
        except FileNotFoundError:
            damage.append(f"{path} is missing")
        except OSError as error:
            damage.append(f"{path} cannot be read: {error.strerror or error}")
    return damage


def write_file(target: Path, content: str | bytes) -> None:
    """Write a file as `replacing_file` does."""
    with replacing_file(target) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing_file(target: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yield the path of a file to write, which becomes ``target`` when the block ends well.

    Another writer of the same file waits meanwhile.

    Without ``durable`` the file is not flushed to disk, which is faster; a power failure may then
    damage it.

    Raises:
        OSError: it cannot be written, or the disk is full; an earlier file is kept.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    # Once per process: a folder may hold many files, each written separately.
    if (swept := (os.getpid(), target.parent)) not in _swept:
        _swept.add(swept)
        sweep(target.parent)
    aside = hidden_sibling(target, "new")
    with claim(Path(os.path.realpath(target.parent), target.name)):
        try:
            yield aside
            if durable:
                _flush(aside)
            aside.replace(target)
        except BaseException:
            with suppress(OSError):
                aside.unlink()
            raise


@contextmanager
def replacing_folder(target: Path, ours: Collection[str] | None = None) -> Iterator[Path]:
    """Yield an empty folder that becomes ``target`` when the block ends without an error.

    Its files are flushed to the disk before it is renamed. When the block raises
    (KeyboardInterrupt included) the new folder is removed and ``target`` stays as it was. If the
    process is killed between the two renames of a replacement, the old folder is still there under
    a hidden name, and `settle` restores it: the disk always holds one of the two. What dead
    writers left next to ``target`` is removed first. Another writer waits, unless this process has
    taken the folder (`kbprobe.files.targets.taking`).

    Args:
        target: the folder.
        ours: the files in it that the new ones replace (see `kbprobe.files.targets.own_files`); all
            others are kept. None, for folders that nobody else writes into: nothing is kept.

    Raises:
        UsageError: ``target`` is or holds the working directory, or a file that is to be kept is
            where a new one belongs.
        KbprobeError: ``target`` has changed since it was taken, or leads to another folder.
        OSError: the parent folder cannot be written, the disk is full, or ``target`` exists and
            is not a folder.
    """
    given, target = target, Path(os.path.realpath(target))  # follow a link
    if _places.get(os.path.abspath(given), target) != target:
        raise _led_elsewhere(given)
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "exists and is not a folder", str(target))
    refuse_working_directory(target)
    with ExitStack() as stack:
        if target not in _expected:
            stack.enter_context(claim(target))
            settle(target)
        aside = hidden_sibling(target, "new")
        try:
            aside.mkdir()
            yield aside
            for parent, _, files in os.walk(aside):  # the rename must not overtake the content
                for path in (*files, ""):
                    _flush(Path(parent, path))
            if ours is not None:
                keep_others(target, aside, ours)
            _swap(aside, target)
        except BaseException:
            remove_tree(aside)
            raise


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield an empty folder for temporary files, which is removed at the end.

    Those that dead processes left are removed first.

    Raises:
        KbprobeError: it cannot be made, or there is no room for a file in it.
    """
    place = Path(tempfile.gettempdir())
    owner = place / f"kbprobe-{secrets.token_hex(4)}"
    folder = hidden_sibling(owner, "new")
    try:
        sweep(place)
        with claim(owner):
            try:
                folder.mkdir(mode=0o700)
                yield folder
            finally:
                remove_tree(folder)
    except OSError as error:
        if error.errno in UNWRITABLE and f".{owner.name}." in str(error.filename or folder):
            reason = error.strerror or error
            raise KbprobeError(
                f"the folder for temporary files, {place}, cannot be written to: {reason}. Set "
                "TMPDIR to another one."
            ) from error
        raise


@contextmanager
def claim(target: Path, remedy: str = "") -> Iterator[bool]:
    """Keep all other processes and threads from writing a target; wait for one that does.

    Args:
        target: a file or folder that need not exist, as a resolved path; its parent is created.
        remedy: the sentence that says how to choose another place.

    Yields:
        Whether this one had to wait.

    Raises:
        UsageError: this thread writes it already, or it has no name.
        OSError: its lock cannot be created.
    """
    if not target.name:
        raise UsageError(f"{target} cannot be written: it has no name of its own. {remedy}")
    if _writers.get(target) == threading.get_ident():
        raise UsageError(f"{target} would be written twice by this command. {remedy}")
    attempts = 0

    def waiting() -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 2:  # One that removes what dead writers left takes but a moment.
            echo(f"Waiting for another process, which writes {target}.", err=True)

    missing = [folder for folder in target.parents if not folder.exists()]
    try:
        lock = wait_for_lock(lock_path(target), waiting)
        _writers[target] = threading.get_ident()
        try:
            yield attempts > 0
        finally:
            _writers.pop(target, None)
            if lock is not None:
                unlock(lock)
    finally:
        with suppress(OSError):  # they are not empty
            for folder in missing:
                folder.rmdir()


def sweep(folder: Path) -> list[Path]:
    """Remove what dead writers left in a folder, and return the paths; live writers are skipped.

    A folder that a writer had moved aside before it died is restored unless something has taken its
    place.
    """
    done = []
    for name in {name for path in _entries_of(folder) if (name := writers_name(path.name))}:
        lock_file = folder / f".{name}{LOCK_ENDING}"
        left = lock_file.is_file()
        with suppress(OSError):  # The file system has no locks, or it is another user's.
            if (lock := try_lock(lock_file)) is None:
                continue
            try:
                done += _clear(remains(folder / name), folder / name, is_shortened(name))
            finally:
                unlock(lock)
            done += [lock_file] if left else []
    return sorted(done)


def settle(target: Path) -> None:
    """Restore or remove what dead writers of a target and its neighbours left.

    The caller has claimed the target.
    """
    _clear(remains(target), target)
    sweep(target.parent)


def _clear(left: Collection[Path], target: Path, shortened: bool = False) -> list[Path]:
    """Remove what a dead writer left; a folder that it moved aside becomes the target again.

    Return what is gone. If ``shortened``, the target's name is not known, and such folders stay.
    """
    done = []
    for path in left:
        moved = (match := REMAINS.fullmatch(path.name)) and match["what"] == "old"
        if moved and shortened:
            continue
        if moved and path.is_dir() and not os.path.lexists(target):
            with suppress(OSError):
                path.rename(target)
        else:
            remove_tree(path)
        if not os.path.lexists(path):
            done.append(path)
    return done


def remains(target: Path, what: str = "new|old") -> list[Path]:
    """Return the hidden files and folders that writers of ``target`` created next to it."""
    return [
        path
        for path in hidden(target.parent)
        if (match := REMAINS.fullmatch(path.name))
        and match["name"] == short_name(target.name)
        and match["what"] in what.split("|")
    ]


def hidden(folder: Path) -> list[Path]:
    """Return the entries of a folder whose names mark them as writers'; none if it does not exist.

    Raises:
        OSError: the folder cannot be read.
    """
    return [path for path in _entries_of(folder) if REMAINS.fullmatch(path.name)]


def _entries_of(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [folder / entry.name for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []


def remove_tree(folder: Path) -> None:
    """Remove a folder (or a file) as far as possible; files left by a failure are harmless.

    It is renamed first, so that if the process is killed, the rest is not mistaken for something
    else.
    """
    match = REMAINS.fullmatch(folder.name)
    if match is None or match["what"] == "old":
        gone = hidden_sibling(folder.with_name(match["name"]) if match else folder, "new")
        with suppress(OSError):
            folder.rename(gone)
            folder = gone
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)
    else:
        with suppress(OSError):
            folder.unlink()


def plain_path(path: str | os.PathLike[str]) -> str:
    """Return a path as Arrow and datasets must get it: absolute.

    They expand ``~`` and take ``file:``, ``hf:`` or ``a:`` at the start of a relative path for a
    scheme, and would then read or write another file than the one that was checked.

    Raises:
        UsageError: it is not valid UTF-8.
    """
    refuse_bytes(path)
    return os.path.abspath(path)


def datasets_cache(files: Iterable[Path]) -> str:
    """Return the folder in which datasets should keep what it makes of some files.

    It is named after their content: datasets itself knows files by path and time of change, and
    would give the earlier rows of one that was replaced at the same time.
    """
    import datasets

    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.name}\0{file_sha256(path)}\n".encode())
    return os.path.join(datasets.config.HF_DATASETS_CACHE, f"kbprobe-{digest.hexdigest()[:32]}")


def data_files(folder: str | os.PathLike[str]) -> list[Path]:
    """Return all files of a folder from which datasets may read: those that are not hidden."""
    found = (path for path in _entries(Path(folder)) if not path.parts[0].startswith("."))
    return [Path(folder, path) for path in found if Path(folder, path).is_file()]


def refuse_bytes(path: str | os.PathLike[str], remedy: str = "Rename it.") -> None:
    """Refuse a path that is not valid UTF-8, since Arrow cannot open files there.

    Raises:
        UsageError: it is not; ``remedy`` says what to do.
    """
    name = os.path.abspath(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        if sys.getfilesystemencoding() != "utf-8":
            remedy = f"If it is UTF-8, set PYTHONUTF8=1; or {remedy[:1].lower()}{remedy[1:]}"
        raise UsageError(
            f"the path {name!r} is not valid UTF-8 as this process reads it, and Arrow cannot "
            f"open files there. {remedy}"
        ) from None


def regular_path(path: Path) -> str:
    """Return the `plain_path` of a file that a library opens to read it.

    Raises:
        OSError: it is not a regular file, or cannot be looked at; a library would wait for a pipe.
    """
    check_plain(path)
    return plain_path(path)


def file_state(status: os.stat_result) -> tuple[int, ...]:
    """Return what changes when a file is written or replaced.

    Size, inode and time of writing alone do not: ``cp -p`` and ``tar`` restore the time, and file
    systems reuse inodes. The time of change (ctime) cannot be set.
    """
    times = status.st_mtime_ns, status.st_ctime_ns
    return status.st_size, *times, status.st_ino, status.st_dev


def state_of(folder: Path) -> State:
    """Return a folder's state, to check later whether it has changed; None if it does not exist."""
    if not folder.exists():
        return None
    found = []
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                path = os.path.join(parent, name)
                if name.startswith(".") or name in _NOT_OURS:
                    continue
                about = os.lstat(path)
                relative = os.path.relpath(path, folder)
                found.append((relative, about.st_size, about.st_mtime_ns))
    return frozenset(found)


@contextmanager
def expecting(target: Path, place: Path, state: State) -> Iterator[None]:
    """Let `replacing_folder` replace ``target`` only if its content is still ``state``.

    ``place`` is its resolved path, which must remain the same.
    """
    given = os.path.abspath(target)
    _expected[place], _places[given] = state, place
    try:
        yield
    finally:
        del _expected[place], _places[given]


def _led_elsewhere(target: Path) -> KbprobeError:
    return KbprobeError(
        f"{target} leads to another folder than when this command began (a link was changed), and "
        "nothing is written there. Run the command again, or choose another folder with -o."
    )


def _swap(aside: Path, target: Path) -> None:
    if Path(os.path.realpath(target)) != target:
        raise _led_elsewhere(target)
    if target in _expected and (state_of(target) or None) != (_expected[target] or None):
        raise KbprobeError(
            f"{target} has changed since this command began, and is left as it is. Look at what "
            "is there now, then run the command again, or choose another folder with -o."
        )
    old = hidden_sibling(target, "old") if target.exists() else None
    if old:
        target.rename(old)
    try:
        aside.rename(target)
    except BaseException:
        if old:
            old.rename(target)
        raise
    _flush(target.parent)
    if old:
        remove_tree(old)


def _flush(path: Path) -> None:
    """Force a file or a folder to the disk."""
    folder = path.is_dir()
    if folder and os.name != "posix":  # other systems cannot open a folder
        return
    if folder:
        # Some file systems cannot flush folders, and some folders cannot be read.
        with suppress(OSError):
            _flush_open(os.open(path, os.O_RDONLY))
        return
    _flush_open(os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0)))


def _flush_open(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
