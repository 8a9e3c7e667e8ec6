"""Rendering of rows in blocks: texts of questions, and columns of items.

A block is a range of the rows in their final order, of whole clusters unless these are larger than
a block. It renders only the questions that it asks, so that memory depends on the size of blocks
and not on the number of rows. The content of a row does not depend on its block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from builders.engine.plan import Flags
from builders.engine.render.assemble import (
    Assembled,
    QuestionBatch,
    argument_column,
    compact,
    compacted,
    id_texts,
    some_items,
    steps,
)
from builders.engine.render.controls import (
    NONSENSE,
    BlankArguments,
    mark_beside,
    nonsense_answers,
    nonsense_in,
    perturbed,
    without_language,
)
from builders.engine.strategies import FromAnnotators
from builders.english.kin import holds_kin, shares_a_word
from builders.english.screen import offensive_texts
from kb_cache.frequency import zipf_frequencies
from kbprobe.arrays import Bools, Ints, Some
from kbprobe.audit.baselines import BuildRows, PartialInput, QuestionPart
from kbprobe.audit.rows import Sample
from kbprobe.columns import to_numpy
from kbprobe.format.items import LABELS, Coded, Items, ItemsInParts, Ragged
from kbprobe.format.manifest import SCHEMA_VERSION
from kbprobe.format.setups import CLOZE, NO_LANGUAGE, SPLITS

CONTEXT = "context"
"""The column of questions with the text that surrounds the word asked about."""

BLOCK_ROWS = 1 << 18
"""Maximum number of rows in a block. Builds with no more rows are rendered as one."""


class Blocks:
    """The rows of a build, or of one of its additional configs, to be rendered block by block."""

    def __init__(self, done: Assembled, rows: int = 0) -> None:
        self.done = done
        self.cuts = _cuts(done, rows or BLOCK_ROWS)
        self._last: tuple[int, int, Block] | None = None

    @property
    def whole(self) -> bool:
        """Whether all rows are one block."""
        return len(self.cuts) == 2

    @property
    def listed_rows(self) -> int | None:
        """Number of rows with a word of the screening list; None if counted during writing."""
        return self.block(0, len(self.done)).listed if self.whole else None

    def prepare(self) -> None:
        """Compute what blocks share, once, before any block is rendered."""
        _ = self.listed, self.fact_ids
        if self.done.controls:
            _ = self.taken_by_choices, self.nonsense

    def block(self, start: int, stop: int) -> Block:
        """Return a range of rows as a block; the last block is cached."""
        last = self._last
        if last is None or last[:2] != (start, stop):
            self._last = last = (start, stop, Block(self, slice(start, stop)))
        return last[2]

    def splits(self, control: str | None = None) -> dict[str, Items | ItemsInParts]:
        """Return the items of each nonempty split, as they are or as a control shows them."""
        ends = np.searchsorted(self.done.plan.split, np.arange(len(SPLITS) + 1))
        found: dict[str, Items | ItemsInParts] = {}
        columns = self.block(0, len(self.done)).columns_of(control) if self.whole else {}
        for code, name in enumerate(SPLITS):
            start, stop = int(ends[code]), int(ends[code + 1])
            if start == stop:
                continue
            if self.whole:
                found[name] = some_items(columns, start, stop)
            else:
                cuts = [start, *(cut for cut in self.cuts if start < cut < stop), stop]
                part = _BlockPart(self, start, control)
                found[name] = ItemsInParts(
                    tuple(cut - start for cut in cuts),
                    part,
                    self.done.plan.cluster.codes[start:stop],
                    part.listed,
                )
        return found

    @cached_property
    def listed(self) -> Bools:
        """(texts,) which of the choices' texts contain a word of the screening list."""
        return offensive_texts(self.done.texts)

    @cached_property
    def fact_ids(self) -> Coded | None:
        """For each triple of the plan's facts, the id of the row that asks for it; "" if none."""
        sub_question = self.done.plan.facts.sub_question
        if sub_question is None:
            return None
        parts = self.done.facts
        none = np.empty(0, dtype=np.int64)
        keys = np.concatenate([*(part.plan.question_keys for part in parts), none])
        ids = pa.concat_arrays([*(id_texts(part.ids) for part in parts), pa.array([""])])
        known, first = np.unique(keys, return_index=True)
        at = np.searchsorted(known, sub_question)
        found = np.append(known, -1)[at] == sub_question
        return Coded(ids, np.where(found, np.append(first, 0)[at], keys.size))

    @cached_property
    def taken_by_choices(self) -> Bools | None:
        """(questions, nonsense words) which words a question's choices contain; None if none do."""
        done = self.done
        held = nonsense_in(done.texts)
        if not held.any():
            return None
        taken = np.zeros((done.wording.size, len(NONSENSE)), dtype=np.bool_)
        for rows in steps(len(done)):
            mark_beside(taken, done.plan.question[rows], held, done.text[done.plan.nodes[rows]])
        return taken

    @cached_property
    def nonsense(self) -> pa.Array | None:
        """A nonsense word for each of the choices' texts; None: choices stay as they are."""
        done = self.done
        if NO_LANGUAGE not in done.controls or not 0 < done.answers_in_all <= len(NONSENSE):
            return None
        taken = np.zeros(len(NONSENSE), dtype=np.bool_)
        for start, stop in zip(self.cuts[:-1], self.cuts[1:], strict=True):
            taken |= self.block(start, stop).taken.any(axis=0)
        return nonsense_answers(done.texts, taken, done.chance.child(NO_LANGUAGE))

    def audit_rows(self, rows: Ints, sample: Sample, arguments_decide: bool = False) -> BuildRows:
        """Return the audit's input for some rows; only their questions are rendered.

        Args:
            rows: the rows.
            sample: which of them to fit on and to score, as positions in ``rows``.
            arguments_decide: that of the probe's declaration.
        """
        done, whole = self.done, self.whole and self._last is not None
        block = self.block(0, len(done)) if whole else Block(self, rows)
        at = rows if whole else np.arange(rows.size)
        plan, nodes = block.plan, done.plan.choices
        partial = None
        if done.answers_in_all and not done.is_variant:
            partial = PartialInput(
                block.carriers[block.question][at],
                block.batch.arguments(),
                zipf_frequencies,
                arguments_decide,
            )
        return BuildRows(
            texts=done.texts,
            choices=block.choices.codes[at],
            answer=block.answer[at],
            questions=block.texts,
            question=block.question[at],
            split=plan.split[at],
            family=plan.family.codes[at],
            family_names=tuple(plan.family.values.to_pylist()),
            template=done.wording[plan.question[at]],
            cluster=plan.cluster.codes[at],
            sample=sample,
            frequency=None if nodes.frequency is None else nodes.frequency(done.shown),
            generality=None if nodes.generality is None else nodes.generality[done.shown],
            partial=partial,
            parts=block.parts,
            natural=isinstance(plan.answers, FromAnnotators) and plan.answers.natural,
        )


