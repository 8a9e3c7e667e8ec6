"""Nothing half written is ever left, whatever ends the writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kb_cache import store
from kbprobe import files
from kbprobe.errors import CacheError, UsageError
from kbprobe.files.cache import cache_dir
from kbprobe.files.locks import locked


def write(target: Path, text: str) -> None:
    with files.replacing_folder(target) as folder:
        (folder / "a").write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "entry"
    with files.replacing_folder(target) as folder:
        (folder / "a").write_text("1")
        assert not target.exists()
    assert (target / "a").read_text() == "1"
    assert names(target.parent) == ["entry"]


def test_an_old_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "entry"
    target.mkdir()
    (target / "old").touch()
    write(target, "new")
    assert names(target) == ["a"]
    assert names(tmp_path) == ["entry"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_the_old_folder(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "entry"
    write(target, "old")

    def fail() -> None:
        with files.replacing_folder(target) as folder:
            (folder / "a").write_text("new")
            raise error

    with pytest.raises(error):
        fail()
    assert (target / "a").read_text() == "old"
    assert names(tmp_path) == ["entry"]


def test_a_failing_rename_brings_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "entry"
    write(target, "old")
    rename = Path.rename

    def failing(self: Path, to: Path) -> Path:
        if ".new-" in self.name:
            raise OSError("no")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="no"):
        write(target, "new")
    assert (target / "a").read_text() == "old"
    assert names(tmp_path) == ["entry"]


def test_a_file_in_the_way_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "entry"
    target.write_text("precious")
    with pytest.raises(NotADirectoryError):
        write(target, "new")
    assert target.read_text() == "precious"


def run_killed(cache: Path, code: str) -> None:
    """Run code that ends with a kill -9 of its own process."""
    env = os.environ | {"KBPROBE_CACHE": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    prelude = (
        "import os, signal; from pathlib import Path\n"
        "from kb_cache import store\nfrom kbprobe import files\n"
        "def die(): os.kill(os.getpid(), signal.SIGKILL)\n"
        "target = store.entry_path('entry')\n"
    )
    result = subprocess.run([sys.executable, "-c", prelude + code], env=env, timeout=60)
    assert result.returncode == -signal.SIGKILL


@pytest.mark.posix
def test_a_writer_killed_while_writing_leaves_only_remains(cache: Path) -> None:
    target = store.entry_path("entry")
    write(target, "old")
    (target / "snapshot.json").write_text('{"kind": "", "digest": "", "files": {}}')
    run_killed(
        cache,
        "with store.entry_lock('entry'), files.replacing_folder(target) as folder:\n"
        "    (folder / 'a').write_text('new')\n"
        "    die()\n",
    )
    assert len(files.remains(target, "new")) == 1
    assert store.entry_names() == ["entry"]
    assert (target / "a").read_text() == "old"
    with store.entry_lock("entry"):  # the lock died with its holder
        pass
    assert store.all_remains() == {}


@pytest.mark.posix
def test_a_writer_killed_between_the_renames_loses_nothing(cache: Path) -> None:
    target = store.entry_path("entry")
    write(target, "old")
    (target / "snapshot.json").write_text('{"kind": "", "digest": "", "files": {}}')
    run_killed(
        cache,
        "rename = Path.rename\n"
        "Path.rename = lambda self, to: die() if '.new-' in self.name else rename(self, to)\n"
        "with store.entry_lock('entry'), files.replacing_folder(target) as folder:\n"
        "    (folder / 'a').write_text('new')\n",
    )
    assert not target.exists()
    assert store.entry_names() == ["entry"]
    assert (target / "a").read_text() == "old"


@pytest.mark.posix
def test_remove_entry_takes_the_remains_as_well(cache: Path) -> None:
    run_killed(cache, "with files.replacing_folder(target):\n    die()\n")
    assert store.entry_names() == []
    assert store.all_remains().keys() == {"entry"}
    assert store.remove_entry("entry")
    assert names(store.snapshots_dir()) == []
    assert not store.remove_entry("entry")


def test_writers_take_turns(cache: Path) -> None:
    inside: list[str] = []
    seen: list[int] = []

    def work(text: str) -> None:
        with store.entry_lock("entry"):
            inside.append(text)
            seen.append(len(inside))
            time.sleep(0.02)
            write(store.entry_path("entry"), text)
            inside.remove(text)

    threads = [threading.Thread(target=work, args=(str(i),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 8
    assert names(store.snapshots_dir()) == ["entry"]


@pytest.mark.posix
def test_the_sweep_of_the_cache_takes_what_nobody_goes_on_with(cache: Path) -> None:
    run_killed(
        cache,
        "from kbprobe.files.cache import cache_dir\n"
        "stuck = files.replacing_file(cache_dir() / 'scores' / 'k' / 'part-0.parquet')\n"
        "stuck.__enter__().write_text('half')\n"
        "also = files.replacing_folder(cache_dir() / 'finetuned' / 'k' / 'x')\n"
        "also.__enter__()\n"
        "from kbprobe.files.locks import try_lock\n"
        "downloads = cache_dir() / 'downloads'; downloads.mkdir()\n"
        "lock = try_lock(downloads / '.a.gz.lock'); (downloads / 'a.gz.part').write_text('half')\n"
        "(downloads / 'b.gz.part').write_text('half')\n"
        "(downloads / 'of-a-browser.part').write_text('half')\n"
        "for name in 'ab': (downloads / f'{name}.gz.part.json').write_text('{\"url\": \"x\"}')\n"
        "die()\n",
    )
    others = cache / "hub" / "of-another-program.lock"
    others.parent.mkdir()
    others.touch()
    with locked(cache / "downloads" / ".b.gz.lock", "downloading"):
        gone = {path.relative_to(cache).parts[0] for path in store.sweep()}
    assert gone == {"scores", "finetuned", "downloads"}
    left = [str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file()]
    assert sorted(left) == [
        *("downloads/b.gz.part", "downloads/b.gz.part.json", "downloads/of-a-browser.part"),
        "hub/of-another-program.lock",
    ]


def test_an_unusable_cache_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("KBPROBE_CACHE", str(file / "cache"))
    assert store.entry_names() == []
    with pytest.raises(CacheError, match=r"file/cache.* cannot be used.*KBPROBE_CACHE"):
        store.entry_lock("entry").__enter__()


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "a\\b", ".hidden", "x" * 200, "con:"])
def test_names_that_are_no_file_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name"):
        store.entry_path(name)


def test_the_cache_folder_is_the_platform_s_unless_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KBPROBE_CACHE", raising=False)
    assert "kbprobe" in str(cache_dir())
    monkeypatch.setenv("KBPROBE_CACHE", "~/elsewhere")
    assert cache_dir() == Path.home() / "elsewhere"
