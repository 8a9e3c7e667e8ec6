"""Pairs of ages, each asked about in both orders, and what a paper's variants make of them.

After Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020, sections 3 and 4). Where ours
differs, and why: docs/probes/comparisons.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

import numpy as np
import pyarrow as pa

from builders.comparisons.numbers import Integers, divided, drawn_sets, open_integers
from builders.comparisons.options import AgeOptions, MultihopOptions, Wording
from builders.engine.plan import Column, Facts, Nodes, Plan, Questions
from builders.engine.probe import Variant, probe
from builders.engine.rows import plan_rows
from builders.engine.strategies import BalancedWordings
from builders.english.articles import number_article
from builders.english.numbers import number_word
from kbprobe.arrays import Bools, Ints
from kbprobe.errors import UsageError
from kbprobe.format.items import Coded
from kbprobe.format.setups import CLOZE, NO_LANGUAGE, PERTURBED, QUESTION
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.engine.render.template_file import Template

ANSWERS = ("younger", "older")

FAMILIES = {
    1: "1-4 years apart",
    5: "5-9 years apart",
    10: "10-19 years apart",
    20: "20 or more years apart",
}
"""The fewest years between two ages of a family -> its name."""

VARIANTS = {
    "birth_year": Variant(
        "Years of birth in place of ages (--reference-year less the age): the greater "
        "number is now the younger person."
    ),
    "ages_in_year_frame": Variant("The ages in the sentence about years of birth."),
    "years_in_age_frame": Variant("The years of birth in the sentence about ages."),
    "out_of_range": Variant(
        "Ages that nobody has (--out-of-range) in place of those of validation and test."
    ),
    "number_words": Variant("Ages spelled out."),
    "multiple_choice": Variant(
        "An open question without a mask, for models that read question and choice (setup mc_qa).",
        setup=QUESTION,
    ),
}
"""Variant of age_comparison -> what it asks."""

BASE = 1 << 10
"""More than any age: ages are the digits of a question's key."""


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


def chosen_wordings(template: Template, options: AgeOptions) -> Template:
    """Leave out the wordings of the families that ``--wording`` does not name.

    Raises:
        UsageError: none is left.
    """
    others = set(get_args(Wording)) - {options.wording}
    kept = tuple(one for one in template.questions if one.id.split("-")[0] not in others)
    if not kept:
        raise UsageError(
            f"{template.sources[-1]}: all wordings have ids of another family than --wording "
            f"{options.wording}; rename them, or choose another family"
        )
    return replace(template, questions=kept)


@probe(
    "age_comparison",
    options=AgeOptions,
    open=open_integers,
    question_fields=("age_1", "age_2", "article_1", "article_2", "form"),
    choice_fields=("answer",),
    setup=CLOZE,
    controls=(NO_LANGUAGE, PERTURBED),
    paper="olmpics",
    variants=VARIANTS,
    fit=chosen_wordings,
    arguments_decide=True,
)
def age_comparison(integers: Integers, options: AgeOptions, rng: RandomGenerator) -> Plan:
    """Is a person of one age younger or older than a person of another?"""
    sets, split = age_sets(options, 2, rng.child("sets"))
    line = np.arange(len(sets), dtype=np.int64)
    pairs = Pairs(
        np.concatenate([sets, sets[:, ::-1]]),
        np.tile(split, 2),
        Coded(set_names(sets), np.tile(line, 2)),
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


def _plan(pairs: Pairs, numbers: Ints, form: str, spell: Callable[[int], str] = str) -> Plan:
    """Ask about numbers that stand for pairs of ages, in one of the template's forms.

    Args:
        pairs: the ages: they tell questions apart, whatever they are asked with.
        numbers: (rows, 2) what is shown and compared.
        form: "age" or "question", where the greater number is older, or "year", where it is
            younger.
        spell: how a number is shown.
    """
    greater = numbers[:, 0] > numbers[:, 1]
    gold = np.where(greater == (form == "year"), 0, 1)
    facts = _facts(numbers, greater, form)
    gap = np.abs(pairs.ages[:, 0] - pairs.ages[:, 1])
    fields = {"form": form, **age_fields(numbers, spell)}
    key = pairs.ages[:, 0] * BASE + pairs.ages[:, 1]
    return plan_rows(
        questions=Questions.from_columns(key, fields, BalancedWordings(pairs.split)),
        choices=Nodes.from_columns(ANSWERS, field="answer"),
        nodes=np.stack([gold, 1 - gold], axis=1),
        split=pairs.split,
        families=list(FAMILIES.values()),
        family=np.searchsorted(list(FAMILIES), gap, side="right"),
        relation="age",
        concept=facts.subject.codes,
        concepts=facts.subject.values,
        facts=facts,
        choice_hops=1,
        cluster=pairs.cluster,
    )


def age_fields(numbers: Ints, spell: Callable[[int], str] = str) -> dict[str, Column]:
    """Return the template fields of each of the numbers in a question: age_1, article_1, ..."""
    fields: dict[str, Column] = {}
    for at, column in enumerate(numbers.T.tolist(), start=1):
        fields[f"age_{at}"] = [spell(number) for number in column]
        fields[f"article_{at}"] = [number_article(number) for number in column]
    return fields


def _facts(numbers: Ints, greater: Bools, form: str) -> Facts:
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
