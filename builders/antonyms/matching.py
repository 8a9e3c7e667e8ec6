"""Match antonym and synonym pairs, and order their words, so that neither reveals the answer.

Antonyms are rare, so all are kept, and synonyms are chosen to match them: equally many in each
split and carrier sentence, with words of similar frequency and length and with similar beginnings
and endings; above all with *the same words*, so that *slow* is as often right with "not" (*fast*)
as with "really" (*sluggish*).

The pairs are matched (`matching`), but each can be asked in two orders. If the longer word came
first more often in antonyms than in synonyms, the length of the first word would predict the
answer.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from builders.antonyms.options import AntonymOptions
from builders.antonyms.pairs import WordPair, common_stretch
from builders.engine.draw.balanced import Cell, Matching, select_matching
from builders.engine.drops import DropLog
from builders.engine.plan import left_out
from kb_cache.frequency import zipf_frequencies
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.format.setups import SPLITS
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from scipy.sparse import csr_array


TRAIN = SPLITS.index("train")

PAIRS_PER_WORD = 8
"""Maximum number of antonym pairs, and of synonym pairs, for one word."""

LENGTHS = np.arange(4, 13)
FREQUENCIES = np.arange(2.5, 6.5, 0.5)
"""Thresholds of length (letters) and frequency (Zipf): in each position, equally many words of
antonyms and synonyms should be on either side."""

NEGATIVE_PREFIXES = ("anti", "dis", "il", "im", "in", "ir", "mis", "non", "un")
ENDINGS = ("al", "ed", "ess", "ing", "ize", "ous", "y")
"""Prefixes and endings to balance between antonyms and synonyms, in each position."""


def choose_order(
    pairs: Sequence[WordPair], split: Sequence[int], lot: npt.NDArray[np.uint64]
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
        turns = _turns([pairs[at] for at in rows])
        for at, turn in zip(rows, turns.tolist(), strict=True):
            swap[at] = turn
    return swap


def _turns(pairs: Sequence[WordPair]) -> Bools:
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
            halves = (free & frequent_first, free & ~frequent_first)
            one, other = (np.flatnonzero(half) for half in halves)
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


def turned(pair: WordPair) -> WordPair:
    """Return a pair with its words in the other order."""
    return pair._replace(
        words=(pair.words[1], pair.words[0]),
        path=pair.path[::-1],
        relations=pair.relations[::-1],
    )


def with_other_order(
    pairs: Sequence[WordPair], split: Ints, rng: RandomGenerator
) -> tuple[list[WordPair], Ints]:
    """Add pairs with their words in the other order, and return all with their splits.

    Synonyms whose second word is narrower have only one order, so as many antonyms of their split
    and carrier sentence, drawn at random, keep to one as well: answers stay balanced.

    Args:
        pairs: the pairs, with their words in the order in which they are asked about.
        split: the split of each.
        rng: the random generator that draws antonyms.
    """
    cells: dict[tuple[object, ...], tuple[list[int], list[int]]] = {}
    for at in np.argsort(rng.bits(np.arange(len(pairs))), kind="stable").tolist():
        pair = pairs[at]
        if pair.antonym or not pair.narrower:
            cell = cells.setdefault((int(split[at]), *pair.carrier), ([], []))
            cell[pair.antonym].append(at)
    added = sorted(
        chain.from_iterable(side[: min(map(len, both))] for both in cells.values() for side in both)
    )
    return [*pairs, *(turned(pairs[at]) for at in added)], np.concatenate([split, split[added]])


LARGEST_BLOCK = 80
"""Maximum number of antonym pairs connected by shared words. Larger groups are cut, since otherwise
a third of all pairs would have to go to the same split."""

NGRAMS = 4
"""Maximum length of the n-grams (in letters) that are balanced between antonyms and synonyms."""

PRUNED = 0.15
"""Maximum share of pairs that are dropped to balance n-grams."""

Feature = tuple[str, Hashable]
"""A kind of feature ("length") and its value (six letters)."""

WEIGHTS: Mapping[str, int] = {
    "word": 100,
    "opposed": 600,
    "senses": 60,
    "synonyms": 60,
    "frequency": 40,
    "frequencies": 20,
    "negative": 40,
    "length": 15,
    "beginning": 10,
    "ending": 20,
}
OTHER_WEIGHT = 10
"""Weights of features in the matching of antonyms and synonyms. It matters most that words of
synonyms are asked about with antonyms as well, then the words themselves and their frequency.
Single beginnings and endings count least, since there are so many of them."""


def match(
    pairs: Sequence[WordPair], options: AntonymOptions, rng: RandomGenerator, dropped: DropLog
) -> tuple[list[WordPair], list[int]]:
    """Split the antonym pairs and choose matching synonym pairs for each split.

    Args:
        pairs: all candidates; in the clean tier, those with flags come into train alone.
        options: the shares of the splits, and the tier.
        rng: the random generator that breaks ties.
        dropped: counts of dropped pairs; those dropped here are added.

    Returns:
        Antonyms and synonyms, equally many for each carrier sentence and split; and their splits.
    """
    found = [pair for pair in pairs if pair.antonym]
    agreed = [pair for pair in pairs if not pair.antonym]
    agreeing = frozenset(word for pair in agreed for word in pair.words)
    denied = frozenset(word for pair in found for word in pair.words)
    both = [pair for pair in found if _is_open(pair, agreeing)]
    synonyms = [pair for pair in agreed if _is_open(pair, denied)]
    antonyms = _capped(both, agreeing, PAIRS_PER_WORD, rng)
    blocks, cut = _blocks(antonyms)
    split = _assign(blocks, options.split_shares, rng)
    placed = [(pair, part) for block, part in zip(blocks, split, strict=True) for pair in block]
    if clean := options.tier == "clean":
        flagged = [pair for pair, part in placed if part != TRAIN and pair.doubts]
        placed = [(pair, part) for pair, part in placed if part == TRAIN or not pair.doubts]
        tested = {word for pair, part in placed if part != TRAIN for word in pair.words}
        flagged += [one for one in synonyms if one.doubts and not tested.isdisjoint(one.words)]
        synonyms = [one for one in synonyms if not one.doubts or tested.isdisjoint(one.words)]
        dropped.update(left_out(name) for pair in flagged for name in pair.doubts)
    kept, where = [pair for pair, _ in placed], [part for _, part in placed]
    at, part = select_matching(*_matching(kept, where, synonyms, clean, rng), PAIRS_PER_WORD)
    chosen = [synonyms[index] for index in at]
    matched, where = _level(kept, where, chosen, part)
    dropped.update(
        {
            "antonyms: no synonyms of either word": len(found) - len(both),
            "antonyms: beyond the pairs of a word": len(both) - len(antonyms),
            "antonyms: cut to keep words in one split": len(cut),
            "antonyms: no synonyms left to match them": len(kept) - len(matched),
            "synonyms: more than there are antonyms": len(synonyms) - len(chosen),
        }
    )
    return [*matched, *chosen], [*where, *part]


def _is_open(pair: WordPair, others: frozenset[str]) -> bool:
    """Return whether a word of a pair is also in ``others``, the words with the other answer.

    A word with only one answer gives that answer away. Adjectives are exempt.
    """
    return pair.pos == "adjective" or not others.isdisjoint(pair.words)


def _capped(
    pairs: Sequence[WordPair], agreeing: frozenset[str], per_word: int, rng: RandomGenerator
) -> list[WordPair]:
    """Keep at most ``per_word`` pairs per word: first with synonyms, then direct antonyms."""
    tie = rng.child("cap").bits(np.arange(len(pairs)))
    order = sorted(
        range(len(pairs)),
        key=lambda i: (
            -len(agreeing.intersection(pairs[i].words)),
            len(pairs[i].relations),
            -round(pairs[i].fit, 1),
            int(tie[i]),
        ),
    )
    count: Counter[str] = Counter()
    kept = []
    for at in order:
        if all(count[word] < per_word for word in pairs[at].words):
            count.update(pairs[at].words)
            kept.append(pairs[at])
    return kept


def _blocks(pairs: Sequence[WordPair]) -> tuple[list[list[WordPair]], list[WordPair]]:
    """Group pairs that share words, cutting groups of more than LARGEST_BLOCK.

    A group is traversed breadth-first from its rarest word (on its periphery), so that the pieces
    stay connected and few pairs are lost.

    Returns:
        The groups, and the pairs cut.
    """
    of_word: dict[str, list[WordPair]] = defaultdict(list)
    for pair in pairs:
        for word in pair.words:
            of_word[word].append(pair)
    block: dict[str, int] = {}
    size: Counter[int] = Counter()
    number = -1
    for start in sorted(of_word, key=lambda word: (len(of_word[word]), word)):
        if start in block:
            continue
        number += 1
        queue = deque([start])
        while queue:
            word = queue.popleft()
            if word in block:
                continue
            new = [p for p in of_word[word] if block.get(_other(p, word)) == number]
            if size[number] + len(new) > LARGEST_BLOCK:
                break
            block[word] = number
            size[number] += len(new)
            queue.extend(_other(p, word) for p in of_word[word] if _other(p, word) not in block)
    found: dict[int, list[WordPair]] = defaultdict(list)
    cut: list[WordPair] = []
    for pair in pairs:
        one, other = (block[word] for word in pair.words)
        (found[one] if one == other else cut).append(pair)
    return list(found.values()), cut


def _other(pair: WordPair, word: str) -> str:
    return pair.words[pair.words[0] == word]


def _assign(
    blocks: Sequence[Sequence[WordPair]], shares: tuple[float, float, float], rng: RandomGenerator
) -> list[int]:
    """Return each block's split: large blocks first, each to the split that needs it most."""
    total = Counter(pair.carrier for block in blocks for pair in block)
    room = [{shown: share * count for shown, count in total.items()} for share in shares]
    tie = rng.child("blocks").bits(np.arange(len(blocks)))
    split = [0] * len(blocks)
    for at in sorted(range(len(blocks)), key=lambda i: (-len(blocks[i]), int(tie[i]))):
        held = Counter(pair.carrier for pair in blocks[at])

        def lacking(part: int, held: Mapping[tuple[str, ...], int] = held) -> float:
            return sum(n * room[part][c] / (shares[part] * total[c]) for c, n in held.items())

        split[at] = max((part for part in range(len(SPLITS)) if shares[part] > 0), key=lacking)
        for shown, count in held.items():
            room[split[at]][shown] -= count
    return split


