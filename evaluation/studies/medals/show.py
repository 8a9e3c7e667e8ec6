"""The table of medals as text: on a terminal, and in Markdown."""

from __future__ import annotations

from evaluation.results.types import Estimate
from evaluation.results.words import interval, percent, points
from evaluation.studies.curve.words import rendering_name
from evaluation.studies.medals.types import Medal, Medals

SIGNS = {"success": "✔", "partial": "◐", "none": "–"}


def show(medals: Medals) -> None:
    """Print the table, why each medal was given, and the rule."""
    from evaluation.results.console import print_rows, wide_console

    console = wide_console()
    rows = [
        (probe, *(spelled(medals.at(probe, model)) for model in medals.models))
        for probe in medals.probes
    ]
    print_rows(("probe", *medals.models), rows, names=1)
    console.print()
    for medal in medals.medals:
        console.print(f"  {medal.probe}, {medal.model}: {medal.reason}", soft_wrap=True)
    console.print()
    for sentence in medals.rule:
        console.print(f"  {sentence}", soft_wrap=True)


def spelled(medal: Medal | None) -> str:
    """Format a medal with its WS: ``✔ success 81.2``; an asterisk: without controls."""
    if medal is None:
        return ""
    star = "*" if medal.unchecked else ""
    ws = medal.ws or medal.best_ws
    return f"{SIGNS[medal.award]} {medal.award}{star} {100 * ws.value:.1f}"


def details(medal: Medal) -> tuple[str, ...]:
    """Return the cells of a medal's row: award, floor, WS, zero-shot, controls, reason."""
    gaps = "; ".join(
        f"{rendering_name(gap.config)} {points(gap.difference.value)} "
        f"({points(gap.difference.low)} to {points(gap.difference.high)})"
        for gap in medal.controls
    )
    learner = medal.learner or medal.best_learner
    return (
        medal.award,
        f"{percent(medal.floor.accuracy)} ({medal.floor.name})",
        f"{learner} {_cell(medal.ws or medal.best_ws)}",
        "not available" if medal.zero_shot is None else _cell(medal.zero_shot),
        gaps or "not run",
        medal.reason,
    )


HEADS = ("medal", "floor", "WS", "zero-shot", "WS minus the control's", "why")
"""Column headers of :func:`details`."""


def markdown(medals: Medals) -> str:
    """Return the table as a Markdown document."""
    lines = [
        "# Medals",
        "",
        *_table(
            ("probe", *medals.models),
            [
                (probe, *(spelled(medals.at(probe, model)) for model in medals.models))
                for probe in medals.probes
            ],
        ),
    ]
    lines += ["", "The number is WS in percent.", "", "## The rule", ""]
    lines += [f"- {sentence}" for sentence in medals.rule]
    lines += ["", "## Why", ""]
    lines += _table(
        ("probe", "model", *HEADS),
        [(medal.probe, medal.model, *details(medal)) for medal in medals.medals],
    )
    return "\n".join(lines) + "\n"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    def line(cells: tuple[str, ...]) -> str:
        return f"| {' | '.join(map(_escaped, cells))} |"

    return [line(head), f"|{'---|' * len(head)}", *map(line, rows)]


def _escaped(text: str) -> str:
    """Escape characters that would end a cell or be read as markup."""
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def _cell(estimate: Estimate) -> str:
    return f"{percent(estimate.value)} ({interval(estimate)})"
