"""The summary as a table on a terminal."""

from __future__ import annotations

from evaluation.results.types import Estimate
from evaluation.studies.overlap.types import OverlapSummary
from evaluation.studies.overlap.words import kappa_text, remarks, sentences


def show(summary: OverlapSummary) -> None:
    """Print each pair of models on each probe, what it shows, and means over probes."""
    from evaluation.results.console import print_rows, wide_console
    from evaluation.results.summary import percent

    def share(estimate: Estimate | None, expected: float | None) -> str:
        if estimate is None or expected is None:
            return "-"
        return f"{percent(estimate)} ({100 * expected:.1f})"

    heads = ("same answer % (chance)", "same error % (chance)", "kappa", "rows", "both wrong")
    rows = [
        (
            one.probe,
            pair.first,
            pair.second,
            share(pair.overlap, pair.expected_overlap),
            share(pair.error_overlap, pair.expected_error_overlap),
            kappa_text(pair.kappa),
            f"{pair.compared:,}",
            f"{pair.both_wrong:,}",
        )
        for one in summary.probes
        for pair in one.pairs
    ]
    rows += [
        (
            f"mean of {len(summary.probes)}",
            mean.first,
            mean.second,
            percent(mean.overlap),
            percent(mean.error_overlap),
            kappa_text(mean.kappa),
            "",
            "",
        )
        for mean in summary.mean
    ]
    print_rows(("probe", "first", "second", *heads), rows, names=3)
    console = wide_console()
    for one in summary.probes:
        for line in (*sentences(one), *remarks(one)):
            console.print(f"  {one.probe}: {line}", soft_wrap=True)
