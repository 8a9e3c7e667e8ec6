"""Swaps: words of a text replaced by others, everything else left as it stands.

A text is changed at the character offsets of its tokens, so that spaces, punctuation and quotation
marks survive as they are; a replacement takes over the case of what it replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from builders.function_words.tokens import TaggedTexts
from kbprobe.arrays import Ints


class Swaps(NamedTuple):
    """Words to replace: parallel lists, a line for each changed text.

    Attributes:
        text: (lines,) the text.
        tokens: for each line the tokens to replace, in the text's order.
        words: for each line what to put there instead, in lower case.
    """

    text: Ints
    tokens: Sequence[Sequence[int]]
    words: Sequence[Sequence[str]]


def with_case_of(word: str, model: str, begins: bool) -> str:
    """Give a word the case of what it replaces.

    ``begins`` tells whether it begins its text: there a lone capital ("A", "I") says nothing of
    the rest.

    >>> with_case_of("where", "Who", True), with_case_of("where", "WHO", False)
    ('Where', 'WHERE')
    >>> with_case_of("the", "A", True), with_case_of("the", "A", False)
    ('The', 'The')
    """
    if len(model) > 1 and model.isupper():
        return word.upper()
    if model[:1].isupper():
        return word[:1].upper() + word[1:]
    return word


def changed_texts(tagged: TaggedTexts, swaps: Swaps) -> list[str]:
    """Return the changed texts, one for each line."""
    texts = tagged.texts
    start, end = texts.start, texts.end
    changed = []
    originals = texts.text.take(swaps.text).to_pylist() if len(swaps.text) else []
    for original, tokens, words in zip(originals, swaps.tokens, swaps.words, strict=True):
        parts, done = [], 0
        for token, word in zip(tokens, words, strict=True):
            first, last = int(start[token]), int(end[token])
            parts += [original[done:first], with_case_of(word, original[first:last], first == 0)]
            done = last
        changed.append("".join([*parts, original[done:]]))
    return changed


def shown_words(tagged: TaggedTexts, tokens: Sequence[Sequence[int]]) -> list[str]:
    """Return for each line the words at its tokens, joined by spaces, in lower case.

    >>> from builders.function_words.tokens import TaggedTexts
    >>> from kb_cache.corpora.rows import RawDocument, corpus_of, words_in
    >>> text = words_in("Who cares?", ["Who", "cares", "?"], xpos=["WP", "VBZ", "."])
    >>> tagged = TaggedTexts.of(corpus_of([RawDocument("d", [[text]])]).sentences, "d")
    >>> shown_words(tagged, [[0], [0, 1]])
    ['who', 'who cares']
    """
    return [" ".join(tagged.words[tagged.code[token]] for token in line) for line in tokens]


def windows(
    tagged: TaggedTexts, tokens: Sequence[Sequence[int]], words: Sequence[Sequence[str]]
) -> list[str]:
    """Return for each line what stands around its tokens: one word before and one behind each.

    Args:
        tagged: the texts.
        tokens: for each line its tokens.
        words: for each line what stands there.

    Returns:
        Lower-case texts such as "people who live", several separated by " | ".
    """
    flat = np.array([token for line in tokens for token in line], dtype=np.int64)
    around = zip(tagged.words_at(flat, -1), tagged.words_at(flat, 1), strict=True)
    return [
        " | ".join(
            " ".join(filter(None, (before, word, behind)))
            for word, (before, behind) in zip(line, around, strict=False)
        )
        for line in words
    ]
