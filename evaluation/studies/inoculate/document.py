"""The document of inoculation."""

from __future__ import annotations

from dataclasses import replace

from evaluation.report import cells
from evaluation.report.breakdowns import heat_map
from evaluation.results.types import Estimate
from evaluation.results.words import difference, last_name, name_or_count, percent, points
from evaluation.studies.inoculate.record import (
    Inoculated,
    InoculateSummary,
    ModelInoculation,
)
from kbprobe import document as doc


def document(summary: InoculateSummary) -> doc.Document:
    """Return the document: each model on each probe, and transfer between probes."""
    probes = dict.fromkeys(probe.probe for one in summary.models for probe in one.probes)
    models = [last_name(one.model) for one in summary.models]
    sections = [_section(one, probe) for one in summary.models for probe in one.probes]
    if transfers := [_transfer_map(one) for one in summary.models if one.transfer]:
        sections.append(doc.Section("Transfer", transfers))
    return doc.Document(
        "Inoculation by fine-tuning",
        f"{name_or_count(models, 'models')} on {name_or_count(probes, 'probes')}",
        sections,
    )


def _section(one: ModelInoculation, probe: Inoculated) -> doc.Section:
    maps = _heat_maps(probe)
    return doc.Section(
        f"{last_name(one.model)} on {probe.probe}",
        [
            _tiles(probe),
            _chart(one, probe),
            doc.Heading("Findings"),
            doc.Findings(_sentences(one, probe)),
            doc.Caveats(one.notes),
            doc.Heading("Numbers"),
            _accuracies(one, probe),
            _strict(probe),
            doc.Heading("Hops and distractors") if maps else None,
            *maps,
            _tried(probe),
        ],
    )


def _tiles(probe: Inoculated) -> doc.Tiles:
    best = probe.at_best
    low, high = points(best.cost.low), points(best.cost.high)
    return doc.Tiles(
        {
            f"Test, after {best.size:,} rows": cells.headline(best.test),
            "Test, before training": cells.headline(probe.test_before),
            "Cost, in points": doc.Cell(points(best.cost.value), f"95%: {low} to {high}"),
            **cells.asked(probe.chance, probe.rows, probe.clusters),
        }
    )


def _chart(one: ModelInoculation, probe: Inoculated) -> doc.Chart:
    """Draw accuracy on the probe and the original task by training size (WordNetQA, Figure 4)."""
    places = range(1 + len(probe.points))
    test = [probe.test_before, *(point.test for point in probe.points)]
    original = [one.original_before, *(point.original for point in probe.points)]
    lines = [
        doc.Line(probe.probe, places, test, 0),
        doc.Line(last_name(one.original), places, original, 1, marker="s"),
    ]
    chance = doc.Level("chance on the probe", probe.chance)
    names = ["0", *(f"{point.size:,}" for point in probe.points)]
    return doc.Chart(
        f"Test accuracy on {probe.probe} and accuracy on the original task by rows trained on.",
        [doc.Panel(lines, [chance], from_zero=True)],
        doc.Across("rows of the probe trained on", "names", names),
        note="The best setting for each number of rows. The bands are 95% intervals.",
    )


def _accuracies(one: ModelInoculation, probe: Inoculated) -> doc.Table:
    """Return the table of accuracies and costs by size: Table 7 of WordNetQA."""
    rows: list[doc.Row] = [
        ("0", probe.before, probe.test_before, None, one.original_before, None),
        *(
            (
                f"{point.size:,} ({point.learning_rate:g}, {point.epochs})",
                *(point.probe, point.test, cells.points(point.gain)),
                *(point.original, cells.points(point.cost)),
            )
            for point in probe.points
        ),
    ]
    return doc.Table(
        ("rows (rate, epochs)", "validation", "test", "gain", "original task", "cost"),
        rows,
        f"Accuracy on the probe and on {last_name(one.original)}; cost: points lost on the latter",
    )


