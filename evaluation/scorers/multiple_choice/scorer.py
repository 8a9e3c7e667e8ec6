"""Multiple-choice models: each choice is read with its question, and a head scores the pair.

"[CLS] question [SEP] choice [SEP]" for each choice, in whatever form the model's own tokenizer
gives a pair; one linear unit makes the first token's vector (or what the architecture pools) a
number; the highest wins. This is MC-QA of Talmor et al. 2020 (oLMpics) and the models of
Richardson and Sabharwal 2020 (WordNetQA).
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from evaluation.items.types import MASK, Item, choice_starts
from evaluation.models.loading import require_fast
from evaluation.scorers.base import Scorer, Tokens, aside
from evaluation.scorers.encoder import EncodedTexts, EncoderRunner, Inputs
from evaluation.scorers.readable import SpecialTexts, unknown_candidate, unknown_token
from kbprobe.arrays import Bools, Floats, Ints, run_starts
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True)
class Pairs:
    """The distinct pairs of some items, in the order of the items.

    Items that share a question and a choice share the pair.

    Attributes:
        of_choice: the pair of each choice of each item, shape [choices].
        item: the first item that each pair belongs to, shape [pairs].
        choices: the text of each pair's choice.
    """

    of_choice: Ints
    item: Ints
    choices: list[str]

    @classmethod
    def of(cls, items: Sequence[Item]) -> Pairs:
        """Return the pairs of some items."""
        item_of_choice = np.repeat(np.arange(len(items)), np.diff(choice_starts(items)))
        keys = [(item.setup, item.question, text) for item in items for text in item.choices]
        number_of = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        of_choice = np.array([number_of[key] for key in keys], dtype=np.int64)
        _, first = np.unique(of_choice, return_index=True)
        return cls(of_choice, item_of_choice[first], [text for _, _, text in number_of])

    @property
    def slot_starts(self) -> Ints:
        """The start of each pair's slots (:class:`evaluation.scorers.base.Encoded`)."""
        return run_starts(np.bincount(self.of_choice, minlength=len(self.choices)))

    @property
    def slot_choice(self) -> Ints:
        """The choice of each slot."""
        return np.argsort(self.of_choice, kind="stable")


_PAIRS_AT_A_TIME = 8192


