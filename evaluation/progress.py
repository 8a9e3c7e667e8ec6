"""Progress of an evaluation: how it is reported, and how the command shows it on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

LOG_SECONDS = 30.0


def silent(_what: str, _done: int, _total: int) -> None:
    """Show no progress."""


@contextmanager
def shown_progress(shown: bool) -> Iterator[Progress]:
    """Show a bar with rate and remaining time on a terminal, and a line now and then in a log."""
    if not shown:
        yield silent
        return
    if not sys.stderr.isatty():
        yield _log_lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", rate="")

        def show(what: str, done: int, total: int) -> None:
            if bar.tasks[0].description != what:
                bar.reset(task, description=what, total=total or None)
            speed = bar.tasks[0].speed
            rate = f"{speed:,.0f}/s" if speed else ""
            bar.update(task, completed=done, total=total or None, rate=rate)

        yield show


def _log_lines() -> Progress:
    began = last = time.monotonic()

    def log(what: str, done: int, total: int) -> None:
        nonlocal began, last
        now = time.monotonic()
        if done == 0:
            began = now
        if now - last >= LOG_SECONDS and done:
            last = now
            left = (now - began) / done * (total - done)
            click.echo(f"{what}: {done:,} of {total:,}, about {left:,.0f} s left", err=True)

    return log
