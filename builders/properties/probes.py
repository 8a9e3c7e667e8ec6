"""Property conjunction: what has both of two properties, and what has one but not the other?

Two probes over ConceptNet after Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020, section
4.4).
See docs/probes/property_conjunction.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from builders.engine.audit.kin import holds_kin
from builders.engine.draw.balanced import first_of_each
from builders.engine.drops import DropLog
from builders.engine.plan import Flags, Oracle, Oracles, Plan, credit
from builders.engine.probe import probe
from builders.engine.rows import named_clusters, plan_rows
from builders.engine.strategies import ByChoiceGroup, Shuffled
from builders.lexicons import ConceptNetFirst, conceptnet_first
from builders.properties.facts import Evidence
from builders.properties.options import CAP_PER_QUESTION, WORDED, PropertyOptions
from builders.properties.rows import PropertyPairs
from kb_cache.conceptnet.types import ConceptNet
from kbprobe.arrays import Ints, lines_of
from kbprobe.columns import single_chunk
from kbprobe.format.items import Coded
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED, SPLITS
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.properties.groups import Triples
    from builders.properties.items import PropertyLayout
    from builders.properties.rows import Askable, PropertyPairs


def open_sources(options: PropertyOptions) -> ConceptNetFirst:
    """Load the knowledge bases that the options name."""
    return conceptnet_first(options.conceptnet, options.wordnet)


UNREVIEWED, TWO_PLACES = "unreviewed_property", "two_places"

ALIKE, DOUBTFUL_LACK = "similar_properties", "doubtful_lack"

DOUBTFUL_RELATIONS = ("MadeOf", "Desires")
"""Relations (the last parts of their names) whose objects few things surely lack."""

GROUP = 3
"""Number of questions, and of choices, of a choice group."""

_DECLARED: dict[str, Any] = {
    "open": open_sources,
    "question_fields": ("properties", "relation_1", "object_1", "relation_2", "object_2"),
    "choice_fields": ("concept",),
    "controls": (NO_LANGUAGE, PERTURBED),
    "paper": "olmpics",
    "flags": {
        UNREVIEWED: "no editor has listed what kinds of things may have one of the properties: "
        "statistics decide what lacks it",
        TWO_PLACES: "what is found at one place but not at another is asked for, and nearly "
        "anything is found nearly anywhere at times",
        DOUBTFUL_LACK: "what is not made of something or does not want something is asked for: "
        "there are pots of other materials, and a nose wants nothing",
        ALIKE: "the objects of both properties share a word or a stem (relaxing and relaxation), "
        "or the gold shares one with what it lacks",
    },
}


@probe("property_conjunction", options=PropertyOptions, **_DECLARED)
def property_conjunction(
    sources: ConceptNetFirst, options: PropertyOptions, rng: RandomGenerator
) -> Plan:
    """Which of three things has both of two properties?"""
    return _planned(sources, options, True, rng)


@probe("property_conjunction_but_not", options=PropertyOptions, **_DECLARED)
def property_conjunction_but_not(
    sources: ConceptNetFirst, options: PropertyOptions, rng: RandomGenerator
) -> Plan:
    """Which of three things has one property but not another?"""
    return _planned(sources, options, False, rng)


def _planned(
    sources: ConceptNetFirst, options: PropertyOptions, both: bool, rng: RandomGenerator
) -> Plan:
    """Draw the rows, in choice groups if there are three choices, and make the plan."""
    from builders.properties.groups import sharing_triples
    from builders.properties.rows import conjunctions, exceptions, split_concepts

    evidence = _evidence(sources, options)
    dropped = DropLog(evidence.dropped)
    # Negations cannot be negated again in plain words.
    askable = evidence.relation % 2 == 0
    if options.tier == "clean":
        askable = askable & evidence.reviewed
    triples = sharing_triples(evidence, askable, rng.child("triples"))
    size, shares = evidence.concept.size, options.split_shares
    splits = split_concepts(triples.nodes, size, shares, rng.child("splits"))
    if options.sampling == "balanced" and options.choices == GROUP:
        rows = _grouped(sources, options, evidence, triples, splits, dropped, both, rng)
    else:
        asked = conjunctions(evidence) if both else exceptions(evidence, rng.child("questions"))
        rows = _drawn(sources, options, evidence, asked, splits, dropped, both, rng)
    return _plan(sources, options, evidence, rows, dropped, both=both, rng=rng)


_RULES = {"relations", "min_weight", "max_holders", "screen"}


def _evidence(sources: ConceptNetFirst, options: PropertyOptions) -> Evidence:
    """Gather the evidence; cached by the rules in the options."""
    return _gathered(sources, options.only(_RULES))


@lru_cache(maxsize=1)
def _gathered(sources: ConceptNetFirst, rules: PropertyOptions) -> Evidence:
    from builders.properties.facts import gather

    return gather(sources.conceptnet, sources.wordnet, rules)


class _Drawn(NamedTuple):
    """Rows: questions with their golds, (rows, K - 1) distractors, and further columns."""

    asking: PropertyPairs
    others: Ints
    split: Ints
    flags: Flags
    order: Shuffled


def _plan(
    sources: ConceptNetFirst,
    options: PropertyOptions,
    evidence: Evidence,
    rows: _Drawn,
    dropped: DropLog,
    both: bool,
    rng: RandomGenerator,
) -> Plan:
    """Make the plan of the rows."""
    from builders.properties.items import PropertyLayout

    dropped.require(rows.split.size, "Loosen one of them, or use a larger ConceptNet.")
    asking = rows.asking
    if both:  # Either property may come first in the question, the same for all golds.
        _, first, second = asking
        swap = rng.child("order").below(2, first, second) == 1
        first, second = np.where(swap, second, first), np.where(swap, first, second)
        asking = asking._replace(first=first, second=second)
    asked, fact = np.unique(np.stack(asking), axis=1, return_inverse=True)
    fact = fact.ravel()
    layout = PropertyLayout(
        sources.conceptnet, sources.wordnet, evidence, type(asking)(*asked), WORDED, negate=not both
    )
    nodes = evidence.concept[np.concatenate([asking.gold[:, None], rows.others], axis=1)]
    plan = plan_rows(
        questions=layout.questions,
        choices=layout.choices,
        nodes=nodes,
        split=rows.split,
        families=("kind",),
        relation=layout.relation,
        concept=nodes[:, 0],
        cluster=_clusters(layout, layout.question[fact], rows.split),
        facts=layout.facts,
        question=layout.question[fact],
        fact=fact,
        choice_hops=1,
        order=rows.order,
        flags=rows.flags,
        dropped=dropped,
    )
    return replace(plan, oracles=property_oracles(evidence, asking, rows.others, not both))


def _flags(conceptnet: ConceptNet, evidence: Evidence, pairs: PropertyPairs, both: bool) -> Flags:
    from builders.properties.kinds import PLACE

    reviewed = evidence.reviewed[pairs.first] & evidence.reviewed[pairs.second]
    texts = single_chunk(conceptnet.concepts["text"])
    objects, concepts = (texts.take(pa.array(ids)) for ids in (evidence.object, evidence.concept))
    alike = holds_kin(objects, pairs.first, objects, pairs.second)
    flags = Flags.none(pairs.gold.size).mark(UNREVIEWED, ~reviewed).mark(ALIKE, alike)
    names = evidence.relation_names
    place = np.array([name.endswith(PLACE) for name in names])[evidence.relation]
    if both:
        return flags
    flags = flags.mark(TWO_PLACES, place[pairs.first] & place[pairs.second])
    doubtful = np.array([name.endswith(DOUBTFUL_RELATIONS) for name in names])[evidence.relation]
    flags = flags.mark(DOUBTFUL_LACK, doubtful[pairs.second])
    return flags.mark(ALIKE, holds_kin(objects, pairs.second, concepts, pairs.gold))


def _clusters(layout: PropertyLayout, question: Ints, split: Ints) -> Coded:
    """Return clusters: rows of a split with the same question, which share no choices."""
    names = layout.question_names
    return named_clusters(
        [f"{names[at]} ({SPLITS[part]})" for at, part in zip(question, split, strict=True)]
    )


def _drawn(
    sources: ConceptNetFirst,
    options: PropertyOptions,
    evidence: Evidence,
    askable: Askable,
    splits: Ints,
    dropped: DropLog,
    both: bool,
    rng: RandomGenerator,
) -> _Drawn:
    """Draw rows one by one, split by split: any candidate may be a distractor."""
    from builders.properties.rows import capped, draw, sides_of, with_both

    asking, sides = askable
    flags = _flags(sources.conceptnet, evidence, asking, both)
    left = with_both(sides, asking.gold.size)
    dropped.keep("questions without two kinds of distractors", left)
    left[left] = flags.take(left).of_tier(options.tier, dropped)
    near = lines_of(sides, left[sides.row] & (splits[asking.gold[sides.row]] == splits[sides.node]))
    together = with_both(near, asking.gold.size)
    dropped.drop("questions whose distractors are in another split", left & ~together)
    lines, others = [], []
    for part, _ in enumerate(SPLITS):
        here = rng.child("split", part)
        line = np.repeat(
            np.flatnonzero(together & (splits[asking.gold] == part)), options.perturbations
        )
        rows = np.arange(line.size, dtype=np.int64)
        question = asking.first[line] * evidence.relation.size + asking.second[line]
        rows = rows[first_of_each(question, CAP_PER_QUESTION, here.child("rows"), rows)]
        most = options.cap_per_gold or line.size
        rows = rows[first_of_each(asking.gold[line[rows]], most, here.child("cap"), rows)]
        dropped["questions beyond the caps"] += line.size - rows.size
        line = line[rows]
        mine = lines_of(asking, line)
        drawn = draw(mine, sides_of(near, line), options.choices - 1, here)
        dropped["questions with too few distractors"] += line.size - drawn.line.size
        mine = lines_of(mine, drawn.line)
        relations = evidence.relation[np.stack([mine.first, mine.second], axis=1)] // 2
        kept = capped(relations, options.max_share, here.child("share"))
        dropped["questions beyond --max-share"] += int((~kept).sum())
        drawn = lines_of(drawn, kept)
        lines.append(line[drawn.line])
        others.append(drawn.nodes)
    line = np.concatenate(lines)
    chosen = lines_of(asking, line)
    split = splits[chosen.gold]
    return _Drawn(chosen, np.concatenate(others), split, flags.take(line), Shuffled())


def _grouped(
    sources: ConceptNetFirst,
    options: PropertyOptions,
    evidence: Evidence,
    triples: Triples,
    splits: Ints,
    dropped: DropLog,
    both: bool,
    rng: RandomGenerator,
) -> _Drawn:
    """Draw the rows of choice groups."""
    from builders.properties.groups import conjunction_groups, exception_groups

    rng = rng.child("groups")
    if both:
        asking, others = conjunction_groups(evidence, triples, splits, options, rng)
    else:
        askable = np.zeros(evidence.relation.size, dtype=np.bool_)
        askable[triples.columns] = True
        deniable = askable
        if options.tier == "clean":
            names = np.array(evidence.relation_names)[evidence.relation]
            deniable = askable & ~np.isin(names, DOUBTFUL_RELATIONS)
        asking, others = exception_groups(evidence, askable, deniable, splits, options, rng)
    flags = _flags(sources.conceptnet, evidence, asking, both)
    kept = flags.of_tier(options.tier, dropped).reshape(-1, GROUP).all(axis=1).repeat(GROUP)
    asking = lines_of(asking, kept)
    group = np.arange(asking.gold.size, dtype=np.int64) // GROUP
    split = splits[asking.gold]
    return _Drawn(asking, others[kept], split, flags.take(kept), ByChoiceGroup(group))


TARGET = 2 / 3
"""Halfway between chance and certainty, with three choices."""


def property_oracles(
    evidence: Evidence, asking: PropertyPairs, others: Ints, negate: bool
) -> Oracles:
    """Return oracles that know everything about one property, and nothing about the other.

    Args:
        evidence: what concepts have and lack.
        asking: each row's question and gold, properties in the order of the question.
        others: (rows, K - 1) the distractors.
        negate: whether the second property is one that the gold lacks.
    """
    nodes = np.concatenate([asking.gold[:, None], others], axis=1)
    first = ~evidence.lacks[nodes, asking.first[:, None]]
    second = evidence.lacks[nodes, asking.second[:, None]] == negate
    return {
        "first": Oracle("the first property alone", credit(first), TARGET),
        "second": Oracle("the second property alone", credit(second), TARGET),
    }
