"""From a plan to items: wordings chosen, texts rendered once each, choices shuffled.

Nothing here is done row by row: each question is rendered once, and a choice's text once
for each node, and rows gather them by index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.audit.giveaways import CONTEXT
from builders.engine.audit.partial_input import PartialInput, has_constant_choices
from builders.engine.audit.report import AuditRows
from builders.engine.flags import Flags
from builders.engine.plan import Plan
from builders.engine.render.controls import render_controls
from builders.engine.render.jinja import fields_of, render_batch
from builders.engine.render.questions import QuestionBatch
from builders.engine.render.rewrites import BlankArguments
from builders.engine.render.template_file import Template
from kbprobe.arrays import Bools, Ints, UInts, ragged_ranges
from kbprobe.columns import to_numpy
from kbprobe.errors import KbprobeError
from kbprobe.format.items import LABELS, UNKNOWN, Coded, Items, Ragged
from kbprobe.format.manifest import SCHEMA_VERSION
from kbprobe.format.setups import CLOZE
from kbprobe.rng import RandomGenerator

REPEATED = "two choices read the same"


@dataclass(frozen=True)
class Assembled:
    """All rows of a build, rendered, in the order in which they are written.

    Attributes:
        plan: the plan in that order.
        columns: the items' columns over all rows; ``Items`` slices them.
        choices: (rows, K) index of each choice's text among the distinct ones, as shown.
        template: (rows,) index of the wording.
        controls: config -> those of the columns that are other in it.
        partial: the parts of questions, where all rows choose among the same few answers.
    """

    plan: Plan
    columns: dict[str, Any]
    choices: Coded
    answer: Ints
    questions: Coded
    template: Ints
    shown: Ints
    """The node behind each of the distinct choice texts."""

    controls: dict[str, dict[str, Any]] = field(default_factory=dict)
    partial: PartialInput | None = None
    visible: dict[str, pa.Array] = field(default_factory=dict)
    """What each distinct question shows: its arguments by name, and its context."""

    def items(self, rows: Ints, control: str | None = None) -> Items:
        """Return some of the rows as items to lay out, as they are or as a control shows them."""
        columns = self.columns if control is None else {**self.columns, **self.controls[control]}
        return Items(rows.size, {name: _taken(column, rows) for name, column in columns.items()})

    def audit_rows(self, arguments_decide: bool = False) -> AuditRows:
        """Return what the audit looks at: all rows that have an answer.

        ``arguments_decide`` is that of the probe's declaration.
        """
        plan, nodes, part = self.plan, self.plan.choices, self.partial
        known = np.flatnonzero(plan.known)
        return AuditRows(
            texts=self.choices.values,
            choices=self.choices.codes[known],
            answer=self.answer[known],
            questions=self.questions.values,
            question=self.questions.codes[known],
            split=plan.split[known],
            family=plan.family.codes[known],
            family_names=tuple(plan.family.values.to_pylist()),
            template=self.template[known],
            concept=plan.cluster.codes[known],
            gold=plan.nodes[known, 0],
            frequency=None if nodes.frequency is None else nodes.frequency(self.shown),
            generality=None if nodes.generality is None else nodes.generality[self.shown],
            partial=None
            if part is None
            else PartialInput(
                part.carrier[known], part.question[known], part.arguments, arguments_decide
            ),
            shown=self.visible,
        )


def row_identity(probe: str, knowledge: str) -> RandomGenerator:
    """Return the generator of a probe's row ids, given its name and its knowledge base's."""
    return RandomGenerator.of(0, "row id", probe, knowledge)


def row_ids(plan: Plan, identity: RandomGenerator) -> UInts:
    """Hash each row's question, gold and set of distractors: 64 bits, independent of wording.

    Where answers do not come from the knowledge base, the gold counts among the choices.
    """
    choices = plan.answers.identity(plan.choices.keys(plan.nodes))
    return identity.bits(plan.question_keys, *choices)


def assemble(
    plan: Plan,
    template: Template,
    setup: str,
    identity: RandomGenerator,
    rng: RandomGenerator,
    *,
    controls: Collection[str] = (),
    sub_questions: Iterable[Assembled] = (),
    like: Assembled | None = None,
) -> Assembled:
    """Order, deduplicate and render a plan.

    Args:
        plan: what to ask.
        template: the wordings.
        setup: the name of the rows' setup.
        identity: the generator of row ids: the same for every seed.
        rng: draws the order of rows and choices, for wordings and controls.
        controls: the control renderings to make.
        sub_questions: the further configs that ask for single facts.
        like: the rows that this plan is a variant of, cut by :func:`variant_of`: it has their ids
            and wordings and, given the same ``rng``, their order.

    Raises:
        TemplateError: the template fails on its data, or a cloze question shows no mask, or two.
    """
    if like is None:
        # Rows that ask the same of the same choices: families may draw alike.
        ids = row_ids(plan, identity)
        first = np.zeros(ids.size, dtype=np.bool_)
        first[np.unique(ids, return_index=True)[1]] = True
        plan, ids = plan.keep("same question with the same choices", first), ids[first]
    else:
        ids = row_ids(like.plan, identity)
        ids = ids[_rows_of(like.plan, plan.question_keys)[0]]
    shown, node_codes = _compact(plan.nodes, len(plan.choices.names))
    texts = _choice_texts(plan, template, shown)
    clean = _differ(texts, node_codes)
    plan, ids, node_codes = plan.keep(REPEATED, clean), ids[clean], node_codes[clean]
    order = _row_order(plan, ids, rng.child("order"))
    plan, ids, node_codes = plan.take(order), ids[order], node_codes[order]

    used, question = _compact(plan.question, plan.questions.key.size)
    if like is None:
        wording = plan.questions.wordings.choose(
            used,
            plan.questions.key[used],
            # Questions are numbered in the order of `used`; a question's rows share its gold.
            lambda: plan.nodes[np.unique(plan.question, return_index=True)[1], 0],
            len(template.questions),
            rng.child("wording"),
        )
    else:
        wording = like.template[_rows_of(like.plan, plan.questions.key[used])[0]]
    keys = plan.choices.keys(plan.nodes)
    shuffle = plan.order.order(ids, plan.nodes, keys, rng.child("choices"))
    line = np.arange(len(plan))[:, None]
    gold = np.argmax(shuffle == 0, axis=1).astype(np.int64)
    answer = np.where(plan.known, gold, UNKNOWN)
    choices = Coded(texts, node_codes[line, shuffle])
    batch = QuestionBatch(template, plan.questions.fields, used, wording)
    question_texts = batch.render()
    if setup == CLOZE:
        batch.check_masks(question_texts, "text")
    questions = Coded(question_texts, question)
    origin = plan.provenance
    choice_family = origin.choice_family.copy()
    choice_family[plan.known, 0] = 0
    columns: dict[str, Any] = {
        "id": id_texts(ids),
        "question": questions,
        "choice_text": choices,
        "answer": answer,
        "answerKey": Coded(pa.array([*LABELS, ""]), np.where(plan.known, gold, len(LABELS))),
        "setup": setup,
        "cluster": plan.cluster,
        "concept": origin.concept,
        "relation": origin.relation
        if isinstance(origin.relation, str)
        else Coded(origin.relation, origin.fact),
        "hops": origin.hops,
        "distractor_family": plan.family,
        "distractor_hops": origin.distance,
        "choice_nodes": Coded(plan.choices.names.take(pa.array(shown)), choices.codes),
        "choice_families": Coded(plan.family.values, choice_family[line, shuffle]),
        "choice_hops": origin.choice_hops[line, shuffle],
        **{name: Coded(texts, plan.question) for name, texts in plan.questions.columns.items()},
        "template": Coded(pa.array([w.id for w in template.questions]), wording[question]),
        "arguments": _arguments(batch, question),
        "triples": Ragged(
            origin.fact,
            origin.facts.indptr,
            {name: getattr(origin.facts, name) for name in ("subject", "relation", "object")},
        ),
        "fact_ids": _fact_ids(plan, sub_questions),
        "flags": (plan.flags or Flags.none(len(plan))).column(),
        "fold": pa.nulls(len(plan), pa.int32()) if plan.fold is None else plan.fold,
        "schema_version": SCHEMA_VERSION,
    }
    keys, chance = plan.questions.key[used], rng.child("controls")
    has_partial = like is None and has_constant_choices(choices.codes)
    return Assembled(
        plan,
        {name: _compacted(column) for name, column in columns.items()},
        choices,
        answer,
        questions,
        wording[question],
        shown,
        controls={
            name: {
                "question": _compacted(Coded(asked, question)),
                "choice_text": _compacted(answers),
            }
            for name, asked, answers in render_controls(
                controls, batch, questions, keys, choices, setup, chance
            )
        },
        partial=_partial_input(batch, question) if has_partial else None,
        visible=_visible(batch, plan),
    )


def _visible(batch: QuestionBatch, plan: Plan) -> dict[str, pa.Array]:
    shown = batch.arguments()
    context = plan.questions.columns.get(CONTEXT)
    if context is not None:
        shown[CONTEXT] = context.take(pa.array(batch.used))
    return shown


def _partial_input(batch: QuestionBatch, question: Ints) -> PartialInput:
    blank = BlankArguments(frozenset(batch.template.arguments))
    carriers = batch.render(lambda _: blank).dictionary_encode().indices
    carrier = to_numpy(carriers).astype(np.int64)[question]
    return PartialInput(carrier, question, batch.arguments())


def _fact_ids(plan: Plan, sub_questions: Iterable[Assembled]) -> Ragged:
    """For each row the ids of the sub-questions that ask for its triples; "" for none."""
    sub_question = plan.provenance.facts.sub_question
    if sub_question is None:
        none = Coded(pa.array([], pa.string()), np.empty(0, dtype=np.int64))
        return Ragged(np.zeros_like(plan.question), np.zeros(2, dtype=np.int64), {"": none})
    parts = [done.plan.question_keys for done in sub_questions]
    keys = np.concatenate([*parts, np.empty(0, dtype=np.int64)])
    ids = pa.concat_arrays([*(done.columns["id"] for done in sub_questions), pa.array([""])])
    known, first = np.unique(keys, return_index=True)
    at = np.searchsorted(known, sub_question)
    found = np.append(known, -1)[at] == sub_question
    code = np.where(found, np.append(first, 0)[at], keys.size)
    return Ragged(plan.provenance.fact, plan.provenance.facts.indptr, {"": Coded(ids, code)})


def variant_of(variant: Plan, done: Assembled) -> Plan:
    """Cut a variant to the questions of the rows that it varies: there may be none.

    Raises:
        KbprobeError: a question has several rows, so that none can be told from it.
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


