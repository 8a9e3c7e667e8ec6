"""Consistency: do questions about the same fact get the same verdict?

A model that knows a fact answers every question about it. Pairs of such questions are found in the
rows alone: the same question with other distractors, in other words, with its arguments in another
order, with the answer reversed, or about the next edge of the hierarchy. If both are right no more
often than two unrelated questions of the same difficulty would be, right answers are not a sign of
knowledge. Pairs over two probes are measured by :mod:`evaluation.studies.consistency`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from evaluation.results import intervals
from evaluation.results.analyses.base import Analysis, ResultFiles
from evaluation.results.breakdown import cluster_codes, drop_unscored, headline_rows
from evaluation.results.types import Estimate, Model
from evaluation.results.words import interval, percent
from kbprobe.arrays import Bools, Ints, run_starts
from kbprobe.columns import codes, mask, single_chunk, to_numpy
from kbprobe.document import Part, Table, Text
from kbprobe.intervals import TAILS

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "consistency"
FEWEST = 30
"""Minimum number of clusters with a pair: with fewer, resamples vary too little."""

KINDS = {
    "distractors": "the same question with other distractors",
    "wordings": "the same question in other words",
    "arguments": "the same things in another order",
    "negation": "the other of the same choices right",
    "hops": "an answer one edge further away",
}
"""What distinguishes the second question of a pair from the first, by kind."""

OVER = "probes"
"""The kind of pairs over two probes."""

ORDERED = ("hops", OVER)
"""Kinds in which it matters which question is the first: others have one accuracy for both."""


class PairKind(Model):
    """Pairs of one kind. A row is in at most two: with the row before and with the row after it."""

    kind: str = Field(description=f"{', '.join(KINDS)}; or {OVER}, of pairs over two probes.")
    pairs: int = Field(description="Number of pairs.")
    both: Estimate = Field(description="Share of pairs with both questions right.")
    independent: float = Field(
        description="The product of the two questions' accuracies: the share with both right if "
        "one said nothing about the other. Where their order means nothing, both have the accuracy "
        "of all questions in pairs."
    )
    gain: Estimate = Field(description="`both` minus `independent`, in percentage points.")
    most: float = Field(
        description="The smaller of the two accuracies: the largest that `both` can be."
    )


class Consistency(Model):
    """Pairs of questions about the same fact."""

    kinds: list[PairKind] = Field(description="Each kind with pairs in enough clusters.")


def measure_consistency(predictions: pa.Table, seed: int) -> Consistency | None:
    """Measure how often both questions of a pair are right.

    Args:
        predictions: from :func:`evaluation.results.metrics.predictions_table`.
        seed: of the bootstrap.

    Returns:
        None if no kind of pair occurs in :data:`FEWEST` clusters.
    """
    rows = headline_rows(predictions)
    rows = drop_unscored(rows)
    if not len(rows):
        return None
    right, cluster = mask(rows["correct"]), cluster_codes(rows)
    kinds = []
    for kind, (first, second) in pairs_of(rows):
        held = cluster[first]
        if np.unique(held).size >= FEWEST:
            kinds.append(measure_pairs(kind, right[first], right[second], held, seed))
    return Consistency(kinds=kinds) if kinds else None


def measure_pairs(kind: str, first: Bools, second: Bools, cluster: Ints, seed: int) -> PairKind:
    """Compare the share of pairs with both questions right with what chance would give.

    Args:
        kind: what the pairs are.
        first: whether the first question of each pair is right; shape [pairs].
        second: whether the second is.
        cluster: the cluster of each pair, of which the bootstrap resamples all pairs at once.
        seed: of the bootstrap.
    """
    both = first & second
    share = intervals.accuracy(both, cluster, seed)
    if kind in ORDERED:
        sides = [(first, cluster), (second, cluster)]
    else:
        sides = [(np.concatenate([first, second]), np.concatenate([cluster, cluster]))]
    accuracies = [int(right.sum()) / right.size for right, _ in sides]
    independent = accuracies[0] * accuracies[-1]
    if min(np.unique(cluster[held]).size for held in (both, ~both)) >= intervals.FEWEST:
        value = 100 * (share.value - independent)
        low, high = _resampled_gain(kind, (both, first, second), cluster, seed)
        gain = Estimate(value=value, low=low, high=high, n=len(both), method="cluster bootstrap")
    else:
        # Too few clusters have both right, or not, to be resampled. The two are no independent
        # estimates, but vary together, so that this interval is wide enough.
        ends = [intervals.accuracy(*side, seed) for side in sides]
        product = Estimate(
            value=independent,
            low=ends[0].low * ends[-1].low,
            high=ends[0].high * ends[-1].high,
            n=len(both),
            method="combined",
        )
        gain = intervals.sum_of_independent([(100, share), (-100, product)])
        gain = gain.model_copy(update={"n": len(both)})
    return PairKind(
        kind=kind,
        pairs=len(both),
        both=share,
        independent=independent,
        gain=gain,
        most=min(accuracies),
    )


def _resampled_gain(
    kind: str, right: tuple[Bools, ...], cluster: Ints, seed: int
) -> tuple[float, float]:
    """Return the bootstrap interval of a gain, from whether both, the first and the second are."""
    _, local = np.unique(cluster, return_inverse=True)
    parts = (np.ones(len(cluster)), *right)
    columns = np.stack([np.bincount(local, weights=part) for part in parts], axis=1)
    pairs, *totals = intervals.resampled_totals(columns.astype(np.int64), seed).T
    joint, one, other = (total / pairs for total in totals)
    if kind not in ORDERED:
        one = other = (one + other) / 2
    low, high = np.quantile(100 * (joint - one * other), TAILS)
    return float(low), float(high)


def pairs_of(rows: pa.Table) -> Iterator[tuple[str, tuple[Ints, Ints]]]:
    """Yield each kind of pair that occurs, with the rows of all its pairs.

    Rows that have all but one thing in common are ordered by that thing, and each is paired with
    the next.
    """
    number = np.arange(len(rows))
    question, concept, template, family = (
        numbers_of(rows[name]) for name in ("question", "concept", "template", "distractor_family")
    )
    hops = to_numpy(rows["hops"].fill_null(-1)).astype(np.int64)
    gold = golds_of(rows)
    said, alike = _arguments(rows)
    chosen_from = _choice_sets(rows)
    kinds = {
        "distractors": ([question, gold], number, number),
        "wordings": ([concept, said, gold, hops, family], template, number),
        "arguments": ([alike, family, hops], said, np.flatnonzero(alike >= 0)),
        "negation": ([concept, chosen_from], gold, np.flatnonzero(alike >= 0)),
        "hops": ([question, concept, family], hops, np.flatnonzero(hops > 0)),
    }
    for kind, (common, differs, usable) in kinds.items():
        found = _paired(common, differs, usable)
        if kind == "negation":
            # The same things in another order are pairs of "arguments".
            other = alike[found[0]] != alike[found[1]]
            found = found[0][other], found[1][other]
        if len(found[0]):
            yield kind, found


def _paired(common: list[Ints], differs: Ints, usable: Ints) -> tuple[Ints, Ints]:
    """Pair each usable row with the next that differs in one thing alone."""
    order = usable[np.lexsort([differs[usable], *(key[usable] for key in common)])]
    first, second = order[:-1], order[1:]
    same = differs[first] != differs[second]
    for key in common:
        same &= key[first] == key[second]
    return first[same], second[same]


def golds_of(rows: pa.Table) -> Ints:
    """Return a number for the text of each row's gold."""
    import pyarrow.compute as pc

    choices = single_chunk(rows["choices"])
    starts = run_starts(to_numpy(pc.list_value_length(choices)).astype(np.int64))[:-1]
    return numbers_of(choices.flatten().take(starts + to_numpy(rows["answer"]).astype(np.int64)))


