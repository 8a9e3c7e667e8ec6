"""Which Always-Never statements to have labelled: pairs of a subject and an object, by family.

Nobody knows yet how often a candidate holds. As many are drawn of each level of
:mod:`builders.always_never.levels`, from those that should never hold to those that always should.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from builders.always_never.labels import SCALE
from builders.always_never.levels import (
    COMMON,
    LEVELS,
    SEVERAL,
    UNFIT,
    said_levels,
    size_levels,
    sized,
    support,
)
from builders.always_never.slots import Edge, Slots, Terms
from builders.engine.audit.kin import shares_a_word
from kbprobe.arrays import Bools, Floats, Ints, joined
from kbprobe.columns import positions
from kbprobe.rng import RandomGenerator

EAT = ("eat", "drink")


class Source(NamedTuple):
    """Edges that say something of a pair: a relation, from subject to object or the other way.

    Where there are ``verbs``, the edge's end is one of them and the object ("eat mouse").
    """

    relation: str
    forward: bool = True
    verbs: tuple[str, ...] = ("",)


@dataclass(frozen=True)
class StatementFamily:
    """A template family.

    Attributes:
        subjects, objects: the kinds of words in the slots (see `builders.always_never.slots`).
        sources: what ConceptNet can say of a pair; none where two things are compared.
        prompt: the statement without its adverb, for a language model to complete.
        left_out: objects that would upset annotators, or make no sense here.
        by_nature: whether what is stated of a kind tends to hold of its members (birds have wings);
            no habit does.
        firm: weight from which a statement is taken to hold always. Of parts of bodies, one voice
            will do: what has them at all always has them.
    """

    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    sources: tuple[Source, ...] = ()
    prompt: str = "{} [MASK]."
    left_out: frozenset[str] = frozenset()
    by_nature: bool = False
    firm: float = 4.0


_SIZED = ("animal", "vehicle", "thing")
_PETS = frozenset(
    {"beagle", "cat", "dog", "greyhound", "horse", "kitten", "pony", "poodle", "puppy", "piglet"}
)

FAMILIES: Mapping[str, StatementFamily] = {
    "body_part": StatementFamily(
        ("animal",),
        ("body part",),
        (Source("HasA"), Source("PartOf", False)),
        "{} have [MASK].",
        by_nature=True,
        firm=1.0,
    ),
    "dish": StatementFamily(
        ("food",),
        ("food",),
        tuple(
            Source(relation, forward)
            for relation in ("HasA", "MadeOf", "PartOf", "AtLocation", "LocatedNear", "RelatedTo")
            for forward in (True, False)
        ),
        "A dish with {} contains [MASK].",
    ),
    "larger": StatementFamily(_SIZED, _SIZED, prompt="{} are larger than [MASK]."),
    "smaller": StatementFamily(_SIZED, _SIZED, prompt="{} are smaller than [MASK]."),
    "diet": StatementFamily(
        ("animal",),
        ("eaten", "animal"),
        (Source("CapableOf", verbs=EAT), Source("Desires", verbs=EAT)),
        "{} eat [MASK].",
        _PETS,
        by_nature=True,
    ),
    "placed": StatementFamily(
        ("small thing",), ("place",), (Source("AtLocation"),), "{} are placed in [MASK]."
    ),
    "deed": StatementFamily(("animal",), ("deed",), (Source("CapableOf"),), by_nature=True),
    "quality": StatementFamily(
        ("food",), ("quality",), (Source("HasProperty"),), "{} are [MASK].", by_nature=True
    ),
}
"""Every family: the six of the paper, and two of which ConceptNet itself says most."""


class Said(NamedTuple):
    """What ConceptNet says of pairs: parallel arrays, an edge a line.

    ``subject`` is a place in the ids asked about, ``object`` in the slot's words, ``source`` in the
    family's sources; ``start`` and ``end`` are the edge's own ends.
    """

    subject: Ints
    object: Ints
    source: Ints
    negated: Bools
    weight: Floats
    start: Ints
    end: Ints


@dataclass(frozen=True)
class Pool:
    """All pairs of a family.

    ``proposed`` are pairs that a language model came up with; None if none was asked.
    """

    name: str
    family: StatementFamily
    subjects: Terms
    objects: Terms
    said: Said
    proposed: Bools | None = None

    def apart(self) -> Bools:
        """(subjects, objects) whether a pair shares no word and is not one and the same."""
        rows, columns = self.subjects.size, self.objects.size
        left, right = (pa.array(some.text, pa.string()) for some in (self.subjects, self.objects))
        one = np.repeat(np.arange(rows, dtype=np.int64), columns)
        other = np.tile(np.arange(columns, dtype=np.int64), rows)
        shared = shares_a_word(left, one, right, other).reshape(rows, columns)
        # Two words may be shown alike: the plural of "chili" and of "chilly".
        shown = (np.array(some.shown, dtype=str) for some in (self.subjects, self.objects))
        return np.asarray(~shared & ~np.equal.outer(*shown))

    def weights(self, negated: bool) -> Floats:
        """(subjects, objects) the largest weight with which each pair is stated, or denied."""
        said, table = self.said, np.zeros((self.subjects.size, self.objects.size))
        lines = said.negated == negated
        np.maximum.at(table, (said.subject[lines], said.object[lines]), said.weight[lines])
        return table

    def levels(self, slots: Slots) -> Ints:
        """(subjects, objects) how often each pair is expected to hold; UNFIT where not asked."""
        if not self.family.sources:
            return size_levels(self.subjects, self.objects, self.name == "smaller")
        return said_levels(self, slots)

    def edges(self, slots: Slots, subject: int, other: int) -> list[Edge]:
        """Return the edges that a pair was made from: what its words are, and what is said."""
        terms = (self.subjects, subject), (self.objects, other)
        found = [
            edge for words, at in terms for edge in slots.reasons(int(words.id[at]), words.kind[at])
        ]
        said = self.said
        lines = np.flatnonzero((said.subject == subject) & (said.object == other))
        for line in lines.tolist():
            name = self.family.sources[said.source[line]].relation
            start, end = (slots.texts[int(ends[line])].as_py() for ends in (said.start, said.end))
            found.append(Edge(start, f"Not{name}" if said.negated[line] else name, end))
        return list(dict.fromkeys(found))


def pool(slots: Slots, name: str) -> Pool:
    """Find a family's words, and what ConceptNet says of their pairs."""
    family = FAMILIES[name]
    subjects, objects = slots.terms(*family.subjects), slots.terms(*family.objects)
    if not family.sources:
        subjects, objects = (
            some.take(np.flatnonzero(sized(some)).tolist()) for some in (subjects, objects)
        )
    fits = [at for at, text in enumerate(objects.text) if text not in family.left_out]
    objects = objects.take(fits)
    return Pool(name, family, subjects, objects, said_of(slots, family, subjects.id, objects))


