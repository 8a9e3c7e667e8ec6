"""The summary as a table on a terminal."""

from __future__ import annotations

from evaluation.results.words import coefficient
from evaluation.studies.power.types import PowerSummary
from evaluation.studies.power.words import least_text, pair_name, remarks, sentences


def show(summary: PowerSummary) -> None:
    """Print the clusters needed for each pair of models, and the power that there is."""
    from evaluation.results.console import print_rows, wide_console

    heads = (
        *("agreement %", "correlation", "clusters needed", "rows needed"),
        *("power now %", "least points now"),
    )
    rows = [
        (
            f"{one.probe} ({one.split})",
            pair_name(pair),
            f"{100 * pair.agreement:.1f}",
            "–" if pair.correlation is None else coefficient(pair.correlation),
            f"{pair.clusters_needed:,}",
            f"{pair.rows_needed:,}",
            f"{100 * pair.power:.1f}",
            least_text(pair),
        )
        for one in summary.probes
        for pair in one.pairs
    ]
    print_rows(("probe", "models", *heads), rows)
    console = wide_console()
    for one in summary.probes:
        for line in (*sentences(one, summary), *remarks(one)):
            console.print(f"  {one.probe}: {line}", soft_wrap=True)
