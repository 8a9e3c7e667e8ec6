"""Tables for people: as HTML in notebooks, and as CSV, Markdown or LaTeX for papers and sheets."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

FORMATS = ("csv", "markdown", "latex")
Format = Literal["csv", "markdown", "latex"]

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip

_TO_THE_RIGHT = ' style="text-align: right"'


class Table(NamedTuple):
    """A table: its head, and rows of texts, numbers and None."""

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def text(self, format: Format) -> str:
        r"""Return the table in a format; numbers with as many digits as they have in CSV, else 4.

        >>> print(Table(["model", "n_1"], [["a|b", 0.123456], ["c", None]]).text("markdown"))
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
        """Whether each column holds numbers alone."""
        columns = zip(*self.rows, strict=True) if self.rows else [[] for _ in self.head]
        return [
            bool(held := [cell for cell in column if cell is not None])
            and all(isinstance(c, int | float) and not isinstance(c, bool) for c in held)
            for column in columns
        ]

    def _csv(self) -> str:
        from kbprobe.format.reading import neutral

        file = io.StringIO(newline="")
        writer = csv.writer(file)
        for row in (self.head, *self.rows):
            writer.writerow([neutral(cell) if isinstance(cell, str) else cell for cell in row])
        return file.getvalue()

    def _markdown(self) -> str:
        def line(cells: Sequence[Any]) -> str:
            texts = (" ".join(spelled(cell).split()).replace("|", r"\|") for cell in cells)
            return f"| {' | '.join(texts)} |"

        ruled = "".join("---:|" if right else "---|" for right in self._numeric())
        return "\n".join([line(self.head), f"|{ruled}", *map(line, self.rows), ""])

    def _latex(self) -> str:
        def line(cells: Sequence[Any]) -> str:
            return f"{' & '.join(_in_latex(spelled(cell)) for cell in cells)} \\\\"

        columns = "".join("r" if right else "l" for right in self._numeric())
        ruled = [r"\hline", line(self.head), r"\hline", *map(line, self.rows), r"\hline"]
        return "\n".join([f"\\begin{{tabular}}{{{columns}}}", *ruled, r"\end{tabular}", ""])


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


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
