"""Numbers computed from a confusion table of the labels and a model's predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.items.wordings import Wording
from evaluation.results import intervals
from evaluation.results.analyses.labels import Labels, LabelScores, Statistic
from evaluation.results.breakdown import bools, cluster_codes
from kbprobe.arrays import Floats, Ints
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.format.setups import SETUPS

if TYPE_CHECKING:
    import pyarrow as pa


def measure_labels(
    predictions: pa.Table, setup: str, seed: int, asked: tuple[Wording, str] | None = None
) -> Labels:
    """Measure the predictions of rows of labels.

    Args:
        predictions: from :func:`evaluation.results.metrics.predictions_table`, with at least one
            scored row.
        setup: the setup of all rows.
        seed: the seed of the bootstrap.
        asked: the wording, and the setup into which it put the rows; None if the scorer read them
            as they are.
    """
    scored = predictions.filter(predictions["prediction"].is_valid())
    names = SETUPS[setup].labels
    gold, given = (_labels(scored, column, names) for column in ("answer", "prediction"))
    cluster, right = cluster_codes(scored), bools(scored["correct"])
    cells = gold * len(names) + given
    table = np.bincount(cells, minlength=len(names) ** 2).reshape(len(names), -1)

    def statistic(number: Any) -> Statistic:
        def of_totals(totals: Floats) -> Floats:
            return number(totals.reshape(-1, len(names), len(names)))  # type: ignore[no-any-return]

        bounds = intervals.of_counts(cells, table.size, right, cluster, of_totals, seed)
        low, high = bounds or (None, None)
        return Statistic(value=float(number(table.astype(np.float64))), low=low, high=high)

    sizes = table.sum(axis=1)
    majority = int(sizes.argmax())
    always = np.zeros(table.shape)
    always[:, majority] = sizes
    return Labels(
        setup=setup,
        matthews_correlation=statistic(matthews_correlation),
        macro_f1=statistic(macro_f1),
        majority=names[majority],
        majority_accuracy=float(sizes[majority] / sizes.sum()),
        majority_macro_f1=float(macro_f1(always)),
        labels=[
            LabelScores(
                name=name,
                rows=int(sizes[at]),
                predicted=int(table[:, at].sum()),
                precision=_share(table[at, at], table[:, at].sum()),
                recall=intervals.quick_accuracy(right[gold == at], cluster[gold == at])
                if sizes[at]
                else None,
                f1=_share(2 * table[at, at], sizes[at] + table[:, at].sum()),
                given=dict(zip(names, table[at].tolist(), strict=True)),
            )
            for at, name in enumerate(names)
        ],
        wording=None if asked is None else asked[0].templates[asked[1]],
        words=None if asked is None else dict(asked[0].words),
    )


def matthews_correlation(table: Floats) -> Floats:
    """Return the correlation of labels (axis -2) and predictions (axis -1) of confusion tables.

    For two classes as in Matthews (1975), for more as in Gorodkin (2004); 0 if either is constant.

    >>> float(matthews_correlation(np.array([[3.0, 1.0], [1.0, 3.0]])))
    0.5
    """
    rows, columns = table.sum(-1), table.sum(-2)
    total = table.sum((-1, -2))
    covariance = np.trace(table, axis1=-2, axis2=-1) * total - (rows * columns).sum(-1)
    spread = (total**2 - (rows**2).sum(-1)) * (total**2 - (columns**2).sum(-1))
    scale = np.sqrt(spread)
    found: Floats = np.divide(covariance, scale, out=np.zeros_like(scale), where=spread > 0)
    return found


def macro_f1(table: Floats) -> Floats:
    """Return the mean F1 over the labels that occur as gold or as prediction.

    >>> round(float(macro_f1(np.array([[3.0, 1.0], [0.0, 0.0]]))), 3)
    0.429
    """
    sums = table.sum(-1) + table.sum(-2)
    right = 2 * np.diagonal(table, axis1=-2, axis2=-1)
    f1 = np.divide(right, sums, out=np.zeros_like(sums), where=sums > 0)
    mean: Floats = f1.sum(-1) / (sums > 0).sum(-1)
    return mean


def _labels(scored: pa.Table, column: str, names: tuple[str, ...]) -> Ints:
    """Return the number of the label that each row's index in ``column`` refers to."""
    import pyarrow as pa
    import pyarrow.compute as pc

    choices = single_chunk(scored["choices"])
    at = to_numpy(choices.offsets)[:-1] + to_numpy(single_chunk(scored[column]))
    texts = choices.values.take(pa.array(at))
    return to_numpy(pc.index_in(texts, pa.array(names))).astype(np.int64)


def _share(part: int, whole: int) -> float | None:
    return float(part / whole) if whole else None
