"""Facts that a user states: triples of a subject, a relation and an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kb_cache.knowledge import Loaded
from kbprobe.arrays import Bools, Ints


@dataclass(frozen=True, eq=False)
class FactTable(Loaded):
    """A table of facts, each once.

    Attributes:
        texts: the distinct texts of subjects, objects and their other names.
        relations: the names of the relations, in the order of the table.
        asked: those to ask about.
        subject, relation, object: (facts,) numbers of texts and relations.
        current: (facts,) whether a fact is the latest of its subject and relation, where the table
            has a column of years; earlier ones are not asked about.
        kind, subject_kind: (facts,) the number of the kind of the object and of the subject; 0 if
            the table has no such column.
        split: (facts,) index into SPLITS of the split that the table puts the subject in; -1: none.
        other_names: (2, pairs) texts, and other names of what they name.
        sentences: relation -> how the table's own sentence asks for it, ``{}`` is the subject.
        left_out: reason -> how many of the table's facts are left out.
    """

    texts: pa.Array
    relations: tuple[str, ...]
    asked: tuple[str, ...]
    subject: Ints
    relation: Ints
    object: Ints
    current: Bools
    kind: Ints
    subject_kind: Ints
    split: Ints
    other_names: Ints
    sentences: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of facts."""
        return self.subject.size

    def of_relations(self, lines: Ints) -> Iterator[tuple[str, Ints]]:
        """Yield each relation, and which of some facts are its."""
        relation = self.relation[lines]
        order = np.argsort(relation, kind="stable")
        ends = np.searchsorted(relation[order], np.arange(1, len(self.relations)))
        yield from zip(self.relations, np.split(lines[order], ends), strict=True)
