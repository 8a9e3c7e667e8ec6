"""Which distractor a model takes for the answer: of what relation, and whether a nearer one.

oLMpics finds that models choose the distractor of a taxonomy conjunction in 80% of the rows in
which it is nearer to what is asked about than the answer is. Relations are those of
:mod:`evaluation.results.analyses.errors`. None of this is stored in ``results.json``: it is
computed from the predictions, for any probe whose rows give the distance or the family of each
choice.
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


class Nearer(NamedTuple):
    """Answers in rows with a distractor nearer than the gold, all or those of a distractor family.

    Attributes:
        family: the family, or ``all``.
        chosen: share of these rows in which the model chooses a distractor nearer than the gold.
        random: the share expected if any choice were chosen at random.
        right: share of these rows answered right.
    """

    family: str
    chosen: Estimate
    random: float
    right: Estimate


def nearer_distractors(predictions: pa.Table) -> list[Nearer]:
    """Count how often a distractor is chosen that is fewer hops away than the gold.

    Rows count in which a distractor is known to be nearer than the gold; empty if there are none.
    """
    import pyarrow.compute as pc

    if "choice_hops" not in predictions.column_names:
        return []
    scored = predictions.filter(
        pc.and_(
            predictions["prediction"].is_valid(),
            pc.equal(*(pc.list_value_length(predictions[n]) for n in ("choice_hops", "choices"))),
        )
    )
    if not len(scored):
        return []
    hops = to_numpy(single_chunk(scored["choice_hops"]).flatten()).astype(np.int64)
    widths = to_numpy(pc.list_value_length(scored["choice_hops"]))
    starts = run_starts(widths)[:-1]
    gold, given = (starts + to_numpy(scored[name]) for name in ("answer", "prediction"))
    # Distances that are not known are 0, of the gold as well: then none is nearer.
    nearer = (hops > 0) & (hops < np.repeat(hops[gold], widths))
    share = np.add.reduceat(nearer, starts, dtype=np.int64) / widths
    rows = np.flatnonzero(share)
    if not rows.size:
        return []
    chosen, right, expected = nearer[given][rows], (given == gold)[rows], share[rows]
    kept = scored.take(rows)
    groups = [("all", np.arange(len(kept))), *named_rows(kept["distractor_family"])]
    cluster = cluster_codes(kept)
    return [
        Nearer(
            family,
            quick_accuracy(chosen[at], cluster[at]),
            float(expected[at].mean()),
            quick_accuracy(right[at], cluster[at]),
        )
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
    by_relation = _by_relation(files)
    nearer = nearer_distractors(files.predictions)
    if not nearer:
        return by_relation
    return [
        *by_relation,
        Table(
            ("distractor family", "a nearer one", "choosing at random", "the right answer", "rows"),
            [(part.family, part.chosen, part.random, part.right, part.chosen.n) for part in nearer],
            "Rows with a distractor fewer hops away than the right answer: how often such a "
            "distractor is chosen.",
        ),
    ]


ANALYSIS = Analysis(
    "distances", "Wrong answers", "Wrong answers: what is taken for the right one?", _parts
)
