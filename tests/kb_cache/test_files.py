"""kbprobe.files: atomic writes of single files, and the check of an output folder."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from kbprobe.errors import CacheError, UsageError
from kbprobe.files import (
    file_sha256,
    find_damage,
    replacing_file,
    write_file,
)
from kbprobe.files.locks import locked
from kbprobe.files.targets import already_there

REQUEST = {"seed": 1, "names": ["a", "b"]}


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "notes.txt"
    write_file(target, "first\n")
    write_file(target, b"second\n")
    assert target.read_bytes() == b"second\n"
    assert [path.name for path in target.parent.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "notes.txt"
    write_file(target, "old")

    def fail() -> None:
        with replacing_file(target) as aside:
            aside.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_block_that_writes_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), replacing_file(tmp_path / "notes.txt"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_damage_is_told_apart(tmp_path: Path) -> None:
    for name in ("good", "short", "changed"):
        (tmp_path / name).write_text("text")
    record = (file_sha256(tmp_path / "good"), 4)
    (tmp_path / "short").write_text("tex")
    (tmp_path / "changed").write_text("TEXT")
    names = ("good", "short", "changed", "missing")
    short, changed, missing = find_damage(tmp_path, dict.fromkeys(names, record))
    assert "short has 3 bytes instead of 4" in short
    assert "changed is corrupt" in changed
    assert "missing is missing" in missing
    assert len(find_damage(tmp_path, dict.fromkeys(names, record), full=False)) == 2


def output(folder: Path, as_list: bool) -> Path:
    write_file(folder / "data.txt", "data")
    sha256 = file_sha256(folder / "data.txt")
    files = [{"path": "data.txt", "sha256": sha256}] if as_list else {"data.txt": sha256}
    write_file(folder / "record.json", json.dumps({"request": REQUEST, "files": files}))
    return folder


@pytest.mark.parametrize("as_list", [True, False])
def test_an_output_folder_that_is_there_already(tmp_path: Path, as_list: bool) -> None:
    def there(folder: Path, seed: int = 1, overwrite: bool = False) -> bool:
        request = {**REQUEST, "names": ("a", "b"), "seed": seed}
        return already_there(folder, "record.json", request, kind="a probe", overwrite=overwrite)

    folder = output(tmp_path / "out", as_list)
    assert there(folder)
    assert not there(folder, overwrite=True)
    assert not there(tmp_path / "new" / "below")
    with pytest.raises(UsageError, match=r"holds a probe built from another request.*--overwrite"):
        there(folder, seed=2)
    (folder / "data.txt").write_text("DATA")
    with pytest.raises(UsageError, match=r"is damaged \(.*data.txt is corrupt.*--overwrite"):
        there(folder)
    with pytest.raises(UsageError, match=r"record\.json exists and is not a folder"):
        there(folder / "record.json")


@pytest.mark.parametrize("record", [None, "", "[]", '{"name": "of someone else"}'])
def test_what_others_wrote_is_never_replaced(tmp_path: Path, record: str | None) -> None:
    (tmp_path / "thesis.tex").touch()
    if record is not None:
        (tmp_path / "record.json").write_text(record)
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="it is left alone"):
            already_there(tmp_path, "record.json", REQUEST, kind="a probe", overwrite=overwrite)


def test_a_lock_is_waited_for_in_vain(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "x.lock"
    with (
        locked(path, "writing x"),
        pytest.raises(CacheError, match=r"another process has been writing x.*it holds .*x\.lock"),
        locked(path, "writing x", timeout=0.1),
    ):
        pass
    with locked(path, "writing x", timeout=1):
        pass


def test_a_holder_that_advances_is_waited_for(tmp_path: Path) -> None:
    path, began = tmp_path / "x.lock", time.monotonic()

    def hold() -> None:
        with locked(path, "writing x"):
            held.set()
            time.sleep(0.6)

    held = threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    # What changes with the time stands for a file that grows.
    with locked(path, "writing x", timeout=0.3, advance=time.monotonic):
        pass
    thread.join()
    assert time.monotonic() - began > 0.5
