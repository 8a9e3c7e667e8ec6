"""``kb-cache``: list, fetch, verify and clear knowledge bases."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from kbprobe.cli import FAILED, HELP, Command, Option, Program, Subcommand, command, run
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files.cache import cache_dir, remove_files
from kbprobe.terminal import echo, visible
from kbprobe.terminal.progress import BYTES, PERCENT, Progress, shown_progress

SUBCOMMANDS = {
    "list": Subcommand("Commands", "List the knowledge bases in the cache.", "kb_cache.cli:list_"),
    "fetch": Subcommand(
        "Commands", "Compile a knowledge base into the cache.", "kb_cache.cli:fetch_"
    ),
    "verify": Subcommand(
        "Commands", "Compare all files with their checksums.", "kb_cache.cli:verify"
    ),
    "clear": Subcommand("Commands", "Remove entries from the cache.", "kb_cache.cli:clear"),
}
HELP_TEXT = """Fetch, list, verify and clear knowledge bases, compiled into tables that load fast.

WordNet 3.0 and an extract of MASC come with kbprobe. Others are kept in a cache folder; set the
environment variable KBPROBE_CACHE to choose another one.
"""


@command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List the knowledge bases in the cache, and the cached answers of SPARQL endpoints."""
    from kb_cache.listing import holdings, table

    rows = [holding.row() for holding in holdings().values()]
    echo(json.dumps(rows, indent=2) if as_json else "\n".join(table(rows)))


class _Fetch(click.Group):
    """A subcommand for each registered kind; its options are the fields of the kind's model."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from kb_cache.base import usable_kinds

        return [kind.name for kind in usable_kinds()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from kb_cache.base import find_kind

        kind = find_kind(cmd_name)  # an unknown one is refused with a list of those there are
        options: list[click.Parameter] = [
            _option(name, info, required=name == "source" and kind.needs_source)
            for name, info in kind.options.model_fields.items()
        ]
        output = Option(
            ["-o", "--output"],
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help="Write the snapshot to this folder instead of the cache, without recording the "
            "source's path. An existing snapshot there is replaced.",
        )
        return Command(
            cmd_name,
            params=[click.Argument(["entry"], required=False, metavar="[NAME]"), *options, output],
            callback=partial(_fetch, cmd_name),
            help=type(kind).__doc__ or f"Compile {kind.title}.",  # none with PYTHONOPTIMIZE=2
        )


def _option(name: str, info: Any, required: bool) -> Option:
    from kbprobe.options import command_option

    option = command_option("from" if name == "source" else name, info)
    option.name, option.required = name, required
    option.help = str(option.help).removesuffix(" []")  # an empty default needs no mention
    if name == "source":
        option.metavar = "PATH"
    return option


def _fetch(kind: str, output: Path | None, entry: str | None, **given: Any) -> None:
    from kb_cache.base import find_kind
    from kb_cache.fetching import fetch
    from kb_cache.snapshot import read_info
    from kbprobe.options import given_of

    declared = find_kind(kind)
    if entry and given.get("name"):
        raise UsageError(f"the name is given twice: {entry} and --name {given['name']}")
    given["name"] = entry or given.get("name")
    options = given_of(declared.options.model_fields, given)
    units = {"Downloading": BYTES, "Compiling": PERCENT}
    with shown_progress(True, units, log=False) as show:
        made = fetch(kind, output=output, progress=partial(_told, show), **options)
    info = read_info(made.folder)
    for note in info.source.notes:
        echo(f"kb-cache: note: {note}", err=True)
    echo(
        f"{info.name}: {declared.contents.format(**info.rows)}, {info.bytes / 1e6:.1f} MB, "
        f"digest {info.digest[:12]}, in {made.folder}"
    )


def _told(show: Progress, phase: str, done: int, total: int | None) -> None:
    show(phase, done, total or 0)


fetch_ = _Fetch("fetch", help="Compile a knowledge base into the cache.", context_settings=HELP)


@command("verify")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--repair",
    is_flag=True,
    help="Rebuild what is damaged from its recorded source, and remove damaged answers.",
)
@click.pass_context
def verify(context: click.Context, names: tuple[str, ...], repair: bool) -> None:
    """Compare every file with its checksum.

    The exit code is 1 if any is damaged and was not repaired.
    """
    from kb_cache.listing import holdings
    from kb_cache.store import find, full_name

    known = holdings()
    failed = False
    names = tuple(full_name(name, known) for name in names)
    for name in names:
        if name not in known:
            find(name)  # says that there is none, and what there is
    for holding in [known[name] for name in names] or known.values():
        damage = holding.damage()
        if not damage:
            echo(f"{holding.name}: sound")
            continue
        for sentence in damage:
            echo(f"{holding.name}: {sentence}", err=True)
        if not repair:
            failed = True
            continue
        try:
            echo(f"{holding.name}: {holding.repair()}")
        except KbprobeError as error:
            failed = True
            echo(f"{holding.name}: cannot be repaired. {error}", err=True)
    if failed:
        context.exit(FAILED)


@command("clear")
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Remove everything that is cached.")
@click.option(
    "--stale",
    is_flag=True,
    help="Remove only what interrupted commands left: half-written files, unfinished downloads.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def clear(
    context: click.Context, name: str | None, everything: bool, stale: bool, yes: bool
) -> None:
    """Remove a knowledge base or an endpoint's answers from the cache, or everything.

    What interrupted writes left behind is removed as well.
    """
    from kb_cache import store
    from kb_cache.listing import holdings
    from kb_cache.store import find, full_name

    if [everything, name is not None, stale].count(True) != 1:
        raise UsageError("give the NAME of what to remove, or --all, or --stale")
    if stale:
        removed = store.sweep()
        for path in removed:
            echo(f"{path}: removed")
        if not removed:
            echo(f"Nothing was left in {cache_dir()} by interrupted commands.")
        return
    known = holdings()
    # A name of which nothing but the remains of dead writers is left counts as well.
    remains = store.all_remains()
    embedded = {each for each, holding in known.items() if holding.embedded}
    if name is None:
        doomed = sorted({*known, *remains} - embedded)
    else:
        name = full_name(name, {*known, *remains})
        if name not in known and name not in remains:
            find(name)  # says that there is none, and what there is
        elif name in embedded:
            known[name].remove()  # says that it cannot be removed
        doomed = [name]
    more = {"downloaded files": store.downloads(), "derived tables": store.derived_tables()}
    more = {what: paths for what, paths in more.items() if everything and paths}
    what = [*doomed, *more]
    if not what:
        echo("The cache is empty.")
        return
    if not yes and not click.confirm(visible(f"Remove {', '.join(what)} from {cache_dir()}?")):
        echo("Nothing was removed.")
        context.exit(FAILED)
    for each in doomed:
        if known[each].remove() if each in known else store.remove_entry(each):
            echo(f"{each}: removed")
    for each, paths in more.items():
        remove_files(paths)
        echo(f"{each}: removed")
    if everything and store.downloads_dir().is_dir():
        echo(f"{store.downloads_dir()} holds files without a record of kbprobe: they are kept.")


def main(args: list[str] | None = None) -> int:
    """Entry point of ``kb-cache``; returns the exit code."""
    return run(Program("kb-cache", SUBCOMMANDS, help=HELP_TEXT), args, "kb-cache")


if __name__ == "__main__":
    sys.exit(main())
