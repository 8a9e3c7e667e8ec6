"""Make candidates of swaps: pairs of texts with their features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from builders.engine.flags import Flags
from builders.function_words.acceptability import masked
from builders.function_words.balance import Feature
from builders.function_words.pairs import Candidates
from builders.function_words.swaps import Swaps, changed_texts, shown_places, with_case_of
from builders.function_words.tokens import TaggedTexts
from kbprobe.arrays import Ints

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


def swap_candidates(tagged: TaggedTexts, swaps: Sequence[Swap]) -> Candidates:
    """Make the candidates of swaps."""
    tokens = [swap.tokens for swap in swaps]
    words = [swap.words for swap in swaps]
    first = np.array([line[0] for line in tokens], dtype=np.int64)
    sentence = tagged.text[first] if first.size else np.empty(0, np.int64)
    original = tagged.texts.text.take(sentence).to_pylist() if first.size else []
    before = [tuple(tagged.words[tagged.code[token]] for token in line) for line in tokens]
    flags = Flags.none(len(swaps))
    for name in dict.fromkeys(name for swap in swaps for name in swap.flags):
        flags = flags.mark(name, np.array([name in swap.flags for swap in swaps], dtype=np.bool_))
    shown, shown_changed = shown_places(tagged, tokens), shown_places(tagged, tokens, words)
    return Candidates(
        sentence=sentence,
        original=original,
        changed=changed_texts(tagged, Swaps(sentence, tokens, words)),
        words=(shown.words, shown_changed.words),
        windows=(shown.windows, shown_changed.windows),
        features=(_features(tagged, tokens, before), _features(tagged, tokens, words)),
        frame=[swap.frame for swap in swaps],
        cloze=[_cloze(tagged, swap, text) for swap, text in zip(swaps, original, strict=True)],
        flags=flags,
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
        with_case_of(swap.words[swap.decisive], word, start == 0),
    )
