"""Runs questions once, and copies their state for each choice.

State-space, recurrent and ALiBi layers cannot be told by positions and a mask which tokens of a
sequence to overlook, so that choices cannot share it. But what such a model has read is in its
cache: a question is read once, its cache is copied for every choice, and the choices are read a
token at a time, as in generation. Choices that begin alike share these tokens too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from evaluation.scorers.causal.layout import CausalEncoded
from evaluation.scorers.likelihoods import logits_at
from kbprobe.arrays import Floats, Ints, ragged_ranges, run_starts

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LEAST_TOKENS = {"cpu": 16}
_ELSEWHERE = 128
"""Lengths from which copying is worth while; a GPU runs many short sequences at once."""

_CACHES = ("past_key_values", "cache_params")


def is_worth_forking(tokens: int, device: torch.device) -> bool:
    """Return whether to copy the state after a question of some tokens, or to read it again."""
    return tokens >= LEAST_TOKENS.get(device.type, _ELSEWHERE)


@torch.inference_mode()
def forked_cells(
    model: PreTrainedModel,
    encoded: CausalEncoded,
    sequences: Ints,
    read: Callable[[torch.Tensor, Ints, Ints], torch.Tensor],
) -> Floats:
    """Return what ``read`` returns for each cell of some branched sequences.

    Args:
        model: one that returns its cache.
        encoded: sequences, whose tokens are a question's and then those of its choices.
        sequences: their numbers, shape [n].
        read: given the logits, the row that predicts each token, and the tokens.
    """
    lengths = encoded.lengths[sequences]
    nodes = ragged_ranges(encoded.token_starts[sequences], lengths)
    starts = run_starts(lengths)
    place = np.arange(len(nodes)) - np.repeat(starts[:-1], lengths)
    depth = encoded.positions[nodes].astype(np.int64)
    # The trunk is what all choices follow: the question, and tokens with which all begin.
    trunk = (depth == place) & (encoded.ends[nodes] == np.repeat(lengths, lengths))
    roots = np.add.reduceat(trunk, starts[:-1]).astype(np.int64)
    parents = _parents(depth, trunk)
    slots, _ = encoded.slots(sequences)
    _, counts, cells = encoded.cells(sequences)
    first = np.repeat(np.repeat(starts[:-1], slots), counts)
    after, targets = first + encoded.cell_after[cells], encoded.cell_target[cells]
    values = np.empty(len(cells))

    def fill(logits: torch.Tensor, of: Ints) -> None:
        """Read the cells that follow some nodes, given the logits after each of these, sorted."""
        here = np.flatnonzero(np.isin(after, of))
        rows = np.searchsorted(of, after[here])
        found = read(logits, rows, targets[here].astype(np.int64))
        values[here] = found.cpu().numpy().astype(np.float64)

    def run(tokens: Ints, of: Ints, at: Ints, **cache: Any) -> Any:
        """Run tokens; ``of`` are nodes to read, at places ``at`` of the flattened tokens."""
        inputs = {"input_ids": torch.from_numpy(tokens).to(model.device), "use_cache": True}
        rows = torch.from_numpy(at).to(model.device)
        logits, output = logits_at(model, {**inputs, **cache}, rows)
        if len(of):
            fill(logits, of)
        return output

    takes = inspect.signature(model.forward).parameters
    ids, asked = encoded.tokens[nodes].astype(np.int64), np.unique(after)
    for root in np.unique(roots):
        own = np.flatnonzero(roots == root)
        frontier = (starts[own][:, None] + np.arange(root)).ravel()
        wanted = np.isin(frontier, asked)
        tokens = ids[frontier].reshape(len(own), root)
        output = run(tokens, frontier[wanted], np.flatnonzero(wanted))
        name, cache = _cache_of(model, takes, output)
        frontier, level = starts[own] + root - 1, int(root)
        of_own = np.isin(np.repeat(np.arange(len(sequences)), lengths), own) & ~trunk
        while len(new := np.flatnonzero(of_own & (depth == level))):
            copied = np.searchsorted(frontier, parents[new])
            cache.reorder_cache(torch.from_numpy(copied).to(model.device))
            wanted = np.isin(new, asked)
            further = {name: cache}
            if "position_ids" in takes:
                further["position_ids"] = torch.full((len(new), 1), level, device=model.device)
            output = run(ids[new][:, None], new[wanted], np.flatnonzero(wanted), **further)
            cache, frontier, level = getattr(output, name), new, level + 1
    return values


def _parents(depth: Ints, trunk: Ints) -> Ints:
    """Return the node that each node follows; they are in depth-first order."""
    parents, last = np.full(len(depth), -1), dict[int, int]()
    for node, at in enumerate(depth.tolist()):
        if not trunk[node]:
            parents[node] = last[at - 1]
        last[at] = node
    return parents


def _cache_of(model: PreTrainedModel, takes: Collection[str], output: Any) -> tuple[str, Any]:
    """Return the name of a model's cache among what it takes, and the cache.

    Raises:
        TypeError: it has none that can be copied.
    """
    for name in _CACHES:
        cache = getattr(output, name, None)
        if name in takes and hasattr(cache, "reorder_cache"):
            return name, cache
    raise TypeError(f"{type(model).__name__} returns no cache that can be copied")
