"""``release-probe annotate export``, ``annotate import`` and ``annotate score``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kbprobe.cli import Command
from kbprobe.format.labels import check_suffix
from kbprobe.options import Options, command_option, given_of
from kbprobe.terminal import echo
from release.annotation.options import SheetOptions, VoteOptions

_PATH = click.Path(path_type=Path)


def _options(model: type[Options]) -> Callable[[click.Command], click.Command]:
    """Add to a command the options of a model, and those of every command here."""

    def add(command: click.Command) -> click.Command:
        command.params += [command_option(name, info) for name, info in model.model_fields.items()]
        command.params += [
            click.Option(["--overwrite"], is_flag=True, help="Replace what the folder holds."),
            click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."),
        ]
        return command

    return add


@click.group(
    epilog="annotate export DIR -o SHEETS | annotate import DIR --votes FILE --key SHEETS/key.json "
    "| annotate score DIR --votes FILE --key KEY"
)
def annotate() -> None:
    """Let people judge a probe's rows: export sheets, import votes."""


@_options(SheetOptions)
@annotate.command(
    "export",
    cls=Command,
    help="Write annotation sheets of a built probe: CSV, and instructions.",
)
@click.argument("folder", metavar="DIR", type=_PATH)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    type=_PATH,
    help="Folder to write: sheets/ for annotators, key.json for you alone.",
)
def _export(folder: Path, output: Path, overwrite: bool, as_json: bool, **values: Any) -> None:
    from release.annotation.round_trip import export_sheets

    given = given_of(SheetOptions.model_fields, values)
    files, found = export_sheets(folder, output, overwrite=overwrite, **given)
    if as_json:
        names = [path.as_posix() for path in files]
        echo(json.dumps({"folder": str(output), "files": names}))
    elif found:
        echo(f"{output} already holds exactly this.", err=True)
    else:
        sheets = [path.name for path in files if path.suffix != ".html" and path.parent.name]
        listed = ", ".join(sheets[:3]) + (" ..." if len(sheets) > 3 else "")
        echo(
            f"Wrote {listed} and instructions.html for annotators to {output / 'sheets'}. Keep "
            f"{output / 'key.json'} to yourself: it is needed to read the votes, and holds the "
            "answers of checks.",
            err=True,
        )


@annotate.command(
    "score",
    cls=Command,
    help="Score filled-in reading sheets (build-probe --sample N --blind): the share of rows that "
    "readers find sound, by family.",
)
@click.argument("folder", metavar="DIR", type=_PATH)
@click.argument("more", nargs=-1, metavar="[FILE]...", type=_PATH)
@click.option(
    "--votes",
    multiple=True,
    required=True,
    metavar="FILE...",
    type=_PATH,
    help="The sheets, one of each reader; several files may follow.",
)
@click.option(
    "--key", required=True, type=_PATH, metavar="FILE", help="key.json, written with the sheet."
)
@click.option("--skip-bad", is_flag=True, help="Leave out bad votes and continue.")
@click.option("--into-card", is_flag=True, help="Write the figures into the probe's card.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def _score(
    folder: Path,
    more: tuple[Path, ...],
    votes: tuple[Path, ...],
    key: Path,
    skip_bad: bool,
    into_card: bool,
    as_json: bool,
) -> None:
    from release.annotation.soundness import score, soundness_text, write_soundness

    found = score(folder, [*votes, *more], key, skip_bad=skip_bad)
    echo(found.model_dump_json() if as_json else soundness_text(found))
    if into_card:
        write_soundness(folder, found)
        echo(f"Wrote the figures into card and manifest of {folder}.", err=True)


@_options(VoteOptions)
@annotate.command(
    "import",
    cls=Command,
    help="Read votes back: agreement, human accuracy, labels, a gold standard.",
)
@click.argument("folder", metavar="DIR", type=_PATH)
@click.argument("more", nargs=-1, metavar="[FILE]...", type=_PATH)
@click.option(
    "--votes",
    multiple=True,
    required=True,
    metavar="FILE...",
    type=_PATH,
    help="Votes: CSV; several files may follow.",
)
@click.option("--key", type=_PATH, metavar="FILE", help="key.json of the export [the probe's ids].")
@click.option(
    "-o",
    "--output",
    type=_PATH,
    metavar="DIR",
    help="Folder of the gold standard to write: a probe again.",
)
@click.option(
    "--labels", type=_PATH, metavar="FILE", help="Labels file to write (.jsonl, .parquet)."
)
@click.option(
    "--other-splits",
    is_flag=True,
    help="Include the probe's other splits in the gold standard.",
)
def _import(
    folder: Path,
    more: tuple[Path, ...],
    votes: tuple[Path, ...],
    key: Path | None,
    output: Path | None,
    labels: Path | None,
    other_splits: bool,
    overwrite: bool,
    as_json: bool,
    **values: Any,
) -> None:
    from release.annotation.report import report_text
    from release.annotation.round_trip import import_votes

    if labels is not None:
        check_suffix(labels)
    done = import_votes(
        folder, [*votes, *more], key=key, **given_of(VoteOptions.model_fields, values)
    )
    # First the outputs that do not need a gold standard, which must have at least one row.
    echo(done.report.model_dump_json() if as_json else report_text(done.report))
    if labels is not None:
        done.write_labels(labels)
        echo(f"Wrote {labels}.", err=True)
    if output is not None:
        found = done.write(output, overwrite=overwrite, other_splits=other_splits)
        echo(f"{output} already holds exactly this." if found else f"Wrote {output}.", err=True)
