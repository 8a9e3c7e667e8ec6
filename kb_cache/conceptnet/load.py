"""Loading ConceptNet from its snapshot."""

from __future__ import annotations

from kb_cache.conceptnet.types import DEFAULT_VERSION, KIND, ConceptNet
from kb_cache.fetching import open_snapshot


def load_conceptnet(name: str = DEFAULT_VERSION) -> ConceptNet:
    """Load a ConceptNet from the cache.

    Args:
        name: "5.7" or "conceptnet-5.7", or a name that ``kb-cache list`` shows.

    Raises:
        UsageError: there is no such snapshot; the message says how to get one.
        SnapshotError: it is damaged and its source is gone; the message names the command that
            makes it again.
    """
    info, tables = open_snapshot(KIND, name)
    return ConceptNet(**info.identity, **tables)
