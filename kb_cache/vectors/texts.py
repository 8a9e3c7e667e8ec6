"""Texts as sequences of word vectors, and how similar they are.

Words without a vector are similar only to themselves (:class:`kb_cache.vectors.texts.WordTexts`). A
text without words is similar to nothing. Where the vectors hold an expression of several words
(ice_cream), it is read as one word.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kb_cache.frequency import FUNCTION_WORDS
from kb_cache.vectors.types import Float32s, WordVectors
from kbprobe.arrays import Floats, Ints, run_starts
from kbprobe.format.setups import MASK

logger = logging.getLogger(__name__)

_CLITIC = r"'(?:s|m|d|re|ve|ll)\b"
_TOKEN = re.compile(
    rf"""
    (?-i:{re.escape(MASK)})
    | \d+ (?: [.,:]\d+ )+ (?: -\w+ )*              # 3.14  10:30  1,000-dollar
    | (?: [^\W\d_]\. ){{2,}}                       # u.s.
    | [^\W\d_]+? (?=n't\b)                         # does|n't
    | n't\b
    | {_CLITIC}                                    # dog|'s
    | \w+ (?: - \w+ | (?!{_CLITIC}) ' \w+ )*       # well-known  o'clock
    | \.{{2,}}
    | -{{2,}}
    | \S                                           # a punctuation mark
    """,
    re.VERBOSE | re.IGNORECASE,
)


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case tokens, punctuation apart.

    This follows the Stanford tokenizer that GloVe's training text was split with, but for what
    needs its tables (abbreviations such as "inc.", the two kinds of quotation marks). Clitics are
    separate tokens; numbers, initials and words with hyphens stay whole; ``[MASK]`` is unchanged.

    >>> tokenize("The dog's owner doesn't like [MASK], a 1,000-dollar U.S. pet.")
    ['the', 'dog', "'s", 'owner', 'does', "n't", 'like', '[MASK]', ',', 'a', '1,000-dollar', 'u.s.', 'pet', '.']
    """  # noqa: E501  # a list in a doctest is one line
    plain = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    found = _TOKEN.findall(plain)
    return [token if token == MASK else token.lower() for token in found]


_FREQUENT = 1000


def all_words(text: str) -> list[str]:
    """Return the words of a text: all tokens but ``[MASK]``."""
    return [word for word in tokenize(text) if word != MASK]


@dataclass(frozen=True)
class WordTexts:
    """Distinct texts, each a sequence of words with a vector each.

    A word without a vector gets one that is drawn by a hash of the word, so that it is the same
    in question and choice, in train and test. ``[MASK]`` is no word, and a text without words is
    one zero vector.

    Attributes:
        number: the number of each text.
        words: the words of all texts one after another, by their row in ``vectors``.
        starts: where each text starts in them, shape [texts + 1].
        vectors: of each distinct word, shape [words, dimensions].
        notes: how many distinct words have no vector, and how many have one if most have none
            (`evaluation.results.types.NOTES`).
    """

    number: Mapping[str, int]
    words: Ints
    starts: Ints
    vectors: Float32s
    notes: Mapping[str, int]

    @classmethod
    def of(
        cls,
        texts: Iterable[str],
        vectors: WordVectors,
        selected: Callable[[list[str]], list[str]] = list,
    ) -> WordTexts:
        """Split each distinct text into words, and look up those selected."""
        number = {text: at for at, text in enumerate(dict.fromkeys(texts))}
        split = _joined([all_words(text) for text in number], vectors)
        tokens = [selected(words) or [""] for words in split]
        distinct = dict.fromkeys(word for words in tokens for word in words)
        row = {word: at for at, word in enumerate(distinct)}
        found, unknown = _looked_up(list(row), vectors)
        return cls(
            number=number,
            words=np.array([row[word] for words in tokens for word in words], dtype=np.int64),
            starts=run_starts(map(len, tokens)),
            vectors=found,
            notes=_notes(len(row) - ("" in row), unknown, vectors.name),
        )

    @property
    def lengths(self) -> Ints:
        """Words of each text, shape [texts]."""
        return np.diff(self.starts)

    def numbers(self, texts: Iterable[str]) -> Ints:
        """Return the numbers of some of the texts."""
        return np.fromiter((self.number[text] for text in texts), dtype=np.int64)


FEWEST_WORDS = 20
"""Distinct words of which most can be unknown by chance."""


def _notes(words: int, unknown: int, name: str) -> dict[str, int]:
    """Return the notes on texts of so many distinct words; warn if most are unknown."""
    if not unknown:
        return {}
    if words < FEWEST_WORDS or 2 * unknown <= words:
        return {"unknown_words": unknown}
    _warn(name, f"{1 - unknown / words:.0%}")
    return {"known_words": words - unknown, "unknown_words": unknown}


@lru_cache(maxsize=64)  # the same texts are read by several scorers and learners
def _warn(name: str, share: str) -> None:
    logger.warning(
        "%s knows only %s of the different words of these rows: it may be of another language. "
        "Name other word vectors with --vectors (kb-cache list), or add some: kb-cache fetch "
        "vectors --from FILE",
        name,
        share,
    )


def _joined(texts: list[list[str]], vectors: WordVectors) -> list[list[str]]:
    """Join words that are an expression with a vector: from the left, the longest first."""
    longest = vectors.longest_expression
    if longest < 2:
        return texts
    runs = {
        tuple(words[at : at + count])
        for words in texts
        for count in range(2, longest + 1)
        for at in range(len(words) - count + 1)
        if all(word[0].isalpha() for word in words[at : at + count])
    }
    forms = {mark.join(run): run for mark in " _" for run in runs}
    rows = vectors.rows(list(forms))
    known = {run: form for (form, run), at in zip(forms.items(), rows, strict=True) if at >= 0}
    return [list(_expressions(words, known, longest)) for words in texts]


def _expressions(
    words: list[str], known: Mapping[tuple[str, ...], str], longest: int
) -> Iterator[str]:
    at = 0
    while at < len(words):
        for count in range(min(longest, len(words) - at), 1, -1):
            if (run := tuple(words[at : at + count])) in known:
                yield known[run]
                break
        else:
            count = 1
            yield words[at]
        at += count


def _looked_up(words: Sequence[str], vectors: WordVectors) -> tuple[Float32s, int]:
    """Return the vector of each word, and the number of words without one."""
    rows = vectors.rows(words)
    found = vectors.matrix[rows]
    nothing = np.array([word == "" for word in words], dtype=np.bool_)
    found[nothing] = 0
    unknown = np.flatnonzero((rows < 0) & ~nothing)
    # The most frequent words come first in files of word vectors.
    spread = float(vectors.matrix[:_FREQUENT].std())
    for at in unknown.tolist():
        seed = int.from_bytes(hashlib.blake2b(words[at].encode(), digest_size=8).digest())
        drawn = np.random.default_rng(seed).standard_normal(vectors.dimensions)
        found[at] = drawn * spread
    return found, len(unknown)


_FUNCTION_WORDS = frozenset(FUNCTION_WORDS.split())


class Similarities(NamedTuple):
    """Similarities of pairs of texts.

    Attributes:
        scores: of each pair, between -1 and 1, shape [pairs].
        notes: those on the texts, as in `WordTexts`.
    """

    scores: Floats
    notes: Mapping[str, int]


def content_words(words: list[str]) -> list[str]:
    """Return words without English function words; all words if none are left.

    Tokens of one or two characters, clitics and punctuation are left out as well.

    >>> content_words(["the", "dog", "'s", "bark", "?"]), content_words(["of", "them"])
    (['dog', 'bark'], ['of', 'them'])
    """
    content = [
        word
        for word in words
        if len(word) > 2 and word not in _FUNCTION_WORDS and word[0].isalnum() and "'" not in word
    ]
    return content or words


def cosines_of_means(
    texts: Sequence[str], others: Sequence[str], vectors: WordVectors
) -> Similarities:
    """Return the cosine of the mean vectors of the content words of texts, pair by pair.

    Args:
        texts: the first of each pair, shape [pairs]; those that recur are read once.
        others: the second of each pair, shape [pairs].
        vectors: the word vectors.
    """
    read = WordTexts.of([*texts, *others], vectors, content_words)
    means = _units(_means(read, read.vectors.astype(np.float64)))
    return _products(read, means, texts, others)


def means_of_cosines(
    texts: Sequence[str], others: Sequence[str], vectors: WordVectors
) -> Similarities:
    """Return the mean cosine over all pairs of a word of one text and a word of the other.

    This is VecSimilarity as Richardson and Sabharwal (2020) define it: every word counts, function
    words as well. Arguments are those of :func:`cosines_of_means`.
    """
    read = WordTexts.of([*texts, *others], vectors)
    # The mean of all products of two sets of vectors is the product of their means.
    means = _means(read, _units(read.vectors.astype(np.float64)))
    return _products(read, means, texts, others)


def _units(vectors: Floats) -> Floats:
    """Scale vectors to a length of 1; those of length 0 stay as they are."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Floats = np.divide(vectors, lengths, where=lengths > 0, out=np.zeros_like(vectors))
    return units


def _means(read: WordTexts, vectors: Floats) -> Floats:
    """Return the mean vector of the words of each text, shape [texts, dimensions]."""
    means: Floats = np.add.reduceat(vectors[read.words], read.starts[:-1]) / read.lengths[:, None]
    return means


def _products(
    read: WordTexts, means: Floats, texts: Sequence[str], others: Sequence[str]
) -> Similarities:
    first, second = means[read.numbers(texts)], means[read.numbers(others)]
    return Similarities(np.einsum("pd,pd->p", first, second), read.notes)
