"""Batches: cut by token budget after sorting by length, and halved when memory runs out.

Which sequences share a batch is a pure function of their lengths and the budget, so that a run
that was interrupted ends with the same bytes as one that was not.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kbprobe.arrays import Ints
from kbprobe.errors import KbprobeError

Rows = npt.NDArray[np.floating[Any]]
"""Numbers of sequences: axis 0 goes over sequences, or over the slots of sequences."""


def cut_batches(lengths: Ints, budget: int) -> list[Ints]:
    """Cut sequences into batches of at most ``budget`` padded tokens, and return their numbers.

    The longest come first, so that memory that does not suffice is found out at once. A sequence
    that is longer than the budget is a batch of its own.

    >>> [batch.tolist() for batch in cut_batches(np.array([3, 9, 4, 4]), 9)]
    [[1], [2, 3], [0]]
    """
    order = np.argsort(-lengths, kind="stable")
    batches, start = [], 0
    while start < len(order):
        longest = int(lengths[order[start]])
        stop = min(len(order), start + max(1, budget // max(longest, 1)))
        batches.append(order[start:stop])
        start = stop
    return batches


class BackOff:
    """Runs batches; one that exhausts memory is halved, and later ones are cut to what fitted."""

    def __init__(self) -> None:
        self._fits: int | None = None
        self.halvings = 0

    def run(self, score: Callable[[Ints], Rows], lengths: Ints, batch: Ints) -> Rows:
        """Return the numbers of all sequences of a batch, in their order.

        Args:
            score: runs some sequences: their numbers, one after another along axis 0.
            lengths: tokens of each sequence that there is, shape [sequences].
            batch: the sequences to run, shape [n].

        Raises:
            KbprobeError: not even one sequence fits into memory.
        """
        padded = int(lengths[batch].max()) * len(batch)
        if len(batch) > 1 and self._fits is not None and padded > self._fits:
            return self._halves(score, lengths, batch)
        try:
            return score(batch)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            message = str(error).strip().splitlines()[0]
        # Outside the handler: its traceback would keep the failed batch's tensors alive.
        free_memory()
        if len(batch) == 1:
            raise KbprobeError(
                f"a sequence of {padded:,} tokens does not fit into memory "
                f"({message}). Use a smaller --dtype, another --device, or shorter prompts."
            )
        self.halvings += 1
        self._fits = padded // 2
        return self._halves(score, lengths, batch)

    def _halves(self, score: Callable[[Ints], Rows], lengths: Ints, batch: Ints) -> Rows:
        middle = len(batch) // 2
        halves = (batch[:middle], batch[middle:])
        return np.concatenate([self.run(score, lengths, half) for half in halves])


def out_of_memory(error: BaseException) -> bool:
    """Tell whether an error means that memory ran out, on a GPU or not."""
    import torch

    # The CPU's allocator has no exception of its own.
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        "DefaultCPUAllocator" in str(error) or "out of memory" in str(error).lower()
    )


def free_memory() -> None:
    """Give back what the failed batch held."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
