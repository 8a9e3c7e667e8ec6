"""Colours of figures, by name, each with a value for the light and the dark scheme.

Lines have Okabe and Ito's colours, shades those of ColorBrewer's Blues and Oranges: matplotlib has
them too, but takes longer to import than a page without figures to make.
"""

from __future__ import annotations

PAIR_SHADES = 5
"""Number of shades of each of the two colours that stand for two answers."""

INKS = {
    "model": ("#0072b2", "#56b4e9"),
    "reference": ("#d55e00", "#e69f00"),
    "soft": ("#59636e", "#9fabb8"),
    "line": ("#d5dce3", "#303b47"),
    "type": ("#1c2127", "#e4eaf0"),
}
"""Colours of lines and text, light and dark. Figures are drawn in the light ones."""

MODEL, REFERENCE, SOFT, LINE, TYPE = (light for light, _ in INKS.values())

SERIES = {
    "series0": ("#0a5fb4", "#5aaef0"),
    "series1": ("#b0368c", "#f08fd0"),
    "series2": ("#0f7a55", "#3fd0a0"),
    "series3": ("#7a5c00", "#e2c044"),
    "series4": ("#6a4fc0", "#b3a0ff"),
    "series5": ("#3d6670", "#8fc0cc"),
}
"""Colours of several lines in one figure, all with 4.5 to 1 contrast against the background."""


PALETTES = {
    "Blues": "#f7fbff #deebf7 #c6dbef #9ecae1 #6baed6 #4292c6 #2171b5 #08519c #08306b",
    "Oranges": "#fff5eb #fee6ce #fdd0a2 #fdae6b #fd8d3c #f16913 #d94801 #a63603 #7f2704",
}
"""ColorBrewer's sequential palettes of nine colours, from faint to strong."""


def line_colour(number: int) -> str:
    """Return the light colour of a line; after the last colour, they start again."""
    return list(SERIES.values())[number % len(SERIES)][0]


def colours() -> dict[str, tuple[str, str]]:
    """Return all colours of figures by name, light and dark."""
    return {**INKS, **SERIES, **pair_colours()}


def pair_colours() -> dict[str, tuple[str, str]]:
    """Return shades of two colours that colour-blind readers can distinguish, from faint to strong.

    Blues are ``u0`` to ``u4``, oranges ``v0`` to ``v4``.
    """
    steps = [0.25 + 0.65 * step / (PAIR_SHADES - 1) for step in range(PAIR_SHADES)]
    return {
        f"{name}{step}": (colour(palette, at), colour(f"{palette}_r", at))
        for name, palette in (("u", "Blues"), ("v", "Oranges"))
        for step, at in enumerate(steps)
    }


def colour(palette: str, share: float) -> str:
    """Return a colour as ``#rrggbb``, given one of :data:`PALETTES` and how far along it is.

    Equal to matplotlib's, which has 256 steps; with ``_r`` after its name the palette is reversed.

    >>> colour("Blues", 0.0), colour("Blues_r", 0.0)
    ('#f7fbff', '#08306b')
    """
    named = PALETTES[palette.removesuffix("_r")].split()
    if palette.endswith("_r"):
        named.reverse()
    step = min(int(256 * share), 255) / 255 * (len(named) - 1)
    before = min(int(step), len(named) - 2)
    return mixed(named[before], named[before + 1], step - before)


def mixed(first: str, second: str, share: float) -> str:
    """Return a mixture of two colours, with this share of the second.

    >>> mixed("#000000", "#ffffff", 0.5)
    '#808080'
    """
    pairs = zip(bytes.fromhex(first[1:]), bytes.fromhex(second[1:]), strict=True)
    return f"#{bytes(round((1 - share) * one + share * two) for one, two in pairs).hex()}"
