"""The weight of each training size in WS and LangSense."""

from __future__ import annotations

from collections.abc import Sequence

PUBLISHED = {62: 0.23, 125: 0.2, 250: 0.17, 500: 0.14, 1000: 0.11, 2000: 0.08, 4000: 0.07}
"""[O], section 3.2: sizes with few rows count more, since little can be learnt from them."""


def weigh(sizes: Sequence[int]) -> tuple[dict[int, float], str]:
    """Return the weight of each size, summing to one, and how they were chosen.

    >>> weights, said = weigh([62, 125])
    >>> {size: round(weight, 3) for size, weight in weights.items()}
    {62: 0.535, 125: 0.465}
    >>> weigh([10, 20])[0]
    {10: 0.5, 20: 0.5}
    """
    if not all(size in PUBLISHED for size in sizes):
        return dict.fromkeys(sizes, 1 / len(sizes)), (
            "equal, as some of the sizes have no published weight"
        )
    total = sum(PUBLISHED[size] for size in sizes)
    weights = {size: PUBLISHED[size] / total for size in sizes}
    if len(sizes) == len(PUBLISHED):
        return weights, "as published"
    missing = ", ".join(f"{size:,}" for size in PUBLISHED if size not in sizes)
    return weights, f"as published, renormalised without {missing}"