def said_of(slots: Slots, family: StatementFamily, subjects: Ints, objects: Terms) -> Said:
    """Find what ConceptNet says of some subjects (ids, ascending) and the objects of a slot."""
    none = np.empty(0, dtype=np.int64)
    parts = [Said(none, none, none, none.astype(np.bool_), none.astype(np.float64), none, none)]
    verbs_used = sorted({verb for source in family.sources for verb in source.verbs} - {""})
    phrases = [f"{verb} {text}" for verb in verbs_used for text in objects.text]
    found = slots.conceptnet.lookup(phrases).reshape(len(verbs_used), objects.size)
    named: dict[str, Ints] = {"": objects.id, **dict(zip(verbs_used, found, strict=True))}
    for number, (relation, forward, verbs) in enumerate(family.sources):
        for negated in (False, True):
            start, end, weight = slots.told(relation, negated)
            own, other = (start, end) if forward else (end, start)
            for verb in verbs:
                row, column = positions(subjects, own), positions(named[verb], other)
                line = np.flatnonzero((row >= 0) & (column >= 0))
                source, sign = np.full(line.size, number), np.full(line.size, negated)
                ends = start[line], end[line]
                parts.append(Said(row[line], column[line], source, sign, weight[line], *ends))
    return joined(parts)


def draw(pool: Pool, slots: Slots, rows: int, rng: RandomGenerator) -> tuple[Ints, Ints]:
    """Choose candidates, as many of each level; no word comes up much more often than others.

    Args:
        pool: all pairs.
        slots: where its words come from.
        rows: how many to choose.
        rng: the random generator.

    Returns:
        Subjects and objects, as places in the pool's words; fewer than asked for where they run
        out.
    """
    level = np.where(pool.apart(), pool.levels(slots), UNFIT)
    if pool.proposed is not None:
        level = np.where(pool.proposed, level, UNFIT)
    subjects, objects = pool.subjects.id, pool.objects.id
    race = rng.uniform(subjects[:, None], objects[None, :])
    taken = _Taken(
        _share(rows, subjects.size), _share(2 * rows, objects.size), Counter(), Counter(), []
    )
    # Objects of which something is said of many are asked about of others as often.
    popular = 1.0 + np.bincount(pool.said.object, minlength=objects.size)
    race = np.where(level > 0, race, race ** np.minimum(popular, 3.0))
    # The rarest level first: what it lacks is made up for by the others.
    order = np.argsort(np.bincount(level[level >= 0], minlength=LEVELS), kind="stable")
    for nth, one in enumerate(order.tolist()):
        left = rows - len(taken.pairs)
        taken.add(np.where(level == one, race, 2.0), len(taken.pairs) + left // (LEVELS - nth))
    taken.add(np.where(level != UNFIT, race, 2.0), rows)
    pairs = np.array(sorted(taken.pairs), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _share(rows: int, words: int) -> int:
    """How often a word may come up, where rows are to be dealt out over all words."""
    return 2 + (3 * rows) // (2 * max(words, 1))


class _Taken(NamedTuple):
    """Pairs chosen so far, and how often each word was."""

    per_subject: int
    per_object: int
    subjects: Counter[int]
    objects: Counter[int]
    pairs: list[tuple[int, int]]

    def add(self, race: Floats, upto: int) -> None:
        """Add pairs, those with the lowest numbers first, until there are so many; 2 bars one."""
        seen = set(self.pairs)
        width = race.shape[1]
        order = np.argsort(race, axis=None, kind="stable")
        for cell in order[: int((race < 2.0).sum())].tolist():
            if len(self.pairs) >= upto:
                return
            pair = divmod(cell, width)
            if pair in seen or self.subjects[pair[0]] >= self.per_subject:
                continue
            if self.objects[pair[1]] >= self.per_object:
                continue
            self.subjects[pair[0]] += 1
            self.objects[pair[1]] += 1
            self.pairs.append(pair)


def all_said(pool: Pool, slots: Slots) -> tuple[Ints, Ints]:
    """Return the pairs of which ConceptNet says something, denials included.

    Left out are pairs that one voice denies although they are stated of what the subject is, or of
    much that is like it ("elephants never have fur"): nothing tells which of the two is wrong.
    """
    stated, denial = pool.weights(False) > 0, pool.weights(True)
    denied = denial > 0
    doubtful = denied & (denial < SEVERAL) & ~stated & _backed(pool, slots)
    rows, columns = np.nonzero(pool.apart() & (stated | denied) & ~doubtful)
    return rows.astype(np.int64), columns.astype(np.int64)


def grades(pool: Pool, slots: Slots, subjects: Ints, objects: Ints) -> Ints:
    """Grade pairs by what ConceptNet says of them, and how many people stand behind it.

    ConceptNet does not say how often something holds: the grade is no gold standard.

    never: denied, and stated by nobody; rarely: denied at least as firmly as stated; sometimes:
    stated more firmly than denied, or by one voice alone; often: stated by several, or by one and
    of what the subject is or of much that is like it; always: with the family's firm weight, or by
    several and of these.

    Args:
        pool: the pairs' words and edges.
        slots: where its words come from.
        subjects: places in its subjects.
        objects: places in its objects.

    Returns:
        Places in the scale.
    """
    yes, no = (pool.weights(negated)[subjects, objects] for negated in (False, True))
    backed, firm = _backed(pool, slots)[subjects, objects], pool.family.firm
    grade = np.select(
        [
            yes == 0,
            (no > 0) & (no >= yes),
            (no > 0) | ((yes < min(SEVERAL, firm)) & ~backed),
            (yes < firm) & ((yes < SEVERAL) | ~backed),
        ],
        [SCALE.index(name) for name in ("never", "rarely", "sometimes", "often")],
        SCALE.index("always"),
    )
    return np.asarray(grade, dtype=np.int64)


def _backed(pool: Pool, slots: Slots) -> Bools:
    """(subjects, objects) whether a pair is stated of what the subject is, or of much like it."""
    if not pool.family.by_nature:
        return np.zeros((pool.subjects.size, pool.objects.size), dtype=np.bool_)
    inherited, share = support(pool, slots)
    return inherited | (share >= COMMON)
