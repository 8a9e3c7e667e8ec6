"""From a plan to ordered rows and columns of items, on integers.

Here duplicates and identically worded choices are removed, and wordings and the order of rows and
choices are chosen, for all rows at once. Rows are then rendered block by block by
:mod:`builders.engine.render.blocks`. Texts of choices are rendered here, once each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.plan import Plan
from builders.engine.render.jinja import Rewrite, TemplateError, fields_of, render_batch
from builders.engine.render.template_file import Template, Wording
from kbprobe.arrays import AnyInts, Bools, Ints, Some, UInts, mask_at, ragged_ranges, sorted_unique
from kbprobe.audit.rows import MAX_SETS, has_constant_choices
from kbprobe.columns import to_numpy
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.items import UNKNOWN, Coded, Items, Ragged
from kbprobe.format.setups import MASK, SPLITS
from kbprobe.rng import RandomGenerator

Fields = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class QuestionBatch:
    """Distinct questions, each with its wording.

    Attributes:
        template: the wordings.
        fields: template field -> values of all of the plan's questions.
        used: (questions,) those in use, as lines of ``fields``.
        wording: (questions,) index of each one's wording.
    """

    template: Template
    fields: Mapping[str, pa.Array]
    used: Ints
    wording: Ints

    def render(
        self,
        rewrite: Callable[[Wording], Rewrite | None] = lambda _: None,
        more: Callable[[Wording, Ints], Fields] = lambda *_: {},
    ) -> pa.Array:
        """Render each question with its wording, one Jinja call for each wording.

        Args:
            rewrite: a change to the wording's syntax tree, if any.
            more: given a wording and its questions (as positions in ``used``), returns the fields
                that the change introduces.

        Returns:
            The texts, one for each of ``used``.
        """
        order = np.argsort(self.wording, kind="stable")
        rendered: list[str] = []
        for number, wording in enumerate(self.template.questions):
            some = order[self.wording[order] == number]
            lines = pa.array(self.used[some])
            fields: dict[str, Sequence[Any]] = {
                name: values.take(lines).to_pylist() for name, values in self.fields.items()
            }
            fields |= more(wording, some)
            where = f"{self.template.probe}: {wording.id}"
            rendered += render_batch(wording.text, fields, where, rewrite(wording))
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        return pa.array(rendered, pa.string()).take(pa.array(place))

    def arguments(self) -> dict[str, pa.Array]:
        """Return the task's arguments: name -> texts, one for each of ``used``."""
        lines = pa.array(self.used)
        return {
            name: self.fields[name].take(lines).cast(pa.string())
            for name in self.template.arguments
        }

    def check_masks(self, texts: pa.Array, what: str) -> None:
        """Check that each rendered question shows the mask exactly once.

        Raises:
            TemplateError: one does not; the message names the wording and shows the question.
        """
        wrong = pc.index(pc.equal(pc.count_substring(texts, MASK), 1), False).as_py()
        if wrong >= 0:
            wording = self.template.questions[int(self.wording[wrong])]
            raise TemplateError(
                f"a cloze question shows {MASK} exactly once, not as in {texts[wrong].as_py()!r}",
                where=f"{self.template.probe}: {wording.id} ({what})",
            )


SPARSE = 4
"""If there are more than this many values per code, codes are sorted instead of looked up."""


