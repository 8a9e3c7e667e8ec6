"""The command ``release-probe export``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from kbprobe.cli import debug_option
from release.exports.targets import TARGETS

DEFAULT_PARENT = Path("exports")


@click.command(
    "export",
    help="Write a built probe as tasks of another harness, one for each config: a folder that "
    "anyone can run, with the command printed at the end.",
)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--to", required=True, metavar="TARGET", help=f"One of: {', '.join(TARGETS)}.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The folder to write [exports/PROBE-TARGET].",
)
@click.option("--split", default="test", show_default=True, help="The split to evaluate.")
@click.option(
    "--config",
    "configs",
    multiple=True,
    help="A config to export; may be given several times. [all]",
)
@click.option(
    "--repo-id",
    metavar="USER/NAME",
    help="Read the rows of the published probe instead of a copy; for inspect: where the export "
    "will be uploaded.",
)
@click.option("--overwrite", is_flag=True, help="Replace another export in the folder.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
@debug_option
def export(
    folder: Path,
    to: str,
    output: Path | None,
    split: str,
    configs: tuple[str, ...],
    repo_id: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write it, and print how it is run."""
    from release.exports.exporting import export as run

    output = output or DEFAULT_PARENT / f"{folder.resolve().name}-{to}"
    done = run(
        folder, to, output, split=split, configs=configs, repo_id=repo_id, overwrite=overwrite
    )
    if as_json:
        import json

        click.echo(json.dumps({**vars(done), "folder": str(done.folder)}, ensure_ascii=False))
        return
    state = "already holds exactly this" if done.found else "written"
    names = ", ".join(f"{name} ({done.rows[name]:,} rows)" for name in done.tasks)
    click.echo(f"{done.folder} {state}: {names}", err=True)
    click.echo(f"cd {shlex.quote(str(done.folder))}")
    for command in done.commands:
        click.echo(command)
