"""The pairs of each Always-Never family: its words, and what ConceptNet says about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from builders.always_never.slots import Edge, Slots, Terms
from builders.engine.audit.kin import shares_a_word
from kbprobe.arrays import Bools, Floats, Ints, joined
from kbprobe.columns import positions

EAT = ("eat", "drink")


class Source(NamedTuple):
    """Edges that say something about a pair: a relation from subject to object, or the reverse.

    If there are ``verbs``, the edge's end is one of them followed by the object ("eat mouse").
    """

    relation: str
    forward: bool = True
    verbs: tuple[str, ...] = ("",)


@dataclass(frozen=True)
class StatementFamily:
    """A template family.

    Attributes:
        subjects, objects: the kinds of words in the slots (see `builders.always_never.slots`).
        sources: the edges by which ConceptNet can say something about a pair; none for comparisons.
        prompt: the statement without its adverb, for a language model to complete.
        left_out: objects that would upset annotators, or make no sense here.
        by_nature: whether statements about a kind tend to hold for its members (birds have wings);
            those about habits do not.
        firm: minimum weight of a statement that is taken to hold always. For body parts one
            contributor is enough: whatever has them at all always has them.
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
"""All families: the six of the paper, and the two for which ConceptNet has most edges."""


class Said(NamedTuple):
    """What ConceptNet says about pairs: parallel arrays with one row per edge.

    ``subject`` is an index of the ids asked about, ``object`` of the slot's words, and ``source``
    of the family's sources; ``start`` and ``end`` are the edge's own ends.
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

    ``proposed`` are pairs that a language model proposed; None if none was used.
    """

    name: str
    family: StatementFamily
    subjects: Terms
    objects: Terms
    said: Said
    proposed: Bools | None = None

    def apart(self) -> Bools:
        """Return (subjects, objects) whether subject and object differ and share no word."""
        rows, columns = self.subjects.size, self.objects.size
        left, right = (pa.array(some.text, pa.string()) for some in (self.subjects, self.objects))
        one = np.repeat(np.arange(rows, dtype=np.int64), columns)
        other = np.tile(np.arange(columns, dtype=np.int64), rows)
        shared = shares_a_word(left, one, right, other).reshape(rows, columns)
        # Two words may be shown in the same form: the plural of "chili" and of "chilly".
        shown = (np.array(some.shown, dtype=str) for some in (self.subjects, self.objects))
        return np.asarray(~shared & ~np.equal.outer(*shown))

    def weights(self, negated: bool) -> Floats:
        """Return (subjects, objects) the largest weight of edges that state, or deny, each pair."""
        said, table = self.said, np.zeros((self.subjects.size, self.objects.size))
        lines = said.negated == negated
        np.maximum.at(table, (said.subject[lines], said.object[lines]), said.weight[lines])
        return table

    def edges(self, slots: Slots, subject: int, other: int) -> list[Edge]:
        """Return the edges behind a pair: the kinds of its words, and the statements about it."""
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


def said_of(slots: Slots, family: StatementFamily, subjects: Ints, objects: Terms) -> Said:
    """Find what ConceptNet says about subjects (ids, ascending) and the objects of a slot."""
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
