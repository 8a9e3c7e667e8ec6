"""``evaluate-probe table``: results and summaries as CSV, Markdown or LaTeX."""

from __future__ import annotations

from pathlib import Path

import click

from kbprobe.cli import command
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.tables import FORMATS, Format, PlainTable
from kbprobe.terminal import echo


@command(
    "table",
    help="Print a table: with a row for each result in the folders and below them, or one of a "
    "study's summary (results/curve/curve.json).",
)
@click.argument(
    "places", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR|FILE..."
)
@click.option(
    "--to", "form", type=click.Choice(FORMATS), default="csv", show_default=True, help="Format."
)
@click.option("--name", metavar="NAME", help="Which table of a summary that holds several.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write; an existing one is replaced. [default: standard output]",
)
def table_command(
    places: tuple[Path, ...], form: Format, name: str | None, output: Path | None
) -> None:
    """Print or write one table."""
    from kbprobe.files import write_file

    text = open_table(places, name).text(form)
    if output is None:
        echo(text, nl=False)
        return
    write_file(output, text)
    echo(output)


def open_table(places: tuple[Path, ...], name: str | None = None) -> PlainTable:
    """Read a table from folders of results, or from the summary of a study.

    Raises:
        UsageError: there are neither, or the summary has no such table.
    """
    from evaluation.results.frames import table_of

    if any(place.suffix == ".json" and place.is_file() for place in places):
        if len(places) > 1:
            raise UsageError("each summary has its own table: name one file, or folders alone")
        return _of_summary(places[0], name)
    if name is not None:
        raise UsageError("--name chooses a table of a summary: name its file, such as curve.json")
    return table_of([result for place in places for result in _results_below(place)])


def _results_below(folder: Path) -> list:  # type: ignore[type-arg]
    from evaluation.report.suite.collect import collect

    return [run.results for run in collect(folder, 0).runs]


def _of_summary(path: Path, name: str | None) -> PlainTable:
    from evaluation.results.frames import tables_within
    from kbprobe.parsing import read_json

    held = read_json(path)
    tables = tables_within(held) if isinstance(held, dict) else {}
    if not tables:
        raise UsageError(f"{path} holds no table: name the JSON file that a study wrote")
    if name is None and len(tables) > 1:
        raise UsageError(f"{path} holds several tables. Choose with --name: {', '.join(tables)}")
    chosen = name if name is not None else next(iter(tables))
    if chosen not in tables:
        known = ", ".join(tables)
        raise UsageError(
            f"{path} has no table {chosen!r}.{did_you_mean(chosen, tables)} It has: {known}."
        )
    return tables[chosen]
