"""The summary of the study: accuracy and answers over the orders, and by letter."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import pstdev
from typing import NamedTuple

import numpy as np

from evaluation.items.orders import LETTERS, Order
from evaluation.results import intervals
from evaluation.results.breakdown import cluster_codes
from evaluation.results.items import Answers
from evaluation.results.types import Estimate
from evaluation.studies.answers import gather
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.orders.types import LetterRow, ModelOrders, OrdersSummary
from evaluation.studies.variation.numbers import describe, measure_variation, runs_by_request
from evaluation.studies.variation.words import left_out, notes_of
from kbprobe.arrays import Floats, Ints
from kbprobe.columns import mask, single_chunk, to_numpy


def summarise(_request: StudyRequest, finished: Sequence[Finished]) -> OrdersSummary:
    """Summarise the runs of each model on each probe.

    Raises:
        UsageError: no question was scored in every order.
    """
    groups = runs_by_request(finished)
    return OrdersSummary(models=[_model(runs) for runs in groups])


def _model(runs: Sequence[Finished]) -> ModelOrders:
    results = runs[0].evaluation.results
    orders = [str(run.evaluation.results.scoring.options["order"]) for run in runs]
    variation = measure_variation(runs, results.seed)
    shown = _shown(runs, orders)
    exhaustive = not orders[0].isdecimal()
    letters = _letters(shown, results.seed)
    recalls = [row.accuracy.value for row in letters if row.accuracy is not None]
    return ModelOrders(
        probe=results.probe.name,
        split=results.probe.split,
        model=results.model.id,
        chance=results.metrics.chance,
        exhaustive=exhaustive,
        orders=[describe(run, order) for run, order in zip(runs, orders, strict=True)],
        variation=variation,
        averaged=_averaged(runs, shown, results.seed),
        letters=letters,
        recall_deviation=pstdev(recalls) if len(recalls) > 1 else None,
        notes=[*left_out(variation, "order"), *notes_of(runs, "order")],
    )


class _Shown(NamedTuple):
    """The rows scored in every order.

    Attributes:
        answers: to them, ``runs`` being the orders.
        cluster: the number of each row's cluster, shape [rows].
        letter: the letter of each choice in each order, shape [rows, orders, most choices]; -1
            where there is no such choice.
    """

    answers: Answers
    cluster: Ints
    letter: Ints


def _shown(runs: Sequence[Finished], orders: Sequence[str]) -> _Shown:
    gathered = gather(runs)
    whole = gathered.answers.scored.all(axis=1)
    answers = Answers(*(part[whole] for part in gathered.answers))
    ids = gathered.items["id"].filter(whole).to_pylist()
    letter = np.full((len(ids), len(orders), int(answers.choices.max())), -1)
    for at, order in enumerate(map(Order.parse, orders)):
        for row, (name, size) in enumerate(zip(ids, answers.choices.tolist(), strict=True)):
            letter[row, at, order.places(name, size)] = np.arange(size)
    return _Shown(answers, cluster_codes(gathered.items)[whole], letter)


def _letters(shown: _Shown, seed: int) -> list[LetterRow]:
    """Count answers and right answers by letter, over all rows and orders."""
    answers, cluster, letter = shown
    count = letter.shape[1]
    gold = np.take_along_axis(letter, answers.key[:, None, None], axis=2)[:, :, 0]
    chosen = np.take_along_axis(letter, answers.said[:, :, None], axis=2)[:, :, 0]
    rows = []
    for number in range(letter.shape[2]):
        at = gold == number
        tries, right = at.sum(axis=1), (at & answers.right).sum(axis=1)
        has = answers.choices > number
        asked = np.full(int(has.sum()), count)
        picked = (chosen[has] == number).sum(axis=1)
        rows.append(
            LetterRow(
                letter=LETTERS[number],
                accuracy=_tried(right, tries, cluster, seed),
                chosen=intervals.repeated_share(picked, asked, cluster[has], seed),
                expected=float((1 / answers.choices[has]).mean()),
            )
        )
    return rows


def _tried(hits: Ints, tries: Ints, cluster: Ints, seed: int) -> Estimate | None:
    tried = tries > 0
    if not tried.any():
        return None
    return intervals.repeated_share(hits[tried], tries[tried], cluster[tried], seed)


def _averaged(runs: Sequence[Finished], shown: _Shown, seed: int) -> Estimate:
    """Estimate the accuracy of the choice with the best mean score over all orders."""
    tables = [run.evaluation.predictions for run in runs]
    whole = np.logical_and.reduce([mask(table["prediction"].is_valid()) for table in tables])
    total: Floats | None = None
    for table in tables:
        scores = single_chunk(table["scores"].filter(whole))
        own = to_numpy(scores.flatten()).astype(np.float64)
        total = own if total is None else total + own
    grid = np.full((len(shown.cluster), shown.letter.shape[2]), -np.inf)
    grid[np.arange(grid.shape[1]) < shown.answers.choices[:, None]] = total
    right = grid.argmax(axis=1) == shown.answers.key
    return intervals.accuracy(right, shown.cluster, seed)
