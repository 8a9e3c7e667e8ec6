"""Loading corpora from their snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from kb_cache.corpora.types import KIND, Corpus, TextCorpus, combined
from kb_cache.opening import open_snapshot

#: The corpus that comes with the package.
DEFAULT = "masc-extract"


def load_corpus(name: str = DEFAULT) -> Corpus:
    """Load a corpus, by name as `open_snapshot` does."""
    info, tables = open_snapshot(KIND, name)
    return Corpus(**info.identity, tables=tables)


def load_corpora(names: Sequence[str] = (DEFAULT,)) -> TextCorpus:
    """Load several corpora as one."""
    return combined([load_corpus(name) for name in names])
