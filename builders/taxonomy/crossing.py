"""Kinds that cross: questions of which each distractor is true of one of the two words.

A *crossing* is a gold and two distractors: one word is the gold and the first distractor but not
the second, the other word the reverse. Whoever looks at one word can leave out one choice only.

WordNet has few such kinds, since most of its nouns have one parent. ``data/crossing_kinds.txt``
says which kinds of its tree a word is and which one could argue that it is; it is none of the
others. What readers judged (``builders.judged``) has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from builders.english.word_lists import word_groups
from builders.judged.model import judgements
from kbprobe.arrays import Bools, Floats, Ints, lines_of
from kbprobe.rng import RandomGenerator

TRUE, ARGUABLE, FALSE = 1, 0, -1

ROWS = 60
"""Most questions of a crossing."""

COUPLES = 4
"""Most questions about the same two words."""

SHARED = 2
"""Two distractors have at most so many words in common, unless they can be the gold too: what they
have in common with the gold would tell which it is."""

TOLERANCE = 0.2
"""By how much a kind's share of golds may be off a third. If it were just a third, it would tell
whose turn it is."""

NOISE = 1.5
"""By how many standard deviations of chance the share of golds may be off a third among the most
general of the three choices, or those shown most."""

COMPARED = (-1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0)
"""Where it is divided how much more often (logarithm) a choice is shown than the other two."""

WORTH = 1.0
"""What a question more is worth, in squares of golds too many."""

ROUNDS = 12
"""How often choices are compared anew by how often they are shown."""


class Listed(NamedTuple):
    """What listed words are: parallel arrays, a line for each word and kind of a tree.

    ``word`` and ``kind`` are numbers of words, ``truth`` is TRUE, ARGUABLE or FALSE.
    """

    tree: Ints
    word: Ints
    kind: Ints
    truth: Ints


class Crossed(NamedTuple):
    """Questions about words that are ``gold``: parallel arrays of words' numbers.

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

    A kind that the word contains (a houseboat and a boat) is neither asked about nor denied.
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


def crossed(
    listed: Listed,
    general: Floats,
    tested: Bools,
    also_shown: Callable[[int], Ints],
    cap_per_word: int,
    cap_per_gold: int,
    rng: RandomGenerator,
) -> Crossed:
    """Draw questions such that each kind is gold in about a third of those that show it.

    Args:
        listed: what the words are.
        general: how general each word is as a kind.
        tested: which trees are asked about in test, where more is balanced.
        also_shown: returns how often other rows of test show each word, if this family has so many.
        cap_per_word: how often a word may stand in each of two places (0: no cap).
        cap_per_gold: how often a kind may be gold (0: no cap).
        rng: decides between equals.
    """
    rows: list[Ints] = []
    for tree in np.unique(listed.tree).tolist():
        some = lines_of(listed, listed.tree == tree)
        words, word = np.unique(some.word, return_inverse=True)
        kinds, kind = np.unique(some.kind, return_inverse=True)
        truth = np.full((words.size, kinds.size), ARGUABLE)
        truth[word, kind] = some.truth
        crossings = _crossings(truth)
        couples = _couples(words, [ends for _, ends in crossings], 2 * cap_per_word, rng)
        choices = np.array([choices for choices, _ in crossings], dtype=np.int64).reshape(-1, 3)
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

    Two kinds that half of the words of either have in common are no distractors of one question.
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


def _couples(
    words: Ints, ends: Sequence[tuple[Ints, Ints]], cap: int, rng: RandomGenerator
) -> list[list[Ints]]:
    """Choose couples of words for each crossing, of those that were chosen least."""
    used = np.zeros(words.size)
    times = np.zeros((words.size, words.size))
    chosen = []
    for number, (x, y) in enumerate(ends):
        lot = rng.uniform(number, words[x][:, None], words[y][None, :])
        couples: list[Ints] = []
        free = np.ones(lot.shape, dtype=np.bool_)
        while len(couples) < ROWS:
            most = np.maximum(used[x][:, None], used[y][None, :])
            together = times[np.ix_(x, y)]
            able = free & (together < COUPLES) & ((most < cap) | (cap == 0))
            if not able.any():
                break
            worth = together * words.size + most + lot
            i, j = np.unravel_index(np.where(able, worth, np.inf).argmin(), lot.shape)
            free[i, j] = False
            couples.append(np.array([x[i], y[j]]))
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
    """Leave out questions until the choices alone tell little.

    Where each of the same three kinds can be gold, each is equally often. Of the other crossings so
    many are left that each kind is gold in about a third of the questions that show it; with
    ``rank``, so are the most general choice and the one that is shown most.

    Args:
        choices: (crossings, 3) kinds, the gold first.
        rank: (crossings, 3) the place of each among the three, by generality; None: any.
        rows: (crossings,) how many questions of each there are.
        cap: how often a kind may be gold (0: no cap).
        names: (kinds,) the word of each kind.
        also_shown: returns how often other rows show each word, if there are so many questions.

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
        never: Bools = (np.bincount(gold, rows, kinds) == 0)[choices].any(axis=1) & (rows > 0)
        if not never.any():
            break
        rows[never] = 0
    return rows


def _ranked(values: Floats) -> Ints:
    """Return the place of each of three choices, (rows, 3), by a value of each: 0, 1 or 2."""
    return np.asarray(values.argsort(axis=1, kind="stable").argsort(axis=1))


def _compared(shown: Ints) -> Ints:
    """Label choices, (rows, 3), by how much more often each is shown than the others, and rank."""
    times = np.log(np.maximum(shown, 1))
    apart = 1.5 * (times - times.mean(axis=1, keepdims=True))
    return np.concatenate([_ranked(times), 3 + np.digitize(apart, COMPARED)], axis=1)


def _right_elsewhere(choices: Ints, rows: Ints, same: Ints, shown: Ints) -> Floats:
    """Return how often each choice is gold of the questions that show it with other choices.

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
    """Leave out questions, and take some back, as long as shares of golds then come nearer a third.

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
    # How often more each label is gold, twice, than it is a distractor; and how often it is shown.
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
