"""The page of the study, ``power.html``: generated deterministically from the summary alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from evaluation.report.figures import draw
from evaluation.report.tables import NONE, Cell, Table
from evaluation.report.templates import environment
from evaluation.results.analyses.inks import MODEL, REFERENCE
from evaluation.results.words import coefficient, percent, short
from evaluation.studies.power.numbers import Spread, power_of
from evaluation.studies.power.types import PowerSummary, ProbePower
from evaluation.studies.power.words import least_text, pair_name, remarks, sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CURVES = 2
_POINTS = 60


def render(summary: PowerSummary) -> str:
    """Return the page."""
    probes = [
        {
            "id": f"p{number}",
            "one": one,
            "found": sentences(one, summary),
            "remarks": remarks(one),
            "figure": _curves(one, summary, f"power{number}"),
            "pairs": _pairs(one),
        }
        for number, one in enumerate(summary.probes)
    ]
    names = [one.probe for one in summary.probes]
    links = [(f"p{number}", name) for number, name in enumerate(names)]
    template = environment(Path(__file__).parent).get_template("power.html.j2")
    return template.render(
        title=names[0] if len(names) == 1 else f"{len(names)} probes",
        links=[*links, ("reading", "How to read it")] if len(links) > 1 else [],
        summary=summary,
        probes=probes,
    )


def _pairs(one: ProbePower) -> Table:
    head = (
        *("models", "first accuracy", "agreement", "correlation", "clusters needed"),
        *("rows needed", "power now", "least difference now"),
    )
    rows = [
        (
            pair_name(pair),
            [
                Cell(percent(pair.accuracy)),
                Cell(percent(pair.agreement)),
                NONE if pair.correlation is None else Cell(coefficient(pair.correlation)),
                Cell(f"{pair.clusters_needed:,}"),
                Cell(f"{pair.rows_needed:,}"),
                Cell(percent(pair.power)),
                Cell(least_text(pair)),
            ],
        )
        for pair in one.pairs
    ]
    return head, rows


def _curves(one: ProbePower, summary: PowerSummary, name: str) -> Markup:
    """Draw power over clusters: of the pairs that need the most and the fewest."""
    ranked = sorted(one.pairs, key=lambda pair: -pair.clusters_needed)
    drawn = [ranked[0], ranked[-1]] if len(ranked) >= _CURVES else ranked
    most = 1.6 * max(one.clusters, ranked[0].clusters_needed)
    clusters = np.linspace(2, most, _POINTS)

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        for pair, style in zip(drawn, ("-", "--"), strict=False):
            spread = Spread(pair.variance, pair.unevenness)
            power = power_of(clusters, summary.difference / 100, spread, summary.level)
            axes.plot(clusters, 100 * power, style, color=MODEL, label=short(pair_name(pair), 60))
        axes.axhline(100 * summary.power, color=REFERENCE, linestyle=":", label="power wanted")
        axes.axvline(one.clusters, color=REFERENCE, linewidth=1, label="clusters that there are")
        axes.set_ylim(0, 103)
        axes.set_xlim(0, most)
        axes.yaxis.set_major_formatter("{x:.0f}%")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel("clusters")
        title = f"Chance of finding a difference of {summary.difference:g} points"
        axes.set_title(title, loc="left", fontsize=11)
        figure.legend(loc="outside upper left", ncols=1)

    return draw(name, "Power by number of clusters. The numbers are in the table below.", 4.0, plot)
