"""Matched choice groups: questions that similarity cannot answer.

A question's gold is usually the choice that is about the same thing. In matched groups the gold's
place in the order of similarity to the question, as each of several encoders sees it, is as nearly
uniform as the questions allow: the most similar choice is right in one of K rows, and so is the
least similar.

Groups are put together in two steps. Several rounds make more groups than are needed: to each
question, partners are added whose golds look more like the other questions of the group than
these questions' own golds do. Then those groups are selected that together make the gold's place
uniform, by a price for each place, encoder and cell of questions (a part of speech and a number of
hops, say), with each question used as often as allowed.

Similarities are uncertain: another encoder, or another wording, sees that of the gold and those of
the others otherwise. So a choice counts as more similar than the gold with a probability that
depends on its margin, and what is made uniform is the expected share of each place. Guarantee:

- Exactly: what :mod:`builders.engine.draw.pools` guarantees of groups, and the same groups on every
  machine: everything up to the expected shares is computed in integers.
- Approximately: the expected shares are uniform for each encoder, over all rows and, where there
  are enough, in each cell.
- Cost: O(questions * golds of a pool * dimensions) for the similarities of a pool, and
  O(rounds * questions * questions of a pool).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from builders.engine.draw.families import GroupRules, others_of
from builders.engine.draw.likeness import (
    UNIT,
    Likeness,
    Similarities,
    choice_similarities,
    dot_products,
    in_parts,
    in_units,
    row_products,
    sum_by_weight,
)
from kbprobe.arrays import Bools, Ints
from kbprobe.rng import RandomGenerator

SUSPICIOUS = 112
"""A choice that is so much more similar than the gold is not shown: of judged pairs two spreads
apart, readers found one in four true or arguable, of all one in eleven."""

COARSER = 4
"""Expected places are computed from margins in units that are so many times coarser."""

UNCERTAINTY = 0.65
"""By how many spreads (a standard deviation) each similarity differs in another wording, or by
vectors that are not reduced; measured on printed rows."""

DEVIATIONS = (-1.22, 0.0, 1.22)
"""Three deviations of the gold's similarity stand for all, as in a quadrature of a normal
distribution."""

OVERLOOKED = 0.075
"""By how many spreads the gold is more similar than reduced vectors say, for each unit by which an
encoder's weight is above 1; measured on printed rows."""

LEAST_GAIN, MOST_GAIN = -64, 30
"""Margins are clipped when partners are chosen: one very similar choice is no better than some."""

NEVER, LOWEST = -(1 << 16), -(1 << 15)
"""The margin of choices that are not wrong, and the lowest that hardness is counted by."""

ROUNDS, MOST_ROUNDS, DRAWN = 8, 48, 20_000
"""How often the questions of a pool are put in groups: more often where it has few, as long as no
more than so many are drawn."""

NOISE = 192
"""What makes rounds differ: the most that is added to a question's margins in one of them."""

CLOSE = 96
"""What is added to the margin of partners that are preferred."""

HARDEST = 20
"""A question is as hard as the partner in this place is similar."""

HOPELESS = -96
"""Questions that are easier than this do not start a group."""

PRICES = 56
"""Number of times that prices are adjusted."""

ONE = 1 << 16
"""Shares and prices are integers: multiples of one in this many."""

STEP = 4
"""The most that a price is raised for each unit that a share is too large: less at the beginning,
since few questions may be left soon."""

FIRST_TOLERANCE, TOLERANCE = ONE // 100, ONE // 32
"""How far the share of the first place, and of the others, may be from uniform."""

LEAST_ROWS, LEAST_OF_MADE = 0.6, 0.1
"""The least number of rows for each question that are kept even if places are not uniform: of
groups that were grown by similarity, and of groups made without it, whose gold is mostly the most
similar choice."""

LEAST_PART, LEAST_OF_PART = 0.1, 0.25
"""The same for each part that could have so large a share of the rows, as a share of that least
number."""

LEAST_WORTH, MOST_WORTH = -ONE * ONE, ONE * ONE * 4
"""What a question of a kind may be worth when there are to be equally many of each kind."""

LEAST_CELL = 400
"""Cells with fewer questions have the prices of all."""

CHANCE = 1 << 12
"""Probabilities are integers: multiples of one in this many."""

Margins = npt.NDArray[np.int8]


