"""The page of the study, ``items.html``: generated deterministically from the summary alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from evaluation.report.figures import draw
from evaluation.report.tables import Table, share_cell
from evaluation.report.templates import environment
from evaluation.results.analyses.inks import MODEL, REFERENCE
from evaluation.studies.item_analysis.show import evidence_text
from evaluation.studies.item_analysis.types import ItemRow, ItemsSummary, ProbeItems
from evaluation.studies.item_analysis.words import correlation_text, remarks, sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class _Choice(NamedTuple):
    text: str
    mark: str
    models: str


class _Row(NamedTuple):
    """An item as the table shows it."""

    rank: int
    item: ItemRow
    choices: list[_Choice]
    correlation: str
    evidence: str


def render(summary: ItemsSummary) -> str:
    """Return the page."""
    probes = [
        {
            "id": f"p{number}",
            "one": one,
            "found": sentences(one),
            "remarks": remarks(one),
            "accuracies": _accuracies(one),
            "figure": _scatter(one, f"items{number}"),
            "rows": [_row(one, rank, item) for rank, item in enumerate(one.items[: summary.rows])],
        }
        for number, one in enumerate(summary.probes)
    ]
    names = [one.probe for one in summary.probes]
    links = [(f"p{number}", name) for number, name in enumerate(names)]
    template = environment(Path(__file__).parent).get_template("items.html.j2")
    return template.render(
        title=names[0] if len(names) == 1 else f"{len(names)} probes",
        links=[*links, ("reading", "How to read it")] if len(links) > 1 else [],
        probes=probes,
    )


def _row(one: ProbeItems, rank: int, item: ItemRow) -> _Row:
    labels = [run.label for run in one.runs]
    choices = []
    for number, text in enumerate(item.choices):
        said = [label for label, choice in zip(labels, item.said, strict=True) if choice == number]
        mark = "key" if number == item.key else "other" if number == item.rival else ""
        choices.append(_Choice(text, mark, ", ".join(said)))
    return _Row(rank + 1, item, choices, correlation_text(item), evidence_text(item))


def _accuracies(one: ProbeItems) -> Table:
    return ("model", "accuracy"), [(run.label, [share_cell(run.accuracy)]) for run in one.runs]


def _scatter(one: ProbeItems, name: str) -> Markup | None:
    """Draw correlation over the share of models that are right; None where there is nothing."""
    kinds = [
        (
            "other items" if not suspected else "suspected wrong key",
            "o" if not suspected else "D",
            MODEL if not suspected else REFERENCE,
            Counter(
                (round(100 * item.right / item.models, 1), round(item.point_biserial, 3))
                for item in one.items
                if item.point_biserial is not None
                and ("suspected key" in item.remarks) is suspected
            ),
        )
        for suspected in (False, True)
    ]
    if not any(points for *_, points in kinds):
        return None

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        for label, marker, colour, points in kinds:
            if points:
                x, y = zip(*points, strict=True)
                sizes = [10 + 6 * min(count, 20) for count in points.values()]
                axes.scatter(
                    x, y, sizes, color=colour, marker=marker, alpha=0.6, label=label, linewidths=0
                )
        axes.axhline(0, color=REFERENCE, linestyle="--", linewidth=1)
        axes.set_xlim(-3, 103)
        axes.set_ylim(-1.05, 1.05)
        axes.xaxis.set_major_formatter("{x:.0f}%")
        axes.set_xlabel("models that are right")
        axes.set_title("Point-biserial correlation", loc="left", fontsize=11)
        figure.legend(loc="outside upper left", ncols=2)

    label = "Point-biserial correlation of items by the share of models that are right."
    return draw(name, f"{label} The numbers are in items.csv.", 3.6, plot)
