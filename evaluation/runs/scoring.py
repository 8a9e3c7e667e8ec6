"""Running a scorer over all items: in parts, resumable, on one process or several.

The questions are divided into parts by a hash of their text, so that equal questions stay
together and share their forward pass. A part is about eight batches; it is encoded, scored,
stored and never computed again, whichever process does it and however many there are.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import numpy as np

from evaluation.items.types import Item, choice_starts, questions_of, take_items
from evaluation.results.metrics import Scores
from evaluation.runs.score_cache import ScoreCache, choices_of
from evaluation.scorers.base import Encoded, Scorer
from evaluation.scorers.batching import BackOff, cut_batches
from evaluation.workers import ALONE, Workers
from kbprobe.arrays import Ints, run_starts
from kbprobe.errors import KbprobeError
from kbprobe.progress import Progress, silent

BATCHES_PER_PART = 8
_QUESTIONS_MEASURED = 32
_ROWS_PER_PART = 16384
"""Approximate maximum number of rows in a part, however short they are."""


@dataclass(frozen=True)
class Effort:
    """What a run cost: seconds, and what was computed rather than found."""

    encode: float = 0.0
    score: float = 0.0
    rows: int = 0
    sequences: int = 0
    halvings: int = 0


def score_items(
    items: Sequence[Item],
    scorer: Scorer,
    cache: ScoreCache,
    batch_tokens: int,
    parameters: int,
    workers: Workers = ALONE,
    progress: Progress = silent,
) -> tuple[Scores, Effort]:
    """Score all items, from where an earlier run left off, and store the scores in the cache.

    Args:
        items: what to score.
        scorer: what to score it with.
        cache: where finished parts are and go.
        batch_tokens: padded tokens in a batch.
        parameters: how many the model has, stored with its scores.
        workers: the processes that share the work; all of them get all scores.
        progress: told of every batch.

    Raises:
        KbprobeError: memory does not suffice for a single sequence, the cache cannot be written,
            or another process failed to score its share.
    """
    starts = choice_starts(items)
    rows_of = _rows_of_parts(items, scorer, batch_tokens)
    found = [cache.read_part(part, rows, starts) for part, rows in enumerate(rows_of)]
    # Nobody may start before all have looked, or they would see different parts missing.
    workers.wait()
    todo = [part for part, known in enumerate(found) if known is None]
    todo = todo[workers.rank :: workers.count]
    run = _PartsRun(scorer, batch_tokens, parameters, progress, sum(len(rows_of[p]) for p in todo))
    with workers.together():
        if todo:
            score_name = next((part.score_name for part in found if part is not None), None)
            if score_name is None and workers.count > 1:
                score_name = scorer.score_name(items)  # Others have parts that decide it too.
            parts = _Parts(items, [rows_of[part] for part in todo])
            for part, scored in zip(todo, run.scores(parts, score_name), strict=True):
                cache.write_part(part, rows_of[part], starts, scored)
                found[part] = scored

    for part, rows in enumerate(rows_of):
        if found[part] is None:
            found[part] = cache.read_part(part, rows, starts)
        if found[part] is None:
            raise KbprobeError(
                f"part {part} of the questions was not scored by the process that had to; "
                "its own message says why. Run the same command again to go on."
            )
    scores = _joined([part for part in found if part is not None], rows_of, starts)
    # The parts go when the whole is written: not before everyone has read them.
    workers.wait()
    if workers.leads:
        cache.write(scores, starts)
    workers.wait()
    return scores, run.effort()


class _Parts(Sequence[Sequence[Item]]):
    """Parts of the items, made when they are asked for: not all are in memory at once."""

    def __init__(self, items: Sequence[Item], rows_of: Sequence[Ints]) -> None:
        self._items = items
        self._rows_of = rows_of
        self._last: tuple[int, Sequence[Item]] | None = None

    def __len__(self) -> int:
        return len(self._rows_of)

    @overload
    def __getitem__(self, part: int) -> Sequence[Item]: ...
    @overload
    def __getitem__(self, part: slice) -> _Parts: ...
    def __getitem__(self, part: int | slice) -> Sequence[Item] | _Parts:
        if isinstance(part, slice):
            return _Parts(self._items, self._rows_of[part])
        if len(self._rows_of[part]) == len(self._items) > _ROWS_PER_PART:
            return self._items  # of a scorer that takes all rows at once, and one after another
        if self._last is None or self._last[0] != part:  # it may be asked for twice in a row
            self._last = part, take_items(self._items, self._rows_of[part])
        return self._last[1]

    def starts(self) -> Iterator[Ints]:
        """Give the starts of each part's choices."""
        sizes = np.diff(choice_starts(self._items))
        return (run_starts(sizes[rows]) for rows in self._rows_of)


