"""Scoring choices with a network over word vectors of question and choice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from evaluation.items.types import Item
from evaluation.learners.esim.layers import Esim, Padded
from evaluation.scorers.base import Encoded, Scorer
from evaluation.scorers.pairs import Pairs
from kb_cache.vectors.tokens import tokenize
from kbprobe.arrays import Floats, Ints, ragged_ranges, run_starts

if TYPE_CHECKING:
    from kb_cache.vectors.types import Float32s, WordVectors

_FREQUENT = 1000


@dataclass(frozen=True, kw_only=True)
class EncodedPairs(Encoded):
    """Pairs of question and choice as word vectors; texts that recur are kept once.

    Attributes:
        question: the text of each pair's question, by its number, shape [pairs].
        choice: the text of each pair's choice, likewise.
        words: the words of all texts one after another, by their row in ``vectors``.
        word_starts: where each text starts in them, shape [texts + 1].
        vectors: the word vectors in use, on the network's device, shape [words, dimensions].
    """

    question: Ints
    choice: Ints
    words: Ints
    word_starts: Ints
    vectors: torch.Tensor

    def padded(self, texts: Ints) -> Padded:
        """Return the word vectors of some texts."""
        lengths = np.diff(self.word_starts)[texts]
        rows = np.zeros((len(texts), lengths.max()), dtype=np.int64)
        shown = np.arange(lengths.max()) < lengths[:, None]
        rows[shown] = self.words[ragged_ranges(self.word_starts[texts], lengths)]
        device = self.vectors.device
        return Padded(
            self.vectors[torch.from_numpy(rows).to(device)], torch.from_numpy(lengths).to(device)
        )


class EsimScorer(Scorer):
    """Scores choices with ESIM: each is read with its question.

    Words without a vector get one that is drawn by a hash of the word, so that it is the same in
    question and choice, in train and test; ``unknown_words`` in the notes counts them.
    """

    def __init__(self, model: Esim, vectors: WordVectors, device: torch.device) -> None:
        self.model = model.to(device).eval()
        self.device = device
        self._vectors = vectors
        # The most frequent words come first in files of word vectors.
        self._spread = float(vectors.matrix[:_FREQUENT].std())

    def encode(self, items: Sequence[Item]) -> EncodedPairs:
        """Tokenize each distinct text, and look its words up."""
        pairs = Pairs.of(items)
        questions = [items[at].question for at in pairs.item.tolist()]
        texts = {text: at for at, text in enumerate(dict.fromkeys([*questions, *pairs.choices]))}
        # A text without words, such as an empty question, is read as one unknown word.
        tokens = [tokenize(text) or [""] for text in texts]
        vocabulary = {
            word: at for at, word in enumerate(dict.fromkeys(w for t in tokens for w in t))
        }
        vectors, unknown = self._looked_up(list(vocabulary))
        counts = np.array([len(words) for words in tokens], dtype=np.int64)
        question = np.array([texts[text] for text in questions], dtype=np.int64)
        choice = np.array([texts[text] for text in pairs.choices], dtype=np.int64)
        return EncodedPairs(
            lengths=counts[question] + counts[choice],
            item=pairs.item,
            slot_starts=pairs.slot_starts,
            slot_choice=pairs.slot_choice,
            choice_tokens=counts[choice][pairs.of_choice],
            notes={"unknown_words": unknown} if unknown else {},
            question=question,
            choice=choice,
            words=np.array([vocabulary[w] for words in tokens for w in words], dtype=np.int64),
            word_starts=run_starts(counts),
            vectors=torch.from_numpy(vectors).to(self.device),
        )

    @torch.inference_mode()
    def score(self, encoded: Any, sequences: Ints) -> Floats:
        """Run some pairs as one batch; the number of a slot is its pair's logit."""
        logits = self.logits(encoded, sequences).cpu().numpy().astype(np.float64)
        return np.repeat(logits, encoded.slots(sequences)[0])

    def logits(self, encoded: EncodedPairs, sequences: Ints) -> torch.Tensor:
        """Return the logit of each pair: float32, shape [n]. Each question is read once."""
        questions, question_of = np.unique(encoded.question[sequences], return_inverse=True)
        scores: torch.Tensor = self.model(
            encoded.padded(questions),
            encoded.padded(encoded.choice[sequences]),
            torch.from_numpy(question_of).to(self.device),
        )
        return scores.float()

    def score_name(self, items: Sequence[Item]) -> str:
        """Return ``logit``: comparable within an item only."""
        return "logit"

    def _looked_up(self, words: Sequence[str]) -> tuple[Float32s, int]:
        """Return the vector of each word, and how many of the words have none of their own."""
        rows = self._vectors.rows(words)
        found = self._vectors.matrix[rows]
        unknown = np.flatnonzero(rows < 0)
        for at in unknown.tolist():
            seed = int.from_bytes(hashlib.blake2b(words[at].encode(), digest_size=8).digest())
            drawn = np.random.default_rng(seed).standard_normal(self._vectors.dimensions)
            found[at] = drawn * self._spread
        return found, len(unknown)
