"""Taxonomy conjunction: what are two things both a type of?

After Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020, section 4.4).
See docs/probes/taxonomy_conjunction.md, and docs/methods.md for the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from builders.engine.draw.balanced import draw_uniform
from builders.engine.draw.likeness import ComparedTexts, likeness_of, similarities
from builders.engine.drops import DropLog
from builders.engine.options import RANDOM
from builders.engine.plan import Facts, Nodes, Oracle, Plan, Questions, credit
from builders.engine.probe import probe
from builders.engine.rows import RowArrays, plan_rows
from builders.engine.strategies import ByChoiceGroup
from builders.english.nouns import Nouns
from builders.english.screen import OFFENSIVE
from builders.lexicons import wordnet_first
from builders.taxonomy.blocks import choice_groups
from builders.taxonomy.crossing import crossed
from builders.taxonomy.options import (
    CONJUNCTION,
    FLAGS,
    LEVEL,
    PAPER,
    TREES,
    TREES_OF_SPLITS,
    TaxonomyOptions,
)
from builders.taxonomy.questions import AskableTaxonomy
from builders.taxonomy.words import Taxonomy
from builders.wordnet.synsets import path_facts
from kbprobe.arrays import Bools, Ints, joined, lines_of, ragged_ranges, sorted_unique
from kbprobe.format.setups import CLOZE, NO_LANGUAGE, PERTURBED, SPLITS
from kbprobe.rng import RandomGenerator

MIXED = "mixed"
"""The family of groups in which two of the three answers are at the same level. All rows of a group
are of one family, although the distractors of the third answer are at another level."""

ONE_WORD = 0.6
"""Maximum accuracy of an oracle that knows only one of the words."""

FAMILIES = (CONJUNCTION, LEVEL, MIXED, RANDOM, PAPER)
"""The families of groups, nearest first."""


@lru_cache(maxsize=2)
def _load(wordnet: str, conceptnet: str) -> Taxonomy:
    lexicon = wordnet_first(wordnet, conceptnet)
    return Taxonomy(lexicon.wordnet, lexicon.conceptnet)


def open_taxonomy(options: TaxonomyOptions) -> Taxonomy:
    """Load the knowledge bases that the options name, once per process."""
    return _load(options.wordnet, options.conceptnet)


@probe(
    "taxonomy_conjunction",
    options=TaxonomyOptions,
    open=open_taxonomy,
    question_fields=("x", "x_mass", "y", "y_mass"),
    choice_fields=("word",),
    setup=CLOZE,
    controls=(NO_LANGUAGE, PERTURBED),
    paper="olmpics",
    flags=FLAGS,
)
def taxonomy_conjunction(
    taxonomy: Taxonomy, options: TaxonomyOptions, rng: RandomGenerator
) -> Plan:
    """What are two things both a type of?"""
    dropped = DropLog()
    if options.screen:
        dropped[f"words: {OFFENSIVE}"] = int((taxonomy.plain & taxonomy.offensive).sum())
    askable = AskableTaxonomy.of(taxonomy, options, dropped)
    drawn, matched_on = [], dict[str, str]()
    level = _grouped(askable, rng.child(LEVEL)) if LEVEL in options.families else None
    few = options.tier == "clean"
    if CONJUNCTION in options.families:
        drawn.append(_crossed(askable, level, few, rng.child(CONJUNCTION), matched_on))
    if level is not None:
        if drawn and few:
            others = np.bincount(_splits(drawn[0], askable), minlength=len(SPLITS))
            kept = _within_shares(level, others, askable)
            level = lines_of(level, dropped.keep("level: beyond its share", kept))
        drawn.append(level)
    if PAPER in options.families:
        drawn.append(_papers(askable, rng.child(PAPER), dropped))
    dropped.require(sum(rows.x.size for rows in drawn))
    return replace(_plan(drawn, askable, rng, dropped), matched_on=matched_on)


class DrawnPairs(NamedTuple):
    """Questions: ``x`` and ``y`` are lines of all pairs, ``nodes`` the (rows, 2) distractors.

    ``family`` (rows, 3) is the family of each choice (for the gold: of the row), and ``group`` the
    number of the group of rows that share their choices.
    """

    x: Ints
    y: Ints
    nodes: Ints
    family: Ints
    group: Ints


def _crossed(
    askable: AskableTaxonomy,
    level: DrawnPairs | None,
    few: bool,
    rng: RandomGenerator,
    matched_on: dict[str, str],
) -> DrawnPairs:
    """Ask about crossing kinds, in which each word is one of the two distractors.

    ``few`` says whether rows of ``level`` beyond their shares will be dropped. The encoders that
    choices are matched on are added to ``matched_on``.
    """
    options, size = askable.options, len(askable.taxonomy)
    words = askable.taxonomy.words

    def compared() -> Callable[[Ints, Ints], Ints]:
        sides = np.unique(askable.listed.word), np.unique(askable.listed.kind)
        one, other = (words.take(pa.array(side)).to_pylist() for side in sides)
        none = np.empty(0, dtype=np.int64)
        likeness = likeness_of(ComparedTexts(one, other, none, none), options.encoders)
        matched_on.update(likeness.digests)
        alike = similarities(likeness.views).astype(np.int64)
        return lambda *some: alike[np.ix_(*map(np.searchsorted, sides, some))]

    def also_shown(rows: int) -> Ints:
        if level is None:
            return np.zeros(size, dtype=np.int64)
        shown = _splits(level, askable) == SPLITS.index("test")
        if few:
            shown &= _within_shares(level, np.array([0, 0, rows]), askable)
        nodes = level.nodes[shown].ravel(), askable.pairs.answer[level.x[shown]]
        return np.bincount(np.concatenate(nodes), minlength=size)

    rows = crossed(
        askable.listed,
        askable.general,
        np.isin(list(TREES), TREES_OF_SPLITS["test"]),
        also_shown,
        options.cap_per_word,
        options.cap_per_gold,
        rng,
        compared() if options.matched else None,
    )
    keys = askable.crossing.word * size + askable.crossing.answer
    x, y = (
        askable.pairs.word.size + np.searchsorted(keys, word * size + rows.gold)
        for word in (rows.x, rows.y)
    )
    nodes = np.stack([rows.x_kind, rows.y_kind], axis=1)
    family = np.full((x.size, 3), 1 + FAMILIES.index(CONJUNCTION))
    return DrawnPairs(x, y, nodes, family, np.arange(x.size, dtype=np.int64))


def _splits(drawn: DrawnPairs, askable: AskableTaxonomy) -> Ints:
    """Return the split of each question."""
    return askable.split[askable.all_pairs.word[drawn.x]]


LEVEL_SHARES, MATCHED_LEVEL_SHARES = (0.55, 0.55, 0.2), (0.55, 0.55, 0.1)
"""Maximum shares of the family ``level``, of which one word is enough, in each split; similarity
answers nearly all of its questions, so that fewer stand beside matched ones."""


def _within_shares(level: DrawnPairs, others: Ints, askable: AskableTaxonomy) -> Bools:
    """Mark the groups of the family ``level`` that fit its shares, nearest first.

    ``others`` is how many questions of other families each split has.
    """
    share = np.array(MATCHED_LEVEL_SHARES if askable.options.matched else LEVEL_SHARES)
    room = others * share / (1 - share)
    split = _splits(level, askable)
    order = np.lexsort((level.group, level.family[:, 0], split))
    splits = split[order]
    place = np.arange(order.size) - np.searchsorted(splits, splits)
    # A group is kept as a whole, or not at all.
    last = np.zeros(int(level.group.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(last, level.group[order], place)
    unlimited = (room == 0) | askable.options.may_be_doubtful(np.arange(len(SPLITS)))
    return np.asarray(last[level.group] + 1 <= np.where(unlimited, np.inf, room)[split])


def _grouped(askable: AskableTaxonomy, rng: RandomGenerator) -> DrawnPairs:
    """Put questions into groups whose rows show the same choices, preferably of one level."""
    groups = choice_groups(askable, rng)
    level, other, mixed = (1 + FAMILIES.index(name) for name in (LEVEL, RANDOM, MIXED))
    of_choice = np.where(groups.kin == 1, level, other)
    # A row has the family of its group, so that answers are balanced within families too.
    near = np.bincount(groups.group, groups.kin.any(axis=1))
    family = np.where(near == 0, other, np.where(near == np.bincount(groups.group), level, mixed))
    of_row = family[groups.group]
    return DrawnPairs(
        groups.x,
        groups.y,
        groups.nodes,
        np.concatenate([of_row[:, None], of_choice], axis=1),
        groups.group,
    )


def _papers(askable: AskableTaxonomy, rng: RandomGenerator, dropped: DropLog) -> DrawnPairs:
    """Choose two distractors for each question as published: answers of one of the words."""
    asked = askable.word_pairs(rng.child("pairs"), dropped)
    rows = np.arange(asked.x.size, dtype=np.int64)
    nodes = draw_uniform(asked.candidates, rows, 2, rng.child("draw")).nodes
    family = np.full((rows.size, 3), 1 + FAMILIES.index(PAPER))
    return DrawnPairs(asked.x, asked.y, nodes, family, rows)


def _plan(
    drawn: Sequence[DrawnPairs], askable: AskableTaxonomy, rng: RandomGenerator, dropped: DropLog
) -> Plan:
    pairs, taxonomy = askable.all_pairs, askable.taxonomy
    number = np.cumsum([0, *(int(some.group.max(initial=-1)) + 1 for some in drawn)])
    rows = joined(
        [some._replace(group=some.group + at) for some, at in zip(drawn, number, strict=False)]
    )
    swapped = (rng.child("order").bits(rows.x, rows.y) & np.uint64(1)).astype(np.bool_)
    x, y = np.where(swapped, rows.y, rows.x), np.where(swapped, rows.x, rows.y)
    rows = rows._replace(x=x, y=y)
    bits = np.concatenate([askable.flags.bits, np.zeros_like(askable.crossing.word)])
    flags = replace(askable.flags, bits=bits[x] | bits[y])
    x, y, size = pairs.word[rows.x], pairs.word[rows.y], len(taxonomy)
    keys, question = np.unique(x * size + y, return_inverse=True)
    nodes = np.concatenate([pairs.answer[rows.x][:, None], rows.nodes], axis=1)
    x_hops, y_hops = (askable.hops(word[:, None], nodes) for word in (x, y))
    hops = np.maximum(x_hops, y_hops)
    hops[:, 0] = pairs.hops[rows.x]
    oracles = {
        f"{name} alone": Oracle(f"what the {place} word is", credit(known > 0), ONE_WORD)
        for name, place, known in (("x", "first", x_hops), ("y", "second", y_hops))
    }
    return plan_rows(
        RowArrays(
            nodes=nodes,
            split=askable.split[x],
            family=rows.family[:, 0],
            concept=x,
            question=question,
            hops=pairs.hops[rows.x],
            choice_family=rows.family,
            choice_hops=hops,
        ),
        questions=_questions(taxonomy, keys),
        choices=Nodes.from_columns(
            taxonomy.words,
            field="word",
            generality=askable.general,
            frequency=lambda nodes: taxonomy.zipf[nodes],
        ),
        families=FAMILIES,
        relation="hypernym",
        facts=_facts(rows, askable),
        order=ByChoiceGroup(rows.group),
        flags=flags,
        oracles=oracles,
        dropped=dropped,
    )


def _questions(taxonomy: Taxonomy, keys: Ints) -> Questions:
    size = len(taxonomy)
    fields = {}
    for name, word in (("x", keys // size), ("y", keys % size)):
        fields[name] = taxonomy.words.take(pa.array(word))
        texts = fields[name].to_pylist()
        nouns = Nouns(taxonomy.wordnet, texts)
        fields[f"{name}_mass"] = pa.array(["" if nouns.is_counted(x) else "yes" for x in texts])
    return Questions.from_columns(keys, {**fields, "pos": "noun"}, pos="pos")


def _facts(rows: DrawnPairs, askable: AskableTaxonomy) -> Facts:
    """Return for each row the edges from x, then from y, up to the gold.

    In WordNet they lead from the word to a sense, from synset to synset, and to the answer's lemma.
    """
    wordnet, words = askable.taxonomy.wordnet, askable.taxonomy.words
    used = sorted_unique(np.concatenate([rows.x, rows.y]))
    legs = lines_of(askable.all_pairs, used)
    walked = legs.top >= 0
    some = lines_of(legs, walked)
    names = wordnet.synsets["name"].combine_chunks()
    path = path_facts(askable.taxonomy.trusted, some.sense, some.top, some.hops, "hypernym", names)
    lengths = np.where(walked, legs.hops + 2, 1)
    start = np.concatenate([[0], np.cumsum(lengths)])
    subject, relation, target = (np.empty(start[-1], dtype=np.int64) for _ in range(3))
    # The ends of a leg are words; a leg of one edge is ConceptNet's.
    relation[start[:-1]] = np.where(walked, 1, 3)
    subject[start[:-1]] = legs.word
    target[start[:-1]] = np.where(walked, legs.sense + len(words), legs.answer)
    last = start[1:][walked] - 1
    relation[last], target[last] = 2, some.answer
    subject[last] = some.top + len(words)
    middle = ragged_ranges(start[:-1][walked] + 1, some.hops)
    relation[middle] = 0
    subject[middle] = path.subject.codes + len(words)
    target[middle] = path.object.codes + len(words)
    line = np.searchsorted(used, np.stack([rows.x, rows.y], axis=1))
    cells = ragged_ranges(start[line.ravel()], lengths[line.ravel()])
    return Facts.from_codes(
        subject[cells],
        relation[cells],
        target[cells],
        pa.concat_arrays([words, names]),
        ("hypernym", "sense", "lemma", "IsA"),
        lengths[line].sum(axis=1),
    )
