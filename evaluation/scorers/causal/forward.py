"""Runs a batch through a causal model: log-probabilities of the requested tokens only.

What a model supports is tested once (:func:`sharing_of`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from evaluation.models.loading import refuse_unembedded
from evaluation.scorers.batching import out_of_memory
from evaluation.scorers.causal.forked import forked_cells
from evaluation.scorers.causal.layout import (
    Batch,
    CausalEncoded,
    LayoutBuilder,
    cut_out,
    grow_trees,
)
from evaluation.scorers.causal.prompts import Rendered
from evaluation.scorers.likelihoods import GROSS, TOLERANCES, logits_at, target_log_probs
from kbprobe.arrays import Floats, Ints, ragged_ranges, run_starts
from kbprobe.checkpoint_files import first_line
from kbprobe.errors import KbprobeError, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from evaluation.scorers.causal.layout import PairTokenizer

_TEXT = Rendered(
    "The capital of a country is the city where its government meets, and so",
    (
        " a city by the sea is the capital of a country whose government meets by the sea",
        " many people of the country know its name",
        " a city by the river is not the capital of a country",
        " it is",
    ),
)


def score_sequences(model: PreTrainedModel, encoded: CausalEncoded, sequences: Ints) -> Floats:
    """Run some sequences as one batch, or two if some are packed and some are not.

    Returns:
        The weighted log-likelihood (nats) of each of their slots, sequence after sequence.
    """
    return encoded.summed(sequences, cell_log_probs(model, encoded, sequences))


def cell_log_probs(
    model: PreTrainedModel,
    encoded: CausalEncoded,
    sequences: Ints,
    read: Callable[[torch.Tensor, Ints, Ints], torch.Tensor] = target_log_probs,
) -> Floats:
    """Run some sequences, as `score_sequences` does.

    Returns:
        The log-probability (nats) of each requested token, slot after slot, or what ``read``
        returns for the logits, the row that predicts each token, and the tokens.
    """
    counts, _ = encoded.slots(sequences)
    _, of_slot, _ = encoded.cells(sequences)
    of_sequence = np.add.reduceat(of_slot, run_starts(counts)[:-1])
    starts = run_starts(of_sequence)
    cells = np.empty(int(starts[-1]))
    branched = encoded.branched[sequences]
    # CUDA's attention kernels copy a mask whose rows are not aligned, in every layer.
    multiple = 8 if model.device.type == "cuda" else 1
    for part in (np.flatnonzero(branched), np.flatnonzero(~branched)):
        if len(part):
            own = sequences[part]
            cells[ragged_ranges(starts[part], of_sequence[part])] = (
                forked_cells(model, encoded, own, read)
                if encoded.forked and branched[part[0]]
                else _cells(model, cut_out(encoded, own, multiple=multiple), read)
            )
    return cells


class Sharing(Enum):
    """How the choices of a question share its reading."""

    MASK = auto()
    """They stand in one sequence, hidden from each other."""
    STATE = auto()
    """Each goes on from a copy of the model's state after the question."""
    NONE = auto()
    """They do not: it is read again for each."""


