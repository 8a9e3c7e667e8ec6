"""Limit the rows of each path, dropping whole choice groups at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from builders.compositions.chains import Chain
from builders.compositions.rows import Row
from builders.engine.plan import text_key
from kbprobe.rng import RandomGenerator

Rows = list[tuple[Chain, Row]]
Group = tuple[str, int, int]
"""A path, a split, and the number of a choice group."""


def limit_paths(rows: Rows, share: float, rng: RandomGenerator, dropped: Counter[str]) -> Rows:
    """Drop rows of paths that have more than a share of the rows of their split.

    Nothing is dropped if there are too few paths for this share.
    """
    groups: dict[Group, int] = Counter(_group_of(chain, row) for chain, row in rows)
    keep: set[Group] = set()
    for split in sorted({split for _, split, _ in groups}):
        some = sorted(one for one in groups if one[1] == split)
        paths = Counter(chain.path for chain, row in rows if row.split == split)
        most = _most_of_a_path(paths, share)
        taken: Counter[str] = Counter()
        for at in np.argsort(rng.bits(np.array([text_key(*map(str, one)) for one in some]))):
            if taken[some[at][0]] + groups[some[at]] <= most:
                keep.add(some[at])
                taken[some[at][0]] += groups[some[at]]
    return _kept(rows, keep, "beyond --path-share", dropped)


def _most_of_a_path(rows: Counter[str], share: float) -> float:
    """Return the maximum rows per path such that none exceeds its share of those kept."""
    if len(rows) * share <= 1:
        return max(rows.values())
    most = float(max(rows.values()))
    while most > share * sum(min(most, count) for count in rows.values()) + 1e-9:
        most = share * sum(min(most, count) for count in rows.values())
    return most


def with_their_facts(rows: Rows, facts: Sequence[Row], dropped: Counter[str]) -> Rows:
    """Drop the choice groups of rows with a fact that has no question of its own."""
    asked = {row.edges[0][:3] for row in facts}
    groups = {_group_of(chain, row) for chain, row in rows}
    lacking = {
        _group_of(chain, row)
        for chain, row in rows
        if not all(edge[:3] in asked for edge in row.edges)
    }
    return _kept(rows, groups - lacking, "a fact of it has too few wrong answers", dropped)


def _group_of(chain: Chain, row: Row) -> Group:
    return chain.path, row.split, row.group


def _kept(rows: Rows, keep: set[Group], reason: str, dropped: Counter[str]) -> Rows:
    dropped.update(
        f"{chain.path}: {reason}" for chain, row in rows if _group_of(chain, row) not in keep
    )
    return [(chain, row) for chain, row in rows if _group_of(chain, row) in keep]
