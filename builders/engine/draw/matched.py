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

Similarities are uncertain: another encoder, or another wording, sees them otherwise. So a choice
counts as more similar than the gold with a probability that depends on its margin, and what is made
uniform is the expected share of each place. Guarantee:

- Exactly: what :mod:`builders.engine.draw.pools` guarantees of groups, and the same groups on every
  machine: everything up to the expected shares is computed in integers.
- Approximately: the expected shares are uniform for each encoder, over all rows and, where there
  are enough, in each cell.
- Cost: O(questions * golds of a pool * dimensions) for the similarities of a pool, and
  O(rounds * questions * questions of a pool).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from builders.engine.draw.families import GroupRules, others_of
from builders.engine.draw.likeness import (
    SIMILARITY_UNIT,
    Encoder,
    Likeness,
    View,
    dot_products,
    similarities,
)
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.rng import RandomGenerator

UNIT = 64
"""Margins are counted in this fraction of an encoder's spread."""

SUSPICIOUS = 112
"""A choice that is so much more similar than the gold is not shown: of judged pairs two spreads
apart, readers found one in four true or arguable, of all one in eleven."""

DOUBTFUL = 19
"""A margin below this, about 0.3 of the spread, may well be the other way round."""

LEVELS = np.array([0.04, 0.25, 0.5, 0.94])
"""The probability that a choice is more similar than the gold: clearly not, rather not, rather
so, clearly so. Low, since selection prefers margins that were overestimated."""

LEAST_GAIN, MOST_GAIN = -64, 30
"""Margins are clipped when partners are chosen: one very similar choice is no better than some."""

NEVER = -(1 << 16)
"""The margin of choices that are not wrong."""

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

OPTIMISM = 0.0125
"""How much more often the gold is the most similar choice than expected, since rounded vectors and
other wordings differ from what groups are chosen by: twice this for an encoder of weight 1, four
times for one of weight 3, whose vectors are the longest."""

LEAST_ROWS, LEAST_OF_MADE = 0.7, 0.1
"""The least number of rows for each question that are kept even if places are not uniform: of
groups that were grown by similarity, and of groups made without it, whose gold is mostly the most
similar choice."""

LEAST_WORTH, MOST_WORTH = -ONE * ONE, ONE * ONE * 4
"""What a question of a kind may be worth when there are to be equally many of each kind."""

LEAST_CELL = 400
"""Cells with fewer questions have the prices of all."""


Steps = npt.NDArray[np.int32]


class Pairs(NamedTuple):
    """What is known of the questions of a pool and the golds of its questions.

    Attributes:
        gold: (questions,) the number of each question's gold in the pool.
        margin: (questions, golds) how much more a gold looks like a question than its own gold
            does, over all encoders; ``NEVER`` where it is not wrong.
        level: (encoders, questions, golds) index into ``LEVELS``.
    """

    gold: Ints
    margin: Steps
    level: npt.NDArray[np.uint8]


class Levels(NamedTuple):
    """Groups: ``members`` (groups, K) are questions, ``level`` (groups, K, K - 1, encoders)."""

    members: Ints
    level: npt.NDArray[np.uint8]


def _steps(margin: npt.NDArray[np.float32], encoder: Encoder) -> Steps:
    """Return margins in units of a fraction of the encoder's spread."""
    scaled: Steps = np.rint(margin * np.float32(UNIT / encoder.spread)).astype(np.int32)
    return scaled