def compact(codes: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the codes in use, ascending, and the codes renumbered by them.

    If ``size`` is much larger than the number of codes, it does not affect the running time.
    """
    if size > SPARSE * codes.size:
        used = sorted_unique(codes)
        return used.astype(np.int64), np.searchsorted(used, codes)
    found = mask_at(size, codes.ravel())
    number = np.cumsum(found) - 1
    return np.flatnonzero(found), number[codes]


def compacted(column: Any) -> Any:
    """Keep only the values in use, without duplicates.

    Columns point into tables that are much larger, or that hold a text several times; Parquet's
    writer takes an index over as it is only where all its values differ.
    """
    if isinstance(column, Coded):
        used, codes = compact(column.codes, len(column.values))
        distinct = column.values.take(pa.array(used)).dictionary_encode()
        return Coded(distinct.dictionary, to_numpy(distinct.indices).astype(np.int64)[codes])
    if isinstance(column, Ragged):
        lines, line = compact(column.line, column.indptr.size - 1)
        starts = column.indptr[lines]
        lengths = column.indptr[lines + 1] - starts
        entries = ragged_ranges(starts, lengths)
        parts = {
            name: compacted(replace(part, codes=part.codes[entries]))
            for name, part in column.parts.items()
        }
        return Ragged(line, np.concatenate([[0], np.cumsum(lengths)]), parts)
    return column


def some_items(columns: dict[str, Any], start: int, stop: int) -> Items:
    """Return a range of the rows of some columns."""
    rows = slice(start, stop)
    return Items(stop - start, {name: _sliced(column, rows) for name, column in columns.items()})


def _sliced(column: Any, rows: slice) -> Any:
    if isinstance(column, Coded):
        return Coded(column.values, column.codes[rows])
    if isinstance(column, Ragged):
        return replace(column, line=column.line[rows])
    return column if isinstance(column, str) else column[rows]


def argument_column(batch: QuestionBatch, question: Ints) -> Ragged:
    """List each question's arguments by name, one line per question."""
    arguments = batch.arguments()
    names, lines = list(arguments), batch.used.size
    entry = np.arange(lines * len(names), dtype=np.int64)
    # Entry e belongs to line e // len(names) and to argument e % len(names).
    argument, line = entry % max(len(names), 1), entry // max(len(names), 1)
    joined = pa.concat_arrays([*arguments.values(), pa.array([], pa.string())])
    parts = {
        "name": Coded(pa.array(names, pa.string()), argument),
        "value": Coded(joined, argument * lines + line),
    }
    return Ragged(question, np.arange(lines + 1, dtype=np.int64) * len(names), parts)


def id_texts(ids: UInts) -> pa.Array:
    """Format 64-bit ids as 16 hexadecimal digits, without a Python string for each."""
    digits = ids.astype(">u8").tobytes().hex().encode()
    offsets = np.arange(ids.size + 1, dtype=np.int32) * 16
    return pa.StringArray.from_buffers(ids.size, pa.py_buffer(offsets), pa.py_buffer(digits))


__all__ = ["Assembled", "assemble", "id_texts", "row_identity", "row_ids", "variant_of"]

REPEATED = "two choices read the same"
DUPLICATE = "same question with the same choices"

STEP = 1 << 18
"""Rows per chunk in steps that handle rows independently: bounds temporary memory."""


@dataclass(frozen=True)
class Assembled:
    """All rows of a build in the order in which they are written, not yet rendered.

    Attributes:
        plan: the plan in that order.
        ids: (rows,) the rows' ids.
        template: the wordings.
        setup: the name of the rows' setup.
        texts: the distinct choices' texts.
        shown: the node behind each of ``texts``.
        text: (nodes,) index of each node's text among ``texts``.
        shuffle: (rows, K) which of the plan's choices stands at each position.
        gold: (rows,) the position of the plan's first choice.
        wording: (questions,) index of the wording of each of the plan's questions.
        controls: the control renderings to make.
        chance: the random generator for controls.
        answers_in_all: the number of different answers that all rows choose among; 0 if rows
            differ.
        facts: the assembled sub-questions that ask for single facts.
        is_variant: whether the rows are a variant of those of another plan.
    """

    plan: Plan
    ids: UInts
    template: Template
    setup: str
    texts: pa.Array
    shown: Ints
    text: AnyInts
    shuffle: AnyInts
    gold: AnyInts
    wording: AnyInts
    controls: tuple[str, ...]
    chance: RandomGenerator
    answers_in_all: int
    facts: Sequence[Assembled] = ()
    is_variant: bool = False

    def __len__(self) -> int:
        return len(self.plan)

    def choices(self, rows: Some) -> Ints:
        """Return (rows, K) indices into ``texts`` of some rows' choices, as shown."""
        return _shown_choices(self.text, self.plan.nodes[rows], self.shuffle[rows])

    def answers(self, rows: Some) -> Ints:
        """Return (rows,) the gold's position in some rows, or ``UNKNOWN``."""
        return np.where(self.plan.known[rows], self.gold[rows], UNKNOWN)


def row_identity(probe: str, knowledge: str) -> RandomGenerator:
    """Return the generator of a probe's row ids, given its name and its knowledge base's."""
    return RandomGenerator.of(0, "row id", probe, knowledge)


def row_ids(plan: Plan, identity: RandomGenerator) -> UInts:
    """Hash each row's question, gold and set of distractors: 64 bits, independent of wording.

    If answers do not come from the knowledge base, the gold counts as one of the choices.
    """
    ids = np.empty(len(plan), dtype=np.uint64)
    for rows in steps(len(plan)):
        some = plan.take(rows)
        choices = some.answers.identity(some.choices.keys(some.nodes))
        ids[rows] = identity.bits(some.question_keys, *choices)
    return ids


def assemble(
    plan: Plan,
    template: Template,
    setup: str,
    identity: RandomGenerator,
    rng: RandomGenerator,
    *,
    controls: Collection[str] = (),
    facts: Sequence[Assembled] = (),
    like: Assembled | None = None,
) -> Assembled:
    """Order and deduplicate a plan, choose its wordings, and render its choices.

    Args:
        plan: what to ask.
        template: the wordings.
        setup: the name of the rows' setup.
        identity: the generator of row ids: the same for every seed.
        rng: draws the order of rows and choices, for wordings and controls.
        controls: the control renderings to make.
        facts: the further configs that ask for single facts.
        like: the rows that this plan is a variant of, cut by :func:`variant_of`: it has their ids
            and wordings and, given the same ``rng``, their order.

    Raises:
        TemplateError: the template of choices fails on its data.
    """
    kept = np.ones(len(plan), dtype=np.bool_)
    if like is None:
        # Duplicates: two families may draw the same choices for a question.
        ids = row_ids(plan, identity)
        kept = _first_of_each(ids)
    else:
        ids = like.ids[_rows_of(like.plan, plan.question_keys)[0]]
    duplicates = len(plan) - int(np.count_nonzero(kept))
    shown, text = _numbered(plan.nodes, kept, len(plan.choices.names))
    texts = _choice_texts(plan, template, shown)
    kept = _differ(texts, text, plan.nodes, kept)
    repeated = len(plan) - int(np.count_nonzero(kept)) - duplicates
    order = _row_order(plan, ids, np.flatnonzero(kept).astype(np.int32), rng.child("order"))
    ids = ids[order]
    plan = plan.take(order).with_dropped(DUPLICATE, duplicates).with_dropped(REPEATED, repeated)
    del order, kept

    used, _ = compact(plan.question, plan.questions.key.size)
    if like is None:
        chosen = plan.questions.wordings.choose(
            used,
            plan.questions.key[used],
            # Questions are numbered in the order of `used`; a question's rows share its gold.
            lambda: plan.nodes[np.unique(plan.question, return_index=True)[1], 0],
            [wording.id for wording in template.questions],
            rng.child("wording"),
        )
    else:
        row = _rows_of(like.plan, plan.questions.key[used])[0]
        chosen = like.wording[like.plan.question[row]]
    wording = np.zeros(plan.questions.key.size, dtype=np.int32)
    wording[used] = chosen
    shuffle = np.empty(plan.nodes.shape, dtype=np.int8)
    for rows in steps(len(plan)):
        some = plan.take(rows)
        keys = some.choices.keys(some.nodes)
        shuffle[rows] = some.order.order(ids[rows], some.nodes, keys, rng.child("choices"))
    return Assembled(
        plan,
        ids,
        template,
        setup,
        texts,
        shown,
        text,
        shuffle,
        np.argmax(shuffle == 0, axis=1).astype(np.int8),
        wording,
        tuple(controls),
        rng.child("controls"),
        _answers_in_all(text, plan.nodes, len(texts)),
        facts,
        like is not None,
    )


def steps(rows: int) -> Iterator[slice]:
    return (slice(at, min(at + STEP, rows)) for at in range(0, rows, STEP))


def _shown_choices(text: AnyInts, nodes: Ints, shuffle: AnyInts) -> Ints:
    return text[np.take_along_axis(nodes, shuffle.astype(np.intp), axis=1)]


def _first_of_each(ids: UInts) -> Bools:
    """Mark the first row of each id."""
    return mask_at(ids.size, np.unique(ids, return_index=True)[1])


def _numbered(nodes: Ints, kept: Bools, size: int) -> tuple[Ints, AnyInts]:
    """Return the nodes used in the rows kept, ascending, and each node's number among them."""
    used = np.zeros(size, dtype=np.bool_)
    for rows in steps(len(nodes)):
        used[nodes[rows][kept[rows]].ravel()] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1).astype(np.int32)


