"""WordNet and ConceptNet as one knowledge base, for probes that need both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kb_cache.conceptnet.load import load_conceptnet
from kb_cache.conceptnet.types import ConceptNet
from kb_cache.knowledge import Combined
from kb_cache.wordnet.load import load_wordnet_once
from kb_cache.wordnet.types import WordNet


@dataclass(frozen=True, eq=False)
class WordNetFirst(Combined):
    """WordNet and, if requested, ConceptNet."""

    wordnet: WordNet
    conceptnet: ConceptNet | None = None

    @property
    def sources(self) -> Sequence[WordNet | ConceptNet]:
        """The knowledge bases, WordNet first."""
        return [self.wordnet] if self.conceptnet is None else [self.wordnet, self.conceptnet]


@dataclass(frozen=True, eq=False)
class ConceptNetFirst(Combined):
    """ConceptNet, and the WordNet that provides kinds and parts of speech."""

    conceptnet: ConceptNet
    wordnet: WordNet

    @property
    def sources(self) -> Sequence[WordNet | ConceptNet]:
        """The knowledge bases, ConceptNet first."""
        return [self.conceptnet, self.wordnet]


@lru_cache(maxsize=2)
def wordnet_first(wordnet: str, conceptnet: str) -> WordNetFirst:
    """Load both, once per process; no ConceptNet if its name is empty."""
    return WordNetFirst(
        load_wordnet_once(wordnet), load_conceptnet(conceptnet) if conceptnet else None
    )


@lru_cache(maxsize=2)
def conceptnet_first(conceptnet: str, wordnet: str) -> ConceptNetFirst:
    """Load both, once per process."""
    return ConceptNetFirst(load_conceptnet(conceptnet), load_wordnet_once(wordnet))
