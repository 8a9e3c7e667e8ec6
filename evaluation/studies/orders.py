"""Evaluate with the lettered choices in several orders.

Listed under: Commands to vary the setup.

Measures how accuracy and answers depend on the order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from statistics import pstdev
from typing import NamedTuple

import numpy as np
from pydantic import Field

from evaluation.items.orders import LETTERS, Order
from evaluation.items.types import choice_starts
from evaluation.options import TRAINING
from evaluation.results import intervals
from evaluation.results.analyses.generated import LetterRow, letter_rows
from evaluation.results.breakdown import cluster_codes
from evaluation.results.items import ItemAnswers
from evaluation.results.types import Estimate
from evaluation.results.words import interval, percent
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.entries import require_scorer_options
from evaluation.studies.pairing import gather
from evaluation.studies.table import (
    Column,
    DataTable,
    Section,
    StudyTables,
    fields,
    place_of,
    run_rows,
    runs_table,
    summary_of,
)
from evaluation.studies.variation import (
    left_out,
    measure_variation,
    notes_of,
    runs_by_request,
    spread_sentences,
    spread_table,
)
from kbprobe import document as doc
from kbprobe.arrays import Ints
from kbprobe.columns import mask, single_chunk, to_numpy
from kbprobe.errors import UsageError
from kbprobe.options import Options


class OrdersOptions(Options):
    """How many orders there are."""

    orders: int = Field(
        24,
        ge=2,
        le=5040,
        description="Orders of each question's choices: all of them where there are no more, "
        "otherwise this many, drawn for each question.",
    )


def _expand(request: StudyRequest) -> Sequence[RunSpec]:
    """Return the runs, grouped by model and probe."""
    reader, options = SplitReader(), request.defaults.run
    orders_of_probes = []
    for probe in request.probes:
        starts = choice_starts(reader.rows(probe, options).items)
        sizes = np.unique(np.diff(starts)).tolist()
        orders_of_probes.append(orders_of(sizes, request.options.orders))
    for model in request.models:
        require_scorer_options(request, model, ("letters", "order"), "shows lettered choices")
    return [
        request.spec(probe, model, letters=True, order=order, facts=False)
        for model in request.models
        for probe, orders in zip(request.probes, orders_of_probes, strict=True)
        for order in orders
    ]


def orders_of(sizes: Sequence[int], most: int) -> list[str]:
    """Return the orders for questions with these numbers of choices: all, or seeds to draw them.

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


AXES: dict[str, Column[Finished]] = {
    "order": Column(
        "Letters that the choices have in the probe, in the order shown, or the number that each "
        "question's order was drawn with; a value of --order.",
        lambda run: run.results.scoring.options["order"],
    )
}

_BY_LETTER: dict[str, Column[LetterRow]] = fields(
    {
        "letter": "The letter.",
        "accuracy": "Accuracy where the gold has this letter; null where it never has.",
        "chosen": "Share of answers that are this letter.",
        "expected": "Share of answers that would be, if each letter was equally likely.",
    },
    {"accuracy": "accuracy where it is right", "chosen": "answers", "expected": "equally often"},
)


def _summarise(_request: StudyRequest, finished: Sequence[Finished]) -> StudyTables:
    """Summarise the runs of each model on each probe."""
    sections = [_section(runs) for runs in runs_by_request(finished)]
    return summary_of("orders", "Orders of choices", sections, "models and probes")


def _section(runs: Sequence[Finished]) -> Section:
    rows = run_rows(runs, AXES)
    seed, orders = runs[0].results.seed, [str(row.axes["order"]) for row in rows]
    exhaustive = not orders[0].isdecimal()
    variation = measure_variation(runs, seed)
    asked = _asked(runs, orders)
    by_letter = letter_rows(
        asked.letter, asked.answers.key, asked.answers.chosen, asked.cluster, seed
    )
    averaged = _averaged(runs, asked, seed)
    recalls = [row.accuracy.value for row in by_letter if row.accuracy is not None]
    deviation = pstdev(recalls) if len(recalls) > 1 else None
    spread = spread_table(
        variation,
        {
            "exhaustive": Column("Whether these are all orders.", lambda _: exhaustive, None),
            "averaged": Column(
                "Accuracy of the choice with the best mean score over all orders.",
                lambda _: averaged,
                head="best mean score",
            ),
            "recall_deviation": Column(
                "Standard deviation of accuracy over the letters of the gold (n), as Zheng et al. "
                "2024 measure a preference for letters; null with one letter.",
                lambda _: deviation,
                head="sd over letters",
            ),
        },
    )
    table = runs_table(rows, AXES)
    letters = DataTable("letters", by_letter, _BY_LETTER)
    over = f"{'all ' if exhaustive else ''}{len(runs)} orders"
    return Section(
        place_of(runs[0], "probe", "split", "model"),
        [spread, letters, table],
        [
            spread.shown(f"Accuracy and answers over {over}; chance is {percent(rows[0].chance)}"),
            _chart(by_letter, variation.accuracy.value),
            letters.shown("By letter, over all questions and orders"),
            table.shown("Accuracy in each order", fold="Each order"),
        ],
        [*spread_sentences(variation, over, "order"), *_preferences(by_letter)],
        [*left_out(variation, "order"), *notes_of(runs, "order")],
    )


