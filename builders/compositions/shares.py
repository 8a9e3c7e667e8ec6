"""How many rows each path gets, and which stay: whole choice groups at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from builders.compositions.chains import Chain, Knowledge
from builders.compositions.rows import Row
from builders.engine.plan import text_key
from kbprobe.rng import RandomGenerator

Rows = list[tuple[Chain, Row]]
Group = tuple[str, int, int]
"""A path, a split, and the number of a choice group."""


def limit_further(
    knowledge: Knowledge, rows: Rows, share: float, rng: RandomGenerator, dropped: Counter[str]
) -> Rows:
    """Leave out rows on paths that are not published, beyond a share of each split.

    What is left of the share goes to these paths as evenly as they have rows. Nothing is left out
    where no published path is asked about.
    """
    published = {name for name, path in knowledge.paths.paths.items() if path.published}
    own: Counter[int] = Counter(row.split for chain, row in rows if chain.path in published)
    if share >= 1 or not own:
        return rows
    groups: dict[Group, int] = Counter(_group_of(chain, row) for chain, row in rows)
    keep = {one for one in groups if one[0] in published}
    for split in sorted({split for _, split, _ in groups}):
        room = int(own[split] * share / (1 - share))
        taken: Counter[str] = Counter()
        waiting: dict[str, list[Group]] = defaultdict(list)
        further = [one for one in groups if one[1] == split and one[0] not in published]
        for at in np.argsort(rng.bits(np.array([text_key(*map(str, one)) for one in further]))):
            waiting[further[at][0]].append(further[at])
        while waiting:
            path = min(waiting, key=lambda name: (taken[name], name))
            one = waiting[path].pop()
            if not waiting[path]:
                del waiting[path]
            if groups[one] <= room:
                keep.add(one)
                taken[path] += groups[one]
                room -= groups[one]
    return _kept(rows, keep, "beyond --further-share", dropped)


def with_their_facts(rows: Rows, facts: Sequence[Row], dropped: Counter[str]) -> Rows:
    """Leave out rows of which a fact is not asked alone, and the rest of their choice groups."""
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
