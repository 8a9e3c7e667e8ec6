"""Split chains such that every entity asked about and every fact is in one split only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from builders.compositions.chains import Chain, kept, number_of
from builders.engine.splits import connected_components
from kbprobe.arrays import Ints
from kbprobe.format.setups import SPLITS
from kbprobe.rng import RandomGenerator

Thing = tuple[str, ...]
"""An entity that is asked about, or a fact."""


def split_chains(
    chains: list[Chain],
    shares: tuple[float, float, float],
    rng: RandomGenerator,
    dropped: Counter[str],
) -> tuple[list[Chain], Ints]:
    """Assign splits by the bearer of the answer; drop chains that would be in two splits.

    A film has several actors, so not all its questions can be in the split of their actor. Actors
    are therefore assigned to the split with most of their films, as long as there is room. Facts
    stated from both ends (spouses) count as one.

    Returns:
        The chains that are kept, and the split of each.
    """
    if not chains:
        return [], np.empty(0, dtype=np.int64)
    # Entities that are each other's answers share one fact.
    bears = {number_of(chain.carrier) for chain in chains}
    ends = [(number_of(chain.carrier), number_of(chain.gold)) for chain in chains]
    root = connected_components((one, other if other in bears else one) for one, other in ends)
    home_of = _homes([root[one] for one, _ in ends], chains, shares, rng)
    split = np.array([home_of[root[one]] for one, _ in ends], dtype=np.int64)
    votes: dict[Thing, Counter[int]] = defaultdict(Counter)
    for chain, code in zip(chains, split.tolist(), strict=True):
        for thing in _told(chain):
            votes[thing][code] += 1
    home = {
        thing: max(count, key=lambda code: (count[code], code)) for thing, count in votes.items()
    }
    keep = np.array(
        [
            all(home[thing] == code for thing in _told(chain))
            for chain, code in zip(chains, split.tolist(), strict=True)
        ]
    )
    return kept(chains, keep, "asks about something that is in another split", dropped), split[keep]


def _homes(
    roots: Sequence[int],
    chains: Sequence[Chain],
    shares: tuple[float, float, float],
    rng: RandomGenerator,
) -> dict[int, int]:
    """Choose a split for each bearer, those with most chains first.

    Among the splits with room for it, this is the one that already has most of the entities and
    facts of its chains. Each path's chains are divided according to the shares.
    """
    own: dict[int, list[Chain]] = defaultdict(list)
    for name, chain in zip(roots, chains, strict=True):
        own[name].append(chain)
    names = np.array(sorted(own), dtype=np.int64)
    lot = dict(zip(names.tolist(), rng.bits(names).tolist(), strict=True))
    size = Counter(chain.path for chain in chains)
    load: dict[str, list[int]] = {path: [0] * len(SPLITS) for path in size}
    found: dict[Thing, Counter[int]] = defaultdict(Counter)
    home = {}
    for name in sorted(own, key=lambda name: (-len(own[name]), lot[name])):
        count = Counter(chain.path for chain in own[name])
        path = max(count, key=lambda path: (count[path], path))
        room = [share * size[path] - used for share, used in zip(shares, load[path], strict=True)]
        ties = [sum(found[thing][code] for thing in _all_told(own[name])) for code in range(3)]
        fits = [code for code in range(3) if room[code] >= count[path]] or [room.index(max(room))]
        best = max(fits, key=lambda code: (ties[code], room[code]))
        home[name] = best
        load[path][best] += count[path]
        for thing in _all_told(own[name]):
            found[thing][best] += 1
    return home


def _all_told(chains: Iterable[Chain]) -> set[Thing]:
    return set().union(*map(_told, chains))


def _told(chain: Chain) -> set[Thing]:
    """Return the entities that a chain's questions ask about, and its undirected facts."""
    entities = {(edge.source,) for edge in chain.edges}
    return entities | {(edge.hop, *sorted((edge.source, edge.target))) for edge in chain.edges}
