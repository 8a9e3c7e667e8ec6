"""Choice groups in pools: K questions that show the same K choices, each the gold of one.

Each question belongs to a pool of questions that may share choices: those whose golds have one
parent, say. Guarantee:

- Exactly: whatever a model uses of the choices alone, it picks the same choice in every row of a
  group and is right in one of K rows. Questions of one unit (a gold, say) are never in one group,
  all distractors are wrong, and no question is asked twice with identically worded choices. The
  result depends on the questions and the random generator alone.
- Approximately: every question that can be placed is placed once. It is shown again, with other
  choices, only where it completes the group of a question that is not placed yet.
- Cost: O(rounds * questions log questions), all in NumPy, and tests of K * (K - 1) pairs a group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from builders.engine.draw.balanced import ranks_within
from builders.engine.draw.families import Family, GroupRules, Wrong
from builders.engine.draw.matched import GroupMatcher
from builders.engine.options import RANDOM
from kbprobe.arrays import (
    Bools,
    Ints,
    contains,
    lines_of,
    mask_at,
    ragged_ranges,
    run_starts,
    shuffled_within,
    sorted_unique,
)
from kbprobe.rng import RandomGenerator

ROUNDS = 10
"""Maximum number of rounds: first each question once, then also questions that were used."""

FEWEST_NEW = 0.005
"""Dealing stops after a round that places at most this share of the available questions."""

OFFERS = 8
"""How many times vacated places of groups are offered to other questions of the pool."""

POOL = 2500
"""Approximate number of questions that matched groups are drawn from."""

MATCHED_FROM = 3
"""How many times as many groups of kin are made as are selected of them."""


class Pooled(NamedTuple):
    """Questions to be put in groups: parallel arrays.

    Attributes:
        pool: questions of one pool (0 or more) may share choices; -1: with no other.
        reads: a number for each gold's text: golds with the same number have the same text.
        unit: questions of one unit are never in one group.
        identity: the key of each question for random numbers.
        kin: questions with the same number, of different units, are put in one group; if all
            numbers differ, no questions belong together.
    """

    pool: Ints
    reads: Ints
    unit: Ints
    identity: Ints
    kin: Ints


def draw_in_groups(
    families: Sequence[Family],
    gold: Ints,
    reads: Ints,
    cell: Ints,
    identity: Ints,
    rules: GroupRules,
    *,
    once: bool,
    random_share: float,
    rng: RandomGenerator,
    matcher: GroupMatcher | None = None,
) -> Iterator[tuple[Family, Ints]]:
    """Put questions in groups, family by family; the random ones come last.

    Args:
        families: the families, each with the keys of the questions.
        gold: the gold of each question.
        reads: a number for that gold's text: no question is asked twice with identically worded
            choices.
        cell: (questions,) only questions of one cell, a part of a split, share choices.
        identity: what random numbers depend on.
        rules: the constraints on groups.
        once: ask each question in one group, not in one or more of every family.
        random_share: the most rows of a cell that may have random distractors, as a share, where
            some have others; questions without others come first.
        rng: the random generator.
        matcher: how groups of families other than the random one are matched; None: they are not.
            With ``matcher.equal``, equally many of each kind get random distractors.

    Yields:
        Each family and (groups, size) positions of the questions of its groups.
    """
    placed = np.zeros(gold.size, dtype=np.bool_)
    near, filled = np.zeros((2, int(cell.max(initial=0)) + 1), dtype=np.int64)
    alone = np.arange(gold.size, dtype=np.int64)
    shown = np.empty(0, dtype=np.int64)
    if once:
        rules = replace(rules, uses=1)
    for family in sorted(families, key=lambda family: family.name == RANDOM):
        key = family.key
        if once:
            key = np.where(placed, -1, key)
        limited = family.name == RANDOM and bool(near.any())
        if limited:
            room = (near * random_share / max(1 - random_share, 1e-9)).astype(np.int64) - filled
            # Questions without another family come first.
            order = shuffled_within(rng.bits(identity), cell, placed)
            if matcher is not None and (equal := matcher.equal) is not None:
                # The first of each kind, then the second.
                kind = cell[order] * (equal.max() + 1) + equal[order]
                by_kind = np.argsort(kind, kind="stable")
                rank = np.empty_like(order)
                rank[by_kind] = ranks_within(kind[by_kind])
                order = order[np.lexsort((rank, cell[order]))]
            chosen = order[ranks_within(cell[order]) < room[cell[order]]]
            key = np.where(np.isin(alone, chosen), key, -1)
        _, pool = np.unique(key * near.size + cell, return_inverse=True)
        pool = np.where(key < 0, -1, pool)
        unit = gold if family.unit is None else family.unit
        deal = _deal if family.kin is None else _deal_kin
        questions = Pooled(pool, reads, unit, identity, alone if family.kin is None else family.kin)
        chance = rng.child(family.name, family.distance)
        if matcher is None or family.name == RANDOM:
            groups = choose_groups(questions, rules, chance, deal, shown)
        elif family.kin is None:
            groups = matcher.draw(_neighbours(family, key, cell), rules, chance, family.close)
            groups = _shown_once(questions, groups, shown)
        else:
            many = replace(rules, uses=rules.uses * MATCHED_FROM)
            groups = matcher.select(choose_groups(questions, many, chance, deal, shown), rules)
        if limited:
            groups = _within(groups, placed, cell, room)
        placed[groups] = True
        shown = sorted_unique(np.concatenate([shown, _keys(questions, groups).ravel()]))
        # If kin are grouped with others, some questions have only the others.
        alone_in = ~_with_kin(questions.kin[groups]) if family.kin is not None else groups < 0
        near += np.bincount(cell[groups[~alone_in]], minlength=near.size)
        filled += np.bincount(cell[groups[alone_in]], minlength=near.size)
        yield family, groups


def _shown_once(questions: Pooled, groups: Ints, shown: Ints) -> Ints:
    """Leave out groups that ask a question again with choices that read the same."""
    keys = _keys(questions, groups)
    new = mask_at(keys.size, np.unique(keys, return_index=True)[1]).reshape(keys.shape)
    return np.asarray(groups[(new & ~contains(shown, keys)).all(axis=1)])


def _neighbours(family: Family, key: Ints, cell: Ints) -> Iterator[Ints]:
    """Yield the questions that matched groups are drawn from, pool by pool.

    Those of a key, or, where neighbouring keys may share choices, runs of about ``POOL`` questions.
    """
    known = np.flatnonzero(key >= 0)
    order = known[np.lexsort((known, key[known], cell[known]))]
    apart = cell[order] if family.close is not None else np.stack([cell[order], key[order]])
    for lines in np.split(order, np.flatnonzero(_changes(apart))[1:]):
        yield from np.array_split(lines, max(round(lines.size / POOL), 1))


Deal = Callable[[Pooled, Ints, GroupRules, RandomGenerator], Ints]
"""Returns groups of questions, given how often each was used and the rules for groups."""


def _within(groups: Ints, placed: Bools, cell: Ints, room: Ints) -> Ints:
    """Keep as many groups as fit into a cell, preferring those of questions not yet placed."""
    own = cell[groups[:, 0]]
    order = np.lexsort((placed[groups].sum(axis=1), own))
    fits = (ranks_within(own[order]) + 1) * groups.shape[1] <= room[own[order]]
    return np.asarray(groups[np.sort(order[fits])])


def choose_groups(
    questions: Pooled, rules: GroupRules, rng: RandomGenerator, deal: Deal, shown: Ints
) -> Ints:
    """Deal questions into groups, and exchange those that may not share a group.

    ``shown`` (ascending) records which questions were already asked with which choices.

    Returns:
        (groups, size) positions of the questions of each group.
    """
    used = np.zeros(questions.pool.size, dtype=np.int64)
    groups = [np.empty((0, rules.size), dtype=np.int64)]
    for limit in sorted({1, rules.uses}):
        for turn in range(ROUNDS):
            chance = rng.child(limit, turn)
            ready = np.flatnonzero((questions.pool >= 0) & (used < limit))
            some = replace(rules, wrong=partial(_wrong_of, rules.wrong, ready))
            dealt = ready[deal(lines_of(questions, ready), used[ready], some, chance)]
            spare = mask_at(used.size, ready)
            spare[dealt] = False
            dealt = _exchanged(dealt, questions, np.flatnonzero(spare), rules, chance)
            dealt = dealt[(used[dealt] == 0).any(axis=1)]
            if deal is not _deal:
                dealt = dealt[_with_kin(questions.kin[dealt]).any(axis=1)]
            keys = _keys(questions, dealt)
            fresh = ~contains(shown, keys).any(axis=1)
            dealt, keys = dealt[fresh], keys[fresh]
            # Later rounds gain little: the same questions clash again.
            if len(dealt) * rules.size <= FEWEST_NEW * ready.size and turn > 1:
                break
            groups.append(dealt)
            used += np.bincount(dealt.ravel(), minlength=used.size)
            shown = sorted_unique(np.concatenate([shown, keys.ravel()]))
    return np.concatenate(groups)


def _exchanged(
    dealt: Ints, questions: Pooled, spare: Ints, rules: GroupRules, rng: RandomGenerator
) -> Ints:
    """Exchange questions between groups until all distractors are wrong; return complete groups.

    The question that clashes with most of its group is removed; vacated places are offered in turn
    to questions of the pool without a place. Groups that are still incomplete are left out.
    """
    if len(dealt) == 0:
        return dealt
    dealt = dealt.copy()
    one, other = np.nonzero(~np.eye(rules.size, dtype=np.bool_))
    first, second = dealt[:, one].ravel(), dealt[:, other].ravel()
    apart = (questions.unit[first] != questions.unit[second]) & rules.wrong(first, second)
    clash = np.zeros((len(dealt), rules.size, rules.size), dtype=np.bool_)
    clash[:, one, other] = ~apart.reshape(len(dealt), -1)
    clash |= clash.transpose(0, 2, 1)
    free, bad = [spare], np.arange(len(dealt))
    while (bad := bad[clash[bad].any(axis=(1, 2))]).size:
        worst = clash[bad].sum(axis=2).argmax(axis=1)
        free.append(dealt[bad, worst])
        dealt[bad, worst] = -1
        clash[bad, worst, :] = clash[bad, :, worst] = False
    waiting = np.concatenate(free)
    vacant = np.zeros(int(questions.pool.max()) + 1, dtype=np.bool_)
    for offer in range(OFFERS):
        row, column = np.nonzero(dealt < 0)
        pool = questions.pool[dealt.max(axis=1)[row]]
        vacant[:] = False
        vacant[pool] = True
        waiting = waiting[vacant[questions.pool[waiting]]]
        if waiting.size == 0:
            break
        # The nth place of a pool is offered to the nth question that waits in it.
        own = questions.pool[waiting]
        places = shuffled_within(rng.child("places", offer).bits(row, column), pool)
        lot = rng.child("waiting", offer).bits(questions.identity[waiting])
        line = shuffled_within(lot, own)
        count = np.bincount(own, minlength=vacant.size)
        pool, nth = pool[places], ranks_within(pool[places])
        offered = nth < count[pool]
        place, pool, nth = places[offered], pool[offered], nth[offered]
        guest = line[(np.cumsum(count) - count)[pool] + nth]
        fits = _fits(dealt[row[place]], waiting[guest], questions, rules)
        # One place of a group at a time.
        place, guest = place[fits], guest[fits]
        first = np.unique(row[place], return_index=True)[1]
        place, guest = place[first], guest[first]
        dealt[row[place], column[place]] = waiting[guest]
        waiting = np.delete(waiting, guest)
    return np.asarray(dealt[(dealt >= 0).all(axis=1)])


def _fits(members: Ints, guest: Ints, questions: Pooled, rules: GroupRules) -> Bools:
    """Return whether each guest may join the members (-1: none) of a group."""
    group, place = np.nonzero(members >= 0)
    member, new = members[group, place], guest[group]
    fits = questions.unit[member] != questions.unit[new]
    both = np.stack([member[fits], new[fits]])
    fits[fits] = rules.wrong(both.ravel(), both[::-1].ravel()).reshape(2, -1).all(axis=0)
    joined = np.ones(guest.size, dtype=np.bool_)
    joined[group[~fits]] = False
    return joined


def _wrong_of(wrong: Wrong, rows: Ints, one: Ints, other: Ints) -> Bools:
    """Apply ``wrong`` to questions given by their index in ``rows``."""
    return wrong(rows[one], rows[other])


def _deal(questions: Pooled, used: Ints, rules: GroupRules, rng: RandomGenerator) -> Ints:
    """Deal the questions of each pool into as many groups as possible, one of a unit in each.

    Unused questions come first. If the questions of a pool are sorted by unit, and no unit has more
    of them than there are groups, every nth one makes a group.
    """
    size, chance = rules.size, rng.bits(questions.identity)
    # Questions of each unit, those used least first; of each, no more than there are groups.
    order = shuffled_within(chance, questions.pool, questions.unit, used)
    pool, unit = questions.pool[order], questions.unit[order]
    starts = np.flatnonzero(_changes(pool) | _changes(unit))
    rank = np.arange(pool.size) - np.repeat(starts, np.diff(np.append(starts, pool.size)))
    in_pool = np.cumsum(_changes(pool)) - 1
    wanted = _group_counts(in_pool[starts], np.diff(np.append(starts, pool.size)), size)
    keep = rank < wanted[in_pool]
    order, in_pool = order[keep], in_pool[keep]
    # Of these, the least used, as many as fill the groups.
    first = shuffled_within(chance[order], in_pool, used[order])
    keep = ranks_within(in_pool[first]) < size * wanted[in_pool[first]]
    order, in_pool = order[first[keep]], in_pool[first[keep]]
    lot = rng.child("units").bits(questions.unit[order])
    laid_out = np.lexsort((chance[order], questions.unit[order], lot, in_pool))
    order, in_pool = order[laid_out], in_pool[laid_out]
    column = ranks_within(in_pool) % np.maximum(wanted[in_pool], 1)
    return np.asarray(order[np.lexsort((column, in_pool))].reshape(-1, size))


def _deal_kin(questions: Pooled, used: Ints, rules: GroupRules, rng: RandomGenerator) -> Ints:
    """Deal kin into groups, which are completed with the kin of others, or with single questions.

    One question of each unit is dealt. Kin that clash, or do not fit into one group, are put into
    different groups.
    """
    size, chance = rules.size, rng.bits(questions.identity)
    order = shuffled_within(chance, questions.pool, questions.kin, questions.unit, used)
    keys = np.stack([questions.pool[order], questions.kin[order], questions.unit[order]])
    order = order[_changes(keys)]
    order = order[shuffled_within(chance[order], questions.pool[order], questions.kin[order])]
    family = np.cumsum(_changes(np.stack([questions.pool[order], questions.kin[order]]))) - 1
    first = run_starts(np.bincount(family))
    place = np.arange(order.size) - first[family]
    # Every two of a kin, once.
    later, earlier = np.repeat(np.arange(order.size), place), ragged_ranges(first[family], place)
    one, other = order[later], order[earlier]
    clash = ~(rules.wrong(one, other) & rules.wrong(other, one))
    clashes = set((later[clash] * order.size + earlier[clash]).tolist())
    piece = place // size
    for number in sorted_unique(family[later[clash]]).tolist():
        members = range(first[number], first[number + 1])
        piece[members.start : members.stop] = _apart(members, clashes, order.size, size)
    by_piece = np.lexsort((piece, family))
    start = np.flatnonzero(_changes(np.stack([family[by_piece], piece[by_piece]])))
    length, order = np.diff(np.append(start, order.size)), order[by_piece]
    pool = questions.pool[order[start]]
    lot = rng.child("kin").bits(questions.identity[order[start]])
    on_shelves = np.lexsort((lot, length, pool))
    shelves: dict[int, list[list[list[int]]]] = {}
    changes = np.flatnonzero(_changes(np.stack([pool[on_shelves], length[on_shelves]])))
    for some in np.split(on_shelves, changes[1:]):
        if some.size:
            own, long = int(pool[some[0]]), int(length[some[0]])
            shelf = order[start[some][:, None] + np.arange(long)].tolist()
            shelves.setdefault(own, [[] for _ in range(size + 1)])[long] = shelf
    groups = [group for own in shelves for group in _completed(shelves[own], size)]
    return np.array(groups, dtype=np.int64).reshape(-1, size)


def _apart(members: range, clashes: Collection[int], lines: int, size: int) -> list[int]:
    """Number the pieces of at most ``size`` that kin are put into: the first where none clash.

    ``clashes`` has ``later * lines + earlier`` of those that do.
    """
    pieces: list[list[int]] = []
    chosen = []
    for member in members:
        fits = (
            number
            for number, piece in enumerate(pieces)
            if len(piece) < size and all(member * lines + o not in clashes for o in piece)
        )
        number = next(fits, len(pieces))
        if number == len(pieces):
            pieces.append([])
        pieces[number].append(member)
        chosen.append(number)
    return chosen


def _completed(shelves: list[list[list[int]]], size: int) -> Iterator[list[int]]:
    """Complete the largest pieces with the largest that fit; ``shelves`` holds them by length.

    If none fits, the shortest of the others is divided.
    """
    for largest in range(size, 1, -1):
        while shelves[largest]:
            group = shelves[largest].pop()
            while len(group) < size:
                room = size - len(group)
                lengths = (*range(room, 0, -1), *range(room + 1, largest + 1))
                length = next((n for n in lengths if shelves[n]), 0)
                if not length:
                    return
                piece = shelves[length].pop()
                group = group + piece[:room]
                shelves[max(length - room, 0)].append(piece[room:])
            yield group


def _group_counts(pool: Ints, members: Ints, size: int) -> Ints:
    """Return the most groups that each pool allows, given the questions of its units.

    ``pool`` (units,) numbers the pools from 0. A unit gives at most one question to a group:
    ``n`` groups can be made if the sum of ``min(members, n)`` is at least ``size * n``.
    """
    count = np.bincount(pool, members).astype(np.int64) // size
    while True:
        given = np.bincount(pool, np.minimum(members, count[pool]), count.size).astype(np.int64)
        fewer = np.minimum(count, given // size)
        if np.array_equal(fewer, count):
            return count
        count = fewer


def _with_kin(kin: Ints) -> Bools:
    """Return (groups, size) whether a question of a group has kin in it."""
    return np.asarray((kin[:, :, None] == kin[:, None, :]).sum(axis=2) > 1)


def _keys(questions: Pooled, dealt: Ints) -> Ints:
    """Return (groups, size) a key of each question together with its choices."""
    rng = RandomGenerator(0)
    choices = rng.bits(questions.reads[dealt]).sum(axis=1, dtype=np.uint64)
    return (rng.bits(choices[:, None], dealt) >> np.uint64(1)).astype(np.int64)


def _changes(values: Ints) -> Bools:
    """Mark the first of each run of equal values, or of equal columns of several rows."""
    if values.shape[-1] == 0:
        return np.zeros(0, dtype=np.bool_)
    differs = np.atleast_2d(values)[:, 1:] != np.atleast_2d(values)[:, :-1]
    return np.concatenate([[True], differs.any(axis=0)])
