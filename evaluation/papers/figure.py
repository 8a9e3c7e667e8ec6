"""What a figure for a paper shows of finished results, or of the learning curves of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from evaluation.names import DisplayNames
from evaluation.papers.reading import common_similarity, read_board
from evaluation.report.charts import MARKERS
from evaluation.report.suite.document import maps_of
from evaluation.report.suite.leaderboard import Entry, Leaderboard, ProbeColumn
from evaluation.report.vector import Drawn
from evaluation.results.breakdown import by_hops, headline_rows
from evaluation.results.pairs import read_pair
from evaluation.results.similarity import similarity_answers
from evaluation.results.types import Group
from evaluation.studies.curve.numbers import joint_charts, read_curves
from kbprobe import document as doc
from kbprobe.errors import UsageError

Kind: TypeAlias = Literal["accuracy", "hops", "curve", "heatmap"]
"""What is drawn: accuracies, accuracy by hops, learning curves, or hops by distractors."""


_APART = 0.08
"""Distance of the numbers of two models at the same place."""


def figure_of(places: Sequence[Path], kind: Kind, names: DisplayNames) -> list[Drawn]:
    """Return what is drawn: a chart, dot plot or heat map for each probe, or each model on it.

    Raises:
        UsageError: the folders hold nothing of this kind.
        KbprobeError: no results can be read.
    """
    if kind == "curve":
        models = [model for place in places for model in read_curves(place)[1]]
        return list(joint_charts(models, names))
    board = read_board(places, names)
    numbers = range(len(board.probes))
    if kind == "accuracy":
        return [_accuracies(board, number) for number in numbers]
    if kind == "heatmap":
        maps = [heat for number in numbers for heat in _maps(board, number)]
        if not maps:
            raise UsageError(
                "no probe has questions that differ in hops or distractors: draw --kind accuracy"
            )
        return list(maps)
    charts = [chart for number in numbers if (chart := _hops(board, number)) is not None]
    if not charts:
        raise UsageError("no probe has questions of two numbers of hops: draw --kind accuracy")
    return list(charts)


def _entries(board: Leaderboard, number: int) -> list[tuple[str, Entry]]:
    """Return the results on a probe, with the names of their models."""
    found = [(system.name, system.entries[number]) for system in board.systems]
    return [(name, entry) for name, entry in found if entry is not None]


def _accuracies(board: Leaderboard, number: int) -> doc.Dots:
    entries = _entries(board, number)
    dots = [doc.Dot(name, entry.metrics.accuracy) for name, entry in entries]
    levels = [_chance(board.probes[number])]
    if (similarity := common_similarity(entry for _, entry in entries)) is not None:
        level = similarity.accuracy.value
        levels.insert(0, doc.Level(similarity.name, level, "reference", "dashed"))
    return doc.Dots(board.probes[number].name, dots, levels)


def _chance(probe: ProbeColumn) -> doc.Level:
    return doc.Level("chance", probe.chance)


def _maps(board: Leaderboard, number: int) -> list[doc.HeatMap]:
    """Return the heat map of each model on a probe, with the probe's name if there are several."""
    maps = maps_of(board, number, False)
    if len(board.probes) == 1:
        return maps
    probe = board.probes[number].name
    return [replace(heat, caption=f"{probe}: {heat.caption}") for heat in maps]


def _hops(board: Leaderboard, number: int) -> doc.Chart | None:
    """Return accuracy by hops, of models and of similarity; None if hops do not vary."""
    groups: dict[str, list[Group]] = {}
    similar: list[Group] = []
    entries = _entries(board, number)
    shared = common_similarity(entry for _, entry in entries) is not None
    for name, entry in entries:
        results, predictions = read_pair(Path(entry.run.folder))
        counted = headline_rows(predictions)
        groups[name] = by_hops(counted)
        if shared and not similar:
            answers = similarity_answers(counted, results.seed)
            similar = [] if answers is None else by_hops(answers)
    hops = sorted({int(group.name) for own in groups.values() for group in own})
    if len(hops) < 2:
        return None

    series = {name: own for name, own in groups.items() if own}
    if similar:
        series["most similar choice"] = similar
    lines = []
    for place, (name, own) in enumerate(series.items()):
        # Next to each other, so that intervals do not hide each other.
        shift = _APART * (place - (len(series) - 1) / 2)
        places = [hops.index(int(group.name)) + shift for group in own]
        ink: doc.Ink = "reference" if own is similar else place
        marker = "d" if own is similar else MARKERS[place % len(MARKERS)]
        accuracies = [group.accuracy for group in own]
        lines.append(doc.Line(name, places, accuracies, ink, "none", marker))
    probe = board.probes[number]
    panel = doc.Panel(lines, [_chance(probe)], probe.name)
    across = doc.Across("hops", "names", list(map(str, hops)))
    return doc.Chart(f"Accuracy on {probe.name} by hops.", [panel], across)
