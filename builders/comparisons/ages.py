"""Pairs of ages, each asked about in both orders, and what a paper's variants make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from builders.comparisons.numbers import divided, drawn_sets
from builders.comparisons.options import AgeOptions, AgesOptions
from builders.engine.plan import Column, Facts, Nodes, Plan, Questions
from builders.engine.rows import plan_rows
from builders.engine.strategies import BalancedWordings
from builders.english.articles import number_article
from builders.english.numbers import number_word
from kbprobe.arrays import Bools, Ints
from kbprobe.format.items import Coded
from kbprobe.rng import RandomGenerator

ANSWERS = ("younger", "older")

FAMILIES = {
    1: "1-4 years apart",
    5: "5-9 years apart",
    10: "10-19 years apart",
    20: "20 or more years apart",
}
"""The fewest years between two ages of a family -> its name."""

BASE = 1 << 10
"""More than any age: ages are the digits of a question's key."""


def age_sets(
    options: AgesOptions, size: int, rows: int, most: tuple[int, int], rng: RandomGenerator
) -> tuple[Ints, Ints]:
    """Draw sets of ages for train and for evaluation; return them, and the split of each.

    Args:
        options: the ranges and the shares of validation and test.
        size: ages in a set.
        rows: rows that are asked of each set.
        most: rows of train, and of validation and test together, at most (0: all).
        rng: the random generator.
    """
    train, evaluation = (
        drawn_sets(*ages, size, max(limit // rows, 1) if limit else 0, rng.child(name))
        for name, ages, limit in (
            ("train", options.train_ages, most[0]),
            ("evaluation", options.evaluation_ages, most[1]),
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
class Pairs:
    """Two ages in each row, and where the row belongs.

    Attributes:
        ages: (rows, 2) the ages in the order in which they are asked.
        split: (rows,) index into SPLITS.
        cluster: (rows,) both orders of the same ages.
    """

    ages: Ints
    split: Ints
    cluster: Coded


def age_plan(options: AgeOptions, rng: RandomGenerator) -> Plan:
    """Ask about pairs of ages in both orders, and the same again in every variant."""
    sets, split = age_sets(
        options, 2, 2, (options.train_rows, options.evaluation_rows), rng.child("sets")
    )
    cluster = np.arange(len(sets), dtype=np.int64)
    pairs = Pairs(
        np.concatenate([sets, sets[:, ::-1]]),
        np.tile(split, 2),
        Coded(set_names(sets), np.tile(cluster, 2)),
    )
    ages, years = pairs.ages, options.reference_year - pairs.ages
    low, high = options.out_of_range
    shifted = ages + (low - options.evaluation_ages[0])
    inside = np.flatnonzero(((low <= shifted) & (shifted <= high)).all(axis=1))
    variants = {
        "birth_year": _plan(pairs, years, "year"),
        "ages_in_year_frame": _plan(pairs, ages, "year"),
        "years_in_age_frame": _plan(pairs, years, "age"),
        "out_of_range": _plan(pairs, shifted, "age").take(inside),
        "number_words": _plan(pairs, ages, "age", spell=number_word),
        "multiple_choice": _plan(pairs, ages, "question"),
    }
    return replace(_plan(pairs, ages, "age"), variants=variants)


def _plan(
    pairs: Pairs,
    numbers: Ints,
    frame: str,
    spell: Callable[[int], str] = str,
) -> Plan:
    """Ask about numbers that stand for pairs of ages, in a frame of the template.

    Args:
        pairs: the ages: they tell questions apart, whatever they are asked with.
        numbers: (rows, 2) what is shown and compared.
        frame: "age" or "question", where the greater number is older, or "year", where it is
            younger.
        spell: how a number is shown.
    """
    greater = numbers[:, 0] > numbers[:, 1]
    gold = np.where(greater == (frame == "year"), 0, 1)
    facts = _facts(numbers, greater, frame)
    gap = np.abs(pairs.ages[:, 0] - pairs.ages[:, 1])
    family = np.searchsorted(list(FAMILIES), gap, side="right")
    return plan_rows(
        questions=_questions(pairs, numbers, frame, spell),
        choices=Nodes.from_columns(ANSWERS, field="answer"),
        nodes=np.stack([gold, 1 - gold], axis=1),
        split=pairs.split,
        families=list(FAMILIES.values()),
        family=family,
        relation="age",
        concept=facts.subject.codes,
        concepts=facts.subject.values,
        facts=facts,
        choice_hops=1,
        cluster=pairs.cluster,
    )


def _questions(pairs: Pairs, numbers: Ints, frame: str, spell: Callable[[int], str]) -> Questions:
    fields: dict[str, Column] = {"frame": frame}
    for at, column in enumerate(numbers.T.tolist(), start=1):
        fields[f"age_{at}"] = [spell(number) for number in column]
        fields[f"article_{at}"] = [number_article(number) for number in column]
    key = pairs.ages[:, 0] * BASE + pairs.ages[:, 1]
    return Questions.from_columns(key, fields, BalancedWordings(pairs.split))


def _facts(numbers: Ints, greater: Bools, frame: str) -> Facts:
    shown, code = np.unique(numbers, return_inverse=True)
    subject, target = code.reshape(numbers.shape).T
    named = "born in {}" if frame == "year" else "{} years"
    relations = ("before", "after") if frame == "year" else ("less than", "greater than")
    return Facts.from_codes(
        subject,
        greater.astype(np.int64),
        target,
        pa.array([named.format(number) for number in shown.tolist()]),
        relations,
    )
