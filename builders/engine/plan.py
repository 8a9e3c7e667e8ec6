"""A plan: which questions to ask, with which choices, as integers; its flags and oracles.

A plan holds no text but refers to it: ``question`` is a row of :class:`Questions`, ``nodes`` are
rows of :class:`Nodes`. Rendering and writing gather from there, so that a text is made once however
many rows show it.

Probes make plans with the constructors of :mod:`builders.engine.rows`.

A probe is built in one of two tiers. *Clean* holds what a careful person answers; *full* also
holds questions whose gold is right in the knowledge base but which people may well get wrong. Each
row of *full* names what keeps it out of *clean*, so that the rules are data that users can inspect.

An oracle knows everything that the knowledge base states, but sees only a part of the question:
only the field of the word asked about, say. It keeps the choices that are still possible and picks
one of them at random. Where it does much better than chance, the rest of the question is hardly
needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from builders.engine.drops import DropLog
from builders.engine.options import RANDOM
from builders.engine.strategies import AnyWording, FromKnowledgeBase, Shuffled
from kbprobe.arrays import Bools, Floats, Ints, Some
from kbprobe.format.items import Coded, Ragged
from kbprobe.rng import RandomGenerator


@dataclass(frozen=True)
class Oracle:
    """The results of an oracle.

    Attributes:
        knows: a description of what it knows of a question.
        credit: (rows,) the probability that it is right.
        target: its maximum acceptable accuracy over all rows.
    """

    knows: str
    credit: Floats
    target: float

    def take(self, rows: Some) -> Oracle:
        """Return the results on some rows."""
        return Oracle(self.knows, self.credit[rows], self.target)


Oracles = Mapping[str, Oracle]
"""Name -> results of the oracle."""


def taken(oracles: Oracles, rows: Some) -> Oracles:
    """Return the results on some rows."""
    return {name: oracle.take(rows) for name, oracle in oracles.items()}


def credit(possible: Bools) -> Floats:
    """Return how likely a random pick among the possible choices is right.

    Args:
        possible: (rows, K) whether the oracle considers a choice possible, with the gold in column
            0. If it excludes all of them, it picks among all.

    >>> credit(np.array([[True, True, False], [False, True, False], [False, False, False]]))
    array([0.5       , 0.        , 0.33333333])
    """
    count = possible.sum(axis=1)
    guess = 1.0 / possible.shape[1]
    return np.asarray(np.where(count == 0, guess, possible[:, 0] / np.maximum(count, 1)))


def report(
    oracles: Oracles, family: Ints, family_names: Sequence[str], hops: Ints
) -> dict[str, object]:
    """Return, JSON-ready, how often each oracle is right: over all rows, by family and by hops.

    ``near`` are the rows of all families but the random one, if both exist.
    """
    families, of_family = np.unique(family, return_inverse=True)
    numbers, of_hops = np.unique(hops, return_inverse=True)
    near = np.array([name != RANDOM for name in family_names])[family]
    made: dict[str, object] = {}
    for name, oracle in oracles.items():
        cells = {"all": float(oracle.credit.mean())}
        if near.any() and not near.all():
            cells["near"] = float(oracle.credit[near].mean())
        cells |= _means(oracle.credit, of_family, [family_names[code] for code in families])
        made[name] = {
            "knows": oracle.knows,
            "target": oracle.target,
            "families": cells,
            "hops": _means(oracle.credit, of_hops, numbers),
        }
    return made


def _means(values: Floats, label: Ints, names: Iterable[object]) -> dict[str, float]:
    totals = np.bincount(label, values) / np.bincount(label)
    return {str(name): float(mean) for name, mean in zip(names, totals, strict=True)}


@dataclass(frozen=True)
class Flags:
    """What keeps each line (a question or a row) out of the clean tier.

    Attributes:
        names: the flags in use, in the order in which they were first marked.
        bits: (lines,) bit ``i`` stands for ``names[i]``.

    >>> flags = Flags.none(3).mark("rare_sense", np.array([True, False, True]))
    >>> flags = flags.mark("vague_gold", np.array([True, False, False]))
    >>> flags.counts(), flags.flagged.tolist()
    ({'rare_sense': 2, 'vague_gold': 1}, [True, False, True])
    """

    names: tuple[str, ...]
    bits: Ints

    @classmethod
    def none(cls, lines: int) -> Flags:
        """Return empty flags for all lines."""
        return cls((), np.zeros(lines, dtype=np.int64))

    @classmethod
    def of(cls, marks: Mapping[str, Bools]) -> Flags:
        """Return flags, given the lines that each marks; there is at least one flag."""
        flags = cls.none(next(iter(marks.values())).size)
        for name, lines in marks.items():
            flags = flags.mark(name, lines)
        return flags

    @classmethod
    def of_lines(cls, names: Iterable[str], lines: Sequence[Collection[str]]) -> Flags:
        """Return the flags that each line names."""
        return cls.of({name: np.array([name in own for own in lines], np.bool_) for name in names})

    def mark(self, name: str, lines: Bools) -> Flags:
        """Return the flags with one added; ``lines`` marks the lines that have it."""
        names = self.names if name in self.names else (*self.names, name)
        return replace(self, names=names, bits=self.bits | (lines << names.index(name)))

    def take(self, lines: Some) -> Flags:
        """Return the flags of some lines."""
        return replace(self, bits=self.bits[lines])

    def narrow(self) -> Flags:
        """Return the flags in the smallest integer type that holds them."""
        kind = np.min_scalar_type(-(1 << len(self.names)))
        return replace(self, bits=self.bits.astype(kind))

    @property
    def flagged(self) -> Bools:
        """(lines,) whether each line has any flag."""
        return np.asarray(self.bits != 0)

    def counts(self) -> dict[str, int]:
        """Return how many lines have each flag."""
        return {name: int((self.bits >> at & 1).sum()) for at, name in enumerate(self.names)}

    def of_tier(self, tier: str, dropped: DropLog, exempt: Bools | None = None) -> Bools:
        """Mark the lines that belong to a tier, and count the others in ``dropped`` by flag.

        ``exempt`` marks lines that belong to it whatever their flags.
        """
        if tier == "full":
            return np.ones(self.bits.size, dtype=np.bool_)
        asked = self if exempt is None else replace(self, bits=np.where(exempt, 0, self.bits))
        for name, count in asked.counts().items():
            dropped[left_out(name)] += count
        return ~asked.flagged

    def column(self) -> Ragged:
        """Return the items' column: the names of each line's flags."""
        combinations, line = np.unique(self.bits, return_inverse=True)
        marked = combinations[:, None] >> np.arange(len(self.names)) & 1
        indptr = np.concatenate([[0], np.cumsum(marked.sum(axis=1))]).astype(np.int64)
        names = Coded(pa.array(self.names, pa.string()), np.nonzero(marked)[1].astype(np.int64))
        return Ragged(line.astype(np.int64), indptr, {"": names})


def left_out(flag: str) -> str:
    """Return the description, for counts, of a flag that kept questions out of the clean tier."""
    return f"flagged {flag}, see --tier full"


GOLD = "gold"
"""The name of the gold in ``choice_families``, where distractors have their family."""

Column: TypeAlias = Any
"""Values by line: a list, NumPy array, pandas series or Arrow array; or one value for all."""


def text_key(*parts: str) -> int:
    """Return a number that identifies texts in all builds: 63 bits of their hash."""
    return RandomGenerator.of(0, "\x1f".join(parts)).key >> 1


def text_keys(*columns: Iterable[str]) -> Ints:
    """Return the :func:`text_key` of each line of some text columns."""
    keys = (text_key(*parts) for parts in zip(*columns, strict=True))
    return np.fromiter(keys, dtype=np.int64)


def arrow_column(values: Column, size: int) -> pa.Array:
    """Convert a column of any kind to an Arrow array of ``size`` values."""
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    if isinstance(values, str | int):
        return pa.array([values]).take(pa.array(np.zeros(size, dtype=np.int64)))
    if isinstance(values, pa.Array):
        return values
    return pa.array(values) if len(values) else pa.array([], pa.string())


@dataclass(frozen=True)
class Questions:
    """The distinct questions: one line each, shared by all rows that ask the question.

    Attributes:
        key: identity of each question in the knowledge base, whatever the options.
        fields: template field -> value of each question.
        columns: item column (``context``, ``surface_form``, ``pos``, ``premise``,
            ``hypothesis``) -> a string for each question.
        wordings: how the wording of each question is chosen.
    """

    key: Ints
    fields: Mapping[str, pa.Array]
    columns: Mapping[str, pa.Array] = field(default_factory=dict)
    wordings: AnyWording = field(default_factory=AnyWording)

    @classmethod
    def from_columns(
        cls,
        key: Ints,
        fields: Mapping[str, Column],
        wordings: AnyWording | None = None,
        **columns: str,
    ) -> Questions:
        """Make questions from columns of values; ``columns`` name the field of each item column.

        In ``pos="pos"``, the first is the item's column, the second the template's field.
        """
        arrays = {name: arrow_column(values, key.size) for name, values in fields.items()}
        shown = {name: arrays[source] for name, source in columns.items()}
        return cls(key, arrays, shown, wordings or AnyWording())


@dataclass(frozen=True)
class Nodes:
    """How choices appear in items.

    Nodes may be those of the knowledge base, or of any table made by a probe: the answers "not" and
    "really".

    Attributes:
        names: the public name of every node ("dog.n.01").
        fields: template field -> values of the given nodes, for the choice text: those of the
            fields that are asked for.
        generality: that of every node, higher is more general; None if not applicable.
        frequency: word frequency (Zipf scale) of the given nodes' head words.
        key: identity of every node in the knowledge base, whatever the options; None: its number.
    """

    names: pa.Array
    fields: Callable[[Ints, Collection[str]], Mapping[str, Sequence[Any]]]
    generality: Floats | None = None
    frequency: Callable[[Ints], Floats] | None = None
    key: Ints | None = None

    @classmethod
    def from_columns(
        cls,
        names: Sequence[str] | pa.Array,
        columns: Mapping[str, Column] | None = None,
        *,
        field: str = "",
        generality: Floats | None = None,
        frequency: Callable[[Ints], Floats] | None = None,
        key: Ints | None = None,
    ) -> Nodes:
        """Make nodes from their names and the values of each template field.

        Instead of ``columns``, ``field`` may name a single field, which shows the name.

        >>> nodes = Nodes.from_columns(["not", "really"], field="word")
        >>> nodes.fields(np.array([1, 0]), ["word"])
        {'word': ['really', 'not']}
        """
        array = arrow_column(names, len(names))
        table = {field: array} if columns is None else columns
        arrays = {name: arrow_column(values, len(array)) for name, values in table.items()}

        def fields(nodes: Ints, wanted: Collection[str]) -> Mapping[str, Sequence[Any]]:
            at = pa.array(nodes)
            return {name: arrays[name].take(at).to_pylist() for name in arrays if name in wanted}

        return cls(array, fields, generality, frequency, key)

    def keys(self, nodes: Ints) -> Ints:
        """Return the identities of some nodes."""
        return nodes if self.key is None else self.key[nodes]


@dataclass(frozen=True)
class Facts:
    """Ragged lists of triples: those of fact ``i`` are ``indptr[i]:indptr[i + 1]``.

    ``sub_question`` is, for each triple, the key of the sub-question that asks for it; None if
    there are no sub-questions.
    """

    indptr: Ints
    subject: Coded
    relation: Coded
    object: Coded
    sub_question: Ints | None = None

    @classmethod
    def from_codes(
        cls,
        subject: Ints,
        relation: int | Ints,
        object: Ints,
        terms: pa.Array,
        relations: Sequence[str],
        lengths: int | Ints = 1,
        sub_question: Ints | None = None,
    ) -> Facts:
        """Make facts from triples of indices into ``terms`` and ``relations``.

        The triples of each fact are contiguous; ``lengths`` gives their number.
        """
        if isinstance(lengths, int):
            indptr = np.arange(subject.size // lengths + 1, dtype=np.int64) * lengths
        else:
            indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        codes = np.zeros_like(subject) + relation
        names = pa.array(list(relations), pa.string())
        return cls(
            indptr, Coded(terms, subject), Coded(names, codes), Coded(terms, object), sub_question
        )

    @classmethod
    def from_triples(
        cls, facts: Iterable[Iterable[tuple[str, str, str]]], sub_question: Ints | None = None
    ) -> Facts:
        """Make facts from the texts of their triples: subject, relation, object.

        >>> one, other = ("a", "IsA", "b"), ("b", "IsA", "c")
        >>> facts = Facts.from_triples([[one, other], [("a", "IsA", "c")]])
        >>> facts.indptr.tolist(), facts.object.codes.tolist(), facts.object.values.to_pylist()
        ([0, 2, 3], [1, 2, 2], ['a', 'b', 'c'])
        """
        lists = [list(fact) for fact in facts]
        flat = [triple for fact in lists for triple in fact]
        terms = sorted({end for first, _, last in flat for end in (first, last)})
        relations = sorted({name for _, name, _ in flat})
        term = {name: at for at, name in enumerate(terms)}
        relation = {name: at for at, name in enumerate(relations)}
        codes = np.array([(term[a], relation[name], term[b]) for a, name, b in flat], np.int64)
        subject, kind, object = codes.reshape(-1, 3).T
        lengths = np.array([len(fact) for fact in lists], dtype=np.int64)
        names = pa.array(terms, pa.string())
        return cls.from_codes(subject, kind, object, names, relations, lengths, sub_question)


@dataclass(frozen=True)
class Plan:
    """A row for each question to ask.

    Attributes:
        questions, choices: the tables that the rows refer to.
        question: (rows,) index into ``questions``.
        nodes: (rows, K) indices into ``choices``: the gold in column 0, then the distractors.
        split: (rows,) index into SPLITS.
        family: (rows,) where the distractors come from.
        cluster: (rows,) semantic cluster; no split divides one.
        concept: (rows,) the node asked about.
        relation: the relation between concept and gold, or its path; where rows differ in it,
            an array of one for each of ``facts``.
        facts: the triples that make golds true.
        fact: (rows,) index into ``facts``.
        hops: (rows,) edges between concept and gold (0 if the gold is the concept itself).
        distance: (rows,) the distractors' distance k' within their family.
        choice_family: (rows, K) index into the names of families (column 0: unused).
        choice_hops: (rows, K) distance of each choice (column 0: hops).
        order: how each row's choices are ordered.
        answers: where the answers come from.
        sub_questions: config -> a plan of questions that ask for single facts of this plan's.
        variants: config -> a plan that asks some of these questions otherwise, each under the same
            key: other texts, maybe another gold among the same choices. Each of this plan's
            questions then has one row.
        flags: what keeps each row out of the clean tier; None: nothing.
        fold: (rows,) the fold of each row's cluster, for cross-validation; None: there are none.
        oracles: the results of oracles of partial knowledge on the rows; or a function that returns
            those of a plan, so that they are computed for the rows that the audit samples.
        matched_on: encoder -> digest, of those that choice groups are matched on.
        dropped: description of what was left out -> how many.
    """

    questions: Questions
    choices: Nodes
    question: Ints
    nodes: Ints
    split: Ints
    family: Coded
    cluster: Coded
    concept: Coded
    relation: str | pa.Array
    facts: Facts
    fact: Ints
    hops: Ints
    distance: Ints
    choice_family: Ints
    choice_hops: Ints
    order: Shuffled = field(default_factory=Shuffled)
    answers: FromKnowledgeBase = field(default_factory=FromKnowledgeBase)
    sub_questions: Mapping[str, Plan] = field(default_factory=dict)
    variants: Mapping[str, Plan] = field(default_factory=dict)
    flags: Flags | None = None
    fold: Ints | None = None
    oracles: Oracles | Callable[[Plan], Oracles] = field(default_factory=dict)
    matched_on: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.question.size)

    @property
    def known(self) -> Bools:
        """(rows,) whether a row has an answer yet."""
        return self.answers.known(len(self))

    @property
    def question_keys(self) -> Ints:
        """(rows,) the identity of each row's question."""
        return self.questions.key[self.question]

    def take(self, rows: Some) -> Plan:
        """Return the plan of some rows, in the order given."""
        concept = self.concept.take(rows)
        # If clusters are concepts, the two share one array.
        cluster = concept if self.cluster is self.concept else self.cluster.take(rows)
        by_row = (
            *("question", "nodes", "split", "fact"),
            *("hops", "distance", "choice_family", "choice_hops"),
        )
        return replace(
            self,
            concept=concept,
            cluster=cluster,
            flags=None if self.flags is None else self.flags.take(rows),
            fold=None if self.fold is None else self.fold[rows],
            oracles=self.oracles if callable(self.oracles) else taken(self.oracles, rows),
            **{name: getattr(self, name)[rows] for name in by_row},
            **{name: getattr(self, name).take(rows) for name in ("family", "order", "answers")},
        )

    def oracles_on(self, rows: Ints) -> Oracles:
        """Return the results of oracles on some rows."""
        if callable(self.oracles):
            return self.oracles(self.take(rows))
        return taken(self.oracles, rows)

    def with_dropped(self, reason: str, count: int) -> Plan:
        """Return the plan with a note that ``count`` rows were left out."""
        if count == 0:
            return self
        return replace(self, dropped={**self.dropped, reason: self.dropped.get(reason, 0) + count})

    def keep(self, reason: str, kept: Bools) -> Plan:
        """Return the plan of the rows that a mask marks; count the others as left out."""
        dropped = int(kept.size - np.count_nonzero(kept))
        return self.take(kept).with_dropped(reason, dropped) if dropped else self