class _ScoredRows(NamedTuple):
    """The rows scored in every order.

    Attributes:
        answers: the answers to these rows; each run is an order.
        cluster: the number of each row's cluster, shape [rows].
        letter: the letter of each choice in each order, shape [rows, orders, most choices]; -1 if
            there is no such choice.
    """

    answers: ItemAnswers
    cluster: Ints
    letter: Ints


def _asked(runs: Sequence[Finished], orders: Sequence[str]) -> _ScoredRows:
    gathered = gather(runs)
    whole = gathered.answers.scored.all(axis=1)
    answers = ItemAnswers(*(part[whole] for part in gathered.answers))
    ids = gathered.items["id"].filter(whole).to_pylist()
    letter = np.full((len(ids), len(orders), int(answers.choices.max())), -1)
    for place, order in enumerate(map(Order.parse, orders)):
        for row, (name, size) in enumerate(zip(ids, answers.choices.tolist(), strict=True)):
            letter[row, place, order.places(name, size)] = np.arange(size)
    return _ScoredRows(answers, cluster_codes(gathered.items)[whole], letter)


def _averaged(runs: Sequence[Finished], asked: _ScoredRows, seed: int) -> Estimate:
    """Estimate the accuracy of the choice with the best mean score over all orders."""
    tables = [run.predictions for run in runs]
    whole = np.logical_and.reduce([mask(table["prediction"].is_valid()) for table in tables])
    scores = [single_chunk(table["scores"].filter(whole)).flatten() for table in tables]
    total = sum(to_numpy(own).astype(np.float64) for own in scores)
    grid = np.full((len(asked.cluster), asked.letter.shape[2]), -np.inf)
    grid[np.arange(grid.shape[1]) < asked.answers.choices[:, None]] = total
    right = grid.argmax(axis=1) == asked.answers.key
    return intervals.accuracy(right, asked.cluster, seed)


def _chart(letters: Sequence[LetterRow], mean: float) -> doc.Chart:
    """Draw accuracy by the letter of the gold, and how often each letter is the answer."""
    places = list(range(len(letters)))
    # Letters that are never the gold have no accuracy, only a share of the answers.
    known = [(place, row.accuracy) for place, row in enumerate(letters) if row.accuracy is not None]
    accuracy = doc.Line(
        "", [place for place, _ in known], [number for _, number in known], dash="none"
    )
    chosen = doc.Line("", places, [row.chosen for row in letters], dash="none")
    expected = [row.expected for row in letters]
    often = doc.Line("equally often", places, expected, "soft", "dashed", marker="")
    level = doc.Level("mean accuracy", mean, "reference", "solid")
    return doc.Chart(
        "Accuracy by the letter of the gold, and answers by letter.",
        [
            doc.Panel([accuracy], [level], "Accuracy by letter of the gold", from_zero=True),
            doc.Panel([chosen, often], title="Answers by letter", from_zero=True),
        ],
        doc.Across("", "names", [row.letter for row in letters]),
        beside=True,
    )


def _preferences(letters: Sequence[LetterRow]) -> list[str]:
    """Describe the letters that are chosen more often than by chance."""
    preferred = [
        f"{row.letter}, {percent(row.chosen.value)} of answers ({interval(row.chosen)}; chance "
        f"{percent(row.expected)})"
        for row in letters
        if row.chosen.low > row.expected
    ]
    return [f"Chosen more often than chance: {'; '.join(preferred)}."] if preferred else []


ORDERS = Study(
    name=__name__,
    help=__doc__,
    expand=_expand,
    summarise=_summarise,
    options=OrdersOptions,
    fixed=TRAINING | {"letters", "order", "orders", "facts"},
)
"""The study."""
