"""Construction of plans: from arrays, and from questions that need distractors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from builders.engine.draw.balanced import first_of_each
from builders.engine.draw.families import (
    NEVER_DRAWN,
    Family,
    Perturbation,
    QuestionBatch,
    Truth,
    perturb,
)
from builders.engine.draw.pools import GroupRules, Wrong, draw_in_groups
from builders.engine.drops import DropLog
from builders.engine.options import RANDOM, DrawOptions
from builders.engine.plan import GOLD, Facts, Flags, Nodes, Oracles, Plan, Questions
from builders.engine.strategies import ByChoiceGroup, FromKnowledgeBase, Shuffled
from builders.english.screen import OFFENSIVE, offensive_texts
from kbprobe.arrays import Answers, Bools, Ints, ragged_ranges, sorted_unique
from kbprobe.format.items import Coded
from kbprobe.rng import RandomGenerator


def plan_rows(
    *,
    questions: Questions,
    choices: Nodes,
    nodes: Ints,
    split: Ints,
    families: Sequence[str],
    concept: Ints,
    facts: Facts,
    relation: str | pa.Array,
    question: Ints | None = None,
    fact: Ints | None = None,
    family: int | Ints = 1,
    hops: int | Ints = 1,
    distance: int | Ints = 0,
    choice_family: Ints | None = None,
    choice_hops: int | Ints = 0,
    concepts: pa.Array | None = None,
    cluster: Coded | None = None,
    order: Shuffled | None = None,
    answers: FromKnowledgeBase | None = None,
    sub_questions: Mapping[str, Plan] | None = None,
    variants: Mapping[str, Plan] | None = None,
    flags: Flags | None = None,
    fold: Ints | None = None,
    oracles: Oracles | None = None,
    dropped: Mapping[str, int] | None = None,
) -> Plan:
    """Make a plan from arrays; a value that is the same in all rows may be a single number.

    The arguments are those of :class:`builders.engine.plan.Plan`. In addition, ``families`` names
    the distractor families, of which ``family`` 1 is the first, and ``concepts`` the concepts, if
    they are not choices. By default row ``i`` asks question ``i`` and rests on fact ``i``, its
    choices are of the row's family, and rows of one concept form a cluster. ``choice_hops`` as one
    number is that of the distractors.
    """

    def by_row(value: int | Ints) -> Ints:
        return value if isinstance(value, np.ndarray) else np.full(len(nodes), value, np.int64)

    rows = np.arange(len(nodes) if question is None or fact is None else 0, dtype=np.int64)
    code, gold_hops = by_row(family), by_row(hops)
    if choice_family is None:
        choice_family = np.repeat(code[:, None], nodes.shape[1], axis=1)
    if isinstance(choice_hops, int):
        choice_hops = np.full(nodes.shape, choice_hops, dtype=np.int64)
        choice_hops[:, 0] = gold_hops
    named = Coded(choices.names if concepts is None else concepts, concept)
    return Plan(
        questions=questions,
        choices=choices,
        question=rows if question is None else question,
        nodes=nodes,
        split=split,
        family=Coded(pa.array([GOLD, *families]), code),
        cluster=named if cluster is None else cluster,
        concept=named,
        relation=relation,
        facts=facts,
        fact=rows if fact is None else fact,
        hops=gold_hops,
        distance=by_row(distance),
        choice_family=choice_family,
        choice_hops=choice_hops,
        order=order or Shuffled(),
        answers=answers or FromKnowledgeBase(),
        sub_questions=sub_questions or {},
        variants=variants or {},
        flags=flags,
        fold=fold,
        oracles=oracles or {},
        dropped=dropped or {},
    )


def named_clusters(labels: Sequence[str]) -> Coded:
    """Return clusters given by the name of each row's, names in alphabetical order."""
    names = sorted(set(labels))
    number = {name: at for at, name in enumerate(names)}
    codes = np.array([number[label] for label in labels], dtype=np.int64)
    return Coded(pa.array(names, pa.string()), codes)


HOPS = 64
"""Upper bound (exclusive) on the number of hops between a concept and its gold."""

TOO_FEW = "too few distractors of any family"
APART = "word and gold are in different splits"

ANSWERS = 1 << 20
"""Approximate number of (concept, gold, node) triples whose verdicts are cached."""

