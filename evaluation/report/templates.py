"""The environment of the pages' templates, and its filters for numbers and texts."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from evaluation.report.figures import diverging_rules, style_rules
from evaluation.results.words import clip, interval, number, percent, points, printable

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> Environment:
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
        "interval": interval,
        "count": "{:,}".format,
        "points": points,
        "number": number,
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
