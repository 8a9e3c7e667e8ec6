"""What the matrices show, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.models.checkpoint import NO_MODEL
from evaluation.results.types import Estimate
from evaluation.results.words import last_name, points
from evaluation.studies.transfer.types import ModelTransfer, Transferred

LESS = {"untrained": "without training", "chance": "chance"}
"""What differences are from, in words."""


def model_name(one: ModelTransfer) -> str:
    """Name a model with what was trained."""
    return one.learner if one.model == NO_MODEL else f"{last_name(one.model)}, {one.learner}"


def sentences(one: ModelTransfer) -> list[str]:
    """Say for each probe trained on where accuracy rises, falls, or neither is shown."""
    return [_sentence(one, tested.probe) for tested in one.probes]


def _sentence(one: ModelTransfer, trained_on: str) -> str:
    own = one.cell(trained_on, trained_on)
    others = [cell for cell in one.cells if cell.trained_on == trained_on and not cell.own]
    up = [cell for cell in others if cell.difference.low > 0]
    down = [cell for cell in others if cell.difference.high < 0]
    same = [cell for cell in others if cell not in up and cell not in down]
    parts = [
        f"above {LESS[one.less]} on {_listed(up)}" if up else "",
        f"below it on {_listed(down)}" if down and up else "",
        f"below {LESS[one.less]} on {_listed(down)}" if down and not up else "",
        f"no difference is shown on {_listed(same)}" if same else "",
    ]
    found = "; ".join(part for part in parts if part)
    return f"Trained on {trained_on}: {_spelt(own.difference)} on {trained_on} itself; {found}."


def _listed(cells: Sequence[Transferred]) -> str:
    return ", ".join(f"{cell.tested_on} ({points(cell.difference.value)})" for cell in cells)


def _spelt(difference: Estimate) -> str:
    low, high = points(difference.low), points(difference.high)
    return f"{points(difference.value)} points ({low} to {high})"
