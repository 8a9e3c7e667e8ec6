"""List the questions to reread, such as those with suspect answer keys.

Listed under: Commands to compare results.
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
from evaluation.results.items import Answers, point_biserial, rivals
from evaluation.results.types import Estimate, Model
from evaluation.results.words import coefficient, name_or_count, percent, points
from evaluation.studies.base import Finished, Study, StudyRequest, finished_in
from evaluation.studies.labels import Labelled, labelled_by_probe
from evaluation.studies.pairing import gather
from evaluation.studies.scorecard import read_card
from evaluation.studies.table import place_of
from kbprobe import document as doc
from kbprobe.options import Options
from kbprobe.tables import csv_text

SUSPECTED = math.log(100)
"""Evidence from which a key is suspected to be wrong. If one key in a hundred is wrong, the key of
an item with this evidence is as likely to be wrong as right."""

Remark = Literal["suspected key", "no model right", "every model right", "negative correlation"]


class LabelledRun(Model):
    """One of several runs on a probe."""

    label: str = Field(description="The model, and what distinguishes it from the others.")
    folder: str = Field(description="The folder of its results.")
    accuracy: Estimate = Field(description="Accuracy on the rows that it scored.")


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
    said: list[int | None] = Field(
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


class ProbeItems(Model):
    """The items of a probe."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split.")
    chance: float = Field(description="Mean of one over the number of choices.")
    runs: list[LabelledRun] = Field(description="The runs, as they were given.")
    alike: list[list[str]] = Field(
        description="Labels of runs that gave the same answer to every item: they count twice."
    )
    suspected: int = Field(
        description="Items whose key is suspected: evidence of at least ln 100, and two runs or "
        "more for the rival."
    )
    none_right: int = Field(description="Items that no run gets right.")
    all_right: int = Field(description="Items that every run gets right.")
    negative: int = Field(description="Items with a negative point-biserial correlation.")
    mean_point_biserial: float | None = Field(
        description="Mean over the items that have one; null if none has."
    )
    items: list[ItemRow] = Field(
        description="The items, in the order to read them: by evidence, then by correlation."
    )


class ItemsSummary(Model):
    """All of ``items.json``."""

    schema_version: str = "1.0"
    rows: int = Field(description="Items of each probe that are shown.")
    probes: list[ProbeItems] = Field(description="Each probe.")


FEWEST_RUNS = 3


class ItemsOptions(Options):
    """How items are analysed."""

    rows: int = Field(25, ge=1, description="Items of each probe to show; the files hold all.")
    partial: bool = Field(False, description="Take the items that each run has, if not all.")


def _summarise(request: StudyRequest, held: Sequence[Held]) -> ItemsSummary:
    """Analyse the items of each probe, from the runs that each folder holds."""
    options: ItemsOptions = request.options
    place = {str(run.folder): str(one.folder) for one in held for run in one.runs}
    groups = labelled_by_probe([run for one in held for run in one.runs], "items", FEWEST_RUNS)
    # Runs of a score card that are told apart by their folders are told apart by the card's.
    named = [
        [Labelled(run, label.replace(f := str(run.folder), place[f])) for run, label in runs]
        for runs in groups
    ]
    return ItemsSummary(rows=options.rows, probes=[_probe(runs, options.partial) for runs in named])


def _probe(runs: Sequence[Labelled], partial: bool) -> ProbeItems:
    shown, answers = gather([run for run, _ in runs], partial=partial)
    correlation, rival = point_biserial(answers), rivals(answers)
    right, models = answers.right.sum(axis=1), answers.scored.sum(axis=1)
    for_rival = (answers.said == rival.choice[:, None]).sum(axis=1) * (rival.choice >= 0)
    suspected = (rival.evidence >= SUSPECTED) & (for_rival >= 2)
    stands_out: list[tuple[Remark, np.ndarray[tuple[int], np.dtype[np.bool_]]]] = [
        ("suspected key", suspected),
        ("no model right", right == 0),
        ("every model right", right == models),
        ("negative correlation", correlation < 0),
    ]
    # Most evidence first; ties go to items that the better models get wrong.
    order = np.lexsort((np.nan_to_num(correlation), -rival.evidence))
    known = correlation[~np.isnan(correlation)]
    sorted_items = shown.take(order).to_pylist()
    return ProbeItems(
        **place_of(runs[0].run, "probe", "split"),
        chance=float((1 / answers.choices).mean()),
        runs=[
            LabelledRun(label=label, folder=str(run.folder), accuracy=run.results.metrics.accuracy)
            for run, label in runs
        ],
        alike=_alike(answers, [label for _, label in runs]),
        suspected=int(suspected.sum()),
        none_right=int((right == 0).sum()),
        all_right=int((right == models).sum()),
        negative=int((correlation < 0).sum()),
        mean_point_biserial=float(known.mean()) if known.size else None,
        items=[
            ItemRow(
                **{name: item[name] for name in ("id", "cluster", "question", "choices")},
                key=item["answer"],
                rival=_known(int(rival.choice[at])),
                said=[_known(choice) for choice in answers.said[at].tolist()],
                models=int(models[at]),
                right=int(right[at]),
                for_rival=int(for_rival[at]),
                point_biserial=None if np.isnan(correlation[at]) else float(correlation[at]),
                evidence=float(rival.evidence[at]),
                remarks=[remark for remark, holds in stands_out if holds[at]],
            )
            for at, item in zip(order.tolist(), sorted_items, strict=True)
        ],
    )


def _known(choice: int) -> int | None:
    return None if choice < 0 else choice


