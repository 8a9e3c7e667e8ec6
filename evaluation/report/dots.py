"""Figures of accuracies by name: a dot with its interval for each, and a line for chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from evaluation.report.figures import draw
from evaluation.results.analyses.inks import MODEL, REFERENCE, SOFT
from evaluation.results.types import Estimate
from evaluation.results.words import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROW, _MARGIN = 0.34, 1.1
_NAME = 34
"""Characters of a name."""

_LEAST_SPAN = 25.0
"""Points of accuracy that a figure spans at least."""


class Dot(NamedTuple):
    """A row of the figure.

    Attributes:
        name: beside it.
        accuracy: a share and its interval.
        reference: whether it stands out as something to compare the others with.
        parts: shares of parts of the rows, such as folds, as small dots.
    """

    name: str
    accuracy: Estimate
    reference: bool = False
    parts: Sequence[float] = ()


def dots_figure(
    name: str,
    label: str,
    dots: Sequence[Dot],
    chance: float,
    *,
    people: float | None = None,
    parts: str = "",
) -> Markup:
    """Draw accuracies from top to bottom.

    Args:
        name: keeps ids apart.
        label: what it shows, for those who do not see it.
        dots: the rows.
        chance: a share, drawn as a line.
        people: the share that people get right, drawn likewise.
        parts: what the small dots are, for the legend.
    """

    def plot(figure: Figure) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = figure.subplots()
        for place, dot in enumerate(dots):
            shares = [100 * share for share in dot.parts]
            named = parts if shares and not any(other.parts for other in dots[:place]) else None
            style: dict[str, Any] = {"s": 12, "color": SOFT, "alpha": 0.55, "linewidths": 0}
            axes.scatter(shares, [place] * len(shares), label=named, **style)
            colour, marker = (REFERENCE, "s") if dot.reference else (MODEL, "o")
            own = dot.accuracy
            axes.plot([100 * own.low, 100 * own.high], [place, place], color=colour, linewidth=2)
            axes.plot([100 * own.value], [place], color=colour, marker=marker, markersize=6)
        axes.axvline(100 * chance, color=SOFT, linestyle=(0, (3, 2)), label="chance")
        if people is not None:
            axes.axvline(100 * people, color=SOFT, linewidth=1, label="people")
        axes.set_yticks(range(len(dots)), [short(dot.name, _NAME) for dot in dots])
        axes.set_ylim(len(dots) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlim(*_span([*_ends(dots), chance, *([] if people is None else [people])]))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter("{x:.0f}%")
        axes.set_xlabel("accuracy")
        figure.legend(loc="outside upper left", ncols=3)

    text = f"{label} The numbers are in the table below."
    return draw(name, text, _MARGIN + _ROW * len(dots), plot)


def _ends(dots: Sequence[Dot]) -> list[float]:
    return [share for dot in dots for share in (dot.accuracy.low, dot.accuracy.high, *dot.parts)]


def _span(shares: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the axis, in percent: noise about chance is not to look like much."""
    low, high = 100 * min(shares) - 3, 100 * max(shares) + 3
    missing = max(0.0, _LEAST_SPAN - (high - low)) / 2
    return max(0.0, low - missing), min(102.0, high + missing)
