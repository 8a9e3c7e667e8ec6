"""Orders: the lettered choices of each question shown in several orders."""

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
from evaluation.results.items import Answers
from evaluation.results.types import Estimate, Model
from evaluation.results.words import interval, last_name, name_or_count, percent
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.counting import group_by
from evaluation.studies.entries import require_scorer_options
from evaluation.studies.pairing import gather
from evaluation.studies.records import Record
from evaluation.studies.variation import (
    Variant,
    Variation,
    left_out,
    measure_variation,
    notes_of,
    runs_by_request,
    spread_sentences,
    spread_table,
    variants_table,
)
from kbprobe import document as doc
from kbprobe.arrays import Ints
from kbprobe.columns import mask, single_chunk, to_numpy
from kbprobe.errors import UsageError
from kbprobe.format.sealed import Sealed
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


class ModelOrders(Record):
    """A model on a probe, its choices in several orders."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, as it was given.")
    chance: float = Field(description="Mean of one over the number of choices.")
    exhaustive: bool = Field(
        description="Whether these are all orders; if not, they were drawn for each question."
    )
    orders: list[Variant] = Field(
        description="Each order: by the letters that the choices have in the probe, in the order "
        "shown, or by the number that it was drawn with; the values of --order."
    )
    variation: Variation = Field(description="How accuracy and answers vary over the orders.")
    averaged: Estimate = Field(
        description="Accuracy of the choice with the best mean score over all orders."
    )
    letters: list[LetterRow] = Field(description="Each letter, of the rows scored in every order.")
    recall_deviation: float | None = Field(
        description="Standard deviation of accuracy over the letters of the gold (n), as Zheng et "
        "al. 2024 measure a preference for letters; null with one letter."
    )
    notes: list[str] = Field(description="What a reader must know.")


class OrdersSummary(Model, Sealed):
    """All of ``orders.json``."""

    schema_version: str = "1.0"
    models: list[ModelOrders] = Field(description="Each model on each probe.")


def _expand(request: StudyRequest) -> Sequence[RunSpec]:
    """Return the runs, grouped by model and probe."""
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


def _summarise(_request: StudyRequest, finished: Sequence[Finished]) -> OrdersSummary:
    """Summarise the runs of each model on each probe."""
    return OrdersSummary(models=[_model(runs) for runs in runs_by_request(finished)])


def _model(runs: Sequence[Finished]) -> ModelOrders:
    seed, orders = runs[0].results.seed, [run.results.scoring.options["order"] for run in runs]
    variation = measure_variation(runs, seed)
    shown = _shown(runs, orders)
    answers, cluster, letter = shown
    letters = letter_rows(letter, answers.key, answers.said, cluster, seed)
    recalls = [row.accuracy.value for row in letters if row.accuracy is not None]
    return ModelOrders.of(
        runs[0],
        exhaustive=not orders[0].isdecimal(),
        orders=[Variant.of(run, label=order) for run, order in zip(runs, orders, strict=True)],
        variation=variation,
        averaged=_averaged(runs, shown, seed),
        letters=letters,
        recall_deviation=pstdev(recalls) if len(recalls) > 1 else None,
        notes=[*left_out(variation, "order"), *notes_of(runs, "order")],
    )


class _Shown(NamedTuple):
    """The rows scored in every order.

    Attributes:
        answers: the answers to these rows; each run is an order.
        cluster: the number of each row's cluster, shape [rows].
        letter: the letter of each choice in each order, shape [rows, orders, most choices]; -1 if
            there is no such choice.
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


def _averaged(runs: Sequence[Finished], shown: _Shown, seed: int) -> Estimate:
    """Estimate the accuracy of the choice with the best mean score over all orders."""
    tables = [run.predictions for run in runs]
    whole = np.logical_and.reduce([mask(table["prediction"].is_valid()) for table in tables])
    scores = [single_chunk(table["scores"].filter(whole)).flatten() for table in tables]
    total = sum(to_numpy(own).astype(np.float64) for own in scores)
    grid = np.full((len(shown.cluster), shown.letter.shape[2]), -np.inf)
    grid[np.arange(grid.shape[1]) < shown.answers.choices[:, None]] = total
    right = grid.argmax(axis=1) == shown.answers.key
    return intervals.accuracy(right, shown.cluster, seed)