LINES_OF_PART = 4000
"""Lines per part: small probes get fewer parts, so that questions can still form groups."""

Arguable = Callable[[Ints, Ints, Ints], Bools]
"""Function of parallel arrays of concepts, golds and nodes. It returns whether readers are
likely to accept the node as an answer too. Concepts and golds are those of questions, nodes are
golds of other questions."""


class Asking(NamedTuple):
    """Questions without distractors: parallel arrays, one line per (question, gold).

    ``question`` and ``fact`` refer to the plan's; ``hops`` are the edges from concept to gold, and
    ``flags`` those of each line, if there are tiers.
    """

    question: Ints
    fact: Ints
    concept: Ints
    gold: Ints
    hops: Ints
    flags: Flags | None = None

    def take(self, rows: Ints | Bools) -> Asking:
        """Return some of the questions."""
        flags = None if self.flags is None else self.flags.take(rows)
        return Asking._make((*(array[rows] for array in self[:-1]), flags))

    def of_tier(self, tier: str, dropped: DropLog) -> Asking:
        """Return the questions in a tier; count the others in ``dropped`` by flag."""
        return self if self.flags is None else self.take(self.flags.of_tier(tier, dropped))


class Territory(NamedTuple):
    """Which nodes stay together: parallel arrays over all nodes.

    Attributes:
        split: the split of each node, whether it is asked about or is a gold.
        part: a part of the split. All choices of a row are from one part, so that a model trained
            on rows of some parts has not seen the choices of the others.
    """

    split: Ints
    part: Ints

    def of_both(self, asking: Asking) -> Ints:
        """Return the split of each line: that of concept and gold; -1 where they differ."""
        split = self.split[asking.gold]
        return np.where(self.split[asking.concept] == split, split, -1)

    def of_concept(self, asking: Asking) -> Ints:
        """Return the split of each line: that of the concept.

        A gold is asked for only in the split with most of its lines: -1 elsewhere.
        """
        split = self.split[asking.concept]
        lines = np.zeros((self.split.size, int(split.max(initial=0)) + 1), dtype=np.int64)
        np.add.at(lines, (asking.gold, split), 1)
        return np.where(lines.argmax(axis=1)[asking.gold] == split, split, -1)


