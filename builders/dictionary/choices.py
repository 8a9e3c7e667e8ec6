"""Which definitions stand beside a gold: other senses of its word first, then of other words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
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
    """Put the senses in choice groups: all rows of a group show the same K definitions.

    The senses of a word, of one part of speech, stand together, as many as may. Groups are
    completed with senses of other words, of the same split and part of speech. Each sense of a
    group is asked about equally often: in as many contexts as all of them have.
    """
    contexts = _contexts(asked, rng)
    alike = set(asked.alike.tolist())
    word = asked.word.tolist()

    def fits(senses: Unit, sense: int) -> bool:
        return all(
            word[other] != word[sense] and other * asked.size + sense not in alike
            for other in senses
        )

    strata: dict[tuple[int, int, bool], list[Unit]] = defaultdict(list)
    choices = options.choices
    most = min(options.max_same_word + 1, choices)
    for split, unit in _units(asked, most, options.other_pos, alike, rng):
        several = min(len(contexts[sense]) for sense in unit) > 1
        strata[split, int(asked.kind[unit[0]]), several].append(unit)
    rows, nodes, same_word = [], [], []
    for stratum in sorted(strata):
        for group in pack_groups(strata[stratum], choices, fits):
            senses = [sense for unit in group for sense in unit]
            for time in range(min(len(contexts[sense]) for sense in senses)):
                for unit in group:
                    for sense in unit:
                        fellows = [other for other in unit if other != sense]
                        others = [other for other in senses if other not in unit]
                        rows.append(contexts[sense][time])
                        nodes.append([sense, *fellows, *others])
                        same_word.append(len(fellows))
    order = np.argsort(np.array(rows, dtype=np.int64))
    return SenseChoices(
        np.array(rows, dtype=np.int64)[order],
        np.array(nodes, dtype=np.int64).reshape(-1, choices)[order],
        np.array(same_word, dtype=np.int64)[order],
        (np.arange(len(rows), dtype=np.int64) // choices)[order],
    )


def _contexts(asked: SenseQuestions, rng: RandomGenerator) -> dict[int, list[int]]:
    """Return the rows that ask about each sense, in seeded order."""
    rows: dict[int, list[int]] = defaultdict(list)
    order = np.argsort(rng.child("contexts").bits(np.arange(asked.gold.size)), kind="stable")
    for row in order.tolist():
        rows[int(asked.gold[row])].append(row)
    return rows


def _units(
    asked: SenseQuestions, most: int, other_pos: bool, alike: set[int], rng: RandomGenerator
) -> Iterator[tuple[int, Unit]]:
    """Yield different senses of a word together, each with their split, words in seeded order.

    Where a word has more than ``most``, they are divided evenly; what is too much alike is divided.
    """
    senses, first = np.unique(asked.gold, return_index=True)
    kind = np.zeros_like(senses) if other_pos else asked.kind[senses]
    key = (asked.split[first] * (int(asked.kind.max(initial=0)) + 1) + kind) * asked.size
    key += asked.word[senses]
    order = np.lexsort((key, rng.child("units").bits(key)))
    for lines in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        left = senses[lines].tolist()
        while left:
            limit = -(-len(left) // -(-len(left) // most))
            shown: list[int] = []
            for sense in left:
                if len(shown) < limit and not any(
                    sense * asked.size + other in alike for other in shown
                ):
                    shown.append(sense)
            yield int(asked.split[first[lines[0]]]), tuple(shown)
            left = [sense for sense in left if sense not in shown]


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
