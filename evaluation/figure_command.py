"""``evaluate-probe figure``: a figure of results or learning curves, for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evaluation.names import names_option, read_names
from kbprobe.cli import command
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.terminal import echo

if TYPE_CHECKING:
    from evaluation.papers.figure import Kind

KINDS = ("accuracy", "hops", "curve", "heatmap")


@command(
    "figure",
    help="Draw a figure of all results in the folders and below them, or of learning curves, in "
    "the width of a column of a paper. The numbers are written next to it as CSV.",
)
@click.argument(
    "places", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR..."
)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="accuracy",
    show_default=True,
    help="accuracy: of each model, with chance and similarity; hops: accuracy by the number of "
    "hops; heatmap: by hops and distractors; curve: learning curves (results/curve).",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    required=True,
    help="File to write: .pdf, .svg or .png. An existing one is replaced.",
)
@click.option(
    "--width",
    metavar="single|double|INCHES",
    default="single",
    show_default=True,
    help="Width: of one column (3.3 inches), of both (6.8 inches), or in inches.",
)
@names_option()
def figure_command(
    places: tuple[Path, ...], kind: Kind, output: Path, width: str, names_file: Path | None
) -> None:
    """Write a figure, and its numbers."""
    from evaluation.papers.figure import figure_of
    from evaluation.report.vector import SUFFIXES, data_of, write_figure
    from kbprobe.files import write_file

    if output.suffix.lower() not in SUFFIXES:
        raise UsageError(f"-o {output}: name a file that ends in {', '.join(SUFFIXES)}")
    inches = width_of(width)
    names = read_names(names_file)
    parts = figure_of(places, kind, names)
    names.note_unused()
    # Not results.csv next to results.pdf: that may be a table of the user's.
    data = output.with_name(f"{output.name}.csv")
    try:
        write_figure(output, parts, inches)
        write_file(data, data_of(parts).text("csv"))
    except OSError as error:
        raise KbprobeError(
            f"{error.filename or output} cannot be written ({error.strerror}): name another file "
            "with -o"
        ) from error
    echo(output)
    echo(data)


def width_of(given: str) -> float:
    """Return a width in inches: that of a column, of both, or a number.

    Raises:
        UsageError: it is neither, or a width that no page has.
    """
    from evaluation.report.vector import WIDTHS

    try:
        inches = WIDTHS[given] if given in WIDTHS else float(given)
    except ValueError:
        inches = 0.0
    if not 1 <= inches <= 20:
        raise UsageError(f"--width {given}: name single, double, or inches from 1 to 20")
    return inches
