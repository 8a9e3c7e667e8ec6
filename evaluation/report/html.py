"""Renders a document as a page: one self-contained HTML file without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from evaluation.report.cells import cells_of, ends
from evaluation.report.charts import draw_chart, draw_dots
from evaluation.report.figures import diverging_rules, draw, style_rules
from evaluation.report.matrices import arrange
from evaluation.results.words import clip, percent, printable
from kbprobe import document as doc
from kbprobe.errors import require

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(
    document: doc.Document, source: str, template: str = "document.html.j2", **values: object
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
        _environment()
        .get_template(template)
        .render(
            document=document,
            sections=sections,
            links=links if len(sections) > 1 else [],
            source=source,
            **values,
        )
    )


def _has_figures(parts: Iterable[doc.Part]) -> bool:
    return any(
        isinstance(part, doc.Chart | doc.Dots | doc.Picture)
        or (isinstance(part, doc.Fold) and _has_figures(part.shown))
        for part in parts
    )


def _all_drawn(parts: Sequence[doc.Part], name: str) -> list[tuple[str, object]]:
    """Return the kind of each part, and what the template shows of it."""
    return [
        (type(part).__name__, _drawn(part, f"{name}p{number}")) for number, part in enumerate(parts)
    ]


def _drawn(part: doc.Part, name: str) -> object:
    """Return what the template shows of a part: figures as SVG, numbers as cells."""
    if isinstance(part, doc.Chart):
        return {"drawn": draw_chart(part, name), "note": part.note}
    if isinstance(part, doc.Dots):
        return {"drawn": draw_dots(part, name), "note": ""}
    if isinstance(part, doc.Picture):
        return {"drawn": draw(name, part.label, part.height, part.plot), "note": ""}
    if isinstance(part, doc.Fold):
        parts = _all_drawn(part.shown, name)
        return {"title": part.title, "open": part.open, "parts": parts}
    if isinstance(part, doc.Table):
        bars = [_bar(row[-1]) for row in part.rows]
        return {"table": part, "rows": list(zip(cells_of(part), bars, strict=True))}
    return arrange(part) if isinstance(part, doc.HeatMap) else part


def _bar(value: object) -> dict[str, Any] | None:
    """Return where a bar begins, ends, and has its dot and its dashed line."""
    if not isinstance(value, doc.Bar):
        return None
    low, middle, high = ends(value.number)
    return {"low": low, "at": middle, "high": high, "level": value.level, "ink": value.ink}


@cache
def _environment() -> Environment:
    """Return the environment of templates: it escapes everything and rejects undefined names.

    It is made once, so that a process compiles each template once, however many pages it writes.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "percent": percent,
        "count": "{:,}".format,
        "across": lambda share: f"{100 * share:.2f}%",
        "clip": clip,
        "breakable": breakable,
        "marked": marked,
    }
    made.globals |= {"style_rules": style_rules, "diverging_rules": diverging_rules}
    return made


def marked(text: str) -> Markup:
    """Return a text as HTML, converting Markdown's marks for bold and code.

    >>> marked("**a < b** in `c`")
    Markup('<b>a &lt; b</b> in <code>c</code>')
    """
    text = str(escape(printable(text)))
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    return Markup(re.sub(r"`(.+?)`", r"<code>\1</code>", text))  # nosec B704 # escaped above


def breakable(name: str) -> Markup:
    """Allow line breaks in a long name after underscores, slashes and dots.

    >>> breakable("a_b<c")
    Markup('a_<wbr>b&lt;c')
    """
    return Markup(re.sub(r"([_/.])", r"\1<wbr>", str(escape(printable(name)))))  # nosec B704


def _printable(value: Any) -> Any:
    """Make texts printable, leaving existing HTML unchanged."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
