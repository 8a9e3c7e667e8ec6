"""Word vectors of scorers and learners that read no model: which, and their identity."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from kbprobe.files.cache import cache_dir
from kbprobe.options import RARE, Options

if TYPE_CHECKING:
    from kb_cache.vectors.types import WordVectors


class VectorsOption(Options):
    """Which word vectors are read."""

    vectors: Annotated[str | None, RARE] = Field(
        None,
        min_length=1,
        description="Word vectors, by their name in kb-cache list; by default GloVe with 50 "
        "dimensions, or the only vectors there are.",
    )


def word_vectors(options: VectorsOption) -> WordVectors:
    """Load the requested word vectors, once per process.

    Raises:
        UsageError: there are none of that name; the message says how to get some.
    """
    return _loaded(options.vectors, cache_dir())


def vectors_content(options: VectorsOption) -> Mapping[str, str]:
    """Return what scores depend on (``content`` of scorers and learners): the vectors' digest.

    Where the vectors hold expressions, so does how these are read.
    """
    vectors = word_vectors(options)
    read = {"expressions": "joined"} if vectors.longest_expression > 1 else {}
    return {"vectors_digest": vectors.digest, **read}


@lru_cache(maxsize=4)
def _loaded(name: str | None, _folder: Path) -> WordVectors:
    from kb_cache.vectors.load import load_vectors

    return load_vectors(name)
