"""Progress of long tasks: how it is reported, and how the commands show it on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from kbprobe.terminal import echo

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

Progress = Callable[[str, int, int], None]
"""Called with a description of the task, the amount done, and the total (0 if unknown)."""

LOG_SECONDS = 30.0
BYTES, PERCENT = "bytes", "percent"
"""Units other than counts."""


_quiet = False


def set_quiet(quiet: bool) -> None:
    """Show no progress from now on, or show it again."""
    global _quiet
    _quiet = quiet


def on_terminal() -> bool:
    """Return whether progress is shown as it changes: stderr is a terminal, and not quiet."""
    return sys.stderr.isatty() and not _quiet


def silent(_what: str, _done: int, _total: int) -> None:
    """Show no progress."""


class ShownProgress:
    """Shows what is done: called as a `Progress`, or by processes that have a line each."""

    def __init__(self, new_line: Callable[[], Progress]) -> None:
        """Set what makes a line; calls without a process show the line of process 0."""
        self._new_line, self._lines = new_line, dict[int, Progress]()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show what is done."""
        self.line(0)(what, done, total)

    def line(self, process: int) -> Progress:
        """Return the line of a process; an empty description hides it."""
        if process not in self._lines:
            self._lines[process] = self._new_line()
        return self._lines[process]


@contextmanager
def shown_progress(
    shown: bool, units: Mapping[str, str] | None = None, log: bool = True
) -> Iterator[ShownProgress]:
    """Show a bar with rate and remaining time on a terminal, and occasional lines in a log.

    The bar's thread runs from the first call on, and as long as a line is visible.

    Args:
        shown: whether to show anything.
        units: task -> its unit: ``rows``, :data:`BYTES`. A task may be prefixed by the larger task
            that it is part of: ``run 3 of 60: scoring``.
        log: whether to write lines if stderr is not a terminal.
    """
    if not shown or _quiet or not (log or on_terminal()):
        yield ShownProgress(lambda: silent)
        return
    if not on_terminal():
        yield ShownProgress(partial(_log_lines, units or {}))
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from kbprobe.terminal.console import Console

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    try:
        yield ShownProgress(partial(_bar_line, bar, units or {}))
    finally:
        bar.stop()


def _bar_line(bar: Bar, units: Mapping[str, str]) -> Progress:
    task = bar.add_task("", rate="", amount="", visible=False)
    own = next(one for one in bar.tasks if one.id == task)

    def show(what: str, done: int, total: int) -> None:
        unit = _unit(what, units)
        if own.description != what:
            bar.reset(task, description=what, total=total or None, visible=bool(what))
        rate = f"{_amount(own.speed, unit)}/s" if own.speed and unit != PERCENT else ""
        amount = amount_done(done, total, unit)
        bar.update(task, completed=done, total=total or None, rate=rate, amount=amount)
        if any(one.visible for one in bar.tasks):
            bar.start()
        else:
            bar.stop()

    return show


def amount_done(done: int, total: int, unit: str = "") -> str:
    """Return the amount done and the total as text.

    >>> amount_done(3, 4000), amount_done(12_300_000, 498_000_000, BYTES)
    ('3/4,000', '12.3/498.0 MB')
    >>> amount_done(1, 4, PERCENT), amount_done(5, 0)
    ('25%', '5')
    >>> amount_done(3, 4000, "rows")
    '3/4,000 rows'
    """
    if unit == PERCENT:
        return f"{done / total:.0%}" if total else ""
    if not total:
        return _amount(done, unit)
    return f"{_amount(done, unit).partition(' ')[0]}/{_amount(total, unit)}"


def _amount(number: float, unit: str) -> str:
    return f"{number / 1e6:,.1f} MB" if unit == BYTES else f"{number:,.0f} {unit}".rstrip()


def _unit(what: str, units: Mapping[str, str]) -> str:
    return units.get(what.rpartition(": ")[2], "")


class Phases:
    """The phases of one or more processes, shown on a terminal, a line each with its time."""

    def __init__(self, bar: Bar | None) -> None:
        """Show phases in a bar; None shows nothing."""
        self._bar = bar
        self._tasks: dict[int, TaskID] = {}

    def __call__(self, phase: str, process: int = 0) -> None:
        """Show the phase that a process has reached; an empty one hides the line."""
        if (bar := self._bar) is not None:
            if process not in self._tasks:
                self._tasks[process] = bar.add_task("", visible=False)
            bar.reset(self._tasks[process], description=phase, visible=bool(phase))
            bar.refresh()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hide all lines during a block, in which others print."""
        if self._bar is not None:
            self._bar.stop()
        yield
        if self._bar is not None:
            self._bar.start()


@contextmanager
def shown_phase() -> Iterator[Phases]:
    """Show the current phases and their times on a terminal's stderr.

    It is for tasks whose extent is not known in advance.
    """
    if not on_terminal():
        yield Phases(None)
        return
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    from kbprobe.terminal.console import Console

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Phases(bar)


def _log_lines(units: Mapping[str, str]) -> Progress:
    began = last = time.monotonic()
    first, shown = 0, ""

    def log(what: str, done: int, total: int) -> None:
        nonlocal began, last, first, shown
        now = time.monotonic()
        if what != shown or done < first:
            # The part that already existed, as in a resumed download, took no time in this run.
            began, first, shown = now, done, what
        if now - last >= LOG_SECONDS and done > first and total:
            last = now
            left = (now - began) / (done - first) * (total - done)
            unit = _unit(what, units)
            amount = amount_done(done, total, unit).replace("/", " of ", 1)
            echo(f"{what}: {amount}, about {left:,.0f} s left", err=True)

    return log
