"""The online code length of answers: what a learner has to be told although it learns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from statistics import fmean, stdev

from evaluation.results.analyses.fitting import Fitting
from evaluation.studies.curve.types import CodeLength


def code_length(
    fittings: Mapping[int, Mapping[int, Fitting | None]], choice_bits: float
) -> CodeLength | None:
    """Return the online code length (Voita and Titov 2020, section 2.2.2), in bits.

    The answers of the first block are sent by the uniform code, each further block by the
    probabilities of the model fitted on all rows before it. Draws that were not trained on all
    sizes are left out.

    Args:
        fittings: what was reported for each draw and size.
        choice_bits: mean log2 of the number of choices.

    Returns:
        None where no draw has an unbroken series of at least two sizes.
    """
    longest = max((size for sizes in fittings.values() for size in sizes), default=0)
    coded = [
        found
        for sizes in fittings.values()
        if longest in sizes and (found := _of_draw(sizes, choice_bits)) is not None
    ]
    if not coded:
        return None
    compressions = [rows * choice_bits / bits for rows, bits in coded]
    rows = fmean(rows for rows, _ in coded)
    return CodeLength(
        rows=round(rows),
        draws=len(coded),
        uniform_bits=rows * choice_bits,
        bits=fmean(bits for _, bits in coded),
        compression=fmean(compressions),
        compression_deviation=stdev(compressions) if len(coded) > 1 else None,
    )


def _of_draw(sizes: Mapping[int, Fitting | None], choice_bits: float) -> tuple[int, float] | None:
    """Return the rows coded and their code length of one draw; None where a block is missing.

    Rows that the learner set aside are in no block, so that blocks may be a little short.
    """
    ordered = sorted(sizes)
    if len(ordered) < 2:
        return None
    rows, bits = ordered[0], ordered[0] * choice_bits
    for size, following in pairwise(ordered):
        block = sizes[size]
        if block is None or block.next_bits is None or size + block.next_rows > following:
            return None
        rows, bits = rows + block.next_rows, bits + block.next_bits
    return (rows, bits) if math.isfinite(bits) and bits > 0 else None