def _differ(texts: pa.Array, codes: Ints) -> Bools:
    """Mark the rows in which no two choices read the same but for case."""
    text = to_numpy(pc.utf8_lower(texts).dictionary_encode().indices)
    ordered = np.sort(text[codes], axis=1)
    return np.asarray((ordered[:, 1:] != ordered[:, :-1]).all(axis=1))


def _row_order(plan: Plan, ids: UInts, rng: RandomGenerator) -> Ints:
    """Clusters in seeded order, each in one piece; within one by question, then by id.

    What stands in one piece may be less than a cluster: see the plan's ``order``.
    """
    cluster = plan.cluster.codes
    concept = plan.provenance.concept.codes
    piece = plan.order.side_by_side(cluster, plan.question_keys)
    keys = (ids, plan.question_keys, concept, cluster, rng.bits(piece))
    return np.lexsort((*keys, plan.split))


def _compact(codes: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the codes in use, ascending, and the codes renumbered by them."""
    used = np.zeros(size, dtype=np.bool_)
    used[codes.ravel()] = True
    number = np.cumsum(used) - 1
    return np.flatnonzero(used), number[codes]


def _compacted(column: Any) -> Any:
    """Keep only the values in use, each once.

    Columns point into tables that are much larger, or that hold a text several times; Parquet's
    writer takes an index over as it is only where all its values differ.
    """
    if isinstance(column, Coded):
        used, codes = _compact(column.codes, len(column.values))
        distinct = column.values.take(pa.array(used)).dictionary_encode()
        return Coded(distinct.dictionary, to_numpy(distinct.indices).astype(np.int64)[codes])
    if isinstance(column, Ragged):
        lines, line = _compact(column.line, column.indptr.size - 1)
        lengths = np.diff(column.indptr)[lines]
        entries = ragged_ranges(column.indptr[lines], lengths)
        parts = {
            name: _compacted(replace(part, codes=part.codes[entries]))
            for name, part in column.parts.items()
        }
        return Ragged(line, np.concatenate([[0], np.cumsum(lengths)]), parts)
    return column


def _taken(column: Any, rows: Ints) -> Any:
    if isinstance(column, Coded):
        return Coded(column.values, column.codes[rows])
    if isinstance(column, Ragged):
        return replace(column, line=column.line[rows])
    if isinstance(column, np.ndarray):
        return column[rows]
    return column if isinstance(column, str) else column.take(pa.array(rows))


def _choice_texts(plan: Plan, template: Template, shown: Ints) -> pa.Array:
    fields = plan.choices.fields(shown, fields_of(template.choice))
    return pa.array(render_batch(template.choice, fields, f"{template.probe}: choice"), pa.string())


def _arguments(batch: QuestionBatch, question: Ints) -> Ragged:
    """List the question's arguments by name, one line a question."""
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
    """Spell 64-bit ids out as 16 hexadecimal digits, without a Python string for each."""
    digits = ids.astype(">u8").tobytes().hex().encode()
    offsets = np.arange(ids.size + 1, dtype=np.int32) * 16
    return pa.StringArray.from_buffers(ids.size, pa.py_buffer(offsets), pa.py_buffer(digits))
