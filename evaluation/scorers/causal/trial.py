"""What a causal model can do, found out by doing it once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from evaluation.scorers.batching import out_of_memory
from evaluation.scorers.causal.forward import score_sequences
from evaluation.scorers.causal.layout import CausalEncoded, LayoutBuilder
from evaluation.scorers.causal.packing import grow_trees
from evaluation.scorers.causal.prompts import Rendered
from kbprobe.arrays import Ints
from kbprobe.errors import KbprobeError, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from evaluation.scorers.base import Floats
    from evaluation.scorers.causal.pair_tokens import PairTokenizer

_TEXT = Rendered(
    "The capital of a country is the city where its government meets, and so",
    (
        " a city by the sea is the capital of a country whose government meets by the sea",
        " many people of the country know its name",
        " a city by the river is not the capital of a country",
        " it is",
    ),
)
_TOLERANCES = {
    torch.float64: 5e-5,
    torch.float32: 5e-5,
    torch.float16: 0.02,
    torch.bfloat16: 0.06,
}
"""Nats a token by which two ways of computing one score may differ.

Measured on a model of 135 million parameters: 4e-6, 0.002 and 0.02 between plain and packed;
0.13 with wrong positions, and 1.7 without the mask.
"""

_GROSS = 10
"""How many times the tolerance it takes to say that a model is not causal."""


def supports_packing(model: PreTrainedModel, pairs: PairTokenizer, window: int) -> bool:
    """Score a fixed text alone, padded and packed, and compare.

    Args:
        model: the model.
        pairs: its tokenizer.
        window: tokens that a packed sequence may hold.

    Returns:
        Whether packed scores equal plain ones, and so whether the model uses the positions
        and the mask that it is given.

    Raises:
        UsageError: padding on the right changes scores, so the model is not causal.
        KbprobeError: its scores are not finite.
    """
    [(context, continuations)] = pairs.encode([_TEXT])
    room = max(2, window // (len(continuations) + 1))
    context, continuations = context[:room], [tokens[:room] for tokens in continuations]
    tokens = np.array([len(continuation) for continuation in continuations])
    allowed = _TOLERANCES.get(model.dtype, _TOLERANCES[torch.bfloat16]) * tokens

    plain = _encode(context, continuations, limit=0)
    alone = _in_order(
        plain, [score_sequences(model, plain, np.array([row])) for row in _rows(plain)]
    )
    if not np.isfinite(alone).all():
        raise KbprobeError(
            f"the model gives scores that are not finite in {model.dtype}. Use --dtype bfloat16 "
            "or --dtype float32."
        )
    padded = _in_order(plain, [score_sequences(model, plain, _rows(plain))])
    if not (np.abs(padded - alone) <= _GROSS * allowed).all():
        raise UsageError(
            f"{type(model).__name__} is not causal: what follows a token changes its score. If it "
            "is a masked language model, score it as one."
        )
    packed = _encode(context, continuations, limit=window)
    try:
        together = _in_order(packed, [score_sequences(model, packed, _rows(packed))])
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        # That is how models say that they take no positions, or no mask of four dimensions.
        if out_of_memory(error):
            raise
        return False
    return bool(packed.branched.any() and (np.abs(together - alone) <= allowed).all())


def _encode(
    context: Sequence[int], continuations: Sequence[Sequence[int]], *, limit: int
) -> CausalEncoded:
    builder = LayoutBuilder()
    choices = [[number] for number in range(len(continuations))]
    for tree in grow_trees(context, continuations, limit=limit):
        builder.add(tree, 0, continuations, choices, 1.0)
    return builder.build(np.array([len(tokens) for tokens in continuations]), {}, {})


def _rows(encoded: CausalEncoded) -> Ints:
    return np.arange(len(encoded.lengths))


def _in_order(encoded: CausalEncoded, scores: Sequence[Floats]) -> Floats:
    ordered = np.empty(len(encoded.slot_choice))
    ordered[encoded.slot_choice] = np.concatenate(scores)
    return ordered
