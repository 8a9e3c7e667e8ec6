"""One process writes a target: equal requests wait, others are refused."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import hidden, remove_tree, replacing_folder, sweep
from kbprobe.files.locks import hidden_sibling, is_abandoned, is_alive, process_start
from kbprobe.files.targets import lock_path, taking


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


def test_equal_requests_wait_and_others_are_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, found, refused = tmp_path / "deep" / "probe", [], []

    def same() -> None:
        with taking(target, "building x", {"seed": 0}, overwrite=True) as overwrite:
            found.append((overwrite, names(target)))

    def other() -> None:
        with pytest.raises(UsageError) as error, taking(target, "building x", {"seed": 1}):
            pass
        refused.append(str(error.value))

    with taking(target, "building x", {"seed": 0}) as overwrite:
        assert not overwrite
        waiting = in_thread(same)
        in_thread(other).join()
        assert not found
        write(target, "one")
    waiting.join()
    assert found == [(False, ["a"])], "what the other wrote is not overwritten"
    assert f"process {os.getpid()} (building x, since " in refused[0]
    assert refused[0].endswith("Choose another folder with -o.")
    assert "Waiting for process" in capsys.readouterr().err
    assert names(target.parent) == ["probe"], "no lock is left"


def test_a_target_that_changed_since_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "probe"
    write(target, "old")
    with taking(target, "building", {}, overwrite=True):
        (target / "notes.txt").write_text("by hand")
        with pytest.raises(KbprobeError, match="has changed since"):
            write(target, "new")
    assert names(target) == ["a", "notes.txt"]
    with taking(tmp_path / "none", "building", {}):
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
    with taking(link, "building", {}, overwrite=True):
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
        taking(tmp_path / "probe", "building", {}),
    ):
        pass
    assert names(tmp_path) == [lock.name] or os.path.lexists(lock)
    with taking(tmp_path / "other", "building", {}):  # it is not swept either
        pass
    assert os.path.lexists(lock)


def test_what_failed_leaves_neither_lock_nor_folders(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), taking(tmp_path / "a" / "b" / "c", "building", {}):
        _ = 1 / 0
    assert names(tmp_path) == []


def test_one_command_does_not_write_a_target_twice(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with (
        taking(tmp_path / "probe", "building", {}),
        pytest.raises(UsageError, match="twice"),
        taking(tmp_path / "link" / "probe", "building", {}),
    ):
        pass


def test_a_lock_of_a_dead_process_is_taken_and_swept(tmp_path: Path) -> None:
    for name in ("probe", "other"):
        lock_path(tmp_path / name).write_text("{}")
    with taking(tmp_path / "probe", "building", {}):
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
        with taking(target, f"building {name}", {"name": name.encode("utf-8", "replace").hex()}):
            write(target, text)
    child = os.fork()
    if not child:
        unfinished = replacing_folder(target)
        unfinished.__enter__()
        os._exit(0)
    os.waitpid(child, 0)
    assert len(hidden(tmp_path)) == 1
    assert len(sweep(tmp_path)) == 1
    assert names(tmp_path) == [name]
    assert (target / "a").read_text() == "two"


@pytest.mark.posix
def test_a_process_is_known_by_its_number_and_its_start() -> None:
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
    started = process_start(child) or 0
    assert is_alive(child, started)
    if started:
        assert not is_alive(child, started + 1), "the number was used again"
    os.kill(child, 9)
    deadline = time.monotonic() + 30  # a busy machine takes its time
    while started and is_alive(child, started) and time.monotonic() < deadline:
        time.sleep(0.05)
    if started:
        assert not is_alive(child, started), "it has ended, though nobody waited for it"
    os.waitpid(child, 0)
    assert not is_alive(child, started)


def test_what_a_living_process_writes_is_never_swept(tmp_path: Path) -> None:
    own = hidden_sibling(tmp_path / "probe", "new")
    own.mkdir()
    os.utime(own, (0, 0))
    assert not is_abandoned(own)
    assert sweep(tmp_path) == []
    remove_tree(own)
    assert names(tmp_path) == []


def test_without_times_of_start_old_remains_are_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbprobe.files.locks.process_start", lambda process: None)
    own = hidden_sibling(tmp_path / "probe", "new")
    own.mkdir()
    assert not is_abandoned(own)
    old = own.with_name(re.sub(r"-\d+-([^-]+)$", r"-1000000000-\1", own.name))
    own.rename(old)
    os.utime(old, (0, 0))
    assert is_abandoned(old)


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
        with taking(target, "building", {}, overwrite=True), replacing_folder(target) as folder:
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
            taking(small_disk / name, "building", {}, overwrite).__enter__()
    with taking(small_disk / "probe", "building", {}):  # it may hold exactly what is asked for
        pass


@pytest.mark.skipif(
    not Path("/proc/self").is_dir(), reason="there is no /proc, where folders cannot be made"
)
def test_a_parent_that_can_never_be_made_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbprobe.files.targets._UNKNOWN", 0.1)
    with (
        pytest.raises(KbprobeError, match=r"^/proc/kbprobe/x cannot be written: .*with -o"),
        taking(Path("/proc/kbprobe/x"), "build x", {}),
    ):
        pass
