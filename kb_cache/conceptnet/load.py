"""Loading ConceptNet from its snapshot."""

from __future__ import annotations

from kb_cache.conceptnet.types import DEFAULT_VERSION, KIND, ConceptNet
from kb_cache.opening import open_snapshot


def load_conceptnet(name: str = DEFAULT_VERSION) -> ConceptNet:
    """Load a ConceptNet from the cache, by name as `open_snapshot` does."""
    info, tables = open_snapshot(KIND, name)
    return ConceptNet(**info.identity, **tables)
