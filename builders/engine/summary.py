"""What the command prints at the end of a build, and of ``build-probe show``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from builders.engine.card import first_row, told_wordings
from builders.engine.drops import told_drops, told_fewer
from builders.engine.options import RANDOM
from kbprobe.audit.report import baseline_table, missing_baselines, on_similarity, unflagged
from kbprobe.format.items import plain
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.options import choices_of, option_name, shown_default
from kbprobe.terminal.console import Console

if TYPE_CHECKING:
    from builders.engine.pipeline import Built
    from builders.engine.probe import Probe

SAMPLES = 3
NEAR = 50
"""Number of rows searched for a sample of another family."""
PREVIEWED, SEARCHED = 5, 20_000
"""Number of rows of each relation that a preview shows, of so many rows."""
LONG = 500
"""Length of a template above which ``show`` omits its branches."""


def show(manifest: dict[str, Any], built: Built, folder: Path) -> None:
    """Print counts, cells, audit, samples, and how to load the probe."""
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = 240  # It would otherwise be 80, but tables need more.
    counts = manifest["counts"]
    splits = ", ".join(f"{name} {rows:,}" for name, rows in counts["splits"].items() if rows)
    console.print(f"\n[bold]{manifest['probe']}[/]: {counts['rows']:,} rows ({splits})")
    if unlabelled := counts.get("unlabelled"):
        sheets = f"release-probe annotate export {folder} -o SHEETS"
        console.print(
            f"[red]{unlabelled:,} rows have no answer yet[/]: people give them ({sheets})."
        )
    for sentence in told_fewer(manifest):
        console.print(f"[red]{escape(sentence)}[/]")
    for sentence in told_wordings(manifest):
        console.print(escape(sentence))
    distinct = f"{counts['question_answer_pairs']:,} distinct (question, answer) pairs"
    if unlabelled:
        distinct = f"{counts['questions']:,} distinct questions"
    console.print(
        f"{distinct} on {counts['concepts']:,} concepts, "
        f"{counts['mean_cluster']} rows per cluster\n"
    )
    cells = counts["cells"]
    families = list(dict.fromkeys(name for row in cells.values() for name in row))
    if len(cells) > 1 or len(families) > 1:
        table = _table("Rows by distractor family and hops", "family", map(_hops, cells))
        for family in families:
            table.add_row(family, *(f"{row.get(family, 0):,}" for row in cells.values()))
        console.print(table, "")
    if lines := told_drops(counts["dropped"], built.request.options.reads()):
        console.print("\n".join(["Left out:", *map(escape, lines), ""]))
    if manifest["audit"]:
        _print_audit(console, manifest["audit"])
    for sample in _samples(built):
        _print_row(console, sample)
    for config, items in built.configs.items():
        if config != DEFAULT_CONFIG:
            row = first_row(items)
            texts = _shortened(" / ".join(row["choices"]["text"]))
            console.print(f"[dim]{config}:[/] {escape(row['question'])}  [dim]{texts}[/]")
    seconds = ", ".join(f"{name} {taken:.1f}" for name, taken in built.seconds.items())
    console.print(f"\nIn {folder} ({sum(built.seconds.values()):.1f} s: {seconds}). Load it with:")
    console.print(f'  datasets.load_dataset("{folder}")\n')


def _table(title: str, first: str, numbers: Iterable[str]) -> Table:
    """Return an empty table with a column of names and columns of numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    table.add_column(first)
    for number in numbers:
        table.add_column(number, justify="right")
    return table


def _hops(hops: str | int) -> str:
    return f"{hops} hop{'s' * (str(hops) != '1')}"


def _shortened(text: str) -> str:
    return escape(textwrap.shorten(text, 110, placeholder="..."))


def _print_audit(console: Console, report: dict[str, Any]) -> None:
    if missing := missing_baselines(report):
        console.print(f"[red]{missing}[/]\n")
        return
    title = f"Audit: accuracy without knowing anything (chance {report['chance']:.1%})"
    console.print(baseline_table(report).terminal(title))
    if report["flags"]:
        console.print(f"[red]Off chance by more than {report['bar']}:[/]")
        console.print("".join(f"  {flag}\n" for flag in report["flags"]))
    else:
        console.print(unflagged(report))
    console.print(f"{on_similarity(report)}\n")
    if report["oracles"]:
        first = next(iter(report["oracles"].values()))["families"]
        families = [family for family in first if family in ("all", "near", RANDOM)]
        title = "Oracles: accuracy in % of a reader who knows only ..."
        table = _table(title, "oracle", families)
        for oracle in report["oracles"].values():
            shares = (oracle["families"][family] for family in families)
            table.add_row(oracle["knows"], *(f"{100 * share:.1f}" for share in shares))
        console.print(table, "")


