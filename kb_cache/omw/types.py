"""Wordnets of other languages as tables, and joined to Princeton WordNet 3.0.

>>> from kb_cache.omw.load import load_in_language
>>> wn = load_in_language("it")  # doctest: +SKIP
>>> wn.words(wn.synset_id("dog.n.01"))  # doctest: +SKIP
['cane']
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kb_cache.knowledge import Loaded
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "omw"

PRINCETON = "3.0"
"""The WordNet whose synsets the Open Multilingual Wordnet's files name by their offsets."""


@dataclass(frozen=True, eq=False, repr=False)
class Lexicon(Loaded):
    """The words that a language has for Princeton's synsets.

    Attributes:
        lemmas: ``synset`` ("02084071-n", offset and part of speech), ``lemma``; those of a synset
            in the order of the file.
        definitions: ``synset``, ``text``; at most one of a synset.
        examples: ``synset``, ``text``.
    """

    lemmas: pa.Table
    definitions: pa.Table
    examples: pa.Table

    def __repr__(self) -> str:
        return f"<Lexicon {self.name} ({self.language}): {len(self.lemmas):,} words>"


@dataclass(frozen=True, eq=False, repr=False)
class WordNetInLanguage(WordNet):
    """Princeton WordNet's synsets and relations with the words of another language.

    Rows of ``synsets`` are those of ``princeton``, so that ids, names and graphs are the same.
    Lemmas, definitions ("" where there is none) and examples are the lexicon's. Many synsets have
    no word: see ``has_words``.

    Attributes:
        princeton: the WordNet whose structure this is.
        lexicon: the source of the words; None: they are Princeton's own.
        parallel: the WordNets of all languages in which the same questions are asked, in an order
            that does not depend on which of them this is; none: of no other.
    """

    princeton: WordNet
    lexicon: Lexicon | None
    parallel: tuple[WordNet, ...] = ()

    @property
    def structure(self) -> WordNet:
        """Princeton WordNet: definitions and counts of all synsets are in English alone."""
        return self.princeton

    @property
    def languages(self) -> tuple[WordNet, ...]:
        """The WordNets whose words must all suit a question."""
        return self.parallel or (self,)

    @cached_property
    def has_words(self) -> Bools:
        """(synsets,) whether all of the languages have a word for each."""
        return np.asarray(
            np.all([np.diff(wordnet.sense_start) > 0 for wordnet in self.languages], axis=0)
        )

    @property
    def limits(self) -> tuple[str, ...]:
        """What a probe made of it cannot show, in sentences for its card."""
        if self.parallel:
            codes = ", ".join(wordnet.language for wordnet in self.parallel)
            return (
                f"The same questions, with the same ids, are asked in the languages {codes}: "
                f"{int(self.has_words.sum()):,} of the {len(self):,} synsets have words in all of "
                "them. Words are asked about alone; synonyms tell the sense where the probe shows "
                "any.",
            )
        if self.lexicon is None:
            return ()
        defined = len(self.lexicon.definitions)
        located = len(set(self.mentions["example"].to_pylist()))
        return (
            f"{self.lexicon.name} has words for {int(self.has_words.sum()):,} of the "
            f"{len(self):,} synsets and definitions of {defined:,}. Where there is no definition, "
            "the words alone stand for a choice.",
            f"{located:,} of its examples hold a word of their synset as it stands in the lexicon, "
            "and are contexts. Other words are asked about alone; synonyms or a definition tell "
            "the sense where the probe shows any. No distractor is true of another sense of the "
            "word.",
            "Relations, flags and the screen rest on Princeton WordNet's English definitions, "
            "sense counts and usage marks: what is a doubtful or an offensive word in this "
            "language alone is not known.",
        )

    @property
    def sources(self) -> tuple[WordNet | Lexicon, ...]:
        """The knowledge bases that this is made of."""
        lexicons = (
            wordnet.lexicon for wordnet in self.languages if isinstance(wordnet, WordNetInLanguage)
        )
        return self.princeton, *(lexicon for lexicon in lexicons if lexicon is not None)

    def words(self, synset: int) -> list[str]:
        """Return the words of a synset."""
        first, end = self.sense_start[synset], self.sense_start[synset + 1]
        found: list[str] = self.lemma_texts()[int(first) : int(end)].to_pylist()
        return found
