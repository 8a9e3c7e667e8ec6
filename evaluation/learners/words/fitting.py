"""Training a network over word vectors: once, found again after a crash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from evaluation.items.types import Item, choice_starts, fingerprint
from evaluation.learners.base import Training
from evaluation.learners.entries import WORDS_LEARNING_RATE, WordsOptions
from evaluation.learners.finetune.training import ChoiceTraining
from evaluation.learners.kept import fitted_network
from evaluation.learners.words.networks import NETWORKS, Padded, WordBatch, WordNetwork, padded
from evaluation.scorers.base import Encoded, ReadyScorer, Scorer, row_sequences
from evaluation.vectors.options import vectors_content, word_vectors
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
        words = self.texts.words[ragged_ranges(self.texts.starts[texts], lengths)]
        return padded(self.vectors, words, lengths)

    def batch(self, rows: Ints) -> WordBatch:
        """Return some rows as a network reads them, each text once."""
        counts, slots = self.slots(rows)
        choice = self.choice[slots]
        question = np.repeat(self.question[rows], counts)
        question = question[question >= 0]
        texts, place = np.unique(np.concatenate([question, choice]), return_inverse=True)
        device = self.vectors.device
        places = torch.from_numpy(place).to(device)
        row = torch.from_numpy(np.repeat(np.arange(len(rows)), counts)).to(device)
        return WordBatch(self.padded(texts), places[: len(question)], places[len(question) :], row)


class WordsScorer(Scorer):
    """Scores the choices of rows with a network over word vectors.

    ``unknown_words`` in the notes counts the words without a vector of their own.
    """

    divisible = False  # A word that recurs is counted once.
    score_kind = "logit"  # comparable within an item only

    def __init__(self, model: WordNetwork, vectors: WordVectors, device: torch.device) -> None:
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


def fitted(training: Training, learner: str) -> AbstractContextManager[ReadyScorer]:
    """Train a network, or find what an interrupted run left of it.

    Raises:
        UsageError: the word vectors are not there.
        KbprobeError: training diverged, or a row does not fit into memory.
    """
    options: WordsOptions = training.options
    vectors, handle, kind = word_vectors(options), training.model, NETWORKS[learner]
    identity = {
        "learner": learner,
        "options": options.model_dump(mode="json"),
        **vectors_content(options),
        "seed": training.seed,
        "train_fingerprint": fingerprint(training.items),
        "device": handle.device.type,
    }

    def load(weights: dict[str, torch.Tensor]) -> ReadyScorer:
        model = kind(vectors.dimensions, *options.network)
        model.load_state_dict(weights)
        parameters = sum(weights.numel() for weights in model.parameters())
        return ReadyScorer(WordsScorer(model, vectors, handle.device), parameters)

    return fitted_network(training, identity, lambda: train(training, vectors, kind), load)


def train(training: Training, vectors: WordVectors, kind: type[WordNetwork]) -> WordNetwork:
    """Train a network by cross-entropy over the choices of each row.

    On a CPU it is a pure function of vectors, rows, options and seed. torch's global random state
    is left as it was.
    """
    options: WordsOptions = training.options
    device = training.model.device
    cuda = [device] if device.type == "cuda" else []
    with single_thread(), torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(training.seed)
        model = kind(vectors.dimensions, *options.network)
        scorer = WordsScorer(model, vectors, device)
        encoded = scorer.encode(training.items)
        model.train()
        learning = ChoiceTraining(
            scorer, encoded, training.items, options, training.seed, WORDS_LEARNING_RATE
        )
        learning.run(training.progress)
    return model.eval().cpu()