class Pairs(NamedTuple):
    """What is known of the questions of a pool and the golds of its questions.

    Attributes:
        gold: (questions,) the number of each question's gold in the pool.
        mutual: (questions, questions) how much more the golds of both look like the question of
            the other than its own gold does, over all encoders; ``NEVER`` where one is not wrong.
        hardness: (questions,) how much more similar some golds are than the question's own.
        each: (encoders, questions, golds) how much more a gold looks like a question than its own
            gold does.
    """

    gold: Ints
    mutual: Similarities
    hardness: Similarities
    each: Margins

    def exclude(self, questions: Ints, golds: Ints) -> None:
        """Note that golds are not wrong answers to questions, in pairs."""
        order = np.argsort(self.gold, kind="stable")
        ends = np.searchsorted(self.gold[order], [golds, golds + 1])
        for question, start, stop in zip(questions.tolist(), *ends.tolist(), strict=True):
            with_gold = order[start:stop]
            self.mutual[question, with_gold] = self.mutual[with_gold, question] = NEVER


class MadeGroups(NamedTuple):
    """Groups to select from.

    Attributes:
        members: (groups, K) questions.
        margin: (groups, K, K - 1, encoders) how much more similar each other choice is than the
            question's gold, in ``COARSER`` times ``UNIT``.
    """

    members: Ints
    margin: Margins


