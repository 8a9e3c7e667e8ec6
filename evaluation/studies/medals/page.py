"""The page of medals, ``medals.html``: generated from the summary alone."""

from __future__ import annotations

from pathlib import Path

from evaluation.report.templates import environment
from evaluation.studies.medals.show import HEADS, SIGNS, details
from evaluation.studies.medals.types import Medals


def render(medals: Medals) -> str:
    """Return the page, which the medals alone determine."""
    template = environment(Path(__file__).parent).get_template("medals.html.j2")
    return template.render(
        medals=medals,
        rows=[
            (probe, [medals.at(probe, model) for model in medals.models]) for probe in medals.probes
        ],
        signs=SIGNS,
        heads=HEADS,
        why=[(medal.probe, medal.model, details(medal)) for medal in medals.medals],
        several=(len(medals.probes), len(medals.models)),
    )
