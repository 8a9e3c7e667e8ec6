"""Tables for people: as HTML in notebooks, and as CSV, Markdown or LaTeX for papers and sheets."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from kbprobe.terminal import visible

FORMATS = ("csv", "markdown", "latex")
Format = Literal["csv", "markdown", "latex"]

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "†": r"$^\dagger$",
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


class Measured(NamedTuple):
    """A number with its 95% interval, and how it is printed.

    Attributes:
        value: the number.
        low, high: the ends of its interval; None: it has none.
        n: how many rows it was computed from; None: not known.
        kind: a share between 0 and 1, which is printed in percent; a difference in percentage
            points, with its sign; or any other number.
        best: whether it is set in bold.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    kind: Literal["share", "points", "number"] = "number"
    best: bool = False

    def spell(self, value: float, *, signed: bool = False) -> str:
        """Return a number as this one is printed, in ASCII.

        >>> Measured(0.25, kind="share").spell(-0.0312), Measured(0.25).spell(0.1)
        ('-3.1', '0.100')
        """
        digits = 3 if self.kind == "number" else 1
        rounded = round(value * (100 if self.kind == "share" else 1), digits) + 0.0
        return f"{rounded:{'+' if signed else ''}.{digits}f}"

    @property
    def printed(self) -> str:
        """The number without its interval."""
        return self.spell(self.value, signed=self.kind == "points")

    @property
    def half(self) -> str:
        """Half of the width of its interval."""
        return (
            "" if self.low is None or self.high is None else self.spell((self.high - self.low) / 2)
        )

    @property
    def is_even(self) -> bool:
        """Whether the interval is the number plus or minus half its width, to the last digit.

        >>> Measured(0.5, 0.4, 0.6, kind="share").is_even, Measured(0.5, 0.4, 0.61).is_even
        (True, False)
        """
        if self.low is None or self.high is None:
            return True
        tolerance = {"share": 0.001, "points": 0.1, "number": 0.001}[self.kind]
        return abs(self.low + self.high - 2 * self.value) <= 2 * tolerance + 1e-12

    def in_latex(self, *, even: bool) -> str:
        r"""Return the number in LaTeX, with its interval as ± or as the distances of its ends.

        >>> print(Measured(0.3, 0.219, 0.396, kind="share").in_latex(even=False))
        $30.0_{-8.1}^{+9.6}$
        """
        shown = rf"\mathbf{{{self.printed}}}" if self.best else self.printed
        if self.low is None or self.high is None:
            return f"${shown}$"
        if even:
            return rf"${shown} \pm {self.half}$"
        low, high = (self.spell(end - self.value, signed=True) for end in (self.low, self.high))
        # An end at the number itself, as at 0 or 100%, is below or above by nothing.
        low = low.replace("+0.", "-0.")
        return f"${shown}_{{{low}}}^{{{high}}}$"

    def in_text(self, *, even: bool) -> str:
        """Return the number in text, with its interval as ± or from end to end.

        >>> Measured(0.3, 0.219, 0.396, kind="share").in_text(even=False)
        '30.0 (21.9 to 39.6)'
        """
        shown = self.printed
        if self.low is not None and self.high is not None:
            signed = self.kind == "points"
            low, high = (self.spell(end, signed=signed) for end in (self.low, self.high))
            shown += f" ± {self.half}" if even else f" ({low} to {high})"
        return shown.replace("-", "−")


