"""Making plans: from arrays, and from questions that distractors are drawn for."""

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
    draw_once,
    perturb,
)
from builders.engine.drops import DropLog
from builders.engine.flags import Flags
from builders.engine.options import RANDOM, DrawOptions
from builders.engine.plan import GOLD, Facts, Nodes, Plan, Provenance, Questions
from builders.engine.splits import assign_splits
from builders.engine.strategies import FromKnowledgeBase, Shuffled
from builders.english.screen import OFFENSIVE, offensive_texts
from kbprobe.arrays import Bools, Ints, ragged_ranges
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
    dropped: Mapping[str, int] | None = None,
) -> Plan:
    """Make a plan from arrays; what is the same in all rows may be one number.

    The arguments are those of :class:`builders.engine.plan.Plan` and its ``Provenance``. Beside
    them, ``families`` names the distractor families, of which ``family`` 1 is the first, and
    ``concepts`` the concepts, if they are not choices. By default row ``i`` asks question ``i`` and
    rests on fact ``i``, its choices are of the row's family, and rows of one concept form a
    cluster. ``choice_hops`` as one number is that of the distractors.
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
        provenance=Provenance(
            concept=named,
            relation=relation,
            facts=facts,
            fact=rows if fact is None else fact,
            hops=gold_hops,
            distance=by_row(distance),
            choice_family=choice_family,
            choice_hops=choice_hops,
        ),
        order=order or Shuffled(),
        answers=answers or FromKnowledgeBase(),
        sub_questions=sub_questions or {},
        variants=variants or {},
        flags=flags,
        fold=fold,
        dropped=dropped or {},
    )


def named_clusters(labels: Sequence[str]) -> Coded:
    """Return clusters given by the name of each row's, names in alphabetical order."""
    names = sorted(set(labels))
    number = {name: at for at, name in enumerate(names)}
    codes = np.array([number[label] for label in labels], dtype=np.int64)
    return Coded(pa.array(names, pa.string()), codes)


HOPS = 64
"""More hops than any gold is away from its concept."""

TOO_FEW = "too few distractors, or they cannot be balanced"


class Asking(NamedTuple):
    """Questions before distractors: parallel arrays, a line for each (question, gold).

    ``question`` and ``fact`` point into the plan's; ``hops`` are the edges from concept to gold.
    """

    question: Ints
    fact: Ints
    concept: Ints
    gold: Ints
    hops: Ints

    def take(self, rows: Ints | Bools) -> Asking:
        """Return some of the questions."""
        return Asking(*(array[rows] for array in self))


def draw_plan(
    asking: Asking,
    families: Callable[[Asking], Iterable[Family]],
    *,
    questions: Questions,
    choices: Nodes,
    facts: Facts,
    relation: str | pa.Array,
    truth: Truth,
    kinds: Ints,
    options: DrawOptions,
    rng: RandomGenerator,
    dropped: DropLog,
    flags: Flags | None = None,
    offensive: Bools | None = None,
) -> Plan:
    """Split and cap the questions of a tier, then draw distractors for them.

    ``asking`` points into ``questions``, ``choices`` and ``facts``; ``families`` makes the families
    of the questions that are asked. What is in ``truth`` is no distractor, nor what is not of the
    gold's kind (``kinds``: a part of speech for each node). ``flags`` are those of the lines of
    ``asking``. What is left out is added to ``dropped``. With ``options.screen``, nodes marked in
    ``offensive`` are no concept, no gold and no distractor, and no question holds a listed word.

    Questions with the same concept and gold, in other contexts, get the same distractors: all of
    their choices then recur, not the gold alone.

    Raises:
        UsageError: nothing is left to ask.
    """
    flags = Flags.none(asking.gold.size) if flags is None else flags
    keep = flags.of_tier(options.tier, dropped)
    asking, flags = asking.take(keep), flags.take(keep)
    if options.screen:
        shown = np.zeros_like(kinds, dtype=np.bool_) if offensive is None else offensive
        kinds = np.where(shown, NEVER_DRAWN, kinds)
        screened = shown[asking.concept] | shown[asking.gold] | _offensive(questions, asking)
        keep = dropped.drop(OFFENSIVE, screened)
        asking, flags = asking.take(keep), flags.take(keep)
    split = assign_splits(asking.concept, options.split_shares, rng.child("splits"))
    if cap := getattr(options, "cap_per_gold", 0):
        cell, identity = asking.gold * 3 + split, asking.question * HOPS + asking.hops
        first = first_of_each(cell, cap, rng.child("cap"), identity)
        keep = dropped.keep("beyond --cap-per-gold", first)
        asking, flags, split = asking.take(keep), flags.take(keep), split[keep]
    dropped.require(asking.gold.size)
    # What distractors are drawn for: (concept, gold, hops), and the questions of each.
    key = (asking.concept * truth.size + asking.gold) * HOPS + asking.hops
    _, first_line, drawn_for = np.unique(key, return_index=True, return_inverse=True)
    drawn = asking.take(first_line)
    wanted = list(families(drawn))
    asked_by = np.bincount(drawn_for)
    batch = QuestionBatch(drawn.concept, drawn.gold, split[first_line], kinds[drawn.gold], asked_by)
    shared: dict[str, Any] = {
        "distractors": options.choices - 1,
        "max_fill": min(options.fills, options.choices - 2),
        "sampling": options.sampling,
        "rng": rng.child("distractors"),
    }
    if options.every_family:
        parts = list(perturb(batch, wanted, truth, kinds, repeats=options.perturbations, **shared))
        for label in dict.fromkeys(family.label for family in wanted):
            made = sum(part.rows.size for part in parts if part.family.label == label)
            missing = drawn.gold.size * options.perturbations - made
            dropped[f"{label}: {TOO_FEW}"] += missing
    else:
        parts = list(draw_once(batch, wanted, truth, kinds, **shared))
        dropped[TOO_FEW] += drawn.gold.size - sum(part.rows.size for part in parts)
    parts = [part for part in parts if part.rows.size]
    dropped.require(len(parts))
    names = list(dict.fromkeys((*(family.name for family in wanted), RANDOM)))
    rows = _rows_of_draws(parts, asking, split, names, drawn_for)
    return plan_rows(
        questions=questions,
        choices=choices,
        families=names,
        facts=facts,
        relation=relation,
        flags=flags.narrow().take(rows.pop("line")),
        dropped=dropped,
        **rows,
    )


def _rows_of_draws(
    parts: list[Perturbation], asking: Asking, split: Ints, names: list[str], drawn_for: Ints
) -> dict[str, Any]:
    """Lay out the rows of all draws: each draw becomes one for every question it was made for.

    Columns are as narrow as their values allow, and ``parts`` is emptied on the way: with tens of
    millions of rows a second copy of them would not fit.

    Args:
        parts: the draws.
        asking: the questions.
        split: the split of each.
        names: the families.
        drawn_for: what each question's distractors are drawn for, as the draws number it.

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
        family[here], distance[here] = number, away
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
    """(lines,) whether a text of the question holds a listed word."""
    found = np.zeros(asking.question.size, dtype=np.bool_)
    for texts in questions.fields.values():
        if pa.types.is_string(texts.type):
            found |= offensive_texts(texts)[asking.question]
    return found