def _answers_in_all(text: AnyInts, nodes: Ints, texts: int) -> int:
    """Count the answers if all rows choose among the same few, in whatever order; 0 otherwise."""
    used = np.zeros(texts, dtype=np.bool_)
    for rows in steps(len(nodes)):
        used[text[nodes[rows]].ravel()] = True
    count = int(np.count_nonzero(used))
    if count > MAX_SETS * nodes.shape[1] or not has_constant_choices(text[nodes]):
        return 0
    return count


def variant_of(variant: Plan, done: Assembled) -> Plan:
    """Restrict a variant to the questions of the rows that it varies, which may leave none.

    Raises:
        KbprobeError: a question has several rows, so that it does not identify one.
    """
    return variant.take(_rows_of(done.plan, variant.question_keys)[1])


def _rows_of(plan: Plan, keys: Ints) -> tuple[Ints, Bools]:
    """Return the row of each question, given by its key, and whether there is one."""
    own = plan.question_keys
    order = np.argsort(own, kind="stable")
    known = own[order]
    if (known[1:] == known[:-1]).any():
        raise KbprobeError("a plan with variants has one row for each of its questions")
    at = np.minimum(np.searchsorted(known, keys), known.size - 1)
    return order[at], known[at] == keys


def _differ(texts: pa.Array, number: AnyInts, nodes: Ints, kept: Bools) -> Bools:
    """Mark the kept rows in which all choices differ in more than case."""
    text = to_numpy(pc.utf8_lower(texts).dictionary_encode().indices)
    differ = np.zeros_like(kept)
    for rows in steps(len(nodes)):
        some = np.flatnonzero(kept[rows])
        ordered = np.sort(text[number[nodes[rows][some]]], axis=1)
        differ[rows.start + some] = (ordered[:, 1:] != ordered[:, :-1]).all(axis=1)
    return differ