class PlainTable(NamedTuple):
    """A table: its head, and rows of texts, numbers, `Measured` numbers and None.

    Attributes:
        head: the names of the columns.
        rows: their contents.
        titles: what the columns are called where people read the table, if not by their names.
        rules: rows before which LaTeX has a line.
        notes: what a reader must know, written below the table, or in LaTeX's comments.
        footnotes: what marks such as † mean: short lines that LaTeX prints as well.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    titles: Sequence[str] = ()
    rules: Collection[int] = ()
    notes: Sequence[str] = ()
    footnotes: Sequence[str] = ()

    def text(self, format: Format) -> str:
        r"""Return the table in a format.

        In CSV, numbers have all their digits, and each end of an interval its own column. Elsewhere
        intervals are ± half their width; in a column with one that is not even, to a tenth of a
        point, they are given end by end.

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
        rows = self._written(lambda cell: html.escape(spelled(cell)), Measured.in_text)
        head = [html.escape(name) for name in self._titles]
        for tag, cells in (("th", head), *(("td", row) for row in rows)):
            made = (
                f"<{tag}{_TO_THE_RIGHT if end else ''}>{cell}</{tag}>"
                for cell, end in zip(cells, right, strict=True)
            )
            lines.append(f"<tr>{''.join(made)}</tr>")
        return "\n".join([*lines, "</table>"])

    @property
    def flat(self) -> PlainTable:
        """The table of plain numbers: the ends of an interval, and n, in columns of their own.

        >>> PlainTable(["x"], [[Measured(0.5, 0.4, 0.6)]]).flat.head
        ['x', 'x_low', 'x_high']
        """
        columns = [
            wider
            for name, cells in zip(self.head, self._columns, strict=True)
            for wider in _flat(name, cells)
        ]
        rows = [[cells[row] for _, cells in columns] for row in range(len(self.rows))]
        return PlainTable([name for name, _ in columns], rows)

    @property
    def filled(self) -> list[str]:
        """The columns in which some row has a value."""
        named = zip(self.head, self._columns, strict=True)
        return [name for name, cells in named if any(cell not in (None, "") for cell in cells)]

    def chosen(self, columns: Sequence[str]) -> PlainTable:
        """Return the table of these columns, in this order; all must exist."""
        places = [list(self.head).index(name) for name in columns]
        titles = [self.titles[place] for place in places] if self.titles else ()
        rows = [[row[place] for place in places] for row in self.rows]
        return self._replace(head=list(columns), rows=rows, titles=titles)

    @property
    def _titles(self) -> Sequence[str]:
        return self.titles or self.head

    @property
    def _columns(self) -> list[tuple[Any, ...]]:
        return list(zip(*self.rows, strict=True)) if self.rows else [() for _ in self.head]

    def _numeric(self) -> list[bool]:
        """Return whether each column holds only numbers."""
        return [
            bool(held := [cell for cell in column if cell is not None])
            and all(isinstance(c, int | float | Measured) and not isinstance(c, bool) for c in held)
            for column in self._columns
        ]

    def _written(
        self, write: Callable[[Any], str], measured: Callable[..., str]
    ) -> list[list[str]]:
        """Return the cells as texts; one column has its intervals in one form."""
        even = [
            all(cell.is_even for cell in column if isinstance(cell, Measured))
            for column in self._columns
        ]
        return [
            [
                measured(cell, even=way) if isinstance(cell, Measured) else write(cell)
                for cell, way in zip(row, even, strict=True)
            ]
            for row in self.rows
        ]

    def _csv(self) -> str:
        flat = self.flat
        return csv_text((flat.head, *flat.rows))

    def _markdown(self) -> str:
        def measured(cell: Measured, *, even: bool) -> str:
            text = cell.in_text(even=even)
            return (
                text.replace(shown := text.split(" ")[0], f"**{shown}**", 1) if cell.best else text
            )

        rows = self._written(lambda cell: in_markdown(spelled(cell)), measured)
        lines = [f"| {' | '.join(row)} |" for row in [[*map(in_markdown, self._titles)], *rows]]
        ruled = "".join("---:|" if right else "---|" for right in self._numeric())
        notes = [
            line for note in (*self.footnotes, *self.notes) for line in ("", in_markdown(note))
        ]
        return "\n".join([lines[0], f"|{ruled}", *lines[1:], *notes, ""])

    def _latex(self) -> str:
        columns = "".join("r" if right else "l" for right in self._numeric())
        body = []
        for number, row in enumerate(self._written(_in_latex, Measured.in_latex)):
            body += [r"\midrule"] if number in self.rules and number else []
            body.append(_latex_line(row))
        notes = [r"Needs \usepackage{booktabs}.", *map(_one_line, self.notes)]
        return "\n".join([
            *(f"% {note}" for note in notes),
            f"\\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _latex_line(map(_in_latex, self._titles)),
            r"\midrule",
            *body,
            r"\bottomrule",
            *(
                rf"\multicolumn{{{len(self.head)}}}{{l}}{{\footnotesize {_in_latex(line)}}} \\"
                for line in self.footnotes
            ),
            r"\end{tabular}",
            "",
        ])  # fmt: skip


def _flat(name: str, cells: Sequence[Any]) -> list[tuple[str, list[Any]]]:
    """Return a column as columns of plain values: of measured numbers their ends and n too."""
    measured = [cell if isinstance(cell, Measured) else None for cell in cells]
    plain = [cell if of is None else of.value for cell, of in zip(cells, measured, strict=True)]
    columns = [(name, plain)]
    for end in ("low", "high", "n"):
        values = [of and getattr(of, end) for of in measured]
        if any(value is not None for value in values):
            columns.append((f"{name}_{end}", values))
    return columns


def _one_line(text: str) -> str:
    return " ".join(visible(text).split())


def _in_latex(cell: Any) -> str:
    return _one_line(spelled(cell)).translate(_LATEX)


def _latex_line(cells: Iterable[str]) -> str:
    line = f"{' & '.join(cells)} \\\\"
    # After a rule or the end of a line, LaTeX takes these for the beginning of an argument.
    return f"{{}}{line}" if line.startswith(("[", "*")) else line


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
