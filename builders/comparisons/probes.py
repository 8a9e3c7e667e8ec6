"""Comparisons of ages, of several ages, and of things: no graph, only an order.

After Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020, sections 3 and 4).
See docs/probes/comparisons.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from builders.comparisons.objects import Things, divided, load_things, object_plan, seen_alone
from builders.comparisons.options import (
    AGE_WORDINGS,
    MULTIHOP_WORDINGS,
    AgeOptions,
    MultihopOptions,
    ObjectOptions,
)
from builders.engine.plan import Column, Facts, Nodes, Plan, Questions
from builders.engine.probe import Variant, probe
from builders.engine.rows import RowArrays, plan_rows
from builders.engine.strategies import BalancedWordings
from builders.english.inflection import number_article, number_word
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.errors import UsageError
from kbprobe.format.items import Coded
from kbprobe.format.setups import CLOZE, NO_LANGUAGE, PERTURBED, QUESTION
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.engine.render.template_file import Template

DECLARED: dict[str, Any] = {
    "choice_fields": ("answer",),
    "setup": CLOZE,
    "controls": (NO_LANGUAGE, PERTURBED),
    "paper": "olmpics",
    "arguments_decide": True,
}
ANSWERS = ("younger", "older")

FAMILIES = {
    1: "1-4 years apart",
    5: "5-9 years apart",
    10: "10-19 years apart",
    20: "20 or more years apart",
}
"""Minimum difference in years of a family -> its name."""

VARIANTS = {
    "birth_year": Variant(
        "Years of birth in place of ages (--reference-year less the age): the greater "
        "number is now the younger person."
    ),
    "ages_in_year_frame": Variant("The ages in the sentence about years of birth."),
    "years_in_age_frame": Variant("The years of birth in the sentence about ages."),
    "out_of_range": Variant(
        "Ages that nobody has (215 to 230) in place of those of validation and test."
    ),
    "number_words": Variant("Ages spelled out."),
    "multiple_choice": Variant(
        "An open question without a mask, for models that read question and choice (setup mc_qa).",
        setup=QUESTION,
    ),
}
"""Variant of age_comparison -> what it asks."""

ORDINALS = ("first", "second", "third", "fourth", "fifth")
SUPERLATIVES = ("oldest", "youngest")

ARGUMENT_TARGET = 0.77
"""Maximum accuracy of an oracle that knows the range of ages and sees all but one of a row.

For two ages from any range, seeing one of them is enough in three quarters of all pairs.
"""

REFERENCE_YEAR = 2020
"""Variants with years of birth: the year in which the ages hold, so that an age of 21 is 1999."""

OUT_OF_RANGE = (215, 230)
"""Variant out_of_range: lowest and highest age. The lowest stands for the lowest of
--evaluation-ages, and so on; rows that do not fit are left out."""

BASE = 1 << 10
"""Greater than any age: ages are the digits of a question's key in this base."""


ENUMERATED = 1 << 20
"""Maximum number of possible sets that are enumerated; beyond it, sets are sampled."""


@dataclass(frozen=True)
class Integers:
    """The knowledge base of the age probes: the order of the integers."""

    name: str = "integers"
    version: str = "1"
    digest: str = "none: the order of the integers"
    licence: str = "CC0-1.0"


def drawn_sets(low: int, high: int, size: int, count: int, rng: RandomGenerator) -> Ints:
    """Draw different sets of different integers.

    Args:
        low: the lowest integer.
        high: the highest.
        size: integers in a set.
        count: how many sets, at most (0: all).
        rng: the random generator.

    Returns:
        (sets, size) integers, each row ascending, in the order drawn.

    Raises:
        UsageError: all sets are requested, and there are too many.
    """
    total = comb(high - low + 1, size)
    if total <= ENUMERATED:
        rank = np.argsort(rng.uniform(np.arange(total)), kind="stable")[: count or None]
    elif count == 0 or 4 * count > total:
        raise UsageError(f"there are {total:,} sets of {size} numbers; choose fewer rows")
    else:
        drawn = rng.below(total, np.arange(2 * count))
        rank = drawn[np.sort(np.unique(drawn, return_index=True)[1])][:count]
    return low + _unranked(rank, high - low + 1, size)


