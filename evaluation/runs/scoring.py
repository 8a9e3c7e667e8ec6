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
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, overload

import numpy as np

from evaluation.items.types import Item, choice_starts, questions_of, take_items
from evaluation.results.metrics import Scores
from evaluation.runs.score_cache import ScoreCache, choices_of
from evaluation.scorers.base import Encoded, Scorer
from evaluation.scorers.batching import BackOff
from evaluation.workers import QUIET, Session
from kbprobe.arrays import Ints, run_starts
from kbprobe.errors import KbprobeError
from kbprobe.terminal.progress import Progress

BATCHES_PER_PART = 8
_QUESTIONS_MEASURED = 32
_ROWS_PER_PART = 16384
"""Approximate maximum number of rows in a part, however short they are."""


@dataclass
class Effort:
    """The cost of a run: seconds, and what was computed rather than found in the cache."""

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
    session: Session = QUIET,
) -> tuple[Scores, Effort]:
    """Score all items, from where an earlier run left off, and store the scores in the cache.

    All workers get all scores.

    Raises:
        KbprobeError: memory does not suffice for a single sequence, the cache cannot be written,
            or another process failed to score its share.
    """
    starts, workers = choice_starts(items), session.workers
    rows_of = _rows_of_parts(items, scorer, batch_tokens)
    found = [cache.read_part(part, rows, starts) for part, rows in enumerate(rows_of)]
    # No process may start before all have checked, or they would see different parts missing.
    workers.wait()
    todo = [part for part, known in enumerate(found) if known is None]
    todo = todo[workers.rank :: workers.count]
    effort = Effort()
    with workers.together():
        if todo:
            score_name = next((part.score_name for part in found if part is not None), None)
            if score_name is None and workers.count > 1:
                score_name = scorer.score_name(items)  # Others have parts that decide it too.
            parts = _Parts(items, [rows_of[part] for part in todo])
            scored = _score_parts(parts, scorer, score_name, batch_tokens, session.progress, effort)
            for part, own in zip(todo, scored, strict=True):
                counted = found[part] = replace(own, parameters=parameters)
                cache.write_part(part, rows_of[part], starts, counted)

    for part, rows in enumerate(rows_of):
        if found[part] is None:
            found[part] = cache.read_part(part, rows, starts)
        if found[part] is None:
            raise KbprobeError(
                f"part {part} of the questions was not scored by the process that had to; "
                "its own message says why. Run the same command again to go on."
            )
    scores = _joined([part for part in found if part is not None], rows_of, starts)
    # Parts are removed when the whole is written, but not before every process has read them.
    workers.wait()
    if workers.leads:
        cache.write(scores, starts)
    workers.wait()
    return scores, effort


class _Parts(Sequence[Sequence[Item]]):
    """Parts of the items, made on demand, so that not all are in memory at once."""

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
        """Return the starts of each part's choices."""
        sizes = np.diff(choice_starts(self._items))
        return (run_starts(sizes[rows]) for rows in self._rows_of)


def _score_parts(
    parts: _Parts,
    scorer: Scorer,
    score_name: str | None,
    batch_tokens: int,
    progress: Progress,
    effort: Effort,
) -> Iterator[Scores]:
    """Encode and score parts one after another; only one is held at a time.

    ``score_name`` is what scores are, if that is known; what is done is added to ``effort``.
    """
    every = list(parts.starts())
    rows, back_off = sum(map(len, every)) - len(every), BackOff()

    def told(done: int) -> None:
        share = (len(starts) - 1) * done // len(encoded.lengths)
        progress("scoring", effort.rows + share, rows)

    began = time.perf_counter()
    progress("tokenizing", 0, rows)
    score_name, coming = scorer.encode_parts(parts, score_name)
    effort.encode += time.perf_counter() - began
    for starts in every:
        began = time.perf_counter()
        encoded = next(coming)
        effort.encode += time.perf_counter() - began
        began = time.perf_counter()
        scored = score_encoded(
            scorer, encoded, starts, score_name, batch_tokens, back_off=back_off, told=told
        )
        effort.score += time.perf_counter() - began
        effort.rows += len(starts) - 1
        effort.sequences += len(encoded.lengths)
        effort.halvings = back_off.halvings
        yield scored


def score_encoded(
    scorer: Scorer,
    encoded: Encoded,
    starts: Ints,
    score_name: str,
    batch_tokens: int,
    *,
    back_off: BackOff,
    told: Callable[[int], None] = lambda done: None,
) -> Scores:
    """Score items that are tokenized, batch after batch.

    Raises:
        KbprobeError: memory does not suffice for a single sequence.
    """
    numbers, done = np.zeros(starts[-1]), 0
    for batch, values in back_off.batches(
        partial(scorer.score, encoded), encoded.lengths, batch_tokens
    ):
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
        sequences=len(encoded.lengths),
        sequence_tokens=int(encoded.lengths.sum()),
        parameters=0,
        answers=encoded.answers,
    )


def _joined(parts: Sequence[Scores], rows_of: Sequence[Ints], starts: Ints) -> Scores:
    """Arrange the scores of all parts in the order of the items."""
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
