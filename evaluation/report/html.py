"""Renders a document as a page: one self-contained HTML file without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from evaluation.report.cells import cells_of, ends
from evaluation.report.charts import draw_chart, draw_dots
from evaluation.report.figures import draw
from evaluation.report.matrices import arrange
from evaluation.report.templates import environment
from evaluation.results.words import clip
from kbprobe.document import (
    Bar,
    Chart,
    Document,
    Dots,
    Fold,
    HeatMap,
    Part,
    Picture,
    Table,
)
from kbprobe.errors import require


def render_page(
    document: Document, source: str, template: str = "document.html.j2", **values: object
) -> str:
    """Return the page; it is the same, byte for byte, for the same document.

    Args:
        document: what is on the page.
        source: names what the page is made from.
        template: a template that extends that of documents.
        **values: what it needs.

    Raises:
        MissingDependencyError: the document has figures, and matplotlib is not installed.
    """
    shown = [section.shown for section in document.sections]
    if any(map(_has_figures, shown)):
        require("matplotlib", "eval", "making a page with figures")
    sections: list[dict[str, Any]] = [
        {
            "id": section.name or f"s{number}",
            "title": section.title,
            "link": section.link or section.title,
            "parts": _all_drawn(parts, section.name or f"s{number}"),
        }
        for number, (section, parts) in enumerate(zip(document.sections, shown, strict=True))
    ]
    links = [(section["id"], clip(section["link"], 80)) for section in sections if section["link"]]
    if document.reading:
        links.append(("reading", "How to read it"))
    return (
        environment()
        .get_template(template)
        .render(
            document=document,
            sections=sections,
            links=links if len(sections) > 1 else [],
            source=source,
            **values,
        )
    )


def _has_figures(parts: Iterable[Part]) -> bool:
    return any(
        isinstance(part, Chart | Dots | Picture)
        or (isinstance(part, Fold) and _has_figures(part.shown))
        for part in parts
    )


def _all_drawn(parts: Sequence[Part], name: str) -> list[tuple[str, object]]:
    """Return the kind of each part, and what the template shows of it."""
    return [
        (type(part).__name__, _drawn(part, f"{name}p{number}")) for number, part in enumerate(parts)
    ]


def _drawn(part: Part, name: str) -> object:
    """Return what the template shows of a part: figures as SVG, numbers as cells."""
    if isinstance(part, Chart):
        return {"drawn": draw_chart(part, name), "note": part.note}
    if isinstance(part, Dots):
        return {"drawn": draw_dots(part, name), "note": ""}
    if isinstance(part, Picture):
        return {"drawn": draw(name, part.label, part.height, part.plot), "note": ""}
    if isinstance(part, Fold):
        parts = _all_drawn(part.shown, name)
        return {"title": part.title, "open": part.open, "parts": parts}
    if isinstance(part, Table):
        bars = [_bar(row[-1]) for row in part.rows]
        return {"table": part, "rows": list(zip(cells_of(part), bars, strict=True))}
    return arrange(part) if isinstance(part, HeatMap) else part


def _bar(value: object) -> dict[str, Any] | None:
    """Return where a bar begins, ends, and has its dot and its dashed line."""
    if not isinstance(value, Bar):
        return None
    low, middle, high = ends(value.number)
    return {"low": low, "at": middle, "high": high, "level": value.level, "ink": value.ink}
