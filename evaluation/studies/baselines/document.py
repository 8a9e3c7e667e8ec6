"""The document of baselines."""

from __future__ import annotations

from evaluation.report import cells
from evaluation.results.words import name_or_count, percent
from evaluation.studies.baselines.record import BaselinesSummary, Measurement
from kbprobe.document import Caveats, Cell, Document, Dot, Dots, Level, Section, Table, Tiles


def document(summary: BaselinesSummary) -> Document:
    """Return the document: a section for each probe."""
    names = dict.fromkeys(one.probe for one in summary.probes)
    return Document(
        "Baselines",
        name_or_count(names, "probes"),
        [_section(one) for one in summary.probes],
        reading=[
            "**Partial-input baselines** see the choices and not the question. If they score above "
            "chance, the choices themselves give the answer away: a model may do as well without "
            "any knowledge of what is asked.",
            "**Models of question and choice** over word vectors have no pre-training beyond the "
            "vectors. Their accuracy was learnt from the training rows. Compare them with a "
            "language model trained on as many rows.",
            "**Intervals** resample clusters of test rows and draws of training rows jointly.",
        ],
    )


def _section(one: Measurement) -> Section:
    config = "" if one.config is None else f", config {one.config}"
    return Section(
        f"{one.probe}{config} ({one.split})",
        [_tiles(one), _dots(one), _table(one), Caveats(one.notes)],
        link=one.probe,
    )


def _tiles(one: Measurement) -> Tiles:
    best = max(one.baselines, key=lambda measured: measured.accuracy.value)
    return Tiles(
        {
            "Strongest baseline": Cell(percent(best.accuracy.value), best.name),
            "Chance": Cell(percent(one.chance), "1 / number of choices"),
            "Questions": Cell(f"{one.rows:,}", f"{one.clusters:,} clusters"),
            "Training rows available": cells.count(one.train_rows),
        }
    )


def _dots(one: Measurement) -> Dots:
    return Dots(
        f"Accuracy of each baseline on {one.probe}, with 95% intervals and chance.",
        [
            *(Dot(measured.name, measured.accuracy) for measured in one.baselines),
            *(Dot(measured.name, measured.accuracy, reference=True) for measured in one.beside),
        ],
        [Level("chance", one.chance)],
    )


def _table(one: Measurement) -> Table:
    return Table.of(
        [*one.baselines, *one.beside],
        {
            "baseline": lambda measured: measured.name,
            "reads": lambda measured: measured.reads,
            "accuracy": lambda measured: cells.share(measured.accuracy),
            "less chance": lambda measured: cells.points(measured.over_chance),
            "trained on": lambda measured: cells.count(measured.train_rows),
            "draws": lambda measured: cells.count(len(measured.draws)),
            "seconds": lambda measured: f"{measured.seconds:,.1f}",
        },
        f"Accuracy of each baseline on {one.rows:,} rows in {one.clusters:,} clusters, with 95% "
        "intervals: mean over draws of training rows, and of guesses. Chance is "
        f"{percent(one.chance)}; differences from it are in percentage points",
        names=2,
    )
