"""Renders a document as Markdown: its sentences and tables, without figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evaluation.report.cells import cells_of, in_line, lines_of
from evaluation.report.matrices import as_table
from kbprobe import document as doc
from kbprobe.tables import in_markdown


def render_markdown(document: doc.Document) -> str:
    """Return the document as Markdown, with an empty line between its parts."""
    blocks = [f"# {in_markdown(document.kind)}: {in_markdown(document.title)}"]
    for section in document.sections:
        parts = [block for part in section.shown for block in _blocks(part)]
        if section.title and parts:
            blocks.append(f"## {in_markdown(section.title)}")
        blocks += parts
    if document.reading:
        blocks += ["## How to read it", *document.reading]
    return "\n\n".join(blocks) + "\n"


def _blocks(part: doc.Part) -> list[str]:
    if isinstance(part, doc.Text):
        return [part.text]
    if isinstance(part, doc.Conclusion):
        return [f"**{in_markdown(part.text)}** {in_markdown(part.detail)}"]
    if isinstance(part, doc.Heading):
        return [f"### {in_markdown(part.text)}"]
    if isinstance(part, doc.Findings):
        return [_bullets(part.sentences)]
    if isinstance(part, doc.Caveats):
        return ["Caveats:", _bullets(part.sentences)]
    if isinstance(part, doc.Tiles):
        return [_bullets(f"{name}: {_spelt(cell)}" for name, cell in part.tiles.items())]
    if isinstance(part, doc.Question):
        return [_bullets(lines_of(part))]
    if isinstance(part, doc.Fold):
        parts = [block for inner in part.shown for block in _blocks(inner)]
        return [f"### {in_markdown(part.title)}", *parts]
    if isinstance(part, doc.HeatMap):
        part = as_table(part)
    if isinstance(part, doc.Table):
        title = [f"### {in_markdown(part.fold)}"] if part.fold else []
        return [*title, *([in_markdown(part.caption)] if part.caption else []), render_table(part)]
    return []


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {in_markdown(sentence)}" for sentence in sentences)


def render_table(table: doc.Table) -> str:
    """Return a table as Markdown, without its caption."""
    ruled = "---|" * table.names + "---:|" * (len(table.columns) - table.names)
    rows = ([_spelt(cell) for cell in row] for row in cells_of(table))
    return "\n".join([_line(table.columns), f"|{ruled}", *map(_line, rows)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(in_markdown, cells))} |"


def _spelt(cell: doc.Cell) -> str:
    return "; ".join([in_line(cell), *cell.lines])
