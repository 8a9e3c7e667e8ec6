"""Reference implementation: multiple-choice scores as in the model's documentation.

One item at a time: all its pairs in one call of the tokenizer, padded, ``input_ids`` of shape
[1, choices, tokens], the model's logits. No sharing, no sorting, no batching over items.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch

from evaluation.items.types import Item
from kbprobe.format.setups import MASK

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def naive_scores(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, items: Iterable[Item]
) -> list[list[float]]:
    """Return the logit of each choice of each item."""
    model.eval()
    segments = "token_type_ids" in inspect.signature(model.forward).parameters
    scores = []
    for item in items:
        question = item.question
        if item.setup == "mc_mlm":
            question = question.replace(MASK, tokenizer.mask_token)
        inputs = tokenizer(
            [question] * len(item.choices),
            list(item.choices),
            padding=True,
            return_token_type_ids=segments,
            return_tensors="pt",
        )
        inputs = {name: tensor.unsqueeze(0) for name, tensor in inputs.items()}
        with torch.no_grad():
            logits = model(**inputs).logits
        scores.append(logits[0].tolist())
    return scores
