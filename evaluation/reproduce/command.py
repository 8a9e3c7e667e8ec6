"""The command ``evaluate-probe reproduce``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from evaluation.options import ModelOptions, Models, RunOptions, options_that
from evaluation.workers import UNITS
from kbprobe.commands import command, option
from kbprobe.errors import KbprobeError, UsageError, did_you_mean
from kbprobe.options import command_option
from kbprobe.progress import shown_progress
from kbprobe.terminal import echo

if TYPE_CHECKING:
    from evaluation.reproduce.frame import Asked, Paper
    from evaluation.runs.executor import Outcome
    from kbprobe.progress import Progress

_PAPERS = {
    "olmpics": "Talmor et al. 2020: zero-shot, learning curves with controls, medals.",
    "wordnetqa": "Richardson and Sabharwal 2020: zero-shot, partial input, inoculation, clusters.",
    "function-words": "Kim et al. 2019: cross-validated acceptability, transfer of NLI.",
}
_UNUSED = ("random_weights", *options_that(lambda role: role.models == Models.ENDPOINT))
"""Options of models that no paper uses: models are fitted, and looked into."""

_OPTIONS = [
    *(command_option(name, RunOptions.model_fields[name]) for name in ("limit", "seed")),
    *(
        command_option(name, info)
        for name, info in ModelOptions.model_fields.items()
        if name not in _UNUSED
    ),
]


@command(
    "reproduce",
    help="Run a paper's protocol on its probes with your models, and print its tables with your "
    "rows next to the published ones. Probes that are not there are built first.",
    listed={"Papers": _PAPERS},
)
@click.argument("name", type=click.Choice([*_PAPERS]), metavar="NAME")
@option(
    "-m", "--model", "models", multiple=True, required=True, metavar="MODEL", section="Model",
    help="A folder, a .gguf file or a Hub id. Can be repeated.",
)  # fmt: skip
@option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="DIR",
    help="Folder of the tables and of all results. [default: results/reproduce-NAME]",
)  # fmt: skip
@option(
    "--probes", "folder", type=click.Path(path_type=Path), default=Path("probes"), metavar="DIR",
    section="Probe",
    help="Folder of the built probes; those missing are built there. [default: probes]",
)  # fmt: skip
@option(
    "--data", type=click.Path(path_type=Path), metavar="DIR", section="Probe",
    help="Folder of the paper's own files, to be used instead of built probes.",
)  # fmt: skip
@option(
    "--only", metavar="A,B,...", section="Probe",
    help="Probes of the paper to use. [default: all]",
)  # fmt: skip
@option(
    "--task", metavar="TASK", section="Training",
    help="What models are trained for first: wordnetqa, questions with choices; function-words, "
    "NLI data. A folder, a file or a Hub id.",
)  # fmt: skip
@option(
    "--vectors", metavar="NAME", section="Training",
    help="Word vectors of the baselines of olmpics and wordnetqa, by name.",
)  # fmt: skip
@option("--quick", is_flag=True, help="A small version, in minutes; it is marked as such.")
@option(
    "--dry-run", is_flag=True,
    help="Print what would be built and run, and about how long it takes; run nothing.",
)  # fmt: skip
@option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def reproduce_command(
    name: str,
    models: tuple[str, ...],
    output: Path | None,
    folder: Path,
    data: Path | None,
    only: str | None,
    task: str | None,
    vectors: str | None,
    quick: bool,
    dry_run: bool,
    as_json: bool,
    **values: Any,
) -> int | None:
    """Reproduce a paper's tables."""
    from evaluation.report.terminal import print_document
    from evaluation.reproduce.forecast import forecast
    from evaluation.reproduce.frame import Asked, plan, run, write
    from evaluation.reproduce.registry import PAPERS
    from evaluation.runs.checks import check_model

    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")
    paper = PAPERS[name]
    for option_name in paper.refused:
        if {"task": task, "vectors": vectors}[option_name] is not None:
            raise UsageError(f"{name} does not use --{option_name}: leave it out")
    if only is not None:
        names = [probe.strip() for probe in only.split(",")]
        paper = replace(paper, probes=_chosen(paper.probes, names))
    given = {key: value for key, value in values.items() if value is not None}
    for model in models:
        check_model(model, given.get("revision"))
    if quick:
        given = {**paper.quick, **given}
    place = output or Path("results") / f"reproduce-{name}{'-quick' if quick else ''}"
    asked = Asked(
        {}, list(dict.fromkeys(models)), place, quick, data is not None, task, vectors, given
    )
    with shown_progress(True, UNITS) as progress, TemporaryDirectory() as scratch:
        copies = Path(scratch) if dry_run else place / "data"
        asked = _with_probes(paper, asked, folder, data, copies, dry_run, progress)
        if dry_run and not asked.probes:
            echo("What will be run, and for how long, is known once a probe is built.", err=True)
            return None
        if not dry_run:
            asked = paper.prepare(asked, progress)
        pieces = plan(paper, asked)
        expected = forecast(pieces, progress=progress)
        echo(str(expected), err=True)
        for model, why in expected.untimed.items():
            echo(f"The time of {model} is not known: {why}", err=True)
        if dry_run:
            return None
        record, document = run(paper, asked, pieces, progress, _report)
    for path in write(record, document, place):
        echo(f"Wrote {path}", err=True)
    if as_json:
        echo(record.model_dump_json())
    else:
        print_document(document)
    return None


reproduce_command.params += _OPTIONS


def _report(outcome: Outcome) -> None:
    """Report on stderr why a run failed."""
    if isinstance(outcome.result, KbprobeError):
        run = f"{outcome.spec.probe_name} with {outcome.spec.model_name}"
        echo(f"{run}: {outcome.result}", err=True)


def _chosen(probes: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """Return the probes of some names.

    Raises:
        UsageError: the paper has no such probe.
    """
    for name in names:
        if name not in probes:
            raise UsageError(
                f"--only {name}: the paper has no such probe.{did_you_mean(name, probes)} It has: "
                f"{', '.join(probes)}."
            )
    return {name: probes[name] for name in names}


def _with_probes(
    paper: Paper,
    asked: Asked,
    folder: Path,
    data: Path | None,
    copies: Path,
    dry_run: bool,
    progress: Progress,
) -> Asked:
    """Return the request with the probes that there are, after building those that are missing."""
    from evaluation.reproduce import sources

    if data is not None:
        found = sources.published_probes(paper.probes, data, copies)
        lacking = [name for name in paper.probes if name not in found]
        asked.left_out.extend(f"{name}: no file of it in {data}" for name in lacking)
        return replace(asked, probes=found)
    _, missing = sources.built_probes(paper.probes, folder)
    for name in missing:
        command = sources.build_command(name, folder)
        echo(f"{'To be built' if dry_run else 'Building'}: {command}", err=True)
        if not dry_run and (why := sources.build(name, folder, progress)) is not None:
            echo(why, err=True)
            asked.left_out.append(why)
    return replace(asked, probes=sources.built_probes(paper.probes, folder)[0])
