"""The table of results for a paper: models by probe, with what is reached without knowledge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evaluation.names import NO_NAMES, DisplayNames, model_name
from evaluation.papers.reading import common_similarity
from evaluation.report.suite.leaderboard import Entry, Leaderboard
from evaluation.results import intervals
from evaluation.results.breakdown import NEAR_AND_RANDOM, near_rows, scored_rows
from evaluation.results.frames import COLUMNS, READING, measured
from evaluation.results.similarity import similarity_answers
from evaluation.results.types import DIVIDED, Estimate, Normalization
from evaluation.results.words import matched_remark
from evaluation.studies.base import Finished, finished_in
from evaluation.studies.table import Contrast, RunRow
from kbprobe.arrays import Ints
from kbprobe.columns import to_numpy
from kbprobe.tables import Measured, PlainTable

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT = ("accuracy", "near", "near_beyond_similarity", "beyond_similarity")
"""The columns of numbers, if none are named."""

_NAMES = ("probe", "model")

_MARK = "†"
"""Marks the models that the choices of a probe are matched on."""


class _Row(NamedTuple):
    """A row of the table: a model's result, or what is reached on a probe without knowledge.

    ``matched``: the probe's choices are matched on the model, which is not compared with others.
    """

    probe: str
    name: str
    values: dict[str, Any]
    matched: bool = False


def results_table(
    board: Leaderboard,
    columns: Sequence[str],
    names: DisplayNames = NO_NAMES,
    *,
    baselines: bool = False,
    in_print: bool = False,
) -> PlainTable:
    """Return the table of all results, probe by probe, the best mean first.

    Args:
        board: the results; their folders are read again for ``in_print``.
        columns: names of :data:`~evaluation.results.frames.COLUMNS`. The model, and the probe if
            there are several, come first if they are not named.
        names: the names given to baselines.
        baselines: whether chance, similarity and the best other baseline have rows.
        in_print: whether the best model of a probe is marked where its paired difference from each
            other one has an interval above 0, and with † the models that the choices are matched
            on, which are not compared.
    """
    named = [
        name
        for name in _NAMES
        if name not in columns and (name == "model" or len(board.probes) > 1)
    ]
    head = [*named, *columns]
    rows: list[_Row] = []
    rules: list[int] = []
    notes: list[str] = []
    for number, probe in enumerate(board.probes):
        entries = [(s.name, e) for s in board.systems if (e := s.entries[number]) is not None]
        own = [
            _Row(
                probe.name,
                name,
                _values(entry, head),
                matched_remark(entry.run.results) is not None,
            )
            for name, entry in entries
        ]
        runs: list[Finished] = []
        if in_print or (baselines and {"near", "random"} & set(head)):
            runs = [finished_in(Path(entry.run.folder)) for _, entry in entries]
        if in_print:
            ranked = [number for number, row in enumerate(own) if not row.matched]
            _mark_best([own[number] for number in ranked], [runs[number] for number in ranked])
            own = [row._replace(name=f"{row.name}{_MARK}") if row.matched else row for row in own]
        rules.append(len(rows))
        rows += own
        if baselines:
            rules.append(len(rows))
            rows += _without_knowledge(probe.name, [e for _, e in entries], runs, names)
        notes += _notes(probe.name, entries)
    cells = [
        [{"probe": row.probe, "model": row.name}.get(name, row.values.get(name)) for name in head]
        for row in rows
    ]
    titles = [COLUMNS[name].title for name in head]
    footnotes = (_NOT_RANKED,) if in_print and any(row.matched for row in rows) else ()
    return PlainTable(head, cells, titles, rules, [_reading(rows, baselines), *notes], footnotes)


_NOT_RANKED = f"{_MARK} The choices are matched on this encoder: it is not ranked."


def default_columns(table: PlainTable) -> list[str]:
    """Return which of the default columns are shown, in print: those with values.

    What is beyond similarity is shown of the rows with near distractors, if it is known of all.
    """
    shown = table.filled
    at = list(table.head).index("near_beyond_similarity")
    known = [row[at] is not None for row in table.rows if row[1 + at] is not None]
    if known and all(known):
        shown.remove("beyond_similarity")
    return shown


def _values(entry: Entry, columns: Sequence[str]) -> dict[str, Any]:
    return {name: COLUMNS[name].value(entry.run.results) for name in columns}


_PARTS: dict[str, Callable[[pa.Table], Ints] | None] = {
    "accuracy": None,
    **NEAR_AND_RANDOM,
    # Similarity is right on the same rows for all models: it is accuracy that differs.
    "beyond_similarity": None,
    "near_beyond_similarity": near_rows,
}
"""The columns in which models are compared row by row, and the rows that count; None: all."""


def _mark_best(rows: Sequence[_Row], runs: Sequence[Finished]) -> None:
    """Mark the best number of each column, if it differs from that of each other model."""
    for column, part in _PARTS.items() if len(rows) > 1 else ():
        cells = [row.values.get(column) for row in rows]
        numbers = [cell.value for cell in cells if isinstance(cell, Measured)]
        if len(numbers) < len(cells):
            continue
        first = numbers.index(max(numbers))
        others = (run for place, run in enumerate(runs) if place != first)
        if all(_is_better(runs[first], other, part) for other in others):
            rows[first].values[column] = rows[first].values[column]._replace(best=True)


def _is_better(run: Finished, other: Finished, part: Callable[[pa.Table], Ints] | None) -> bool:
    """Return whether the paired difference from another run has an interval above 0."""
    pair = Contrast.of(RunRow({}, [other]), RunRow({}, [run]), run.results.seed, partial=True)
    if part is not None:
        pair = replace(pair, part=part(pair.paired.first))
    return pair.clusters.size > 0 and pair.difference.low > 0


def _without_knowledge(
    probe: str, entries: Sequence[Entry], runs: Sequence[Finished], names: DisplayNames
) -> list[_Row]:
    """Return the rows of chance, similarity and the best other baseline."""
    # Some runs on a probe may lack the audit's baselines, such as those of fine-tuned models.
    metrics = max((e.metrics for e in entries), key=lambda metrics: len(metrics.baselines))
    chance = {"accuracy": metrics.chance, "strict": metrics.strict_chance}
    if runs:
        chance |= {name: chance_on(runs[0], part) for name, part in NEAR_AND_RANDOM.items()}
    rows = [
        _Row(probe, _named("chance", names), {name: measured(of) for name, of in chance.items()})
    ]
    if (similarity := common_similarity(entries)) is not None:
        own = {"accuracy": measured(similarity.accuracy)}
        if runs and similarity.encoder is None:
            found = similarity_by_part(runs[0])
            own |= {name: measured(accuracy) for name, accuracy in found.items()}
        rows.append(_Row(probe, _named(similarity.name, names), own))
    if (other := metrics.strongest_shortcut) is not None:
        name, share = other
        low, high = metrics.baseline_intervals.get(name, (None, None))
        own = {"accuracy": Measured(share, low, high, kind="share")}
        rows.append(_Row(probe, _named(name, names), own))
    return rows


def chance_on(run: Finished, part: Callable[[pa.Table], Ints]) -> float | None:
    """Return the mean of one over the number of choices, of the scored rows that count."""
    import pyarrow.compute as pc

    scored, *_ = scored_rows(run.predictions)
    choices = to_numpy(pc.list_value_length(scored["choices"]))[part(scored)]
    return float(np.mean(1 / choices)) if choices.size else None


def similarity_by_part(run: Finished) -> dict[str, Estimate]:
    """Return the accuracy of the most similar choice with near and with random distractors."""
    seed = run.results.seed
    answers = similarity_answers(run.predictions, seed)
    if answers is None:
        return {}
    scored, right, cluster = scored_rows(answers)
    rows = {name: part(scored) for name, part in NEAR_AND_RANDOM.items()}
    return {
        name: intervals.accuracy(right[own], cluster[own], seed)
        for name, own in rows.items()
        if own.size
    }


def _named(baseline: str, names: DisplayNames) -> str:
    """Return the name given to a baseline, or its own with a capital letter."""
    given = names.of(baseline)
    return given if given != baseline else f"{baseline[:1].upper()}{baseline[1:]}"


def _reading(rows: Sequence[_Row], baselines: bool) -> str:
    """Return how to read the numbers of the table."""
    said = READING
    if any(
        row.values.get(name)
        for row in rows
        for name in ("beyond_similarity", "near_beyond_similarity")
    ):
        said += (
            " Beyond similarity: accuracy less that of the choice most similar to the question, "
            "in percentage points, on the same rows."
        )
    if baselines:
        said += " Baselines other than chance and similarity are of the audit, on all its rows."
    if any(
        isinstance(cell, Measured) and cell.best for row in rows for cell in row.values.values()
    ):
        others = f"model without {_MARK}" if any(row.matched for row in rows) else "model"
        said += f" Bold: the paired difference from every other {others} has an interval above 0."
    return said


def _notes(probe: str, entries: Sequence[tuple[str, Entry]]) -> list[str]:
    """Return what a reader must know of the rows of a probe, and of single results."""
    metrics = entries[0][1].metrics
    asked = f"{probe}: {metrics.items:,} questions in {metrics.clusters:,} clusters"
    if similarity := common_similarity(entry for _, entry in entries):
        by = model_name(similarity.encoder.name) if similarity.encoder else "the encoder of kbprobe"
        asked += f"; similarity is by {by}"
    elif any(entry.metrics.similarity for _, entry in entries):
        asked += "; similarity differs, as models were scored on other rows or by other seeds"
    said = {name: [*entry.remarks] for name, entry in entries}
    shared = [
        line for line in next(iter(said.values())) if all(line in own for own in said.values())
    ]
    ways = {name: entry.metrics.normalization for name, entry in entries}
    for name, lines in said.items():
        lines[:] = [line for line in lines if line not in shared]
        if len(set(ways.values())) > 1:
            lines.append(f"answers are chosen by {_COMPARED[ways[name]]}")
    lines = [
        "; ".join([asked, *shared]),
        *(f"{probe}, {n}: {'; '.join(s)}" for n, s in said.items() if s),
    ]
    return [f"{line}." for line in lines]


_COMPARED: dict[Normalization, str] = {**DIVIDED, "sum": "scores as they are"}
