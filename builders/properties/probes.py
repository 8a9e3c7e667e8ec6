"""Property conjunction: what has both of two properties, and what has one but not the other?

Two probes over ConceptNet after Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020, section
4.4). Where ours differ, and why: docs/probes/property_conjunction.md.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from builders.engine.draw.balanced import first_of_each
from builders.engine.drops import DropLog
from builders.engine.plan import Plan
from builders.engine.probe import probe
from builders.engine.rows import plan_rows
from builders.lexicons import ConceptNetFirst, conceptnet_first
from builders.properties.options import WORDED, ExceptionOptions, PropertyOptions
from kb_cache.conceptnet.types import ConceptNet
from kbprobe.arrays import Ints, joined, lines_of
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED, SPLITS
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.properties.facts import Evidence
    from builders.properties.rows import Askable, PropertyChoices


def open_sources(options: PropertyOptions) -> ConceptNetFirst:
    """Load the knowledge bases that the options name."""
    return conceptnet_first(options.conceptnet, options.wordnet)


_DECLARED: dict[str, Any] = {
    "open": open_sources,
    "question_fields": ("properties", "relation_1", "object_1", "relation_2", "object_2"),
    "choice_fields": ("concept",),
    "controls": (NO_LANGUAGE, PERTURBED),
    "paper": "olmpics",
}


@probe("property_conjunction", options=PropertyOptions, **_DECLARED)
def property_conjunction(
    sources: ConceptNetFirst, options: PropertyOptions, rng: RandomGenerator
) -> Plan:
    """Which of three things has both of two properties?"""
    from builders.properties.rows import conjunctions

    evidence = _evidence(sources, options)
    askable = conjunctions(evidence)
    return _plan(sources, options, evidence, askable, both=True, rng=rng)


@probe("property_conjunction_but_not", options=ExceptionOptions, **_DECLARED)
def property_conjunction_but_not(
    sources: ConceptNetFirst, options: PropertyOptions, rng: RandomGenerator
) -> Plan:
    """Which of three things has one property but not another?"""
    from builders.properties.rows import exceptions

    evidence = _evidence(sources, options)
    askable = exceptions(evidence, options.cap_per_gold, rng.child("questions"))
    return _plan(sources, options, evidence, askable, both=False, rng=rng)


_RULES = {"relations", "contrast", "max_holders", "screen"} | {
    f"min_weight{name}" for name in ("", "_loose", "_firm")
}


def _evidence(sources: ConceptNetFirst, options: PropertyOptions) -> Evidence:
    """Gather the evidence, once for all options that take it by the same rules."""
    return _gathered(sources, PropertyOptions(**options.model_dump(include=_RULES)))


@lru_cache(maxsize=1)
def _gathered(sources: ConceptNetFirst, rules: PropertyOptions) -> Evidence:
    from builders.properties.facts import gather

    return gather(sources.conceptnet, sources.wordnet, rules)


def _plan(
    sources: ConceptNetFirst,
    options: PropertyOptions,
    evidence: Evidence,
    askable: Askable,
    both: bool,
    rng: RandomGenerator,
) -> Plan:
    """Split, draw, and lay out what can be asked."""
    from builders.properties.items import PropertyLayout
    from builders.properties.rows import PropertyPairs

    dropped = DropLog(evidence.dropped)
    rows, split = _drawn(sources.conceptnet, options, evidence, askable, dropped, rng)
    dropped.require(rows.line.size, "Loosen one of them, or use a larger ConceptNet.")
    lines, fact = np.unique(rows.line, return_inverse=True)
    asking = lines_of(askable[0], lines)
    if both:  # Either property may come first in the question, for all golds alike.
        gold, first, second = asking
        swap = rng.child("order").below(2, first, second) == 1
        asking = PropertyPairs(gold, np.where(swap, second, first), np.where(swap, first, second))
    layout = PropertyLayout(
        sources.conceptnet, sources.wordnet, evidence, asking, WORDED, negate=not both
    )
    gold = asking.gold[fact]
    nodes = evidence.concept[np.concatenate([gold[:, None], rows.nodes], axis=1)]
    return plan_rows(
        questions=layout.questions,
        choices=layout.choices,
        nodes=nodes,
        split=split,
        families=(options.contrast,),
        relation=layout.relation,
        concept=nodes[:, 0],
        facts=layout.facts,
        question=layout.question[fact],
        fact=fact,
        choice_hops=1,
        dropped=dropped,
    )


def _drawn(
    conceptnet: ConceptNet,
    options: PropertyOptions,
    evidence: Evidence,
    askable: Askable,
    dropped: DropLog,
    rng: RandomGenerator,
) -> tuple[PropertyChoices, Ints]:
    """Draw all rows, split by split; return them, and their splits."""
    from builders.properties.items import look_classes
    from builders.properties.rows import draw, repeated, split_concepts, with_both

    asking, sides = askable
    possible = with_both(sides, asking.gold.size)
    dropped.keep("questions without two kinds of distractors", possible)
    splits = split_concepts(evidence, options.split_shares, rng.child("splits"))
    near = lines_of(sides, splits[asking.gold[sides.row]] == splits[sides.node])
    left = with_both(near, asking.gold.size)
    dropped.drop("questions whose distractors are in another split", possible & ~left)
    row, near = repeated(
        lines_of(near, left[near.row]),
        options.perturbations,
        options.choices // 2,
        rng.child("copies"),
    )
    gold = asking.gold[row]
    lines = np.arange(row.size, dtype=np.int64)
    if options.cap_per_gold:
        lines = np.flatnonzero(first_of_each(gold, options.cap_per_gold, rng.child("cap"), lines))
    classes = look_classes(conceptnet, evidence.concept) if options.sampling == "balanced" else None
    drawn = joined(
        [
            draw(
                gold,
                lines[splits[gold[lines]] == split],
                near,
                options.choices - 1,
                classes,
                rng.child("split", split),
            )
            for split in range(len(SPLITS))
        ]
    )
    drawn = drawn._replace(line=row[drawn.line])
    asked, made = np.zeros((2, asking.gold.size), dtype=np.bool_)
    asked[row[lines]] = True
    made[drawn.line] = True
    dropped.drop("questions beyond --cap-per-gold", left & ~asked)
    dropped.drop("questions whose distractors cannot be balanced", asked & ~made)
    return drawn, splits[asking.gold[drawn.line]]