def _row_order(plan: Plan, ids: UInts, kept: Any, rng: RandomGenerator) -> Any:
    """Order the kept rows: clusters in seeded order, and rows within them by question and id.

    The units kept contiguous may be smaller than clusters: see the plan's ``order``.
    """
    some = plan.order.take(kept)
    cluster, keys = plan.cluster.codes[kept], plan.questions.key[plan.question[kept]]
    piece = rng.bits(some.side_by_side(cluster, keys))
    columns = (ids[kept], keys, plan.concept.codes[kept], cluster, piece)

    def sort(rows: Ints) -> Ints:
        return rows[np.lexsort([column[rows] for column in columns])]

    # Rows are divided by split and the first bits of their piece, and the parts sorted separately:
    # in nearby memory.
    part = plan.split[kept].astype(np.uint8) << 4 | (piece >> np.uint64(60)).astype(np.uint8)
    ends = np.cumsum(np.bincount(part, minlength=len(SPLITS) << 4))
    parts = np.split(np.argsort(part, kind="stable"), ends[:-1])
    return kept[np.concatenate([sort(rows) for rows in parts])]


def _choice_texts(plan: Plan, template: Template, shown: Ints) -> pa.Array:
    """Return the texts of choices.

    Raises:
        UsageError: the choices lack a field that the probe declares and the template shows.
    """
    wanted = fields_of(template.choice)
    try:
        fields = plan.choices.fields(shown, wanted)
    except KeyError as error:
        if error.args[0] not in wanted:
            raise
        raise UsageError(
            f"{template.probe}: the choices have no field {error.args[0]!r}, which choice_fields "
            "of @probe names and the template shows"
        ) from error
    return pa.array(render_batch(template.choice, fields, f"{template.probe}: choice"), pa.string())
