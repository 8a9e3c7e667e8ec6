"""Tables for people: as HTML in notebooks, and as CSV, Markdown or LaTeX for papers and sheets."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from kbprobe.terminal import visible

FORMATS = ("csv", "markdown", "latex")
Format = Literal["csv", "markdown", "latex"]

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
})  # fmt: skip

_TO_THE_RIGHT = ' style="text-align: right"'


_FORMULA = tuple("=+-@\t\r\n＝＋－＠|%")
"""Beginnings of cells that a spreadsheet may execute as a formula or a DDE call."""


def neutral(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula.

    An apostrophe is put before a text that begins, spaces aside, with one of ``= + - @`` (or
    their full-width forms, a tab, a line break, ``|`` or ``%``). Spreadsheets show such a cell
    as text. `as_written` removes it again.

    >>> neutral("=1+1"), neutral("- a dash"), neutral("1 = 1")
    ("'=1+1", "'- a dash", '1 = 1')
    """
    # Also before an apostrophe of the text itself, which would otherwise be removed instead.
    bare = text.lstrip("'").lstrip(" \u00a0\u200b\ufeff")
    return f"'{text}" if bare.startswith(_FORMULA) else text


def as_written(cell: str) -> str:
    """Return the text from which `neutral` made a cell; other cells are returned unchanged.

    >>> as_written("'=1+1"), as_written("'tis"), as_written("=1+1")
    ('=1+1', "'tis", '=1+1')
    """
    text = cell.removeprefix("'")
    return text if neutral(text) == cell else cell


def in_markdown(text: str) -> str:
    r"""Escape a text so that a Markdown line or table cell shows it literally.

    >>> print(in_markdown("a | b_c *d* <br> [e](f) [MASK]"))
    a \| b_c \*d\* &lt;br&gt; [e\](f) [MASK]
    """
    text = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"[\\|*`~]|\](?=\()|(?<!\w)_|_(?!\w)", r"\\\g<0>", text)
    return " ".join(text.split())


def csv_text(
    rows: Iterable[Iterable[Any]],
    *,
    quoting: Literal[0, 1] = csv.QUOTE_MINIMAL,
    line_end: str = "\r\n",
) -> str:
    r"""Return rows as CSV that no spreadsheet executes and no terminal interprets.

    >>> csv_text([["=1+1", 2, "a\x1b[31m"]], line_end="\n")
    "'=1+1,2,a\\u001b[31m\n"
    """
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=quoting, lineterminator=line_end)
    for row in rows:
        writer.writerow([neutral(visible(c)) if isinstance(c, str) else c for c in row])
    return file.getvalue()


class PlainTable(NamedTuple):
    """A table: its head, and rows of texts, numbers and None."""

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def text(self, format: Format) -> str:
        r"""Return the table in a format; numbers have all their digits in CSV, and 4 elsewhere.

        >>> print(PlainTable(["model", "n_1"], [["a|b", 0.123456], ["c", None]]).text("markdown"))
        | model | n_1 |
        |---|---:|
        | a\|b | 0.1235 |
        | c |  |
        <BLANKLINE>
        """
        return {"csv": self._csv, "markdown": self._markdown, "latex": self._latex}[format]()

    def html(self, caption: str = "") -> str:
        """Return the table as HTML; all text is escaped."""
        right = self._numeric()
        lines = ["<table>"]
        if caption:
            lines.append(f"<caption>{html.escape(caption)}</caption>")
        for tag, cells in (("th", self.head), *(("td", row) for row in self.rows)):
            made = (
                f"<{tag}{_TO_THE_RIGHT if end else ''}>{html.escape(spelled(cell))}</{tag}>"
                for cell, end in zip(cells, right, strict=True)
            )
            lines.append(f"<tr>{''.join(made)}</tr>")
        return "\n".join([*lines, "</table>"])

    def _numeric(self) -> list[bool]:
        """Return whether each column holds only numbers."""
        columns = zip(*self.rows, strict=True) if self.rows else [[] for _ in self.head]
        return [
            bool(held := [cell for cell in column if cell is not None])
            and all(isinstance(c, int | float) and not isinstance(c, bool) for c in held)
            for column in columns
        ]

    def _csv(self) -> str:
        return csv_text((self.head, *self.rows))

    def _markdown(self) -> str:
        def line(cells: Sequence[Any]) -> str:
            texts = (in_markdown(spelled(cell)) for cell in cells)
            return f"| {' | '.join(texts)} |"

        ruled = "".join("---:|" if right else "---|" for right in self._numeric())
        return "\n".join([line(self.head), f"|{ruled}", *map(line, self.rows), ""])

    def _latex(self) -> str:
        def line(cells: Sequence[Any]) -> str:
            texts = (" ".join(spelled(cell).split()).translate(_LATEX) for cell in cells)
            return f"{' & '.join(texts)} \\\\"

        columns = "".join("r" if right else "l" for right in self._numeric())
        ruled = [r"\hline", line(self.head), r"\hline", *map(line, self.rows), r"\hline"]
        return "\n".join([f"\\begin{{tabular}}{{{columns}}}", *ruled, r"\end{tabular}", ""])


def spelled(cell: Any) -> str:
    """Return a cell as text: numbers with commas, or four digits after the point.

    >>> spelled(12345), spelled(0.5), spelled(None), spelled(True)
    ('12,345', '0.5000', '', 'yes')
    """
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:.4f}" if isinstance(cell, float) else str(cell)
