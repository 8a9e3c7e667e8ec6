"""``kb-cache`` as people run it."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest

from kb_cache.store import record_download
from kbprobe import cli as command
from kbprobe.errors import KbprobeError, UsageError

REPOSITORY = Path(__file__).resolve().parents[2]
RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


def test_the_life_of_an_entry(run_cli: RunCli, mini: Path, cache: Path) -> None:
    done = run_cli("fetch", "wordnet", "--from", str(mini), "--name", "mini")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("wordnet-mini: 68 synsets")
    listed = json.loads(run_cli("list", "--json").stdout)
    assert [(e["name"], e["where"], e["sound"]) for e in listed] == [
        ("corpus-masc-extract", "embedded", True),
        ("wordnet-3.0", "embedded", True),
        ("wordnet-mini", "cache", True),
    ]
    assert listed[2]["rows"]["synsets"] == 68
    table = run_cli("list").stdout.splitlines()
    assert table[0].split()[:3] == ["NAME", "VERSION", "KIND"]
    assert "68 synsets" in table[3]
    assert run_cli("verify").returncode == 0
    refused = run_cli("clear", "wordnet-mini", input="n\n")
    assert refused.returncode == 1
    assert "Nothing was removed" in refused.stdout
    assert run_cli("clear", "wordnet-mini", "--yes").stdout == "wordnet-mini: removed\n"
    assert len(json.loads(run_cli("list", "--json").stdout)) == 2
    assert run_cli("clear", "--all", "--yes").stdout == "The cache is empty.\n"


def test_verify_names_the_damage_and_repairs_it(run_cli: RunCli, mini: Path, cache: Path) -> None:
    run_cli("fetch", "wordnet", "--from", str(mini), "--name", "mini")
    file = cache / "snapshots" / "wordnet-mini" / "examples.parquet"
    file.write_bytes(b"")
    found = run_cli("verify", "wordnet-mini")
    assert found.returncode == 1
    assert "examples.parquet has 0 bytes" in found.stderr
    assert "damaged" in run_cli("list").stdout
    repaired = run_cli("verify", "--repair")
    assert repaired.returncode == 0
    assert repaired.stdout.endswith("wordnet-mini: rebuilt\n")
    assert run_cli("verify").returncode == 0
    file.unlink()
    for source in mini.iterdir():
        source.unlink()
    hopeless = run_cli("verify", "--repair")
    assert hopeless.returncode == 1
    assert "cannot be repaired" in hopeless.stderr


@pytest.mark.slow
def test_two_fetches_at_once(mini: Path, cache: Path, run_cli: RunCli) -> None:
    args = [sys.executable, "-m", "kb_cache.cli", "fetch", "wordnet", "--from", str(mini)]
    writers = [
        subprocess.Popen(
            [*args, "--name", "mini"],
            cwd=REPOSITORY,
            env=os.environ | {"KBPROBE_CACHE": str(cache)},
            stdout=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    assert run_cli("verify", "wordnet-mini").returncode == 0
    assert [p.name for p in (cache / "snapshots").iterdir()] == ["wordnet-mini"]


def test_fetch_to_a_folder_records_no_path(run_cli: RunCli, mini: Path, tmp_path: Path) -> None:
    for _ in range(2):  # the second replaces the first, and keeps the note
        done = run_cli(
            "fetch", "wordnet", "--from", str(mini), "--name", "x", "-o", str(tmp_path / "out")
        )
        assert done.returncode == 0, done.stderr
        (tmp_path / "out" / "note.txt").write_text("mine")
    assert json.loads((tmp_path / "out" / "snapshot.json").read_text())["source"]["path"] is None
    assert (tmp_path / "out" / "note.txt").exists()


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["clear", "wordnet-3.0"], 1, "kb-cache: error: wordnet-3.0 is part of kbprobe itself"),
        (["clear"], 2, "give the NAME of what to remove, or --all"),
        (["clear", "wordnet-3.1"], 2, "Did you mean 'wordnet-3.0'?"),
        (["verify", "wordnte-3.0"], 2, "Did you mean 'wordnet-3.0'?"),
        (["fetch", "wordnet", "--from", "/nowhere"], 1, "no such file or folder: /nowhere"),
        (["fetch", "wordnet"], 2, "Missing option '--from'"),
        (["fetch", "wordnet", "--frm", "x"], 2, "--from"),
        (["lst"], 2, "No such command 'lst'"),
        ([], 2, "Usage: kb-cache"),
    ],
)
def test_errors(run_cli: RunCli, args: list[str], code: int, message: str) -> None:
    result = run_cli(*args)
    assert result.returncode == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_name_without_its_kind_is_enough(run_cli: RunCli, mini: Path, cache: Path) -> None:
    run_cli("fetch", "wordnet", "--from", str(mini), "--name", "wordnet-mini")
    assert run_cli("verify", "mini").stdout == "wordnet-mini: sound\n"
    assert run_cli("clear", "mini", "--yes").stdout == "wordnet-mini: removed\n"
    assert "There are: " in run_cli("clear", "mini", "--yes").stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--name", "a/b"], "'conceptnet-a/b' cannot name a cache entry"),
        (["--language", "?"], "'?' is not a language code"),
        (["-o", "full"], "full is not empty and not a snapshot"),
        (["-o", "."], ". is the working directory"),
    ],
)
def test_what_is_wrong_is_told_before_a_download(
    run_cli: RunCli,
    args: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def download(*_: object, **__: object) -> Path:
        raise AssertionError("a download began")

    monkeypatch.setattr("kb_cache.fetching.download_source", download)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").touch()
    refused = run_cli("fetch", "conceptnet", *args)
    assert refused.returncode == 2
    assert message in refused.stderr


def test_a_missing_package_is_told_before_a_download(
    run_cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kb_cache.gcide.kind.GcideKind.packages", ("no_such_package",))
    refused = run_cli("fetch", "gcide")
    assert refused.returncode == 1
    assert "needs the package 'no_such_package'" in refused.stderr
    assert "pip install '.[gcide]'" in refused.stderr


def test_one_broken_kind_of_another_package_is_left_out(
    run_cli: RunCli, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_cache import base

    points = [
        EntryPoint("lost", "no_such_module:KIND", base.ENTRY_POINTS),
        EntryPoint("wordnet", "my_package:WORDNET", base.ENTRY_POINTS),
    ]
    monkeypatch.setattr(base, "entry_points", lambda group: points)
    base._installed.cache_clear()
    try:
        listed = run_cli("list")
        helped = run_cli("fetch", "--help")
        asked = run_cli("fetch", "lost")
    finally:
        base._installed.cache_clear()
    assert listed.returncode == helped.returncode == 0
    assert "wordnet-3.0" in listed.stdout
    assert "conceptnet" in helped.stdout
    assert "the knowledge base 'wordnet' of another package was left out" in listed.stderr
    assert "the knowledge base 'lost' of another package was left out" in listed.stderr
    assert asked.returncode == 1
    assert "Repair or uninstall it" in asked.stderr


def test_debug_shows_the_traceback_wherever_it_stands(run_cli: RunCli) -> None:
    for args in (["--debug", "verify", "x"], ["verify", "x", "--debug"]):
        assert "Traceback" in run_cli(*args).stderr


def test_a_broken_off_write_is_cleared(run_cli: RunCli, cache: Path) -> None:
    leftover = cache / "snapshots" / ".wordnet-x.new-kbprobe-00000000"
    leftover.mkdir(parents=True)
    assert len(json.loads(run_cli("list", "--json").stdout)) == 2
    assert run_cli("clear", "--all", "--yes").returncode == 0
    assert not leftover.exists()


def test_files_of_others_in_the_cache_folder_are_neither_listed_nor_removed(
    run_cli: RunCli, mini: Path, cache: Path
) -> None:
    own = [
        *("snapshots/web/snapshot.json", "snapshots/wordnet-photos/me.jpg", "snapshots/a.txt"),
        *("derived/web/table.arrow", "derived/a.csv", "downloads/film.part", "downloads/a.json"),
        "sparql/queries/a.rq",
    ]
    for name in own:
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_text('{"title": "mine"}')
    assert len(json.loads(run_cli("list", "--json").stdout)) == 2
    taken = run_cli("fetch", "wordnet", "--from", str(mini), "--name", "photos")
    assert taken.returncode == 2
    assert "holds files that are not a snapshot of kbprobe" in taken.stderr
    run_cli("fetch", "wordnet", "--from", str(mini), "--name", "mini")
    damaged = cache / "snapshots" / "wordnet-mini" / "snapshot.json"
    damaged.write_text("{")
    assert "damaged" in run_cli("list").stdout
    table = cache / "derived" / "wordnet-mini" / "rule.arrow"
    table.parent.mkdir()
    table.write_bytes(b"0" * 64 + b"ARROW1")
    archive = cache / "downloads" / "archive.zip"
    archive.touch()
    record_download(archive, "https://example.org/archive.zip")
    cleared = run_cli("clear", "--all", "--yes").stdout.splitlines()
    assert cleared[:3] == [
        f"{what}: removed" for what in ("wordnet-mini", "downloaded files", "derived tables")
    ]
    run_cli("clear", "--stale")
    left = {path.relative_to(cache).as_posix() for path in cache.rglob("*") if path.is_file()}
    assert left == set(own)


@pytest.mark.slow
@pytest.mark.posix
def test_ctrl_c_leaves_nothing(mini: Path, cache: Path) -> None:
    code = (
        "import os, signal, sys, kb_cache.fetching as fetch, kb_cache.cli as cli\n"
        "# A shell may start background jobs with this signal ignored.\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "write = fetch.write_snapshot\n"
        "def interrupted(*args, **kwargs):\n"
        "    write(*args, **kwargs)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "fetch.write_snapshot = interrupted\n"
        f"sys.exit(cli.main(['fetch', 'wordnet', '--from', {str(mini)!r}, '--name', 'mini']))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env=os.environ | {"KBPROBE_CACHE": str(cache)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 130
    assert "Interrupted; nothing was left half written. Run it again to go on" in result.stderr
    assert "Traceback" not in result.stderr
    assert list((cache / "snapshots").iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("wrong"), 2, "prog: error: wrong"),
        (KbprobeError("bad"), 1, "prog: error: bad"),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), 1, "No space left on device: /x"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 1, "Permission denied: /x"),
        (KeyboardInterrupt(), 130, "Interrupted"),
        (click.ClickException("clicked"), 1, "prog: error: clicked"),
        (KeyError("k"), 1, "unexpected KeyError"),
    ],
)
def test_the_policy_for_errors(
    error: BaseException, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def failing() -> None:
        raise error

    assert command.run(failing, [], "prog") == code
    assert message in capsys.readouterr().err
    if not isinstance(error, KeyboardInterrupt):  # click makes an Abort of it
        with pytest.raises(type(error)):
            command.run(failing, ["--debug"], "prog")


def test_debug_after_two_dashes_is_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    @click.command()
    @click.argument("words", nargs=-1)
    def echo(words: tuple[str, ...]) -> None:
        click.echo(" ".join(words))

    assert command.run(echo, ["a", "--", "--debug"], "prog") == 0
    assert capsys.readouterr().out == "a --debug\n"


def test_an_unknown_kind_is_refused_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from kb_cache.cli import main

    assert main(["fetch", "concepnet"]) == command.WRONG_USAGE
    shown = capsys.readouterr().err
    assert "Did you mean 'conceptnet'?" in shown
    assert "There are: " in shown