def sharing_of(model: PreTrainedModel, pairs: PairTokenizer, window: int) -> Sharing:
    """Compare scores of a fixed text alone, padded, packed into ``window`` tokens, and forked.

    Returns:
        The first way of sharing whose scores equal plain ones: by mask, if the model uses the
        positions and the mask that it is given; by state, if its cache can be copied.

    Raises:
        UsageError: padding on the right changes scores, so the model is not causal; or its
            configuration says that it reads texts in both directions.
        KbprobeError: its scores are not finite, or it cannot run here.
    """
    if getattr(model.config, "attn_type", None) == "bi":
        # XLNet's layers need a permutation: without one, each token sees itself.
        raise UsageError(
            f"{type(model).__name__} is a permutation language model: it sees every word of a "
            "text, the predicted one too, and gives no log-likelihood of what follows a question. "
            "Give a causal or masked LM, or fine-tune this one for multiple choice with --train N."
        )
    [(context, continuations)] = pairs.encode([_TEXT])
    refuse_unembedded(model, pairs.texts.tokenizer, [context, *continuations])
    room = max(2, window // (len(continuations) + 1))
    context, continuations = context[:room], [tokens[:room] for tokens in continuations]
    tokens = np.array([len(continuation) for continuation in continuations])
    coarse = TOLERANCES[torch.bfloat16]
    allowed = TOLERANCES.get(model.dtype, coarse) * tokens
    # Quantized layers may also round their inputs, depending on the rest of the batch.
    rounding = coarse * tokens if getattr(model, "is_quantized", False) else allowed

    def scored(limit: int, at_once: int, forked: bool = False) -> tuple[Floats, bool]:
        """Return the score of each continuation, and whether any of them shared the context."""
        builder = LayoutBuilder()
        for tree in grow_trees(context, continuations, limit=limit):
            builder.add(tree, 0, continuations, [[number] for number in range(len(tokens))], 1.0)
        encoded = builder.build(tokens, {}, {}, forked=forked)
        rows, scores = np.arange(len(encoded.lengths)), np.empty(len(tokens))
        scores[encoded.slot_choice] = np.concatenate(
            [
                score_sequences(model, encoded, rows[start : start + at_once])
                for start in range(0, len(rows), at_once)
            ]
        )
        return scores, bool(encoded.branched.any())

    try:
        alone, _ = scored(limit=0, at_once=1)
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        if out_of_memory(error):
            raise
        raise KbprobeError(
            f"{type(model).__name__} cannot read a text on {model.device.type} in {model.dtype}: "
            f"{first_line(error)}. Try another --dtype or --device; if it is quantized, name the "
            "checkpoint that was quantized."
        ) from error
    if not np.isfinite(alone).all():
        raise KbprobeError(
            f"the model gives scores that are not finite in {model.dtype}. Use --dtype bfloat16 "
            "or --dtype float32."
        )
    padded, _ = scored(limit=0, at_once=len(tokens))
    if not (np.abs(padded - alone) <= GROSS * rounding).all():
        raise UsageError(
            f"{type(model).__name__} is not causal: what follows a token changes its score. If it "
            "is a masked language model, score it as one."
        )
    for sharing in (Sharing.MASK, Sharing.STATE):
        try:
            together, shared = scored(window, len(tokens), forked=sharing is Sharing.STATE)
        except (TypeError, ValueError, IndexError, RuntimeError, AttributeError) as error:
            # Raised by models that take no positions, no four-dimensional mask, or no cache.
            if out_of_memory(error):
                raise
            continue
        if shared and bool((np.abs(together - alone) <= allowed).all()):
            return sharing
    return Sharing.NONE


@torch.inference_mode()
def _cells(
    model: PreTrainedModel,
    batch: Batch,
    read: Callable[[torch.Tensor, Ints, Ints], torch.Tensor],
) -> Floats:
    """Return the result of ``read`` for each cell of a batch."""
    device = model.device
    tokens = torch.from_numpy(batch.tokens).to(device)
    inputs: dict[str, Any] = {"input_ids": tokens, "use_cache": False}
    if batch.branched:
        inputs["position_ids"] = torch.from_numpy(batch.positions).to(device)
        inputs["attention_mask"] = _tree_mask(batch.ends, model)
    # Ordinary sequences padded on the right need no mask, since no token sees those after it;
    # without one, attention uses its fastest kernel.
    logits, _ = logits_at(model, inputs, torch.from_numpy(batch.rows).to(device))
    values = read(logits, batch.cell_row, batch.cell_target)
    cells: Floats = values.cpu().numpy().astype(np.float64)
    return cells


def _tree_mask(ends: Ints, model: PreTrainedModel) -> torch.Tensor:
    """Return the additive mask of packed sequences, shape [sequences, 1, length, length].

    It is additive and in the model's dtype, which every attention implementation uses as it is; a
    boolean mask would be converted again in each layer.
    """
    end = torch.from_numpy(ends).to(model.device)[:, None, None, :]
    place = torch.arange(ends.shape[1], device=model.device)
    seeing, seen = place[:, None], place[None, :]
    hidden = (seen > seeing) | (seeing >= end)
    mask = torch.zeros(hidden.shape, dtype=model.dtype, device=model.device)
    return mask.masked_fill_(hidden, float("-inf"))
