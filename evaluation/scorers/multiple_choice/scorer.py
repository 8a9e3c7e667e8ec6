"""Multiple-choice models: each choice is read with its question, and a head scores the pair.

"[CLS] question [SEP] choice [SEP]" for each choice, in whatever form the model's own tokenizer
gives a pair; one linear unit makes the first token's vector (or what the architecture pools) a
number; the highest wins. This is MC-QA of Talmor et al. 2020 (oLMpics) and the models of
Richardson and Sabharwal 2020 (WordNetQA).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from evaluation.items.types import MASK, Item, choice_starts
from evaluation.models.loading import longest_input
from evaluation.scorers.base import EncodedTokens, Scorer, Tokens
from kbprobe.arrays import Floats, Ints, run_starts
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

PADDING_CHANGES_SCORES = frozenset(
    {"convbert", "fnet", "nystromformer", "roformer", "xlnet", "yoso"}
)
"""Architectures (``model_type``) whose logits depend on padding though it is masked.

Measured with random weights, padded on the right: ConvBERT's and YOSO's convolutions, FNet's
Fourier transform and Nystromformer's landmarks mix padding in, and XLNet and RoFormer read the
last position. They run without any padding: pairs of one length at a time.
"""

_PAIRS_AT_A_TIME = 8192


@dataclass(frozen=True, kw_only=True)
class EncodedPairs(EncodedTokens):
    """Pairs of question and choice as tokens, one sequence a distinct pair.

    ``choice_tokens`` counts the choice's own tokens.

    Attributes:
        token_types: the segment of each token, or None where the model takes none.
    """

    token_types: Tokens | None


class MultipleChoiceScorer(Scorer):
    """Scores choices with the head of an ``AutoModelForMultipleChoice``.

    In ``mc_mlm`` items the mask is left in the question, as the model's own mask token: the model
    reads a sentence with a gap and a candidate to fill it. Items that share a question and a
    choice share the sequence.

    A pair that is too long loses tokens at the start of the question, and its item is counted in
    the notes as ``truncated``; the choice stays whole.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model = model.eval()
        self._tokenizer = tokenizer
        self._limit = longest_input(model, tokenizer)
        self._pad_freely = model.config.model_type not in PADDING_CHANGES_SCORES
        takes = inspect.signature(model.forward).parameters
        self._takes_mask = "attention_mask" in takes
        # Decided by what the model takes: some tokenizers leave segments out by default.
        # RoBERTa knows one only, DeBERTa-v2 none.
        segments = getattr(model.config, "type_vocab_size", None)
        self._takes_types = "token_type_ids" in takes and (segments is None or segments > 1)

    def encode(self, items: Sequence[Item]) -> EncodedPairs:
        """Tokenize each distinct pair of question and choice, in the order of the items.

        Raises:
            UsageError: a choice leaves no room for its question, or an item has a mask and the
                model has none.
        """
        pairs, sequence_of_choice, first_item = self._distinct_pairs(items)
        tokens, types, own_tokens, cut = self._tokenized(pairs, items, first_item)
        lengths = np.array([len(sequence) for sequence in tokens], dtype=np.int64)
        token_starts = run_starts(lengths)
        slot_choice = np.argsort(sequence_of_choice, kind="stable")
        slots = np.bincount(sequence_of_choice, minlength=len(pairs))
        starts = choice_starts(items)
        item_of_choice = np.repeat(np.arange(len(items)), np.diff(starts))
        items_cut = len(np.unique(item_of_choice[cut[sequence_of_choice]]))
        return EncodedPairs(
            lengths=lengths,
            item=first_item,
            slot_starts=run_starts(slots),
            slot_choice=slot_choice,
            choice_tokens=own_tokens[sequence_of_choice],
            notes={"truncated": items_cut} if items_cut else {},
            tokens=_flat(tokens, token_starts[-1]),
            token_types=_flat(types, token_starts[-1]) if types is not None else None,
            token_starts=token_starts,
        )

    @torch.inference_mode()
    def score(self, encoded: Any, sequences: Ints) -> Floats:
        """Run some pairs as one batch; the number of a slot is its pair's logit.

        Returns:
            Shape [slots of these sequences].
        """
        logits = self.logits(encoded, sequences).cpu().numpy().astype(np.float64)
        return np.repeat(logits, encoded.slots(sequences)[0])

    def logits(self, encoded: EncodedPairs, sequences: Ints) -> torch.Tensor:
        """Return the logit of each pair: float32, shape [n], on the model's device.

        Each pair goes in as a question with one choice: the head is applied to each choice alone,
        so that pairs of several questions can share a batch.
        """
        if self._pad_freely:
            return self._forward(encoded, sequences)
        lengths = encoded.lengths[sequences]
        groups = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
        logits = torch.cat([self._forward(encoded, sequences[group]) for group in groups])
        back = np.argsort(np.concatenate(groups), kind="stable")
        return logits[torch.from_numpy(back).to(logits.device)]

    def score_name(self, items: Sequence[Item]) -> str:
        """Return ``logit``: comparable within an item only."""
        return "logit"

    def _forward(self, encoded: EncodedPairs, sequences: Ints) -> torch.Tensor:
        # Always on the right: positions are counted from the left.
        inputs = {
            "input_ids": encoded.padded(
                sequences, encoded.tokens, self._tokenizer.pad_token_id or 0
            )
        }
        if self._takes_mask:
            inputs["attention_mask"] = encoded.shown(sequences).astype(np.int64)
        if encoded.token_types is not None:
            filling = self._tokenizer.pad_token_type_id
            inputs["token_type_ids"] = encoded.padded(sequences, encoded.token_types, filling)
        device = self.model.device
        tensors = {
            name: torch.from_numpy(batch).unsqueeze(1).to(device) for name, batch in inputs.items()
        }
        logits: torch.Tensor = self.model(**tensors).logits
        return logits.float().squeeze(1)

    def _distinct_pairs(self, items: Sequence[Item]) -> tuple[list[tuple[str, str]], Ints, Ints]:
        """Return the pairs, the pair of each choice of each item, and an item of each pair."""
        known: dict[tuple[str, str, str], int] = {}
        pairs: list[tuple[str, str]] = []
        first_item: list[int] = []
        sequence_of_choice: list[int] = []
        for row, item in enumerate(items):
            question = self._question(item)
            for choice in item.choices:
                key = (item.setup, item.question, choice)
                sequence = known.setdefault(key, len(pairs))
                if sequence == len(pairs):
                    pairs.append((question, choice))
                    first_item.append(row)
                sequence_of_choice.append(sequence)
        return (
            pairs,
            np.array(sequence_of_choice, dtype=np.int64),
            np.array(first_item, dtype=np.int64),
        )

    def _question(self, item: Item) -> str:
        if item.setup != "mc_mlm":
            return item.question
        mask = self._tokenizer.mask_token
        if mask is None:
            raise UsageError(
                f"item {item.id} has a {MASK}, and this model's tokenizer has no mask token. "
                "Use a probe of questions and answers (mc_qa), or another checkpoint."
            )
        return item.question.replace(MASK, mask)

    def _tokenized(
        self, pairs: Sequence[tuple[str, str]], items: Sequence[Item], first_item: Ints
    ) -> tuple[list[list[int]], list[list[int]] | None, Ints, npt.NDArray[np.bool_]]:
        """Return tokens and segments of each pair, its choice's tokens, and whether it was cut."""
        tokens: list[list[int]] = []
        types: list[list[int]] = []
        own = np.zeros(len(pairs), dtype=np.int64)
        cut = np.zeros(len(pairs), dtype=np.bool_)
        for start in range(0, len(pairs), _PAIRS_AT_A_TIME):
            questions, choices = zip(*pairs[start : start + _PAIRS_AT_A_TIME], strict=True)
            encoding = self._tokenizer(
                list(questions),
                list(choices),
                truncation=False,
                return_token_type_ids=self._takes_types,
                return_attention_mask=False,
                verbose=False,
            )
            for row, ids in enumerate(encoding["input_ids"]):
                at = start + row
                own[at] = encoding.sequence_ids(row).count(1)
                kept = None
                if len(ids) > self._limit:
                    kept = self._kept(encoding.sequence_ids(row), items[first_item[at]])
                    cut[at] = True
                tokens.append(_picked(ids, kept))
                if self._takes_types:
                    types.append(_picked(encoding["token_type_ids"][row], kept))
        return tokens, types if self._takes_types else None, own, cut

    def _kept(self, parts: list[int | None], item: Item) -> list[int]:
        """Say which tokens of an over-long pair stay: all but the first ones of the question."""
        excess = len(parts) - self._limit
        question = [position for position, part in enumerate(parts) if part == 0]
        if excess >= len(question):
            raise UsageError(
                f"item {item.id}: a choice of {parts.count(1):,} tokens leaves no room for its "
                f"question; this model reads {self._limit:,} tokens. Leave the item out, or use "
                "a model that reads more."
            )
        dropped = set(question[:excess])
        return [position for position in range(len(parts)) if position not in dropped]


def _picked(values: list[int], kept: list[int] | None) -> list[int]:
    return values if kept is None else [values[position] for position in kept]


def _flat(sequences: list[list[int]], count: int) -> Tokens:
    return np.fromiter(chain.from_iterable(sequences), dtype=np.int32, count=int(count))
