"""Swaps of words, and candidates of swaps: pairs of texts with their features.

A text is changed at the character offsets of its tokens, so that spaces, punctuation and quotation
marks are preserved; a replacement takes the case of the word that it replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from builders.engine.plan import Flags
from builders.function_words.acceptability import masked
from builders.function_words.balance import Feature
from builders.function_words.pairs import SwapCandidates
from builders.function_words.tokens import TaggedTexts
from kbprobe.arrays import Ints

PLACES = " | "
"""Separator between the words of several places of a text."""


def with_case_of(word: str, model: str) -> str:
    """Give a word the case of the word that it replaces.

    A single capital ("A", "I") does not mean capitals throughout.

    >>> with_case_of("where", "Who"), with_case_of("where", "WHO"), with_case_of("the", "A")
    ('Where', 'WHERE', 'The')
    """
    if len(model) > 1 and model.isupper():
        return word.upper()
    if model[:1].isupper():
        return word[:1].upper() + word[1:]
    return word


def changed_texts(
    tagged: TaggedTexts, originals: Sequence[str], swaps: Sequence[Swap]
) -> list[str]:
    """Return texts changed by swaps, one for each."""
    start, end = tagged.texts.start, tagged.texts.end
    changed = []
    for original, swap in zip(originals, swaps, strict=True):
        parts, done = [], 0
        for token, word in zip(swap.tokens, swap.words, strict=True):
            first, last = int(start[token]), int(end[token])
            parts += [original[done:first], with_case_of(word, original[first:last])]
            done = last
        changed.append("".join([*parts, original[done:]]))
    return changed


class ShownWords(NamedTuple):
    """The words at changed places, one line for each text; several places are joined by PLACES.

    Attributes:
        words: the words there.
        windows: the words with their neighbours as in the text ("people who live").
    """

    words: list[str]
    windows: list[str]


def shown_places(
    tagged: TaggedTexts,
    tokens: Sequence[Sequence[int]],
    words: Sequence[Sequence[str]] | None = None,
) -> ShownWords:
    """Return the words at some tokens of a text, and their neighbours.

    Args:
        tagged: the texts.
        tokens: for each line its tokens, all of one text.
        words: the replacements, in lower case; None: the words are unchanged.

    >>> from kb_cache.corpora.rows import RawDocument, corpus_of, words_in
    >>> text = words_in("Tell me who cares.", ["Tell", "me", "who", "cares", "."], xpos=["VB"] * 5)
    >>> tagged = TaggedTexts.of(corpus_of([RawDocument("d", [[text]])]).sentences, "d")
    >>> shown_places(tagged, [[2]], [["what"]])
    ShownWords(words=['what'], windows=['me what cares'])
    """
    start, end, bounds = tagged.texts.start, tagged.texts.end, tagged.texts.token_start
    row = tagged.text[np.array([line[0] for line in tokens], dtype=np.int64)]
    texts = tagged.texts.text.take(row).to_pylist()
    found = ShownWords([], [])
    for at, (line, text, number) in enumerate(zip(tokens, texts, row.tolist(), strict=True)):
        there: dict[int, str] = {}
        for place, token in enumerate(line):
            first, last = int(start[token]), int(end[token])
            word = text[first:last]
            if words is not None:
                word = with_case_of(words[at][place], word)
            there[token] = word
        around = []
        for token in line:
            # A neighbour may be replaced as well.
            near = range(
                max(token - 1, int(bounds[number])), min(token + 2, int(bounds[number + 1]))
            )
            shown = "".join(
                text[int(end[one - 1]) if one > near[0] else int(start[one]) : int(start[one])]
                + there.get(one, text[int(start[one]) : int(end[one])])
                for one in near
            )
            around.append(shown)
        found.words.append(PLACES.join(there.values()))
        found.windows.append(PLACES.join(around))
    return found


NO_FRAME = "no_frame"
"""Flag of changes after which the sentence may still be acceptable."""

FLAGS = {
    NO_FRAME: "Nothing in the sentence rules out what the word was changed to: the changed "
    "sentence may be acceptable.",
}
"""Flag -> what it means for a question."""


class Swap(NamedTuple):
    """One way to change a text.

    Attributes:
        tokens, words: the replaced tokens, in the text's order, and their replacements in lower
            case.
        frame: how the words are used (the frame).
        decisive: the token that alone makes the change wrong; -1 for none.
        flags: the doubts about the change.
    """

    tokens: tuple[int, ...]
    words: tuple[str, ...]
    frame: str
    decisive: int = 0
    flags: tuple[str, ...] = ()


def swap_candidates(tagged: TaggedTexts, swaps: Sequence[Swap]) -> SwapCandidates:
    """Make the candidates of swaps."""
    tokens = [swap.tokens for swap in swaps]
    words = [swap.words for swap in swaps]
    first = np.array([line[0] for line in tokens], dtype=np.int64)
    sentence = tagged.text[first] if first.size else np.empty(0, np.int64)
    original = tagged.texts.text.take(sentence).to_pylist() if first.size else []
    before = [tuple(tagged.words[tagged.code[token]] for token in line) for line in tokens]
    shown, shown_changed = shown_places(tagged, tokens), shown_places(tagged, tokens, words)
    return SwapCandidates(
        sentence=sentence,
        original=original,
        changed=changed_texts(tagged, original, swaps),
        words=(shown.words, shown_changed.words),
        windows=(shown.windows, shown_changed.windows),
        features=(_features(tagged, tokens, before), _features(tagged, tokens, words)),
        frame=[swap.frame for swap in swaps],
        cloze=[_cloze(tagged, swap, text) for swap, text in zip(swaps, original, strict=True)],
        flags=Flags.of_lines(FLAGS, [swap.flags for swap in swaps]),
    )


def _features(
    tagged: TaggedTexts, tokens: Sequence[Sequence[int]], words: Sequence[Sequence[str]]
) -> list[list[Feature]]:
    """Return the features of each line: its words with their case, and with their neighbours."""
    flat: Ints = np.array([token for line in tokens for token in line], dtype=np.int64)
    if not flat.size:
        return [[] for _ in tokens]
    begins = iter(tagged.first[flat].tolist())
    around = iter(zip(tagged.words_at(flat, -1), tagged.words_at(flat, 1), strict=True))
    found = []
    for line in words:
        features: list[Feature] = []
        for word in line:
            before, behind = next(around)
            features += [
                ("word", word.capitalize() if next(begins) else word),
                ("before", f"{before} {word}"),
                ("behind", f"{word} {behind}"),
            ]
        if len(line) > 1:
            features.append(("words", " ".join(line)))
        found.append(features)
    return found


def _cloze(tagged: TaggedTexts, swap: Swap, original: str) -> tuple[str, str, str] | None:
    if swap.decisive < 0:
        return None
    token = swap.tokens[swap.decisive]
    start, end = int(tagged.texts.start[token]), int(tagged.texts.end[token])
    word = original[start:end]
    return (
        masked(original, start, end),
        word,
        with_case_of(swap.words[swap.decisive], word),
    )
