"""Blocks of words that share an answer, and choice groups made of three blocks.

A *block* is a set of words with the same answer, any two of which make a question. Three blocks
with different answers form a group: all of its questions show the three answers, and each answer is
gold equally often. A word with its answer is in one block only, so that all rows about them show
the same choices, the distractors as often as the gold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from builders.taxonomy.options import TREES
from builders.taxonomy.questions import AskableTaxonomy
from kbprobe.arrays import Ints
from kbprobe.format.setups import SPLITS
from kbprobe.rng import RandomGenerator

BLOCK = 19
"""Maximum number of words of a block: each is asked about with all others."""

GROUP = 3

SHARED_WORDS, SHARED_PART = 2, 0.05
"""Two answers cannot be in one group if at least this number of words, and this share of those of
the smaller answer, are or may be both: something said to be a nut may also be called a fruit."""

AMPLE_PART = 0.75
"""Among blocks that leave at least this share of the first block's words, the nearest join it."""

OVERLAPPING = ("person", "plant")
"""Trees in which no two answers can be in one group: a guardian may be an employee, and few people
know which bushes are herbs."""

Lines = tuple[int, ...]


class AnswerBlock(NamedTuple):
    """Lines of ``AskableTaxonomy.pairs`` with one answer, of which any two make a question."""

    answer: int
    lines: Lines


class ChoiceGroups(NamedTuple):
    """Questions in groups of three rows: parallel arrays, a line for each row.

    ``x`` and ``y`` are lines of the pairs, ``nodes`` (rows, 2) the distractors, ``kin`` (rows, 2)
    whether they are at the gold's level, and ``group`` the number of the group of rows that share
    their choices, each of which is the gold of one row.
    """

    x: Ints
    y: Ints
    nodes: Ints
    kin: Ints
    group: Ints


def choice_groups(askable: AskableTaxonomy, rng: RandomGenerator) -> ChoiceGroups:
    """Divide the words of each split into blocks, and put blocks into groups."""
    rows: list[tuple[int, int, int, int, bool, bool, int]] = []
    fits = _BlockFit(askable)
    split_of = askable.split[askable.pairs.answer]
    group = 0
    for split in range(len(SPLITS)):
        lines = np.flatnonzero(split_of == split)
        found = _blocks(askable, lines, rng.child("blocks", split))
        for blocks in _grouped(found, fits, rng.child("groups", split)):
            answers = [block.answer for block in blocks]
            couples = [list(combinations(block.lines, 2)) for block in blocks]
            for trio in zip(*couples, strict=True):
                for at, (x, y) in enumerate(trio):
                    one, other = (answers[i] for i in range(GROUP) if i != at)
                    near = (fits.kin(answers[at], one), fits.kin(answers[at], other))
                    rows.append((x, y, one, other, *near, group))
                group += 1
    table = np.array(rows, dtype=np.int64).reshape(-1, 7)
    return ChoiceGroups(table[:, 0], table[:, 1], table[:, 2:4], table[:, 4:6], table[:, 6])


class _BlockFit:
    """Look-ups of which answers and words fit together."""

    def __init__(self, askable: AskableTaxonomy) -> None:
        self._askable = askable
        size = len(askable.taxonomy)
        pairs = askable.pairs
        denied = askable.undeniable
        word, other = denied // size, denied % size
        self._may_be: dict[int, set[int]] = {}
        asked = np.isin(other, pairs.answer) & np.isin(word, pairs.word)
        for one, answer in zip(word[asked].tolist(), other[asked].tolist(), strict=True):
            self._may_be.setdefault(answer, set()).add(one)
        self._word = pairs.word.tolist()
        general = askable.general
        self.level = {answer: float(general[answer]) for answer in set(pairs.answer.tolist())}
        kin = askable.kin.expand(np.unique(pairs.answer))
        answers = np.unique(pairs.answer)[kin[0]]
        self._kin = set(zip(answers.tolist(), kin[1].tolist(), strict=True))
        self._apart: dict[tuple[int, int], bool] = {}

    def kin(self, one: int, other: int) -> bool:
        """Return whether two answers are at the same level of the taxonomy."""
        return (one, other) in self._kin

    def nearness(self, one: int, other: int) -> int:
        """Return 0 for answers of different trees, 1 for the same tree, 2 for the same level."""
        return int(self.same_tree(one, other)) + int(self.kin(one, other))

    def same_tree(self, one: int, other: int) -> bool:
        """Return whether two answers are of the same tree."""
        return bool(self._askable.tree[one] == self._askable.tree[other])

    def _tree_name(self, answer: int) -> str:
        return list(TREES)[int(self._askable.tree[answer])]

    def apart(self, one: int, other: int) -> bool:
        """Return whether hardly any word fits both answers, and neither answer is the other."""
        key = min(one, other), max(one, other)
        if key not in self._apart:
            ends = np.array(key)
            deny = bool(self._askable.deniable(ends, ends[::-1]).all())
            left, right = (self._may_be.get(answer, set()) for answer in key)
            shared = len(left & right)
            few = min(len(left), len(right))
            close = self.same_tree(*key) and self._tree_name(one) in OVERLAPPING
            few_shared = shared < SHARED_WORDS or shared < SHARED_PART * few
            self._apart[key] = deny and not close and few_shared
        return self._apart[key]

    def false_of(self, answer: int, lines: Lines) -> Lines:
        """Return the lines whose word is certainly not an answer."""
        some = self._may_be.get(answer, set())
        return tuple(line for line in lines if self._word[line] not in some)


