"""Loading WordNet from its snapshot."""

from __future__ import annotations

from functools import lru_cache

from kb_cache.derived import as_stored
from kb_cache.opening import open_snapshot
from kb_cache.wordnet.types import KIND, WordNet


def load_wordnet(name: str = "3.0") -> WordNet:
    """Load a WordNet, by name as `open_snapshot` does; 3.0 comes with the package."""
    info, tables = open_snapshot(KIND, name)
    return as_stored(WordNet(**info.identity, **tables))


load_wordnet_once = lru_cache(maxsize=2)(load_wordnet)
"""`load_wordnet` for builders, which share what they derive from a WordNet in a process."""
