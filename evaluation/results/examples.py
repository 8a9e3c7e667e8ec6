"""Questions to show in a report: selected from the predictions, as parts of a document."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evaluation.results.breakdown import drop_unscored
from evaluation.results.metrics import compared, softmax
from evaluation.results.types import Normalization
from evaluation.results.words import number
from kbprobe.arrays import Ints
from kbprobe.columns import to_numpy
from kbprobe.document import Basis, Choice, Question

if TYPE_CHECKING:
    import pyarrow as pa

WORST_LEAST = 3
"""Minimum number of scored questions of a worst cluster: a single wrong answer says little."""

WORST_SHOWN = 6
WORST_QUESTIONS = 6
"""Maximum number of worst clusters shown, and of questions shown of each."""

SURE = 0.8
"""Softmax share from which a prediction counts as confident."""

CHOICES_SHOWN = 20
"""Maximum number of choices shown: those with the best scores, and the gold."""


class Cluster(NamedTuple):
    """A cluster with errors: its scored rows, how many are right, and some of its questions."""

    name: str
    rows: int
    right: int
    questions: list[Question]


class WorstClusters(NamedTuple):
    """The clusters with the lowest accuracy, and how many to expect by chance.

    Attributes:
        shown: the clusters that are shown, the worst first.
        eligible: the number of clusters that are large enough to be considered.
        none_right: the number of these without a right answer.
        by_chance: how many would have none if rows were right independently of each other.
    """

    shown: list[Cluster]
    eligible: int
    none_right: int
    by_chance: float


def worst_clusters(predictions: pa.Table, normalization: Normalization) -> WorstClusters:
    """Return the clusters with the lowest accuracy; ties go to the largest, then by name."""
    import pyarrow.compute as pc

    scored = drop_unscored(predictions)
    groups = scored.group_by("cluster").aggregate([("correct", "sum"), ("correct", "count")])
    names = groups["cluster"].to_pylist()
    right = to_numpy(groups["correct_sum"]).astype(np.int64)
    rows = to_numpy(groups["correct_count"])
    large = np.flatnonzero(rows >= WORST_LEAST)
    order = sorted(large, key=lambda i: (right[i] / rows[i], -rows[i], names[i]))
    # A cluster without errors is not listed as one of the worst.
    worst = [i for i in order[:WORST_SHOWN] if right[i] < rows[i]]
    shown = []
    for i in worst:
        inside = scored.filter(pc.equal(scored["cluster"], names[i]))
        # Wrong answers first, otherwise in the probe's order.
        wrong_first = np.argsort(_outcome(inside), kind="stable")
        questions = questions_of(inside, wrong_first[:WORST_QUESTIONS], normalization)
        shown.append(Cluster(names[i], int(rows[i]), int(right[i]), questions))
    accuracy = right.sum() / max(rows.sum(), 1)
    return WorstClusters(
        shown=shown,
        eligible=len(large),
        none_right=int((right[large] == 0).sum()),
        by_chance=float(((1 - accuracy) ** rows[large]).sum()),
    )


def confident_mistakes(
    predictions: pa.Table, normalization: Normalization, most: int
) -> list[Question]:
    """Return the wrong predictions with the highest share, one from each cluster.

    Predictions with a share below :data:`SURE` are left out.
    """
    every = to_numpy(predictions["probability"].fill_null(0.0))
    wrong = np.flatnonzero((_outcome(predictions) == 0) & (every >= SURE))
    shares = every[wrong]
    ids, clusters = predictions["id"], predictions["cluster"]
    chosen: dict[str, int] = {}
    for row in wrong[np.argsort(-shares, kind="stable")]:
        chosen.setdefault(clusters[row].as_py() or ids[row].as_py(), int(row))
        if len(chosen) == most:
            break
    return questions_of(predictions, list(chosen.values()), normalization)


def drawn(
    predictions: pa.Table, normalization: Normalization, most: int, *, correct: bool
) -> list[Question]:
    """Draw right or wrong predictions by a hash of their ids, independently of the other rows."""
    rows = np.flatnonzero(_outcome(predictions) == int(correct))
    return questions_of(predictions, drawn_from(predictions, rows, most), normalization)


def drawn_from(predictions: pa.Table, among: Sequence[int] | Ints, most: int) -> Ints:
    """Draw from some rows by a hash of their ids, independently of the other rows."""
    rows = np.asarray(among, dtype=np.int64)
    return rows[by_hash(predictions["id"].take(rows), most)]


def by_hash(ids: pa.ChunkedArray, most: int) -> list[int]:
    """Draw rows by a hash of their ids, in the order of the hashes."""
    digests = [hashlib.sha256(name.encode("utf-8")).digest() for name in ids.to_pylist()]
    return sorted(range(len(digests)), key=digests.__getitem__)[:most]


def _outcome(predictions: pa.Table) -> Ints:
    """1 for right, 0 for wrong, -1 for set aside, shape [rows]."""
    return to_numpy(predictions["correct"].cast("int64").fill_null(-1))


def questions_of(
    predictions: pa.Table,
    rows: Sequence[int] | Ints,
    normalization: Normalization,
    evidence: Mapping[int, Sequence[Basis]] | None = None,
) -> list[Question]:
    """Return rows of the predictions as questions, with the evidence of each row, if any."""
    numbers = np.asarray(rows, dtype=np.int64)
    taken = predictions.take(numbers).to_pylist()
    return [
        _question(row, normalization, (evidence or {}).get(place, ()))
        for place, row in zip(numbers.tolist(), taken, strict=True)
    ]


def _question(
    row: dict[str, Any], normalization: Normalization, evidence: Sequence[Basis]
) -> Question:
    scores, tokens, texts = row["scores"], row["tokens"], row["choices"]
    values = compared(scores, tokens, texts, normalization)
    shares = softmax(values)
    shown = sorted(range(len(texts)), key=lambda i: (i != row["answer"], -shares[i], i))
    choices = tuple(
        Choice(
            # A to Z, then by number.
            label=ascii_uppercase[i] if i < len(ascii_uppercase) else str(i + 1),
            text=texts[i],
            gold=i == row["answer"],
            chosen=i == row["prediction"],
            share=float(shares[i]),
            score=number(float(values[i])),
            detail=f"{number(scores[i])} over {tokens[i]} token{'' if tokens[i] == 1 else 's'}",
        )
        for i in sorted(shown[:CHOICES_SHOWN])
    )
    return Question(
        id=row["id"],
        text="\n".join(filter(None, (row.get("premise"), row["question"]))),
        choices=choices,
        right=row["correct"],
        tie=row["tie"],
        about=_about(row),
        hidden=max(0, len(texts) - CHOICES_SHOWN),
        evidence=evidence,
    )


def _about(row: dict[str, Any]) -> str:
    family, distance = row["distractor_family"], row["distractor_hops"]
    parts = [
        row["concept"],
        row["pos"],
        None if row["hops"] is None else f"hops {row['hops']}",
        None if not family else f"{family} {distance}" if distance else family,
        row["template"] and f"wording {row['template']}",
    ]
    return " · ".join(part for part in parts if part)