def _document(summary: OrdersSummary) -> doc.Document:
    ordered = sorted(group_by(summary.models, lambda one: (one.probe, one.split)).items())
    return doc.Document(
        "Orders of choices",
        name_or_count([probe for (probe, _), _ in ordered], "probes"),
        [doc.Section(f"{probe} ({split})", _parts(held)) for (probe, split), held in ordered],
    )


def _parts(models: Sequence[ModelOrders]) -> list[doc.Part]:
    """Return the document parts on a probe: first on all models together, then on each."""
    first = models[0]
    asked = f"{first.variation.rows:,} questions with lettered choices"
    dots = [
        doc.Dot(
            last_name(one.model),
            one.variation.accuracy,
            parts=[order.accuracy.value for order in one.orders],
        )
        for one in models
    ]
    label = f"Mean accuracy of each model on {first.probe} over orders of the choices."
    spread = {last_name(one.model): one.variation for one in models}
    parts: list[doc.Part] = [
        doc.Text(
            f"{asked}, each asked in {_orders_text(first)}. Chance is {percent(first.chance)}."
        ),
        doc.Dots(label, dots, [doc.Level("chance", first.chance)], parts="an order"),
        spread_table(spread, "Accuracy and answers over the orders, with 95% intervals"),
    ]
    for one in models:
        parts += [
            doc.Heading(last_name(one.model)),
            doc.Findings(_sentences(one)),
            doc.Caveats(one.notes),
            _chart(one),
            doc.Table.of(
                one.letters,
                {
                    "letter": lambda row: row.letter,
                    "accuracy where it is right": lambda row: row.accuracy,
                    "answers": lambda row: row.chosen,
                    "equally often": lambda row: row.expected,
                },
                "By letter, over all questions and orders",
            ),
            variants_table(
                "order",
                one.orders,
                "Accuracy in each order: the value of --order that evaluates it alone",
                fold="Each order",
            ),
        ]
    return parts


def _chart(one: ModelOrders) -> doc.Chart:
    """Draw accuracy by the letter of the gold, and how often each letter is the answer."""
    # Letters that are never the gold have no accuracy, only a share of the answers.
    known = [(at, row.accuracy) for at, row in enumerate(one.letters) if row.accuracy is not None]
    places = list(range(len(one.letters)))
    accuracy = doc.Line("", [at for at, _ in known], [held for _, held in known], dash="none")
    chosen = doc.Line("", places, [row.chosen for row in one.letters], dash="none")
    expected = [row.expected for row in one.letters]
    mean = doc.Level("mean accuracy", one.variation.accuracy.value, "reference", "solid")
    return doc.Chart(
        f"{last_name(one.model)}: accuracy by the letter of the gold, and answers by letter.",
        [
            doc.Panel([accuracy], [mean], "Accuracy by letter of the gold", from_zero=True),
            doc.Panel(
                [chosen, doc.Line("equally often", places, expected, "soft", "dashed", marker="")],
                title="Answers by letter",
                from_zero=True,
            ),
        ],
        doc.Across("", "names", [row.letter for row in one.letters]),
        beside=True,
    )


def _orders_text(one: ModelOrders) -> str:
    """Return the number of orders in words: ``all 6 orders``."""
    return f"{'all ' if one.exhaustive else ''}{len(one.orders)} orders"


def _sentences(one: ModelOrders) -> list[str]:
    """Describe the results of a model on a probe."""
    found = spread_sentences(one.variation, _orders_text(one), "order")
    found.append(
        f"The choice with the best mean score over these orders is right in "
        f"{percent(one.averaged.value)} ({interval(one.averaged)})."
    )
    preferred = [
        f"{row.letter}, {percent(row.chosen.value)} of answers ({interval(row.chosen)}; chance "
        f"{percent(row.expected)})"
        for row in one.letters
        if row.chosen.low > row.expected
    ]
    if preferred:
        found.append(f"Chosen more often than chance: {'; '.join(preferred)}.")
    known = {row.letter: row.accuracy.value for row in one.letters if row.accuracy is not None}
    if len(known) > 1:
        best, worst = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
        found.append(
            f"Accuracy is {percent(known[best])} where the gold is {best}, and "
            f"{percent(known[worst])} where it is {worst}."
        )
    return found


ORDERS = Study(
    name="orders",
    help="Orders: show the lettered choices of each question in several orders, and measure how "
    "accuracy and answers depend on the order.",
    expand=_expand,
    summarise=_summarise,
    document=_document,
    options=OrdersOptions,
    fixed=TRAINING | {"letters", "order", "orders", "facts"},
)
"""The study."""
