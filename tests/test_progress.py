"""Progress on stderr: lines in a log, and none with ``--quiet``."""

from __future__ import annotations

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
