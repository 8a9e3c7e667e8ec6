"""The runs of the study: one for each order of the choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np
from pydantic import Field

from evaluation.items.orders import LETTERS
from evaluation.items.types import choice_starts
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import StudyRequest
from evaluation.studies.entries import LEARNING, require_scorer_options
from kbprobe.errors import UsageError
from kbprobe.options import Options

FIXED = ("letters", "order", "facts", *LEARNING)
"""Options of runs that the study sets, or that have no meaning in it."""


class OrdersOptions(Options):
    """How many orders there are."""

    orders: int = Field(
        24,
        ge=2,
        le=5040,
        description="Orders of each question's choices: all of them where there are no more, "
        "otherwise this many, drawn for each question.",
    )


def expand(request: StudyRequest) -> Sequence[RunSpec]:
    """Make the runs: those of one model and probe after each other.

    Raises:
        UsageError: a model is not scored by letters; there is no such probe or split; questions
            have too many choices for letters.
        KbprobeError: a split cannot be read.
    """
    reader, options = SplitReader(), request.defaults.run
    found = []
    for probe in request.probes:
        starts = choice_starts(reader.rows(probe, options).items)
        sizes = np.unique(np.diff(starts)).tolist()
        found.append(orders_of(sizes, request.options.orders))
    for model in request.models:
        require_scorer_options(request, model, ("letters", "order"), "shows lettered choices")
    return [
        request.spec(probe, model, letters=True, order=order, facts=False)
        for model in request.models
        for probe, orders in zip(request.probes, found, strict=True)
        for order in orders
    ]


def orders_of(sizes: Sequence[int], most: int) -> list[str]:
    """Return the orders of questions with these numbers of choices: all, or numbers that draw.

    >>> orders_of([3], most=24)
    ['ABC', 'ACB', 'BAC', 'BCA', 'CAB', 'CBA']
    >>> orders_of([3, 4], most=3)
    ['0', '1', '2']

    Raises:
        UsageError: there are more choices than letters.
    """
    if max(sizes) > len(LETTERS):
        raise UsageError(
            f"a question has {max(sizes)} choices, and there are {len(LETTERS)} letters to name "
            "them by: leave the probe out"
        )
    if len(sizes) == 1 and math.factorial(sizes[0]) <= most:
        return ["".join(order) for order in permutations(LETTERS[: sizes[0]])]
    return [str(number) for number in range(most)]
