"""The command ``release-probe check``."""

from __future__ import annotations

from pathlib import Path

import click

from kbprobe.cli import FAILED, debug_option


@click.command(
    "check",
    help="Check a built probe before it is released: files, rows, splits, audit, card, licence. "
    "Exit code 1 if anything failed.",
)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@debug_option
def check(folder: Path, as_json: bool, strict: bool) -> int:
    """Print what was found: what failed, where, and what to do about it."""
    from release.checks.checking import check as run

    report = run(folder)
    if as_json:
        import json

        click.echo(json.dumps(report.as_dict()))
    else:
        counts = f"{len(report.failed)} failed, {len(report.warnings)} warnings"
        ready = "ready" if report.passed else "NOT ready"
        report.show(f"{report.folder}: {counts}. It is {ready} to be released.")
    return FAILED if report.blocks(strict) else 0
