"""Figures of the report: drawn by matplotlib, written as SVG in the page's own colours.

Each of their colours (:mod:`evaluation.results.colours`) becomes a variable of the page's
style sheet, so that figures follow the reader's light or dark scheme.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup

from evaluation.results import colours
from evaluation.results.colours import LINE, SOFT, TYPE
from evaluation.results.words import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TWO = 2
"""Maximum number of points that are not joined by a line."""

SHADES = 20
"""Number of steps of the heat map's palette: one for every 5 points of accuracy."""

_DARK_PANEL = "#18202a"
"""The style sheet's panel colour in the dark scheme."""

_STYLE: dict[Any, Any] = {
    "font.size": 11,
    "font.family": "sans-serif",
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "xtick.major.pad": 7,
    "ytick.major.pad": 7,
    "legend.frameon": False,
    "legend.labelcolor": TYPE,
    "text.color": TYPE,
    "text.parse_math": False,
    "svg.fonttype": "none",
}
_WIDTH = 6.0
"""Natural width of a figure, in inches of 72 units: its text is still readable on a phone."""


def shade(share: float) -> int:
    """Return the step of the heat map's palette for a share between 0 and 1."""
    return round(SHADES * min(1.0, max(0.0, share)))


def style_rules() -> Markup:
    """Return the style sheet's colours: variables of the inks, and a class for each shade.

    Classes ``s0`` to ``s20`` are backgrounds of the heat map with a readable text colour, variables
    ``--u0`` to ``--u4`` and ``--v0`` to ``--v4`` the shades of two answers.
    """
    variables = " ".join(
        f"--{name}: light-dark({', '.join(pair)});" for name, pair in colours.colours().items()
    )
    shades = [
        _rule(f"s{step}", shade_colour("s", step), colours.colour("Blues_r", step / SHADES))
        for step in range(SHADES + 1)
    ]
    return Markup("\n".join([f":root {{ {variables} }}", *shades]))  # nosec B704 # our own colours


def diverging_rules() -> Markup:
    """Return the classes ``d0`` to ``d20`` of a diverging palette: backgrounds and text colours.

    From orange for low values over the page's own background, ``d10``, to blue for high ones.
    """
    lines = []
    for step in range(SHADES + 1):
        reach = abs(2 * step / SHADES - 1)
        if not reach:
            lines.append(f".d{step} {{ background: var(--panel); color: var(--type); }}")
            continue
        # In the dark scheme the faintest shades of the palettes are not faint.
        dark = colours.mixed(_DARK_PANEL, colours.colour(f"{_side(step)}_r", 0.5), reach)
        lines.append(_rule(f"d{step}", shade_colour("d", step), dark))
    return Markup("\n".join(lines))  # nosec B704 # our own colours


def shade_colour(palette: Literal["s", "d"], step: int) -> str:
    """Return a shade of a palette in the light scheme as ``#rrggbb``.

    The ends of the diverging palette, ``d``, are not used: its two colours are too similar there.
    """
    if palette == "s":
        return colours.colour("Blues", step / SHADES)
    reach = abs(2 * step / SHADES - 1)
    return colours.colour(_side(step), 0.75 * reach) if reach else "#ffffff"


def _side(step: int) -> str:
    """Return the colours on a side of the diverging palette."""
    return "Oranges" if 2 * step < SHADES else "Blues"


def _rule(name: str, *grounds: str) -> str:
    """Return a class with a background, light and dark, and a readable text colour."""
    types = ("#000000" if luminance(ground) > 0.179 else "#ffffff" for ground in grounds)
    pairs = (f"light-dark({', '.join(pair)})" for pair in (grounds, types))
    return ".{} {{ background: {}; color: {}; }}".format(name, *pairs)


def luminance(colour: str) -> float:
    """Return the relative luminance of ``#rrggbb``, between 0 and 1 (WCAG 2)."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def draw(name: str, label: str, height: float, plot: Callable[[Figure], None]) -> Markup:
    """Draw a figure and return it as SVG to embed in a page: the same bytes every time.

    ``name`` keeps its ids distinct from those of other figures, ``label`` describes it for screen
    readers, and ``height`` is in inches of 72 units.
    """
    written = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with styled({"svg.hashsalt": name}):
        figure = new_figure(_WIDTH, height)
        plot(figure)
        figure.savefig(written, format="svg", transparent=True, metadata=nothing)
    return _inline(written.getvalue(), label)


@contextmanager
def styled(changes: Mapping[Any, Any]) -> Iterator[None]:
    """Draw and save figures in the style of the report, with changes to matplotlib's settings."""
    import matplotlib

    with warnings.catch_warnings(), matplotlib.rc_context({**_STYLE, **changes}):
        # Warnings about scripts that matplotlib's font lacks: the browser has fonts for them.
        warnings.simplefilter("ignore")
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches, whose parts make room for each other."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _inline(svg: str, label: str) -> Markup:
    """Make a standalone SVG embeddable in a page: drop unused ids, and use the page's colours."""
    body = svg[svg.index("<svg") :].strip()
    box = re.search(r'viewBox="([^"]*)"', body)
    if box is None:
        raise ValueError("matplotlib's SVG has no viewBox")
    body = body[body.index(">") + 1 :]
    body = re.sub(r"<(metadata|style|clipPath)\b.*?</\1>", "", body, flags=re.S)
    body = re.sub(r'<!--.*?-->| clip-path="[^"]*"', "", body, flags=re.S)
    used = set(re.findall(r'href="#([^"]*)"', body))
    body = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", body)
    body = re.sub(r"<defs>\s*</defs>", "", body)
    body = re.sub(r"(\d+\.\d\d)\d+", r"\1", body)
    body = re.sub(r"font: ([^;\"]*?)[\d.]+px [^;\"]*", r"font: \g<1>11px inherit", body)
    body = body.replace("font: 11px inherit", "font-size: 11px")
    for name, (light, _) in colours.colours().items():
        body = body.replace(light, f"var(--{name})")
    body = re.sub(r">\s+<", "><", body)
    opening = Markup('<svg class="figure" role="img" viewBox="{}" aria-label="{}">')
    drawn = Markup(printable(body))  # nosec B704 # escaped by matplotlib
    return opening.format(box[1], printable(label)) + drawn
