"""Property conjunction: what has both of two properties, and what has one but not the other?

Two probes over ConceptNet after Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020, section
4.4).
See docs/probes/property_conjunction.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.draw.balanced import first_of_each
from builders.engine.draw.likeness import ComparedTexts, Likeness, gold_places, likeness_of
from builders.engine.drops import DropLog
from builders.engine.plan import Flags, Oracle, Oracles, Plan, credit
from builders.engine.probe import probe
from builders.engine.rows import RowArrays, named_clusters, plan_rows
from builders.engine.strategies import ByChoiceGroup, Shuffled
from builders.english.kin import holds_kin
from builders.lexicons import ConceptNetFirst, conceptnet_first
from builders.properties.facts import Evidence, gather
from builders.properties.groups import (
    ChoiceRules,
    Triples,
    conjunction_groups,
    exception_groups,
    sharing_triples,
)
from builders.properties.items import PropertyLayout
from builders.properties.kinds import PLACE
from builders.properties.options import (
    CAP_PER_QUESTION,
    MAX_SHARE,
    WORDED,
    ConjunctionOptions,
    PropertyOptions,
)
from builders.properties.rows import (
    PropertyPairs,
    capped,
    conjunctions,
    draw,
    exceptions,
    sides_of,
    split_concepts,
    with_both,
)
from kbprobe.arrays import Bools, Ints, lines_of, mask_at
from kbprobe.columns import single_chunk
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED, SPLITS
from kbprobe.rng import RandomGenerator


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


@probe("property_conjunction", options=ConjunctionOptions, **_DECLARED)
def property_conjunction(
    sources: ConceptNetFirst, options: PropertyOptions, rng: RandomGenerator
) -> Plan:
    """Which of three things has both of two properties?"""
    return _PropertyBuild.of(sources, options, True, rng).plan()


@probe("property_conjunction_but_not", options=PropertyOptions, **_DECLARED)
def property_conjunction_but_not(
    sources: ConceptNetFirst, options: PropertyOptions, rng: RandomGenerator
) -> Plan:
    """Which of three things has one property but not another?"""
    return _PropertyBuild.of(sources, options, False, rng).plan()


_RULES = {"relations", "min_weight", "screen"}


@lru_cache(maxsize=1)
def _gathered(sources: ConceptNetFirst, rules: PropertyOptions) -> Evidence:
    """Gather the evidence; cached by the rules in the options."""
    return gather(sources.conceptnet, sources.wordnet, rules)


class _DrawnLines(NamedTuple):
    """Rows: questions with their golds, (rows, K - 1) distractors, and further columns."""

    asking: PropertyPairs
    others: Ints
    split: Ints
    flags: Flags
    order: Shuffled
    matched_on: Mapping[str, str]


@dataclass(frozen=True)
class _PropertyBuild:
    """A build of one of the two probes; ``both``: the gold has both properties."""

    sources: ConceptNetFirst
    options: PropertyOptions
    both: bool
    rng: RandomGenerator
    evidence: Evidence
    dropped: DropLog

    @classmethod
    def of(
        cls, sources: ConceptNetFirst, options: PropertyOptions, both: bool, rng: RandomGenerator
    ) -> _PropertyBuild:
        """Gather the evidence."""
        evidence = _gathered(sources, options.only(_RULES))
        return cls(sources, options, both, rng, evidence, DropLog(evidence.dropped))

    def plan(self) -> Plan:
        """Draw the rows, in choice groups if there are three choices, and make the plan."""
        options, evidence, rng = self.options, self.evidence, self.rng
        # Negations cannot be negated again in plain words.
        askable = evidence.relation % 2 == 0
        if options.all_clean:
            askable = askable & evidence.reviewed
        triples = sharing_triples(evidence, askable, rng.child("triples"))
        size, shares = evidence.concept.size, options.split_shares
        splits = split_concepts(triples.nodes, size, shares, rng.child("splits"))
        if options.sampling == "balanced" and options.choices == GROUP:
            return self._laid_out(self._grouped(triples, splits))
        return self._laid_out(self._drawn(splits))

    def _laid_out(self, rows: _DrawnLines) -> Plan:
        """Make the plan of the rows."""
        evidence, sources = self.evidence, self.sources
        self.dropped.require(rows.split.size, "Loosen one of them, or use a larger ConceptNet.")
        asking = rows.asking
        if self.both:  # Either property may come first in the question, the same for all golds.
            _, first, second = asking
            swap = self.rng.child("order").below(2, first, second) == 1
            first, second = np.where(swap, second, first), np.where(swap, first, second)
            asking = asking._replace(first=first, second=second)
        asked, fact = np.unique(np.stack(asking), axis=1, return_inverse=True)
        fact = fact.ravel()
        layout = PropertyLayout(
            sources.conceptnet,
            sources.wordnet,
            evidence,
            type(asking)(*asked),
            WORDED,
            negate=not self.both,
        )
        nodes = evidence.concept[np.concatenate([asking.gold[:, None], rows.others], axis=1)]
        question, names = layout.question[fact], layout.question_names
        # Rows of a split with the same question share no choices.
        clusters = zip(question, rows.split, strict=True)
        return plan_rows(
            RowArrays(
                nodes=nodes,
                split=rows.split,
                concept=nodes[:, 0],
                question=question,
                fact=fact,
                choice_hops=1,
            ),
            questions=layout.questions,
            choices=layout.choices,
            families=("kind",),
            relation=layout.relation,
            cluster=named_clusters([f"{names[at]} ({SPLITS[part]})" for at, part in clusters]),
            facts=layout.facts,
            order=rows.order,
            flags=rows.flags,
            oracles=property_oracles(evidence, asking, rows.others, not self.both),
            matched_on=rows.matched_on,
            dropped=self.dropped,
        )

    def _flags(self, pairs: PropertyPairs) -> Flags:
        evidence = self.evidence
        reviewed = evidence.reviewed[pairs.first] & evidence.reviewed[pairs.second]
        texts = single_chunk(self.sources.conceptnet.concepts["text"])
        objects, concepts = (
            texts.take(pa.array(ids)) for ids in (evidence.object, evidence.concept)
        )
        alike = holds_kin(objects, pairs.first, objects, pairs.second)
        flags = Flags.of({UNREVIEWED: ~reviewed, ALIKE: alike})
        if self.both:
            return flags
        place, doubtful = (
            np.array([name.endswith(last) for name in evidence.relation_names])[evidence.relation]
            for last in (PLACE, DOUBTFUL_RELATIONS)
        )
        flags = flags.mark(TWO_PLACES, place[pairs.first] & place[pairs.second])
        flags = flags.mark(DOUBTFUL_LACK, doubtful[pairs.second])
        return flags.mark(ALIKE, holds_kin(objects, pairs.second, concepts, pairs.gold))

    def _drawn(self, splits: Ints) -> _DrawnLines:
        """Draw rows one by one, split by split: any candidate may be a distractor."""
        options, evidence, dropped = self.options, self.evidence, self.dropped
        asking, sides = (
            conjunctions(evidence)
            if self.both
            else exceptions(evidence, self.rng.child("questions"))
        )
        flags = self._flags(asking)
        left = with_both(sides, asking.gold.size)
        dropped.keep("questions without two kinds of distractors", left)
        exempt = options.may_be_doubtful(splits[asking.gold[left]])
        left[left] = flags.take(left).of_tier(options.tier, dropped, exempt)
        near = lines_of(
            sides, left[sides.row] & (splits[asking.gold[sides.row]] == splits[sides.node])
        )
        together = with_both(near, asking.gold.size)
        dropped.drop("questions whose distractors are in another split", left & ~together)
        lines, others = [], []
        for part, _ in enumerate(SPLITS):
            here = self.rng.child("split", part)
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
            kept = capped(relations, MAX_SHARE, here.child("share"))
            drawn = lines_of(drawn, dropped.keep("questions beyond the share of a relation", kept))
            lines.append(line[drawn.line])
            others.append(drawn.nodes)
        line = np.concatenate(lines)
        chosen = lines_of(asking, line)
        split = splits[chosen.gold]
        return _DrawnLines(chosen, np.concatenate(others), split, flags.take(line), Shuffled(), {})

    def _grouped(self, triples: Triples, splits: Ints) -> _DrawnLines:
        """Draw the rows of choice groups."""
        options, evidence, rng = self.options, self.evidence, self.rng.child("groups")
        matched_on: dict[str, str] = {}

        def unflagged(asking: PropertyPairs) -> Bools:
            if options.tier == "full":
                return np.ones(asking.gold.size, dtype=np.bool_)
            exempt = options.may_be_doubtful(splits[asking.gold])
            return self._flags(asking).of_tier(options.tier, DropLog(), exempt)

        def places(questions: Ints) -> Ints:
            likeness, choices = self._likeness(questions)
            matched_on.update(likeness.digests)
            return gold_places(likeness, choices)

        rules = ChoiceRules(unflagged, places if options.matched else None)
        if self.both:
            asking, others = conjunction_groups(evidence, triples, splits, options, rng, rules)
        else:
            askable = deniable = mask_at(evidence.relation.size, triples.columns)
            if options.all_clean:
                names = np.array(evidence.relation_names)[evidence.relation]
                deniable = askable & ~np.isin(names, DOUBTFUL_RELATIONS)
            asking, others = exception_groups(
                evidence, askable, deniable, splits, options, rng, rules
            )
        order = ByChoiceGroup(np.arange(asking.gold.size, dtype=np.int64) // GROUP)
        split = splits[asking.gold]
        return _DrawnLines(asking, others, split, self._flags(asking), order, matched_on)

    def _likeness(self, questions: Ints) -> tuple[Likeness, Ints]:
        """Compare questions and choices, which are lines of the gold, properties and the others."""
        evidence = self.evidence
        texts = single_chunk(self.sources.conceptnet.concepts["text"])
        gold, first, second, *others = questions.T
        asked, question = np.unique(np.stack([first, second], axis=1), axis=0, return_inverse=True)
        shown, choice = np.unique(np.stack([gold, *others], axis=1), return_inverse=True)
        one, other = (texts.take(pa.array(evidence.object[side])) for side in asked.T)
        choices = choice.reshape(len(questions), -1)
        compared = ComparedTexts(
            pc.binary_join_element_wise(one, other, " and ").to_pylist(),
            texts.take(pa.array(evidence.concept[shown])).to_pylist(),
            question.ravel(),
            choices[:, 0],
        )
        return likeness_of(compared, self.options.encoders), choices


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
