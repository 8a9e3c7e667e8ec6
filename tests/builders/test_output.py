"""Where a probe goes: what stands in the way, and what writers that died left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import builders
from kbprobe.errors import UsageError
from kbprobe.files import claim, replacing_folder, sweep, write_file
from kbprobe.format.dataset import check_target, load
from kbprobe.format.manifest import read_manifest

WRITER = """
import sys, time
from pathlib import Path
from kbprobe.files import replacing_folder

with replacing_folder(Path(sys.argv[1])) as aside:
    (aside / "half.txt").write_text("half", encoding="utf-8")
    print(aside, flush=True)
    time.sleep(600)
"""


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def remains(folder: Path, what: str = "new", number: int = 1) -> Path:
    made = folder / f".probe.{what}-kbprobe-{number:08x}"
    made.mkdir()
    (made / "half.txt").write_text("half", encoding="utf-8")
    return made


@pytest.mark.posix
def test_remains_of_a_killed_writer_go_and_those_of_a_living_one_stay(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / name)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for name in ("probe", "other")
    ]
    try:
        dead, living = (
            Path(writer.stdout.readline().strip()) for writer in writers if writer.stdout
        )
        writers[0].send_signal(signal.SIGKILL)
        writers[0].wait(60)
        assert dead.exists()
        with replacing_folder(tmp_path / "probe") as aside:
            assert not dead.exists()
            assert (living / "half.txt").exists()
            (aside / "data.txt").write_text("x", encoding="utf-8")
        assert hidden(tmp_path) == [".other.kbprobe-lock", living.name]
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate(timeout=60)


def test_what_belongs_to_no_writer_is_removed_and_only_that(tmp_path: Path) -> None:
    of_users = [".notes.old-20240101", ".probe.new-1234abcd", ".probe.kbprobe-lock.txt"]
    for name in of_users:
        (tmp_path / name).touch()
    left, lock = remains(tmp_path), tmp_path / ".other.kbprobe-lock"
    lock.touch()
    with claim(tmp_path / "probe"):
        assert sweep(tmp_path) == [lock]
        assert left.exists(), "its writer is alive"
    assert sweep(tmp_path) == [left]
    assert hidden(tmp_path) == sorted(of_users)


def test_what_was_replaced_goes_once_something_stands_in_its_place(tmp_path: Path) -> None:
    for _ in range(2):
        replaced = remains(tmp_path, "old")
        sweep(tmp_path)
        assert not replaced.exists()
        assert (tmp_path / "probe" / "half.txt").exists(), "nothing else is left of the probe"
    assert hidden(tmp_path) == []


def files_of(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.posix
def test_what_others_put_into_a_folder_outlives_its_replacement(tmp_path: Path) -> None:
    target = tmp_path / "probe"
    with replacing_folder(target, ours=()) as aside:
        write_file(aside / "data" / "test.txt", "old")
    others = {"note.txt": "mine", ".hidden": "mine", "data/more.csv": "mine", "b/c/probe": "mine"}
    for name, text in others.items():
        write_file(target / name, text)
    (target / "link").symlink_to("b/c", target_is_directory=True)
    (target / "empty").mkdir()
    with replacing_folder(target, ours={"data/test.txt"}) as aside:
        write_file(aside / "data" / "train.txt", "new")
    assert files_of(target) == {**others, "data/train.txt": "new"}
    assert os.readlink(target / "link") == "b/c"
    assert (target / "empty").is_dir()
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("name", ["note.txt", "note.txt/below", "data"])
def test_a_file_that_stands_in_the_way_is_named_and_nothing_changes(
    tmp_path: Path, name: str
) -> None:
    target = tmp_path / "probe"
    write_file(target / name, "mine")

    def write() -> None:
        with replacing_folder(target, ours={"other"}) as aside:
            write_file(aside / "note.txt", "new")
            write_file(aside / "data" / "test.txt", "new")

    with pytest.raises(UsageError, match=f"where new ones belong: {name}"):
        write()
    assert files_of(target) == {name: "mine"}
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("within", ["", "below"])
def test_the_working_directory_is_not_replaced(
    tmp_path: Path, within: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / within).mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path / within)
    with pytest.raises(UsageError, match="working directory"), replacing_folder(tmp_path):
        pass
    assert Path.cwd() == tmp_path / within
    with replacing_folder(Path("probe")):
        pass


@pytest.mark.slow
def test_a_probe_and_a_note_within_another_outlive_its_replacement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(folder: Path, seed: int) -> None:
        options = {"seed": seed, "limit": 40, "audit": False, "overwrite": True}
        builders.build("age_comparison", output=folder, **options)

    place = tmp_path / "m"
    built(place, 0)
    built(place / "b", 0)
    write_file(place / "note.txt", "mine")
    built(place, 1)
    assert (place / "note.txt").exists()
    assert read_manifest(place / "b").rows_digest != read_manifest(place).rows_digest
    assert load(place / "b")["test"].num_rows
    monkeypatch.chdir(place)
    with pytest.raises(UsageError, match="working directory"):
        built(Path(), 2)
    assert read_manifest(Path()).request.seed == 1


@pytest.mark.parametrize("below", ["", "below", "below/and/below"])
def test_an_output_at_or_below_a_file_is_refused_before_planning(
    tmp_path: Path, below: str
) -> None:
    (tmp_path / "file").write_text("text", encoding="utf-8")
    with pytest.raises(UsageError, match="file exists and is not a folder"):
        check_target(tmp_path / "file" / below, {}, overwrite=True)
    assert not check_target(tmp_path / "new" / below, {}, overwrite=False)
