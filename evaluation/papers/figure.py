"""What a figure for a paper shows of finished results, or of the learning curves of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from evaluation.names import DisplayNames
from evaluation.papers.reading import common_similarity, read_board
from evaluation.papers.table import chance_on, similarity_by_part
from evaluation.report.charts import MARKERS
from evaluation.report.suite.document import maps_of
from evaluation.report.suite.leaderboard import Entry, Leaderboard
from evaluation.report.vector import Drawn
from evaluation.results.breakdown import NEAR_AND_RANDOM, by_hops, headline_rows
from evaluation.results.pairs import read_pair
from evaluation.results.similarity import similarity_answers
from evaluation.results.types import Estimate, Group
from evaluation.studies.base import finished_in
from evaluation.studies.curve.numbers import joint_charts, read_curves
from kbprobe import document as doc
from kbprobe.errors import UsageError
from kbprobe.format.manifest import MOST_SIMILAR

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
        return list(joint_charts([read_curves(place) for place in places], names))
    board = read_board(places, names)
    numbers = range(len(board.probes))
    if kind == "accuracy":
        return [dots for number in numbers for dots in _accuracies(board, number, names)]
    if kind == "heatmap":
        maps = [heat for number in numbers for heat in _maps(board, number)]
        if not maps:
            raise UsageError(
                "no probe has questions that differ in hops or distractors: draw --kind accuracy"
            )
        return list(maps)
    charts = [chart for number in numbers if (chart := _hops(board, number, names)) is not None]
    if not charts:
        raise UsageError("no probe has questions of two numbers of hops: draw --kind accuracy")
    return list(charts)


def _entries(board: Leaderboard, number: int) -> list[tuple[str, Entry]]:
    """Return the results on a probe, with the names of their models."""
    found = [(system.name, system.entries[number]) for system in board.systems]
    return [(name, entry) for name, entry in found if entry is not None]


def _accuracies(board: Leaderboard, number: int, names: DisplayNames) -> list[doc.Dots]:
    """Return accuracy, and where a probe has both, that with near and with random distractors."""
    entries, probe = _entries(board, number), board.probes[number]
    similarity = common_similarity(entry for _, entry in entries)

    def dots(
        label: str, accuracies: Sequence[Estimate], similar: Estimate | None, chance: float
    ) -> doc.Dots:
        named = zip(entries, accuracies, strict=True)
        levels = [_chance(chance, names)]
        if similarity is not None and similar is not None:
            name = names.of(similarity.name)
            levels.insert(0, doc.Level(name, similar, "reference", "dashed"))
        return doc.Dots(label, [doc.Dot(name, number) for (name, _), number in named], levels)

    every = [entry.metrics for _, entry in entries]
    of_parts = {
        "near": [m.near_accuracy for m in every if m.near_accuracy],
        "random": [m.random_accuracy for m in every if m.random_accuracy],
    }
    whole = similarity and similarity.accuracy
    all_rows = dots(probe.name, [m.accuracy for m in every], whole, probe.chance)
    if any(len(own) < len(every) for own in of_parts.values()):
        return [all_rows]
    run = finished_in(Path(entries[0][1].run.folder))
    own_encoder = similarity is not None and similarity.encoder is not None
    similar = {} if own_encoder else similarity_by_part(run)
    return [
        all_rows,
        *(
            dots(
                f"{probe.name}, {name} distractors",
                own,
                similar.get(name),
                chance_on(run, NEAR_AND_RANDOM[name]) or probe.chance,
            )
            for name, own in of_parts.items()
        ),
    ]


def _chance(chance: float, names: DisplayNames) -> doc.Level:
    return doc.Level(names.of("chance"), chance)


def _maps(board: Leaderboard, number: int) -> list[doc.HeatMap]:
    """Return the heat map of each model on a probe, with the probe's name if there are several."""
    maps = maps_of(board, number, False)
    if len(board.probes) == 1:
        return maps
    probe = board.probes[number].name
    return [replace(heat, caption=f"{probe}: {heat.caption}") for heat in maps]


def _hops(board: Leaderboard, number: int, names: DisplayNames) -> doc.Chart | None:
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
        series[names.of(MOST_SIMILAR)] = similar
    # A model looks the same in all charts, also where others lack results.
    styles = {system.name: style for style, system in enumerate(board.systems)}
    lines = []
    for place, (name, own) in enumerate(series.items()):
        # Next to each other, so that intervals do not hide each other.
        shift = _APART * (place - (len(series) - 1) / 2)
        places = [hops.index(int(group.name)) + shift for group in own]
        ink: doc.Ink = "reference" if own is similar else styles[name]
        marker = "d" if own is similar else MARKERS[styles[name] % len(MARKERS)]
        accuracies = [group.accuracy for group in own]
        lines.append(doc.Line(name, places, accuracies, ink, "none", marker))
    probe = board.probes[number]
    panel = doc.Panel(lines, [_chance(probe.chance, names)], probe.name)
    across = doc.Across("hops", "names", list(map(str, hops)))
    return doc.Chart(f"Accuracy on {probe.name} by hops.", [panel], across)
