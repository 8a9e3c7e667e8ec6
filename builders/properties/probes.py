"""Property conjunction: what has both of two properties, and what has one but not the other?

Two probes over ConceptNet after Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020, section
4.4). Where ours differ, and why: docs/probes/property_conjunction.md.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from builders.engine.audit.kin import holds_kin
from builders.engine.draw.balanced import first_of_each
from builders.engine.drops import DropLog
from builders.engine.flags import Flags
from builders.engine.plan import Plan
from builders.engine.probe import probe
from builders.engine.rows import named_clusters, plan_rows
from builders.lexicons import ConceptNetFirst, conceptnet_first
from builders.properties.options import WORDED, PropertyOptions
from kb_cache.conceptnet.types import ConceptNet
from kbprobe.arrays import Ints, joined, lines_of
from kbprobe.columns import single_chunk
from kbprobe.format.items import Coded
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED, SPLITS
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.properties.facts import Evidence
    from builders.properties.items import PropertyLayout
    from builders.properties.rows import Askable, PropertyChoices


def open_sources(options: PropertyOptions) -> ConceptNetFirst:
    """Load the knowledge bases that the options name."""
    return conceptnet_first(options.conceptnet, options.wordnet)


UNREVIEWED, TWO_PLACES = "unreviewed_property", "two_places"

ALIKE, DOUBTFUL_LACK = "similar_properties", "doubtful_lack"

DOUBTFUL_RELATIONS = ("MadeOf", "Desires")
"""Relations (the last parts of their names) that few things surely lack."""

_DECLARED: dict[str, Any] = {
    "open": open_sources,
    "question_fields": ("properties", "relation_1", "object_1", "relation_2", "object_2"),
    "choice_fields": ("concept",),
    "controls": (NO_LANGUAGE, PERTURBED),
    "paper": "olmpics",
    "flags": {
        UNREVIEWED: "no editor has listed what kinds of things may have one of the properties: "
        "statistics decide what lacks it",
        TWO_PLACES: "both properties are places, and nearly anything is found nearly anywhere at "
        "times",
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
    from builders.properties.rows import conjunctions

    evidence = _evidence(sources, options)
    askable = conjunctions(evidence)
    return _plan(sources, options, evidence, askable, both=True, rng=rng)


@probe("property_conjunction_but_not", options=PropertyOptions, **_DECLARED)
def property_conjunction_but_not(
    sources: ConceptNetFirst, options: PropertyOptions, rng: RandomGenerator
) -> Plan:
    """Which of three things has one property but not another?"""
    from builders.properties.rows import exceptions

    evidence = _evidence(sources, options)
    askable = exceptions(evidence, rng.child("questions"))
    return _plan(sources, options, evidence, askable, both=False, rng=rng)


_RULES = {"relations", "contrast", "max_holders", "screen"} | {
    f"min_weight{name}" for name in ("", "_loose", "_firm")
}


def _evidence(sources: ConceptNetFirst, options: PropertyOptions) -> Evidence:
    """Gather the evidence, once for all options that take it by the same rules."""
    return _gathered(sources, options.only(_RULES))


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
    flags = _flags(sources.conceptnet, evidence, askable, both)
    rows, split = _drawn(sources.conceptnet, options, evidence, askable, flags, dropped, both, rng)
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
        cluster=_clusters(layout, layout.question[fact], split),
        facts=layout.facts,
        question=layout.question[fact],
        fact=fact,
        choice_hops=1,
        flags=flags.take(rows.line),
        dropped=dropped,
    )


def _flags(conceptnet: ConceptNet, evidence: Evidence, askable: Askable, both: bool) -> Flags:
    from builders.properties.kinds import PLACE

    pairs, _ = askable
    reviewed = evidence.reviewed[pairs.first] & evidence.reviewed[pairs.second]
    texts = single_chunk(conceptnet.concepts["text"])
    objects, concepts = (texts.take(pa.array(ids)) for ids in (evidence.object, evidence.concept))
    alike = holds_kin(objects, pairs.first, objects, pairs.second)
    flags = Flags.none(pairs.gold.size).mark(UNREVIEWED, ~reviewed).mark(ALIKE, alike)
    names = evidence.relation_names
    place = np.array([name.endswith(PLACE) for name in names])[evidence.relation]
    flags = flags.mark(TWO_PLACES, place[pairs.first] & place[pairs.second])
    if both:
        return flags
    doubtful = np.array([name.endswith(DOUBTFUL_RELATIONS) for name in names])[evidence.relation]
    flags = flags.mark(DOUBTFUL_LACK, doubtful[pairs.second])
    return flags.mark(ALIKE, holds_kin(objects, pairs.second, concepts, pairs.gold))


def _clusters(layout: PropertyLayout, question: Ints, split: Ints) -> Coded:
    """Rows of a split that ask the same form a cluster: they share no choice."""
    names = layout.question_names
    return named_clusters(
        [f"{names[at]} ({SPLITS[part]})" for at, part in zip(question, split, strict=True)]
    )


def _drawn(
    conceptnet: ConceptNet,
    options: PropertyOptions,
    evidence: Evidence,
    askable: Askable,
    flags: Flags,
    dropped: DropLog,
    both: bool,
    rng: RandomGenerator,
) -> tuple[PropertyChoices, Ints]:
    """Draw all rows, split by split; return them, and their splits."""
    from builders.properties.items import frequencies, look_classes
    from builders.properties.rows import (
        asked_once,
        capped,
        draw,
        levelled,
        split_concepts,
        with_both,
    )

    asking, sides = askable
    left = with_both(sides, asking.gold.size)
    dropped.keep("questions without two kinds of distractors", left)
    left[left] = flags.take(left).of_tier(options.tier, dropped)
    splits = split_concepts(evidence, options.split_shares, rng.child("splits"))
    near = lines_of(sides, left[sides.row] & (splits[asking.gold[sides.row]] == splits[sides.node]))
    together = with_both(near, asking.gold.size)
    dropped.drop("questions whose distractors are in another split", left & ~together)
    labels, favour = None, np.ones(splits.size)
    frequency = frequencies(conceptnet, evidence)
    if options.sampling == "balanced" and both:
        labels = look_classes(conceptnet, evidence)
    elif options.sampling == "balanced":
        # What has both properties is often a common word: so is then the gold.
        labels, favour = np.arange(splits.size), np.exp(frequency)
    parts = []
    for split, _ in enumerate(SPLITS):
        here = rng.child("split", split)
        line, mine = asked_once(
            asking,
            np.flatnonzero(together & (splits[asking.gold] == split)),
            near,
            options.choices // 2,
            options.cap_per_question,
            options.perturbations,
            favour,
            here.child("rows"),
        )
        gold, rows = asking.gold[line], np.arange(line.size, dtype=np.int64)
        if options.cap_per_gold:
            rows = rows[first_of_each(gold, options.cap_per_gold, here.child("cap"), rows)]
        asked = np.stack([asking.first[line[rows]], asking.second[line[rows]]], axis=1)
        relations = evidence.relation[asked] // 2
        rows = rows[capped(relations, options.max_share, here.child("share"))]
        drawn = draw(
            gold,
            rows,
            mine,
            options.choices - 1,
            labels,
            here,
        )
        if options.sampling == "balanced" and not both:
            shown = np.concatenate([gold[drawn.line][:, None], drawn.nodes], axis=1)
            drawn = lines_of(drawn, levelled(shown, frequency, here.child("level")))
        dropped["questions beyond the caps"] += line.size - rows.size
        dropped["questions whose distractors cannot be balanced"] += rows.size - drawn.line.size
        parts.append(drawn._replace(line=line[drawn.line]))
    rows_made = joined(parts)
    return rows_made, splits[asking.gold[rows_made.line]]
