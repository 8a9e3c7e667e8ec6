"""``evaluate-probe table``: results and summaries as CSV, Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evaluation.names import names_option, read_names
from kbprobe.cli import command
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.tables import FORMATS, Format, PlainTable
from kbprobe.terminal import echo

if TYPE_CHECKING:
    from evaluation.names import DisplayNames

ALL = "all"
"""Stands for all columns."""


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
    "--columns",
    metavar="A,B,...",
    help="Columns, in this order, or all. [default: accuracy,near,near_beyond_similarity or "
    "beyond_similarity; of a summary those with values, in CSV all]",
)
@click.option(
    "--baselines",
    is_flag=True,
    help="Add rows for chance, similarity and the best other baseline.",
)
@names_option()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write; an existing one is replaced. [default: standard output]",
)
def table_command(
    places: tuple[Path, ...],
    form: Format,
    name: str | None,
    columns: str | None,
    baselines: bool,
    names_file: Path | None,
    output: Path | None,
) -> None:
    """Print or write one table."""
    from kbprobe.files import write_file

    names = read_names(names_file)
    if is_summary(places):
        if baselines:
            raise UsageError("--baselines adds rows to a table of results: name their folders")
        table = open_table(places, name)
        shown = table.head if form == "csv" else table.filled
        table = table.chosen(columns_named(columns, table.head, shown))
        table = _named(table, names, ids=form == "csv")
    elif name is not None:
        raise UsageError("--name chooses a table of a summary: name its file, such as curve.json")
    else:
        from evaluation.papers.reading import read_board
        from evaluation.papers.table import DEFAULT, default_columns, results_table
        from evaluation.results.frames import COLUMNS

        chosen = columns_named(columns, COLUMNS, DEFAULT)
        board = read_board(places, names)
        table = results_table(board, chosen, names, baselines=baselines, in_print=form != "csv")
        if columns is None and form != "csv":
            table = table.chosen(default_columns(table))
    names.note_unused()
    text = table.text(form)
    if output is None:
        echo(text, nl=False)
        return
    write_file(output, text)
    echo(output)


def is_summary(places: tuple[Path, ...]) -> bool:
    """Return whether a summary of a study is named, rather than folders of results."""
    return any(place.suffix == ".json" and place.is_file() for place in places)


def open_table(places: tuple[Path, ...], name: str | None = None) -> PlainTable:
    """Read a table from the summary of a study.

    Raises:
        UsageError: several files are named; the file has no table, or no such table.
    """
    from evaluation.results.frames import tables_within
    from kbprobe.parsing import read_json

    if len(places) > 1:
        raise UsageError("each summary has its own table: name one file, or folders alone")
    (path,) = places
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


def columns_named(
    given: str | None, known: Collection[str], default: Sequence[str]
) -> Sequence[str]:
    """Return the columns that a list names, separated by commas; ``all``: those known.

    Raises:
        UsageError: there is no such column.
    """
    if given is None or given == ALL:
        return default if given is None else list(known)
    names = list(dict.fromkeys(name.strip() for name in given.split(",")))
    for name in names:
        if name not in known:
            raise UsageError(
                f"--columns {given}: there is no column {name!r}.{did_you_mean(name, known)} "
                f"There are: {', '.join(known)}; or {ALL}."
            )
    return names


def _named(table: PlainTable, names: DisplayNames, *, ids: bool) -> PlainTable:
    """Return a table with the names given to its texts; models keep their ids, or get names."""

    def named(column: str, cell: Any) -> Any:
        if not isinstance(cell, str):
            return cell
        return names.of_model(cell) if column == "model" and not ids else names.of(cell)

    rows = [[named(*pair) for pair in zip(table.head, row, strict=True)] for row in table.rows]
    return table._replace(rows=rows)
