"""The command ``build-probe``.

Options of a probe are generated from its options model, so this module names none of them. The
building code is imported only when it is needed, so that ``--help`` is fast.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from builders.engine.own_files import own_file
from builders.engine.registry import PROBES, SOURCES
from kbprobe.cli import MAX_SEED, Command, Option, Program, Subcommand, command, option, run
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.terminal import echo

if TYPE_CHECKING:
    from builders.engine.probe import Probe
    from builders.engine.registry import ProbeEntry

PROGRAM = "build-probe"
SUBCOMMANDS = {
    "list": Subcommand(
        "Commands",
        "List all probes: how large they are, and what they need.",
        "builders.cli:list_command",
    ),
    "show": Subcommand(
        "Commands",
        "Show what a probe asks, its wordings and its options.",
        "builders.cli:show_command",
    ),
}
EXAMPLES = (
    f"{PROGRAM} wordnet_hypernymy",
    f"{PROGRAM} age_comparison object_comparison --limit 1000 -o probes",
    f"{PROGRAM} taxonomy_conjunction --sample 50 --blind",
)


def main(args: Sequence[str] | None = None) -> None:
    """Run ``build-probe`` and exit with its code."""
    # Read when NumPy is imported. A build's products of matrices gain nothing by more threads, and
    # those of builds side by side would wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    program = Program(PROGRAM, SUBCOMMANDS, lambda words: build_command(named_probes(words)))
    sys.exit(run(program, args, PROGRAM))


def named_probes(words: Sequence[str]) -> dict[str, ProbeEntry | Probe]:
    """Return the probes named on a command line; values of options may be among them.

    Built-in probes are not imported for this.

    Raises:
        UsageError: a word that can only be the name of a probe is not one.
    """
    found: dict[str, ProbeEntry | Probe] = {}
    certain = _certain_names(words)
    for at, word in enumerate(words):
        if word in PROBES:
            found[word] = PROBES[word]
        elif at in certain and (own := own_file(word)):
            found[own.probe] = PROBES[own.probe]
        elif not word.startswith("-"):
            from builders.engine.probe import find_probe, knows

            if knows(word) or at in certain:
                found[word] = find_probe(word, tuple(SUBCOMMANDS))
    return found


def _certain_names(words: Sequence[str]) -> set[int]:
    """Return the indices of the words that are neither options nor possible values of options."""
    flags = {
        flag
        for option in _build.params
        if isinstance(option, Option) and option.is_flag
        for flag in (*option.opts, *option.secondary_opts)
    }
    before = ["", *words]
    return {
        at
        for at, word in enumerate(words)
        if not word.startswith("-")
        and (not before[at].startswith("-") or before[at] in flags or "=" in before[at])
    }


_PATH = click.Path(path_type=Path)


class _Build(Command):
    """The build command of some probes; error messages name those that lack an option."""

    probes: Sequence[str] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; an option that none of the probes has is refused."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = sorted({flag for option in self.params for flag in option.opts})
            hint = did_you_mean(error.option_name, known)
            if not self.probes:
                owner, more = "no probe is named that would have the option", f"{PROGRAM} --help"
            else:
                owner = f"{' and '.join(self.probes)} {'have' if self.probes[1:] else 'has'} no"
                owner, more = f"{owner} option", f"{PROGRAM} {self.probes[0]} --help"
            hint = hint or _having(error.option_name)
            raise UsageError(f"{owner} {error.option_name}.{hint} More: {more}") from None


def _having(option: str) -> str:
    """Return the names of the probes that have an option, if any."""
    from builders.engine.probe import all_probes

    field = option.removeprefix("--").replace("-", "_")
    names = [name for name, probe in all_probes().items() if field in probe.options.model_fields]
    return f" These have it: {', '.join(sorted(names))}." if names else ""


def build_command(probes: Mapping[str, ProbeEntry | Probe]) -> Command:
    """Make the build command, with the options of the given probes."""
    fields: dict[str, Any] = {}
    for probe in probes.values():
        fields |= {
            name: info for name, info in probe.options.model_fields.items() if name not in fields
        }
    specific: list[Option] = []
    listed: dict[str, dict[str, str]] = {}
    if probes:  # The bare --help does not need pydantic.
        from kbprobe.options import command_option

        specific = [command_option(name, info, "Probe") for name, info in fields.items()]
        about = "\n\n".join(f"{name}: {probe.summary}" for name, probe in probes.items())
    else:
        about = "Build probe datasets from knowledge bases."
        listed = {source: {} for source in SOURCES}
        for name, entry in PROBES.items():
            listed[entry.source][name] = entry.summary
    made = copy(_build)
    made.params, made.probes, made.help = [*_build.params, *specific], list(probes), about
    made.examples, made.listed = () if probes else EXAMPLES, listed
    made.described = "" if probes else f"{PROGRAM} NAME --help"
    return made


@click.command(PROGRAM, cls=_Build)
@click.argument("names", nargs=-1, metavar="NAME...")
@option(
    "-o", "--output", type=_PATH, metavar="DIR",
    help="Folder of the probe; of several probes, its parent. [default: probes/NAME]",
)  # fmt: skip
@option(
    "--seed", type=click.IntRange(0, MAX_SEED), metavar="N", section="Build",
    help="Random seed. [default: 0, or the recipe's]",
)  # fmt: skip
@option(
    "--template", type=_PATH, metavar="FILE", section="Build", rare=True,
    help="YAML file that extends or replaces the built-in wordings.",
)  # fmt: skip
@option(
    "--format", type=click.Choice(["parquet", "jsonl"]), default="parquet",
    help="File format of the data. [default: parquet]",
)  # fmt: skip
@option(
    "--audit/--no-audit", default=True, section="Build", rare=True,
    help="Audit the probe after building it. [default: yes]",
)  # fmt: skip
@option("--overwrite", is_flag=True, help="Replace another probe in the folder.")
@option(
    "--dry-run", is_flag=True, section="Build",
    help="Print five rows of each relation and what is left out, and write nothing.",
)  # fmt: skip
@option(
    "--sample", type=click.IntRange(1), metavar="N", section="Reading sheet",
    help="Write N rows of the test split as a sheet for human readers, in CSV and HTML.",
)  # fmt: skip
@option(
    "--blind", is_flag=True, section="Reading sheet",
    help="Leave the answers out of the sheet; release-probe annotate score reads it back.",
)  # fmt: skip
@option(
    "--sheet", type=_PATH, metavar="DIR", section="Reading sheet", rare=True,
    help="Folder of the sheet. [default: that of the probe, with -reading]",
)  # fmt: skip
@option(
    "--recipe", type=_PATH, metavar="FILE", section="Build",
    help="Build the set of probes declared in a YAML file.",
)  # fmt: skip
@option(
    "--suite", metavar="NAME", section="Build",
    help="Build a standard suite, such as kbprobe-1, and compare its checksums; with another "
    "--seed, a sibling: another sample of the same distribution.",
)  # fmt: skip
@option(
    "--from-manifest", type=_PATH, metavar="FILE", section="Build",
    help="Rebuild what a manifest.json records, and compare checksums.",
)  # fmt: skip
@option(
    "--clean", type=_PATH, is_flag=False, flag_value=Path("probes"), metavar="[DIR]", rare=True,
    help="Remove what interrupted commands left in an output folder. [default: probes]",
)  # fmt: skip
@option(
    "--workers", type=click.IntRange(1), metavar="N", section="Build", rare=True,
    help="How many processes build several probes, on Linux. [default: one for each processor, as "
    "far as memory allows]",
)  # fmt: skip
@option("--json", "as_json", is_flag=True, help="Print the manifests instead of a summary.")
def _build(
    names: tuple[str, ...],
    output: Path | None,
    seed: int | None,
    template: Path | None,
    format: str,
    audit: bool,
    overwrite: bool,
    dry_run: bool,
    sample: int | None,
    blind: bool,
    sheet: Path | None,
    recipe: Path | None,
    suite: str | None,
    from_manifest: Path | None,
    clean: Path | None,
    workers: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Build the named probes, or those that a recipe or a manifest records."""
    if clean is not None and not (names or recipe or suite or from_manifest):
        from builders.engine.command import clean as run_clean

        run_clean(clean, as_json)
        return
    given_sets = [file for file in (recipe, suite, from_manifest) if file is not None]
    if len(given_sets) + bool(names) != 1 or clean:
        raise UsageError(
            "name the probes to build, or give --suite, --recipe or --from-manifest (one of them). "
            f"`{PROGRAM} list` shows the probes."
        )
    if sample is None and (blind or sheet is not None):
        raise UsageError("--blind and --sheet need --sample N: how many rows to write.")
    if sample is not None and from_manifest is not None:
        raise UsageError("--sample cannot be combined with --from-manifest: name the probe.")
    if dry_run and (sample or from_manifest):
        raise UsageError("--dry-run writes nothing: it goes with neither --sample nor a manifest")
    from builders.engine import command

    if from_manifest is not None:
        command.rebuild(from_manifest, output, template, overwrite, as_json)
        return
    values = {"template": template, "format": format, "audit": audit}
    if suite is not None and template is not None:
        raise UsageError("--template does not go with --suite: a suite has its own wordings")
    if suite is not None:
        from builders.engine.recipe import find_suite

        recipe = find_suite(suite)
    declared = None
    if recipe is not None:
        from builders.engine.recipe import read_recipe

        declared = read_recipe(recipe, output, values, seed)
        jobs, failures = declared.jobs, command.Failures(len(declared.jobs))
    else:
        failures = command.Failures(len(set(names)))
        given = {name: value for name, value in options.items() if value is not None}
        jobs = command.named_jobs(names, given, output, {"seed": seed or 0, **values}, failures)
    if dry_run:
        command.preview(jobs, as_json)
        return
    if sheet is not None and len(jobs) > 1:
        raise UsageError("--sheet is the folder of one probe's sheet; leave it out for several.")
    reading = None if sample is None else command.Reading(sample, blind, sheet)
    command.run_jobs(
        jobs,
        overwrite,
        as_json,
        reading,
        brief=suite is not None,
        failures=failures,
        workers=workers,
    )
    if declared is not None:
        command.finish(declared, as_json)


@command(
    "list",
    help="List all probes: how many rows a default build has, what knowledge bases it needs, and "
    "whether they are there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool) -> None:
    """Print every probe: rows, needs, state, and what it asks."""
    from builders.engine.listing import listed_probes, records, table

    probes = listed_probes()
    if as_json:
        echo(json.dumps(records(probes)))
        return
    width = get_terminal_size().columns if sys.stdout.isatty() else None
    echo("\n".join(table(probes, width)))


@command("show", help="Show a probe: what it asks, its wordings, its options.")
@click.argument("name")
def show_command(name: str) -> None:
    """Print a probe's summary, wordings and options."""
    from builders.engine.probe import find_probe
    from builders.engine.summary import show_probe

    show_probe(find_probe(name))


if __name__ == "__main__":
    main()