def _strict(probe: Inoculated) -> doc.Table:
    """Return the table of strict cluster accuracies: Table 8 of WordNetQA."""
    before = (0, probe.test_before, probe.strict_before, probe.strict_difference_before)
    after = [(p.size, p.test, p.strict, p.strict_difference) for p in probe.points]
    return doc.Table(
        ("rows", "accuracy", "strict accuracy", "difference"),
        [
            (f"{size:,}", test, strict, cells.points(less))
            for size, test, strict, less in (before, *after)
            if strict is not None
        ],
        "Strict accuracy on test: the share of clusters with every question answered correctly, "
        "and its difference from accuracy in points",
    )


def _tried(probe: Inoculated) -> doc.Table:
    return doc.Table(
        ("setting", "probe", "original task", "mean"),
        [
            (
                f"{point.size:,} rows, rate {tried.learning_rate:g}, {tried.epochs} epochs",
                *(tried.probe, tried.original, (tried.probe + tried.original) / 2),
            )
            for point in probe.points
            for tried in point.tried
        ],
        "Mean accuracy over the seeds on validation, by setting",
        fold="All settings",
    )


def _heat_maps(probe: Inoculated) -> list[doc.HeatMap]:
    """Return test accuracy by hops and distractors, before and after: Figure 3 of WordNetQA."""
    layout = probe.table_before
    before = heat_map(layout, "Test accuracy before training", layout)
    trained = f"after training on {probe.best:,} rows"
    after = heat_map(probe.table_after, f"Test accuracy {trained}", layout)
    if before is None or after is None:
        return []
    change = [
        [_gain(*pair) for pair in zip(*rows, strict=True)]
        for rows in zip(before.cells, after.cells, strict=True)
    ]
    title = f"Change {trained}, in points"
    change_map = replace(before, caption=title, cells=change, scale="points", faint=frozenset())
    return [before, after, change_map]


def _gain(before: doc.Number | None, after: doc.Number | None) -> float | None:
    """Return the difference of two accuracies in points; None if either is missing."""
    if not isinstance(before, Estimate) or not isinstance(after, Estimate):
        return None
    return 100 * (after.value - before.value)


def _transfer_map(one: ModelInoculation) -> doc.HeatMap:
    names = list(dict.fromkeys(cell.trained_on for cell in one.transfer))
    return doc.HeatMap.of_pairs(
        f"{last_name(one.model)}: test accuracy minus that of the model before training, in "
        "points, after training with the best size and setting",
        "trained on / tested on",
        names,
        {(cell.trained_on, cell.tested_on): cell.gain for cell in one.transfer},
        "points",
        frozenset((at, at) for at in range(len(names))),
    )


def _sentences(one: ModelInoculation, probe: Inoculated) -> list[str]:
    """Return sentences on what training on a probe changed, for the best number of rows."""
    best = probe.at_best
    said = [
        f"Before: {percent(probe.test_before.value)} of the test questions right "
        f"(chance {percent(probe.chance)}). After {best.size:,} rows: {percent(best.test.value)}, "
        f"a difference of {difference(best.gain)}.",
        f"Cost on the original task: {difference(best.cost)}, from "
        f"{percent(one.original_before.value)} to {percent(best.original.value)}"
        + ("." if best.cost.low > 0 or best.cost.high < 0 else "; its interval includes zero."),
        _verdict(probe),
    ]
    if probe.strict_before is not None and best.strict is not None:
        said.append(
            f"Clusters with every question answered correctly: "
            f"{percent(probe.strict_before.value)} before, "
            f"{percent(best.strict.value)} after."
        )
    return said


def _verdict(probe: Inoculated) -> str:
    """Interpret the outcome as Liu et al. (2019) do, by the gain and its cost."""
    best = probe.at_best
    if best.gain.low <= 0:
        return (
            "No gain can be detected: the model lacks the knowledge that the probe asks for and "
            "cannot learn it from so few rows, or none of the settings is suitable."
        )
    if best.cost.value >= best.gain.value:
        return (
            "The gain is no larger than the cost: the model has forgotten the original task rather "
            "than adapted to the probe."
        )
    return (
        "The gain is larger than the cost: at least this part of what the model got wrong "
        f"before training can be learnt from {best.size:,} rows. Compare it with what models "
        "without pre-training learn from as many rows (evaluate-probe baselines)."
    )
