"""Results as tables: one row per result, and the tables in a study's summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from evaluation.names import model_name
from evaluation.results.types import METRIC_OF, Estimate, Metrics, Results
from kbprobe.intervals import estimate_of
from kbprobe.tables import Measured, PlainTable

READING = (
    "Shares in percent, with 95% intervals: half their width, or the distances or places of their "
    "ends where these are not even."
)
"""How to read the numbers of a table in print."""


class ResultColumn(NamedTuple):
    """A column of a table of results: what it is called in print, and its value."""

    title: str
    value: Callable[[Results], Any]


def _of(about: Callable[[Metrics], Any]) -> Callable[[Results], Any]:
    return lambda result: about(result.metrics)


def measured(
    number: Estimate | float | None, kind: Literal["share", "points", "number"] = "share"
) -> Measured | None:
    """Return a number, or an estimate with its interval and rows, as a cell of a table."""
    if isinstance(number, Estimate):
        return Measured(number.value, number.low, number.high, number.n, kind)
    return None if number is None else Measured(number, kind=kind)


COLUMNS = {
    "probe": ResultColumn("Probe", lambda result: result.probe.name),
    "split": ResultColumn("Split", lambda result: result.probe.split),
    "model": ResultColumn("Model", lambda result: model_name(result.model.id)),
    "scorer": ResultColumn("Scorer", lambda result: result.scoring.scorer),
    "metric": ResultColumn("Metric", _of(lambda metrics: METRIC_OF[metrics.normalization])),
    "rows": ResultColumn("Questions", _of(lambda metrics: metrics.items)),
    "scored": ResultColumn("Scored", _of(lambda metrics: metrics.scored)),
    "clusters": ResultColumn("Clusters", _of(lambda metrics: metrics.clusters)),
    "chance": ResultColumn("Chance", _of(lambda metrics: measured(metrics.chance))),
    "accuracy": ResultColumn("Accuracy", _of(lambda metrics: measured(metrics.accuracy))),
    "near": ResultColumn("Near", _of(lambda metrics: measured(metrics.near_accuracy))),
    "random": ResultColumn("Random", _of(lambda metrics: measured(metrics.random_accuracy))),
    "strict": ResultColumn("Strict", _of(lambda metrics: measured(metrics.strict_accuracy))),
    "similarity": ResultColumn(
        "Similarity", _of(lambda m: m.similarity and measured(m.similarity.accuracy))
    ),
    "beyond_similarity": ResultColumn(
        "Beyond similarity",
        _of(lambda m: m.similarity and measured(m.similarity.difference, "points")),
    ),
    "near_beyond_similarity": ResultColumn(
        "Near, beyond similarity",
        _of(lambda m: m.similarity and measured(m.similarity.near_difference, "points")),
    ),
    "ties": ResultColumn("Ties", _of(lambda metrics: metrics.ties)),
    "calibration_error": ResultColumn(
        "Calibration error", _of(lambda metrics: measured(metrics.calibration_error))
    ),
    "best_baseline": ResultColumn(
        "Best baseline", _of(lambda m: m.strongest_baseline and m.strongest_baseline[0])
    ),
    "best_baseline_accuracy": ResultColumn(
        "Its accuracy", _of(lambda m: m.strongest_baseline and measured(m.strongest_baseline[1]))
    ),
    "seed": ResultColumn("Seed", lambda result: result.seed),
}
"""The columns of a table of results, by their names in CSV. Shares are printed in percent."""


def table_of(results: Sequence[Results], columns: Sequence[str] = ()) -> PlainTable:
    """Return a table with one row per result, and all columns or those named."""
    head = list(columns or COLUMNS)
    rows = [[COLUMNS[name].value(one) for name in head] for one in results]
    return PlainTable(head, rows, [COLUMNS[name].title for name in head])


def tables_within(summary: Mapping[str, Any]) -> dict[str, PlainTable]:
    """Return the tables of a study's summary: its ``tables``, or each list of records by its path.

    Nested records become columns ``outer.inner``, except estimates, which are numbers with their
    intervals. Nested lists become separate tables, whose rows repeat the text values of the
    enclosing records. The notes of a summary's sections are notes of each table.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    own, units, heads = summary.get("tables"), summary.get("units", {}), summary.get("heads", {})
    notes = _notes(summary.get("sections", ())) if isinstance(own, Mapping) else []
    _gather(own if isinstance(own, Mapping) else summary, "", {}, found)
    tables = {}
    for name, rows in found.items():
        head = list(dict.fromkeys(column for row in rows for column in row))
        kinds = [units.get(name, {}).get(column, "number") for column in head]
        cells = [
            [
                cell._replace(kind=kind) if isinstance(cell := row.get(column), Measured) else cell
                for column, kind in zip(head, kinds, strict=True)
            ]
            for row in rows
        ]
        estimated = any(isinstance(cell, Measured) for row in cells for cell in row)
        called = heads.get(name, {})
        titles = [called.get(column) or column.replace("_", " ") for column in head]
        reading = [READING] if estimated else []
        tables[name] = PlainTable(head, cells, titles, notes=[*reading, *notes])
    return tables


def _notes(sections: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the notes of sections, each with the titles of its sections if there are several."""
    of_notes: dict[str, list[str]] = {}
    for section in sections:
        for note in section.get("notes", ()):
            of_notes.setdefault(note, []).append(section.get("title", ""))
    return [
        f"{'; '.join(titles)}: {note}" if len(titles) < len(sections) else note
        for note, titles in of_notes.items()
    ]


def _gather(
    record: Mapping[str, Any],
    path: str,
    around: Mapping[str, Any],
    found: dict[str, list[dict[str, Any]]],
) -> dict[str, Any]:
    """Return the columns of a record; add the tables nested in it to ``found``."""
    own: dict[str, Any] = {}
    lists: list[tuple[str, list[Mapping[str, Any]]]] = []
    for name, value in record.items():
        if (estimate := estimate_of(value)) is not None:
            own[name] = measured(estimate, "number")
        elif isinstance(value, Mapping):
            for inner, cell in _gather(value, f"{path}{name}.", around, found).items():
                own[f"{name}.{inner}"] = cell
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            lists.append((name, value))
        elif not isinstance(value, list):
            own[name] = value
        elif value and all(not isinstance(one, list) for one in value):
            own[name] = ", ".join(map(str, value))
    named = {name: cell for name, cell in own.items() if isinstance(cell, str)}
    for name, records in lists:
        rows = found.setdefault(f"{path}{name}", [])
        further = {f"{path}{key}": cell for key, cell in named.items()}
        outside = {**around, **further}
        for one in records:
            rows.append({**outside, **_gather(one, f"{path}{name}.", outside, found)})
    return own
