"""Which Always-Never statements to have labelled: pairs of a subject and an object, by family.

Nobody knows yet how often a candidate holds. Half of them are pairs of which ConceptNet says
something (or, of two things to compare, that are of one kind): they tend to hold at least
sometimes. The other half are pairs of which it says nothing, with the same subjects and objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from builders.always_never.labels import SCALE
from builders.always_never.slots import Edge, Slots, Terms
from builders.engine.audit.kin import shares_a_word
from kbprobe.arrays import Bools, Floats, Ints, joined
from kbprobe.columns import positions
from kbprobe.rng import RandomGenerator

EAT = ("eat", "drink")

FIRM, SEVERAL = 4.0, 2.0
"""Weights from which several people, and many, stand behind a statement."""


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
    """

    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    sources: tuple[Source, ...] = ()
    prompt: str = "{} [MASK]."
    left_out: frozenset[str] = frozenset()


_SIZED = ("animal", "vehicle", "thing")
_PETS = frozenset(
    {"beagle", "cat", "dog", "greyhound", "horse", "kitten", "pony", "poodle", "puppy", "piglet"}
)

FAMILIES: Mapping[str, StatementFamily] = {
    "body_part": StatementFamily(
        ("animal",), ("body part",), (Source("HasA"), Source("PartOf", False)), "{} have [MASK]."
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
    ),
    "placed": StatementFamily(
        ("small thing",), ("place",), (Source("AtLocation"),), "{} are placed in [MASK]."
    ),
    "deed": StatementFamily(("animal",), ("deed",), (Source("CapableOf"),)),
    "quality": StatementFamily(("food",), ("quality",), (Source("HasProperty"),), "{} are [MASK]."),
}
"""Every family: the six of the paper, and two of which ConceptNet itself says most."""


class Said(NamedTuple):
    """What ConceptNet says of pairs: parallel arrays, an edge a line.

    ``subject`` and ``object`` are places in the slots' words, ``source`` in the family's sources;
    ``start`` and ``end`` are the edge's own ends.
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

    def likely(self) -> Bools:
        """(subjects, objects) whether ConceptNet says anything, or both are of one kind."""
        if not self.family.sources:
            kinds = (np.array(some.kind, dtype=str) for some in (self.subjects, self.objects))
            return np.asarray(np.equal.outer(*kinds))
        marked = np.zeros((self.subjects.size, self.objects.size), dtype=np.bool_)
        marked[self.said.subject, self.said.object] = True
        return marked

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
    fits = [at for at, text in enumerate(objects.text) if text not in family.left_out]
    objects = objects.take(fits)
    return Pool(name, family, subjects, objects, _said(slots, family, subjects, objects))


def _said(slots: Slots, family: StatementFamily, subjects: Terms, objects: Terms) -> Said:
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
                row, column = positions(subjects.id, own), positions(named[verb], other)
                line = np.flatnonzero((row >= 0) & (column >= 0))
                source, sign = np.full(line.size, number), np.full(line.size, negated)
                ends = start[line], end[line]
                parts.append(Said(row[line], column[line], source, sign, weight[line], *ends))
    return joined(parts)


def draw(pool: Pool, rows: int, rng: RandomGenerator) -> tuple[Ints, Ints]:
    """Choose candidates, half of them likely; no word comes up much more often than others.

    Args:
        pool: all pairs.
        rows: how many to choose.
        rng: the random generator.

    Returns:
        Subjects and objects, as places in the pool's words; fewer than asked for where they run
        out.
    """
    apart, likely = pool.apart(), pool.likely()
    if pool.proposed is not None:
        apart &= pool.proposed
        likely &= apart
    subjects, objects = pool.subjects.id, pool.objects.id
    race = rng.uniform(subjects[:, None], objects[None, :])
    taken = _Taken(
        _share(rows, subjects.size), _share(2 * rows, objects.size), Counter(), Counter(), []
    )
    taken.add(np.where(apart & likely, race, 2.0), (rows + 1) // 2)
    # Objects of which something is said of many are asked about of others as often.
    popular = 1.0 + np.bincount(pool.said.object, minlength=objects.size)
    taken.add(np.where(apart & ~likely, race ** np.minimum(popular, 3.0), 2.0), rows)
    taken.add(np.where(apart & likely, race, 2.0), rows)
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


def all_said(pool: Pool) -> tuple[Ints, Ints]:
    """Return all pairs of which ConceptNet says something, denials included."""
    marked = pool.apart() & pool.likely() & bool(pool.family.sources)
    rows, columns = np.nonzero(marked)
    return rows.astype(np.int64), columns.astype(np.int64)


def grades(pool: Pool, subjects: Ints, objects: Ints) -> Ints:
    """Grade pairs by what ConceptNet says of them, and how many people stand behind it.

    ConceptNet does not say how often something holds: the grade is no gold standard.

    never: denied, and stated by nobody; rarely: denied at least as firmly as stated; sometimes:
    stated more firmly than denied, or by one voice alone; often: stated by several and denied by
    nobody; always: by many.

    Args:
        pool: the pairs' words and edges.
        subjects: places in its subjects.
        objects: places in its objects.

    Returns:
        Places in the scale.
    """
    said, shape = pool.said, (pool.subjects.size, pool.objects.size)
    stated, denied = np.zeros(shape), np.zeros(shape)
    for table, lines in ((stated, ~said.negated), (denied, said.negated)):
        np.maximum.at(table, (said.subject[lines], said.object[lines]), said.weight[lines])
    yes, no = stated[subjects, objects], denied[subjects, objects]
    grade = np.select(
        [yes == 0, (no > 0) & (no >= yes), (no > 0) | (yes < SEVERAL), yes < FIRM],
        [SCALE.index(name) for name in ("never", "rarely", "sometimes", "often")],
        SCALE.index("always"),
    )
    return np.asarray(grade, dtype=np.int64)
