"""Construction of plans: from arrays, and from questions that need distractors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypedDict, Unpack, cast

import numpy as np
import pyarrow as pa

from builders.engine.draw.balanced import first_of_each
from builders.engine.draw.families import (
    NEVER_DRAWN,
    ChoiceKinds,
    DrawRequest,
    Family,
    GroupRules,
    Perturbation,
    Truth,
    Wrong,
    others_of,
    perturb,
)
from builders.engine.draw.likeness import ComparedTexts, likeness_of
from builders.engine.draw.matched import GroupMatcher
from builders.engine.draw.pools import draw_in_groups
from builders.engine.drops import DropLog
from builders.engine.options import RANDOM, DrawOptions
from builders.engine.plan import GOLD, Facts, Flags, Nodes, Oracles, Plan, Questions
from builders.engine.splits import IN_OTHER_ORDER, in_other_order_later
from builders.engine.strategies import ByChoiceGroup, FromKnowledgeBase, Shuffled
from builders.english.screen import OFFENSIVE, offensive_texts
from kbprobe.arrays import (
    AnswerCache,
    Bools,
    Ints,
    ragged_ranges,
    sorted_unique,
)
from kbprobe.format.items import Coded
from kbprobe.rng import RandomGenerator


@dataclass(frozen=True)
class RowArrays:
    """The columns of a plan's rows; a value that is the same in all rows may be a single number.

    Attributes:
        nodes: (rows, K) indices of the choices: the gold in column 0, then the distractors.
        split: (rows,) index into SPLITS.
        concept: (rows,) the node asked about.
        question: (rows,) index of the question; None: row ``i`` asks question ``i``.
        fact: (rows,) index of the fact; None: row ``i`` rests on fact ``i``.
        family: the distractor family, of which the first is 1.
        hops: edges between concept and gold.
        distance: the distractors' distance within their family.
        choice_family: (rows, K) the family of each choice; None: that of the row.
        choice_hops: (rows, K) the distance of each choice; a number is that of the distractors.
    """

    nodes: Ints
    split: Ints
    concept: Ints
    question: Ints | None = None
    fact: Ints | None = None
    family: int | Ints = 1
    hops: int | Ints = 1
    distance: int | Ints = 0
    choice_family: Ints | None = None
    choice_hops: int | Ints = 0


class PlanParts(TypedDict, total=False):
    """What a plan may have in addition to its rows: see :class:`builders.engine.plan.Plan`."""

    cluster: Coded
    order: Shuffled
    answers: FromKnowledgeBase
    sub_questions: Mapping[str, Plan]
    variants: Mapping[str, Plan]
    flags: Flags | None
    fold: Ints
    oracles: Oracles
    matched_on: Mapping[str, str]
    dropped: Mapping[str, int]


def plan_rows(
    rows: RowArrays,
    *,
    questions: Questions,
    choices: Nodes,
    facts: Facts,
    relation: str | pa.Array,
    families: Sequence[str],
    concepts: pa.Array | None = None,
    **parts: Unpack[PlanParts],
) -> Plan:
    """Make a plan from arrays.

    Args:
        rows: the columns of the rows.
        questions: what the rows ask.
        choices: the nodes.
        facts: what makes golds true.
        relation: the relation between concept and gold, or an array of one for each fact.
        families: names of the distractor families.
        concepts: names of the concepts, if they are not choices.
        parts: further attributes of the plan. By default, rows of one concept form a cluster.
    """
    nodes = rows.nodes

    def by_row(value: int | Ints) -> Ints:
        return value if isinstance(value, np.ndarray) else np.full(len(nodes), value, np.int64)

    def number(given: Ints | None) -> Ints:
        return np.arange(len(nodes), dtype=np.int64) if given is None else given

    family, hops = by_row(rows.family), by_row(rows.hops)
    choice_family, choice_hops = rows.choice_family, rows.choice_hops
    if choice_family is None:
        choice_family = np.repeat(family[:, None], nodes.shape[1], axis=1)
    if isinstance(choice_hops, int):
        choice_hops = np.full(nodes.shape, choice_hops, dtype=np.int64)
        choice_hops[:, 0] = hops
    concept = Coded(choices.names if concepts is None else concepts, rows.concept)
    return Plan(
        questions=questions,
        choices=choices,
        question=number(rows.question),
        nodes=nodes,
        split=rows.split,
        family=Coded(pa.array([GOLD, *families]), family),
        concept=concept,
        relation=relation,
        facts=facts,
        fact=number(rows.fact),
        hops=hops,
        distance=by_row(rows.distance),
        choice_family=choice_family,
        choice_hops=choice_hops,
        **cast("PlanParts", {"cluster": concept, **parts}),
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
UNBALANCED = f"{TOO_FEW}, or of as many hops as they have (--hops balanced)"
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

    def of_tier(self, tier: str, dropped: DropLog, exempt: Bools | None = None) -> Asking:
        """Return the questions in a tier, as `Flags.of_tier` does."""
        return self if self.flags is None else self.take(self.flags.of_tier(tier, dropped, exempt))


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


@dataclass(frozen=True)
class QuestionSet:
    """Questions that need distractors.

    Attributes:
        asking: the questions with their golds; without flags they need no tier.
        questions, facts: the tables that ``asking`` refers to.
        relation: the relation between concept and gold, or an array of one for each fact.
        split: (lines,) the split of each line of ``asking``, -1 for none.
    """

    asking: Asking
    questions: Questions
    facts: Facts
    relation: str | pa.Array
    split: Ints


@dataclass(frozen=True)
class NodePools:
    """The nodes that golds and distractors are drawn from.

    Attributes:
        choices: how nodes are shown as choices.
        kinds: (nodes,) a part of speech, or ``NEVER_DRAWN``; distractors are of the gold's kind.
        reads: (nodes,) numbers, equal for nodes that read the same as choices.
        part: (nodes,) the part of a split that a gold is in (see :class:`Territory`).
        offensive: (nodes,) what ``--screen`` excludes; None: nothing.
    """

    choices: Nodes
    kinds: Ints
    reads: Ints
    part: Ints
    offensive: Bools | None = None


def draw_plan(
    asked: QuestionSet,
    candidates: NodePools,
    truth: Truth,
    families: Callable[[Asking], Iterable[Family]],
    options: DrawOptions,
    rng: RandomGenerator,
    dropped: DropLog,
    arguable: Callable[[Asking], Arguable] | None = None,
    compared: Callable[[Asking], ComparedTexts] | None = None,
) -> Plan:
    """Split and cap the questions of a tier, then draw distractors for them.

    Args:
        asked: the questions.
        candidates: the nodes.
        truth: what is true of concepts, and so no distractor.
        families: function that makes the families of the questions that are asked.
        options: the build's. With ``screen``, offensive nodes are no concept, no gold and no
            distractor, and no question holds a listed word. With ``for_training``, no pair is
            asked about in one split and, in the other order, in a later one.
        rng: the random generator.
        dropped: counts of what is left out; what is left out here is added.
        arguable: function that returns for the questions asked what is likely to be accepted as an
            answer, and so is no distractor in the clean tier.
        compared: function that returns the texts by which the questions asked and their golds are
            compared, for matched groups; None: groups cannot be matched.

    Raises:
        UsageError: nothing is left to ask.
    """
    asking, kinds, reads = asked.asking, candidates.kinds, candidates.reads
    questions, split, part = asked.questions, asked.split, candidates.part
    keep = np.ones(asking.gold.size, dtype=np.bool_)
    if asking.flags is not None:
        keep = asking.flags.of_tier(options.tier, dropped, options.may_be_doubtful(split))
    keep &= dropped.drop(APART, keep & (split < 0))
    asking, split = asking.take(keep), split[keep]
    if options.screen:
        shown = candidates.offensive
        if shown is None:
            shown = np.zeros_like(kinds, dtype=np.bool_)
        kinds = np.where(shown, NEVER_DRAWN, kinds)
        screened = shown[asking.concept] | shown[asking.gold] | _offensive(questions, asking)
        keep = dropped.drop(OFFENSIVE, screened)
        asking, split = asking.take(keep), split[keep]
    if options.for_training:
        later = in_other_order_later(asking.concept, asking.gold, split)
        keep = dropped.drop(IN_OTHER_ORDER, later)
        asking, split = asking.take(keep), split[keep]
    if cap := getattr(options, "cap_per_gold", 0):
        cell, identity = asking.gold * 3 + split, asking.question * HOPS + asking.hops
        first = first_of_each(cell, cap, rng.child("cap"), identity)
        keep = dropped.keep("beyond --cap-per-gold", first)
        asking, split = asking.take(keep), split[keep]
    dropped.require(asking.gold.size)
    draw = rng.child("distractors")
    balanced_hops = getattr(options, "hops", "all") == "balanced"
    matcher = None
    if options.sampling == "grouped":
        judge = arguable(asking) if arguable and options.tier == "clean" else None
        wrong = _wrong(asking, truth, judge)
        wanted = list(families(asking))
        # An option without effect is left unread, so that a build that was given it can say so.
        reference = len(wanted) > 1 and any(family.name == RANDOM for family in wanted)
        if compared and options.matched:
            matcher = GroupMatcher(
                likeness_of(compared(asking), options.encoders),
                partial(_false_in_pool, asking, truth, reads[asking.gold]),
                2 * (3 * kinds[asking.gold] + split) + (asking.hops > 1),
                asking.hops if balanced_hops else None,
                split,
            )
        # Matched groups need large pools.
        territories = max(asking.gold.size // LINES_OF_PART, 1) if matcher is None else 1
        # A train split of another tier has other questions, and is matched by itself. The others
        # are too where hops are balanced: the small validation split may lack the farthest.
        apart = np.where(options.may_be_doubtful(split), 0, 1)
        if options.for_training and balanced_hops:
            apart = split
        grouped = [
            draw_in_groups(
                [family._replace(key=np.where(alone, family.key, -1)) for family in wanted],
                asking.gold,
                reads[asking.gold],
                (part[asking.gold] % territories * (kinds.max() + 1) + kinds[asking.gold]) * 3
                + split,
                rng.bits(questions.key[asking.question], asking.gold).view(np.int64),
                GroupRules(options.choices, options.uses, wrong),
                once=options.once,
                random_share=options.most_random if reference else 1.0,
                rng=draw,
                matcher=matcher,
            )
            for alone in (apart == number for number in sorted_unique(apart))
        ]
        parts = [_of_groups(family, groups, asking.gold) for family, groups in chain(*grouped)]
        placed = sorted_unique(np.concatenate([part.rows for part in parts]))
        dropped[UNBALANCED if balanced_hops else TOO_FEW] += asking.gold.size - placed.size
        drawn_for = np.arange(asking.gold.size, dtype=np.int64)
    else:
        # Questions with the same concept and gold, in other contexts, get the same distractors.
        key = (asking.concept * truth.size + asking.gold) * HOPS + asking.hops
        _, first_line, drawn_for = np.unique(key, return_index=True, return_inverse=True)
        drawn = asking.take(first_line)
        wanted = list(families(drawn))
        parts = list(
            perturb(
                DrawRequest(drawn.concept, drawn.gold, kinds[drawn.gold]),
                wanted,
                truth,
                kinds,
                distractors=options.choices - 1,
                max_fill=options.fills,
                repeats=options.uses,
                rng=draw,
            )
        )
        if options.once:
            parts = _first_only(parts, drawn.gold.size)
        for label in dict.fromkeys(family.label for family in wanted):
            made = sum(part.rows.size for part in parts if part.family.label == label)
            missing = drawn.gold.size * options.uses - made
            dropped[f"{label}: {TOO_FEW}"] += 0 if options.once else missing
    parts = [part for part in parts if part.rows.size]
    near = any(part.family.name != RANDOM for part in parts)
    dropped.require(len(parts))
    kinds_of = [name for family in wanted if family.kinds for name in family.kinds.names]
    names = list(dict.fromkeys((*(family.name for family in wanted), RANDOM, *kinds_of)))
    size = options.choices if options.sampling == "grouped" else 1
    line, rows = _rows_of_draws(parts, asking, split, names, drawn_for, size)
    order = Shuffled()
    if options.sampling == "grouped":
        group = np.arange(line.size, dtype=np.int64) // options.choices
        order = ByChoiceGroup(group)
    flags = asking.flags or Flags.none(asking.gold.size)
    return plan_rows(
        rows,
        questions=questions,
        choices=candidates.choices,
        families=names,
        facts=asked.facts,
        relation=asked.relation,
        flags=flags.narrow().take(line),
        order=order,
        matched_on=matcher.likeness.digests if matcher and near else {},
        dropped=dropped,
    )


def _wrong(asking: Asking, truth: Truth, arguable: Arguable | None) -> Wrong:
    """Return a function that returns whether a gold is a wrong answer to another question."""
    pair = np.unique(asking.concept * truth.size + asking.gold, return_inverse=True)[1]
    answers = AnswerCache(ANSWERS)

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


def _false_in_pool(asking: Asking, truth: Truth, reads: Ints, lines: Ints) -> tuple[Ints, Bools]:
    """Return the number of each line's gold in a pool, and which golds are wrong for each line."""
    concept, gold = asking.concept[lines], asking.gold[lines]
    nodes, number = np.unique(gold, return_inverse=True)
    _, first, pair = np.unique(concept * truth.size + gold, return_index=True, return_inverse=True)
    false = truth.false_among(concept[first], gold[first], nodes)[pair]
    texts = reads[lines]
    false &= texts[:, None] != texts[np.unique(number, return_index=True)[1]]
    return number, false


