"""Loading WordNet from its snapshot."""

from __future__ import annotations

from kb_cache.fetching import open_snapshot
from kb_cache.wordnet.types import KIND, WordNet


def load_wordnet(name: str = "3.0") -> WordNet:
    """Load a WordNet, by name as `open_snapshot` does; 3.0 comes with the package."""
    info, tables = open_snapshot(KIND, name)
    return WordNet(**info.identity, **tables)
