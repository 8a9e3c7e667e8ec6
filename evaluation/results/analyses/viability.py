"""Whether a probe's answers are viable, i.e. among a language model's best predictions at the mask.

oLMpics accepts answers of a cloze if they are among a model's ten best predictions. The scorers
``masked_rank`` and ``causal_rank`` score a choice by minus its rank in the vocabulary; nothing
else is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evaluation.results.analyses.answers import MOST_ANSWERS
from evaluation.results.analyses.base import Analysis, ResultFiles
from evaluation.results.breakdown import cluster_codes, drop_unscored
from evaluation.results.intervals import quick_accuracy
from evaluation.results.types import Estimate
from kbprobe.arrays import run_starts
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.document import Part, Table, Text

if TYPE_CHECKING:
    import pyarrow as pa

SCORE = "minus the rank in the vocabulary"
"""What the scores of these scorers are."""

TOP = 10


class Viability(NamedTuple):
    """Shares of rows or answers among the ten best predictions, and their median rank."""

    name: str
    top: Estimate
    rank: float


def viability(predictions: pa.Table) -> list[Viability]:
    """Return how the gold, the best and the worst choice rank, and each answer if there are few."""
    import pyarrow.compute as pc

    scored = drop_unscored(predictions)
    scores, texts = (single_chunk(scored[name]) for name in ("scores", "choices"))
    widths = to_numpy(pc.list_value_length(scores))
    starts = run_starts(widths)[:-1]
    ranks = -to_numpy(scores.flatten())
    cluster = cluster_codes(scored)
    kinds = {
        "the right answer": ranks[starts + to_numpy(scored["answer"])],
        "any choice": np.minimum.reduceat(ranks, starts),
        "every choice": np.maximum.reduceat(ranks, starts),
    }
    found = [
        Viability(name, quick_accuracy(rank <= TOP, cluster), float(np.median(rank)))
        for name, rank in kinds.items()
    ]
    flat, row = texts.flatten(), np.repeat(cluster, widths)
    names = sorted(flat.unique().to_pylist())
    for name in names if len(names) <= MOST_ANSWERS else ():
        own = np.flatnonzero(to_numpy(pc.equal(flat, name).cast("int8")))
        rank = ranks[own]
        found.append(
            Viability(f"“{name}”", quick_accuracy(rank <= TOP, row[own]), float(np.median(rank)))
        )
    return found


def _parts(files: ResultFiles) -> list[Part]:
    if files.results.scoring.score != SCORE:
        return []
    rows = [
        (choice.name, choice.top, f"{choice.rank:,.0f}", choice.top.n)
        for choice in viability(files.predictions)
    ]
    head = ("what", f"in the top {TOP}", "median rank", "rows")
    caption = f"Rows in which it is among the model's {TOP} best predictions."
    note = Text(
        "Ranks are among all entries of the vocabulary, where the answer stands. Scores are ranks: "
        "calibration and frequencies on this page are of ranks as well.",
        note=True,
    )
    return [Table(head, rows, caption), note]


ANALYSIS = Analysis("viability", "Viability", "Viability: would the model say it?", _parts)
