"""What the command prints at the end of a build, and of ``build-probe show``."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builders.engine.audit.report import missing_baselines
from kbprobe.format.dataset import DEFAULT_CONFIG
from kbprobe.format.items import plain
from kbprobe.options import option_name, spelled

if TYPE_CHECKING:
    from rich.table import Table

    from builders.engine.pipeline import Built
    from builders.engine.probe import Probe

SAMPLES = 3
NEAR = 50
"""Rows looked through for a sample of another family."""


def show(manifest: dict[str, Any], built: Built, folder: Path) -> None:
    """Print counts, cells, audit, samples, and how to load the probe."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = 240  # It would be 80, whatever the reader; tables need more.
    counts = manifest["counts"]
    splits = ", ".join(f"{name} {rows:,}" for name, rows in counts["splits"].items() if rows)
    console.print(f"\n[bold]{manifest['probe']}[/]: {counts['rows']:,} rows ({splits})")
    if unlabelled := counts.get("unlabelled"):
        console.print(f"[red]{unlabelled:,} rows have no answer yet[/]: people are to give them.")
    console.print(
        f"{counts['question_answer_pairs']:,} distinct (question, answer) pairs on "
        f"{counts['concepts']:,} concepts, {counts['mean_cluster']} rows a cluster\n"
    )
    console.print(_cells(counts["cells"]))
    if manifest["audit"]:
        _print_audit(console, manifest["audit"])
    for row in _samples(built):
        _print_row(console, row)
    _controls(console, built)
    seconds = ", ".join(f"{name} {taken:.1f}" for name, taken in built.seconds.items())
    console.print(f"\nIn {folder} ({sum(built.seconds.values()):.1f} s: {seconds}). Load it with:")
    console.print(f'  datasets.load_dataset("{folder}")\n')


def _cells(cells: dict[str, dict[str, int]]) -> Table:
    from rich.table import Table

    columns = list(dict.fromkeys(name for row in cells.values() for name in row))
    table = Table(title="rows: hops x distractor family", title_justify="left", box=None)
    table.add_column("hops", justify="right")
    for column in columns:
        table.add_column(column, justify="right")
    for hops, row in cells.items():
        table.add_row(hops, *(f"{row.get(column, 0):,}" for column in columns))
    return table


def _print_audit(console: Any, report: dict[str, Any]) -> None:
    if missing := missing_baselines(report):
        console.print(f"[red]{missing}[/]\n")
        return
    console.print(_audit(report))
    _flags(console, report)


def _audit(report: dict[str, Any]) -> Table:
    from rich.table import Table

    families = list(next(iter(report["baselines"].values())))
    table = Table(
        title=f"audit: accuracy in % without knowing anything (chance {report['chance']:.1%})",
        title_justify="left",
        box=None,
    )
    table.add_column("baseline")
    for family in families:
        table.add_column(family, justify="right")
    for name, cells in report["baselines"].items():
        shown = []
        for family in families:
            cell = cells[family]
            margin = 50 * (cell["high"] - cell["low"])
            colour = {"high": "red", "low": "red", "few rows": "dim"}.get(cell["verdict"], "")
            text = f"{100 * cell['accuracy']:.1f} ±{margin:.1f}"
            shown.append(f"[{colour}]{text}[/]" if colour else text)
        table.add_row(name, *shown)
    return table


def _flags(console: Any, report: dict[str, Any]) -> None:
    if not report["flags"]:
        console.print(f"No baseline is off chance by more than {report['bar']}.\n")
        return
    console.print(f"[red]Off chance by more than {report['bar']}:[/]")
    for flag in report["flags"]:
        console.print(f"  {flag}")
    console.print()


def _samples(built: Built) -> list[dict[str, Any]]:
    """Rows from the largest split, spread over it, each of another family if there are several."""
    items = max(built.splits.values(), key=lambda split: split.rows)
    step = max(items.rows // SAMPLES, 1)
    rows: list[dict[str, Any]] = []
    for start in range(0, min(step * SAMPLES, items.rows), step):
        near = plain(items.table(start, start + min(step, NEAR))).to_pylist()
        shown = {row["distractor_family"] for row in rows}
        fresh = [row for row in near if row["distractor_family"] not in shown]
        rows.append((fresh or near)[0])
    return rows


def _controls(console: Any, built: Built) -> None:
    """Print what each control makes of the first row."""
    from rich.markup import escape

    for config, splits in built.configs.items():
        if config != DEFAULT_CONFIG:
            row = plain(next(iter(splits.values())).table(0, 1)).to_pylist()[0]
            texts = textwrap.shorten(" / ".join(row["choices"]["text"]), 110, placeholder="...")
            console.print(f"[dim]{config}:[/] {escape(row['question'])}  [dim]{escape(texts)}[/]")


def _print_row(console: Any, row: dict[str, Any]) -> None:
    from rich.markup import escape

    hops = f", {row['hops']} hop{'s' * (row['hops'] != 1)}" if row["hops"] else ""
    console.print(escape(row["question"]) + f"  [dim]({row['distractor_family']}{hops})[/]")
    texts = zip(row["choices"]["label"], row["choices"]["text"], strict=True)
    for at, (label, text) in enumerate(texts):
        mark = "[green]*[/]" if at == row["answer"] else " "
        console.print(f"  {mark} {label}. {escape(textwrap.shorten(text, 110, placeholder='...'))}")


def show_probe(probe: Probe) -> None:
    """Print a probe's summary, wordings and options."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    template = probe.template(probe.options())
    console = Console(highlight=False)
    console.print(f"[bold]{probe.name}[/]\n{probe.summary}\n\nWordings:")
    for wording in template.questions:
        console.print(f"  [dim]{wording.id}:[/] {escape(wording.text)}")
    console.print(f"  [dim]choice:[/] {escape(' '.join(template.choice.split()))}\n")
    console.print(f"Fields of a question: {', '.join(sorted(probe.question_fields))}")
    console.print(f"Fields of a choice: {', '.join(sorted(probe.choice_fields))}")
    console.print(f"Controls: {', '.join(probe.controls) or 'none'}")
    console.print(f"Variants: {', '.join(probe.variants) or 'none'}\n")
    table = Table(box=None, title="Options", title_justify="left")
    for column in ("option", "default", "what it does"):
        table.add_column(column, overflow="fold")
    for name, info in probe.options.model_fields.items():
        text = spelled(info.default)
        table.add_row(
            option_name(name),
            escape(textwrap.shorten(text, 40)),
            escape(info.description or ""),
        )
    console.print(table)
