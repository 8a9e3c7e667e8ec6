"""Prints a document on a terminal: its sentences and tables, without figures."""

from __future__ import annotations

from evaluation.report.cells import cells_of, in_line, lines_of
from evaluation.report.matrices import as_table
from evaluation.results.console import print_rows, wide_console
from kbprobe import document as doc
from kbprobe.terminal.console import Console


def print_document(document: doc.Document) -> None:
    """Print a document without its figures, folded parts, and notes on how to read the numbers."""
    console = wide_console()
    for section in document.sections:
        title, heading = section.title, ""
        for part in section.shown:
            if isinstance(part, doc.Heading):
                heading = part.text
            elif _is_printed(part):
                # Headings that have only figures are left out with them.
                for line in filter(None, (title, heading)):
                    console.print(f"\n{line}", soft_wrap=True)
                title = heading = ""
                _print_part(part, console)


def _is_printed(part: doc.Part) -> bool:
    if isinstance(part, doc.Table):
        return not part.fold
    return isinstance(
        part, doc.Text | doc.Conclusion | doc.Findings | doc.Caveats | doc.HeatMap | doc.Question
    )


def _print_part(part: doc.Part, console: Console) -> None:
    if isinstance(part, doc.Text):
        console.print(f"  {part.text}".replace("**", "").replace("`", ""), soft_wrap=True)
    elif isinstance(part, doc.Conclusion):
        console.print(f"  {part.text}. {part.detail}", soft_wrap=True)
    elif isinstance(part, doc.Question):
        for line in lines_of(part):
            console.print(f"  {line}", soft_wrap=True)
    elif isinstance(part, doc.Findings | doc.Caveats):
        for sentence in part.sentences:
            console.print(f"  {sentence}", soft_wrap=True)
    elif isinstance(part, doc.HeatMap):
        _print_table(as_table(part), console)
    elif isinstance(part, doc.Table):
        _print_table(part, console)


def _print_table(table: doc.Table, console: Console) -> None:
    if table.caption:
        console.print(f"\n  {table.caption}", soft_wrap=True)
    rows = [["\n".join([in_line(cell), *cell.lines]) for cell in row] for row in cells_of(table)]
    print_rows(table.columns, rows, names=table.names, console=console)
