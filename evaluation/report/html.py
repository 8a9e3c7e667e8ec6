"""Renders a document as a page: one self-contained HTML file without scripts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from markupsafe import Markup, escape

from evaluation.report.cells import cells_of
from evaluation.report.charts import draw_chart, draw_dots
from evaluation.report.matrices import arrange
from evaluation.report.templates import environment
from evaluation.results.words import clip, printable
from kbprobe.document import Chart, Document, Dots, HeatMap, Part, Table
from kbprobe.errors import require


def render_page(document: Document, source: str) -> str:
    """Return the page; it is the same, byte for byte, for the same document.

    ``source`` names what the page is made from.

    Raises:
        MissingDependencyError: the document has figures, and matplotlib is not installed.
    """
    shown = [section.shown for section in document.sections]
    if any(isinstance(part, Chart | Dots) for parts in shown for part in parts):
        require("matplotlib", "eval", "making a page with figures")
    sections: list[dict[str, Any]] = [
        {
            "id": f"s{number}",
            "title": section.title,
            "link": section.link or section.title,
            "parts": [
                (type(part).__name__, _drawn(part, f"s{number}p{at}"))
                for at, part in enumerate(parts)
            ],
        }
        for number, (section, parts) in enumerate(zip(document.sections, shown, strict=True))
    ]
    links = [(section["id"], clip(section["link"], 80)) for section in sections]
    if document.reading:
        links.append(("reading", "How to read it"))
    templates = environment()
    templates.filters["marked"] = marked
    return templates.get_template("document.html.j2").render(
        document=document,
        sections=sections,
        links=links if len(sections) > 1 else [],
        source=source,
    )


def marked(text: str) -> Markup:
    """Return a text as HTML, converting Markdown's marks for bold and code.

    >>> marked("**a < b** in `c`")
    Markup('<b>a &lt; b</b> in <code>c</code>')
    """
    found = str(escape(printable(text)))
    found = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", found)
    return Markup(re.sub(r"`(.+?)`", r"<code>\1</code>", found))  # nosec B704 # escaped above


def _drawn(part: Part, name: str) -> object:
    """Return what the template shows of a part: figures as SVG, numbers as cells."""
    if isinstance(part, Chart):
        return {"drawn": draw_chart(part, name), "note": part.note}
    if isinstance(part, Dots):
        return {"drawn": draw_dots(part, name), "note": ""}
    if isinstance(part, Table):
        return replace(part, rows=cells_of(part))
    return arrange(part) if isinstance(part, HeatMap) else part
