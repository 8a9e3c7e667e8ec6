"""fw_eos: where one sentence ends and the next begins, without punctuation and capitals.

Two adjacent sentences of a paragraph are joined as lower-case words and divided again: at the right
place, and at a wrong one whose distance is drawn from a normal distribution (Kim et al., 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from builders.engine.plan import Flags
from builders.function_words.balance import Feature
from builders.function_words.candidates import PLACES
from builders.function_words.pairs import SwapCandidates
from builders.function_words.tokens import FINITE, TaggedTexts
from kb_cache.corpora.types import TextCorpus
from kbprobe.arrays import Bools, Floats, Ints, run_starts
from kbprobe.rng import RandomGenerator

MOST_WORDS = 25
"""Maximum number of words of a sentence."""

FEWEST_WORDS = 4

TRIES = 20
"""Maximum number of draws of a distance until it is neither 0 nor beyond the sentences."""

FREE = "moves_freely"

_MOVES_FREELY = ("RB", "IN", "CC", "UH", "TO", "WRB", "RP", "CD")
"""Tags of phrases that may end a sentence or begin the next: "yesterday", "in the park"."""


def wrong_distances(
    left: Ints, right: Ints, key: Ints, sigma: float, rng: RandomGenerator
) -> tuple[Ints, Bools]:
    """Draw the distance of a wrong end from the right one in words: negative before it.

    Args:
        left: (pairs,) words of the first sentence.
        right: (pairs,) words of the second.
        key: (pairs,) keys of the random generator.
        sigma: standard deviation of the normal distribution that is rounded.
        rng: the random generator.

    Returns:
        The distances, and whether one was found that leaves a word on both sides.
    """
    from scipy.special import ndtri

    distance = np.zeros_like(left)
    for number in range(TRIES):
        normal: Floats = ndtri(rng.uniform(key, np.full_like(key, number)))
        drawn = np.rint(sigma * normal).astype(np.int64)
        fits = (drawn != 0) & (-drawn < left) & (drawn < right)
        distance = np.where((distance == 0) & fits, drawn, distance)
    return distance, distance != 0


@dataclass(frozen=True, eq=False)
class Words:
    """The words of each sentence, in lower case and without punctuation.

    A word is a sequence of adjoining tokens with letters or digits: "don't" is one word.

    Attributes:
        tagged: the sentences.
        start: (words,) the first token of each.
        indptr: the words of sentence ``i`` are ``indptr[i]:indptr[i + 1]``.
        joined: (tokens,) whether a token belongs to the same word as the previous token.
    """

    tagged: TaggedTexts
    start: Ints
    indptr: Ints
    joined: Bools

    @classmethod
    def of(cls, tagged: TaggedTexts) -> Words:
        """Find the words of all sentences."""
        spoken = np.array([any(c.isalnum() for c in form) for form in tagged.words], np.bool_)
        is_word = spoken[tagged.code] if tagged.code.size else np.zeros(0, np.bool_)
        touches = np.zeros_like(is_word)
        touches[1:] = tagged.texts.start[1:] == tagged.texts.end[:-1]
        joined = is_word & touches & tagged.near(is_word, -1)
        begins = is_word & ~joined
        return cls(tagged, np.flatnonzero(begins), run_starts(tagged.count(begins)), joined)

    @property
    def counts(self) -> Ints:
        """(sentences,) number of words of each sentence."""
        return np.diff(self.indptr)

    def of_sentence(self, sentence: int) -> tuple[list[str], list[str]]:
        """Return the words of a sentence, and the tag of the first token of each."""
        tagged = self.tagged
        words, tags = [], []
        for token in self.start[self.indptr[sentence] : self.indptr[sentence + 1]].tolist():
            word, after = tagged.words[tagged.code[token]], token + 1
            while after < self.joined.size and self.joined[after]:
                word += tagged.words[tagged.code[after]]
                after += 1
            words.append(word)
            tags.append(tagged.tags[token])
        return words, tags


class Parted(NamedTuple):
    """Words divided into two sentences, and the words around the division."""

    text: str
    words: str
    window: str
    features: list[Feature]


def parted(words: Sequence[str], end: int) -> Parted:
    """Divide words into two sentences, the first with ``end`` words.

    >>> parted(["it", "rained", "we", "stayed", "home"], 2).text
    'it rained. we stayed home.'
    """
    one, other = words[:end], words[end:]
    around = " ".join(one[-2:]), " ".join(other[:2])
    return Parted(
        f"{' '.join(one)}. {' '.join(other)}.",
        f"{one[-1]}{PLACES}{other[0]}",
        PLACES.join(around),
        [("before", one[-1]), ("behind", other[0]), ("before", around[0]), ("behind", around[1])],
    )


def plain_sentences(tagged: TaggedTexts) -> Bools:
    """Mark sentences that read well without punctuation: at most one comma, a full stop."""
    words = np.array([any(c.isalnum() for c in form) for form in tagged.words], np.bool_)
    marks = ~words[tagged.code] if tagged.code.size else np.zeros(0, np.bool_)
    commas = tagged.is_word(",")
    stops = tagged.is_word(".")
    other = tagged.in_text(marks & ~commas & ~stops) | tagged.in_text(tagged.has_tag("CD"))
    return np.asarray(~other & (tagged.count(commas) <= 1) & (tagged.count(stops) == 1))


def moves_freely(tags: Sequence[str], begins: bool) -> bool:
    """Return whether a phrase fits the end of one sentence as well as the beginning of the next.

    Args:
        tags: of the words between the right and the wrong end.
        begins: whether the part begins the second sentence (else it ends the first).
    """
    clause = any(tag in FINITE for tag in tags)
    return tags[0] in _MOVES_FREELY or (clause and not begins)


def sentence_end_candidates(
    tagged: TaggedTexts, corpus: TextCorpus, allowed: Bools, sigma: float, rng: RandomGenerator
) -> SwapCandidates:
    """Make a candidate of any two adjacent sentences, with one wrong end.

    Args:
        tagged: the sentences.
        corpus: where they come from.
        allowed: (texts,) the sentences that may be used.
        sigma: standard deviation of the wrong end's distance, in words.
        rng: the random generator.
    """
    words = Words.of(tagged)
    sized = (words.counts >= FEWEST_WORDS) & (words.counts <= MOST_WORDS)
    allowed = allowed & sized & plain_sentences(tagged)
    paragraph = corpus.sentence_paragraph
    marked = corpus.has_paragraphs[corpus.sentence_document]
    adjacent = allowed[:-1] & allowed[1:] & (paragraph[1:] == paragraph[:-1]) & marked[:-1]
    first = np.flatnonzero(adjacent).astype(np.int64)
    left, right = words.counts[first], words.counts[first + 1]
    distance, found = wrong_distances(left, right, first, sigma, rng)
    first, distance, left = first[found], distance[found], left[found]
    rights, wrongs, free = [], [], []
    for sentence, by, end in zip(first.tolist(), distance.tolist(), left.tolist(), strict=True):
        (one, tags), (other, more) = words.of_sentence(sentence), words.of_sentence(sentence + 1)
        both, all_tags = one + other, tags + more
        rights.append(parted(both, end))
        wrongs.append(parted(both, end + by))
        between = slice(min(end, end + by), max(end, end + by))
        free.append(moves_freely(all_tags[between], by > 0))
    flags = Flags.none(len(rights)).mark(FREE, np.array(free, dtype=np.bool_))
    return SwapCandidates(
        sentence=first,
        original=[line.text for line in rights],
        changed=[line.text for line in wrongs],
        words=([line.words for line in rights], [line.words for line in wrongs]),
        windows=([line.window for line in rights], [line.window for line in wrongs]),
        features=([line.features for line in rights], [line.features for line in wrongs]),
        frame=["too early" if by < 0 else "too late" for by in distance.tolist()],
        cloze=[None] * len(rights),
        flags=flags,
    )