class MultipleChoiceScorer(Scorer):
    """Scores choices with the head of an ``AutoModelForMultipleChoice``.

    In ``mc_mlm`` items the mask stays in the question, as the model's own mask token: the model
    reads a sentence with a gap and a candidate to fill it. Items that share a question and a
    choice share the sequence.

    A pair that is too long loses tokens at the start of the question, and its item is counted in
    the notes as ``truncated``; the choice is never cut. Items with a choice that leaves no room for
    its question, and those of :mod:`evaluation.scorers.readable`, are set aside.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        """Set the loaded model, on its device and in any dtype, and its fast tokenizer.

        Raises:
            UsageError: the tokenizer is a slow one.
        """
        require_fast(tokenizer, "the scorer of multiple-choice models")
        self.model = model.eval()
        self._tokenizer = tokenizer
        self._runner = EncoderRunner(model, tokenizer)
        self._special, self._unknown = SpecialTexts(tokenizer), unknown_token(tokenizer)

    @property
    def device(self) -> torch.device:
        """The model's device."""
        device: torch.device = self.model.device
        return device

    def encode(self, items: Sequence[Item]) -> EncodedTexts:
        """Tokenize each distinct pair of question and choice, in the order of the items.

        ``choice_tokens`` counts the choices' own tokens.

        Raises:
            UsageError: an item has a mask and the model has none.
        """
        found = Pairs.of(items)
        pairs = [
            (self._question(items[at]), text)
            for at, text in zip(found.item.tolist(), found.choices, strict=True)
        ]
        read = self._tokenized(pairs)
        own, pair_of = read.choice_tokens, found.of_choice
        item_of_choice = np.repeat(np.arange(len(items)), np.diff(choice_starts(items)))
        set_aside = {
            int(item_of_choice[at]): aside(
                "a choice that leaves no room for its question",
                f"{own[pair_of[at]]:,} tokens; this model reads {self._runner.limit:,}",
            )
            for at in np.flatnonzero(read.crowded[pair_of]).tolist()
        }
        set_aside |= {
            int(item_of_choice[at]): read.unknown[int(pair_of[at])]
            for at in np.flatnonzero(np.isin(pair_of, list(read.unknown)))[::-1].tolist()
        }
        set_aside |= self._special.obstacles(items)
        cut = set(item_of_choice[read.cut[pair_of]].tolist()) - set(set_aside)
        return EncodedTexts(
            lengths=read.lengths,
            item=found.item,
            slot_starts=found.slot_starts,
            slot_choice=found.slot_choice,
            choice_tokens=own[pair_of],
            set_aside=set_aside,
            notes={"truncated": len(cut)} if cut else {},
            tokens=read.tokens,
            token_types=read.types,
            token_starts=run_starts(read.lengths),
        )

    @torch.inference_mode()
    def score(self, encoded: Any, sequences: Ints) -> Floats:
        """Run some pairs as one batch; the number of a slot is its pair's logit.

        Returns:
            Shape [slots of these sequences].
        """
        logits = self.logits(encoded, sequences).cpu().numpy().astype(np.float64)
        return np.repeat(logits, encoded.slots(sequences)[0])

    def logits(self, encoded: EncodedTexts, sequences: Ints) -> torch.Tensor:
        """Return the logit of each pair: float32, shape [n], on the model's device.

        Each pair is passed as a question with one choice: the head is applied to each choice
        alone, so pairs of different questions can share a batch.
        """
        return self._runner.run(encoded, sequences, self._forward)

    def slot_logits(self, encoded: EncodedTexts, slots: Ints) -> torch.Tensor:
        """Return the logit of each of some slots: float32, shape [n], differentiable."""
        return self.logits(encoded, encoded.sequence_of(slots))

    def score_name(self, items: Sequence[Item]) -> str:
        """Return ``logit``: comparable within an item only."""
        return "logit"

    def _forward(self, inputs: Inputs) -> torch.Tensor:
        tensors = {name: tensor.unsqueeze(1) for name, tensor in inputs.items()}
        logits: torch.Tensor = self.model(**tensors).logits
        return logits.float().squeeze(1)

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

    def _tokenized(self, pairs: Sequence[tuple[str, str]]) -> _Read:
        tokens, types, lengths = array("i"), array("i"), np.zeros(len(pairs), dtype=np.int64)
        own, cut = np.zeros_like(lengths), np.zeros(len(pairs), dtype=np.bool_)
        unknown: dict[int, str] = {}
        crowded = np.zeros_like(cut)
        for start in range(0, len(pairs), _PAIRS_AT_A_TIME):
            questions, choices = zip(*pairs[start : start + _PAIRS_AT_A_TIME], strict=True)
            encoding = self._tokenizer(
                list(questions),
                list(choices),
                truncation=False,
                return_token_type_ids=self._runner.takes_types,
                return_attention_mask=False,
                verbose=False,
            )
            for row, ids in enumerate(encoding["input_ids"]):
                at, parts = start + row, encoding.sequence_ids(row)
                own[at], cut[at] = parts.count(1), len(ids) > self._runner.limit
                choice = [token for token, part in zip(ids, parts, strict=True) if part == 1]
                if reason := unknown_candidate(choices[row], choice, self._unknown):
                    unknown[at] = reason
                kept: Sequence[int] = range(len(ids))
                if cut[at]:
                    kept, crowded[at] = self._kept(parts)
                lengths[at] = len(kept)
                tokens.extend(ids[place] for place in kept)
                if self._runner.takes_types:
                    segments = encoding["token_type_ids"][row]
                    types.extend(segments[place] for place in kept)
        segments_of = np.array(types, dtype=np.int32) if self._runner.takes_types else None
        return _Read(
            np.array(tokens, dtype=np.int32), segments_of, lengths, own, cut, crowded, unknown
        )

    def _kept(self, parts: Sequence[int | None]) -> tuple[Sequence[int], bool]:
        """Return the tokens kept of a pair that is too long: all but the first of the question.

        If nothing of the question would be left, the first tokens that fit are returned, and that
        the pair is not to be scored.
        """
        excess = len(parts) - self._runner.limit
        question = [position for position, part in enumerate(parts) if part == 0]
        if excess >= len(question):
            return range(self._runner.limit), True
        dropped = set(question[:excess])
        return [position for position in range(len(parts)) if position not in dropped], False


class _Read(NamedTuple):
    """Pairs as tokens.

    Attributes:
        tokens, types: those of all pairs, one after another; types None if the model takes none.
        lengths: the number of tokens of each pair.
        choice_tokens: the number of tokens of each pair's choice.
        cut: whether the pair was too long.
        crowded: whether its choice leaves no room for the question.
        unknown: the pairs whose choice contains the unknown token, with the reason in words.
    """

    tokens: Tokens
    types: Tokens | None
    lengths: Ints
    choice_tokens: Ints
    cut: Bools
    crowded: Bools
    unknown: Mapping[int, str]