def _unranked(rank: Ints, numbers: int, size: int) -> Ints:
    """Return the sets of 0 .. numbers - 1 with these ranks (combinatorial number system)."""
    sets = np.empty((rank.size, size), dtype=np.int64)
    for at in range(size, 0, -1):
        below = np.array([comb(number, at) for number in range(numbers)], dtype=np.int64)
        sets[:, at - 1] = np.searchsorted(below, rank, side="right") - 1
        rank = rank - below[sets[:, at - 1]]
    return sets


def open_integers(_: AgeOptions | MultihopOptions) -> Integers:
    """Return the order of the integers; nothing has to be loaded."""
    return Integers()


def age_sets(
    options: AgeOptions | MultihopOptions, size: int, rng: RandomGenerator
) -> tuple[Ints, Ints]:
    """Draw sets of ages for train and for evaluation; return them, and the split of each.

    Args:
        options: the ranges, how many rows of each, and the shares of validation and test.
        size: ages in a set; each set is asked about in as many rows.
        rng: the random generator.
    """
    train, evaluation = (
        drawn_sets(*ages, size, max(limit // size, 1) if limit else 0, rng.child(name))
        for name, ages, limit in (
            ("train", options.train_ages, options.train_rows),
            ("evaluation", options.evaluation_ages, options.evaluation_rows),
        )
    )
    split = divided(len(evaluation), options.split_shares, rng.child("splits"))
    sets = np.concatenate([train, evaluation])
    return sets, np.concatenate([np.zeros(len(train), dtype=np.int64), split])


def set_names(sets: Ints) -> pa.Array:
    """Name sets of ages: "43, 67 and 102 years"."""
    shown = (list(map(str, ages)) for ages in sets.tolist())
    return pa.array([f"{', '.join(ages[:-1])} and {ages[-1]} years" for ages in shown])


@dataclass(frozen=True)
class AgePairs:
    """Two ages in each row, and where the row belongs.

    Attributes:
        ages: (rows, 2) the ages in the order in which the question shows them.
        split: (rows,) index into SPLITS.
        cluster: (rows,) the cluster, which contains both orders of the same ages.
    """

    ages: Ints
    split: Ints
    cluster: Coded


@probe(
    "age_comparison",
    options=AgeOptions,
    open=open_integers,
    question_fields=("age_1", "age_2", "article_1", "article_2", "form"),
    **DECLARED,
    variants=VARIANTS,
    wording_sets=AGE_WORDINGS,
)
def age_comparison(integers: Integers, options: AgeOptions, rng: RandomGenerator) -> Plan:
    """Is a person of one age younger or older than a person of another?"""
    sets, split = age_sets(options, 2, rng.child("sets"))
    line = np.arange(len(sets), dtype=np.int64)
    pairs = AgePairs(
        np.concatenate([sets, sets[:, ::-1]]),
        np.tile(split, 2),
        Coded(set_names(sets), np.tile(line, 2)),
    )
    ages, years = pairs.ages, REFERENCE_YEAR - pairs.ages
    low, high = OUT_OF_RANGE
    shifted = ages + (low - options.evaluation_ages[0])
    inside = np.flatnonzero(((low <= shifted) & (shifted <= high)).all(axis=1))
    variants = {
        "birth_year": _pair_plan(pairs, years, "year"),
        "ages_in_year_frame": _pair_plan(pairs, ages, "year"),
        "years_in_age_frame": _pair_plan(pairs, years, "age"),
        "out_of_range": _pair_plan(pairs, shifted, "age").take(inside),
        "number_words": _pair_plan(pairs, ages, "age", spell=number_word),
        "multiple_choice": _pair_plan(pairs, ages, "question"),
    }
    below = shares_below(ages, split=pairs.split, options=options)
    one = seen_alone("one of the two ages", below, ages.argmax(axis=1), 1, ARGUMENT_TARGET)
    return replace(_pair_plan(pairs, ages, "age"), variants=variants, oracles={"one age": one})


def shares_below(ages: Ints, split: Ints, options: AgeOptions | MultihopOptions) -> Floats:
    """Return for each age of a row the share of the row's range of ages that it surpasses."""
    ranges = np.array([options.train_ages, options.evaluation_ages])[np.minimum(split, 1)]
    low, high = ranges[:, :1], ranges[:, 1:]
    return np.asarray((ages - low) / (high - low))


def _pair_plan(
    pairs: AgePairs, numbers: Ints, form: str, spell: Callable[[int], str] = str
) -> Plan:
    """Plan questions about numbers that represent pairs of ages, in one form of the template.

    Args:
        pairs: the ages, which identify questions whatever numbers they show.
        numbers: (rows, 2) what is shown and compared.
        form: "age" or "question" (the greater number is older), or "year" (it is younger).
        spell: how a number is shown.
    """
    greater = numbers[:, 0] > numbers[:, 1]
    gold = np.where(greater == (form == "year"), 0, 1)
    facts = _pair_facts(numbers, greater, form)
    gap = np.abs(pairs.ages[:, 0] - pairs.ages[:, 1])
    family = np.searchsorted(list(FAMILIES), gap, side="right")
    fields = {"form": form, **age_fields(numbers, spell)}
    # Golds are balanced over the wordings of each split and family.
    carrier = pairs.split * (len(FAMILIES) + 1) + family
    key = pairs.ages[:, 0] * BASE + pairs.ages[:, 1]
    return plan_rows(
        RowArrays(
            nodes=np.stack([gold, 1 - gold], axis=1),
            split=pairs.split,
            family=family,
            concept=facts.subject.codes,
            choice_hops=1,
        ),
        questions=Questions.from_columns(key, fields, BalancedWordings(carrier)),
        choices=Nodes.from_columns(ANSWERS, field="answer"),
        families=list(FAMILIES.values()),
        relation="age",
        concepts=facts.subject.values,
        facts=facts,
        cluster=pairs.cluster,
    )


def age_fields(numbers: Ints, spell: Callable[[int], str] = str) -> dict[str, Column]:
    """Return the template fields of each of the numbers in a question: age_1, article_1, ..."""
    fields: dict[str, Column] = {}
    for at, column in enumerate(numbers.T.tolist(), start=1):
        fields[f"age_{at}"] = [spell(number) for number in column]
        fields[f"article_{at}"] = [number_article(number) for number in column]
    return fields


def _pair_facts(numbers: Ints, greater: Bools, form: str) -> Facts:
    shown, code = np.unique(numbers, return_inverse=True)
    subject, target = code.reshape(numbers.shape).T
    named = "born in {}" if form == "year" else "{} years"
    relations = ("before", "after") if form == "year" else ("less than", "greater than")
    return Facts.from_codes(
        subject,
        greater.astype(np.int64),
        target,
        pa.array([named.format(number) for number in shown.tolist()]),
        relations,
    )


def multihop_template(template: Template, options: MultihopOptions) -> Template:
    """Name one argument for each person."""
    arguments = tuple(f"age_{at + 1}" for at in range(options.choices))
    return replace(template, arguments=arguments)


@probe(
    "multihop_comparison",
    options=MultihopOptions,
    open=open_integers,
    question_fields=(
        "superlative",
        *(f"{name}_{at + 1}" for name in ("age", "article") for at in range(len(ORDINALS))),
    ),
    **DECLARED,
    fit=multihop_template,
    wording_sets=MULTIHOP_WORDINGS,
)
def multihop_comparison(integers: Integers, options: MultihopOptions, rng: RandomGenerator) -> Plan:
    """Which of several people, given by their ages, is the oldest or the youngest?

    Each set of ages is asked about as often as it has members, with the gold at each position once.
    What is asked for, the oldest or the youngest, changes from one set to the next, so that each is
    asked about the same number of sets in a split.
    """
    size = options.choices
    sets, set_split = age_sets(options, size, rng.child("sets"))
    turn = np.empty(len(sets), dtype=np.int64)
    for split in np.unique(set_split):
        here = np.flatnonzero(set_split == split)
        turn[here] = np.arange(here.size) % len(SUPERLATIVES)
    cluster = np.repeat(np.arange(len(sets), dtype=np.int64), size)
    position = np.tile(np.arange(size, dtype=np.int64), len(sets))
    superlative = turn[cluster]
    ages = _ordered(sets[cluster], position, superlative, rng.child("order"))
    split = set_split[cluster]
    below = shares_below(ages, split, options)
    below = np.where((superlative == SUPERLATIVES.index("oldest"))[:, None], below, 1 - below)
    oracles = {
        name: seen_alone(knows, below, position, seen, ARGUMENT_TARGET)
        for name, knows, seen in (
            ("first age", "the first age", 1),
            ("first ages", "all ages but the last", size - 1),
        )
    }
    plan = _set_plan(ages, position, superlative, split, Coded(set_names(sets), cluster))
    return replace(plan, oracles=oracles)


def _ordered(ages: Ints, position: Ints, superlative: Ints, rng: RandomGenerator) -> Ints:
    """Put the gold (highest or lowest age) of each row at its position, the rest in random order.

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


def _set_plan(ages: Ints, position: Ints, superlative: Ints, split: Ints, cluster: Coded) -> Plan:
    count, size = ages.shape
    distractors = np.tile(np.arange(size), (count, 1))
    distractors = distractors[distractors != position[:, None]].reshape(count, size - 1)
    facts = _set_facts(ages, position, distractors, superlative)
    return plan_rows(
        RowArrays(
            nodes=np.concatenate([position[:, None], distractors], axis=1),
            split=split,
            family=superlative + 1,
            concept=facts.subject.codes[facts.indptr[:-1]],
            hops=size - 1,
            choice_hops=size - 1,
        ),
        questions=_set_questions(ages, superlative, split),
        choices=Nodes.from_columns(ORDINALS, field="answer"),
        families=SUPERLATIVES,
        relation=pa.array(SUPERLATIVES).take(pa.array(superlative)),
        concepts=facts.subject.values,
        facts=facts,
        cluster=cluster,
    )


def _set_questions(ages: Ints, superlative: Ints, split: Ints) -> Questions:
    key = superlative.copy()
    for column in ages.T:
        key = key * BASE + column
    fields = age_fields(ages)
    unused = range(ages.shape[1] + 1, len(ORDINALS) + 1)
    fields |= {f"{name}_{at}": "" for at in unused for name in ("age", "article")}
    fields["superlative"] = pa.array(SUPERLATIVES).take(pa.array(superlative))
    carrier = superlative * (int(split.max()) + 1) + split
    return Questions.from_columns(key, fields, BalancedWordings(carrier))


def _set_facts(ages: Ints, position: Ints, distractors: Ints, superlative: Ints) -> Facts:
    """Return facts that compare the gold's age with each of the others."""
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


@probe(
    "object_comparison",
    options=ObjectOptions,
    open=lambda options: load_things(),
    question_fields=("x", "y", "article_1", "article_2", "dimension"),
    **DECLARED,
)
def object_comparison(things: Things, options: ObjectOptions, rng: RandomGenerator) -> Plan:
    """Is one thing typically larger or smaller than another?"""
    return object_plan(things, options, rng)
