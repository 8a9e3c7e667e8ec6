"""Which wrong choices a model takes for the answer, by their relation to it.

A model that knows the field of a word but not its hypernym takes other words of the field; one that
knows the word but not the sense asked about takes what is right of another sense. Both the wrong
answers and all pairs of gold and distractor are counted: how often a model tells the answer from
what is related in another way is what Cao, Yamada, Teufel and Tokunaga (Language Resources and
Evaluation, 2025) call distinguishability. None of this is stored in ``results.json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evaluation.results.breakdown import RANDOM, cluster_codes, drop_unscored
from evaluation.results.intervals import quick_accuracy, repeated_share
from evaluation.results.metrics import compared_values
from evaluation.results.types import Estimate, Normalization
from kbprobe.arrays import Ints
from kbprobe.columns import single_chunk, to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

ERRORS = {
    "hypernym": "too general",
    "parent": "too general",
    "hyponym": "too specific",
    "child": "too specific",
    "other sense": "other sense",
    "same word": "other sense",
    "sibling": "co-hyponym",
    "sister": "co-hyponym",
    "cousin": "distant co-hyponym",
    "second cousin": "distant co-hyponym",
    "near": "related only",
    "field": "related only",
    "quality": "related only",
    RANDOM: "unrelated",
}
"""What it means to take a choice of each family for the answer, by the family's name (with spaces
for underscores, and without the suffix of families of branches)."""

KINDS = tuple(dict.fromkeys(ERRORS.values()))
BRANCH = " branch"


class ErrorKind(NamedTuple):
    """The distractors that are related to the answer in one way.

    Attributes:
        kind: the kind of the error, of :data:`KINDS`.
        told_apart: share of the pairs of gold and such a distractor in which the gold has the
            better score; a tie counts as half. Its n is the number of rows.
        chosen: share of the wrong answers that are such a distractor, in rows that have it and
            another kind; None if there is no wrong answer to one.
        random: the share expected there if the distractors were chosen at random.
    """

    kind: str
    told_apart: Estimate
    chosen: Estimate | None
    random: float | None


def error_kinds(predictions: pa.Table, normalization: Normalization, seed: int) -> list[ErrorKind]:
    """Count wrong answers, and pairs of gold and distractor, by the distractor's relation.

    Rows with a distractor of another family are left out; empty if no distractor is related.
    """
    scored = drop_unscored(predictions)
    if not len(scored):
        return []
    values, starts, answer = compared_values(scored, normalization)
    kind = _kinds(scored, np.diff(starts))
    gold = starts[:-1] + answer
    row = np.repeat(np.arange(len(scored)), np.diff(starts))
    distractor = np.ones(kind.size, dtype=np.bool_)
    distractor[gold] = False
    known = np.bincount(row[distractor & (kind < 0)], minlength=len(scored)) == 0
    distractor &= known[row]
    if not (kind[distractor] != KINDS.index(ERRORS[RANDOM])).any():
        return []
    score = values[gold][row]
    # Twice, so that ties count as whole numbers.
    better = 2 * (score > values) + (score == values)
    cluster, given = cluster_codes(scored), starts[:-1] + to_numpy(scored["prediction"])
    wrong = np.flatnonzero(known & (given != gold))
    found: list[ErrorKind] = []
    for number, name in enumerate(KINDS):
        own = distractor & (kind == number)
        counts = np.bincount(row[own], minlength=len(scored))
        if not (rows := np.flatnonzero(counts)).size:
            continue
        hits = np.bincount(row[own], better[own], minlength=len(scored)).astype(np.int64)
        told_apart = repeated_share(hits[rows], 2 * counts[rows], cluster[rows], seed)
        others = np.diff(starts) - 1
        mixed = wrong[(counts[wrong] > 0) & (counts[wrong] < others[wrong])]
        chosen = random = None
        if mixed.size:
            chosen = quick_accuracy(kind[given[mixed]] == number, cluster[mixed])
            random = float((counts[mixed] / others[mixed]).mean())
        found.append(ErrorKind(name, told_apart, chosen, random))
    return found


def _kinds(scored: pa.Table, widths: Ints) -> Ints:
    """Return the number of each choice's kind among :data:`KINDS`; -1 if it has none.

    Choices without a family of their own have that of their row.
    """
    import pyarrow.compute as pc

    families = single_chunk(scored["distractor_family"]).dictionary_encode()
    own = _codes(families.dictionary)[to_numpy(families.indices.fill_null(-1))]
    kind = np.repeat(own, widths)
    if "choice_families" in scored.column_names:
        lists = single_chunk(scored["choice_families"])
        whole = to_numpy(pc.fill_null(pc.list_value_length(lists), 0)) == widths
        texts = lists.filter(whole).flatten().dictionary_encode()
        kind[np.repeat(whole, widths)] = _codes(texts.dictionary)[to_numpy(texts.indices)]
    return kind


def _codes(names: pa.Array) -> Ints:
    """Return the number of the kind of each family, and -1 for none at the end."""
    plain = (str(name).replace("_", " ").removesuffix(BRANCH) for name in names.to_pylist())
    kinds = [KINDS.index(ERRORS[name]) if name in ERRORS else -1 for name in plain]
    return np.array([*kinds, -1], dtype=np.int64)
