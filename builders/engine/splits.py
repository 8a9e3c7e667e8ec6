"""Splitting by semantic cluster: all rows about one concept land in one split."""

from __future__ import annotations

import numpy as np

from builders.engine.streams import Stream
from kb_cache.graph import Bools, Ints


def assign_splits(concept: Ints, shares: tuple[float, float, float], stream: Stream) -> Ints:
    """Return each row's split (0 train, 1 validation, 2 test), a function of its concept alone."""
    edges = np.cumsum(shares)[:2]
    return np.searchsorted(edges, stream.uniform(concept), side="right").astype(np.int64)


def first_clusters(concept: Ints, rows: int, stream: Stream) -> Bools:
    """Mark whole clusters, in seeded order, until no further one fits within ``rows``.

    A cluster that does not fit is passed over, and the next tried.
    """
    clusters, local, sizes = np.unique(concept, return_inverse=True, return_counts=True)
    keep = np.zeros(clusters.size, dtype=np.bool_)
    room = rows
    for at in np.argsort(stream.uniform(clusters), kind="stable"):
        if sizes[at] <= room:
            keep[at] = True
            room -= int(sizes[at])
            if room == 0:
                break
    return np.asarray(keep[local])
