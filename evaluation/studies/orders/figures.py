"""The figures of the study: accuracy in each order, and by letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from evaluation.report.dots import Dot, dots_figure
from evaluation.report.figures import draw
from evaluation.results.analyses.inks import MODEL, REFERENCE, SOFT
from evaluation.results.types import Estimate
from evaluation.results.words import last_name
from evaluation.studies.orders.types import LetterRow, ModelOrders

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def accuracy_figure(models: Sequence[ModelOrders], name: str) -> Markup:
    """Draw the accuracies of models on one probe, in each order; ``name`` keeps ids apart."""
    dots = [
        Dot(
            last_name(one.model),
            one.variation.accuracy,
            parts=[order.accuracy.value for order in one.orders],
        )
        for one in models
    ]
    label = f"Mean accuracy of each model on {models[0].probe} over orders of the choices."
    return dots_figure(name, label, dots, models[0].chance, parts="an order")


def letters_figure(one: ModelOrders, name: str) -> Markup:
    """Draw accuracy by the letter of the gold, and how often each letter is the answer."""

    def plot(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        # Letters that are never the gold have a number in the right half alone.
        known = [(row.letter, row.accuracy) for row in one.letters if row.accuracy is not None]
        _points(left, known)
        left.axhline(
            100 * one.variation.accuracy.value, color=REFERENCE, linewidth=1, label="mean accuracy"
        )
        left.set_title("Accuracy by letter of the gold", loc="left", fontsize=11)
        _points(right, [(row.letter, row.chosen) for row in one.letters])
        right.plot(
            range(len(one.letters)),
            [100 * row.expected for row in one.letters],
            "--",
            color=SOFT,
            label="equally often",
        )
        right.set_title("Answers by letter", loc="left", fontsize=11)
        left.set_ylim(0, _top(one.letters))
        left.yaxis.set_major_formatter("{x:.0f}%")
        figure.legend(loc="outside upper left", ncols=2)

    label = f"{last_name(one.model)}: accuracy by the letter of the gold, and answers by letter."
    return draw(name, f"{label} The numbers are in the table below.", 3.2, plot)


def _points(axes: Axes, values: Sequence[tuple[str, Estimate]]) -> None:
    held = [estimate for _, estimate in values]
    middle = [100 * one.value for one in held]
    below = [100 * (one.value - one.low) for one in held]
    above = [100 * (one.high - one.value) for one in held]
    axes.errorbar(range(len(held)), middle, [below, above], fmt="o", color=MODEL)
    axes.set_xticks(range(len(held)), [letter for letter, _ in values])
    axes.set_xlim(-0.5, len(held) - 0.5)
    axes.grid(visible=False, axis="x")


def _top(letters: Sequence[LetterRow]) -> float:
    ends = [row.chosen.high for row in letters]
    ends += [row.accuracy.high for row in letters if row.accuracy is not None]
    return min(103.0, 100 * max(ends) + 5)
