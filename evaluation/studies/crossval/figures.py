"""The figure of the study: accuracy of models and baselines, with their folds as points."""

from __future__ import annotations

from markupsafe import Markup

from evaluation.report.dots import Dot, dots_figure
from evaluation.studies.crossval.types import ProbeCrossval
from evaluation.studies.crossval.words import row_label


def accuracy_figure(one: ProbeCrossval, name: str) -> Markup:
    """Draw the accuracies of a probe; ``name`` keeps ids apart."""
    dots = [
        Dot(row_label(row), row.accuracy, row.kind in ("majority", "random"), row.folds)
        for row in one.results
    ]
    label = f"Cross-validated test accuracy on {one.probe} of each model and baseline."
    people = None if one.human is None else one.human.value
    return dots_figure(name, label, dots, one.chance, people=people, parts="a fold")
