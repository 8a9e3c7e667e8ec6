"""Results as tables: one row per result, and the tables in a study's summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.names import model_name
from evaluation.results.types import Estimate, Results
from kbprobe.tables import PlainTable

_ENDS = ("value", "low", "high")


def table_of(results: Sequence[Results]) -> PlainTable:
    """Return a table with one row per result: what was scored, and all accuracies."""
    rows = [_row(one) for one in results]
    head = list(dict.fromkeys(name for row in rows for name in row))
    return PlainTable(head, [[row.get(name) for name in head] for row in rows])


def _row(result: Results) -> dict[str, Any]:
    metrics = result.metrics
    best, best_share = metrics.strongest_baseline or (None, None)
    return {
        "probe": result.probe.name,
        "split": result.probe.split,
        "model": model_name(result.model.id),
        "scorer": result.scoring.scorer,
        "rows": metrics.items,
        "scored": metrics.scored,
        "clusters": metrics.clusters,
        "chance": metrics.chance,
        **_ends("accuracy", metrics.accuracy),
        **_ends("strict", metrics.strict_accuracy),
        "ties": metrics.ties,
        "calibration_error": metrics.calibration_error,
        "best_baseline": best,
        "best_baseline_accuracy": best_share,
        "seed": result.seed,
    }


def _ends(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    names = (name, f"{name}_low", f"{name}_high")
    return {one: getattr(estimate, end, None) for one, end in zip(names, _ENDS, strict=True)}


def tables_within(summary: Mapping[str, Any]) -> dict[str, PlainTable]:
    """Return the tables of a study's summary: its ``tables``, or each list of records by its path.

    Nested records become columns ``outer.inner``. Nested lists become separate tables, whose rows
    repeat the text values of the enclosing records.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    own = summary.get("tables")
    _gather(own if isinstance(own, Mapping) else summary, "", {}, found)
    tables = {}
    for name, rows in found.items():
        head = list(dict.fromkeys(column for row in rows for column in row))
        tables[name] = PlainTable(head, [[row.get(column) for column in head] for row in rows])
    return tables


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
        if isinstance(value, Mapping):
            for inner, cell in _gather(value, f"{path}{name}.", around, found).items():
                own[f"{name}.{inner}"] = cell
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            lists.append((name, value))
        elif not isinstance(value, list):
            own[name] = value
        elif all(not isinstance(one, list) for one in value):
            own[name] = ", ".join(map(str, value))
    named = {name: cell for name, cell in own.items() if isinstance(cell, str)}
    for name, records in lists:
        rows = found.setdefault(f"{path}{name}", [])
        further = {f"{path}{key}": cell for key, cell in named.items()}
        outside = {**around, **further}
        for one in records:
            rows.append({**outside, **_gather(one, f"{path}{name}.", outside, found)})
    return own