@dataclass(frozen=True)
class _BlockPart:
    """Makes the items of a range of a split."""

    blocks: Blocks
    start: int
    control: str | None

    def __call__(self, start: int, stop: int) -> Items:
        block = self.blocks.block(self.start + start, self.start + stop)
        return some_items(block.columns_of(self.control), 0, stop - start)

    def listed(self, start: int, stop: int) -> int:
        """Count the rows of a range that show a word of the screening list."""
        return self.blocks.block(self.start + start, self.start + stop).listed


class Block:
    """A block of rows, rendered lazily."""

    def __init__(self, blocks: Blocks, rows: Some) -> None:
        done = blocks.done
        self.blocks, self.rows = blocks, rows
        self.plan = plan = done.plan.take(rows)
        used, self.question = compact(plan.question, done.wording.size)
        self.batch = QuestionBatch(done.template, plan.questions.fields, used, done.wording[used])
        self.choices = Coded(done.texts, done.choices(rows))
        self.answer = done.answers(rows)

    @cached_property
    def texts(self) -> pa.Array:
        """The text of each question, checked for its mask."""
        texts = self.batch.render()
        if self.blocks.done.setup == CLOZE:
            self.batch.check_masks(texts, "text")
        return texts

    @cached_property
    def taken(self) -> Bools:
        """(questions, nonsense words) which words a question or one of its choices contains."""
        taken, beside = nonsense_in(self.texts), self.blocks.taken_by_choices
        return taken if beside is None else taken | beside[self.batch.used]

    @cached_property
    def carriers(self) -> Ints:
        """The number of each question's carrier sentence: the question without its arguments."""
        blank = BlankArguments(frozenset(self.batch.template.arguments))
        carriers = self.batch.render(lambda _: blank).dictionary_encode().indices
        return to_numpy(carriers).astype(np.int64)

    @property
    def parts(self) -> tuple[QuestionPart, ...]:
        """The parts of each question: its arguments, and its context.

        Choices are searched for related words of arguments, and for content words of the context.
        """
        parts = {
            name: QuestionPart(f"kin of {name}", texts, holds_kin)
            for name, texts in self.batch.arguments().items()
        }
        context = self.plan.questions.columns.get(CONTEXT)
        if context is not None:
            texts = context.take(pa.array(self.batch.used))
            parts[CONTEXT] = QuestionPart("a word of the context", texts, shares_a_word)
        return tuple(parts.values())

    @property
    def listed(self) -> int:
        """The number of rows with a word of the screening list, in their question or a choice."""
        shown = offensive_texts(self.texts)[self.question]
        shown |= self.blocks.listed[self.choices.codes].any(axis=1)
        return int(shown.sum())

    def columns_of(self, control: str | None = None) -> dict[str, Any]:
        """Return the items' columns, as they are or as a control shows them."""
        return self.columns if control is None else {**self.columns, **self.control(control)}

    def control(self, name: str) -> dict[str, Any]:
        """Return the columns that differ in a control."""
        done, used = self.blocks.done, self.batch.used
        texts, choices = self.choices.values, self.choices
        if name == NO_LANGUAGE:
            questions = without_language(self.batch)
            choices = Coded(self.blocks.nonsense or texts, choices.codes)
        else:
            keys = self.plan.questions.key[used]
            questions = perturbed(self.batch, keys, self.taken, done.chance.child(name))
        if done.setup == CLOZE:
            self.batch.check_masks(questions, name)
        return {
            "question": compacted(Coded(questions, self.question)),
            "choice_text": compacted(choices),
        }

    @cached_property
    def columns(self) -> dict[str, Any]:
        """The columns as they are."""
        done, plan = self.blocks.done, self.plan
        rows, known = self.rows, plan.known
        line, shuffle = np.arange(len(plan))[:, None], done.shuffle[rows]
        choice_family = plan.choice_family.copy()
        choice_family[known, 0] = 0
        codes = self.choices.codes
        facts = plan.facts
        triples = {name: getattr(facts, name) for name in ("subject", "relation", "object")}
        key = np.where(known, done.gold[rows], len(LABELS))
        columns: dict[str, Any] = {
            "id": id_texts(done.ids[rows]),
            "question": Coded(self.texts, self.question),
            "choice_text": self.choices,
            "answer": self.answer,
            "answerKey": Coded(pa.array([*LABELS, ""]), key),
            "setup": done.setup,
            "cluster": plan.cluster,
            "concept": plan.concept,
            "relation": plan.relation
            if isinstance(plan.relation, str)
            else Coded(plan.relation, plan.fact),
            "hops": plan.hops,
            "distractor_family": plan.family,
            "distractor_hops": plan.distance,
            "choice_nodes": Coded(plan.choices.names.take(pa.array(done.shown)), codes),
            "choice_families": Coded(plan.family.values, choice_family[line, shuffle]),
            "choice_hops": plan.choice_hops[line, shuffle],
            **{name: Coded(texts, plan.question) for name, texts in plan.questions.columns.items()},
            "template": Coded(
                pa.array([w.id for w in done.template.questions]), done.wording[plan.question]
            ),
            "arguments": argument_column(self.batch, self.question),
            "triples": Ragged(plan.fact, facts.indptr, triples),
            "fact_ids": self._fact_ids(),
            "flags": (plan.flags or Flags.none(len(plan))).column(),
            "fold": pa.nulls(len(plan), pa.int32()) if plan.fold is None else plan.fold,
            "schema_version": SCHEMA_VERSION,
        }
        return {name: compacted(column) for name, column in columns.items()}

    def _fact_ids(self) -> Ragged:
        """Return, for each row, the ids of the sub-questions that ask for its triples."""
        plan, ids = self.plan, self.blocks.fact_ids
        if ids is None:
            none = Coded(pa.array([], pa.string()), np.empty(0, dtype=np.int64))
            line = np.zeros(plan.fact.size, dtype=np.int64)
            return Ragged(line, np.zeros(2, dtype=np.int64), {"": none})
        return Ragged(plan.fact, plan.facts.indptr, {"": ids})


def _cuts(done: Assembled, rows: int) -> tuple[int, ...]:
    """Return where blocks begin, and where the last ends: between clusters where possible."""
    cluster, cuts = done.plan.cluster.codes, [0]
    while len(done) - cuts[-1] > rows:
        first, end = cuts[-1], cuts[-1] + rows
        near = cluster[first : end + 1]
        inside = np.flatnonzero(near[1:] != near[:-1])
        cuts.append(first + 1 + int(inside[-1]) if inside.size else end)
    return (*cuts, len(done))
