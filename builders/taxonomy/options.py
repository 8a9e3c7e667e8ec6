"""The options of taxonomy_conjunction, and the trees that they refer to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from builders.engine.options import ConceptNetName, MatchOptions, Tokenizer, WordNetName
from builders.english.word_lists import word_groups, word_list
from kbprobe.options import named

CONJUNCTION: Literal["conjunction"] = "conjunction"
LEVEL: Literal["level"] = "level"
PAPER: Literal["paper"] = "paper"

TREES = {tree: roots for tree, *roots in word_groups("trees", "builders.taxonomy")}
"""Disjoint parts of WordNet's nouns, each by its roots; a synset is in the tree of the nearest."""

TREES_OF_SPLITS: Mapping[str, tuple[str, ...]] = {
    "train": ("art", "crime", "illness", "person", "place", "recreation", "science", "text"),
    "validation": ("artifact", "clothing", "feeling", "job", "substance", "vehicle"),
    "test": ("animal", "body", "color", "food", "plant", "weather"),
}
"""Default splits of trees, chosen to keep many rows: a word's answers in other splits are lost.

The others (acts, groups, ideas, ...) are not asked about: what two of their words have in common
seldom has a name, and their kinds overlap.
"""

LEAST_ANSWER_ZIPF = 3.2
"""Minimum frequency of a choice (Zipf scale)."""

MIN_WEIGHT = 3.0
"""Minimum weight of ConceptNet's edges."""

RARE_WORD, RARE_ANSWER = 2.5, 3.5
CLEAN_SHARE, CLEAN_HOPS, CLEAN_GAP, CLEAN_LETTERS = 0.7, 3, 1.15, 4
"""Requirements of the clean tier for pairs: minimum frequencies (Zipf) of word and answer, minimum
share of the word's uses, maximum hops; and for words in no tagged text, how much rarer than the
singular the plural may be, and the number of letters that the word must exceed."""

FLAGS = {
    "rare_word": f"A word is rarer than Zipf {RARE_WORD:g}.",
    "like_a_name": "A word is in no tagged text, and is short or hardly has a plural: its "
    "frequency may be that of a name.",
    "rare_gold": f"The gold is rarer than Zipf {RARE_ANSWER:g}.",
    "vague_gold": "The gold says so little that few would name it as what the words are.",
    "second_sense": "A word is what the gold says in less than "
    f"{CLEAN_SHARE:.0%} of its uses, as far as WordNet tells.",
    "far": f"The gold is more than {CLEAN_HOPS} hops from a word.",
}
"""Reasons to keep a question out of the clean tier."""


class TaxonomyOptions(MatchOptions):
    """Options of taxonomy_conjunction: its trees decide on the splits."""

    WITHOUT = ("choices", "variants", "split_shares")
    DEFAULTS = named(train_rows=0)

    wordnet: WordNetName = "3.0"
    conceptnet: ConceptNetName = Field(
        "", description="A ConceptNet to take IsA from as well (see kb-cache list); none if empty."
    )
    families: tuple[Literal["conjunction", "level", "paper"], ...] = Field(
        (CONJUNCTION, LEVEL),
        min_length=1,
        description="Distractor families: conjunction (each true of one word, of kinds that "
        "cross), level (at the gold's level, true of neither word) and paper (any hypernym of one "
        "of the two).",
    )
    stop_golds: tuple[str, ...] = Field(
        tuple(sorted(word_list("vague_kinds"))), description="Words that are no answers."
    )
    min_zipf: float = Field(
        1.8, ge=0, le=8, description="Minimum frequency of a word asked about (Zipf scale)."
    )
    tokenizer: Tokenizer = ""
    max_hops: int = Field(4, ge=1, le=20, description="Maximum hops from a word to a choice.")
    level: float = Field(
        15.0,
        ge=1,
        description="Distractors at the gold's level have at most this many times more, or fewer, "
        "hyponyms than the gold.",
    )
    cap_per_gold: int = Field(
        240, ge=0, description="Maximum number of questions with the same gold (0: no cap)."
    )
    cap_per_word: int = Field(
        40,
        ge=0,
        description="Maximum number of questions about a word in each of its two places (0: no "
        "cap).",
    )