def _coarser(margin: Similarities) -> Margins:
    """Return margins as bytes."""
    return np.clip(margin // COARSER, -127, 127).astype(np.int8)


@dataclass(frozen=True)
class GroupMatcher:
    """How the questions of a build are matched.

    Attributes:
        likeness: what encoders say of all questions.
        false: function of the questions of a pool that returns the number of each one's gold in
            the pool, and (questions, golds) whether each gold may be shown with the question.
        cell: (questions,) the gold's place is uniform in each cell, from 0.
        equal: (questions,) the kind of each, of which groups are to hold equally many, as far as
            they can; None: as many as there are.
        part: (questions,) the part that each belongs to (a split): none becomes much smaller than
            it need be; None: all are one part.
    """

    likeness: Likeness
    false: Callable[[Ints], tuple[Ints, Bools]]
    cell: Ints
    equal: Ints | None = None
    part: Ints | None = None

    def draw(
        self,
        pools: Iterable[Ints],
        rules: GroupRules,
        rng: RandomGenerator,
        close: Ints | None = None,
    ) -> Ints:
        """Put the questions of each pool in matched groups; return (groups, size) questions.

        Questions with the same number in ``close`` are preferred as partners.
        """
        known = self.likeness.known
        pools = (lines[known[lines]] for lines in pools)
        made = [
            self._of_pool(lines, rules, rng, close) for lines in pools if lines.size >= rules.size
        ]
        if not made:
            return np.empty((0, rules.size), dtype=np.int64)
        groups = MadeGroups(*(np.concatenate(parts) for parts in zip(*made, strict=True)))
        if not groups.members.size:
            return groups.members
        return groups.members[_selected(groups, self, rules.uses, LEAST_ROWS)]

    def select(self, groups: Ints, rules: GroupRules) -> Ints:
        """Select those of some groups that together make the gold's place nearly uniform."""
        groups = groups[self.likeness.known[groups].all(axis=1)]
        if self.likeness.most_alike is not None:
            one, other = np.triu_indices(groups.shape[1], 1)
            choice, views = self.likeness.choice[groups], self.likeness.views
            alike = choice_similarities(views, choice[:, one], choice[:, other])
            groups = groups[(alike <= self.likeness.most_similarity).all(axis=1)]
        if not groups.size:
            return groups
        made = self._compared(groups)
        return groups[_selected(made, self, rules.uses, LEAST_OF_MADE)]

    def _compared(self, groups: Ints) -> MadeGroups:
        """Compare the choices of groups, without their pools."""
        others = others_of(groups.shape[1])
        margin = np.empty((*groups.shape, groups.shape[1] - 1, len(self.likeness.views)), np.int8)
        for some in in_parts(len(groups)):
            question, choice = (
                self.likeness.question[groups[some]],
                self.likeness.choice[groups[some]],
            )
            for number, (encoder, questions, choices) in enumerate(self.likeness.views):
                similar = row_products("gid,gjd->gij", questions[question], choices[choice])
                steps = in_units(similar - np.einsum("gii->gi", similar)[:, :, None], encoder)
                margin[some, ..., number] = _coarser(
                    np.take_along_axis(steps, others[None], axis=2)
                )
        return MadeGroups(groups, margin)

    def _of_pool(
        self, lines: Ints, rules: GroupRules, rng: RandomGenerator, close: Ints | None
    ) -> MadeGroups:
        """Make the groups of all rounds in a pool; those that are not sound are left out."""
        pairs = _pairs(lines, self.likeness, *self.false(lines), close)
        kept = []
        for turn in range(max(ROUNDS, min(MOST_ROUNDS, DRAWN // lines.size))):
            noise = rng.child("round", turn).below(NOISE, lines).astype(np.int32)
            groups = _grown(pairs, noise, rules.size)
            wrong = rules.sound(lines[groups]) | np.eye(rules.size, dtype=np.bool_)
            group, one, other = np.nonzero(~wrong)
            pairs.exclude(groups[group, one], pairs.gold[groups[group, other]])
            kept.append(groups[wrong.all(axis=(1, 2))])
        groups = np.sort(np.concatenate(kept), axis=1)
        # Groups with the same choices would ask the same question twice.
        choices = np.sort(pairs.gold[groups], axis=1)
        groups = groups[np.sort(np.unique(choices, axis=0, return_index=True)[1])]
        shown = pairs.gold[groups[:, others_of(rules.size)]]
        margin = pairs.each[:, groups[:, :, None], shown]
        return MadeGroups(lines[groups], np.moveaxis(margin, 0, -1))


def _pairs(lines: Ints, likeness: Likeness, gold: Ints, false: Bools, close: Ints | None) -> Pairs:
    """Compare the similarities of each question to its own gold and to those of others."""
    first = np.unique(gold, return_index=True)[1]
    question, own = np.unique(likeness.question[lines], return_inverse=True)
    shown = likeness.choice[lines[first]]
    products = [
        (encoder, dot_products(questions[question], choices[shown]))
        for encoder, questions, choices in likeness.views
    ]
    most = SUSPICIOUS * sum(encoder.weight for encoder, _ in products)
    alike = None if likeness.most_alike is None else _too_alike(likeness, shown)
    place = min(HARDEST, max(false.shape[1] // 2, 1))
    margin = np.empty(false.shape, dtype=np.int32)
    hardness = np.empty(lines.size, dtype=np.int32)
    each = np.empty((len(products), *false.shape), dtype=np.int8)
    for some in in_parts(lines.size):
        near, whole = np.zeros((2, *false[some].shape), dtype=np.int32)
        for number, (encoder, product) in enumerate(products):
            similar = product[own[some]]
            similar -= similar[np.arange(len(similar)), gold[some]][:, None]
            steps = in_units(similar, encoder)
            each[number, some] = _coarser(steps)
            near += encoder.weight * np.clip(steps, LEAST_GAIN, MOST_GAIN)
            whole += encoder.weight * steps
        never = ~false[some] | (whole > most)
        if alike is not None:
            never |= alike[gold[some]]
        np.copyto(near, NEVER, where=never)
        if close is not None:
            near += CLOSE * (close[lines[some]][:, None] == close[lines[first]])
        # In sixteen bits, which are partitioned fastest, those below are as hopeless.
        narrow = np.maximum(near, LOWEST).astype(np.int16)
        hardness[some] = np.partition(narrow, -place, axis=1)[:, -place]
        margin[some] = near
    of_other = np.take(margin, gold, axis=1)
    return Pairs(gold, of_other + of_other.T, hardness, each)


def _too_alike(likeness: Likeness, choices: Ints) -> Bools:
    """Return (choices, choices) which are too similar to be choices of the same question."""
    products = [
        (view.encoder, dot_products(view.choices[choices], view.choices[choices]))
        for view in likeness.views
    ]
    alike = np.empty((choices.size, choices.size), dtype=np.bool_)
    for some in in_parts(choices.size):
        total = sum_by_weight((encoder, product[some]) for encoder, product in products)
        alike[some] = total > likeness.most_similarity
    return alike


def _grown(pairs: Pairs, noise: Similarities, size: int) -> Ints:
    """Grow groups from the easiest questions on, adding the partner that is best for all."""
    free = np.ones(pairs.gold.size, dtype=np.bool_)
    base, total = noise.copy(), np.empty_like(noise)
    groups = []
    for seed in np.argsort(pairs.hardness + noise, kind="stable").tolist():
        if not free[seed] or pairs.hardness[seed] < HOPELESS:
            continue
        members = [seed]
        free[seed], base[seed] = False, NEVER
        np.add(base, pairs.mutual[seed], out=total)
        while True:
            best = int(total.argmax())
            if total[best] <= NEVER // 2:
                break
            members.append(best)
            if len(members) == size:
                break
            total[best] = NEVER * size * 2
            total += pairs.mutual[best]
        if len(members) == size:
            free[members], base[members] = False, NEVER
            groups.append(members)
    return np.array(groups, dtype=np.int64).reshape(-1, size)


@lru_cache(maxsize=64)
def _chances(weight: int, deviation: float) -> Similarities:
    """Return (256,) the probability that a choice is more similar than the gold, by its margin.

    ``deviation`` is that of the gold's similarity; negative margins come last, as in an index.
    """
    margin = np.arange(256, dtype=np.uint8).astype(np.int8) * (COARSER / UNIT)
    beyond = (margin - OVERLOOKED * (weight - 1)) / UNCERTAINTY - deviation
    normal = [(1 + math.erf(value / math.sqrt(2))) / 2 for value in beyond.tolist()]
    return np.asarray(np.rint(np.array(normal) * CHANCE).astype(np.int32))


def _expected_places(margin: Margins, weights: Sequence[int]) -> Ints:
    """Return (groups, K, encoders, K) the expected share of each place of the gold, in ``ONE``."""
    size = margin.shape[2] + 1
    total = np.zeros((*margin.shape[:2], len(weights), size), dtype=np.int64)
    for number, weight in enumerate(weights):
        for deviation in DEVIATIONS:
            chances = _chances(weight, deviation)
            # (places, groups, K): one choice after the other moves the gold down, or does not.
            place = np.zeros((size, *margin.shape[:2]), dtype=np.int32)
            place[0] = CHANCE
            for other in range(size - 1):
                moved = place * chances[margin[:, :, other, number]] // CHANCE
                place -= moved
                place[1:] += moved[:-1]
            total[:, :, number] += np.moveaxis(place, 0, -1)
    return total * (ONE // CHANCE) // len(DEVIATIONS)


def _selected(groups: MadeGroups, matcher: GroupMatcher, uses: int, least_rows: float) -> Ints:
    """Select groups such that the gold's places are uniform in each cell."""
    size, cell, equal = groups.members.shape[1], matcher.cell, matcher.equal
    weights = [view.encoder.weight for view in matcher.likeness.views]
    place = _expected_places(groups.margin, weights) - ONE // size
    cells = cell[groups.members]
    count = np.bincount(cells.ravel())
    cells = np.where(count[cells] >= LEAST_CELL, cells + 1, 0)
    cells = np.unique(cells, return_inverse=True)[1].reshape(cells.shape)
    price = np.zeros((int(cells.max()) + 1, *place.shape[2:]), dtype=np.int64)
    kinds = np.zeros_like(cells) if equal is None else equal[groups.members]
    kinds = np.unique(kinds, return_inverse=True)[1].reshape(cells.shape)
    worth = np.full(int(kinds.max()) + 1, ONE * ONE, dtype=np.int64)
    tolerance = np.full(size, TOLERANCE)
    tolerance[0] = FIRST_TOLERANCE
    part = np.zeros(cell.size, dtype=np.int64) if matcher.part is None else matcher.part
    part = part[groups.members[:, 0]]
    best, most = (1 << 62, 0, 0), int(np.unique(groups.members).size)
    members = groups.members.tolist()
    chosen = kept = np.empty(0, dtype=np.int64)
    for turn in range(PRICES):
        gain = worth[kinds].sum(axis=1) - np.einsum("gkep,gkep->g", price[cells], place)
        chosen = _within_uses(members, gain, uses, cell.size)
        # At first, every group is worth the same: so many rows are possible.
        of_part = np.bincount(part[chosen], minlength=int(part.max()) + 1)
        if turn == 0:
            most = min(most, chosen.size * size)
            large = of_part >= LEAST_PART * chosen.size
            least_of_part = np.where(large, LEAST_OF_PART * least_rows * of_part, 0)
        rows = cells[chosen].ravel()
        sums = np.zeros_like(price)
        np.add.at(sums, rows, place[chosen].reshape(-1, *place.shape[2:]))
        known = np.maximum(np.bincount(rows, minlength=len(price)), 1)
        share = sums // known[:, None, None]
        excess = share - np.clip(share, -tolerance, tolerance)
        off = int(np.abs(excess).max())
        mean = int(np.abs(sums.sum(axis=0)[:, 0]).max()) // max(rows.size, 1)
        few = int(rows.size < least_rows * most)
        few += int(np.count_nonzero(of_part < least_of_part))
        quality = (few, max(mean - FIRST_TOLERANCE * 3 // 2, 0), -int(rows.size))
        if quality < best or kept.size == 0:
            best, kept = quality, chosen
        if off == 0 and worth.size == 1:
            break
        price += min(1 + turn // 8, STEP) * excess
        number = np.bincount(kinds[chosen].ravel(), minlength=worth.size)
        more = number * ONE // max(rows.size, 1) - ONE // worth.size
        worth = np.clip(worth - more * ONE, LEAST_WORTH, MOST_WORTH)
    return chosen if worth.size > 1 else kept


def _within_uses(members: list[list[int]], gain: Ints, uses: int, questions: int) -> Ints:
    """Select groups of positive gain, the largest first, while their questions may be used."""
    used = [0] * questions
    chosen = []
    order = np.argsort(-gain, kind="stable")
    for group in order[gain[order] > 0].tolist():
        for question in members[group]:
            if used[question] >= uses:
                break
        else:
            for question in members[group]:
                used[question] += 1
            chosen.append(group)
    return np.array(chosen, dtype=np.int64)
