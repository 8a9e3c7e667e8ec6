"""The figure of the study: the accuracy of each baseline, of what stands beside, and chance."""

from __future__ import annotations

from markupsafe import Markup

from evaluation.report.dots import Dot, dots_figure
from evaluation.studies.baselines.types import Measurement


def accuracy_figure(one: Measurement, name: str) -> Markup:
    """Draw the accuracies on a probe; ``name`` keeps ids apart."""
    dots = [Dot(measured.name, measured.accuracy) for measured in one.baselines]
    dots += [Dot(measured.name, measured.accuracy, reference=True) for measured in one.beside]
    label = f"Accuracy of each baseline on {one.probe}, with 95% intervals and chance."
    return dots_figure(name, label, dots, one.chance)
