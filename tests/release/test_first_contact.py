"""What a wrong first call of publishing is told."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import release
from kbprobe.errors import UsageError
from release import cli


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


def test_what_is_no_folder_is_refused() -> None:
    probe: Any = {"test": []}
    with pytest.raises(UsageError, match=r"not a dict.*kbprobe\.build\(NAME, output=DIR\)"):
        release.publish(probe, "me/probe")


def test_a_missing_folder_is_told_before_a_missing_token() -> None:
    with pytest.raises(UsageError, match="nosuch holds no built probe"):
        release.publish("nosuch", "me/probe")


def test_a_misspelt_subcommand_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["chek", "probe"])
    assert ended.value.code == 2
    assert "Did you mean 'check'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["release", "evaluation", "builders", "kb_cache"])
@pytest.mark.parametrize("words", [["-h"], ["SUB", "-h"]])
def test_h_asks_for_help(name: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    subs = {"release": "check", "evaluation": "report", "builders": "list", "kb_cache": "fetch"}
    try:
        code = import_module(f"{name}.cli").main([subs[name] if w == "SUB" else w for w in words])
    except SystemExit as ended:
        code = ended.code
    assert not code
    assert "-h, --help" in capsys.readouterr().out
