"""Opening a Wikidata of the cache."""

from __future__ import annotations

from kb_cache.opening import open_snapshot
from kb_cache.store import find
from kb_cache.wikidata.types import KIND, STORE, Wikidata
from kbprobe.errors import SnapshotError, require


def load_wikidata(name: str) -> Wikidata:
    """Open a Wikidata of the cache, by name as `open_snapshot` does.

    Raises:
        MissingDependencyError: pyoxigraph is not installed.
    """
    info, _ = open_snapshot(KIND, name)
    require("pyoxigraph", "wikidata", "Asking a dump of Wikidata")
    folder = find(info.name, KIND).folder / STORE
    from pyoxigraph import Store

    try:
        store = Store.read_only(str(folder))
    except OSError as error:
        raise SnapshotError(
            f"{folder} cannot be opened: {error}. Repair it with: "
            f"kb-cache verify --repair {info.name}"
        ) from error
    return Wikidata(**info.identity, folder=folder, store=store, triples=info.counts["triples"])