def _matching(
    antonyms: Sequence[WordPair],
    split: Sequence[int],
    synonyms: Sequence[WordPair],
    clean: bool,
    rng: RandomGenerator,
) -> tuple[Matching, dict[Cell, int]]:
    """Return the synonyms to select from, and how many are needed in each split and cell.

    In the clean tier, the words of synonyms with flags come into train.
    """
    words = sorted({word for pair in chain(antonyms, synonyms) for word in pair.words})
    zipf = dict(zip(words, zipf_frequencies(words).tolist(), strict=True))
    of_word = {word: i for i, word in enumerate(words)}
    cells = {
        shown: i
        for i, shown in enumerate(sorted(set(pair.carrier for pair in chain(antonyms, synonyms))))
    }
    number: dict[Feature, int] = {}
    denied = frozenset(word for pair in antonyms for word in pair.words)

    def numbers(pairs: Sequence[WordPair]) -> list[list[int]]:
        return [
            [number.setdefault(feature, len(number)) for feature in _features(pair, zipf, denied)]
            for pair in pairs
        ]

    wanted, features = numbers(antonyms), numbers(synonyms)
    target = np.zeros((len(SPLITS), len(number)), dtype=np.int64)
    owner = np.full(len(words), -1, dtype=np.int64)
    for pair, part, found in zip(antonyms, split, wanted, strict=True):
        np.add.at(target[part], found, 1)
        owner[[of_word[word] for word in pair.words]] = part
    for pair in synonyms if clean else ():
        if pair.doubts:
            owner[[of_word[word] for word in pair.words]] = TRAIN
    keys = [[of_word[word] for word in pair.words] for pair in synonyms]
    width = len(features[0]) if features else 0
    rows = Matching(
        cell=np.array([cells[pair.carrier] for pair in synonyms], dtype=np.int64),
        features=np.array(features, dtype=np.int64).reshape(len(synonyms), width),
        keys=np.array(keys, dtype=np.int64).reshape(-1, 2),
        target=target,
        weight=np.array([WEIGHTS.get(kind, OTHER_WEIGHT) for kind, _ in number], dtype=np.int64),
        owner=owner,
        tie=rng.child("synonyms").bits(np.arange(len(synonyms))) >> np.uint64(48),
    )
    return rows, Counter(zip(split, (cells[pair.carrier] for pair in antonyms), strict=True))


