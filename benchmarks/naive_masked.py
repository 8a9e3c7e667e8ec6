"""Reference masked-LM scores, written for clarity: one forward pass per choice or per piece.

The fast scorer must agree with these scores, and its speed is compared with this code. Nothing is
shared, batched or truncated: every filled-in sentence is tokenized as a whole, and the whole
vocabulary is computed at every position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from evaluation.items.types import Item
from kbprobe.format.setups import MASK

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


@dataclass(frozen=True)
class Sentence:
    """A tokenized sentence, with the positions of the choice's pieces.

    Attributes:
        ids: token ids, special tokens included.
        pieces: positions of the choice's pieces.
        words: the word index of every token, by the tokenizer's pre-tokenizer.
    """

    ids: list[int]
    pieces: list[int]
    words: list[int | None]


def fill_in(item: Item, choice: str, tokenizer: PreTrainedTokenizerFast) -> Sentence:
    """Fill a choice into the gap and tokenize the sentence."""
    if item.setup == "mc_mlm":
        left, right = item.question.split(MASK)
    else:
        left, right = item.question + " ", ""
    choice = choice.strip()
    text = left + choice + right
    encoding = tokenizer(text, return_offsets_mapping=True)
    spans, words = encoding["offset_mapping"], encoding.word_ids()
    wanted = set(range(len(left), len(left) + len(choice)))
    pieces = [at for at, span in enumerate(spans) if wanted & set(range(*span))]
    # SentencePiece and byte-level BPE may split off the space before a word; it is a piece of the
    # word.
    before = pieces[0] - 1
    if words[before] == words[pieces[0]] and text[slice(*spans[before])].strip() == "":
        pieces.insert(0, before)
    return Sentence(encoding["input_ids"], pieces, words)


@torch.inference_mode()
def piece_logits(
    sentence: Sentence, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> list[torch.Tensor]:
    """Mask each piece, with the pieces to its right in its word, and run the model on each.

    Returns:
        For each piece, the logits over the vocabulary at its position, shape [vocabulary].
    """
    found = []
    for piece in sentence.pieces:
        ids = list(sentence.ids)
        for other in sentence.pieces:
            if other >= piece and sentence.words[other] == sentence.words[piece]:
                ids[other] = tokenizer.mask_token_id
        logits = model(input_ids=torch.tensor([ids], device=model.device)).logits
        found.append(logits[0, piece].float())
    return found


def score(
    items: Sequence[Item],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    log_probs: bool,
) -> list[list[float]]:
    """Score every choice of every item: a sum of logits, or of log-probabilities, of its pieces."""
    scores = []
    for item in items:
        scores.append([0.0] * len(item.choices))
        for number, choice in enumerate(item.choices):
            sentence = fill_in(item, choice, tokenizer)
            logits = piece_logits(sentence, model, tokenizer)
            for piece, at_piece in zip(sentence.pieces, logits, strict=True):
                values = at_piece.log_softmax(-1) if log_probs else at_piece
                scores[-1][number] += values[sentence.ids[piece]].item()
    return scores
