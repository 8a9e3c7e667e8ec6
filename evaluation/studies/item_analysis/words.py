"""What the analysis shows, in sentences."""

from __future__ import annotations

from evaluation.results.words import coefficient
from evaluation.studies.item_analysis.types import ItemRow, ProbeItems


def sentences(one: ProbeItems) -> list[str]:
    """Return what a probe's items show."""
    total = len(one.items)
    found = [
        f"Suspected wrong keys: {one.suspected:,} of {total:,} items.",
        f"No model is right on {one.none_right:,} items, every model on {one.all_right:,}: these "
        "do not tell models apart.",
    ]
    if one.mean_point_biserial is not None:
        found.append(
            f"Mean point-biserial correlation {coefficient(one.mean_point_biserial)}; negative for "
            f"{one.negative:,} items."
        )
    return found


def remarks(one: ProbeItems) -> list[str]:
    """Return what a reader must know."""
    found = []
    above = [run for run in one.runs if run.accuracy.low > one.chance]
    if len(above) < 2:
        found.append(
            f"{len(above)} of {len(one.runs)} models are above chance: models that guess tell "
            "nothing about keys. Add results of better models."
        )
    if len(one.runs) < 6:
        found.append(
            f"Correlations over {len(one.runs)} models vary much by chance; six or more are better."
        )
    found += [
        f"{first} and {second} give the same answer to every item, and count twice."
        for first, second in one.alike
    ]
    if any(None in item.said for item in one.items):
        found.append("Some items were not scored by all models.")
    return found


def correlation_text(item: ItemRow) -> str:
    """Spell an item's correlation: ``−0.31``."""
    return "–" if item.point_biserial is None else coefficient(item.point_biserial)