def _choice_sets(rows: pa.Table) -> Ints:
    """Return a number for each row's choices, whatever their order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = single_chunk(rows["choices"])
    choices = numbers_of(lists.flatten())
    widths, distinct = to_numpy(pc.list_value_length(lists)), choices.max(initial=0) + 1
    row = np.repeat(np.arange(len(lists)), widths)
    ordered = pa.array(np.sort(row * distinct + choices) % distinct).cast(pa.string())
    starts = pa.array(run_starts(widths), pa.int32())
    return numbers_of(pc.binary_join(pa.ListArray.from_arrays(starts, ordered), " "))


def numbers_of(column: pa.ChunkedArray | pa.Array) -> Ints:
    """Return a number for each text; rows without one have the same."""
    return _coded(column)[0]


def _coded(column: pa.ChunkedArray | pa.Array) -> tuple[Ints, list[str]]:
    array = single_chunk(column).cast("string").fill_null("").dictionary_encode()
    numbers, texts = codes(array)
    return numbers.astype(np.int64), texts


def _arguments(rows: pa.Table) -> tuple[Ints, Ints]:
    """Return a number for each row's arguments, and one that does not depend on their order.

    The second is -1 for rows with fewer than two arguments.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = single_chunk(rows["arguments"])
    values = pc.struct_field(column.flatten(), "value")
    lengths = to_numpy(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)
    lists = pa.ListArray.from_arrays(pa.array(run_starts(lengths), pa.int32()), values)
    said, texts = _coded(pc.binary_join(lists, "\0"))
    ordered = ["\0".join(sorted(text.split("\0"))) if "\0" in text else "" for text in texts]
    number = {text: at for at, text in enumerate(dict.fromkeys(["", *ordered]))}
    alike = np.array([number[text] - 1 for text in ordered], dtype=np.int64)
    return said, alike[said]


def verdict(one: PairKind) -> str:
    """Say in a clause whether the answers to both questions of a pair are related."""
    if one.gain.low > 0:
        said = "more often than for unrelated questions"
    elif one.gain.high < 0:
        said = "less often than for unrelated questions: the form of a question decides the answer"
    else:
        said = "about as often as for unrelated questions"
    return f"both questions are right {said}"


def _parts(_files: ResultFiles, block: Consistency) -> list[Part]:
    said = [f"With {KINDS[one.kind]}, {verdict(one)}." for one in block.kinds]
    head = ("the second question", "pairs", "both right", "if unrelated", "gain", "at most")
    rows = tuple(
        (
            KINDS[one.kind],
            f"{one.pairs:,}",
            f"{percent(one.both.value)} ({interval(one.both)})",
            percent(one.independent),
            f"{one.gain.value:+.1f} ({one.gain.low:+.1f} to {one.gain.high:+.1f})",
            percent(one.most),
        )
        for one in block.kinds
    )
    caption = "Pairs of rows that differ in one thing alone"
    return [Text(" ".join(said)), Table(head, rows, caption)]


ANALYSIS = Analysis(NAME, "Consistency", "Right together, or by chance", _parts, Consistency)
