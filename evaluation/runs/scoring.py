"""Running a scorer over all items: in parts, resumable, on one process or several.

The questions are divided into parts by a hash of their text, so that equal questions stay
together and share their forward pass. A part is about eight batches; it is scored, stored and
never computed again, whichever process does it and however many there are.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.items.types import Item, choice_starts
from evaluation.progress import Progress, silent
from evaluation.results.scores import Scores
from evaluation.runs.score_cache import ScoreCache, choices_of
from evaluation.scorers.base import Encoded, Scorer
from evaluation.scorers.batching import BackOff, cut_batches
from evaluation.workers import ALONE, Workers
from kbprobe.arrays import Floats, Ints
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
    """Score all items, from where an earlier run left off, and store the scores.

    Args:
        items: what to score.
        scorer: what to score it with.
        cache: where finished parts are and go.
        batch_tokens: padded tokens in a batch.
        parameters: of the model, stored with its scores.
        workers: the processes that share the work; all of them get all scores.
        progress: told of every batch.

    Raises:
        KbprobeError: memory does not suffice for a single sequence, the cache cannot be written,
            or another process failed to score its share.
    """
    starts = choice_starts(items)
    began = time.perf_counter()
    progress("tokenizing", 0, len(items))
    encoded = scorer.encode(items)
    run = _PartRunner(scorer, encoded, starts, cache, batch_tokens, scorer.score_name(items))
    part_of_item = _parts(items, int(encoded.lengths.sum()), batch_tokens)
    part_of_sequence = part_of_item[encoded.item]
    encoding = time.perf_counter() - began

    began = time.perf_counter()
    todo = run.missing(part_of_item, workers)
    total, done, rows_scored = int(np.isin(part_of_sequence, todo).sum()), 0, 0
    with workers.together():
        for part in todo:
            rows = np.flatnonzero(part_of_item == part)
            sequences = np.flatnonzero(part_of_sequence == part)
            for finished in run.score_part(int(part), rows, sequences):
                progress("scoring", done + finished, total)
            done += len(sequences)
            rows_scored += len(rows)
    scores = run.merge(part_of_item, parameters)
    effort = Effort(encoding, time.perf_counter() - began, rows_scored, total, run.halvings)
    # The parts go when the whole is written: not before everyone has read them.
    workers.wait()
    if workers.leads:
        cache.write(scores, starts)
    workers.wait()
    return scores, effort


class _PartRunner:
    """One scorer over one encoded set of items."""

    def __init__(
        self,
        scorer: Scorer,
        encoded: Encoded,
        starts: Ints,
        cache: ScoreCache,
        batch_tokens: int,
        score_name: str,
    ) -> None:
        self._encoded = encoded
        self._starts = starts
        self._cache = cache
        self._batch_tokens = batch_tokens
        self._back_off = BackOff(scorer, encoded)
        self._score_name = score_name
        self._done: dict[int, Floats] = {}

    @property
    def halvings(self) -> int:
        return self._back_off.halvings

    def missing(self, part_of_item: Ints, workers: Workers) -> Ints:
        """Read what is there; return the parts that this process is to score."""
        missing = []
        for part in np.unique(part_of_item):
            rows = np.flatnonzero(part_of_item == part)
            scores = self._cache.read_part(int(part), rows, self._starts)
            if scores is None:
                missing.append(int(part))
            else:
                self._done[int(part)] = scores
        # Nobody may start before all have looked, or they would see different parts missing.
        workers.wait()
        return np.array(missing[workers.rank :: workers.count], dtype=np.int64)

    def score_part(self, part: int, rows: Ints, sequences: Ints) -> Iterator[int]:
        """Score one part and store it; yields the number of sequences done so far."""
        encoded = self._encoded
        totals = np.zeros(self._starts[-1])
        seen = 0
        for batch in cut_batches(encoded.lengths[sequences], self._batch_tokens):
            chosen = sequences[batch]
            values = self._back_off.run(chosen)
            np.add.at(totals, encoded.slot_choice[encoded.slots(chosen)[1]], values)
            seen += len(batch)
            yield seen
        scores = totals[choices_of(rows, self._starts)]
        self._cache.write_part(part, rows, self._starts, scores)
        self._done[part] = scores

    def merge(self, part_of_item: Ints, parameters: int) -> Scores:
        """Put all parts together, those of other processes included."""
        encoded, starts = self._encoded, self._starts
        scores = np.full(starts[-1], np.nan)
        for part in np.unique(part_of_item):
            rows = np.flatnonzero(part_of_item == part)
            found = self._done.get(int(part))
            if found is None:
                found = self._cache.read_part(int(part), rows, starts)
            if found is None:
                raise KbprobeError(
                    f"part {part} of the questions was not scored by the process that had to; "
                    "its own message says why. Run the same command again to go on."
                )
            scores[choices_of(rows, starts)] = found
        aside = np.array(sorted(encoded.set_aside), dtype=np.int64)
        scores[choices_of(aside, starts)] = np.nan
        return Scores(
            scores=scores,
            tokens=encoded.choice_tokens,
            set_aside=encoded.set_aside,
            notes=encoded.notes,
            score_name=self._score_name,
            sequences=len(encoded.lengths),
            sequence_tokens=int(encoded.lengths.sum()),
            parameters=parameters,
        )


def _parts(items: Sequence[Item], tokens: int, batch_tokens: int) -> Ints:
    """Return the part of each item: a pure function of questions, their tokens and the budget."""
    count = max(1, round(tokens / (BATCHES_PER_PART * batch_tokens)))
    part_of: dict[str, int] = {}
    for item in items:
        if item.question not in part_of:
            digest = hashlib.blake2b(item.question.encode("utf-8", "surrogatepass"), digest_size=8)
            part_of[item.question] = int.from_bytes(digest.digest(), "little") % count
    return np.array([part_of[item.question] for item in items], dtype=np.int64)
