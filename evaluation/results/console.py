"""Tables on a terminal that never truncate names or numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from kbprobe.terminal import visible
from kbprobe.terminal.console import Console

_ENDLESS = 100_000
"""Line width for output to a program or a file."""

_NARROWEST = 12
"""Minimum width of a column of names; longer names are broken over several lines."""


def wide_console(*, stderr: bool = False) -> Console:
    """Return a console that prints texts literally, without markup."""
    # Captured output has no width of its own: a table cut to 80 columns would be unreadable.
    terminal = Console(stderr=stderr).is_terminal
    width = None if terminal or "COLUMNS" in os.environ else _ENDLESS
    return Console(width=width, markup=False, highlight=False, stderr=stderr)


def print_rows(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    names: int = 2,
    console: Console | None = None,
    lines: box.Box | None = None,
) -> None:
    """Print a table: first ``names`` columns of text, then numbers.

    If the terminal is too narrow, names are broken over several lines; if the numbers alone are too
    wide, each row is printed as a list.
    """
    # Control characters are made visible here, not only by the console, so that columns fit.
    console, cells = console or wide_console(), [[*map(visible, row)] for row in rows]
    table = _table(heads, cells, names, lines)
    excess = console.measure(table, options=console.options.update(width=_ENDLESS)).maximum
    excess -= console.width
    if excess > 0:
        columns = list(zip(heads, *cells, strict=True))[:names]
        natural = [max(map(len, column)) for column in columns]
        widths = _narrowed(natural, excess)
        if widths is None:
            _list_rows(heads, cells, names, console)
            return
        head, *cells = (
            [*map(broken, row[:names], widths), *row[names:]] for row in (heads, *cells)
        )
        table = _table(head, cells, names, lines)
    console.print(table)


def broken(name: str, width: int) -> str:
    r"""Break a name into lines of ``width`` characters: at spaces, or after ``_``, ``/``, ``-``.

    >>> broken("wordnet_hypernymy (test)", 12)
    'wordnet_\nhypernymy\n(test)'
    """
    lines = [""]
    for part in re.findall(r"[^\s_/.-]*[\s_/.-]?", name):
        if len((lines[-1] + part).rstrip()) > width and lines[-1]:
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        lines[-1] += part
        while len(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return "\n".join(lines).rstrip()


def _table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], names: int, lines: box.Box | None
) -> Table:
    table = Table(box=lines)
    for at, head in enumerate(heads):
        table.add_column(Text(head), justify="left" if at < names else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _narrowed(natural: Sequence[int], excess: int) -> list[int] | None:
    """Narrow the widest columns of names by ``excess`` characters; None if that is impossible."""
    widths = list(natural)
    for _ in range(excess):
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= _NARROWEST:
            return None
        widths[widest] -= 1
    return widths


def _list_rows(
    heads: Sequence[str], rows: Iterable[Sequence[str]], names: int, console: Console
) -> None:
    """Print each row as a list: its names, then a line for each number."""
    left = max(map(len, heads[names:]), default=0)
    for row in rows:
        console.print(Text(", ".join(filter(None, row[:names]))), soft_wrap=True)
        for head, value in zip(heads[names:], row[names:], strict=True):
            if value:
                console.print(Text(f"  {head.ljust(left)}  {value}"), soft_wrap=True)
