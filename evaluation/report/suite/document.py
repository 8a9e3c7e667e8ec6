"""The document of a suite: the leaderboard, each model, and heat maps of hops and distractors."""

from __future__ import annotations

from urllib.parse import urlencode

from evaluation.report.breakdowns import heat_map, named
from evaluation.report.suite.collect import Collection
from evaluation.report.suite.leaderboard import Entry, Leaderboard, Reaches, System
from evaluation.results.parts import SMALL
from evaluation.results.types import ModelInfo, Stratum
from evaluation.results.words import clip, counts, percent
from kbprobe import document as doc

LEFT_OUT = 200
"""Maximum number of folders listed that were left out."""

MEAN = "Mean above chance"
"""The name of the mean over the probes."""

REACHED: dict[Reaches, tuple[str, ...]] = {
    "nothing": ("○ not above chance",),
    "chance": ("◐ not above the best baseline",),
    "shortcut": (),
}
"""What is said of a result that does not show knowledge."""


def document(found: Collection, board: Leaderboard) -> doc.Document:
    """Return the document of a suite.

    Its last section, on the questions, introduces the browser of questions.
    """
    models, probes = (
        f"{len(items)} {what}{'' if len(items) == 1 else 's'}"
        for items, what in ((board.systems, "model"), (board.probes, "probe"))
    )
    questions = sum(probe.rows for probe in board.probes)
    has_questions = bool(found.rows)
    intro = f"{len(found.runs):,} results on {questions:,} questions."
    return doc.Document(
        "Results of a suite",
        f"{models}, {probes}",
        [
            doc.Section("", [doc.Text(intro, note=True), _left_out(found)]),
            doc.Section("Leaderboard", _leaderboard(board), name="leaderboard"),
            doc.Section("Models", _models(board), name="models"),
            doc.Section("Hops and distractors", _maps(board, has_questions), name="maps"),
            doc.Section("Provenance", [_provenance(board)], name="provenance"),
            doc.Section("Questions", [_questions(has_questions)], name="questions"),
        ],
    )


def _questions(has_questions: bool) -> doc.Text:
    if not has_questions:
        return doc.Text("This page was made without questions (--rows 0).", note=True)
    return doc.Text("All questions, with the answers of all models; the filters choose.", note=True)


def _left_out(found: Collection) -> doc.Fold | None:
    count = len(found.left_out)
    if not count:
        return None
    title = f"{count:,} folder{'' if count == 1 else 's'} left out"
    return doc.Fold(title, [doc.Caveats([clip(line, 400) for line in found.left_out[:LEFT_OUT]])])


def _leaderboard(board: Leaderboard) -> list[doc.Part]:
    strict = [
        [entry and entry.metrics.strict_accuracy for entry in system.entries]
        for system in board.systems
    ]
    return [
        _board(board),
        doc.Text(
            "Colours, and the mean, are of what accuracies are above chance: (accuracy − chance) / "
            "(1 − chance), so that 0% is chance and 100% all right, however many choices a probe "
            "has. The mean is over all probes, each counted once; models without results on all of "
            "them have none. Probes differ in chance and in difficulty, so it ranks models on "
            "these probes only. The best baseline is the strongest of the probe’s audit, of those "
            "recorded with it, and of the choice most similar to the question. A result is above "
            "chance, or above a baseline, if its 95% interval is; above similarity, if that of the "
            "difference on the same rows is above 0.",
            note=True,
        ),
        doc.Fold(
            "Strict accuracy",
            [
                doc.HeatMap(
                    "Strict accuracy: share of clusters with every question right, with its 95% "
                    "interval",
                    "Model",
                    [system.name for system in board.systems],
                    [MEAN, *(probe.name for probe in board.probes)],
                    [
                        [system.strict_mean, *row]
                        for system, row in zip(board.systems, strict, strict=True)
                    ],
                    apart=frozenset({1}),
                    chance=(0.0, *(probe.strict_chance or 0.0 for probe in board.probes)),
                )
            ],
        ),
    ]


def _board(board: Leaderboard) -> doc.HeatMap:
    """Return the leaderboard: models by probes, with chance and the best baseline below."""
    cells: list[list[doc.Number | None]] = []
    lines: dict[tuple[int, int], tuple[str, ...]] = {}
    last = len(board.systems)
    columns = zip(*(system.entries for system in board.systems), strict=True)
    asked = [{counts(e.metrics.accuracy) for e in column if e is not None} for column in columns]
    for row, system in enumerate(board.systems):
        cells.append([system.mean, *(entry and entry.metrics.accuracy for entry in system.entries)])
        for column, entry in enumerate(system.entries, 1):
            if entry is not None:
                # What all models of a column share is said once, below them.
                own = [counts(entry.metrics.accuracy)] if len(asked[column - 1]) > 1 else []
                lines[row, column] = (*own, *REACHED[entry.reaches])
    cells.append([None, *(probe.chance for probe in board.probes)])
    cells.append([None, *(probe.baseline and probe.baseline[1] for probe in board.probes)])
    for column, probe in enumerate(board.probes, 1):
        counted = asked[column - 1]
        lines[last, column] = tuple(counted) if len(counted) == 1 else (f"{probe.rows:,} rows",)
        if probe.baseline is not None:
            lines[last + 1, column] = (clip(probe.baseline[0], 40),)
    return doc.HeatMap(
        "Accuracy with its 95% interval. Select a column’s header to sort by it.",
        "Model",
        [*(system.name for system in board.systems), "Chance", "Best baseline"],
        [MEAN, *(probe.name for probe in board.probes)],
        cells,
        lines=lines,
        apart=frozenset({1}),
        chance=(0.0, *(probe.chance for probe in board.probes)),
        foot=2,
    )


