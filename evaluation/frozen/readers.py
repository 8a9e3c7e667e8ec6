"""The vectors that heads are trained on, and how a model computes each kind.

- ``mask``: a masked LM's last hidden state at the mask of a cloze.
- ``answer``: a causal LM's last hidden state where the answer to a cloze is expected: after the
  cloze, with its gap shown as ``____``, and ``Answer:`` on a line of its own.
- ``pair``: an encoder's vector of a question with a choice: its pooled vector if the checkpoint
  has a trained pooler, otherwise the first token's last hidden state.
- ``last``: a causal LM's last hidden state at the last token of a question with a choice, or of a
  cloze filled with a choice.
- ``max``: the element-wise maximum over the last hidden states of a text, or of a premise with its
  hypothesis; special tokens are read, padding is not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from evaluation.items.types import Item
from evaluation.models.capabilities import Capability
from evaluation.scorers.causal.layout import PairTokenizer, TextTokenizer
from evaluation.scorers.causal.prompts import BLANK, Rendered
from evaluation.scorers.encoder import EncodedTexts, EncoderRunner, Inputs, Tokenized
from evaluation.scorers.masked.pieces import Filled, Gap, Placer
from evaluation.scorers.multiple_choice import MultipleChoiceScorer
from kbprobe.arrays import Ints

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Text = tuple[str, ...]
"""Texts read as one sequence: a question, or a question and a choice; hashed as they are."""

Vectors = npt.NDArray[np.float32]
"""Shape [texts, dimensions]."""


class VectorReader(ABC):
    """Computes the vectors of texts with one loaded model, from its last hidden states.

    Attributes:
        name: of this kind of vectors; part of the key of stored ones.
        version: incremented whenever vectors may change; part of the key.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    needs: ClassVar[Capability]

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self._model, self._tokenizer = model, tokenizer
        self.parameters = model.num_parameters()
        self._runner = EncoderRunner(model, tokenizer)

    @staticmethod
    @abstractmethod
    def texts(item: Item) -> list[Text]:
        """Return the texts of one item: one, or one for each of its choices."""

    def set_aside(self, items: Sequence[Item]) -> Mapping[int, str]:
        """Return the items that are too long for this kind of vector, and why; others are cut."""
        return {}

    @abstractmethod
    def encode(self, texts: Sequence[Text]) -> EncodedTexts:
        """Tokenize texts."""

    @torch.inference_mode()
    def vectors(self, encoded: EncodedTexts, sequences: Ints) -> Vectors:
        """Return the vectors of some texts, run as one batch, shape [n, dimensions]."""
        found = self._runner.run(encoded, sequences, self._forward)
        vectors: Vectors = found.float().cpu().numpy()
        return vectors

    @abstractmethod
    def _forward(self, inputs: Inputs) -> torch.Tensor:
        """Return the vectors of a batch, shape [n, dimensions]."""

    def _encoded(self, rows: Sequence[Sequence[int]]) -> EncodedTexts:
        """Lay out token sequences, one for each text."""
        read = Tokenized.of(rows, None, ())
        self._runner.refuse_unembedded(read)
        return EncodedTexts.one_each(read)


def answer_prompt(question: str) -> str:
    """Return what a causal LM reads before it answers a cloze."""
    gap = Gap.of(question)
    return f"{gap.left}{BLANK}{gap.right}\nAnswer:"


class MaskReader(VectorReader):
    """Reads the vector at the mask."""

    name, needs = "mask", Capability.MASKED_SCORES

    @staticmethod
    def texts(item: Item) -> list[Text]:
        """Return the question, and a choice: the context is tokenized as around a candidate."""
        return [(item.question, min(item.choices))]  # The choice must not reveal the answer.

    def encode(self, texts: Sequence[Text]) -> EncodedTexts:
        """Tokenize clozes with the model's own mask in the gap."""
        gaps, stand_ins = [Gap.of(question) for question, _ in texts], [[t] for _, t in texts]
        placed = Placer(self._tokenizer).place(gaps, stand_ins)
        return self._encoded([self._masked(filled) for [filled] in placed])

    def _masked(self, filled: Filled) -> list[int]:
        """Put the mask into the gap; a text that is too long keeps the tokens nearest to it."""
        left, right = list(filled.left), list(filled.right)
        # The special tokens at both ends are kept.
        while len(left) + 1 + len(right) > self._runner.limit:
            longer = left if len(left) > len(right) else right
            del longer[1 if longer is left else -2]
        return [*left, int(self._tokenizer.mask_token_id), *right]

    def _forward(self, inputs: Inputs) -> torch.Tensor:
        mask = (inputs["input_ids"] == self._tokenizer.mask_token_id).int().argmax(-1)
        hidden: torch.Tensor = self._model.base_model(**inputs)[0]
        return hidden[torch.arange(len(mask), device=mask.device), mask]