def _of_groups(family: Family, groups: Ints, gold: Ints) -> Perturbation:
    """Lay out the rows of groups one after another: each row shows the others' golds."""
    size = groups.shape[1]
    others = groups[:, others_of(size)]
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
) -> tuple[Ints, RowArrays]:
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
        Each row's line in ``asking``, and the columns of the rows.
    """
    asked_by = np.bincount(drawn_for)
    order = np.argsort(drawn_for, kind="stable").astype(np.int32)
    start = np.cumsum(asked_by) - asked_by
    rows = sum(int(asked_by[part.rows].sum()) for part in parts)
    width = 1 + parts[0].nodes.shape[1]

    def empty(shape: int | tuple[int, int], kind: type[np.signedinteger[Any]]) -> Ints:
        return cast("Ints", np.empty(shape, dtype=kind))

    line, nodes = empty(rows, np.int32), empty((rows, width), np.int32)
    family, distance = empty(rows, np.int8), empty(rows, np.int8)
    choice_family, choice_hops = empty((rows, width), np.int8), empty((rows, width), np.int8)
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
        if kinds := part.family.kinds:
            choice_family[here, 1:] = _kinds(kinds, part, asking, names, number)[draw]
        choice_hops[here, 1:] = np.where(filled, 0, away)
        at = here.stop

    def narrow(values: Ints, kind: type[np.signedinteger[Any]]) -> Ints:
        return cast("Ints", values.astype(kind)[line])

    nodes[:, 0] = narrow(asking.gold, np.int32)
    hops = narrow(asking.hops, np.int8)
    choice_hops[:, 0] = hops
    return line, RowArrays(
        nodes=nodes,
        split=narrow(split, np.int8),
        concept=narrow(asking.concept, np.int32),
        question=narrow(asking.question, np.int32),
        fact=narrow(asking.fact, np.int32),
        hops=hops,
        family=family,
        distance=distance,
        choice_family=choice_family,
        choice_hops=choice_hops,
    )


def _kinds(
    kinds: ChoiceKinds, part: Perturbation, asking: Asking, names: list[str], family: int
) -> Ints:
    """Return (rows, K - 1) the number of each distractor's kind; the family's if it has none."""
    rows, nodes = part.rows.astype(np.int64), part.nodes.astype(np.int64)
    lines = np.repeat(rows, nodes.shape[1])
    kind = kinds.of(asking.concept[lines], asking.gold[lines], nodes.ravel())
    numbers = np.array([*(1 + names.index(name) for name in kinds.names), family])
    return numbers[kind].reshape(nodes.shape)


def _offensive(questions: Questions, asking: Asking) -> Bools:
    """Return (lines,) whether a text of the question contains a listed word."""
    listed = np.zeros(asking.question.size, dtype=np.bool_)
    for texts in questions.fields.values():
        if pa.types.is_string(texts.type):
            listed |= offensive_texts(texts)[asking.question]
    return listed
