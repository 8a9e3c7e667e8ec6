"""Kinds that cross: questions of which each distractor is true of one of the two words.

A *crossing* is a gold and two distractors: one word is the gold and the first distractor but not
the second, the other word the reverse. Whoever looks at one word can leave out one choice only.

WordNet has few such kinds, since most of its nouns have one parent. ``data/crossing_kinds.txt``
says which kinds of its tree a word is and which one could argue that it is; it is none of the
others. What readers judged (``builders.judged``) has the last word.
"""

from __future__ import annotations

from collections.abc import Sequence
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

TOLERANCE = 0.24
"""By how much a kind's share of golds may be off a third. If it were just a third, it would tell
whose turn it is."""

NOISE = 4.0
"""By how many standard deviations of chance the share of golds may be off a third among the most
general of the three choices, or those shown most."""


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
    cap_per_word: int,
    cap_per_gold: int,
    rng: RandomGenerator,
) -> Crossed:
    """Draw questions such that each kind is gold in about a third of those that show it.

    Args:
        listed: what the words are.
        general: how general each word is as a kind.
        tested: which trees are asked about in test, where more is balanced.
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
        left = _balanced(choices, rank, count, cap_per_gold).tolist()
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


def _balanced(choices: Ints, rank: Ints | None, rows: Ints, cap: int) -> Ints:
    """Leave out questions until the choices alone tell little.

    Where each of the same three kinds can be gold, each is equally often. Of the other crossings so
    many are left that each kind is gold in about a third of the questions that show it; with
    ``rank``, so are the most general choice and the one that is shown most.

    Args:
        choices: (crossings, 3) kinds, the gold first.
        rank: (crossings, 3) the place of each among the three, by generality; None: any.
        rows: (crossings,) how many questions of each there are.
        cap: how often a kind may be gold (0: no cap).

    Returns:
        (crossings,) how many questions of each to ask.
    """
    kinds = int(choices.max(initial=-1)) + 1
    gold = choices[:, 0]
    if cap:
        rows = rows * cap // np.maximum(np.bincount(gold, rows, kinds), cap)[gold].astype(np.int64)
    _, same, golds = np.unique(
        np.sort(choices, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    same = same.reshape(-1)
    every = golds[same] == 3
    fewest = np.full(golds.size, rows.max(initial=0))
    np.minimum.at(fewest, same, rows)
    rows = np.where(every, fewest[same], rows)
    labels = choices
    if rank is not None:
        shown = np.bincount(choices.ravel(), np.repeat(rows, 3), kinds)
        often = shown[choices].argsort(axis=1).argsort(axis=1)
        labels = np.concatenate([choices, kinds + rank, kinds + 3 + often], axis=1)
    places = labels.shape[1]
    weight = np.tile([2, -1, -1], places // 3)
    of_kind = labels < kinds
    while rows.any():
        # How often more each kind is gold, twice, than it is a distractor; and so of each rank.
        excess = np.bincount(labels.ravel(), np.outer(rows, weight).ravel())[labels]
        shown = np.bincount(labels.ravel(), np.repeat(rows, places))[labels]
        # By how much that is too much, now and with one question less.
        now, then = (
            np.maximum(
                np.abs(excess - less * weight)
                - np.where(of_kind, 3 * TOLERANCE * some, NOISE * np.sqrt(2 * some)),
                0,
            )
            for less, some in ((0, shown), (1, np.maximum(shown - 1, 0)))
        )
        change = (then**2 - now**2).sum(axis=1)
        change[every | (rows == 0)] = np.inf
        worst = int(change.argmin())
        if change[worst] < 0:
            rows[worst] -= 1
            continue
        never: Bools = (np.bincount(gold, rows, kinds) == 0)[choices].any(axis=1) & (rows > 0)
        if not never.any():
            break
        rows[never] = 0
    return rows