class PairReader(VectorReader):
    """Reads the vector of a question with a choice."""

    name, needs = "pair", Capability.HIDDEN_STATES

    @staticmethod
    def texts(item: Item) -> list[Text]:
        """Return the question with each choice."""
        return [(item.setup, item.question, choice) for choice in item.choices]

    def set_aside(self, items: Sequence[Item]) -> Mapping[int, str]:
        """Return the items with a choice that leaves no room for its question."""
        return MultipleChoiceScorer(self._model, self._tokenizer).encode(items).set_aside

    def encode(self, texts: Sequence[Text]) -> EncodedTexts:
        """Tokenize pairs as multiple-choice models read them."""
        items = [Item("", setup, question, (choice,), 0) for setup, question, choice in texts]
        return MultipleChoiceScorer(self._model, self._tokenizer).encode(items)

    def _forward(self, inputs: Inputs) -> torch.Tensor:
        output = self._model(**inputs)
        pooled: torch.Tensor | None = getattr(output, "pooler_output", None)
        first: torch.Tensor = output[0][:, 0]
        return first if pooled is None else pooled


class LastReader(VectorReader):
    """Reads the vector of the last token of a text."""

    name, needs, version = "last", Capability.CAUSAL_SCORES, 2

    @staticmethod
    def texts(item: Item) -> list[Text]:
        """Return the question followed by each choice, or the cloze filled with it."""
        if item.setup != "mc_mlm":
            return [(f"{item.question} {choice}",) for choice in item.choices]
        gap = Gap.of(item.question)
        return [(gap.left + choice + gap.right,) for choice in item.choices]

    def encode(self, texts: Sequence[Text]) -> EncodedTexts:
        """Tokenize texts; one that is too long is truncated on the left."""
        ids = TextTokenizer(self._tokenizer)(text for (text,) in texts)
        return self._encoded([ids[text][-self._runner.limit :] for (text,) in texts])

    def _forward(self, inputs: Inputs) -> torch.Tensor:
        last = inputs["attention_mask"].sum(-1) - 1
        hidden: torch.Tensor = self._model.base_model(**inputs)[0]
        return hidden[torch.arange(len(last), device=last.device), last]


class AnswerReader(LastReader):
    """Reads the vector of the last token before the answer."""

    name, needs = "answer", Capability.CAUSAL_SCORES

    @staticmethod
    def texts(item: Item) -> list[Text]:
        """Return the question."""
        return [(item.question,)]

    def encode(self, texts: Sequence[Text]) -> EncodedTexts:
        """Tokenize prompts that end where the answer is expected."""
        prompts = [Rendered(answer_prompt(question), ()) for (question,) in texts]
        contexts = PairTokenizer(self._tokenizer).encode(prompts)
        return self._encoded([list(pair.context)[-self._runner.limit :] for pair in contexts])


class MaxReader(VectorReader):
    """Reads the element-wise maximum over the vectors of a text's tokens."""

    name, needs = "max", Capability.HIDDEN_STATES

    @staticmethod
    def texts(item: Item) -> list[Text]:
        """Return the premise, if there is one, and the text."""
        return [(item.premise, item.question)]

    def encode(self, texts: Sequence[Text]) -> EncodedTexts:
        """Tokenize texts as classifiers read them: a premise and its hypothesis as a pair."""
        pairs = [(premise, text) for premise, text in texts]
        return EncodedTexts.one_each(self._runner.tokenize(pairs))

    def _forward(self, inputs: Inputs) -> torch.Tensor:
        hidden: torch.Tensor = self._model.base_model(**inputs)[0]
        if "attention_mask" in inputs:
            padding = inputs["attention_mask"] == 0
            hidden = hidden.masked_fill(padding.unsqueeze(-1), -torch.inf)
        return hidden.amax(1)
