"""Multiple-choice models: each choice is read with its question, and a head scores the pair.

"[CLS] question [SEP] choice [SEP]" for each choice, in whatever form the model's own tokenizer
gives a pair; one linear unit makes the first token's vector (or what the architecture pools) a
number; the highest wins. This is MC-QA of Talmor et al. 2020 (oLMpics) and the models of
Richardson and Sabharwal 2020 (WordNetQA).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from evaluation.items.types import Item, choice_starts
from evaluation.models.loading import require_fast
from evaluation.scorers.base import Scorer, aside
from evaluation.scorers.encoder import EncodedTexts, EncoderRunner, Inputs, Tokenized
from evaluation.scorers.readable import SpecialTexts, unknown_candidate, unknown_token
from kbprobe.arrays import Floats, Ints
from kbprobe.errors import UsageError
from kbprobe.format.setups import MASK

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


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

    score_kind = "logit"  # comparable within an item only

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

    def encode(self, items: Sequence[Item]) -> EncodedTexts:
        """Tokenize each distinct pair of question and choice, in the order of the items.

        ``choice_tokens`` counts the choices' own tokens.

        Raises:
            UsageError: an item has a mask and the model has none.
        """
        item_of = np.repeat(np.arange(len(items)), np.diff(choice_starts(items)))
        keys = [(item.setup, item.question, text) for item in items for text in item.choices]
        number_of = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        pair_of = np.array([number_of[key] for key in keys], dtype=np.int64)
        first = item_of[np.unique(pair_of, return_index=True)[1]].tolist()
        read, own, crowded, unknown = self._tokenized(
            [
                (self._question(items[at]), text)
                for at, (_, _, text) in zip(first, number_of, strict=True)
            ]
        )

        def choices_of(pairs: Iterable[int]) -> list[int]:
            found: list[int] = np.flatnonzero(np.isin(pair_of, list(pairs))).tolist()
            return found

        set_aside = {
            int(item_of[at]): aside(
                "a choice that leaves no room for its question",
                f"{own[pair_of[at]]:,} tokens; this model reads {self._runner.limit:,}",
            )
            for at in choices_of(crowded)
        }
        set_aside |= {
            int(item_of[at]): unknown[int(pair_of[at])] for at in reversed(choices_of(unknown))
        }
        set_aside |= self._special.obstacles(items)
        cut = set(item_of[choices_of(read.cut)].tolist()) - set(set_aside)
        return EncodedTexts.shared(
            read,
            pair_of,
            item_of,
            choice_tokens=own[pair_of],
            set_aside=set_aside,
            notes={"truncated": len(cut)} if cut else {},
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

    def _tokenized(
        self, pairs: Sequence[tuple[str, str]]
    ) -> tuple[Tokenized, Ints, set[int], dict[int, str]]:
        """Tokenize pairs of a question and a choice.

        Returns:
            Their tokens; how many of them are the choice's, shape [pairs]; the pairs whose choice
            leaves no room for the question; and those whose choice contains the unknown token,
            with the reason in words.
        """
        ids, types, own = [], [], np.zeros(len(pairs), dtype=np.int64)
        cut, crowded, unknown = set(), set(), dict[int, str]()
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
            for at, tokens in enumerate(encoding["input_ids"], start):
                parts = encoding.sequence_ids(at - start)
                own[at] = parts.count(1)
                choice = [token for token, part in zip(tokens, parts, strict=True) if part == 1]
                if reason := unknown_candidate(choices[at - start], choice, self._unknown):
                    unknown[at] = reason
                segments = (
                    encoding["token_type_ids"][at - start] if self._runner.takes_types else ()
                )
                if len(tokens) > self._runner.limit:
                    cut.add(at)
                    kept, no_room = self._kept(parts)
                    crowded |= {at} if no_room else set()
                    tokens = [tokens[place] for place in kept]
                    segments = [segments[place] for place in kept] if segments else ()
                ids.append(array("i", tokens))
                types.append(array("i", segments))
        read = Tokenized.of(ids, types if self._runner.takes_types else None, cut)
        self._runner.refuse_unembedded(read)
        return read, own, crowded, unknown

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
