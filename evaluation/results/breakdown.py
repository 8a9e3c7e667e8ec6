"""Accuracy on parts of the rows: by cell, template, cluster size and confidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.results.intervals import quick_accuracy
from evaluation.results.types import Bin, ClusterSize, Group, Stratum
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.format.negation import KINDS, PATTERNS, kind_of

if TYPE_CHECKING:
    import pyarrow as pa

BINS = 10

KNOWN = 0.9
"""Minimum share of words with a known frequency."""

ZIPF_BOUNDS = (2.0, 3.0, 4.0, 5.0)
_NONE = "0: does not occur"
_ZIPF_BANDS = (
    "below 2: less than once in 10 million words",
    "2 to 3",
    "3 to 4: once in a million words or more",
    "4 to 5",
    "5 and more: once in 10,000 words or more",
)
"""The bands between the bounds: a word of Zipf frequency z occurs 10**z times in a billion."""

RANDOM = "random"
"""The family of random distractors, the easy reference; all other families are near."""


def table(scored: pa.Table, right: Bools, cluster: Ints) -> list[Stratum]:
    """Split the scored rows by hops, distractor family and distance k' (WordNetQA Figure 3).

    Returns:
        The cells that have rows, sorted, nulls last; empty if none of the three is known.
    """
    names = ["hops", "distractor_family", "distractor_hops"]
    if all(scored[name].null_count == scored.num_rows for name in names):
        return []
    return [
        Stratum(
            hops=hops,
            family=family,
            distractor_hops=distance,
            accuracy=quick_accuracy(right[rows], cluster[rows]),
        )
        for (hops, family, distance), rows in _split_by(scored.select(names))
    ]


def headline_rows(predictions: pa.Table) -> pa.Table:
    """Return the rows that headline numbers are computed on: those about common words, or all.

    Questions about taxa, persons, places and other names test encyclopedic knowledge. They are left
    out if they make up more than :data:`~kbprobe.format.items.MOST_NAMES` of all rows, scored or
    not, so that models are compared on the same rows. All rows are kept if none says what it asks
    about, and if none about a common word was scored.
    """
    import pyarrow.compute as pc

    from kbprobe.format.items import COMMON, MOST_NAMES

    if "content" not in predictions.column_names:
        return predictions
    common = pc.fill_null(pc.equal(predictions["content"], COMMON), True)
    if pc.mean(common).as_py() >= 1 - MOST_NAMES:
        return predictions
    kept = predictions.filter(common)
    return predictions if kept["prediction"].null_count == len(kept) else kept


def drop_unscored(predictions: pa.Table) -> pa.Table:
    """Return the rows that were scored; nothing is copied where all of them were."""
    picks = predictions["prediction"]
    return predictions.filter(picks.is_valid()) if picks.null_count else predictions


def scored_rows(predictions: pa.Table) -> tuple[pa.Table, Bools, Ints]:
    """Return the rows that were scored, whether each is right, and its cluster's number."""
    scored = drop_unscored(predictions)
    return scored, bools(scored["correct"]), cluster_codes(scored)


def groups(scored: pa.Table, name: str, right: Bools, cluster: Ints) -> list[Group]:
    """Group the rows by a column of strings; rows without a value are in no group."""
    if name not in scored.column_names:
        return []
    return [
        Group(name=value, accuracy=quick_accuracy(right[rows], cluster[rows]))
        for value, rows in named_rows(scored[name])
    ]


def near_and_random(rows: pa.Table) -> tuple[Bools, Bools]:
    """Return whether each row has near distractors, and random ones; neither: it does not say."""
    import pyarrow.compute as pc

    random = pc.equal(rows["distractor_family"], RANDOM)
    return bools(pc.invert(random)), bools(random)


def near_rows(rows: pa.Table) -> Ints:
    """Return which rows have near distractors."""
    return np.flatnonzero(near_and_random(rows)[0])


def random_rows(rows: pa.Table) -> Ints:
    """Return which rows have random distractors."""
    return np.flatnonzero(near_and_random(rows)[1])


NEAR_AND_RANDOM: dict[str, Callable[[pa.Table], Ints]] = {"near": near_rows, "random": random_rows}
"""The two parts of the rows of a probe by its distractors."""


def by_hops(predictions: pa.Table) -> list[Group]:
    """Group the scored rows by their hops, the fewest first; rows without them have 0."""
    import pyarrow.compute as pc

    scored, right, cluster = scored_rows(predictions)
    hops = pc.fill_null(scored["hops"], 0).cast("string")
    parts = groups(scored.append_column("named_hops", hops), "named_hops", right, cluster)
    return sorted(parts, key=lambda part: int(part.name))


