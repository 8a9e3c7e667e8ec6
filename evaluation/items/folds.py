"""Folds of a split, for cross-validation, and all splits of a probe as one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import partial

from evaluation.items.sources import WHOLE, ProbeSource, UnknownSplit, open_probe
from evaluation.items.types import ProbeSplit, joined
from kbprobe.errors import UsageError
from kbprobe.format.setups import SPLITS

FOLDS = 10
"""The number of folds for rows that do not name a fold."""


def open_rows(
    source: ProbeSource,
    split: str,
    config: str | None = None,
    label_names: Sequence[str] = (),
) -> ProbeSplit:
    """Read one split of a probe as :func:`open_probe` does, or all of them as one.

    ``all`` means all splits, unless a split has that name.

    Raises:
        UsageError: there is no such probe, config or split.
        KbprobeError: it cannot be read.
    """
    opened = partial(open_probe, source, config=config, label_names=label_names)
    try:
        return opened(split=split)
    except UnknownSplit:
        if split != WHOLE:
            raise
        parts = []
        for name in SPLITS:
            try:
                parts.append(opened(split=name))
            except UnknownSplit:
                continue
        if not parts:
            raise
    return joined(parts, parts[0].name, WHOLE)


def names_folds(rows: ProbeSplit) -> bool:
    """Return whether the rows say which fold they are in."""
    column = rows.about["fold"]
    return bool(column.null_count < len(column))


def folds_of(rows: ProbeSplit) -> dict[int, int]:
    """Return how many rows each fold has, by its number.

    Raises:
        UsageError: only some rows name a fold, or all are in the same.
    """
    counts = dict(sorted(Counter(_fold_of_rows(rows)).items()))
    if len(counts) < 2:
        raise UsageError(
            f"{rows.source}, split {rows.split!r}, has only one fold, {next(iter(counts))}: there "
            "are no other rows to fit on. Name a --split with several folds, such as --split all."
        )
    return counts


def take_fold(rows: ProbeSplit, fold: int, other: bool = False) -> ProbeSplit:
    """Return the rows of a fold, or those of all other folds.

    Raises:
        UsageError: there is no such fold, or no other; or only some rows name a fold.
    """
    known = folds_of(rows)
    if fold not in known:
        named = ", ".join(map(str, known))
        raise UsageError(
            f"--fold {fold}: {rows.source}, split {rows.split!r}, has no such fold. It has: "
            f"{named}."
        )
    folds = _fold_of_rows(rows)
    return rows.take([row for row, own in enumerate(folds) if (own != fold) is other])


def _fold_of_rows(rows: ProbeSplit) -> list[int]:
    """Return the fold of each row: the one that it names, or where no row names one, by cluster.

    Clusters are then divided into :data:`FOLDS` by a hash of their names.

    Raises:
        UsageError: some rows name a fold, and others none.
    """
    folds: list[int | None] = rows.about["fold"].to_pylist()
    named = [fold for fold in folds if fold is not None]
    if len(named) == len(folds):
        return named
    if named:
        raise UsageError(
            f"{rows.source}, split {rows.split!r}: {len(folds) - len(named):,} of "
            f"{len(folds):,} rows have no fold. Give every row the number of its fold, the same "
            "for all rows of a cluster, or give none, so that clusters are divided by a hash."
        )
    return [_hashed(cluster) % FOLDS for cluster in rows.about["cluster"].to_pylist()]


def _hashed(name: str) -> int:
    return int(hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest(), 16)
