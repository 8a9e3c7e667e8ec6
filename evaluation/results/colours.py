"""Colours of figures, by name, each with a value for the light and the dark scheme.

Palettes are matplotlib's: Okabe and Ito's for lines, ColorBrewer's Blues and Oranges for shades.
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
    """Return a colour from one of matplotlib's palettes as ``#rrggbb``."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return to_hex(colormaps[palette](share))


def mixed(first: str, second: str, share: float) -> str:
    """Return a mixture of two colours, with this share of the second.

    >>> mixed("#000000", "#ffffff", 0.5)
    '#808080'
    """
    from matplotlib.colors import to_hex, to_rgb

    pairs = zip(to_rgb(first), to_rgb(second), strict=True)
    red, green, blue = ((1 - share) * one + share * two for one, two in pairs)
    return to_hex((red, green, blue))
