"""Batches: sound cuts, and halves when memory runs out."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluation.scorers.base import Encoded
from evaluation.scorers.batching import BackOff, cut_batches, out_of_memory
from kbprobe.errors import KbprobeError


@given(st.lists(st.integers(1, 300), min_size=1, max_size=80), st.integers(1, 1000))
def test_every_sequence_is_in_one_batch_within_the_budget(lengths, budget):
    lengths = np.array(lengths)
    batches = cut_batches(lengths, budget)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or lengths[batch].max() * len(batch) <= budget
    longest = [int(lengths[batch].max()) for batch in batches]
    assert longest == sorted(longest, reverse=True)


@given(st.lists(st.integers(1, 50), min_size=2, max_size=60), st.integers(1, 400))
def test_no_two_neighbouring_batches_could_be_one(lengths, budget):
    lengths = np.array(lengths)
    batches = cut_batches(lengths, budget)
    for one, two in pairwise(batches):
        assert lengths[one].max() * (len(one) + 1) > budget, (one, two)


class Cramped:
    """A scorer for which only so many padded tokens fit; a sequence's score is its number."""

    def __init__(self, encoded, fits, error):
        self.encoded, self.fits, self.error, self.tried = encoded, fits, error, []

    def score(self, encoded, sequences):
        padded = int(encoded.lengths[sequences].max()) * len(sequences)
        self.tried.append(padded)
        if padded > self.fits:
            raise self.error
        return sequences.astype(float)


def sequences_of(lengths):
    numbers = np.arange(len(lengths))
    return Encoded(
        lengths=np.array(lengths),
        item=numbers,
        slot_starts=np.arange(len(lengths) + 1),
        slot_choice=numbers,
        choice_tokens=np.ones(len(lengths), dtype=np.int64),
    )


ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried ..."),
    MemoryError("no more"),
]


def backing_off(scorer, encoded):
    state = BackOff()
    return state, lambda batch: state.run(partial(scorer.score, encoded), encoded.lengths, batch)


@pytest.mark.parametrize(
    "error",
    [ERRORS[0], *(pytest.param(error, marks=pytest.mark.slow) for error in ERRORS[1:])],
    ids=lambda error: type(error).__name__,
)
def test_nothing_is_skipped_when_memory_runs_out(error):
    encoded = sequences_of([10] * 37)
    scorer = Cramped(encoded, fits=60, error=error)
    state, run = backing_off(scorer, encoded)
    assert run(np.arange(37)).tolist() == list(range(37))
    assert state.halvings > 0
    failed_before = sum(padded > 60 for padded in scorer.tried)
    run(np.arange(37))
    assert sum(padded > 60 for padded in scorer.tried) == failed_before, "learnt what fits"


def test_a_sequence_that_does_not_fit_alone_says_so():
    encoded = sequences_of([100, 10])
    _, run = backing_off(Cramped(encoded, fits=60, error=ERRORS[0]), encoded)
    with pytest.raises(KbprobeError, match="100 tokens does not fit into memory"):
        run(np.arange(2))


def test_other_errors_pass_through():
    encoded = sequences_of([10, 10])
    _, run = backing_off(Cramped(encoded, fits=0, error=RuntimeError("shape mismatch")), encoded)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        run(np.arange(2))
    assert not out_of_memory(RuntimeError("shape mismatch"))
