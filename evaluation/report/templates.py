"""The environment of the pages' templates, and its filters for numbers and texts."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from evaluation.report.breakdowns import SMALL
from evaluation.report.figures import diverging_rules, shade, style_rules
from evaluation.results.words import clip, interval, number, percent, points, printable

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment(folder: Path | None = None) -> Environment:
    """Return the environment of templates: it escapes everything and rejects undefined names.

    It is made once, so that a process compiles each template once, however many pages it writes.

    ``folder`` holds further templates, which may extend ``base.html.j2``: a page in the same style
    that runs no scripts and loads nothing from elsewhere.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folders = [Path(__file__).parent, *([] if folder is None else [folder])]
    made = Environment(
        loader=FileSystemLoader(folders),
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
    }
    made.globals |= {"shade": shade, "small": SMALL, "style_rules": style_rules}
    made.globals["diverging_rules"] = diverging_rules
    return made


def breakable(name: str) -> Markup:
    """Allow line breaks in a long name after underscores, slashes and dots.

    >>> breakable("a_b<c")
    Markup('a_<wbr>b&lt;c')
    """
    return Markup(re.sub(r"([_/.])", r"\1<wbr>", str(escape(printable(name)))))  # nosec B704


def _printable(value: Any) -> Any:
    """Make texts printable, leaving existing HTML unchanged."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
