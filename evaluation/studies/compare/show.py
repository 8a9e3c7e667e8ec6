"""The comparison as tables on a terminal."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from evaluation.results.types import Estimate
from evaluation.studies.compare.types import Comparison, Pair

if TYPE_CHECKING:
    from kbprobe.console import Console


def show(found: Comparison, console: Console | None = None) -> None:
    """Print a comparison of two runs in full, of more as matrices."""
    from evaluation.results.console import wide_console

    console = console or wide_console(markup=True)
    if len(found.pairs) == 1:
        _show_pair(found.pairs[0], console)
    else:
        _show_all(found, console)
    _show_wordings(found, console)
    for warning in found.warnings:
        console.print(f"Warning: {warning}.", markup=False, soft_wrap=True)


def _show_pair(pair: Pair, console: Console) -> None:
    from rich.markup import escape

    from evaluation.results.console import print_rows
    from evaluation.results.words import p_value

    asked = f"[bold]{escape(pair.probe)}[/], {escape(pair.split)}"
    if pair.second_probe is not None:
        asked = (
            f"A on [bold]{escape(pair.probe)}[/], B on [bold]{escape(pair.second_probe)}[/], "
            f"{escape(pair.split)}, rows paired by id"
        )
    console.print(f"{asked}: {pair.compared:,} items in {pair.clusters:,} clusters")
    if pair.only_first or pair.only_second:
        console.print(f"left out: {pair.only_first:,} asked of A alone, {pair.only_second:,} of B")
    if pair.set_aside:
        console.print(f"left out: {pair.set_aside:,} that A, B or both set aside")
    runs = (("A", pair.first, pair.accuracy_first), ("B", pair.second, pair.accuracy_second))
    rows = [
        (
            name,
            run.label,
            run.metric,
            f"{100 * accuracy.value:.1f}",
            f"{100 * accuracy.low:.1f} to {100 * accuracy.high:.1f}",
        )
        for name, run, accuracy in runs
    ]
    print_rows(("", "model", "metric", "accuracy", "95% interval"), rows, console=console)
    console.print(
        f"B minus A: [bold]{_points(pair.difference)}[/], p = {p_value(pair.p_value)} "
        f"(McNemar, as if rows were independent: {p_value(pair.mcnemar_p)})"
    )
    console.print(
        f"right only in A {pair.only_first_right:,}, only in B {pair.only_second_right:,}"
    )
    overlap = f"same prediction {pair.prediction_overlap:.1%}"
    if pair.error_overlap is not None:
        overlap += f"; of {pair.both_wrong:,} wrong in both, the same way {pair.error_overlap:.1%}"
    console.print(overlap)
    families = [
        (
            part.family,
            f"{100 * part.first:.1f}",
            f"{100 * part.second:.1f}",
            _points(part.difference),
            f"{part.difference.n:,}",
        )
        for part in pair.by_family
    ]
    if families:
        print_rows(("family", "A", "B", "B minus A", "n"), families, names=1, console=console)


def _show_all(found: Comparison, console: Console) -> None:
    from evaluation.results.console import print_rows
    from evaluation.results.words import p_value

    names = [str(number) for number in range(1, len(found.runs) + 1)]
    labels = [
        (
            name,
            run.label,
            run.metric,
            f"{100 * run.accuracy.value:.1f}",
            f"{100 * run.accuracy.low:.1f} to {100 * run.accuracy.high:.1f}",
        )
        for name, run in zip(names, found.runs, strict=True)
    ]
    heads = ("", "model", "metric", "accuracy", "95% interval")
    print_rows(heads, labels, names=3, console=console)
    for title, matrix, form in (
        ("accuracy of the row less that of the column, in points", found.difference, "{:+.1f}"),
        ("share of identical predictions", found.prediction_overlap, "{:.2f}"),
    ):
        console.print(f"\n{title}")
        rows = [
            (
                names[at],
                *("" if at == other else form.format(cell) for other, cell in enumerate(row)),
            )
            for at, row in enumerate(matrix)
        ]
        print_rows(("", *names), rows, names=1, console=console)
    console.print()
    numbered = zip(combinations(names, 2), found.pairs, found.holm_p, strict=True)
    pairs = [
        (
            f"{second} less {first}",
            _points(pair.difference),
            p_value(pair.p_value),
            p_value(adjusted),
            f"{pair.compared:,}",
        )
        for (first, second), pair, adjusted in numbered
    ]
    print_rows(("", "difference", "p", "p (Holm)", "n"), pairs, names=1, console=console)


def _show_wordings(found: Comparison, console: Console) -> None:
    from evaluation.results.console import print_rows
    from evaluation.results.summary import percent

    rows = [
        (one.template, percent(one.accuracy), *(f"{100 * share:.1f}" for share in one.runs))
        for one in found.wordings
    ]
    if rows:
        names = "AB" if len(found.pairs) == 1 else map(str, range(1, len(found.runs) + 1))
        console.print("\nby wording: mean accuracy over the models, and that of each")
        print_rows(("wording", "mean", *names), rows, names=1, console=console)


def _points(difference: Estimate) -> str:
    low, high = difference.low, difference.high
    return f"{difference.value:+.1f} points ({low:+.1f} to {high:+.1f})"
