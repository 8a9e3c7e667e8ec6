"""One batch through a causal model: log-probabilities of the asked tokens, and of no others.

What a model can do is found out by doing it once (:func:`supports_packing`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from evaluation.scorers.batching import out_of_memory
from evaluation.scorers.causal.layout import Batch, CausalEncoded, LayoutBuilder, cut_out
from evaluation.scorers.causal.packing import grow_trees
from evaluation.scorers.causal.prompts import Rendered
from kbprobe.arrays import Floats, Ints, ragged_ranges
from kbprobe.errors import KbprobeError, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from evaluation.scorers.causal.pair_tokens import PairTokenizer

_NORMALIZED_AT_ONCE = 128
"""Predictions whose whole vocabulary is held in float32 at a time."""
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


def score_sequences(model: PreTrainedModel, encoded: CausalEncoded, sequences: Ints) -> Floats:
    """Run some sequences as one batch, or two if some are packed and some are not.

    Returns:
        The weighted log-likelihood (nats) of each of their slots, sequence after sequence.
    """
    counts, _ = encoded.slots(sequences)
    offsets = np.cumsum(counts) - counts
    scores = np.empty(int(counts.sum()))
    branched = encoded.branched[sequences]
    # CUDA's attention kernels copy a mask whose rows are not aligned, in every layer.
    multiple = 8 if model.device.type == "cuda" else 1
    for part in (np.flatnonzero(branched), np.flatnonzero(~branched)):
        if len(part):
            batch = cut_out(encoded, sequences[part], multiple=multiple)
            scores[ragged_ranges(offsets[part], counts[part])] = _slot_scores(model, batch)
    return scores


def supports_packing(model: PreTrainedModel, pairs: PairTokenizer, window: int) -> bool:
    """Score a fixed text alone, padded and packed into ``window`` tokens, and compare.

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

    def scored(limit: int, at_once: int) -> tuple[Floats, bool]:
        """Return the score of each continuation, and whether any of them were packed."""
        builder = LayoutBuilder()
        for tree in grow_trees(context, continuations, limit=limit):
            builder.add(tree, 0, continuations, [[number] for number in range(len(tokens))], 1.0)
        encoded = builder.build(tokens, {}, {})
        rows, scores = np.arange(len(encoded.lengths)), np.empty(len(tokens))
        scores[encoded.slot_choice] = np.concatenate(
            [
                score_sequences(model, encoded, rows[start : start + at_once])
                for start in range(0, len(rows), at_once)
            ]
        )
        return scores, bool(encoded.branched.any())

    alone, _ = scored(limit=0, at_once=1)
    if not np.isfinite(alone).all():
        raise KbprobeError(
            f"the model gives scores that are not finite in {model.dtype}. Use --dtype bfloat16 "
            "or --dtype float32."
        )
    padded, _ = scored(limit=0, at_once=len(tokens))
    if not (np.abs(padded - alone) <= _GROSS * allowed).all():
        raise UsageError(
            f"{type(model).__name__} is not causal: what follows a token changes its score. If it "
            "is a masked language model, score it as one."
        )
    try:
        together, packed = scored(limit=window, at_once=len(tokens))
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        # That is how models say that they take no positions, or no mask of four dimensions.
        if out_of_memory(error):
            raise
        return False
    return packed and bool((np.abs(together - alone) <= allowed).all())


@torch.inference_mode()
def _slot_scores(model: PreTrainedModel, batch: Batch) -> Floats:
    device = model.device
    inputs: dict[str, Any] = {"input_ids": torch.from_numpy(batch.tokens).to(device)}
    if batch.branched:
        inputs["position_ids"] = torch.from_numpy(batch.positions).to(device)
        inputs["attention_mask"] = _tree_mask(batch.ends, model)
    # Ordinary sequences padded on the right need no mask, since nothing sees what follows it;
    # without one, attention takes its fastest kernel.
    logits = _logits_after(model, inputs, torch.from_numpy(batch.rows).to(device))
    cells = _cells(logits, batch).cpu().numpy().astype(np.float64)
    scores: Floats = np.add.reduceat(cells, batch.slot_cells) * batch.slot_weight
    return scores


def _cells(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return the log-probability of each cell's target, in float32, shape [cells]."""
    order = np.argsort(batch.cell_row, kind="stable")
    cell_row = batch.cell_row[order]
    rows = torch.from_numpy(cell_row).to(logits.device)
    targets = torch.from_numpy(batch.cell_target[order]).to(logits.device)
    parts = []
    for start in range(0, len(logits), _NORMALIZED_AT_ONCE):
        stop = start + _NORMALIZED_AT_ONCE
        here = slice(*np.searchsorted(cell_row, [start, stop]))
        log_probs = torch.log_softmax(logits[start:stop], dim=-1, dtype=torch.float32)
        parts.append(log_probs[rows[here] - start, targets[here]])
    cells = torch.empty(len(order), device=logits.device)
    cells[torch.from_numpy(order).to(logits.device)] = torch.cat(parts)
    return cells


def _tree_mask(ends: Ints, model: PreTrainedModel) -> torch.Tensor:
    """Return the additive mask of packed sequences, shape [sequences, 1, length, length].

    Additive and in the model's dtype, which every attention implementation takes as it is; a
    boolean one would be converted again in each layer.
    """
    end = torch.from_numpy(ends).to(model.device)[:, None, None, :]
    place = torch.arange(ends.shape[1], device=model.device)
    seeing, seen = place[:, None], place[None, :]
    hidden = (seen > seeing) | (seeing >= end)
    mask = torch.zeros(hidden.shape, dtype=model.dtype, device=model.device)
    return mask.masked_fill_(hidden, float("-inf"))


def _logits_after(
    model: PreTrainedModel, inputs: dict[str, Any], rows: torch.Tensor
) -> torch.Tensor:
    """Return the logits after some tokens of the flattened batch, shape [rows, vocabulary]."""
    head = model.get_output_embeddings()
    if head is None:
        logits: torch.Tensor = model(**inputs, use_cache=False).logits
        return logits.flatten(0, -2)[rows]
    with _only(head, rows) as shapes:
        logits = model(**inputs, use_cache=False).logits.flatten(0, -2)
    # A model may project with the head's weights without calling it.
    return logits if shapes and len(logits) == len(rows) else logits[rows]


@contextmanager
def _only(head: torch.nn.Module, rows: torch.Tensor) -> Iterator[list[torch.Size]]:
    """Let a head see some tokens only; what the model does to logits afterwards still happens."""
    shapes: list[torch.Size] = []

    def keep(module: torch.nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden = args[0]
        shapes.append(hidden.shape)
        return (hidden.flatten(0, -2)[rows.to(hidden.device)].unsqueeze(0), *args[1:])

    handle = head.register_forward_pre_hook(keep)
    try:
        yield shapes
    finally:
        handle.remove()
