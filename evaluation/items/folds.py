"""Folds of a split, for cross-validation, and all splits of a probe as one."""

from __future__ import annotations

from collections import Counter

from evaluation.items.sources import WHOLE, ProbeSource, UnknownSplit, open_probe
from evaluation.items.types import ProbeSplit, joined
from kbprobe.errors import UsageError
from kbprobe.format.setups import SPLITS


def open_rows(source: ProbeSource, split: str, config: str | None = None) -> ProbeSplit:
    """Read one split of a probe as :func:`open_probe` does, or all of them as one.

    ``all`` stands for all splits where none has that name.

    Raises:
        UsageError: there is no such probe, config or split.
        KbprobeError: it cannot be read.
    """
    try:
        return open_probe(source, split=split, config=config)
    except UnknownSplit:
        if split != WHOLE:
            raise
        parts = []
        for name in SPLITS:
            try:
                parts.append(open_probe(source, split=name, config=config))
            except UnknownSplit:
                continue
        if not parts:
            raise
    return joined(parts, parts[0].name, WHOLE)


def folds_of(rows: ProbeSplit) -> dict[int, int]:
    """Return how many rows each fold has, by its number.

    Raises:
        UsageError: some rows have no fold, or all have the same.
    """
    folds = rows.about["fold"].to_pylist() if "fold" in rows.about.column_names else [None]
    if None in folds:
        raise UsageError(
            f"{rows.source}, split {rows.split!r}, has rows without a fold: cross-validation needs "
            "a column fold. The fw_ probes of build-probe have one; in a file of rows, give each "
            "row the number of its fold, the same for all rows of a cluster."
        )
    counts = dict(sorted(Counter(folds).items()))
    if len(counts) < 2:
        raise UsageError(
            f"{rows.source}, split {rows.split!r}, has one fold alone, {next(iter(counts))}: there "
            "is nothing else to fit on. Name a --split with several folds, such as --split all."
        )
    return counts


def take_fold(rows: ProbeSplit, fold: int, other: bool = False) -> ProbeSplit:
    """Return the rows of a fold, or those of all other folds.

    Raises:
        UsageError: there is no such fold, or the rows have none.
    """
    known = folds_of(rows)
    if fold not in known:
        named = ", ".join(map(str, known))
        raise UsageError(
            f"--fold {fold}: {rows.source}, split {rows.split!r}, has no such fold. It has: "
            f"{named}."
        )
    folds = rows.about["fold"].to_pylist()
    return rows.take([row for row, own in enumerate(folds) if (own != fold) is other])
