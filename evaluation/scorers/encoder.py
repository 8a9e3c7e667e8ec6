"""Shared by scorers of encoders with a head: tokenized texts with segments, run in batches."""

from __future__ import annotations

import inspect
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch

from evaluation.models.loading import longest_input, padding_token, refuse_unembedded
from evaluation.scorers.base import EncodedTokens, Tokens
from kbprobe.arrays import Ints, run_starts

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

PADDING_CHANGES_SCORES = frozenset(
    {"convbert", "fnet", "nystromformer", "roformer", "xlnet", "yoso"}
)
"""Architectures (``model_type``) whose logits depend on padding even if it is masked.

Measured with random weights, padded on the right: ConvBERT's and YOSO's convolutions, FNet's
Fourier transform and Nystromformer's landmarks mix in padding, and XLNet and RoFormer read the
last position. They are run without any padding, on texts of one length at a time.
"""

_TEXTS_AT_A_TIME = 8192

Inputs = Mapping[str, torch.Tensor]
"""What a model's ``forward`` takes, by name: shape [n, longest]."""


class Tokenized(NamedTuple):
    """Texts as tokens, one after another.

    Attributes:
        tokens: the token ids of all texts.
        types: the segment of each token, or None where the model takes none.
        lengths: the number of tokens of each text, shape [texts].
        cut: the numbers of the texts that were too long.
    """

    tokens: Tokens
    types: Tokens | None
    lengths: Ints
    cut: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None, cut: Iterable[int]
    ) -> Self:
        """Lay out the tokens of each text, and their segments if the model takes them."""
        lengths = np.fromiter(map(len, ids), dtype=np.int64)
        return cls(_flat(ids), None if types is None else _flat(types), lengths, frozenset(cut))


def _flat(rows: Sequence[Sequence[int]]) -> Tokens:
    flat = array("i")
    for row in rows:
        flat.extend(row)
    return np.array(flat, dtype=np.int32)


@dataclass(frozen=True, kw_only=True)
class EncodedTexts(EncodedTokens):
    """Texts, or pairs of texts, as tokens.

    Attributes:
        token_types: the segment of each token, or None where the model takes none.
    """

    token_types: Tokens | None

    @classmethod
    def one_each(cls, read: Tokenized) -> Self:
        """Lay out texts that yield one number, or one vector, each."""
        numbers = np.arange(len(read.lengths))
        return cls.shared(read, numbers, numbers, choice_tokens=np.ones_like(numbers))

    @classmethod
    def shared(cls, read: Tokenized, of_choice: Ints, item_of: Ints, **further: Any) -> Self:
        """Lay out texts that yield a number for each choice that they show.

        Args:
            read: the distinct texts, in the order of the choices.
            of_choice: the text of each choice, shape [choices].
            item_of: the item of each choice, shape [choices].
            further: additional attributes.
        """
        _, first = np.unique(of_choice, return_index=True)
        return cls(
            lengths=read.lengths,
            item=item_of[first],
            slot_starts=run_starts(np.bincount(of_choice, minlength=len(read.lengths))),
            slot_choice=np.argsort(of_choice, kind="stable"),
            tokens=read.tokens,
            token_types=read.types,
            token_starts=run_starts(read.lengths),
            **further,
        )


class EncoderRunner:
    """Runs an encoder with a head over texts, padded unless that changes the results."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model, self._tokenizer = model.eval(), tokenizer
        self.limit = longest_input(model, tokenizer)
        self._segment = tokenizer.pad_token_type_id
        padding = getattr(model.config, "pad_token_id", None)
        # The model's own padding token: some heads look for the last token that is not padding.
        self._padding = padding_token(model, tokenizer) if padding is None else padding
        self._pads = model.config.model_type not in PADDING_CHANGES_SCORES
        takes = inspect.signature(model.forward).parameters
        self._takes_mask = "attention_mask" in takes
        # Decided by what the model takes: some tokenizers leave segments out by default.
        # RoBERTa has only one, DeBERTa-v2 none.
        segments = getattr(model.config, "type_vocab_size", None)
        if segments is None:
            # XLNet does not state how many it has. GPT-2 would read them as words.
            pair = tokenizer("a", "b", return_token_type_ids=True)
            segments = max(pair["token_type_ids"], default=0) + 1
        self.takes_types = "token_type_ids" in takes and segments > 1

    def tokenize(self, texts: Sequence[tuple[str, str]]) -> Tokenized:
        """Tokenize texts, each a pair of a premise ("" for none) and what is asked about it.

        A text that is too long is cut as the tokenizer cuts it: the longer text of a pair loses
        tokens first.
        """

        def encoding(some: Sequence[tuple[str, str]], paired: bool, cut: bool = False) -> Any:
            first, second = zip(*some, strict=True)
            return self._tokenizer(
                *((list(first), list(second)) if paired else (list(second),)),
                truncation=cut,
                max_length=self.limit if cut else None,
                return_token_type_ids=self.takes_types,
                return_attention_mask=False,
                verbose=False,
            )

        ids: list[Sequence[int]] = [()] * len(texts)
        types: list[Sequence[int]] = [()] * len(texts)
        cut: set[int] = set()
        for paired in (False, True):
            numbers = [number for number, text in enumerate(texts) if bool(text[0]) is paired]
            for start in range(0, len(numbers), _TEXTS_AT_A_TIME):
                part = numbers[start : start + _TEXTS_AT_A_TIME]
                encoded = encoding([texts[number] for number in part], paired)
                for row, number in enumerate(part):
                    found, at = encoded, row
                    if len(encoded["input_ids"][row]) > self.limit:
                        cut.add(number)
                        found, at = encoding([texts[number]], paired, cut=True), 0
                    ids[number] = found["input_ids"][at]
                    if self.takes_types:
                        types[number] = found["token_type_ids"][at]
        read = Tokenized.of(ids, types if self.takes_types else None, cut)
        self.refuse_unembedded(read)
        return read

    def refuse_unembedded(self, read: Tokenized) -> None:
        """Refuse tokens that the model has no embedding for.

        Raises:
            UsageError: there is one.
        """
        refuse_unembedded(self.model, self._tokenizer, [read.tokens])

    def run(
        self,
        encoded: EncodedTexts,
        sequences: Ints,
        forward: Callable[[Inputs], torch.Tensor],
    ) -> torch.Tensor:
        """Return the results of ``forward`` for some sequences, in order, on the model's device.

        ``forward`` takes a batch and returns a tensor whose first axis is the sequences.
        """
        if self._pads:
            return forward(self._batch(encoded, sequences))
        lengths = encoded.lengths[sequences]
        groups = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
        found = torch.cat([forward(self._batch(encoded, sequences[group])) for group in groups])
        back = np.argsort(np.concatenate(groups), kind="stable")
        return found[torch.from_numpy(back).to(found.device)]

    def _batch(self, encoded: EncodedTexts, sequences: Ints) -> dict[str, torch.Tensor]:
        # Always on the right: positions are counted from the left.
        inputs = {"input_ids": encoded.padded(sequences, encoded.tokens, self._padding)}
        if self._takes_mask:
            inputs["attention_mask"] = encoded.shown(sequences).astype(np.int64)
        if encoded.token_types is not None:
            inputs["token_type_ids"] = encoded.padded(sequences, encoded.token_types, self._segment)
        return {
            name: torch.from_numpy(batch).to(self.model.device) for name, batch in inputs.items()
        }