def _models(board: Leaderboard) -> list[doc.Part]:
    return [
        doc.Fold(system.name, _model(system), open=number == 0)
        for number, system in enumerate(board.systems)
    ]


def _model(system: System) -> list[doc.Part]:
    info = _info(system)
    tiles = {
        MEAN: doc.Cell("–", "not on all probes")
        if system.mean is None
        else doc.Cell(percent(system.mean), "0%: chance, 100%: all right"),
        "Above chance": doc.Cell(
            f"{system.reaching('chance', 'shortcut')} of {len(system.found)}", "probes"
        ),
        "Above the best baseline": doc.Cell(
            f"{system.reaching('shortcut')} of {len(system.found)}",
            "probes, similarity among them",
        ),
        "Parameters": doc.Cell(short(info.parameters or 0) or "–", clip(info.architecture, 60)),
    }
    head = ("Probe", "Accuracy", "Chance", "Best baseline", "Strict accuracy", "Questions", "")
    return [
        doc.Tiles(tiles),
        doc.Table(
            head,
            [
                (
                    _name(entry),
                    entry.metrics.accuracy,
                    entry.metrics.chance,
                    entry.probe.baseline and entry.probe.baseline[1],
                    entry.metrics.strict_accuracy and entry.metrics.strict_accuracy.value,
                    entry.metrics.scored,
                    doc.Bar(entry.metrics.accuracy, entry.metrics.chance),
                )
                for entry in system.found
            ],
            "All probes; chance is dashed.",
            faint=frozenset(
                row for row, entry in enumerate(system.found) if entry.metrics.accuracy.n < SMALL
            ),
        ),
        doc.Findings(
            [
                f"{clip(entry.probe.name, 80)}: {clip(remark, 400)}."
                for entry in system.found
                for remark in entry.remarks
            ]
        ),
    ]


def _name(entry: Entry) -> doc.Cell:
    """Return the name of a result's probe, with what the result does not reach."""
    return doc.Cell(clip(entry.probe.name, 80), " ".join(REACHED[entry.reaches]))


def short(count: int) -> str:
    """Format a number of parameters with three digits; empty if it is 0.

    >>> short(135_000_000), short(7_240_000_000), short(950), short(0)
    ('135M', '7.24B', '950', '')
    """
    for unit, letter in ((10**9, "B"), (10**6, "M")):
        if count >= unit:
            return f"{count / unit:.3g}{letter}"
    return f"{count:,}" if count else ""


def _maps(board: Leaderboard, has_questions: bool) -> list[doc.Part]:
    """Return the heat maps of each probe, in one layout for all models."""
    folds = [
        doc.Fold(probe.name, maps, open=False)
        for number, probe in enumerate(board.probes)
        if (maps := maps_of(board, number, has_questions))
    ]
    if not folds:
        text = "No probe has questions that differ in hops or distractors."
        return [doc.Text(text, note=True)]
    text = (
        "Accuracy by the number of edges between concept and right answer (hops) and by the family "
        "of the distractors, with their distance k′ from the right answer. Striped cells rest on "
        f"fewer than {SMALL} questions."
    )
    if has_questions:
        text += " Select a cell to see its questions."
    return [doc.Text(text, note=True), *folds]


def maps_of(board: Leaderboard, number: int, has_questions: bool) -> list[doc.HeatMap]:
    """Return the heat map of each model on a probe; cells lead to questions, if there are some."""
    entries = [system.entries[number] for system in board.systems]
    tables = [() if entry is None else entry.metrics.table for entry in entries]
    layout = list({(s.hops, s.family, s.distractor_hops): s for t in tables for s in t}.values())
    maps = []
    for model, (system, table) in enumerate(zip(board.systems, tables, strict=True)):

        def link(stratum: Stratum, model: int = model) -> str:
            place = {
                "hops": stratum.hops,
                "family": stratum.family,
                "distance": stratum.distractor_hops,
            }
            chosen = {name: named(value) for name, value in place.items()}
            return urlencode({"probe": number, "model": model, **chosen})

        if table:
            chance = board.probes[number].chance
            links = link if has_questions else None
            maps.append(heat_map(table, system.name, layout, chance=chance, link=links))
    return [heat for heat in maps if heat is not None]


def _info(system: System) -> ModelInfo:
    return system.found[0].run.results.model


def _scorers(system: System) -> str:
    names = (entry.run.results.scoring.scorer for entry in system.found)
    return ", ".join(dict.fromkeys(names))


def _provenance(board: Leaderboard) -> doc.Fold:
    models = doc.Table.of(
        board.systems,
        {
            "Model": lambda system: clip(system.name, 120),
            "Id": lambda system: clip(_info(system).id, 200),
            "Revision": lambda system: clip(_info(system).revision or "–", 40),
            "Weights (sha256)": lambda system: _info(system).weights_sha256[:16],
            "Type": lambda system: f"{_info(system).dtype}, {_info(system).device}",
            "Scored as": lambda system: clip(_scorers(system), 200),
        },
        "Models. All options of a run are in its results.json.",
        names=6,
    )
    probes = doc.Table.of(
        board.probes,
        {
            "Probe": lambda probe: clip(probe.name, 120),
            "Split": lambda probe: clip(probe.key[1], 60),
            "Rows (sha256)": lambda probe: probe.key[2][:16],
            "Questions": lambda probe: probe.rows,
            "Clusters": lambda probe: probe.clusters,
        },
        "Probes",
        names=3,
    )
    return doc.Fold("Models and probes", [models, probes])