def _level(steps: Steps) -> npt.NDArray[np.uint8]:
    """Return the index of each margin in ``LEVELS``."""
    level = (steps > -DOUBTFUL).astype(np.uint8) + (steps > 0) + (steps > DOUBTFUL)
    return np.asarray(level, dtype=np.uint8)


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
    """

    likeness: Likeness
    false: Callable[[Ints], tuple[Ints, Bools]]
    cell: Ints
    equal: Ints | None = None

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
        groups = Levels(*(np.concatenate(parts) for parts in zip(*made, strict=True)))
        if not groups.members.size:
            return groups.members
        return groups.members[_selected(groups, self, rules.uses, LEAST_ROWS)]

    def select(self, groups: Ints, rules: GroupRules) -> Ints:
        """Select those of some groups that together make the gold's place nearly uniform."""
        groups = groups[self.likeness.known[groups].all(axis=1)]
        if self.likeness.most_alike is not None:
            golds, choice = np.unique(self.likeness.choice[groups], return_inverse=True)
            choice = choice.reshape(groups.shape)
            alike = _too_alike(self.likeness, golds)[choice[:, :, None], choice[:, None, :]]
            groups = groups[~(alike & ~np.eye(groups.shape[1], dtype=np.bool_)).any(axis=(1, 2))]
        if not groups.size:
            return groups
        levels = self._levels(groups)
        return groups[_selected(levels, self, rules.uses, LEAST_OF_MADE)]

    def _levels(self, groups: Ints) -> Levels:
        """Compare the choices of groups, without their pools."""
        others = others_of(groups.shape[1])
        levels = np.empty((*groups.shape, groups.shape[1] - 1, len(self.likeness.views)), np.uint8)
        for number, (encoder, questions, choices) in enumerate(self.likeness.views):
            asked = questions[self.likeness.question[groups]].astype(np.int32)
            shown = choices[self.likeness.choice[groups]].astype(np.int32)
            similar = np.einsum("gid,gjd->gij", asked, shown).astype(np.float32)
            steps = _steps(similar - np.einsum("gii->gi", similar)[:, :, None], encoder)
            levels[..., number] = _level(np.take_along_axis(steps, others[None], axis=2))
        return Levels(groups, levels)

    def _of_pool(
        self, lines: Ints, rules: GroupRules, rng: RandomGenerator, close: Ints | None
    ) -> Levels:
        """Make the groups of all rounds in a pool; those that are not sound are left out."""
        pairs = _pairs(lines, self.likeness, *self.false(lines))
        if close is not None:
            own = close[lines]
            of_gold = own[np.unique(pairs.gold, return_index=True)[1]]
            pairs.margin[:] += CLOSE * (own[:, None] == of_gold)
        place = min(HARDEST, pairs.margin.shape[1])
        hardness = np.partition(pairs.margin, -place, axis=1)[:, -place]
        kept = []
        for turn in range(max(ROUNDS, min(MOST_ROUNDS, DRAWN // lines.size))):
            noise = rng.child("round", turn).below(NOISE, lines).astype(np.int32)
            groups = _grown(pairs, hardness, noise, rules.size)
            wrong = rules.sound(lines[groups]) | np.eye(rules.size, dtype=np.bool_)
            group, one, other = np.nonzero(~wrong)
            pairs.margin[groups[group, one], pairs.gold[groups[group, other]]] = NEVER
            kept.append(groups[wrong.all(axis=(1, 2))])
        groups = np.sort(np.concatenate(kept), axis=1)
        # Groups with the same choices would ask the same question twice.
        choices = np.sort(pairs.gold[groups], axis=1)
        groups = groups[np.sort(np.unique(choices, axis=0, return_index=True)[1])]
        shown = pairs.gold[groups[:, others_of(rules.size)]]
        level = pairs.level[:, groups[:, :, None], shown]
        return Levels(lines[groups], np.moveaxis(level, 0, -1))


def _pairs(lines: Ints, likeness: Likeness, gold: Ints, false: Bools) -> Pairs:
    """Compare the similarities of each question to its own gold and to those of others."""
    first = np.unique(gold, return_index=True)[1]
    question, own = np.unique(likeness.question[lines], return_inverse=True)
    margin, whole = np.zeros((2, *false.shape), dtype=np.int32)
    level = np.empty((len(likeness.views), *false.shape), dtype=np.uint8)
    for number, (encoder, questions, choices) in enumerate(likeness.views):
        similar = dot_products(questions[question], choices[likeness.choice[lines[first]]])[own]
        similar -= similar[np.arange(lines.size), gold][:, None]
        steps = _steps(similar, encoder)
        level[number] = _level(steps)
        margin += encoder.weight * np.clip(steps, LEAST_GAIN, MOST_GAIN)
        whole += encoder.weight * steps
    most = SUSPICIOUS * sum(view.encoder.weight for view in likeness.views)
    margin[~false | (whole > most)] = NEVER
    if likeness.most_alike is not None:
        margin[_too_alike(likeness, likeness.choice[lines[first]])[gold]] = NEVER
    return Pairs(gold, margin, level)


def _too_alike(likeness: Likeness, choices: Ints) -> Bools:
    """Return (choices, choices) which are too similar to be choices of the same question."""
    assert likeness.most_alike is not None
    views = [
        View(view.encoder, view.choices[choices], view.choices[choices]) for view in likeness.views
    ]
    weight = sum(view.encoder.weight for view in views)
    return np.asarray(similarities(views) > SIMILARITY_UNIT * likeness.most_alike * weight)


def _grown(pairs: Pairs, hardness: Steps, noise: Steps, size: int) -> Ints:
    """Grow groups from the easiest questions on, adding the partner that is best for all."""
    margin, gold = pairs.margin, pairs.gold
    back = np.ascontiguousarray(margin.T)
    free = np.ones(gold.size, dtype=np.bool_)
    groups = []
    for seed in np.argsort(hardness + noise, kind="stable").tolist():
        if not free[seed] or hardness[seed] < HOPELESS:
            continue
        members = [seed]
        free[seed] = False
        total = np.where(free, noise, NEVER)
        while len(members) < size:
            last = members[-1]
            total += np.maximum(margin[last][gold], NEVER) + back[gold[last]]
            best = int(total.argmax())
            if total[best] <= NEVER // 2:
                break
            members.append(best)
            free[best] = False
            total[best] = NEVER * size * 2
        if len(members) == size:
            groups.append(members)
        else:
            free[members[1:]] = True
    return np.array(groups, dtype=np.int64).reshape(-1, size)


def _place_shares(size: int) -> tuple[Floats, Ints]:
    """Return the probability of each place of the gold, by how many choices have which level.

    Returns:
        (codes, size) and what each level adds to a code.
    """
    base = size
    step = base ** np.arange(len(LEVELS) - 1)
    made = np.zeros((base ** (len(LEVELS) - 1), size))
    for code in range(len(made)):
        counts = [code // base**place % base for place in range(len(LEVELS) - 1)]
        if sum(counts) >= size:
            continue
        each = np.repeat(LEVELS, [size - 1 - sum(counts), *counts])
        share = np.ones(1)
        for chance in each:
            share = np.convolve(share, [1 - chance, chance])
        made[code] = share
    return made, np.concatenate([[0], step])


def _selected(groups: Levels, matcher: GroupMatcher, uses: int, least_rows: float) -> Ints:
    """Select groups such that the gold's places are uniform in each cell."""
    size, cell, equal = groups.members.shape[1], matcher.cell, matcher.equal
    weights = [view.encoder.weight for view in matcher.likeness.views]
    shares, step = _place_shares(size)
    # (groups, K, encoders, places)
    place = np.rint((shares - 1 / size) * ONE).astype(np.int64)[step[groups.level].sum(axis=2)]
    optimism = (OPTIMISM * (1 + np.array(weights)) * ONE).astype(np.int64)
    place[..., 0] += optimism
    place[..., 1:] -= optimism[:, None] // (size - 1)
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
    best, most = (1 << 62, 0, 0), int(np.unique(groups.members).size)
    chosen = kept = np.empty(0, dtype=np.int64)
    for turn in range(PRICES):
        gain = worth[kinds].sum(axis=1) - np.einsum("gkep,gkep->g", price[cells], place)
        chosen = _within_uses(groups.members, gain, uses, cell.size)
        # At first, every group is worth the same: so many rows are possible.
        most = min(most, chosen.size * size) if turn == 0 else most
        rows = cells[chosen].ravel()
        sums = np.zeros_like(price)
        np.add.at(sums, rows, place[chosen].reshape(-1, *place.shape[2:]))
        known = np.maximum(np.bincount(rows, minlength=len(price)), 1)
        share = sums // known[:, None, None]
        excess = share - np.clip(share, -tolerance, tolerance)
        off = int(np.abs(excess).max())
        mean = int(np.abs(sums.sum(axis=0)[:, 0]).max()) // max(rows.size, 1)
        few = int(rows.size < least_rows * most)
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


def _within_uses(members: Ints, gain: Ints, uses: int, questions: int) -> Ints:
    """Select groups of positive gain, the largest first, while their questions may be used."""
    used = [0] * questions
    chosen = []
    order = np.argsort(-gain, kind="stable")
    order = order[gain[order] > 0]
    for group, each in zip(order.tolist(), members[order].tolist(), strict=True):
        for question in each:
            if used[question] >= uses:
                break
        else:
            for question in each:
                used[question] += 1
            chosen.append(group)
    return np.array(chosen, dtype=np.int64)
