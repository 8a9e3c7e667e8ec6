"""The page of the study, ``baselines.html``: generated deterministically from the summary alone."""

from __future__ import annotations

from pathlib import Path

from evaluation.report.templates import environment
from evaluation.results.words import interval, percent, points
from evaluation.studies.baselines.figures import accuracy_figure
from evaluation.studies.baselines.show import headline, trained_on
from evaluation.studies.baselines.types import BaselinesSummary, Measured, Measurement
from kbprobe.errors import require

HEAD = ("baseline", "reads", "accuracy", "95% interval", "less chance (points)", "trained on")


def render(summary: BaselinesSummary) -> str:
    """Return the page.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    require("matplotlib", "eval", "making a page of baselines")
    names = list(dict.fromkeys(one.probe for one in summary.probes))
    template = environment(Path(__file__).parent).get_template("baselines.html.j2")
    return template.render(
        title=names[0] if len(names) == 1 else f"{len(names)} probes",
        probes=[_section(one, number) for number, one in enumerate(summary.probes)],
    )


def _section(one: Measurement, number: int) -> dict[str, object]:
    """Return what the section of a probe shows."""
    held = [*one.baselines, *one.beside]
    return {
        "id": f"p{number}",
        "one": one,
        "headline": headline(one),
        "best": max(one.baselines, key=lambda measured: measured.accuracy.value),
        "figure": accuracy_figure(one, f"p{number}"),
        "head": HEAD,
        "rows": [_cells(measured) for measured in held],
    }


def _cells(held: Measured) -> tuple[str, ...]:
    low, high = points(held.over_chance.low), points(held.over_chance.high)
    return (
        held.name,
        held.reads,
        percent(held.accuracy.value),
        interval(held.accuracy),
        f"{points(held.over_chance.value)} ({low} to {high})",
        trained_on(held),
    )
