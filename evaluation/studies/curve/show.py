"""The summary as tables on a terminal."""

from __future__ import annotations

from evaluation.results.types import Estimate
from evaluation.results.words import last_name
from evaluation.studies.curve.types import CurveSummary, LearnerCurves, ModelCurves, Spread
from evaluation.studies.curve.words import model_name, rendering_name


def show(summary: CurveSummary) -> None:
    """Print WS, MAX and LangSense, then accuracy by size, in percent."""
    from evaluation.results.console import print_rows, wide_console
    from evaluation.results.summary import percent, points

    console = wide_console()
    heads = ("chance", "baseline", "zero-shot", "WS", "MAX", "at", "LangSense", "less control")
    rows: list[tuple[str, ...]] = [
        (
            one.probe,
            model_name(one),
            learner.learner,
            f"{100 * one.chance:.1f}",
            f"{100 * one.baselines[0].accuracy:.1f}" if one.baselines else "-",
            percent(one.own_zero_shot),
            percent(learner.own.ws),
            f"{100 * learner.own.maximum.accuracy.value:.1f}",
            f"{learner.own.maximum.size:,}",
            " / ".join(f"{found.value.value:.1f}" for found in learner.lang_sense) or "-",
            " / ".join(points(found.difference) for found in learner.lang_sense) or "-",
        )
        for one in summary.models
        for learner in one.learners
    ]
    print_rows(("probe", "model", "learner", *heads), rows, names=3)
    sizes = sorted({size for one in summary.models for size in one.sizes})
    rows = [
        (one.probe, model_name(one), learner.learner, *cells)
        for one in summary.models
        for learner in one.learners
        for cells in _by_size(learner, sizes)
    ]
    names = ("probe", "model", "learner", "rendering")
    print_rows((*names, *(f"{size:,}" for size in sizes), "bits", "compression"), rows, names=4)
    for restarts in summary.restarts:
        trained = restarts.trained_ws
        console.print(
            f"  {restarts.probe}, {last_name(restarts.model)}, {restarts.learner}: WS of "
            f"{restarts.models} randomly initialised models {_spread(restarts.ws)}"
            + ("" if trained is None else f", trained {100 * trained.value:.1f}")
        )
    for series in summary.series:
        steps = ", ".join(f"{p.step:,}: {100 * p.ws.value:.1f}" for p in series.points)
        console.print(
            f"  {series.probe}, {last_name(series.model)}, {series.learner}: WS by step {steps}"
        )
    for one in summary.models:
        for line in remarks(one):
            console.print(f"  {one.probe}, {model_name(one)}: {line}", soft_wrap=True)


def remarks(one: ModelCurves) -> list[str]:
    """Say how numbers were made, and what a reader must know."""
    said = [f"Weights of WS and LangSense: {one.weighting}."]
    if one.left_out:
        left = ", ".join(f"{size:,}" for size in one.left_out)
        said.append(f"Sizes left out, since train has fewer rows: {left}.")
    if one.baselines:
        said.append(f"Strongest baseline of the audit: {one.baselines[0].name}.")
    return said + one.notes


def _by_size(learner: LearnerCurves, sizes: list[int]) -> list[tuple[str, ...]]:
    rows = []
    for curve in learner.curves:
        at = {point.size: point.accuracy for point in curve.points}
        code = curve.code_length
        rows.append(
            (
                rendering_name(curve.rendering),
                *(_mean(at.get(size)) for size in sizes),
                "-" if code is None else f"{code.bits:,.0f}",
                "-" if code is None else f"{code.compression:.2f}",
            )
        )
    return rows


def _mean(estimate: Estimate | None) -> str:
    return "-" if estimate is None else f"{100 * estimate.value:.1f}"


def _spread(spread: Spread) -> str:
    mean = f"{100 * spread.mean:.1f}"
    return mean if spread.deviation is None else f"{mean} (deviation {100 * spread.deviation:.1f})"