def draw_plan(
    asking: Asking,
    families: Callable[[Asking], Iterable[Family]],
    *,
    questions: Questions,
    choices: Nodes,
    facts: Facts,
    relation: str | pa.Array,
    truth: Truth,
    split: Ints,
    part: Ints,
    kinds: Ints,
    reads: Ints,
    options: DrawOptions,
    rng: RandomGenerator,
    dropped: DropLog,
    offensive: Bools | None = None,
    arguable: Callable[[Asking], Arguable] | None = None,
) -> Plan:
    """Split and cap the questions of a tier, then draw distractors for them.

    ``asking`` points into ``questions``, ``choices`` and ``facts``; without flags it needs no tier.
    ``split`` (lines,) is the split of each of its lines, -1 for none, and ``part`` (nodes,) the
    part of it that a gold is in (see :class:`Territory`). ``families`` makes the families of the
    questions that are asked. What is in ``truth`` is no distractor, nor what is not of the gold's
    kind (``kinds``: a part of speech for each node, or ``NEVER_DRAWN``); nor, in the clean tier,
    what is arguable according to ``arguable`` for the questions asked. Nodes with the same number
    in ``reads`` have the same text as choices. What is left out is added to ``dropped``. With
    ``options.screen``, nodes marked in ``offensive`` are no concept, no gold and no distractor, and
    no question holds a listed word.

    Raises:
        UsageError: nothing is left to ask.
    """
    keep = np.ones(asking.gold.size, dtype=np.bool_)
    if asking.flags is not None:
        keep = asking.flags.of_tier(options.tier, dropped)
    keep &= dropped.drop(APART, keep & (split < 0))
    asking, split = asking.take(keep), split[keep]
    if options.screen:
        shown = np.zeros_like(kinds, dtype=np.bool_) if offensive is None else offensive
        kinds = np.where(shown, NEVER_DRAWN, kinds)
        screened = shown[asking.concept] | shown[asking.gold] | _offensive(questions, asking)
        keep = dropped.drop(OFFENSIVE, screened)
        asking, split = asking.take(keep), split[keep]
    if cap := getattr(options, "cap_per_gold", 0):
        cell, identity = asking.gold * 3 + split, asking.question * HOPS + asking.hops
        first = first_of_each(cell, cap, rng.child("cap"), identity)
        keep = dropped.keep("beyond --cap-per-gold", first)
        asking, split = asking.take(keep), split[keep]
    dropped.require(asking.gold.size)
    draw = rng.child("distractors")
    if options.sampling == "grouped":
        judge = arguable(asking) if arguable and options.tier == "clean" else None
        wrong = _wrong(asking, truth, judge)
        wanted = list(families(asking))
        # An option without effect is left unread, so that a build that was given it can say so.
        reference = len(wanted) > 1 and any(family.name == RANDOM for family in wanted)
        territories = max(asking.gold.size // LINES_OF_PART, 1)
        grouped = draw_in_groups(
            wanted,
            asking.gold,
            reads[asking.gold],
            (part[asking.gold] % territories * (kinds.max() + 1) + kinds[asking.gold]) * 3 + split,
            rng.bits(questions.key[asking.question], asking.gold).view(np.int64),
            GroupRules(options.choices, options.perturbations, wrong),
            once=options.once,
            random_share=options.random_share if reference else 1.0,
            rng=draw,
        )
        parts = [_of_groups(family, groups, asking.gold) for family, groups in grouped]
        placed = sorted_unique(np.concatenate([part.rows for part in parts]))
        dropped[TOO_FEW] += asking.gold.size - placed.size
        drawn_for = np.arange(asking.gold.size, dtype=np.int64)
    else:
        # Questions with the same concept and gold, in other contexts, get the same distractors.
        key = (asking.concept * truth.size + asking.gold) * HOPS + asking.hops
        _, first_line, drawn_for = np.unique(key, return_index=True, return_inverse=True)
        drawn = asking.take(first_line)
        wanted = list(families(drawn))
        parts = list(
            perturb(
                QuestionBatch(drawn.concept, drawn.gold, kinds[drawn.gold]),
                wanted,
                truth,
                kinds,
                distractors=options.choices - 1,
                max_fill=options.fills,
                repeats=options.perturbations,
                rng=draw,
            )
        )
        if options.once:
            parts = _first_only(parts, drawn.gold.size)
        for label in dict.fromkeys(family.label for family in wanted):
            made = sum(part.rows.size for part in parts if part.family.label == label)
            missing = drawn.gold.size * options.perturbations - made
            dropped[f"{label}: {TOO_FEW}"] += 0 if options.once else missing
    parts = [part for part in parts if part.rows.size]
    dropped.require(len(parts))
    names = list(dict.fromkeys((*(family.name for family in wanted), RANDOM)))
    size = options.choices if options.sampling == "grouped" else 1
    rows = _rows_of_draws(parts, asking, split, names, drawn_for, size)
    group = np.arange(len(rows["nodes"]), dtype=np.int64) // options.choices
    flags = asking.flags or Flags.none(asking.gold.size)
    return plan_rows(
        questions=questions,
        choices=choices,
        families=names,
        facts=facts,
        relation=relation,
        order=ByChoiceGroup(group) if options.sampling == "grouped" else None,
        flags=flags.narrow().take(rows.pop("line")),
        dropped=dropped,
        **rows,
    )


def _wrong(asking: Asking, truth: Truth, arguable: Arguable | None) -> Wrong:
    """Return a function that returns whether a gold is a wrong answer to another question."""
    pair = np.unique(asking.concept * truth.size + asking.gold, return_inverse=True)[1]
    answers = Answers(ANSWERS)

    def decide(concept: Ints, gold: Ints, node: Ints) -> Bools:
        found = truth.is_false(concept, gold, node)
        if arguable:
            found[found] = ~arguable(concept[found], gold[found], node[found])
        return found

    def wrong(one: Ints, other: Ints) -> Bools:
        node = asking.gold[other]
        return answers.of(
            pair[one] * truth.size + node,
            lambda new: decide(asking.concept[one[new]], asking.gold[one[new]], node[new]),
        )

    return wrong


def _of_groups(family: Family, groups: Ints, gold: Ints) -> Perturbation:
    """Lay out the rows of groups one after another: each row shows the others' golds."""
    size = groups.shape[1]
    others = groups[:, np.array([[j for j in range(size) if j != i] for i in range(size)])]
    filled = np.zeros((groups.size, size - 1), dtype=np.bool_)
    if family.kin is not None:
        filled = (family.kin[others] != family.kin[groups][:, :, None]).reshape(filled.shape)
    nodes = gold[others].reshape(filled.shape).astype(np.int32)
    return Perturbation(family, groups.ravel().astype(np.int32), nodes, filled)


def _first_only(parts: list[Perturbation], questions: int) -> list[Perturbation]:
    """Keep the first row of each question."""
    asked = np.zeros(questions, dtype=np.bool_)
    kept = []
    for part in parts:
        keep = ~asked[part.rows]
        asked[part.rows] = True
        kept.append(Perturbation(part.family, part.rows[keep], part.nodes[keep], part.filled[keep]))
    return kept


def _rows_of_draws(
    parts: list[Perturbation],
    asking: Asking,
    split: Ints,
    names: list[str],
    drawn_for: Ints,
    size: int,
) -> dict[str, Any]:
    """Lay out the rows of all draws: one row per draw for every question that it was made for.

    Columns are as narrow as their values allow, and ``parts`` is emptied on the way: with tens of
    millions of rows a second copy of them would not fit.

    Args:
        parts: the draws.
        asking: the questions.
        split: the split of each.
        names: the families.
        drawn_for: what each question's distractors are drawn for, numbered as in the draws.
        size: the rows of a choice group, which are contiguous; 1 if there are none.

    Returns:
        The arguments of :func:`plan_rows` that are by row, and ``line``: each row's question.
    """
    asked_by = np.bincount(drawn_for)
    order = np.argsort(drawn_for, kind="stable").astype(np.int32)
    start = np.cumsum(asked_by) - asked_by
    rows = sum(int(asked_by[part.rows].sum()) for part in parts)
    width = 1 + parts[0].nodes.shape[1]
    line = np.empty(rows, dtype=np.int32)
    nodes = np.empty((rows, width), dtype=np.int32)
    family, distance = np.empty(rows, dtype=np.int8), np.empty(rows, dtype=np.int8)
    choice_family = np.empty((rows, width), dtype=np.int8)
    choice_hops = np.empty((rows, width), dtype=np.int8)
    random, at = 1 + names.index(RANDOM), 0
    parts.reverse()
    while parts:
        part = parts.pop()
        times = asked_by[part.rows]
        draw = np.repeat(np.arange(part.rows.size), times)
        here = slice(at, at + draw.size)
        line[here] = order[ragged_ranges(start[part.rows], times)]
        number, away = 1 + names.index(part.family.name), part.family.distance
        filled = part.filled[draw]
        nodes[here, 1:] = part.nodes[draw]
        # A row whose distractors are all fills counts as having random ones. In a group the family
        # is that of all rows, since each choice is right once, unless it is one of single rows.
        of_family = ~filled.all(axis=1)
        if not part.family.by_row:
            of_family = of_family.reshape(-1, size).any(axis=1).repeat(size)
        family[here] = np.where(of_family, number, random)
        distance[here] = np.where(of_family, away, 0)
        choice_family[here, 0], choice_hops[here, 0] = number, 0
        choice_family[here, 1:] = np.where(filled, random, number)
        choice_hops[here, 1:] = np.where(filled, 0, away)
        at = here.stop
    nodes[:, 0] = asking.gold.astype(np.int32)[line]
    hops = asking.hops.astype(np.int8)[line]
    choice_hops[:, 0] = hops
    return {
        "line": line,
        "nodes": nodes,
        "split": split.astype(np.int8)[line],
        "concept": asking.concept.astype(np.int32)[line],
        "question": asking.question.astype(np.int32)[line],
        "fact": asking.fact.astype(np.int32)[line],
        "hops": hops,
        "family": family,
        "distance": distance,
        "choice_family": choice_family,
        "choice_hops": choice_hops,
    }


def _offensive(questions: Questions, asking: Asking) -> Bools:
    """Return (lines,) whether a text of the question contains a listed word."""
    listed = np.zeros(asking.question.size, dtype=np.bool_)
    for texts in questions.fields.values():
        if pa.types.is_string(texts.type):
            listed |= offensive_texts(texts)[asking.question]
    return listed
