"""What the orders show, in sentences."""

from __future__ import annotations

from evaluation.results.words import interval, percent
from evaluation.studies.orders.types import LetterRow, ModelOrders
from evaluation.studies.variation.words import spread_sentences


def orders_text(one: ModelOrders) -> str:
    """Say how many orders there are: ``all 6 orders``."""
    return f"{'all ' if one.exhaustive else ''}{len(one.orders)} orders"


def sentences(one: ModelOrders) -> list[str]:
    """Return what a model shows on a probe."""
    found = spread_sentences(one.variation, orders_text(one), "order")
    found.append(
        f"The choice with the best mean score over these orders is right in "
        f"{percent(one.averaged.value)} ({interval(one.averaged)})."
    )
    preferred = [row for row in one.letters if row.chosen.low > row.expected]
    if preferred:
        found.append(f"Chosen more often than chance: {'; '.join(map(_chosen, preferred))}.")
    known = [row for row in one.letters if row.accuracy is not None]
    if len(known) > 1:
        best, worst = max(known, key=_recall), min(known, key=_recall)
        found.append(
            f"Accuracy is {percent(_recall(best))} where the gold is {best.letter}, and "
            f"{percent(_recall(worst))} where it is {worst.letter}."
        )
    return found


def _chosen(row: LetterRow) -> str:
    share, low = percent(row.chosen.value), interval(row.chosen)
    return f"{row.letter}, {share} of answers ({low}; chance {percent(row.expected)})"


def _recall(row: LetterRow) -> float:
    return -1.0 if row.accuracy is None else row.accuracy.value
