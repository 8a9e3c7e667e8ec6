"""The figure of the study: accuracy of models and baselines, with their folds as points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from evaluation.report.figures import draw
from evaluation.results.analyses.inks import MODEL, REFERENCE, SOFT
from evaluation.studies.crossval.types import ProbeCrossval
from evaluation.studies.crossval.words import row_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def accuracy_figure(one: ProbeCrossval, name: str) -> Markup:
    """Draw the accuracies of a probe; ``name`` keeps ids apart."""
    rows = one.results[::-1]

    def plot(figure: Figure) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = figure.subplots()
        for place, row in enumerate(rows):
            baseline = row.kind in ("majority", "random")
            own = row.accuracy
            ends = [[100 * (own.value - own.low)], [100 * (own.high - own.value)]]
            axes.scatter(
                [100 * fold for fold in row.folds],
                [place] * len(row.folds),
                s=12,
                color=SOFT,
                alpha=0.55,
                linewidths=0,
                label="a fold" if place == 0 else None,
            )
            axes.errorbar(
                [100 * own.value],
                [place],
                xerr=ends,
                marker="s" if baseline else "o",
                color=REFERENCE if baseline else MODEL,
                capsize=3,
            )
        axes.axvline(
            100 * one.chance, color=SOFT, linestyle=(0, (1, 2)), linewidth=1, label="chance"
        )
        if one.human is not None:
            axes.axvline(100 * one.human.value, color=SOFT, linewidth=1, label="people")
        axes.set_yticks(range(len(rows)), [row_label(row) for row in rows])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.xaxis.set_major_formatter("{x:.0f}%")
        axes.set_xlabel("test accuracy")
        axes.grid(visible=False, axis="y")
        figure.legend(loc="outside upper left", ncols=3)

    label = f"Cross-validated test accuracy on {one.probe} of each model and baseline."
    return draw(name, f"{label} The numbers are in the table below.", 1.5 + 0.4 * len(rows), plot)
