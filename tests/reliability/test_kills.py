"""The short part of the kill loops: what writes probes, sheets, exports and snapshots."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.commands import COMMANDS, Command, Held, Stage, staged
from tests.reliability.concurrency import different_at_once, same_at_once
from tests.reliability.kills import kill

pytestmark = [pytest.mark.slow, pytest.mark.posix]
SHORT = [command for command in COMMANDS if command.short and not command.evaluation]
BUILD = next(command for command in COMMANDS if command.name == "build")
FETCH = next(command for command in COMMANDS if command.name == "fetch vectors")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("stage"), evaluation=False) as made:
        yield made


@pytest.mark.parametrize("command", SHORT, ids=lambda command: command.name)
def test_a_command_that_was_killed_is_run_again(stage: Stage, command: Command) -> None:
    done = kill(stage, command, kills=3, seed=0)
    assert done.failures == []
    assert done.killed


def test_equal_and_different_builds_at_once(stage: Stage) -> None:
    assert same_at_once(stage, BUILD, 4).failures == []
    done = different_at_once(stage, BUILD, 4, apart=0.02)
    assert done.failures == []
    assert done.succeeded
    assert done.refused


@pytest.mark.parametrize("command", [BUILD, FETCH], ids=lambda command: command.name)
def test_a_file_that_may_not_grow_leaves_nothing(stage: Stage, command: Command) -> None:
    command.prepare(stage)
    (ended,) = stage.run(command.run(stage, largest_file=1000))
    assert ended.code == 1
    assert "File too large" in ended.said
    assert ("KBPROBE_CACHE" if command is FETCH else "with -o") in ended.said
    assert not Held.of(stage).outputs
    assert not {name for name in Held.of(stage).others if "mini" in name}


def test_left_folders_are_removed_on_request(stage: Stage) -> None:
    BUILD.prepare(stage)
    whole = stage.must(BUILD.run(stage))
    BUILD.prepare(stage)
    stage.run(BUILD.run(stage, kill_at=whole.operations - 3))
    left = [path for path in (stage.world / "out").iterdir() if path.name != "probe"]
    assert left
    said = stage.must(stage.at("builders.cli", "--clean", ".")).said
    assert all(f"{path.name}: removed" in said for path in left)
    FETCH.prepare(stage)
    stage.run(FETCH.run(stage, kill_at=6))
    said = stage.must(stage.at("kb_cache.cli", "clear", "--stale")).said
    assert "removed" in said
    assert not [path for path in (stage.world / "cache").rglob("*") if path.is_file()]


def test_no_home_a_plain_locale_and_a_name_that_is_no_text(tmp_path: Path) -> None:
    """A real process: the encoding of names is decided when Python starts."""
    parent = tmp_path / "probes"
    parent.mkdir()
    output = os.path.join(os.fsencode(parent), b"it's 'a\nb'")
    bare = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    words = [sys.executable, "-m", "builders.cli", "age_comparison", "--limit", "30", "-o", output]
    environment = {**keep, **bare, "KBPROBE_CACHE": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    for said in (b"Load it with", b"already holds exactly this"):
        done = subprocess.run(words, capture_output=True, env=environment, timeout=120, check=False)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
        assert said in done.stdout + done.stderr
    assert os.listdir(os.fsencode(parent)) == [os.path.basename(output)]
    words[-1] = os.path.join(os.fsencode(tmp_path), b"caf\xe9")
    done = subprocess.run(words, capture_output=True, env=environment, timeout=120, check=False)
    assert done.returncode == 2
    assert b"is not valid UTF-8 as this process reads it" in done.stderr
    assert b"set PYTHONUTF8=1" in done.stderr
    assert b"or choose another folder with -o." in done.stderr
    assert os.listdir(os.fsencode(parent)) == [os.path.basename(output)]
