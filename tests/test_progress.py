"""Progress on stderr: lines in a log, and none with ``--quiet``."""

from __future__ import annotations

import threading
import time

import click
import pytest

from kbprobe.cli import Command, run
from kbprobe.terminal import progress


@pytest.mark.parametrize(
    ("args", "lines"),
    [([], ["scoring: 2 of 4 rows, about 0 s left"]), (["--quiet"], [])],
    ids=["as usual", "quiet"],
)
def test_a_log_has_lines_of_progress_unless_quiet(
    args: list[str],
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.0)

    def work() -> None:
        with progress.shown_progress(True, {"scoring": "rows"}) as show:
            show("scoring", 0, 4)
            show("scoring", 2, 4)
        click.echo("done")

    assert run(Command("work", callback=work), args, "work") == 0
    printed = capsys.readouterr()
    assert printed.out == "done\n"
    assert printed.err.splitlines() == lines


@pytest.mark.parametrize("terminal", [False, True])
def test_several_processes_have_a_line_each(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A terminal's lines need a thread, and none is left where processes are forked next."""
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_quiet", False)
    monkeypatch.setattr(progress, "on_terminal", lambda: terminal)
    threads = threading.active_count()
    with progress.shown_progress(True, {"scoring": "rows"}) as show:
        for done in (0, 2):
            for process in (0, 1):
                show.line(process)(f"run {process + 1}: scoring", done, 4)
        assert threading.active_count() == threads + terminal
        for process in (0, 1):
            show.line(process)("", 0, 0)
        deadline = time.monotonic() + 60
        while threading.active_count() > threads:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    lines = [f"run {number}: scoring: 2 of 4 rows, about 0 s left" for number in (1, 2)]
    assert terminal or capsys.readouterr().err.splitlines() == lines
