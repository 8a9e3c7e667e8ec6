"""The page of the study, ``curve.html``: generated deterministically from the summary alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluation.models.checkpoint import NO_MODEL
from evaluation.report.tables import NONE, Cell, Table, points_cell, share_cell
from evaluation.report.templates import environment
from evaluation.results.words import clip, last_name, percent
from evaluation.studies.curve.figures import learners_figure, renderings_figure, series_figure
from evaluation.studies.curve.show import remarks
from evaluation.studies.curve.types import CurveSummary, LearnerCurves, ModelCurves, Restarts
from evaluation.studies.curve.words import (
    LEARNERS,
    model_name,
    rendering_name,
    sentences,
    untrained,
)
from kbprobe.errors import require


def render(summary: CurveSummary) -> str:
    """Return the page.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    require("matplotlib", "eval", "making a page of learning curves")
    shown = _shown(summary)
    template = environment(Path(__file__).parent).get_template("curve.html.j2")
    models = [_section(one, number, _without_model(one, shown)) for number, one in enumerate(shown)]
    return template.render(
        title=_title(shown),
        models=models,
        links=_links(summary, models),
        restarts=[_restarts(one) for one in summary.restarts],
        series=[
            {
                "one": one,
                "name": last_name(one.model),
                "figure": series_figure(one, f"series{number}"),
            }
            for number, one in enumerate(summary.series)
        ],
    )


def _shown(summary: CurveSummary) -> list[ModelCurves]:
    """Return the models with sections of their own: random ones only if there are no others."""
    trained = [one for one in summary.models if one.random_init is None]
    return trained or summary.models


def _title(models: list[ModelCurves]) -> str:
    probes = list(dict.fromkeys(one.probe for one in models))
    names = list(dict.fromkeys(model_name(one) for one in models))
    what = names[0] if len(names) == 1 else f"{len(names)} models"
    return f"{what} on {probes[0] if len(probes) == 1 else f'{len(probes)} probes'}"


def _links(summary: CurveSummary, models: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the ids and names of the page's sections; none where there is one."""
    if len(models) + len(summary.series) + len(summary.restarts) < 2:
        return []
    links = [
        (held["id"], f"{clip(held['name'], 60)} on {clip(held['one'].probe, 60)}")
        for held in models
    ]
    links += [("series", "By training step")] * bool(summary.series)
    links += [("restarts", "Random initialisation")] * bool(summary.restarts)
    return [*links, ("reading", "How to read it")]


def _without_model(one: ModelCurves, models: list[ModelCurves]) -> list[LearnerCurves]:
    """Return the model-free learners run on a model's probe; none for those themselves."""
    if one.model == NO_MODEL:
        return []
    return [
        learner
        for other in models
        if (other.model, other.probe, other.split) == (NO_MODEL, one.probe, one.split)
        for learner in other.learners
    ]


def _section(one: ModelCurves, number: int, without_model: list[LearnerCurves]) -> dict[str, Any]:
    """Return what the section of a model on a probe shows."""
    best = max(one.learners, key=lambda learner: learner.own.ws.value)
    return {
        "id": f"m{number}",
        "name": model_name(one),
        "one": one,
        "best": best,
        "floor": one.floor,
        "untrained": untrained(one),
        "seen": [
            (learner.learner, LEARNERS.get(learner.learner), sentences(one, learner))
            for learner in one.learners
        ],
        "remarks": remarks(one),
        "figure": learners_figure(one, f"m{number}", without_model),
        "further": [
            figure
            for at in range(len(one.learners))
            if (figure := renderings_figure(one, at, f"m{number}l{at}")) is not None
        ],
        "overall": _overall(one),
        "sizes": _by_size(one),
        "selectivity": _selectivity(one),
        "codes": _codes(one),
    }


def _overall(one: ModelCurves) -> Table:
    """Return the header and rows of the table of WS, MAX and LangSense."""
    controls = list(
        dict.fromkeys(found.config for learner in one.learners for found in learner.lang_sense)
    )
    head = ["learner", "WS", "MAX", "rows at MAX"]
    for config in controls:
        name = rendering_name(config)
        head += [f"LangSense, {name}", f"WS minus WS on {name}"]
    rows = []
    for learner in one.learners:
        curve, held = learner.own, {found.config: found for found in learner.lang_sense}
        cells = [
            share_cell(curve.ws),
            share_cell(curve.maximum.accuracy),
            Cell(f"{curve.maximum.size:,}"),
        ]
        for config in controls:
            found = held.get(config)
            cells += (
                [NONE, NONE]
                if found is None
                else [Cell(f"{found.value.value:.1f}"), points_cell(found.difference)]
            )
        rows.append((learner.learner, cells))
    return tuple(head), rows


def _by_size(one: ModelCurves) -> Table:
    """Return the header and rows of the table of accuracy by size."""
    rows = []
    for learner in one.learners:
        for curve in learner.curves:
            at = {point.size: point for point in curve.points}
            name = learner.learner
            if len(learner.curves) > 1:
                name = f"{name}, {rendering_name(curve.rendering)}"
            cells = [share_cell(at[size].accuracy) if size in at else NONE for size in one.sizes]
            rows.append((name, cells))
    draws = {
        point.size: len(point.draws) for learner in one.learners for point in learner.own.points
    }
    counted = [f"{size:,} ({draws.get(size, 0)})" for size in one.sizes]
    return ("rows (draws)", *counted), rows


def _selectivity(one: ModelCurves) -> Table | None:
    rows = [
        (
            f"{learner.learner}, {found.size:,} rows",
            [points_cell(found.value), NONE if found.seen is None else Cell(percent(found.seen))],
        )
        for learner in one.learners
        for found in learner.selectivity
    ]
    head = ("learner and rows", "selectivity (points)", "first argument seen in training")
    return (head, rows) if rows else None


def _codes(one: ModelCurves) -> Table | None:
    rows = [
        (
            f"{learner.learner}, {rendering_name(curve.rendering)}",
            [
                Cell(text)
                for text in (
                    f"{code.rows:,}",
                    f"{code.uniform_bits:,.0f}",
                    f"{code.bits:,.0f}",
                    f"{code.compression:.2f}",
                    f"{code.draws}",
                )
            ],
        )
        for learner in one.learners
        for curve in learner.curves
        if (code := curve.code_length) is not None
    ]
    head = ("learner", "rows", "uniform bits", "online bits", "compression", "draws")
    return (head, rows) if rows else None


def _restarts(one: Restarts) -> dict[str, Any]:
    """Return the header and rows of the table of randomly initialised models."""
    head = ("", "WS", *(f"{point.size:,}" for point in one.points))

    def deviation(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.1f}"

    rows = [
        ("mean", [Cell(percent(held.mean)) for held in (one.ws, *one.points)]),
        (
            "standard deviation (points)",
            [Cell(deviation(held.deviation)) for held in (one.ws, *one.points)],
        ),
    ]
    return {"one": one, "name": last_name(one.model), "table": (head, rows)}
