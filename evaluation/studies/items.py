"""List the questions to reread, such as those with suspect answer keys.

Listed under: Commands to compare results.

Computed from the results of three models or more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from evaluation.report import cells
from evaluation.results.items import ItemAnswers, point_biserial, rivals
from evaluation.results.types import Model
from evaluation.results.words import coefficient, percent, points
from evaluation.studies.base import Finished, Study, StudyRequest, finished_in
from evaluation.studies.labels import Labelled, labelled_by_probe
from evaluation.studies.pairing import gather
from evaluation.studies.scorecard import read_card
from evaluation.studies.table import (
    DataTable,
    Section,
    StudyTables,
    columns_of,
    fields,
    place_of,
    summary_of,
)
from kbprobe import document as doc
from kbprobe.arrays import Bools
from kbprobe.options import Options
from kbprobe.tables import csv_text

SUSPECTED = math.log(100)
"""Evidence from which a key is suspected to be wrong. If one key in a hundred is wrong, the key of
an item with this evidence is as likely to be wrong as right."""

Remark = Literal["suspected key", "no model right", "every model right", "negative correlation"]


class ItemRow(Model):
    """One item, and what the models answered."""

    id: str = Field(description="The item's id.")
    cluster: str = Field(description="Its cluster.")
    question: str = Field(description="Its text; the premise first, if it has one.")
    choices: list[str] = Field(description="Texts of the choices.")
    key: int = Field(description="Number of the choice that counts as right, from 0.")
    rival: int | None = Field(
        description="The choice other than the key that speaks most against it; null if no model "
        "chose another one than the key."
    )
    chosen: list[int | None] = Field(
        description="Each run's choice, in the order of the runs; null if it did not score the "
        "item."
    )
    models: int = Field(description="Runs that scored it.")
    right: int = Field(description="Runs that chose the key.")
    for_rival: int = Field(description="Runs that chose the rival.")
    point_biserial: float | None = Field(
        description="Correlation of being right on it with accuracy on all other items, over the "
        "runs; null if all are right or all wrong."
    )
    evidence: float = Field(
        description="Natural log of how many times likelier the answers are if the rival is right "
        "rather than the key, where each run is right as often as on the other items, and "
        "independently of other runs."
    )
    remarks: list[Remark] = Field(description="What stands out.")


_ITEMS = columns_of(ItemRow)
_RUNS = fields(
    {
        "label": "The model, and what distinguishes it from the others.",
        "accuracy": "Accuracy on the rows that it scored.",
        "folder": "The folder of its results.",
    },
    {"label": "model"},
    hidden=("folder",),
)
_PROBES = fields(
    {
        "chance": "Mean of one over the number of choices.",
        "items": "Items that at least one run scored.",
        "suspected": "Items whose key is suspected: evidence of at least ln 100, and two runs or "
        "more for the rival.",
        "none_right": "Items that no run gets right.",
        "all_right": "Items that every run gets right.",
        "negative": "Items with a negative point-biserial correlation.",
        "mean_point_biserial": "Mean over the items that have one; null if none has.",
    }
)

FEWEST_RUNS = 3


class ItemsOptions(Options):
    """How items are analysed."""

    rows: int = Field(25, ge=1, description="Items of each probe to show; the files hold all.")
    partial: bool = Field(False, description="Take the items that each run has, if not all.")


def _summarise(request: StudyRequest, folders: Sequence[ResultsIn]) -> StudyTables:
    """Analyse the items of each probe, from the runs in each folder."""
    place = {str(run.folder): str(given.folder) for given in folders for run in given.runs}
    runs = [run for given in folders for run in given.runs]
    sections = []
    for group in labelled_by_probe(runs, "items", FEWEST_RUNS):
        # Runs of a score card that are told apart by their folders are told apart by the card's.
        named = [
            Labelled(run, label.replace(folder := str(run.folder), place[folder]))
            for run, label in group
        ]
        sections.append(_section(named, request.options))
    summary = summary_of("items", "Item analysis", sections, "probes")
    return summary.model_copy(update={"sheets": _sheets(summary)})


def _section(runs: Sequence[Labelled], options: ItemsOptions) -> Section:
    """Report the items of a probe."""
    asked, answers = gather([run for run, _ in runs], partial=options.partial)
    labels = [label for _, label in runs]
    correlation, rival = point_biserial(answers), rivals(answers)
    right, models = answers.right.sum(axis=1), answers.scored.sum(axis=1)
    for_rival = (answers.chosen == rival.choice[:, None]).sum(axis=1) * (rival.choice >= 0)
    remarks: dict[Remark, Bools] = {
        "suspected key": (rival.evidence >= SUSPECTED) & (for_rival >= 2),
        "no model right": right == 0,
        "every model right": right == models,
        "negative correlation": correlation < 0,
    }
    # Most evidence first; ties go to items that the better models get wrong.
    order = np.lexsort((np.nan_to_num(correlation), -rival.evidence)).tolist()
    items = [
        ItemRow(
            **{name: item[name] for name in ("id", "cluster", "question", "choices")},
            key=item["answer"],
            rival=_known(int(rival.choice[row])),
            chosen=[_known(choice) for choice in answers.chosen[row].tolist()],
            models=int(models[row]),
            right=int(right[row]),
            for_rival=int(for_rival[row]),
            point_biserial=None if np.isnan(correlation[row]) else float(correlation[row]),
            evidence=float(rival.evidence[row]),
            remarks=[remark for remark, holds in remarks.items() if holds[row]],
        )
        for row, item in zip(order, asked.take(order).to_pylist(), strict=True)
    ]
    known = correlation[~np.isnan(correlation)]
    suspected, none_right, all_right, negative = (int(rows.sum()) for rows in remarks.values())
    about = {
        "chance": float((1 / answers.choices).mean()),
        "items": len(items),
        "suspected": suspected,
        "none_right": none_right,
        "all_right": all_right,
        "negative": negative,
        "mean_point_biserial": float(known.mean()) if known.size else None,
    }
    accuracies = [
        {"label": label, "accuracy": run.results.metrics.accuracy, "folder": str(run.folder)}
        for run, label in runs
    ]
    table = DataTable("runs", accuracies, _RUNS)
    sentences = [
        f"Suspected wrong keys: {suspected:,} of {len(items):,} items.",
        f"No model is right on {none_right:,} items, every model on {all_right:,}: these do not "
        "tell models apart.",
    ]
    if known.size:
        sentences.append(
            f"Mean point-biserial correlation {coefficient(float(known.mean()))}; negative for "
            f"{negative:,} items."
        )
    shown = items[: options.rows]
    return Section(
        place_of(runs[0].run, "probe", "split"),
        [table, DataTable("items", items, _ITEMS), DataTable("probes", [about], _PROBES)],
        [
            doc.Table(
                ("rank", "item", "right", "correlation", "evidence"),
                [(str(rank), *_cells(labels, item)) for rank, item in enumerate(shown, 1)],
                f"The {len(shown)} items to read first, of {len(items):,}. An asterisk: the "
                "key is suspected to be wrong.",
                names=2,
            ),
            _scatter(items),
            table.shown(f"Accuracy of each model; chance is {percent(about['chance'] or 0)}"),
        ],
        sentences,
        _notes(runs, answers, float(about["chance"] or 0)),
    )


def _known(choice: int) -> int | None:
    return None if choice < 0 else choice


def _cells(labels: Sequence[str], item: ItemRow) -> list[doc.Cell]:
    """Return the cells of an item: its choices with the models that gave them, and its numbers."""
    choices = []
    for number, text in enumerate(item.choices):
        mark = " (key)" if number == item.key else " (other)" if number == item.rival else ""
        chose = [
            label for label, choice in zip(labels, item.chosen, strict=True) if choice == number
        ]
        choices.append(f"{text}{mark}{': ' if chose else ''}{', '.join(chose)}")
    star = "*" if "suspected key" in item.remarks else ""
    return [
        doc.Cell(item.question, item.id, tuple(choices)),
        doc.Cell(f"{item.right} of {item.models}"),
        cells.coefficient(item.point_biserial),
        doc.Cell(f"{points(item.evidence)}{star}"),
    ]


def _scatter(items: Sequence[ItemRow]) -> doc.Chart | None:
    """Draw correlation over the share of models that are right; None if there is none."""
    inks: tuple[tuple[str, str, doc.Ink, bool], ...] = (
        ("other items", "o", "model", False),
        ("suspected wrong key", "D", "reference", True),
    )
    lines = []
    for name, marker, ink, suspected in inks:
        places = Counter(
            (round(100 * item.right / item.models, 1), round(item.point_biserial, 3))
            for item in items
            if item.point_biserial is not None and ("suspected key" in item.remarks) is suspected
        )
        if places:
            x, y = zip(*places, strict=True)
            areas = [10 + 6 * min(count, 20) for count in places.values()]
            lines.append(doc.Line(name, x, y, ink, marker=marker, weights=areas))
    if not lines:
        return None
    zero = doc.Level("", 0.0, "reference", "dashed")
    panel = doc.Panel(lines, [zero], "Point-biserial correlation", upwards="coefficient")
    label = "Point-biserial correlation of items by the share of models that are right."
    return doc.Chart(label, [panel], doc.Across("models that are right", "share"))


def _notes(runs: Sequence[Labelled], answers: ItemAnswers, chance: float) -> list[str]:
    """Return caveats about the numbers."""
    notes = []
    above = sum(run.results.metrics.accuracy.low > chance for run, _ in runs)
    if above < 2:
        notes.append(
            f"{above} of {len(runs)} models are above chance: models that guess tell nothing about "
            "keys. Add results of better models."
        )
    if len(runs) < 6:
        notes.append(
            f"Correlations over {len(runs)} models vary much by chance; six or more are better."
        )
    notes += [
        f"{runs[first].label} and {runs[second].label} give the same answer to every item, and "
        "count twice."
        for first, second in combinations(range(len(runs)), 2)
        if np.array_equal(answers.chosen[:, first], answers.chosen[:, second])
    ]
    if not answers.scored.all():
        notes.append("Some items were not scored by all models.")
    return notes


_HEAD = (
    *("probe", "split", "rank", "id", "cluster", "question", "key", "key_text", "other"),
    *("other_text", "models", "right", "for_other", "point_biserial", "evidence", "remarks"),
)


def _sheets(summary: StudyTables) -> dict[str, str]:
    """Return a line for each item, in the order to read them, and a column for each model."""
    labels = list(dict.fromkeys(run["label"] for run in summary.tables["runs"]))
    lines: list[Sequence[Any]] = [(*_HEAD, *labels)]
    for place in summary.tables["probes"]:
        probe = {name: place[name] for name in ("probe", "split")}
        names = [run["label"] for run in summary.rows("runs", **probe)]
        for rank, item in enumerate(summary.rows("items", **probe), 1):
            choices, rival, correlation = item["choices"], item["rival"], item["point_biserial"]
            chosen = dict(zip(names, item["chosen"], strict=True))
            line = (
                *(*probe.values(), rank, item["id"], item["cluster"], item["question"]),
                *(item["key"], choices[item["key"]]),
                *(rival, None if rival is None else choices[rival]),
                *(item["models"], item["right"], item["for_rival"]),
                None if correlation is None else round(correlation, 4),
                *(round(item["evidence"], 4), "; ".join(item["remarks"])),
                *map(chosen.get, labels),
            )
            lines.append(["" if value is None else value for value in line])
    return {"items.csv": csv_text(lines, line_end="\n")}


class ResultsIn(NamedTuple):
    """The results in a folder: one run, or those of a score card."""

    folder: Path
    runs: list[Finished]


def _read(folder: Path) -> ResultsIn:
    if (card := read_card(folder)) is None:
        return ResultsIn(folder, [finished_in(folder)])
    places = [folder / score.folder for model in card.models for score in model.probes]
    return ResultsIn(folder, [finished_in(place) for place in places])


ITEMS = Study(
    name=__name__,
    help=__doc__,
    expand=None,
    summarise=_summarise,
    options=ItemsOptions,
    least=FEWEST_RUNS,
    nested=True,
    read=_read,
)
"""The study."""
