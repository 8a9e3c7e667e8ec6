"""Decide which word of a pair comes first, so that neither position gives the answer away.

The pairs are matched (`matching`), but each can be asked in two orders. If the longer word came
first more often in antonyms than in synonyms, the length of the first word would predict the
answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kb_cache.frequency import zipf_frequencies
from kbprobe.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    from builders.antonyms.pairs import Pair

LENGTHS = np.arange(4, 13)
FREQUENCIES = np.arange(2.5, 6.5, 0.5)
"""Thresholds of length (letters) and frequency (Zipf): in each position, equally many words of
antonyms and synonyms should be on either side."""

NEGATIVE_PREFIXES = ("anti", "dis", "il", "im", "in", "ir", "mis", "non", "un")
ENDINGS = ("al", "ed", "ess", "ing", "ize", "ous", "y")
"""Prefixes and endings to balance between antonyms and synonyms, in each position."""


def choose_order(
    pairs: Sequence[Pair], split: Sequence[int], lot: npt.NDArray[np.uint64]
) -> list[bool]:
    """Decide which pairs are asked in reverse order.

    In synonyms, the narrower of two similar adjectives comes second, as evidence for the first:
    *colossal* implies *large*, but not the reverse. In antonyms it comes second half of the time.
    In the other pairs of each split and part of speech, the more frequent word comes first in half
    of the antonyms and half of the synonyms. Pairs are exchanged greedily between the halves to
    balance lengths, frequencies and affixes of the first words, and of the second, between antonyms
    and synonyms.

    Args:
        pairs: the pairs, in any order.
        split: each pair's split.
        lot: (pairs,) random numbers that decide on the initial order.

    Returns:
        Whether each pair is reversed.
    """
    groups: dict[tuple[int, str], list[int]] = defaultdict(list)
    for at in np.argsort(lot, kind="stable").tolist():
        groups[split[at], pairs[at].pos].append(at)
    swap = [False] * len(pairs)
    for rows in groups.values():
        turned = _turned([pairs[at] for at in rows])
        for at, turn in zip(rows, turned.tolist(), strict=True):
            swap[at] = turn
    return swap


def _turned(pairs: Sequence[Pair]) -> Bools:
    """Decide on the pairs of one split and part of speech, given in random order."""
    words = [word for pair in pairs for word in pair.words]
    zipf = zipf_frequencies(words).reshape(-1, 2)
    length = np.array([len(word) for word in words]).reshape(-1, 2)
    affixes = np.array(
        [
            [word.startswith(NEGATIVE_PREFIXES), *(word.endswith(ending) for ending in ENDINGS)]
            for word in words
        ]
    ).reshape(len(pairs), 2, -1)
    sign = np.array([1 if pair.antonym else -1 for pair in pairs])
    narrow = np.array([bool(pair.narrower) for pair in pairs])
    turn = np.array([pair.narrower == pair.words[0] for pair in pairs])
    rarer_first = zipf[:, 0] < zipf[:, 1]
    for answer in (1, -1):
        free = np.flatnonzero(~narrow & (sign == answer))
        turn[free] = rarer_first[free] ^ (np.arange(free.size) % 2 == 1)
    # Whether words are above each threshold, for each position: (pairs, thresholds) of 0 and 1.
    above = [
        np.concatenate(
            [
                length[:, place, None] >= LENGTHS,
                zipf[:, place, None] >= FREQUENCIES,
                affixes[:, place],
            ],
            axis=1,
        ).astype(np.float64)
        for place in (0, 1)
    ]
    straight = np.concatenate(above, axis=1) * sign[:, None]
    reverse = np.concatenate(above[::-1], axis=1) * sign[:, None]
    # Exclusion of the other word does not depend on the position.
    _exchange(turn, straight, reverse, rarer_first, sign, fixed=narrow & (sign < 0))
    return turn


def _exchange(
    turn: Bools, straight: Floats, reverse: Floats, rarer_first: Bools, sign: Ints, fixed: Bools
) -> None:
    """Reverse two pairs at a time, the best two first, as long as that brings the sums closer to 0.

    One of the two has its more frequent word first, the other second, and both have the same
    answer, so that halves stay halves.
    """
    total = np.where(turn[:, None], reverse, straight).sum(axis=0)
    while True:
        change = np.where(turn[:, None], straight - reverse, reverse - straight)
        frequent_first = rarer_first == turn
        best, chosen = -0.5, None
        for answer in (1, -1):
            free = ~fixed & (sign == answer)
            one, other = (
                np.flatnonzero(free & frequent_first),
                np.flatnonzero(free & ~frequent_first),
            )
            if not (one.size and other.size):
                continue
            alone = 2 * change @ total + (change**2).sum(axis=1)
            gain = alone[one][:, None] + alone[other] + 2 * change[one] @ change[other].T
            at = np.unravel_index(int(gain.argmin()), gain.shape)
            if gain[at] < best:
                best, chosen = float(gain[at]), [int(one[at[0]]), int(other[at[1]])]
        if chosen is None:
            return
        total += change[chosen].sum(axis=0)
        turn[chosen] = ~turn[chosen]
