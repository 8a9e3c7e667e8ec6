"""Which distractor a model prefers when it is wrong: of what relation, and the nearest or not.

oLMpics finds that models that are wrong about conjunctions of taxonomy take the nearer hypernym in
80% of the rows. Relations are those of :mod:`evaluation.results.analyses.errors`. None of this is
stored in ``results.json``: it is computed from the predictions, for any probe whose rows give the
distance or the family of each choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evaluation.results.analyses.base import Analysis, ResultFiles
from evaluation.results.analyses.errors import error_kinds
from evaluation.results.breakdown import cluster_codes, named_rows
from evaluation.results.intervals import quick_accuracy
from evaluation.results.types import Estimate
from kbprobe.arrays import run_starts
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.document import Part, Row, Table, Text

if TYPE_CHECKING:
    import pyarrow as pa


class Nearest(NamedTuple):
    """The share of wrong answers that are the nearest distractor, for one distractor family.

    ``random`` is the share expected if the distractors were chosen at random.
    """

    family: str
    chosen: Estimate
    random: float


def nearest_distractors(predictions: pa.Table) -> list[Nearest]:
    """Count how often wrong answers are the nearest distractor, over all rows and by family.

    Only rows with distractors at several known distances count; empty if there are none.
    """
    import pyarrow.compute as pc

    if "choice_hops" not in predictions.column_names:
        return []
    wrong = predictions.filter(
        pc.and_(
            pc.invert(predictions["correct"]),
            pc.equal(*(pc.list_value_length(predictions[n]) for n in ("choice_hops", "choices"))),
        )
    )
    if not len(wrong):
        return []
    hops = to_numpy(single_chunk(wrong["choice_hops"]).flatten()).astype(np.int64)
    widths = to_numpy(pc.list_value_length(wrong["choice_hops"]))
    starts = run_starts(widths)[:-1]
    gold, given = (starts + to_numpy(wrong[name]) for name in ("answer", "prediction"))
    hops[gold] = 0  # like unknown distances
    least = np.minimum.reduceat(np.where(hops > 0, hops, np.iinfo(np.int64).max), starts)
    usable = (hops[given] > 0) & (least < np.maximum.reduceat(hops, starts))
    nearest = np.add.reduceat(hops == np.repeat(least, widths), starts, dtype=np.int64)
    random = nearest / np.maximum(np.add.reduceat(hops > 0, starts, dtype=np.int64), 1)
    if not usable.any():
        return []
    chosen, expected = (hops[given] == least)[usable], random[usable]
    kept = wrong.take(np.flatnonzero(usable))
    groups = [("all", np.arange(len(kept))), *named_rows(kept["distractor_family"])]
    cluster = cluster_codes(kept)
    return [
        Nearest(family, quick_accuracy(chosen[at], cluster[at]), float(expected[at].mean()))
        for family, at in groups
    ]


def _by_relation(files: ResultFiles) -> list[Part]:
    results = files.results
    kinds = error_kinds(files.predictions, results.metrics.normalization, results.seed)
    if not kinds:
        return []
    heads: tuple[str, ...] = ("the wrong choice is", "told apart")
    rows: list[Row] = [(one.kind, one.told_apart) for one in kinds]
    if any(one.chosen for one in kinds):
        heads += ("taken, where there are others", "choosing at random")
        rows = [(one.kind, one.told_apart, one.chosen, one.random) for one in kinds]
    return [
        Text(
            "What a wrong choice is to the right one, or to the word asked about. Told apart: how "
            "often the right answer scores better than such a choice, in all questions; half is "
            "chance.",
            note=True,
        ),
        Table(heads, rows, "Wrong choices by their relation to the right one."),
    ]


def _parts(files: ResultFiles) -> list[Part]:
    nearest = nearest_distractors(files.predictions)
    by_relation = _by_relation(files)
    if not nearest:
        return by_relation
    return [
        *by_relation,
        Table(
            ("distractor family", "the nearest", "choosing at random", "rows"),
            [(part.family, part.chosen, part.random, part.chosen.n) for part in nearest],
            "Wrong answers, in rows whose distractors are at different distances.",
        ),
    ]


ANALYSIS = Analysis(
    "distances", "Wrong answers", "Wrong answers: what is taken for the right one?", _parts
)
