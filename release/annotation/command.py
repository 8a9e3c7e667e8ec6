"""``release-probe annotate export`` and ``annotate import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kbprobe.cli import debug_option

if TYPE_CHECKING:
    from kbprobe.options import Options

_PATH = click.Path(path_type=Path)


class _Group(click.Group):
    """Makes each command when it is asked for: options come from pydantic models."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["export", "import"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        makers = {"export": _export_command, "import": _import_command}
        return makers[cmd_name]() if cmd_name in makers else None


annotate = _Group(
    "annotate",
    help="Let people judge a probe's rows: export sheets, import votes.",
    epilog="annotate export DIR -o SHEETS | annotate import DIR --votes FILE --key SHEETS/key.json",
)


def _command(
    name: str, callback: Any, model: type[Options], own: list[click.Parameter], text: str
) -> click.Command:
    """Make a command of a probe's folder, its own parameters, and the options of a model."""
    from kbprobe.options import command_option

    folder = click.Argument(["folder"], metavar="DIR", type=_PATH)
    options = [command_option(field, info) for field, info in model.model_fields.items()]
    overwrite = click.Option(["--overwrite"], is_flag=True, help="Replace what the folder holds.")
    as_json = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")
    params = [folder, *own, *options, overwrite, as_json]
    return debug_option(click.Command(name, params=params, callback=callback, help=text))


def _export_command() -> click.Command:
    from release.annotation.options import SheetOptions

    output = click.Option(
        ["-o", "--output"],
        required=True,
        metavar="SHEETS",
        type=_PATH,
        help="Folder to write: sheets/ for annotators, key.json for nobody else.",
    )
    text = "Write annotation sheets of a built probe: CSV or Label Studio, and instructions."
    return _command("export", _export, SheetOptions, [output], text)


def _export(folder: Path, output: Path, overwrite: bool, as_json: bool, **values: Any) -> None:
    from kbprobe.options import parsed
    from release.annotation.options import SheetOptions
    from release.annotation.round_trip import export_sheets

    fields = SheetOptions.model_fields
    given = {
        name: parsed(fields[name], value) for name, value in values.items() if value is not None
    }
    files, found = export_sheets(folder, output, overwrite=overwrite, **given)
    if as_json:
        import json

        names = [path.as_posix() for path in files]
        click.echo(json.dumps({"folder": str(output), "files": names}))
    elif found:
        click.echo(f"{output} already holds exactly this.", err=True)
    else:
        sheets = [path.name for path in files if path.suffix != ".html" and path.parent.name]
        listed = ", ".join(sheets[:3]) + (" ..." if len(sheets) > 3 else "")
        click.echo(
            f"Wrote {listed} and instructions.html for annotators to {output / 'sheets'}. Keep "
            f"{output / 'key.json'} to yourself: it is needed to read the votes, and holds the "
            "answers of checks.",
            err=True,
        )


def _import_command() -> click.Command:
    from release.annotation.options import VoteOptions

    own: list[click.Parameter] = [
        click.Argument(["more"], nargs=-1, metavar="[FILE]...", type=_PATH),
        click.Option(
            ["--votes"],
            multiple=True,
            required=True,
            metavar="FILE...",
            type=_PATH,
            help="Votes: CSV, long or wide, or a Label Studio export; several files may follow.",
        ),
        click.Option(
            ["--key"], type=_PATH, metavar="KEY", help="key.json of the export [the probe's ids]."
        ),
        click.Option(
            ["-o", "--output"],
            type=_PATH,
            metavar="OUT",
            help="Folder of the gold standard to write: a probe again.",
        ),
        click.Option(
            ["--labels"],
            type=_PATH,
            metavar="FILE",
            help="Labels file to write (.jsonl, .parquet).",
        ),
        click.Option(
            ["--other-splits"],
            is_flag=True,
            help="Include the probe's other splits in the gold standard.",
        ),
    ]
    text = "Read votes back: agreement, human accuracy, labels, a gold standard."
    return _command("import", _import, VoteOptions, own, text)


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
    from kbprobe.format.labels import check_suffix
    from release.annotation.report import report_text
    from release.annotation.round_trip import import_votes

    if labels is not None:
        check_suffix(labels)
    given = {name: value for name, value in values.items() if value is not None}
    done = import_votes(folder, [*votes, *more], key=key, **given)
    lines = []
    if output is not None:
        found = done.write(output, overwrite=overwrite, other_splits=other_splits)
        lines.append(f"{output} already holds exactly this." if found else f"Wrote {output}.")
    if labels is not None:
        done.write_labels(labels)
        lines.append(f"Wrote {labels}.")
    click.echo(done.report.model_dump_json() if as_json else report_text(done.report))
    for line in lines:
        click.echo(line, err=True)
