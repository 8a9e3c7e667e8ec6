"""Running a scorer over all items: in parts, resumable, on one process or several.

The questions are divided into parts by a hash of their text, so that equal questions stay
together and share their forward pass. A part is about eight batches; it is scored, stored and
never computed again, whichever process does it and however many there are.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.items.types import Item, choice_starts
from evaluation.progress import Progress, silent
from evaluation.results.scores import Scores
from evaluation.runs.score_cache import ScoreCache, choices_of
from evaluation.scorers.base import Scorer
from evaluation.scorers.batching import BackOff, cut_batches
from evaluation.workers import ALONE, Workers
from kbprobe.arrays import Ints
from kbprobe.errors import KbprobeError

BATCHES_PER_PART = 8


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
    began = time.perf_counter()
    progress("tokenizing", 0, len(items))
    encoded, score_name = scorer.encode(items), scorer.score_name(items)
    back_off = BackOff(lambda batch: scorer.score(encoded, batch), encoded.lengths)
    tokens = int(encoded.lengths.sum())
    part_of_item = _parts(items, tokens, batch_tokens)
    part_of_sequence = part_of_item[encoded.item]
    rows_of = {int(part): np.flatnonzero(part_of_item == part) for part in np.unique(part_of_item)}
    encoding = time.perf_counter() - began

    began = time.perf_counter()
    found = {part: cache.read_part(part, rows, starts) for part, rows in rows_of.items()}
    # Nobody may start before all have looked, or they would see different parts missing.
    workers.wait()
    todo = [part for part, known in found.items() if known is None][workers.rank :: workers.count]
    total, done = int(np.isin(part_of_sequence, todo).sum()), 0
    with workers.together():
        for part in todo:
            totals = np.zeros(starts[-1])
            sequences = np.flatnonzero(part_of_sequence == part)
            for batch in cut_batches(encoded.lengths[sequences], batch_tokens):
                values = back_off.run(sequences[batch])
                _, slots = encoded.slots(sequences[batch])
                np.add.at(totals, encoded.slot_choice[slots], values)
                done += len(batch)
                progress("scoring", done, total)
            rows = rows_of[part]
            scored = found[part] = totals[choices_of(rows, starts)]
            cache.write_part(part, rows, starts, scored)

    numbers = np.full(starts[-1], np.nan)
    for part, rows in rows_of.items():
        known = found[part]
        if known is None:
            known = cache.read_part(part, rows, starts)
        if known is None:
            raise KbprobeError(
                f"part {part} of the questions was not scored by the process that had to; "
                "its own message says why. Run the same command again to go on."
            )
        numbers[choices_of(rows, starts)] = known
    aside = np.array(sorted(encoded.set_aside), dtype=np.int64)
    numbers[choices_of(aside, starts)] = np.nan
    scores = Scores(
        scores=numbers,
        tokens=encoded.choice_tokens,
        set_aside=encoded.set_aside,
        notes=encoded.notes,
        score_name=score_name,
        sequences=len(encoded.lengths),
        sequence_tokens=tokens,
        parameters=parameters,
    )
    seconds = time.perf_counter() - began
    rows_scored = sum(len(rows_of[part]) for part in todo)
    # The parts go when the whole is written: not before everyone has read them.
    workers.wait()
    if workers.leads:
        cache.write(scores, starts)
    workers.wait()
    return scores, Effort(encoding, seconds, rows_scored, total, back_off.halvings)


def _parts(items: Sequence[Item], tokens: int, batch_tokens: int) -> Ints:
    """Return the part of each item: a pure function of questions, their tokens and the budget."""
    count = max(1, round(tokens / (BATCHES_PER_PART * batch_tokens)))
    part_of: dict[str, int] = {}
    for item in items:
        if item.question not in part_of:
            digest = hashlib.blake2b(item.question.encode("utf-8", "surrogatepass"), digest_size=8)
            part_of[item.question] = int.from_bytes(digest.digest(), "little") % count
    return np.array([part_of[item.question] for item in items], dtype=np.int64)
