"""The command ``build-probe``.

Options of a probe are made from its options model, so this module names none of them. Only
click and the standard library are imported at the top: ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kbprobe.cli import Dispatch, debug_option, kbprobe_version, run
from kbprobe.errors import KbprobeError, UsageError

if TYPE_CHECKING:
    from builders.engine.probe import Probe
    from builders.engine.registry import Entry
    from builders.engine.request import Request

PROGRAM = "build-probe"
DEFAULT_PARENT = Path("probes")


@dataclass(frozen=True)
class Job:
    """A probe to build, and where to put it."""

    request: Request
    folder: Path


def main(args: Sequence[str] | None = None) -> None:
    """Run ``build-probe`` and exit with its code."""
    words = list(sys.argv[1:] if args is None else args)
    commands = {"list": list_command, "show": show_command}
    sys.exit(run(Dispatch(PROGRAM, commands, _from_words), words, PROGRAM))


def _from_words(words: Sequence[str]) -> click.Command:
    """Make the build command, whose options depend on the probes named."""
    return build_command(named_probes(words))


def named_probes(words: Sequence[str]) -> dict[str, Entry | Probe]:
    """Return the probes that a command line names; options' values may stand among them.

    Our own are not imported yet.
    """
    from builders.engine.registry import PROBES

    found: dict[str, Entry | Probe] = {}
    for word in words:
        if word in PROBES:
            found[word] = PROBES[word]
        elif not word.startswith("-"):
            from builders.engine.probe import find_probe, knows

            if knows(word):
                found[word] = find_probe(word)
    return found


def build_command(probes: Mapping[str, Entry | Probe]) -> click.Command:
    """Make the build command, with the options of the given probes."""
    common = [
        click.Argument(["names"], nargs=-1, metavar="NAME..."),
        click.Option(
            ["-o", "--output"],
            type=click.Path(path_type=Path),
            help="The probe's folder [probes/NAME]; of several probes, the parent of all [probes].",
        ),
        click.Option(["--seed"], type=int, default=0, show_default=True, help="Seed of all draws."),
        click.Option(
            ["--template"],
            type=click.Path(path_type=Path),
            help="A YAML file that extends or replaces the built-in wordings.",
        ),
        click.Option(
            ["--format"],
            type=click.Choice(["parquet", "jsonl"]),
            default="parquet",
            show_default=True,
            help="How to write the data.",
        ),
        click.Option(["--audit/--no-audit"], default=True, help="Run the audit at the end."),
        click.Option(["--overwrite"], is_flag=True, help="Replace another probe in the folder."),
        click.Option(
            ["--recipe"],
            type=click.Path(path_type=Path),
            help="Build the set of probes declared in a YAML file.",
        ),
        click.Option(
            ["--from-manifest"],
            type=click.Path(path_type=Path),
            help="Build what a manifest.json records, and compare checksums.",
        ),
        click.Option(["--json"], is_flag=True, help="Print the manifests instead of a summary."),
    ]
    specific = _specific_options(probes)
    command = click.Command(
        PROGRAM,
        params=[*common, *specific],
        callback=_build_callback(probes, {str(option.name) for option in specific}),
        help=_help_text(probes),
        epilog=f"{PROGRAM} list | show NAME | NAME --help (the options of a probe)",
    )
    return debug_option(command)


def _specific_options(probes: Mapping[str, Entry | Probe]) -> list[click.Option]:
    if not probes:
        return []  # The bare --help has no need of pydantic.
    from kbprobe.options import command_option

    return [command_option(name, info) for name, info in _fields(probes).items()]


def _help_text(probes: Mapping[str, Entry | Probe]) -> str:
    if probes:
        return "\n\n".join(f"{name}: {probe.summary}" for name, probe in probes.items())
    from builders.engine.registry import PROBES

    return (
        "Build probe datasets from knowledge bases.\n\n"
        f"Probes: {', '.join(PROBES)}.\n\n"
        f"Options of a probe: {PROGRAM} NAME --help"
    )


def _fields(probes: Mapping[str, Entry | Probe]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for probe in probes.values():
        for name, info in probe.options.model_fields.items():
            fields.setdefault(name, info)
    return fields


def _build_callback(probes: Mapping[str, Entry | Probe], own: set[str]) -> Callable[..., None]:
    def callback(
        names: tuple[str, ...],
        output: Path | None,
        recipe: Path | None,
        from_manifest: Path | None,
        overwrite: bool,
        json: bool,
        **values: Any,
    ) -> None:
        given = {name: values.pop(name) for name in list(values) if name in own}
        given = {name: value for name, value in given.items() if value is not None}
        sources = [bool(names), recipe is not None, from_manifest is not None]
        if sum(sources) != 1:
            raise UsageError(
                f"name the probes to build, or give --recipe, or --from-manifest (one of the "
                f"three). `{PROGRAM} list` shows the probes."
            )
        if from_manifest is not None:
            _rebuild(from_manifest, output, values["template"], overwrite, json)
            return
        if recipe is not None:
            jobs = _recipe_jobs(recipe, output, values)
        else:
            jobs = _named_jobs(names, given, output, values)
        _build_all(jobs, overwrite, json)

    return callback


def _named_jobs(
    names: tuple[str, ...], given: dict[str, Any], output: Path | None, values: dict[str, Any]
) -> list[Job]:
    from builders.engine.probe import find_probe
    from builders.engine.request import Request
    from kbprobe.options import option_name, parsed

    probes = [find_probe(name) for name in dict.fromkeys(names)]
    if len(probes) == 1:
        folders = [output or DEFAULT_PARENT / probes[0].name]
    else:
        folders = [(output or DEFAULT_PARENT) / probe.name for probe in probes]
    jobs = []
    for probe, folder in zip(probes, folders, strict=True):
        fields = probe.options.model_fields
        options = {
            name: parsed(fields[name], value) for name, value in given.items() if name in fields
        }
        for name in given.keys() - options.keys():
            click.echo(f"{PROGRAM}: {probe.name} has no {option_name(name)}", err=True)
        jobs.append(Job(Request(probe, probe.options.parse(options, probe.name), **values), folder))
    return jobs


def _recipe_jobs(path: Path, output: Path | None, values: dict[str, Any]) -> list[Job]:
    from builders.engine.probe import find_probe
    from builders.engine.recipe import load_recipe
    from builders.engine.request import Request

    recipe = load_recipe(path)
    jobs = []
    for entry in recipe.probes:
        probe = find_probe(entry.probe)
        request = Request(
            probe,
            probe.options.parse(entry.options, f"{path}: {entry.probe}"),
            recipe.seed if entry.seed is None else entry.seed,
            entry.template or values["template"],
            values["format"],
            values["audit"],
        )
        jobs.append(Job(request, (output or recipe.output) / (entry.output or entry.probe)))
    return jobs


def _build_all(jobs: list[Job], overwrite: bool, as_json: bool) -> None:
    from builders.engine.pipeline import build_all, prepare
    from kbprobe.format.manifest import read_manifest

    waiting = []
    for job in jobs:
        prepared = prepare(job.request)
        if prepared.is_in(job.folder, overwrite):
            manifest = read_manifest(job.folder)
            rows = manifest["counts"]["rows"]
            click.echo(f"{job.folder} already holds exactly this ({rows:,} rows).", err=as_json)
            if as_json:
                _report(manifest, None, job.folder, as_json)
        else:
            waiting.append((prepared, job.folder))
    with _progress() as progress:
        for built, manifest, folder in build_all(waiting, progress):
            progress("")
            _report(manifest, built, folder, as_json)


def _report(manifest: dict[str, Any], built: Any, folder: Path, as_json: bool) -> None:
    if as_json:
        import json

        from kbprobe.format.manifest import jsonable

        click.echo(json.dumps({"folder": str(folder), **manifest}, default=jsonable))
        return
    from builders.engine.summary import show

    show(manifest, built, folder)


def _rebuild(
    path: Path, output: Path | None, template_file: Path | None, overwrite: bool, as_json: bool
) -> None:
    from tempfile import TemporaryDirectory

    from builders.engine.pipeline import build, prepare, request_of, same_rows, write
    from kbprobe.format.manifest import read_manifest

    old = read_manifest(path)
    prepared = prepare(request_of(old, template_file))
    asked = prepared.description()
    remedies = {
        "knowledge_base": "fetch the version that the manifest names (kb-cache fetch)",
        "template_digest": f"give the template with --template ({old['template']['sources'][-1]})",
    }
    for name, remedy in remedies.items():
        if asked[name] != old["request"][name]:
            raise KbprobeError(
                f"{path} was built with another {name.split('_digest')[0].replace('_', ' ')} "
                f"({old['request'][name][:12]}; here {asked[name][:12]}): {remedy}"
            )
    if kbprobe_version() != old["kbprobe_version"]:
        click.echo(
            f"{PROGRAM}: built by kbprobe {old['kbprobe_version']}, this is {kbprobe_version()}",
            err=True,
        )
    if output is not None and prepared.is_in(output, overwrite):
        click.echo(f"{output} already holds exactly this.", err=as_json)
        return
    with TemporaryDirectory(prefix="kbprobe-") as scratch, _progress() as progress:
        built = build(prepared, progress)
        folder = output or Path(scratch) / "probe"
        new = write(built, folder)
    if as_json:
        _report(new, built, folder, as_json)
    differences = same_rows(old, new)
    if any(not difference.endswith("now)") for difference in differences):
        raise KbprobeError("the rebuilt probe differs: " + "; ".join(differences))
    if not as_json:
        rows = new["counts"]["rows"]
        click.echo("\n".join([*differences, f"Rebuilt: {rows:,} rows, the same."]))


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Show the current phase on stderr, where that is a terminal; an empty one hides it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:

        def show(phase: str) -> None:
            status.update(phase)
            (status.start if phase else status.stop)()

        yield show


@click.command("list", help="List all probes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@debug_option
def list_command(as_json: bool) -> None:
    """Print every probe's name and what it asks."""
    from builders.engine.probe import summaries

    probes = summaries()
    if as_json:
        import json

        click.echo(json.dumps(probes))
        return
    width = max(map(len, probes))
    for name, summary in probes.items():
        click.echo(f"{name:<{width}}  {summary}")


@click.command("show", help="Show a probe: what it asks, its wordings, its options.")
@click.argument("name")
@debug_option
def show_command(name: str) -> None:
    """Print a probe's summary, wordings and options."""
    from builders.engine.probe import find_probe
    from builders.engine.summary import show_probe

    show_probe(find_probe(name))


if __name__ == "__main__":
    main()
