"""One process or thread writes a target at a time: the others wait for it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import hidden, replacing_folder, sweep, write_file
from kbprobe.files.locks import lock_path, try_lock
from kbprobe.files.targets import taking


def write(target: Path, text: str) -> None:
    with replacing_folder(target) as folder:
        (folder / "a").write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def in_thread(work: object) -> threading.Thread:
    assert callable(work)
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_a_second_writer_waits_and_overwrites_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, seen, attempts = tmp_path / "deep" / "probe", [], 0

    def second() -> None:
        with taking(target, overwrite=True) as overwrite:
            seen.append((overwrite, names(target)))

    with taking(target) as overwrite:
        assert not overwrite
        waiting = in_thread(second)
        while "Waiting for another process" not in capsys.readouterr().err:
            time.sleep(0.01)
            attempts += 1
            assert attempts < 6000
        assert not seen
        write(target, "one")
    waiting.join()
    assert seen == [(False, ["a"])], "what the other wrote is not overwritten"
    assert names(target.parent) == ["probe"], "no lock is left"


HOLDER = """
import os, sys, time
from pathlib import Path
from kbprobe.files.targets import taking

with taking(Path(sys.argv[1])):
    if not os.fork():
        time.sleep(600)  # such as a worker that loads data
    print(flush=True)
    time.sleep(600)
"""


@pytest.mark.posix
def test_a_lock_ends_with_its_process_and_not_with_those_that_it_forked(
    tmp_path: Path,
) -> None:
    target = tmp_path / "probe"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(target)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )
    try:
        assert holder.stdout
        holder.stdout.readline()
        assert try_lock(lock_path(target)) is None
        holder.kill()
        holder.wait(60)
        with taking(target):
            assert try_lock(lock_path(target)) is None
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.communicate(timeout=60)
    assert names(tmp_path) == []


def test_without_locks_a_folder_is_written_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without(path: Path) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    for module in ("kbprobe.files", "kbprobe.files.locks"):
        monkeypatch.setattr(f"{module}.try_lock", without)
    with taking(tmp_path / "probe"):
        write(tmp_path / "probe", "one")
    write_file(tmp_path / "file", "text")
    assert names(tmp_path) == ["file", "probe"]
    assert capsys.readouterr().err.count(f"{tmp_path} has no locks") == 1


@pytest.mark.posix
def test_a_file_system_that_refuses_to_lock_keeps_no_lock_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match="not implemented"):
        try_lock(tmp_path / "lock")
    assert names(tmp_path) == []


def test_writers_of_one_file_take_turns(tmp_path: Path) -> None:
    path, texts = tmp_path / "file", [str(number) * 1000 for number in range(8)]
    threads = [in_thread(lambda text=text: write_file(path, text)) for text in texts]
    for thread in threads:
        thread.join()
    assert path.read_text() in texts
    assert names(tmp_path) == ["file"]


def test_a_target_that_changed_since_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "probe"
    write(target, "old")
    with taking(target, overwrite=True):
        (target / "notes.txt").write_text("by hand")
        with pytest.raises(KbprobeError, match="has changed since"):
            write(target, "new")
    assert names(target) == ["a", "notes.txt"]
    with taking(tmp_path / "none"):
        (tmp_path / "none").mkdir()
        (tmp_path / "none" / "file").touch()
        with pytest.raises(KbprobeError, match="has changed since"):
            write(tmp_path / "none", "new")
    assert names(tmp_path) == ["none", "probe"]


@pytest.mark.posix
def test_a_link_that_was_changed_since_leads_to_no_other_folder(tmp_path: Path) -> None:
    link, other = tmp_path / "link", tmp_path / "other"
    write(tmp_path / "probe", "old")
    write(other, "another")

    def lead_to(place: Path) -> None:
        link.unlink(missing_ok=True)
        link.symlink_to(place)

    def replace_by_link(folder: Path) -> None:
        folder.rename(tmp_path / "moved")
        folder.symlink_to(other)

    lead_to(tmp_path / "probe")
    with taking(link, overwrite=True):
        lead_to(other)
        with pytest.raises(KbprobeError, match="leads to another folder"):
            write(link, "new")
        lead_to(tmp_path / "probe")
        with (
            pytest.raises(KbprobeError, match="leads to another folder"),
            replacing_folder(link),  # the folder itself becomes a link while it is written
        ):
            replace_by_link(tmp_path / "probe")
    assert (other / "a").read_text() == "another"
    assert (tmp_path / "moved" / "a").read_text() == "old"


@pytest.mark.posix
@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_what_is_no_lock_file_is_named_and_kept(tmp_path: Path, kind: str) -> None:
    lock = lock_path(tmp_path / "probe")
    make = {
        "folder": lock.mkdir,
        "pipe": lambda: os.mkfifo(lock),
        "link": lambda: lock.symlink_to("x"),
    }
    make[kind]()
    with (
        pytest.raises(OSError, match=f"is where a lock file belongs.*{lock.name}"),
        taking(tmp_path / "probe"),
    ):
        pass
    assert names(tmp_path) == [lock.name] or os.path.lexists(lock)
    with taking(tmp_path / "other"):  # it is not swept either
        pass
    assert os.path.lexists(lock)


def test_what_failed_leaves_neither_lock_nor_folders(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), taking(tmp_path / "a" / "b" / "c"):
        _ = 1 / 0
    assert names(tmp_path) == []


def test_one_command_does_not_write_a_target_twice(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with (
        taking(tmp_path / "probe"),
        pytest.raises(UsageError, match="twice"),
        taking(tmp_path / "link" / "probe"),
    ):
        pass


def test_a_lock_of_a_dead_process_is_taken_and_swept(tmp_path: Path) -> None:
    for name in ("probe", "other"):
        lock_path(tmp_path / name).write_text("{}")
    with taking(tmp_path / "probe"):
        pass
    assert names(tmp_path) == []


@pytest.mark.posix
@pytest.mark.parametrize("name", ["a b", 'it\'s "q"', "two\nlines", "x" * 255, "ä" * 120])
def test_targets_of_any_name_are_replaced_and_swept(tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    try:
        target.mkdir()
    except OSError:
        pytest.skip("the file system has no such names")
    for text in ("one", "two"):
        with taking(target):
            write(target, text)
    child = os.fork()
    if not child:
        unfinished = replacing_folder(target)
        unfinished.__enter__()
        os._exit(0)
    os.waitpid(child, 0)
    assert len(hidden(tmp_path)) == 1
    assert len(sweep(tmp_path)) == 2  # with its lock
    assert names(tmp_path) == [name]
    assert (target / "a").read_text() == "two"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB, where the tests may mount one."""
    import subprocess

    place = tmp_path / "small disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip("only the superuser may mount a small file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.posix
