"""Select the pairs to ask about from all possible changes: natural, new, and balanced.

Each probe provides its possible changes (:class:`SwapCandidates`). This module contains what all
probes share: selecting suitable sentences, dropping doubtful changes and those that change nothing
or result in sentences of the corpus, and choosing among the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.drops import DropLog
from builders.engine.plan import Flags, text_keys
from builders.function_words.balance import (
    EFFORT,
    Feature,
    SearchEffort,
    TextChange,
    Tolerance,
    choose_balanced,
)
from builders.function_words.options import AcceptabilityOptions
from kb_cache.corpora.types import TextCorpus
from kbprobe.arrays import Bools, Ints
from kbprobe.columns import mask, to_numpy
from kbprobe.rng import RandomGenerator

TOLERANCE = {
    "word": Tolerance(4, 3),
    "before": Tolerance(2, 2),
    "behind": Tolerance(2, 2),
    "words": Tolerance(2, 1),
}
"""Maximum imbalance between originals and changed texts, in pairs, by kind of feature."""

Texts = Sequence[str]


@dataclass(frozen=True, eq=False)
class SwapCandidates:
    """Texts and their possible changes: parallel arrays with one line for each change.

    Attributes:
        sentence: (lines,) the sentence, or the first of several.
        original, changed: the texts.
        words: the changed words, in the original and in the changed text.
        windows: the same words with their neighbours.
        features: the features of the changed places in either text, repeated as they occur.
        frame: how the words are used.
        cloze: the original with a mask, the masked word, and another word; None if no single word
            decides.
        flags: the flags that keep lines out of the clean tier.
    """

    sentence: Ints
    original: Texts
    changed: Texts
    words: tuple[Texts, Texts]
    windows: tuple[Texts, Texts]
    features: tuple[Sequence[Sequence[Feature]], Sequence[Sequence[Feature]]]
    frame: Texts
    cloze: Sequence[tuple[str, str, str] | None]
    flags: Flags

    def __len__(self) -> int:
        return len(self.original)

    def take(self, lines: Ints | Bools) -> SwapCandidates:
        """Return some of the lines."""
        kept = np.flatnonzero(lines) if lines.dtype == np.bool_ else lines
        numbers = kept.tolist()

        def some(column: Sequence[Any]) -> list[Any]:
            return [column[at] for at in numbers]

        columns: dict[str, Any] = {
            name: some(getattr(self, name)) for name in ("original", "changed", "frame", "cloze")
        }
        for name in ("words", "windows", "features"):
            columns[name] = tuple(map(some, getattr(self, name)))
        sentence, flags = self.sentence[kept], self.flags.take(kept)
        return replace(self, sentence=sentence, flags=flags, **columns)


@dataclass(frozen=True, eq=False)
class ChosenSwaps:
    """The chosen pairs, and the split of each."""

    candidates: SwapCandidates
    document: Ints
    split: Ints
    dropped: DropLog = field(default_factory=DropLog)


def choose_pairs(
    candidates: SwapCandidates,
    corpus: TextCorpus,
    options: AcceptabilityOptions,
    dropped: DropLog,
    rng: RandomGenerator,
    tolerance: Mapping[str, Tolerance] = TOLERANCE,
    effort: SearchEffort = EFFORT,
) -> ChosenSwaps:
    """Choose the pairs of a build: one per sentence, of the tier, balanced in each split.

    Args:
        candidates: the possible pairs.
        corpus: where it comes from.
        options: the build's.
        dropped: counts of dropped candidates; those dropped here are added.
        rng: the random generator.
        tolerance: kind of feature -> maximum imbalance.
        effort: how long to search for more pairs.

    Raises:
        UsageError: no pairs are left.
    """
    candidates = candidates.take(_new(candidates, corpus, dropped))
    candidates = candidates.take(candidates.flags.of_tier(options.tier, dropped))
    dropped.require(len(candidates), "Name more corpora with --corpus, or add --tier full.")
    document = corpus.sentence_document[candidates.sentence]
    split = document_splits(corpus, options.split_shares, rng.child("splits"))[document]
    text_key = text_keys(candidates.original)
    if options.balanced:
        changes = [
            TextChange(*line)
            for line in zip(text_key.tolist(), split.tolist(), *candidates.features, strict=True)
        ]
        balanced = choose_balanced(changes, tolerance, rng.child("balance"), effort)
        chosen = np.array(balanced, dtype=np.int64)
    else:
        lots = rng.child("ways").uniform(text_key, text_keys(candidates.changed))
        order = np.argsort(lots, kind="stable")
        chosen = np.sort(order[np.unique(text_key[order], return_index=True)[1]])
    dropped["pairs: sentences without one that keeps the balance"] += int(
        np.unique(text_key).size - chosen.size
    )
    dropped.require(chosen.size, "Name more corpora with --corpus, or add --no-balanced.")
    return ChosenSwaps(candidates.take(chosen), document[chosen], split[chosen], dropped)


def document_splits(
    corpus: TextCorpus, shares: tuple[float, float, float], rng: RandomGenerator
) -> Ints:
    """Return the split of each document (0 train, 1 validation, 2 test).

    Documents are taken in random order until a split has its share of all sentences: they are few,
    and some are long, so that independent draws would miss the shares by far.
    """
    size = np.bincount(corpus.sentence_document, minlength=len(corpus.document_ids))
    key = text_keys(corpus.document_source.of(slice(None)), corpus.document_ids)
    order = np.argsort(rng.uniform(key), kind="stable")
    middle = np.cumsum(size[order]) - size[order] / 2
    split = np.empty(order.size, dtype=np.int64)
    edges = np.cumsum(shares)[:2] * max(int(size.sum()), 1)
    split[order] = np.searchsorted(edges, middle, side="right")
    return split


def _new(candidates: SwapCandidates, corpus: TextCorpus, dropped: DropLog) -> Bools:
    """Mark the lines whose changed text is neither the original nor a sentence of the corpus."""
    known = pc.unique(corpus.sentences.text)
    original, changed = (
        pa.array(texts, pa.large_string()) for texts in (candidates.original, candidates.changed)
    )
    same = mask(pc.equal(pc.utf8_lower(original), pc.utf8_lower(changed)))
    real = mask(pc.is_in(changed, value_set=known))
    first = np.zeros(len(candidates), dtype=np.bool_)
    pair = to_numpy(
        pc.binary_join_element_wise(original, changed, pa.scalar("\x1f", pa.large_string()))
        .dictionary_encode()
        .indices
    )
    first[np.unique(pair, return_index=True)[1]] = True
    kept = dropped.drop("pairs: the changed text is a sentence of the corpus", real | same)
    return kept & dropped.keep("pairs: the same pair occurs before", first)
