"""Folds of a split, for cross-validation, and all splits of a probe as one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from evaluation.items.sources import WHOLE, ProbeSource, UnknownSplit, open_probe
from evaluation.items.types import Links, ProbeSplit, fingerprint
from kbprobe.errors import UsageError

_SPLITS = ("train", "validation", "test")


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
        for name in _SPLITS:
            try:
                parts.append(open_probe(source, split=name, config=config))
            except UnknownSplit:
                continue
        if not parts:
            raise
    return _joined(parts)


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


def _joined(parts: list[ProbeSplit]) -> ProbeSplit:
    """Put splits of one probe one after another."""
    import pyarrow as pa

    items = tuple(item for part in parts for item in part.items)
    links = [part.links for part in parts if part.links is not None]
    arguments = [part.arguments for part in parts if part.arguments is not None]
    complete = len(arguments) == len(parts)
    notes: Counter[str] = Counter()
    for part in parts:
        notes.update(part.notes)
    return replace(
        parts[0],
        split=WHOLE,
        items=items,
        about=pa.concat_tables([part.about for part in parts]),
        clustered=all(part.clustered for part in parts),
        fingerprint=fingerprint(items),
        links=Links(
            tuple(ids for part in links for ids in part.fact_ids),
            tuple(relation for part in links for relation in part.relations),
        )
        if len(links) == len(parts)
        else None,
        # Chunked columns of one type.
        arguments=pa.chunked_array(arguments).combine_chunks() if complete else None,
        notes=dict(notes),
    )
