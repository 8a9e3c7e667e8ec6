"""Comparisons of ages, of several ages, and of things: no graph, only an order.

After Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020, sections 3 and 4). Where ours
differ, and why: docs/probes/comparisons.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from builders.comparisons.ages import age_plan
from builders.comparisons.hops import ORDINALS, multihop_plan
from builders.comparisons.numbers import Integers
from builders.comparisons.objects import Things, load_things, object_plan
from builders.comparisons.options import AgeOptions, MultihopOptions, ObjectOptions, Wording
from builders.engine.plan import Plan
from builders.engine.probe import Variant, probe
from kbprobe.errors import UsageError
from kbprobe.format.setups import CLOZE, NO_LANGUAGE, PERTURBED, QUESTION
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.engine.render.template_file import Template

CONTROLS = (NO_LANGUAGE, PERTURBED)

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


def open_integers(_: AgeOptions | MultihopOptions) -> Integers:
    """Return the order of the integers: nothing has to be loaded."""
    return Integers()


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
    question_fields=("age_1", "age_2", "article_1", "article_2", "frame"),
    choice_fields=("answer",),
    setup=CLOZE,
    controls=CONTROLS,
    paper="olmpics",
    variants=VARIANTS,
    fit=chosen_wordings,
    arguments_decide=True,
)
def age_comparison(integers: Integers, options: AgeOptions, rng: RandomGenerator) -> Plan:
    """Is a person of one age younger or older than a person of another?"""
    return age_plan(options, rng)


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
    controls=CONTROLS,
    paper="olmpics",
    fit=one_argument_each,
    arguments_decide=True,
)
def multihop_comparison(integers: Integers, options: MultihopOptions, rng: RandomGenerator) -> Plan:
    """Which of several people, given by their ages, is the oldest or the youngest?"""
    return multihop_plan(options, rng)


def open_things(_: ObjectOptions) -> Things:
    """Load the table of estimates, once in a process."""
    return load_things()


@probe(
    "object_comparison",
    options=ObjectOptions,
    open=open_things,
    question_fields=("x", "y", "article_1", "article_2", "dimension"),
    choice_fields=("answer",),
    setup=CLOZE,
    controls=CONTROLS,
    paper="olmpics",
    arguments_decide=True,
)
def object_comparison(things: Things, options: ObjectOptions, rng: RandomGenerator) -> Plan:
    """Is one thing typically larger or smaller than another?"""
    return object_plan(things, options, rng)
