"""The study of medals: learning curves of several probes and models as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from evaluation.studies.base import Study, StudyRequest
from evaluation.studies.curve.types import CurveSummary, read_curves
from evaluation.studies.medals.rule import RULE, award, is_model
from evaluation.studies.medals.show import show
from evaluation.studies.medals.types import NAME, Medal, Medals
from kbprobe.errors import UsageError


class CurvesIn(NamedTuple):
    """The learning curves that a folder holds."""

    folder: Path
    curves: CurveSummary


def _read(folder: Path) -> CurvesIn:
    return CurvesIn(folder, read_curves(folder))


def _summarise(_request: StudyRequest, found: Sequence[CurvesIn]) -> Medals:
    """Award medals; refuses two curves of one model on one probe."""
    models = [(one, held.folder) for held in found for one in held.curves.models]
    medals: list[Medal] = []
    places: dict[tuple[str, str], Path] = {}
    for one, folder in models:
        if not is_model(one):
            continue
        without_model = [
            other
            for other, _ in models
            if not is_model(other)
            and other.random_init is None
            and (other.probe, other.split) == (one.probe, one.split)
        ]
        medal = award(one, without_model)
        other = places.setdefault((medal.probe, medal.model), folder)
        if any((held.probe, held.model) == (medal.probe, medal.model) for held in medals):
            raise UsageError(
                f"{other} and {folder} both hold curves of {medal.model} on {medal.probe}: "
                "leave one of them out"
            )
        medals.append(medal)
    if not medals:
        raise UsageError(
            "the folders hold no curves of trained models: make them with evaluate-probe curve "
            "PROBE --model MODEL -o DIR"
        )
    return Medals(
        rule=RULE,
        probes=list(dict.fromkeys(medal.probe for medal in medals)),
        models=list(dict.fromkeys(medal.model for medal in medals)),
        medals=medals,
    )


def _page(medals: Medals) -> Mapping[str, str]:
    # Templates are read when a page is made, not for --help.
    from evaluation.studies.medals.page import render
    from evaluation.studies.medals.show import markdown

    return {f"{NAME}.html": render(medals), f"{NAME}.md": markdown(medals)}


MEDALS = Study(
    name=NAME,
    help="Show which models know which probes: one table of medals, from the folders that "
    "evaluate-probe curve wrote.",
    expand=None,
    summarise=_summarise,
    show=show,
    page=_page,
    read=_read,
)
