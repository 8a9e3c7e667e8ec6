"""Several ages at once: which of the people is the oldest, or the youngest?

After Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020). Where ours differs, and why:
docs/probes/comparisons.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from builders.comparisons.ages import BASE, age_fields, age_sets, set_names
from builders.comparisons.numbers import Integers, open_integers
from builders.comparisons.options import MultihopOptions
from builders.engine.plan import Facts, Nodes, Plan, Questions
from builders.engine.probe import probe
from builders.engine.rows import plan_rows
from builders.engine.strategies import BalancedWordings
from kbprobe.arrays import Ints
from kbprobe.format.items import Coded
from kbprobe.format.setups import CLOZE, NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.engine.render.template_file import Template

ORDINALS = ("first", "second", "third", "fourth", "fifth")
SUPERLATIVES = ("oldest", "youngest")


def one_argument_each(template: Template, options: MultihopOptions) -> Template:
    """Name as many arguments as there are people."""
    return replace(template, arguments=tuple(f"age_{at + 1}" for at in range(options.choices)))


@probe(
    "multihop_comparison",
    options=MultihopOptions,
    open=open_integers,
    question_fields=(
        "superlative",
        *(f"{name}_{at + 1}" for name in ("age", "article") for at in range(len(ORDINALS))),
    ),
    choice_fields=("answer",),
    setup=CLOZE,
    controls=(NO_LANGUAGE, PERTURBED),
    paper="olmpics",
    fit=one_argument_each,
    arguments_decide=True,
)
def multihop_comparison(integers: Integers, options: MultihopOptions, rng: RandomGenerator) -> Plan:
    """Which of several people, given by their ages, is the oldest or the youngest?

    Each set of ages is asked about as often as it has members, with the gold at each position once.
    What is asked for, the oldest or the youngest, changes from one set to the next, so that each is
    asked about the same number of sets in a split.
    """
    size = options.choices
    sets, set_split = age_sets(options, size, rng.child("sets"))
    asked = np.array([SUPERLATIVES.index(name) for name in options.superlatives], dtype=np.int64)
    turn = np.empty(len(sets), dtype=np.int64)
    for split in np.unique(set_split):
        here = np.flatnonzero(set_split == split)
        turn[here] = asked[np.arange(here.size) % asked.size]
    cluster = np.repeat(np.arange(len(sets), dtype=np.int64), size)
    position = np.tile(np.arange(size, dtype=np.int64), len(sets))
    superlative = turn[cluster]
    ages = _ordered(sets[cluster], position, superlative, rng.child("order"))
    return _plan(ages, position, superlative, set_split[cluster], Coded(set_names(sets), cluster))


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


def _plan(ages: Ints, position: Ints, superlative: Ints, split: Ints, cluster: Coded) -> Plan:
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
        cluster=cluster,
    )


def _questions(ages: Ints, superlative: Ints, split: Ints) -> Questions:
    key = superlative.copy()
    for column in ages.T:
        key = key * BASE + column
    fields = age_fields(ages)
    unused = range(ages.shape[1] + 1, len(ORDINALS) + 1)
    fields |= {f"{name}_{at}": "" for at in unused for name in ("age", "article")}
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
