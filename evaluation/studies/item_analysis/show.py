"""The summary as a table on a terminal."""

from __future__ import annotations

from evaluation.results.words import short
from evaluation.studies.item_analysis.types import ItemRow, ItemsSummary
from evaluation.studies.item_analysis.words import correlation_text, remarks, sentences

_LONGEST = 60


def show(summary: ItemsSummary) -> None:
    """Print the items of each probe to read first, and what stands out."""
    from evaluation.results.console import print_rows, wide_console

    console = wide_console()
    heads = ("right", "for the other", "r", "evidence")
    for one in summary.probes:
        console.print(
            f"{one.probe} ({one.split}): {len(one.items):,} items, {len(one.runs)} models",
            soft_wrap=True,
        )
        rows = [
            (
                item.id,
                short(item.question, _LONGEST),
                short(item.choices[item.key], _LONGEST),
                "–" if item.rival is None else short(item.choices[item.rival], _LONGEST),
                f"{item.right} of {item.models}",
                str(item.for_rival),
                correlation_text(item),
                evidence_text(item),
            )
            for item in one.items[: summary.rows]
        ]
        print_rows(("item", "question", "key", "other choice", *heads), rows, names=4)
        for line in (*sentences(one), *remarks(one)):
            console.print(f"  {line}", soft_wrap=True)


def evidence_text(item: ItemRow) -> str:
    """Spell an item's evidence, starred where its key is suspected."""
    star = "*" if "suspected key" in item.remarks else ""
    return f"{item.evidence:+.1f}".replace("-", "−") + star
