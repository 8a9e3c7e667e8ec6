"""The table that ends ``evaluate-probe``."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaluation.results.analyses.facts import Facts, facts_of
from evaluation.results.estimate import Estimate
from evaluation.results.types import Results, remarks
from evaluation.results.words import last_name


def show_table(results: Sequence[Results]) -> None:
    """Print one row for each probe and model: accuracies in percent with 95% intervals."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("probe")
    table.add_column("model")
    for heading in ("rows", "accuracy", "chance", "strict", "difference", "ties", "rows/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        metrics, speed = result.metrics, result.timings.rows_per_second
        table.add_row(
            Text(f"{result.probe.name} ({result.probe.split})"),
            Text(last_name(result.model.id)),
            f"{metrics.scored:,}",
            percent(metrics.accuracy),
            f"{100 * metrics.chance:.1f}",
            percent(metrics.strict_accuracy),
            "-" if metrics.strict_difference is None else f"{metrics.strict_difference.value:+.1f}",
            f"{metrics.ties:,}",
            "cached" if speed is None else f"{speed:,.1f}",
        )
    # Captured output has no width of its own: a table cut to 80 columns would be unreadable.
    console = Console(markup=False, highlight=False)
    Console(width=None if console.is_terminal else 160).print(table)
    for result in results:
        for line in cautions(result):
            console.print(
                f"  {result.probe.name}, {last_name(result.model.id)}: {line}", soft_wrap=True
            )


def percent(estimate: Estimate | None) -> str:
    """Spell a share with its interval: ``71.2 [69.8, 72.5]``."""
    if estimate is None:
        return "-"
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def _on_facts(facts: Facts) -> str:
    """Summarise in one line the rows whose facts are answered right."""
    line = f"single facts: {percent(facts.accuracy)} of {facts.scored:,}"
    line += f", chance {100 * facts.chance:.1f}"
    rows = facts.rows
    if rows is None:
        return f"{line}; no row has all of its facts asked and scored"
    known = rows.all_facts
    line += (
        f"; all facts right in {known.rows:,} of {rows.rows:,} rows "
        f"({100 * rows.all_facts_share.value:.1f}, by chance {100 * rows.all_facts_chance:.1f})"
    )
    if known.accuracy is not None:
        fails = 1.0 - known.accuracy.value
        line += f", {100 * fails:.1f} of these fail (by chance {100 * (1.0 - rows.chance):.1f})"
    return f"{line}; right without: {100 * rows.right_without.value:.1f} of rows"


def cautions(result: Results) -> list[str]:
    """Say what a reader of the number must know."""
    metrics = result.metrics
    lines = [
        f"{count:,} of {metrics.items:,} rows set aside: {reason}"
        for reason, count in metrics.set_aside.items()
    ]
    others = {
        name: e for name, e in metrics.accuracies.items() if e.value != metrics.accuracy.value
    }
    if others:
        spelled = ", ".join(f"{name} {100 * e.value:.1f}" for name, e in others.items())
        lines.append(f"by other normalizations: {spelled}")
    if metrics.baselines:
        best = max(metrics.baselines, key=lambda name: metrics.baselines[name])
        lines.append(f"best audit baseline: {100 * metrics.baselines[best]:.1f} ({best})")
    if (facts := facts_of(result)) is not None:
        lines.append(_on_facts(facts))
    if metrics.ties:
        counted = f"{metrics.ties:,} {'tie' if metrics.ties == 1 else 'ties'}"
        lines.append(
            f"{counted} (top two within {metrics.tie_tolerance:g}); "
            f"all counted wrong: {100 * metrics.ties_wrong:.1f}"
        )
    return lines + remarks(result)
