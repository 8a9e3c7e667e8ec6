"""Crossing kinds: questions in which each distractor is true of one of the two words.

A *crossing* is a gold and two distractors: one word is the gold and the first distractor but not
the second, and vice versa for the other word. A model that looks at one word can exclude only one
choice.

WordNet has few such kinds, since most of its nouns have one parent. ``data/crossing_kinds.txt``
says which kinds of its tree a word belongs to and which are arguable; it belongs to none of the
others. Judgements of readers (``builders.judged``) take precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from builders.english.word_lists import word_groups
from builders.judged.model import judgements
from builders.taxonomy.options import TREES
from builders.taxonomy.words import Taxonomy
from kbprobe.arrays import Bools, Floats, Ints, lines_of
from kbprobe.rng import RandomGenerator

TRUE, ARGUABLE, FALSE = 1, 0, -1

ROWS = 60
"""Maximum number of questions of a crossing."""

COUPLES = 4
"""Maximum number of questions about the same two words."""

UNEVEN = 12
"""By how many questions of a tree a place in the order of similarity may be the gold's too
often."""

SHARED = 2
"""Maximum number of words that two distractors have in common, unless they can be the gold too:
otherwise what they have in common with the gold would reveal it."""

TOLERANCE = 0.2
"""Maximum deviation of a kind's share of golds from a third. At exactly a third, the other rows of
a kind would reveal the answer of the last one."""

NOISE = 1.5
"""Maximum deviation from a third, in standard deviations of chance, of the share of golds among the
most general of the three choices, or those shown most."""

COMPARED = (-1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0)
"""Bounds of classes of how much more often (logarithm) a choice is shown than the other two."""

WORTH = 1.0
"""Value of an additional question, in squares of excess golds."""

ROUNDS = 12
"""Number of rounds in which choices are compared again by how often they are shown."""


class ListedWords(NamedTuple):
    """The kinds of listed words: parallel arrays with one line for each word and kind of a tree.

    ``word`` and ``kind`` are numbers of words, ``truth`` is TRUE, ARGUABLE or FALSE.
    """

    tree: Ints
    word: Ints
    kind: Ints
    truth: Ints


class Crossed(NamedTuple):
    """Questions about words that are ``gold``: parallel arrays of word numbers.

    ``x`` is ``x_kind`` as well, but not ``y_kind``; ``y`` is ``y_kind``, but not ``x_kind``.
    """

    x: Ints
    y: Ints
    gold: Ints
    x_kind: Ints
    y_kind: Ints


@cache
def listed_kinds() -> tuple[tuple[str, str, str, int], ...]:
    """Return (tree, word, kind, truth) of each word of the list and each kind of its tree.

    Kinds contained in the word (a houseboat and a boat) are neither asked about nor denied.
    """
    agreed: dict[tuple[str, ...], int] = {("true", "true"): TRUE, ("false", "false"): FALSE}
    judged = {
        pair: agreed.get(labels, ARGUABLE)
        for pair, labels in judgements("taxonomy_conjunction").items()
    }
    lines = []
    tree, kinds = "", list[str]()
    for first, *rest in word_groups("crossing_kinds", "builders.taxonomy"):
        if first.startswith("["):
            tree, kinds = first.strip("[]"), rest
            continue
        word, bar = first.removesuffix(":"), [*rest, "|"].index("|")
        for kind in kinds:
            said = TRUE if kind in rest[:bar] else ARGUABLE if kind in rest[bar:] else FALSE
            said = ARGUABLE if kind in word else judged.get((word, kind), said)
            lines.append((tree, word, kind, said))
    return tuple(lines)


def listed_words(taxonomy: Taxonomy, shown: Bools, split_of_tree: Ints) -> ListedWords:
    """Return what the list of crossing kinds says of the words that may be shown."""
    tree, word, kind, truth = zip(*listed_kinds(), strict=True)
    names = list(TREES)
    listed = ListedWords(
        tree=np.array([names.index(name) for name in tree], dtype=np.int64),
        word=taxonomy.find(pa.array(word)),
        kind=taxonomy.find(pa.array(kind)),
        truth=np.array(truth, dtype=np.int64),
    )
    known = (listed.word >= 0) & (listed.kind >= 0) & (split_of_tree[listed.tree] >= 0)
    return lines_of(listed, known & shown[listed.word] & shown[listed.kind])


def crossed(
    listed: ListedWords,
    general: Floats,
    tested: Bools,
    also_shown: Callable[[int], Ints],
    cap_per_word: int,
    cap_per_gold: int,
    rng: RandomGenerator,
    alike: Callable[[Ints, Ints], Ints] | None = None,
) -> Crossed:
    """Draw questions such that each kind is gold in about a third of those that show it.

    Args:
        listed: what the words are.
        general: how general each word is as a kind.
        tested: the trees asked about in test, which is balanced more strictly.
        also_shown: function from the number of rows of this family to how often other rows of test
            show each word.
        cap_per_word: maximum number of times a word is in each of the two places (0: no cap).
        cap_per_gold: maximum number of times a kind is gold (0: no cap).
        rng: the random generator that breaks ties.
        alike: function from words and kinds to (words, kinds) how similar they are; the gold is
            then in each place of the order of similarity about equally often. None: choices are not
            matched.
    """
    rows: list[Ints] = []
    for tree in np.unique(listed.tree).tolist():
        some = lines_of(listed, listed.tree == tree)
        words, word = np.unique(some.word, return_inverse=True)
        kinds, kind = np.unique(some.kind, return_inverse=True)
        truth = np.full((words.size, kinds.size), ARGUABLE)
        truth[word, kind] = some.truth
        crossings = _crossings(truth)
        choices = np.array([choices for choices, _ in crossings], dtype=np.int64).reshape(-1, 3)
        place = None if alike is None else partial(_gold_place, alike(words, kinds), choices)
        ends = [ends for _, ends in crossings]
        couples = _couples(words, ends, 2 * cap_per_word, rng, place)
        count = np.array([len(own) for own in couples], dtype=np.int64)
        rank = general[kinds][choices].argsort(axis=1).argsort(axis=1) if tested[tree] else None
        left = _balanced(choices, rank, count, cap_per_gold, kinds, also_shown).tolist()
        rows += [
            np.concatenate([words[couple], kinds[own]])
            for own, most, asked in zip(choices, left, couples, strict=True)
            for couple in asked[:most]
        ]
    return Crossed(*np.array(rows, dtype=np.int64).reshape(-1, len(Crossed._fields)).T)


def _crossings(truth: Ints) -> list[tuple[tuple[int, int, int], tuple[Ints, Ints]]]:
    """Return the gold and the distractors of all crossings, with the words for x and for y.

    Two kinds that share half of the words of either one are not distractors of the same question.
    """
    is_kind, is_none = truth == TRUE, truth == FALSE
    shared = is_kind.T.astype(np.int64) @ is_kind
    few = np.minimum.outer(shared.diagonal(), shared.diagonal())
    found = []
    for one, other in combinations(range(truth.shape[1]), 2):
        for gold in set(range(truth.shape[1])) - {one, other}:
            x, y, odd = (
                np.flatnonzero(is_kind[:, a] & is_kind[:, b] & is_none[:, c])
                for a, b, c in ((gold, one, other), (gold, other, one), (one, other, gold))
            )
            kin = 2 * shared[one, other] > few[one, other]
            if x.size and y.size and not kin and (odd.size or shared[one, other] <= SHARED):
                found.append(((gold, one, other), (x, y)))
    return sorted(found, key=lambda crossing: crossing[1][0].size * crossing[1][1].size)


def _gold_place(alike: Ints, choices: Ints, number: int, x: Ints, y: Ints) -> Ints:
    """Return (x, y) how many distractors of a crossing are more similar to both than its gold."""
    similar = (alike[x][:, None] + alike[y][None, :])[:, :, choices[number]]
    return np.asarray((similar > similar[:, :, :1]).sum(axis=2))


def _couples(
    words: Ints,
    ends: Sequence[tuple[Ints, Ints]],
    cap: int,
    rng: RandomGenerator,
    place: Callable[[int, Ints, Ints], Ints] | None,
) -> list[list[Ints]]:
    """Choose pairs of words for each crossing, among those chosen least so far.

    ``place`` says how many distractors of a crossing are more similar to two words than its gold;
    of each place, there are about a third.
    """
    used, in_place = np.zeros(words.size), np.zeros(3)
    times = np.zeros((words.size, words.size))
    chosen = []
    for number, (x, y) in enumerate(ends):
        lot = rng.uniform(number, words[x][:, None], words[y][None, :])
        couples: list[Ints] = []
        free = np.ones(lot.shape, dtype=np.bool_)
        where = np.zeros(lot.shape, dtype=np.int64) if place is None else place(number, x, y)
        while len(couples) < ROWS:
            most = np.maximum(used[x][:, None], used[y][None, :])
            together = times[np.ix_(x, y)]
            able = free & (together < COUPLES) & ((most < cap) | (cap == 0))
            if place is not None:
                able &= (in_place <= in_place.sum() / 3 + UNEVEN)[where]
            if not able.any():
                break
            worth = together * words.size + most + lot
            i, j = np.unravel_index(np.where(able, worth, np.inf).argmin(), lot.shape)
            free[i, j] = False
            couples.append(np.array([x[i], y[j]]))
            in_place[where[i, j]] += 1
            used[x[i]] += 1
            used[y[j]] += 1
            times[x[i], y[j]] += 1
            times[y[j], x[i]] += 1
        chosen.append(couples)
    return chosen


def _balanced(
    choices: Ints,
    rank: Ints | None,
    rows: Ints,
    cap: int,
    names: Ints,
    also_shown: Callable[[int], Ints],
) -> Ints:
    """Drop questions until the choices alone reveal little.

    If each of the same three kinds can be gold, each is so equally often. The other crossings are
    reduced until each kind is gold in about a third of the questions that show it; with ``rank``,
    so are the most general choice and the one that is shown most.

    Args:
        choices: (crossings, 3) kinds, the gold first.
        rank: (crossings, 3) the place of each among the three, by generality; None: any.
        rows: (crossings,) how many questions of each there are.
        cap: maximum number of times a kind is gold (0: no cap).
        names: (kinds,) the word of each kind.
        also_shown: function from the number of questions to how often other rows show each word.

    Returns:
        (crossings,) how many questions of each to ask.
    """
    kinds, gold = names.size, choices[:, 0]
    if cap:
        rows = rows * cap // np.maximum(np.bincount(gold, rows, kinds), cap)[gold].astype(np.int64)
    _, same, golds = np.unique(
        np.sort(choices, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    same = same.reshape(-1)
    every = golds[same] == 3
    fewest = np.full(golds.size, rows.max(initial=0))
    np.minimum.at(fewest, same, rows)
    most = np.where(every, fewest[same], rows)
    least = np.where(every, most, 0)
    rows = most.copy()
    for _ in range(ROUNDS if rank is not None else 1):
        labels = choices
        if rank is not None:
            shown = np.bincount(choices.ravel(), np.repeat(rows, 3), kinds)
            often = _compared((shown + also_shown(int(rows.sum()))[names])[choices])
            rate = _right_elsewhere(choices, rows, same, shown)
            labels = np.concatenate(
                [choices, kinds + rank, kinds + 3 + _ranked(rate), kinds + 6 + often], axis=1
            )
        found = _exchanged(labels, rows, least, most, kinds)
        if np.array_equal(found, rows):
            break
        rows = found
    while rows.any():
        right, shown = np.bincount(gold, rows, kinds), np.bincount(choices.ravel(), rows.repeat(3))
        known: Bools = ((right == 0) | (right == shown))[choices].any(axis=1) & (rows > 0)
        if not known.any():
            break
        rows[known] = 0
    return rows


def _ranked(values: Floats) -> Ints:
    """Return the rank (0, 1 or 2) of each of three choices, (rows, 3), by their values."""
    return np.asarray(values.argsort(axis=1, kind="stable").argsort(axis=1))


def _compared(shown: Ints) -> Ints:
    """Label choices, (rows, 3), by rank and by how often each is shown relative to the others."""
    times = np.log(np.maximum(shown, 1))
    apart = 1.5 * (times - times.mean(axis=1, keepdims=True))
    return np.concatenate([_ranked(times), 3 + np.digitize(apart, COMPARED)], axis=1)


def _right_elsewhere(choices: Ints, rows: Ints, same: Ints, shown: Ints) -> Floats:
    """Return how often each choice is gold in the questions that show it with other choices.

    Args:
        choices: (crossings, 3) kinds, the gold first.
        rows: (crossings,) how many questions of each there are.
        same: (crossings,) a number for each three kinds.
        shown: (kinds,) how often each is shown.
    """
    right = np.zeros((int(same.max(initial=-1)) + 1, shown.size))
    np.add.at(right, (same, choices[:, 0]), rows)
    golds = right.sum(axis=0)[choices] - right[same[:, None], choices]
    others = shown[choices] - np.bincount(same, rows)[same][:, None]
    return np.asarray((golds + 1 / 3) / (others + 1))


def _exchanged(labels: Ints, rows: Ints, least: Ints, most: Ints, kinds: int) -> Ints:
    """Drop questions, and restore some, as long as shares of golds come closer to a third.

    Args:
        labels: (crossings, 3 n) the gold's label, then those of the distractors, n times; the first
            ``kinds`` labels are kinds.
        rows: (crossings,) where to start.
        least: (crossings,) the fewest questions of each.
        most: (crossings,) the most.
        kinds: how many kinds there are.
    """
    line = np.repeat(np.arange(rows.size), labels.shape[1])
    shape = rows.size, int(labels.max(initial=-1)) + 1
    # Twice how often each label is gold minus how often it is a distractor; and how often it is
    # shown.
    excess, shown = np.zeros(shape), np.zeros(shape)
    np.add.at(excess, (line, labels.ravel()), np.tile([2, -1, -1], labels.size // 3))
    np.add.at(shown, (line, labels.ravel()), 1)
    of_kind = np.arange(shape[1]) < kinds

    def too_much(excess: Floats, shown: Floats) -> Floats:
        allowed = np.where(
            of_kind, 3 * TOLERANCE * shown, NOISE * np.sqrt(2 * np.maximum(shown, 0))
        )
        return np.asarray((np.maximum(np.abs(excess) - allowed, 0) ** 2).sum(axis=-1))

    rows = rows.copy()
    while rows.size:
        total, times = rows @ excess, rows @ shown
        now = too_much(total, times)
        less = too_much(total - excess, times - shown) - now + WORTH
        more = too_much(total + excess, times + shown) - now - WORTH
        change = np.stack(
            [np.where(rows > least, less, np.inf), np.where(rows < most, more, np.inf)]
        )
        step, at = np.unravel_index(int(change.argmin()), change.shape)
        if change[step, at] >= 0:
            break
        rows[at] += 2 * int(step) - 1
    return rows