def test_a_full_disk_is_named_and_keeps_what_was_there(small_disk: Path) -> None:
    target = small_disk / "probe"
    write(target, "old")

    def fill() -> None:
        with taking(target, overwrite=True), replacing_folder(target) as folder:
            (folder / "large").write_bytes(bytes(2 << 20))

    with pytest.raises(KbprobeError, match=r"small disk/probe cannot be written: No space.*-o"):
        fill()
    assert names(small_disk) == ["probe"]
    assert (target / "a").read_text() == "old"


@pytest.mark.posix
def test_a_read_only_file_system_is_named_before_work_begins(small_disk: Path) -> None:
    import subprocess

    write(small_disk / "probe", "old")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for name, overwrite in (("new", False), ("probe", True)):
        with pytest.raises(UsageError, match=rf"{name} cannot be written: Read-only.*-o"):
            taking(small_disk / name, overwrite).__enter__()
    with taking(small_disk / "probe"):  # it may hold exactly what is asked for
        pass


@pytest.mark.skipif(
    not Path("/proc/self").is_dir(), reason="there is no /proc, where folders cannot be made"
)
def test_a_parent_that_can_never_be_made_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbprobe.files.locks._VANISHED", 2)
    with (
        pytest.raises(KbprobeError, match=r"^/proc/kbprobe/x cannot be written: .*with -o"),
        taking(Path("/proc/kbprobe/x")),
    ):
        pass
