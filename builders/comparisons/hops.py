"""Several ages at once: which of the people is the oldest, or the youngest?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from builders.comparisons.ages import BASE, age_sets, set_names
from builders.comparisons.options import MultihopOptions
from builders.engine.plan import Column, Facts, Nodes, Plan, Questions
from builders.engine.rows import plan_rows
from builders.engine.strategies import BalancedWordings
from builders.english.articles import number_article
from kbprobe.arrays import Ints
from kbprobe.format.items import Coded
from kbprobe.rng import RandomGenerator

ORDINALS = ("first", "second", "third", "fourth", "fifth")
SUPERLATIVES = ("oldest", "youngest")


def multihop_plan(options: MultihopOptions, rng: RandomGenerator) -> Plan:
    """Ask about sets of different ages, each as often as it has members.

    The gold stands at each position once. What is asked for, the oldest or the youngest, changes
    from one set to the next, so that each is asked about the same number of sets in a split.
    """
    size = options.choices
    sets, set_split = age_sets(
        options, size, size, (options.train_rows, options.evaluation_rows), rng.child("sets")
    )
    asked = np.array([SUPERLATIVES.index(name) for name in options.superlatives], dtype=np.int64)
    turn = np.empty(len(sets), dtype=np.int64)
    for split in np.unique(set_split):
        here = np.flatnonzero(set_split == split)
        turn[here] = asked[np.arange(here.size) % asked.size]
    cluster = np.repeat(np.arange(len(sets), dtype=np.int64), size)
    position = np.tile(np.arange(size, dtype=np.int64), len(sets))
    superlative = turn[cluster]
    ages = _ordered(sets[cluster], position, superlative, rng.child("order"))
    return _plan(ages, position, superlative, set_split[cluster], cluster, sets)


def _ordered(ages: Ints, position: Ints, superlative: Ints, rng: RandomGenerator) -> Ints:
    """Put the gold of each row, the highest or lowest age, at its position; the rest by lot.

    Args:
        ages: (rows, K) ascending.
        position: (rows,) the gold's place.
        superlative: (rows,) index into SUPERLATIVES.
        rng: the random generator.
    """
    rows, size = ages.shape
    line = np.arange(rows)
    highest = SUPERLATIVES.index("oldest")
    gold = np.where(superlative == highest, size - 1, 0)
    digits = (*ages.T, position, superlative)
    lots = np.stack([rng.uniform(*digits, np.full(rows, at)) for at in range(size)], axis=1)
    lots[line, gold] = 2.0  # last
    others = np.argsort(lots, axis=1)[:, :-1]
    place = np.arange(size)[None, :]
    shown = np.empty((rows, size), dtype=np.int64)
    shown[place == position[:, None]] = gold
    shown[place != position[:, None]] = others.ravel()
    return ages[line[:, None], shown]


def _plan(
    ages: Ints, position: Ints, superlative: Ints, split: Ints, cluster: Ints, sets: Ints
) -> Plan:
    count, size = ages.shape
    distractors = np.tile(np.arange(size), (count, 1))
    distractors = distractors[distractors != position[:, None]].reshape(count, size - 1)
    facts = _facts(ages, position, distractors, superlative)
    return plan_rows(
        questions=_questions(ages, superlative, split),
        choices=Nodes.from_columns(ORDINALS, field="answer"),
        nodes=np.concatenate([position[:, None], distractors], axis=1),
        split=split,
        families=SUPERLATIVES,
        family=superlative + 1,
        relation=pa.array(SUPERLATIVES).take(pa.array(superlative)),
        concept=facts.subject.codes[facts.indptr[:-1]],
        concepts=facts.subject.values,
        facts=facts,
        hops=size - 1,
        choice_hops=size - 1,
        cluster=Coded(set_names(sets), cluster),
    )


def _questions(ages: Ints, superlative: Ints, split: Ints) -> Questions:
    size = ages.shape[1]
    key = superlative.copy()
    for column in ages.T:
        key = key * BASE + column
    fields: dict[str, Column] = {}
    for at in range(len(ORDINALS)):
        shown = ages[:, at].tolist() if at < size else []
        fields[f"age_{at + 1}"] = [str(age) for age in shown] or ""
        fields[f"article_{at + 1}"] = [number_article(age) for age in shown] or ""
    fields["superlative"] = pa.array(SUPERLATIVES).take(pa.array(superlative))
    carrier = superlative * (int(split.max()) + 1) + split
    return Questions.from_columns(key, fields, BalancedWordings(carrier))


def _facts(ages: Ints, position: Ints, distractors: Ints, superlative: Ints) -> Facts:
    """The gold's age compared to each of the others."""
    shown, code = np.unique(ages, return_inverse=True)
    code = code.reshape(ages.shape)
    line = np.arange(len(ages))[:, None]
    others = distractors.shape[1]
    return Facts.from_codes(
        np.repeat(code[line[:, 0], position], others),
        np.repeat(superlative, others),
        code[line, distractors].ravel(),
        pa.array([f"{age} years" for age in shown.tolist()]),
        ("greater than", "less than"),
        others,
    )