def _alike(answers: Answers, labels: Sequence[str]) -> list[list[str]]:
    """Return pairs of runs whose answers are all the same."""
    return [
        [labels[one], labels[two]]
        for one, two in combinations(range(len(labels)), 2)
        if np.array_equal(answers.said[:, one], answers.said[:, two])
    ]


def _document(summary: ItemsSummary) -> doc.Document:
    names = [one.probe for one in summary.probes]
    return doc.Document(
        "Item analysis",
        name_or_count(names, "probes"),
        [_section(one, summary.rows) for one in summary.probes],
    )


def _section(one: ProbeItems, rows: int) -> doc.Section:
    shown = one.items[:rows]
    return doc.Section(
        f"{one.probe} ({one.split})",
        [
            doc.Findings(_sentences(one)),
            doc.Caveats(_caveats(one)),
            doc.Table(
                ("rank", "item", "right", "correlation", "evidence"),
                [(str(rank), *_cells(one, item)) for rank, item in enumerate(shown, 1)],
                f"The {len(shown)} items to read first, of {len(one.items):,}. An asterisk: the "
                "key is suspected to be wrong.",
                names=2,
            ),
            _scatter(one),
            doc.Table(
                ("model", "accuracy"),
                [(run.label, run.accuracy) for run in one.runs],
                f"Accuracy of each model; chance is {percent(one.chance)}",
            ),
        ],
    )


def _cells(one: ProbeItems, item: ItemRow) -> list[doc.Cell]:
    """Return the cells of an item: its choices with the models that gave them, and its numbers."""
    choices = []
    for number, text in enumerate(item.choices):
        mark = " (key)" if number == item.key else " (other)" if number == item.rival else ""
        said = ", ".join(
            run.label for run, choice in zip(one.runs, item.said, strict=True) if choice == number
        )
        choices.append(f"{text}{mark}{': ' if said else ''}{said}")
    star = "*" if "suspected key" in item.remarks else ""
    return [
        doc.Cell(item.question, item.id, tuple(choices)),
        doc.Cell(f"{item.right} of {item.models}"),
        cells.coefficient(item.point_biserial),
        doc.Cell(f"{points(item.evidence)}{star}"),
    ]


def _scatter(one: ProbeItems) -> doc.Chart | None:
    """Draw correlation over the share of models that are right; None if there is none."""
    inks: tuple[tuple[str, str, doc.Ink, bool], ...] = (
        ("other items", "o", "model", False),
        ("suspected wrong key", "D", "reference", True),
    )
    lines = []
    for name, marker, ink, suspected in inks:
        places = Counter(
            (round(100 * item.right / item.models, 1), round(item.point_biserial, 3))
            for item in one.items
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


def _sentences(one: ProbeItems) -> list[str]:
    """Return sentences on what a probe's items show."""
    total = len(one.items)
    found = [
        f"Suspected wrong keys: {one.suspected:,} of {total:,} items.",
        f"No model is right on {one.none_right:,} items, every model on {one.all_right:,}: these "
        "do not tell models apart.",
    ]
    if one.mean_point_biserial is not None:
        found.append(
            f"Mean point-biserial correlation {coefficient(one.mean_point_biserial)}; negative for "
            f"{one.negative:,} items."
        )
    return found


def _caveats(one: ProbeItems) -> list[str]:
    """Return caveats about the numbers."""
    found = []
    above = sum(run.accuracy.low > one.chance for run in one.runs)
    if above < 2:
        found.append(
            f"{above} of {len(one.runs)} models are above chance: models that guess tell "
            "nothing about keys. Add results of better models."
        )
    if len(one.runs) < 6:
        found.append(
            f"Correlations over {len(one.runs)} models vary much by chance; six or more are better."
        )
    found += [
        f"{first} and {second} give the same answer to every item, and count twice."
        for first, second in one.alike
    ]
    if any(None in item.said for item in one.items):
        found.append("Some items were not scored by all models.")
    return found


_HEAD = (
    *("probe", "split", "rank", "id", "cluster", "question", "key", "key_text", "other"),
    *("other_text", "models", "right", "for_other", "point_biserial", "evidence", "remarks"),
)


def _sheets(summary: ItemsSummary) -> dict[str, str]:
    """Return a line for each item, in the order to read them, and a column for each model."""
    labels = list(dict.fromkeys(run.label for one in summary.probes for run in one.runs))
    lines: list[Sequence[Any]] = [(*_HEAD, *labels)]
    for one in summary.probes:
        names = [run.label for run in one.runs]
        for rank, item in enumerate(one.items, 1):
            said = dict(zip(names, item.said, strict=True))
            line = (
                *(one.probe, one.split, rank, item.id, item.cluster, item.question),
                *(item.key, item.choices[item.key], item.rival),
                None if item.rival is None else item.choices[item.rival],
                *(item.models, item.right, item.for_rival),
                None if item.point_biserial is None else round(item.point_biserial, 4),
                *(round(item.evidence, 4), "; ".join(item.remarks), *map(said.get, labels)),
            )
            lines.append(["" if value is None else value for value in line])
    return {"items.csv": csv_text(lines, line_end="\n")}


class Held(NamedTuple):
    """The results in a folder: one run, or those of a score card."""

    folder: Path
    runs: list[Finished]


def _read(folder: Path) -> Held:
    if (card := read_card(folder)) is None:
        return Held(folder, [finished_in(folder)])
    places = [folder / one.folder for model in card.models for one in model.probes]
    return Held(folder, [finished_in(place) for place in places])


ITEMS = Study(
    name="items",
    help="Item analysis: which rows of a probe to reread first, such as those with suspect answer "
    "keys, from the results of several models.",
    expand=None,
    summarise=_summarise,
    document=_document,
    sheets=_sheets,
    options=ItemsOptions,
    least=FEWEST_RUNS,
    read=_read,
)
"""The study."""
