"""``python -m tests.reliability``: long runs of what the default tests do briefly.

    python -m tests.reliability --mutations 10000
    python -m tests.reliability --kills 100 --concurrent --disks

Prints a table of figures; exits with 1 on any failure. docs/reliability.md says what is tested.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tests.reliability.target import all_targets
from tests.reliability.workers import PASSED, Outcomes, run_target

#: Failures of a target that are shown.
_SHOWN = 5


@click.command()
@click.option("--mutations", metavar="N", type=int, default=0, help="Mutated files per reader.")
@click.option("--kills", metavar="N", type=int, default=0, help="Kills of each command.")
@click.option("--concurrent", is_flag=True, help="Commands that run at once.")
@click.option("--disks", is_flag=True, help="Commands on full and read-only file systems.")
@click.option("--only", metavar="NAME", help="Readers or commands whose name contains NAME.")
@click.option("--seed", metavar="N", type=int, default=0, show_default=True, help="Of all draws.")
@click.option("--first", metavar="N", type=int, default=0, help="Number of the first mutation.")
@click.option("--keep", type=click.Path(path_type=Path), help="Folder for files that failed.")
def main(
    mutations: int,
    kills: int,
    concurrent: bool,
    disks: bool,
    only: str | None,
    seed: int,
    first: int,
    keep: Path | None,
) -> None:
    """Kill, damage and run at once what kbprobe does and reads; report what went wrong."""
    failed = 0
    if mutations:
        failed += run_mutations(range(first, first + mutations), only or "", seed, keep)
    if kills:
        from tests.reliability.kills import run_kills

        failed += run_kills(kills, only or "", seed)
    if concurrent:
        from tests.reliability.concurrency import run_concurrent

        failed += run_concurrent(only or "", seed)
    if disks:
        from tests.reliability.disk import run_disks

        failed += run_disks(only or "", seed)
    sys.exit(1 if failed else 0)


#: What several readers import, for seconds: imported once, before their processes are forked.
_SHARED = ("nltk", "pyarrow.parquet", "spacy")


def run_mutations(cases: range, only: str, seed: int, keep: Path | None) -> int:
    """Run the mutations of each reader, print their table, and return how many failed."""
    console = Console(stderr=True)
    found = []
    for name in _SHARED if not only else ():
        with suppress(ImportError):
            import_module(name)
    for target in (target for target in all_targets() if only in target.name):
        outcomes = run_target(target, cases, seed, keep)
        found.append(outcomes)
        for failure in outcomes.failures[:_SHOWN]:
            console.print(
                f"{target.name}, case {failure.case}: {failure.outcome}\n{failure.said}",
                markup=False, highlight=False,
            )  # fmt: skip
    Console(width=120).print(_table(found))
    return sum(len(outcomes.failures) for outcomes in found)


def _table(found: list[Outcomes]) -> Table:
    table = Table(title="Mutated files")
    for name in (
        "reader",
        "mutations",
        *PASSED,
        "failed",
        "slowest (s)",
        "memory (MiB)",
        "time (s)",
    ):
        table.add_column(name, justify="left" if name == "reader" else "right")
    for outcomes in found:
        table.add_row(
            outcomes.name,
            f"{outcomes.cases:,}",
            *(f"{outcomes.counts[name]:,}" for name in PASSED),
            f"{len(outcomes.failures):,}",
            f"{outcomes.slowest:.2f}",
            f"{outcomes.largest >> 20:,}",
            f"{outcomes.seconds:.0f}",
        )
    return table


if __name__ == "__main__":
    main()