class _PartsRun:
    """Encodes and scores parts one after another; only one is held at a time."""

    def __init__(
        self, scorer: Scorer, batch_tokens: int, parameters: int, progress: Progress, rows: int
    ) -> None:
        self._scorer = scorer
        self._batch_tokens = batch_tokens
        self._parameters = parameters
        self._progress = progress
        self._rows = rows
        self._back_off = BackOff()
        self._encoding = self._scoring = 0.0
        self._rows_done = self._sequences_done = 0

    def scores(self, parts: _Parts, score_name: str | None) -> Iterator[Scores]:
        """Give the scores of each part; ``score_name`` is what they are, if that is known."""
        began = time.perf_counter()
        self._progress("tokenizing", 0, self._rows)
        score_name, coming = self._scorer.encode_parts(parts, score_name)
        self._encoding += time.perf_counter() - began
        for starts in parts.starts():
            began = time.perf_counter()
            encoded = next(coming)
            encoded_at = time.perf_counter()
            scored = self._part(starts, encoded, score_name)
            self._encoding += encoded_at - began
            self._scoring += time.perf_counter() - encoded_at
            self._rows_done += len(starts) - 1
            yield scored

    def effort(self) -> Effort:
        """Return what has been done."""
        return Effort(
            self._encoding,
            self._scoring,
            self._rows_done,
            self._sequences_done,
            self._back_off.halvings,
        )

    def _part(self, starts: Ints, encoded: Encoded, score_name: str) -> Scores:
        sequences, rows = len(encoded.lengths), len(starts) - 1

        def told(done: int) -> None:
            share = rows * done // sequences
            self._progress("scoring", self._rows_done + share, self._rows)

        scored = score_encoded(
            self._scorer,
            encoded,
            starts,
            score_name,
            self._batch_tokens,
            parameters=self._parameters,
            back_off=self._back_off,
            told=told,
        )
        self._sequences_done += sequences
        return scored


def score_encoded(
    scorer: Scorer,
    encoded: Encoded,
    starts: Ints,
    score_name: str,
    batch_tokens: int,
    *,
    back_off: BackOff,
    parameters: int = 0,
    told: Callable[[int], None] = lambda done: None,
) -> Scores:
    """Score items that are tokenized, batch after batch.

    Args:
        scorer: what tokenized them.
        encoded: the items as the scorer gave them.
        starts: of the items' choices.
        score_name: what their scores are.
        batch_tokens: padded tokens in a batch.
        back_off: knows what fitted into memory so far.
        parameters: how many the model has.
        told: called after each batch with how many sequences are done.

    Raises:
        KbprobeError: memory does not suffice for a single sequence.
    """
    lengths = encoded.lengths
    numbers, done = np.zeros(starts[-1]), 0
    for batch in cut_batches(lengths, batch_tokens):
        values = back_off.run(partial(scorer.score, encoded), lengths, batch)
        np.add.at(numbers, encoded.slot_choice[encoded.slots(batch)[1]], values)
        done += len(batch)
        told(done)
    aside = np.array(sorted(encoded.set_aside), dtype=np.int64)
    numbers[choices_of(aside, starts)] = np.nan
    return Scores(
        scores=numbers,
        tokens=encoded.choice_tokens,
        set_aside=encoded.set_aside,
        notes=encoded.notes,
        score_name=score_name,
        sequences=len(lengths),
        sequence_tokens=int(lengths.sum()),
        parameters=parameters,
        answers=encoded.answers,
    )


def _joined(parts: Sequence[Scores], rows_of: Sequence[Ints], starts: Ints) -> Scores:
    """Put the scores of all parts in the order of the items."""
    numbers, tokens = np.empty(starts[-1]), np.empty(starts[-1], dtype=np.int64)
    set_aside: dict[int, str] = {}
    notes: Counter[str] = Counter()
    answers: dict[int, Sequence[Any]] = {}
    for part, rows in zip(parts, rows_of, strict=True):
        choices = choices_of(rows, starts)
        numbers[choices], tokens[choices] = part.scores, part.tokens
        set_aside |= {int(rows[row]): reason for row, reason in part.set_aside.items()}
        notes.update(part.notes)
        answers |= zip(rows.tolist(), part.answers, strict=False)
    return Scores(
        scores=numbers,
        tokens=tokens,
        set_aside=dict(sorted(set_aside.items())),
        notes=dict(notes),
        score_name=parts[0].score_name,
        sequences=sum(part.sequences for part in parts),
        sequence_tokens=sum(part.sequence_tokens for part in parts),
        parameters=parts[0].parameters,
        answers=[answers[row] for row in range(len(starts) - 1)] if answers else (),
    )


def _rows_of_parts(items: Sequence[Item], scorer: Scorer, batch_tokens: int) -> list[Ints]:
    """Divide the items: a pure function of their questions, the scorer and the budget.

    How many tokens there are is estimated from some questions, so that not all have to be encoded.
    """
    if not scorer.divisible:
        return [np.arange(len(items))]
    question_of, questions = questions_of(items)
    digests = (
        hashlib.blake2b(question.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for question in questions
    )
    hashed = np.fromiter((int.from_bytes(digest) for digest in digests), np.uint64)
    chosen = np.argsort(hashed, kind="stable")[:_QUESTIONS_MEASURED]
    sample = take_items(items, np.flatnonzero(np.isin(question_of, chosen)))
    tokens = int(scorer.encode(sample).lengths.sum()) * len(items) / len(sample)
    count = round(tokens / (BATCHES_PER_PART * batch_tokens))
    count = max(1, count, len(items) // _ROWS_PER_PART)
    part_of_item = (hashed % np.uint64(count)).astype(np.int64)[question_of]
    return [np.flatnonzero(part_of_item == part) for part in np.unique(part_of_item)]
