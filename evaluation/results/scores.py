"""Scores of a split's choices, and the values by which choices are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kbprobe.arrays import Floats, Ints
from kbprobe.columns import to_numpy
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluation.results.types import Normalization


@dataclass(frozen=True)
class Scores:
    """The scores of all items.

    Attributes:
        scores: one number per choice, all items' choices one after another; nan if set aside.
        tokens: the number of tokens that each score sums over.
        set_aside: the items that were not scored, and why.
        notes: the counts that the scorer reported.
        score_name: ``logit`` or ``log-likelihood``.
        sequences, sequence_tokens: the total number of sequences run, and of their tokens.
        parameters: the number of the model's parameters.
        fitting: what the learner reported, if the scores are a learner's
            (:class:`evaluation.results.analyses.fitting.Fitting`); otherwise empty.
    """

    scores: Floats
    tokens: Ints
    set_aside: Mapping[int, str]
    notes: Mapping[str, int]
    score_name: str
    sequences: int
    sequence_tokens: int
    parameters: int
    fitting: Mapping[str, Any] = field(default_factory=dict)


def lengths(
    tokens: Ints | Sequence[int], texts: pa.Array | Sequence[str], normalization: Normalization
) -> Floats:
    """Return what each choice's score is divided by: shape [choices]."""
    import pyarrow.compute as pc

    if normalization in ("sum", "token"):
        return np.ones(len(texts)) if normalization == "sum" else np.asarray(tokens, np.float64)
    measured = pc.utf8_length(texts) if normalization == "char" else pc.binary_length(texts)
    return to_numpy(measured).astype(np.float64)


def compared(
    scores: Any,
    tokens: Ints | Sequence[int],
    texts: pa.Array | Sequence[str],
    normalization: Normalization,
) -> Floats:
    """Return the values by which choices are compared, scores over lengths: shape [choices].

    Raises:
        UsageError: a choice has no length.
    """
    divisors = lengths(tokens, texts, normalization)
    if not divisors.all():
        raise UsageError(
            f"{int((divisors == 0).sum())} choices have no length to divide their score by "
            f"(normalization {normalization}): compare sums instead, or correct the empty choices"
        )
    return np.asarray(scores) / divisors


def softmax(values: Floats) -> Floats:
    """Return each choice's share, along the last axis."""
    from scipy import special

    # If a model rules out all choices (minus infinity), their shares are equal, not undefined.
    possible = values.max(axis=-1, keepdims=True) > -np.inf
    shares: Floats = special.softmax(np.where(possible, values, 0.0), axis=-1)
    return shares
