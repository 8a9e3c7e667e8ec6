"""Opening a Wikidata of the cache."""

from __future__ import annotations

from kb_cache.catalogue import find
from kb_cache.fetching import open_snapshot
from kb_cache.wikidata.types import KIND, STORE, Wikidata
from kbprobe.errors import SnapshotError, require


def load_wikidata(name: str) -> Wikidata:
    """Open a Wikidata of the cache.

    Args:
        name: "sample" or "wikidata-sample", or a name that ``kb-cache list`` shows.

    Raises:
        UsageError: there is no such snapshot; the message says how to get one.
        SnapshotError: it is damaged and its source is gone; the message names the command that
            makes it again.
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
            f"{folder} cannot be opened: {error}. Mend it with: "
            f"kb-cache verify --repair {info.name}"
        ) from error
    return Wikidata(**info.identity, folder=folder, store=store, triples=info.counts["triples"])
