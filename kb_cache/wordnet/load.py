"""Loading WordNet from its snapshot."""

from __future__ import annotations

from kb_cache.fetching import open_snapshot
from kb_cache.wordnet.types import KIND, WordNet


def load_wordnet(name: str = "3.0") -> WordNet:
    """Load a WordNet: 3.0 comes with the package, others from the cache.

    Args:
        name: "3.0" or "wordnet-3.0", or a name that ``kb-cache list`` shows.

    Raises:
        UsageError: there is no such snapshot; the message lists those that there are.
        SnapshotError: it is damaged and its source is gone; the message names the command that
            makes it again.
    """
    info, tables = open_snapshot(KIND, name)
    return WordNet(**info.identity, **tables)
