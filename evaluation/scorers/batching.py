"""Batches: sorted by length, cut by a token budget, and halved when memory runs out.

Which sequences share a batch depends only on their lengths and the budget, so that an interrupted
run ends with the same bytes as an uninterrupted one.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from kbprobe.arrays import Ints
from kbprobe.errors import KbprobeError

Rows = npt.NDArray[np.floating[Any]]
"""Numbers computed for sequences: axis 0 runs over sequences, or over their slots."""


def longest_first(lengths: Ints) -> Ints:
    """Return the order in which sequences are run; insufficient memory is noticed at once."""
    order: Ints = np.argsort(-lengths, kind="stable")
    return order


def cut_batches(lengths: Ints, budget: int) -> list[Ints]:
    """Cut sequences into batches of at most ``budget`` padded tokens, and return their indices.

    The longest come first. A sequence that is longer than the budget forms a batch by itself.

    >>> [batch.tolist() for batch in cut_batches(np.array([3, 9, 4, 4]), 9)]
    [[1], [2, 3], [0]]
    """
    order = longest_first(lengths)
    batches, start = [], 0
    while start < len(order):
        longest = int(lengths[order[start]])
        stop = min(len(order), start + max(1, budget // max(longest, 1)))
        batches.append(order[start:stop])
        start = stop
    return batches


class BackOff:
    """Runs batches; a batch that exhausts memory is halved, and later ones are cut to what fits."""

    def __init__(self) -> None:
        self._fits: int | None = None
        self.halvings = 0

    def batches(
        self, score: Callable[[Ints], Rows], lengths: Ints, budget: int
    ) -> Iterator[tuple[Ints, Rows]]:
        """Run sequences in batches of :func:`cut_batches`; yield each with its numbers."""
        for batch in cut_batches(lengths, budget):
            yield batch, self.run(score, lengths, batch)

    def run(self, score: Callable[[Ints], Rows], lengths: Ints, batch: Ints) -> Rows:
        """Return the numbers computed for all sequences of a batch, in their order.

        Args:
            score: runs some sequences, and returns their numbers concatenated along axis 0.
            lengths: the number of tokens of every sequence, shape [sequences].
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
    """Return whether an error means that memory ran out, on a GPU or not."""
    import torch

    # The CPU's allocator has no exception of its own.
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        "DefaultCPUAllocator" in str(error) or "out of memory" in str(error).lower()
    )


def free_memory() -> None:
    """Release the memory of the failed batch."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