def by_frequency(predictions: pa.Table) -> list[Group]:
    """Group the scored rows by how frequent the word asked about is, in bands of one Zipf unit.

    Frequencies are those of ``--unigrams`` where predictions hold them, otherwise wordfreq's; words
    that do not occur are a band of their own. Empty if rows name no word, or if fewer than
    :data:`KNOWN` of them are words that wordfreq knows.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if "surface_form" not in predictions.column_names:
        return []
    scored = predictions.filter(
        pc.and_(predictions["prediction"].is_valid(), predictions["surface_form"].is_valid())
    )
    if not len(scored):
        return []
    if "word_frequency" in scored.column_names:
        frequency = to_numpy(scored["word_frequency"])
    else:
        # Only here: reading frequencies takes longer than a report.
        from kb_cache.frequency import zipf_frequencies

        words = single_chunk(scored["surface_form"]).dictionary_encode()
        frequency = zipf_frequencies(words.dictionary.to_pylist())[to_numpy(words.indices)]
        if (frequency > 0).mean() < KNOWN:
            return []
    bands = (_NONE, *_ZIPF_BANDS)
    band = np.where(frequency > 0, 1 + np.searchsorted(ZIPF_BOUNDS, frequency, side="right"), 0)
    named = scored.append_column("band", pa.array([bands[number] for number in band]))
    parts = groups(named, "band", bools(scored["correct"]), cluster_codes(scored))
    return sorted(parts, key=lambda part: bands.index(part.name))


def by_negation(predictions: pa.Table) -> list[Group]:
    """Group the scored rows by how their texts are negated (Kim et al. 2019).

    Empty unless all families are patterns of negation.
    """
    import pyarrow as pa

    scored, right, cluster = scored_rows(predictions)
    names = scored["distractor_family"].to_pylist()
    if not names or not {*names} <= {*PATTERNS}:
        return []
    named = scored.append_column("negation", pa.array([kind_of(name) for name in names]))
    parts = groups(named, "negation", right, cluster)
    return sorted(parts, key=lambda part: KINDS.index(part.name))


def cluster_sizes(right: Bools, cluster: Ints) -> list[ClusterSize]:
    """Group whole clusters by their size; ``right`` and ``cluster`` have shape [rows]."""
    _, local, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    sums = np.bincount(local, weights=right, minlength=sizes.size)
    curve = []
    for size in np.unique(sizes):
        inside = sums[sizes == size]
        accuracy = float(inside.mean() / size)
        curve.append(
            ClusterSize(
                size=int(size),
                clusters=inside.size,
                accuracy=accuracy,
                strict=float((inside == size).mean()),
                independent=float(accuracy ** int(size)),
            )
        )
    return curve


def strict_chance(choices: Ints, cluster: Ints) -> float:
    """Return the expected share of clusters in which guessing gets every row right.

    Args:
        choices: the number of choices of each row, shape [rows].
        cluster: the number of each row's cluster, shape [rows].

    >>> strict_chance(np.array([2, 2, 4]), np.array([7, 7, 8]))
    0.25
    """
    _, local = np.unique(cluster, return_inverse=True)
    return float(np.mean(np.exp(-np.bincount(local, weights=np.log(choices)))))


def calibration(probability: Floats, right: Bools) -> list[Bin]:
    """Compare the model's confidence with its accuracy (Guo et al., 2017, section 2).

    There are ten bins of equal width from 0 to 1, each excluding its lower end; empty bins are left
    out.
    """
    number = np.clip(np.ceil(probability * BINS).astype(np.int64) - 1, 0, BINS - 1)
    bins = [(int(index), number == index) for index in np.unique(number)]
    return [
        Bin(
            low=index / BINS,
            high=(index + 1) / BINS,
            n=int(inside.sum()),
            confidence=float(probability[inside].mean()),
            accuracy=float(right[inside].mean()),
        )
        for index, inside in bins
    ]


def named_rows(column: pa.ChunkedArray | pa.Array) -> Iterator[tuple[str, Ints]]:
    """Yield each string of a column, sorted, with its rows; rows without a string are skipped."""
    import pyarrow as pa

    for (value,), rows in _split_by(pa.table({"name": column})):
        if value:
            yield value, rows


def bools(column: pa.ChunkedArray | pa.Array) -> Bools:
    """Return a column of booleans; nulls are false."""
    return to_numpy(column.cast("int8").fill_null(0)).astype(np.bool_)


def cluster_codes(predictions: pa.Table) -> Ints:
    """Number the clusters of the rows: shape [rows]."""
    return to_numpy(single_chunk(predictions["cluster"]).dictionary_encode().indices)


def _split_by(columns: pa.Table) -> Iterator[tuple[tuple[Any, ...], Ints]]:
    """Yield each combination of values that occurs, with its rows, sorted with nulls last."""
    import pyarrow as pa

    names = columns.column_names
    numbered = columns.append_column("row", pa.array(np.arange(columns.num_rows)))
    parts = numbered.group_by(names).aggregate([("row", "list")])
    found = zip(*(parts[name].to_pylist() for name in names), strict=True)
    by_value = sorted(
        zip(found, parts["row_list"], strict=True),
        key=lambda part: [(value is None, 0 if value is None else value) for value in part[0]],
    )
    for values, rows in by_value:
        yield values, np.sort(to_numpy(rows.values))
