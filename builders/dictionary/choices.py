"""Which definitions stand beside a gold: other senses of its word first, then of other words."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from builders.engine.draw.balanced import draw_uniform
from builders.engine.draw.families import Pool
from builders.engine.draw.groups import Unit, pack_groups
from kbprobe.arrays import Ints, contains
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.dictionary.options import WordSenseOptions

POOL_SAMPLE = 4
"""Random senses looked at for each distractor, under uniform sampling."""


@dataclass(frozen=True)
class SenseQuestions:
    """The questions to find distractors for: parallel arrays, and what is known of every sense.

    Attributes:
        gold: (rows,) sense.
        split: (rows,) index into SPLITS.
        word: (senses,) the headword.
        kind: (senses,) part of speech.
        alike: sorted keys ``sense * senses + sense`` of pairs too much alike to stand together.
    """

    gold: Ints
    split: Ints
    word: Ints
    kind: Ints
    alike: Ints

    @property
    def size(self) -> int:
        """Number of senses."""
        return int(self.word.size)


@dataclass(frozen=True)
class SenseChoices:
    """Rows and their choices.

    Attributes:
        rows: the questions that got all their distractors, ascending.
        nodes: (rows, K) the gold, then senses of its word, then senses of other words.
        same_word: (rows,) how many distractors are senses of the gold's word.
        group: (rows,) the choice group of each row; None: choices are drawn row by row.
    """

    rows: Ints
    nodes: Ints
    same_word: Ints
    group: Ints | None = None


def choose_in_groups(
    asked: SenseQuestions, options: WordSenseOptions, rng: RandomGenerator
) -> SenseChoices:
    """Put the questions in choice groups: all K rows of a group show the same K definitions.

    The questions about a word's senses of one part of speech stand together, as many as may. Groups
    are completed with questions about other words, of the same split and part of speech.
    """
    gold, word = asked.gold.tolist(), asked.word[asked.gold].tolist()
    alike = set(asked.alike.tolist())

    def fits(rows: Unit, row: int) -> bool:
        return all(
            word[other] != word[row] and gold[other] * asked.size + gold[row] not in alike
            for other in rows
        )

    strata: dict[tuple[int, int], list[Unit]] = defaultdict(list)
    choices = options.choices
    most = min(options.max_same_word + 1, choices)
    for unit in _units(asked, most, options.other_pos, alike, rng):
        strata[int(asked.split[unit[0]]), int(asked.kind[gold[unit[0]]])].append(unit)
    rows, nodes, same_word = [], [], []
    for stratum in sorted(strata):
        for group in pack_groups(strata[stratum], choices, fits):
            for unit in group:
                others = [gold[row] for other in group if other is not unit for row in other]
                for row in unit:
                    fellows = [gold[fellow] for fellow in unit if fellow != row]
                    rows.append(row)
                    nodes.append([gold[row], *fellows, *others])
                    same_word.append(len(fellows))
    order = np.argsort(np.array(rows, dtype=np.int64))
    number = np.arange(len(rows), dtype=np.int64) // choices
    return SenseChoices(
        np.array(rows, dtype=np.int64)[order],
        np.array(nodes, dtype=np.int64).reshape(-1, choices)[order],
        np.array(same_word, dtype=np.int64)[order],
        number[order],
    )


def _units(
    asked: SenseQuestions, most: int, other_pos: bool, alike: set[int], rng: RandomGenerator
) -> list[Unit]:
    """Put questions about different senses of a word together, in seeded order of the words.

    A unit holds as many senses as there are questions left about, those with the most first; where
    these are more than ``most``, they are divided evenly.
    """
    kind = np.zeros_like(asked.gold) if other_pos else asked.kind[asked.gold]
    key = (asked.split * (int(asked.kind.max(initial=0)) + 1) + kind) * asked.size
    key += asked.word[asked.gold]
    order = np.lexsort((key, rng.child("units").bits(key)))
    gold = asked.gold.tolist()
    units = []
    for rows in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        left: dict[int, list[int]] = defaultdict(list)
        for row in rows.tolist():
            left[gold[row]].append(row)
        while left:
            limit = -(-len(left) // -(-len(left) // most))
            shown: list[int] = []
            for sense in sorted(left, key=lambda sense: (-len(left[sense]), sense)):
                if len(shown) < limit and not any(
                    sense * asked.size + other in alike for other in shown
                ):
                    shown.append(sense)
            units.append(tuple(left[sense].pop() for sense in shown))
            left = {sense: some for sense, some in left.items() if some}
    return units


def choose_uniformly(
    asked: SenseQuestions, options: WordSenseOptions, rng: RandomGenerator
) -> SenseChoices:
    """Choose the distractors of each question by itself, all candidates alike, as published.

    Up to ``--max-same-word`` of them are golds of the split that are senses of the gold's word; the
    rest are golds of the split of its part of speech.
    """
    choices, most_same_word = options.choices, min(options.max_same_word, options.choices - 1)
    rows = np.arange(asked.gold.size, dtype=np.int64)
    kinds = int(asked.kind.max(initial=0)) + 1
    stratum = asked.split * kinds + asked.kind[asked.gold]
    golds = np.unique(np.stack([stratum, asked.gold]), axis=1)
    of_word = asked.split * asked.size + asked.word[asked.gold]
    words, word = np.unique(of_word, return_inverse=True)
    pools = {
        "same word": (Pool.from_pairs(words.size, word, asked.gold), word),
        "others": (Pool.from_pairs(3 * kinds, *golds), stratum),
    }
    drawn = {}
    for name, (pool, key) in pools.items():
        found = pool.candidates(key, POOL_SAMPLE * choices, rng.child(name))
        own, node = asked.gold[found.row], found.node
        same = asked.word[node] == asked.word[own]
        keep = (node != own) & ~contains(asked.alike, own * asked.size + node)
        keep &= same if name == "same word" else ~same
        keep &= (asked.kind[node] == asked.kind[own]) | (options.other_pos & same)
        count = most_same_word if name == "same word" else choices - 1
        drawn[name] = draw_uniform(found.take(keep), rows, count, rng.child(name, "draw")).nodes
    nodes = np.concatenate([asked.gold[:, None], drawn["same word"], drawn["others"]], axis=1)
    # Gaps go to the end; what is beyond K is cut off.
    order = np.argsort(nodes < 0, axis=1, kind="stable")[:, :choices]
    nodes = np.take_along_axis(nodes, order, axis=1)
    same_word = (drawn["same word"] >= 0).sum(axis=1)
    whole = (nodes >= 0).all(axis=1)
    for left in range(1, choices):
        for right in range(left + 1, choices):
            whole &= ~contains(asked.alike, nodes[:, left] * asked.size + nodes[:, right])
    return SenseChoices(rows[whole], nodes[whole], same_word[whole])