def _features(pair: WordPair, zipf: Mapping[str, float], denied: frozenset[str]) -> list[Feature]:
    """List the features of a pair that may give its label away.

    ``denied`` is the set of words of all antonyms.
    """
    one, other = pair.words
    features: list[Feature] = []
    for word, (senses, synonyms) in zip(pair.words, pair.known, strict=True):
        # A narrower word comes second, see `order`.
        place = pair.narrower and ("second" if word == pair.narrower else "first")
        features += [
            ("word", word),
            ("opposed", word in denied),
            ("senses", min(senses, 9).bit_length()),
            ("synonyms", min(synonyms, 4)),
            ("frequency", int(2 * zipf[word])),
            ("length", min(len(word), 11)),
            ("negative", (place, word.startswith(NEGATIVE_PREFIXES))),
            ("beginning", word[:2]),
            ("ending", (place, word[-2:])),
            ("ending", word[-3:]),
        ]
    features += [
        ("opposed", len(denied.intersection(pair.words))),
        ("frequencies", tuple(sorted(int(2 * zipf[word]) for word in pair.words))),
        ("negatives", sum(word.startswith(NEGATIVE_PREFIXES) for word in pair.words)),
        ("difference in frequency", int(2 * abs(zipf[one] - zipf[other]))),
        ("difference in length", abs(len(one) - len(other))),
        ("common stretch", min(common_stretch(one, other), 4)),
        ("common beginning", (one[0] == other[0], one[:2] == other[:2])),
        ("common ending", (one[-1] == other[-1], one[-2:] == other[-2:])),
    ]
    # Parts of speech are separate: a feature rare overall may be common in one of them.
    return [(kind, value if kind == "word" else (pair.pos, value)) for kind, value in features]