def _blocks(askable: AskableTaxonomy, lines: Ints, rng: RandomGenerator) -> list[AnswerBlock]:
    """Divide the lines of each answer into blocks, as evenly as their words allow."""
    most = min(BLOCK, askable.options.cap_per_word + 1) if askable.options.cap_per_word else BLOCK
    cap = askable.options.cap_per_gold
    found: list[AnswerBlock] = []
    answer = askable.pairs.answer[lines]
    tie = rng.bits(answer, askable.pairs.word[lines])
    order = lines[np.lexsort((tie, answer))]
    for own in np.split(order, np.flatnonzero(np.diff(askable.pairs.answer[order])) + 1):
        left = own.tolist()
        if len(left) < 2:
            continue
        asks = _couples(askable, own)
        size = -(-len(left) // -(-len(left) // most))
        room = cap or len(left) * most
        while len(left) > 1:
            block: list[int] = []
            for line in left:
                if len(block) < size and all((line, other) in asks for other in block):
                    block.append(line)
            while len(block) * (len(block) - 1) // 2 > room:
                block.pop()
            left = [line for line in left if line not in block] if len(block) > 1 else left[1:]
            room -= len(block) * (len(block) - 1) // 2
            if len(block) > 1:
                found.append(AnswerBlock(int(askable.pairs.answer[block[0]]), tuple(block)))
            if room < 1:
                break
    return found


def _couples(askable: AskableTaxonomy, lines: Ints) -> set[tuple[int, int]]:
    """Return, both ways, the pairs of an answer's lines that make a question."""
    at, to = np.triu_indices(lines.size, 1)
    x, y = lines[at], lines[to]
    kept = askable.makes_question(x, y)
    found = list(zip(x[kept].tolist(), y[kept].tolist(), strict=True))
    return {*found, *((y, x) for x, y in found)}


def _grouped(
    blocks: Sequence[AnswerBlock], fits: _BlockFit, rng: RandomGenerator
) -> Iterator[tuple[AnswerBlock, ...]]:
    """Yield groups of three blocks of equal size with different answers.

    Large blocks come first. Their partners have answers at the same level, or of the same tree, if
    that keeps most of their words. Words left over may join another group.
    """
    tie = rng.bits(
        np.array([block.answer for block in blocks], dtype=np.int64),
        np.array([block.lines[0] for block in blocks], dtype=np.int64),
    ).tolist()
    lot = {block.lines[0]: tie[at] for at, block in enumerate(blocks)}
    waiting = sorted(blocks, key=lambda block: (-len(block.lines), lot[block.lines[0]]))

    answers = sorted({block.answer for block in blocks})
    relatives = {
        one: sum(fits.nearness(one, other) > 0 and fits.apart(one, other) for other in answers)
        for one in answers
    }

    def cut(block: AnswerBlock, *others: int) -> AnswerBlock:
        lines = block.lines
        for answer in others:
            lines = fits.false_of(answer, lines)
        return AnswerBlock(block.answer, lines)

    def best(first: AnswerBlock, others: Sequence[AnswerBlock]) -> AnswerBlock | None:
        def rank(other: AnswerBlock) -> tuple[bool, int, int, int, float, int]:
            room = min(len(cut(first, other.answer).lines), len(cut(other, first.answer).lines))
            near = fits.nearness(first.answer, other.answer)
            # Answers with partners at their own level are left to these.
            free = 0 if near else relatives[other.answer]
            gap = abs(fits.level[first.answer] - fits.level[other.answer])
            ample = room >= AMPLE_PART * len(first.lines)
            return not ample, -near, free, -room, round(gap, 1), lot[other.lines[0]]

        able = [other for other in others if fits.apart(first.answer, other.answer)]
        return min(able, key=rank, default=None)

    while waiting:
        first = waiting.pop(0)
        second = best(first, waiting)
        if second is None:
            continue
        others = [
            block
            for block in waiting
            if block is not second and fits.apart(second.answer, block.answer)
        ]
        third = best(cut(first, second.answer), others)
        if third is None:
            continue
        trio = (first, second, third)
        cuts = [cut(own, *(one.answer for one in trio if one is not own)) for own in trio]
        size = min(len(block.lines) for block in cuts)
        if size < 2:
            continue
        waiting.remove(second)
        waiting.remove(third)
        chosen = tuple(AnswerBlock(block.answer, block.lines[:size]) for block in cuts)
        yield chosen
        for own, used in zip(trio, chosen, strict=True):
            rest = tuple(line for line in own.lines if line not in used.lines)
            if len(rest) > 1:
                lot[rest[0]] = lot.get(rest[0], lot[own.lines[0]])
                waiting.append(AnswerBlock(own.answer, rest))
        waiting.sort(key=lambda block: (-len(block.lines), lot[block.lines[0]]))
