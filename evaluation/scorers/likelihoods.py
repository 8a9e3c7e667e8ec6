"""Log-probabilities of requested tokens, computed only at their positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from kbprobe.arrays import Ints

if TYPE_CHECKING:
    from transformers import PreTrainedModel

TOLERANCES = {
    torch.float64: 5e-5,
    torch.float32: 5e-5,
    torch.float16: 0.02,
    torch.bfloat16: 0.06,
}
"""Nats per token by which two ways of computing a score may differ, by dtype of the weights.

Measured on a causal model of 135 million parameters: 4e-6, 0.002 and 0.02 between plain and
packed; 0.13 with wrong positions, and 1.7 without the mask.
"""

GROSS = 10
"""Multiple of the tolerance beyond which a model is taken to be of a different kind."""

_NORMALIZED_AT_ONCE = 128
"""Number of predictions for which the whole vocabulary is held in float32 at a time."""


def target_log_probs(logits: torch.Tensor, rows: Ints, targets: Ints) -> torch.Tensor:
    """Return the log-probability of some tokens, in float32, shape [n], on the logits' device.

    Args:
        logits: shape [rows, vocabulary].
        rows: the row that predicts each token, shape [n].
        targets: the tokens, shape [n].
    """
    order = np.argsort(rows, kind="stable")
    sorted_rows = rows[order]
    at = torch.from_numpy(sorted_rows).to(logits.device)
    asked = torch.from_numpy(targets[order]).to(logits.device)
    parts = []
    for start in range(0, len(logits), _NORMALIZED_AT_ONCE):
        stop = start + _NORMALIZED_AT_ONCE
        here = slice(*np.searchsorted(sorted_rows, [start, stop]))
        log_probs = torch.log_softmax(logits[start:stop], dim=-1, dtype=torch.float32)
        parts.append(log_probs[at[here] - start, asked[here]])
    found = torch.empty(len(order), device=logits.device)
    found[torch.from_numpy(order).to(logits.device)] = torch.cat(parts)
    return found


def logits_at(
    model: PreTrainedModel, inputs: Mapping[str, Any], rows: torch.Tensor
) -> tuple[torch.Tensor, Any]:
    """Run a model, and map only some of its positions to the vocabulary.

    Args:
        model: with a language-model head.
        inputs: what the model takes.
        rows: the positions, as indices into the flattened batch, shape [n].

    Returns:
        The logits, shape [n, vocabulary], and the model's output, whose own ``logits`` may be
        those of some positions only.
    """
    head = model.get_output_embeddings()
    if head is None or isinstance(head, torch.nn.Embedding):  # FSMT names its embeddings.
        output = model(**inputs)
        return output.logits.flatten(0, -2)[rows], output
    written = inputs["decoder_input_ids" if "decoder_input_ids" in inputs else "input_ids"]
    with _only(head, rows, written.numel()) as shapes:
        output = model(**inputs)
    logits = output.logits.flatten(0, -2)
    # A model may project with the head's weights without calling it.
    return (logits if shapes and len(logits) == len(rows) else logits[rows]), output


@contextmanager
def _only(head: torch.nn.Module, rows: torch.Tensor, positions: int) -> Iterator[list[torch.Size]]:
    """Make a head see only some tokens; what the model does to logits afterwards is unchanged.

    A head that is applied to positions other than those of the input sees all of them:
    ProphetNet's also predicts the tokens after the next.
    """
    shapes: list[torch.Size] = []

    def keep(module: torch.nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden = args[0]
        if hidden.shape[:-1].numel() != positions:
            return args
        shapes.append(hidden.shape)
        return (hidden.flatten(0, -2)[rows.to(hidden.device)].unsqueeze(0), *args[1:])

    handle = head.register_forward_pre_hook(keep)
    try:
        yield shapes
    finally:
        handle.remove()