def _level(
    antonyms: Sequence[WordPair],
    split: Sequence[int],
    synonyms: Iterable[WordPair],
    part: Sequence[int],
) -> tuple[list[WordPair], list[int]]:
    """Drop the antonyms with the worst fit in cells that have fewer synonyms."""
    room = Counter(zip(part, (pair.carrier for pair in synonyms), strict=True))
    kept: list[WordPair] = []
    where: list[int] = []
    for at in sorted(range(len(antonyms)), key=lambda i: (-antonyms[i].fit, antonyms[i].words)):
        key = split[at], antonyms[at].carrier
        if room[key] > 0:
            room[key] -= 1
            kept.append(antonyms[at])
            where.append(split[at])
    return kept, where


def prune(pairs: Sequence[WordPair], split: Sequence[int]) -> Bools:
    """Mark the pairs to keep, equally many antonyms and synonyms per split and carrier sentence.

    One pair of antonyms and one of synonyms are dropped at a time: the two whose removal best
    balances the n-grams, lengths and frequencies of antonyms and synonyms in each position. All
    splits are balanced together, since a model uses in one split what it has learned from another.

    Args:
        pairs: the pairs, with their words in the order in which they are asked about.
        split: the split of each.
    """
    cells: dict[tuple[object, ...], tuple[list[int], list[int]]] = {}
    for at, (pair, part) in enumerate(zip(pairs, split, strict=True)):
        cells.setdefault((part, *pair.carrier), ([], []))[pair.antonym].append(at)
    sides = [tuple(np.array(side) for side in cells[key]) for key in sorted(cells, key=str)]
    shown = _letters(pairs)
    sign = np.array([1 if pair.antonym else -1 for pair in pairs])
    weight = (1 << 20) // (np.asarray(shown.sum(axis=0)) + 1)
    alone = shown.multiply(shown) @ weight
    total = sign @ shown
    stay = np.ones(len(pairs), dtype=np.bool_)
    for _ in range(int(PRUNED / 2 * len(pairs))):
        # Change of the weighted sum of squares if each pair is dropped: negative is better.
        change = alone - 2 * sign * (shown @ (weight * total))
        change[~stay] = np.iinfo(np.int64).max // 4
        best = [[int(side[change[side].argmin()]) for side in both] for both in sides]
        worst = min(best, key=lambda both: int(change[both].sum()))
        if change[worst].sum() >= 0:
            break
        stay[worst] = False
        total = total - sign[worst] @ shown[worst]
    return stay


def _letters(pairs: Sequence[WordPair]) -> csr_array:
    """Return how often each pair has each n-gram, length and frequency, (pairs, n)."""
    from scipy.sparse import csr_array

    zipf = zipf_frequencies([word for pair in pairs for word in pair.words]).reshape(-1, 2)
    number: dict[Feature, int] = {}
    line, column = [], []
    for at, pair in enumerate(pairs):
        for place, word, frequency in zip("xy", pair.words, zipf[at].tolist(), strict=True):
            ends = f" {word} "
            looks: list[Hashable] = [("length", len(word)), ("frequency", int(2 * frequency))]
            looks += sorted(
                {
                    ends[start : start + size]
                    for size in range(1, NGRAMS + 1)
                    for start in range(len(ends) - size + 1)
                }
            )
            found = [(kind, look) for kind in ("", place, place + pair.pos) for look in looks]
            column += [number.setdefault(feature, len(number)) for feature in found]
            line += [at] * len(found)
    ones = np.ones(len(line), dtype=np.int64)
    return csr_array((ones, (line, column)), shape=(len(pairs), len(number)))
