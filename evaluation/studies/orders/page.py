"""The page of the study, ``orders.html``: generated deterministically from the summary alone."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from evaluation.report.tables import NONE, Cell, Table, share_cell
from evaluation.report.templates import environment
from evaluation.results.words import last_name, percent
from evaluation.studies.orders.figures import accuracy_figure, letters_figure
from evaluation.studies.orders.types import ModelOrders, OrdersSummary
from evaluation.studies.orders.words import orders_text, sentences
from evaluation.studies.variation.words import spread_table, variants_table
from kbprobe.errors import require


def render(summary: OrdersSummary) -> str:
    """Return the page.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    require("matplotlib", "eval", "making a page of orders")
    ordered = sorted(summary.models, key=lambda one: (one.probe, one.split))
    groups = [list(held) for _, held in groupby(ordered, lambda one: (one.probe, one.split))]
    probes = [_section(held, f"p{number}") for number, held in enumerate(groups)]
    names = [held[0].probe for held in groups]
    links = [(f"p{number}", name) for number, name in enumerate(names)]
    template = environment(Path(__file__).parent).get_template("orders.html.j2")
    return template.render(
        title=names[0] if len(names) == 1 else f"{len(names)} probes",
        links=[*links, ("reading", "How to read it")] if len(links) > 1 else [],
        probes=probes,
    )


def _section(models: list[ModelOrders], name: str) -> dict[str, Any]:
    spread = spread_table([(last_name(one.model), one.variation) for one in models])
    return {
        "id": name,
        "first": models[0],
        "figure": accuracy_figure(models, name),
        "spread": spread,
        "models": [_model(one, f"{name}m{number}") for number, one in enumerate(models)],
    }


def _model(one: ModelOrders, name: str) -> dict[str, Any]:
    return {
        "name": last_name(one.model),
        "orders": orders_text(one),
        "found": sentences(one),
        "notes": one.notes,
        "figure": letters_figure(one, name),
        "letters": _letters(one),
        "variants": variants_table("order", one.orders),
    }


def _letters(one: ModelOrders) -> Table:
    rows = [
        (
            row.letter,
            [
                NONE if row.accuracy is None else share_cell(row.accuracy),
                share_cell(row.chosen),
                Cell(percent(row.expected)),
            ],
        )
        for row in one.letters
    ]
    return ("letter", "accuracy where it is right", "answers", "equally often"), rows