def _samples(built: Built) -> list[dict[str, Any]]:
    """Return rows spread over the largest split, each of another family if there are several."""
    items = max(built.splits.values(), key=lambda split: split.rows)
    step = max(items.rows // SAMPLES, 1)
    rows: list[dict[str, Any]] = []
    for start in range(0, min(step * SAMPLES, items.rows), step):
        near = plain(items.table(start, start + min(step, NEAR))).to_pylist()
        shown = {row["distractor_family"] for row in rows}
        fresh = [row for row in near if row["distractor_family"] not in shown]
        rows.append((fresh or near)[0])
    return rows


def rows_of_relations(built: Built, count: int) -> dict[str, list[dict[str, Any]]]:
    """Return the first rows of each relation in the largest split, of what was searched."""
    items = max(built.splits.values(), key=lambda split: split.rows)
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in plain(items.table(0, min(items.rows, SEARCHED))).to_pylist():
        some = rows.setdefault(row["relation"], [])
        if len(some) < count and all(one["concept"] != row["concept"] for one in some):
            some.append(row)
    return rows


def show_preview(built: Built, rows: dict[str, list[dict[str, Any]]]) -> None:
    """Print some rows of each relation, and what is left out."""
    console = Console(highlight=False, soft_wrap=True)
    for relation, some in rows.items():
        console.print(f"\n[bold]{escape(relation)}[/]")
        for row in some:
            _print_row(console, row)
    counts = built.manifest["counts"]
    console.print(f"\n{counts['rows']:,} rows; nothing is written (--dry-run).")
    if lines := told_drops(counts["dropped"], built.request.options.reads(), None):
        console.print("\n".join(["Left out:", *map(escape, lines)]))


def _print_row(console: Console, row: dict[str, Any]) -> None:
    hops = f", {_hops(row['hops'])}" if row["hops"] else ""
    console.print(escape(row["question"]) + f"  [dim]({row['distractor_family']}{hops})[/]")
    texts = zip(row["choices"]["label"], row["choices"]["text"], strict=True)
    for at, (label, text) in enumerate(texts):
        mark = "[green]*[/]" if at == row["answer"] else " "
        console.print(f"  {mark} {label}. {_shortened(text)}")


_BLOCK = re.compile(r"\{%-?\s*(for|if|set|macro)\b.*\{%-?\s*end(for|if|set|macro)\s*-?%\}", re.S)


def _outline(text: str) -> str:
    """Return a template on one line; loops and branches of a long one are left out."""
    line = " ".join(text.split())
    return line if len(line) <= LONG else _BLOCK.sub("{% ... %}", line)


def show_probe(probe: Probe) -> None:
    """Print a probe's summary, wordings and options."""
    template = probe.template(probe.options())
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 120
    console.print(f"[bold]{probe.name}[/]\n{probe.summary}\n\nWordings:")
    for wording in template.questions:
        console.print(f"  [dim]{wording.id}:[/] {escape(_outline(wording.text))}")
    console.print(f"  [dim]choice:[/] {escape(_outline(template.choice))}\n")
    console.print(f"Fields of a question: {', '.join(sorted(probe.question_fields))}")
    console.print(f"Fields of a choice: {', '.join(sorted(probe.choice_fields))}")
    console.print(f"Controls: {', '.join(probe.controls) or 'none'}")
    console.print(f"Variants: {', '.join(probe.variants) or 'none'}\n")
    table = Table(box=None, title="Options", title_justify="left")
    for column in ("option", "default", "what it does"):
        table.add_column(column, overflow="fold")
    for name, info in probe.options.model_fields.items():
        default = escape(shown_default(info.default))
        allowed = f" (of: {', '.join(choices_of(info))})" if choices_of(info) else ""
        table.add_row(option_name(name), default, escape(f"{info.description or ''}{allowed}"))
    console.print(table)
