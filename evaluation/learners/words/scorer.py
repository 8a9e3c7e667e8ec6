"""Scoring choices with a network over word vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from evaluation.items.types import Item, choice_starts
from evaluation.learners.words.layers import Padded
from evaluation.learners.words.networks import Batch, Network
from evaluation.scorers.base import Encoded, Scorer
from evaluation.scorers.rows import row_sequences
from kb_cache.vectors.texts import WordTexts
from kbprobe.arrays import Floats, Ints, ragged_ranges

if TYPE_CHECKING:
    from kb_cache.vectors.types import WordVectors


@dataclass(frozen=True, kw_only=True)
class EncodedRows(Encoded):
    """Rows as texts of word vectors: each row is a sequence, and its choices are the slots.

    Attributes:
        question: the text of each row's question, by its number, shape [rows]; -1: not read.
        choice: the text of each choice, shape [choices].
        texts: the texts that are read; those that recur are kept once.
        vectors: the word vectors in use, on the network's device, shape [words, dimensions].
    """

    question: Ints
    choice: Ints
    texts: WordTexts
    vectors: torch.Tensor

    def padded(self, texts: Ints) -> Padded:
        """Return the word vectors of some texts."""
        lengths = self.texts.lengths[texts]
        rows = np.zeros((len(texts), lengths.max()), dtype=np.int64)
        shown = np.arange(lengths.max()) < lengths[:, None]
        rows[shown] = self.texts.words[ragged_ranges(self.texts.starts[texts], lengths)]
        device = self.vectors.device
        return Padded(
            self.vectors[torch.from_numpy(rows).to(device)], torch.from_numpy(lengths).to(device)
        )

    def batch(self, rows: Ints) -> Batch:
        """Return some rows as a network reads them, each text once."""
        counts, slots = self.slots(rows)
        choice = self.choice[slots]
        question = np.repeat(self.question[rows], counts)
        question = question[question >= 0]
        texts, place = np.unique(np.concatenate([question, choice]), return_inverse=True)
        device = self.vectors.device
        places = torch.from_numpy(place).to(device)
        row = torch.from_numpy(np.repeat(np.arange(len(rows)), counts)).to(device)
        return Batch(self.padded(texts), places[: len(question)], places[len(question) :], row)


class WordsScorer(Scorer):
    """Scores the choices of rows with a network over word vectors.

    ``unknown_words`` in the notes counts the words without a vector of their own.
    """

    divisible = False  # A word that recurs is counted once.

    def __init__(self, model: Network, vectors: WordVectors, device: torch.device) -> None:
        self.model = model.to(device).eval()
        self.device = device
        self._vectors = vectors

    def encode(self, items: Sequence[Item]) -> EncodedRows:
        """Tokenize each distinct text that the network reads, and look its words up."""
        choices = [text for item in items for text in item.choices]
        questions = [item.question for item in items] if self.model.reads_questions else []
        texts = WordTexts.of([*questions, *choices], self._vectors)
        choice = texts.numbers(choices)
        question = texts.numbers(questions) if questions else np.full(len(items), -1)
        starts = choice_starts(items)
        cost = np.add.reduceat(texts.lengths[choice], starts[:-1])
        if questions:
            cost += np.diff(starts) * texts.lengths[question]
        return EncodedRows(
            **row_sequences(items, cost, texts.lengths[choice]),
            notes=texts.notes,
            question=question,
            choice=choice,
            texts=texts,
            vectors=torch.from_numpy(texts.vectors).to(self.device),
        )

    @torch.inference_mode()
    def score(self, encoded: Any, sequences: Ints) -> Floats:
        """Run some rows as one batch; the number of a slot is its choice's logit."""
        with single_thread():
            scores: Floats = self._logits(encoded, sequences).cpu().numpy().astype(np.float64)
        return scores

    def slot_logits(self, encoded: EncodedRows, slots: Ints) -> torch.Tensor:
        """Return the logit of each of some slots: float32, shape [n], differentiable.

        All choices of their rows are run.
        """
        rows, row_of_slot = np.unique(encoded.sequence_of(slots), return_inverse=True)
        counts = np.diff(encoded.slot_starts)[rows]
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        place = first[row_of_slot] + slots - encoded.slot_starts[rows][row_of_slot]
        return self._logits(encoded, rows)[torch.from_numpy(place).to(self.device)]

    def score_name(self, items: Sequence[Item]) -> str:
        """Return ``logit``: comparable within an item only."""
        return "logit"

    def _logits(self, encoded: EncodedRows, rows: Ints) -> torch.Tensor:
        scores: torch.Tensor = self.model(encoded.batch(rows))
        return scores.float()


@contextmanager
def single_thread() -> Iterator[None]:
    """Compute in one thread: matrices are so small that several take four times as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
