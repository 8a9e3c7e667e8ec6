"""The command ``evaluate-probe reproduce``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from evaluation.options import ModelOptions, Models, RunOptions, options_that
from evaluation.workers import UNITS
from kbprobe.cli import command, option
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.options import command_option
from kbprobe.terminal import echo
from kbprobe.terminal.progress import shown_progress

if TYPE_CHECKING:
    from evaluation.reproduce.frame import Paper, Step
    from evaluation.runs.costs import Forecast

PAPERS = {
    "olmpics": "Talmor et al. 2020: zero-shot, learning curves with controls, medals.",
    "wordnetqa": "Richardson and Sabharwal 2020: zero-shot, partial input, inoculation, clusters.",
    "function-words": "Kim et al. 2019: cross-validated acceptability, transfer of NLI.",
}
"""The papers; each is declared in a module of its name."""

_SAMPLE = 4
"""Rows of each model that are timed for the forecast."""

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
    listed={"Papers": PAPERS},
)
@click.argument("name", type=click.Choice([*PAPERS]), metavar="NAME")
@option(
    "-m", "--model", "models", multiple=True, required=True, metavar="MODEL", section="Model",
    help="A folder, a .gguf file or a Hub id. Can be repeated.",
)  # fmt: skip
@option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="DIR",
    help="Folder of the tables and of all results. [default: results/reproduce-NAME]",
)  # fmt: skip
@option(
    "--probes", "folder", type=click.Path(path_type=Path), metavar="DIR", section="Probe",
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
    folder: Path | None,
    data: Path | None,
    only: str | None,
    task: str | None,
    vectors: str | None,
    quick: bool,
    dry_run: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Reproduce a paper's tables."""
    from evaluation.report.terminal import print_document
    from evaluation.reproduce import sources
    from evaluation.reproduce.frame import RECORD, ReproduceRequest, plan, run
    from evaluation.runs.checks import check_model
    from evaluation.runs.costs import forecast
    from evaluation.studies.base import pages, write_record

    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")
    paper = paper_of(name)
    if {"task": task, "vectors": vectors}.get(paper.refused) is not None:
        raise UsageError(f"{name} does not use --{paper.refused}: leave it out")
    if data is not None and folder is not None:
        raise UsageError(
            "--data names the paper's own files, --probes built ones: give one of them"
        )
    probes = paper.published.probes
    if only is not None:
        chosen = [probe.strip() for probe in only.split(",")]
        for probe in (probe for probe in chosen if probe not in probes):
            raise UsageError(
                f"--only {probe}: the paper has no such probe.{did_you_mean(probe, probes)} It "
                f"has: {', '.join(probes)}."
            )
        probes = {probe: probes[probe] for probe in chosen}
    given = {key: value for key, value in values.items() if value is not None}
    for model in models:
        check_model(model, given.get("revision"))
    if quick:
        given = {**paper.quick, **given}
    place = output or Path("results") / f"reproduce-{name}{'-quick' if quick else ''}"
    left_out: list[str] = []
    with shown_progress(True, UNITS) as progress, TemporaryDirectory() as scratch:
        if data is not None:
            copies = Path(scratch) if dry_run else place / "data"
            found = sources.published_probes(probes, data, copies)
            lacking = ", ".join(probe for probe in probes if probe not in found)
            left_out += [f"{data} has no files of {lacking}"] if lacking else []
        else:
            folder = folder or Path("probes")
            found = sources.built_probes(
                probes, folder, paper.build_options, dry_run, left_out, progress
            )
        if dry_run and not found:
            echo("What will be run, and for how long, is known once a probe is built.", err=True)
            return
        asked = ReproduceRequest(
            probes=found,
            models=list(dict.fromkeys(models)),
            output=place,
            quick=quick,
            published=data is not None,
            dry_run=dry_run,
            task=task,
            vectors=vectors,
            values=given,
            progress=progress,
            left_out=left_out,
        )
        steps = plan(paper, asked)
        expected = forecast((spec for step in steps for spec in step.specs), _SAMPLE, progress)
        by_step = _by_step(steps, expected)
        _print_forecast(by_step, expected)
        if dry_run:
            for line in asked.left_out:
                echo(f"Left out: {line}", err=True)
            if as_json:
                echo(json.dumps({"steps": by_step, "total": expected.totals}, ensure_ascii=False))
            return
        record, document = run(paper, asked, steps)
    for path in write_record(RECORD, record, pages(RECORD, document), place):
        echo(f"Wrote {path}", err=True)
    if as_json:
        echo(record.model_dump_json())
    else:
        print_document(document)


reproduce_command.params += _OPTIONS


def _by_step(steps: Sequence[Step], expected: Forecast) -> list[dict[str, Any]]:
    """Return what each study of a model on a probe takes; what runs share is in the first."""
    from evaluation.runs.costs import totals_of

    costs, parts = iter(expected.costs), []
    for step in steps:
        own = totals_of([next(costs) for _ in step.specs])
        parts.append({"study": step.study, "probe": step.probe, "model": step.name, **own})
    return parts


def _print_forecast(by_step: Sequence[Mapping[str, Any]], expected: Forecast) -> None:
    """Print on stderr what each step takes, and all of them together."""
    from evaluation.results.console import print_rows, wide_console
    from evaluation.results.words import duration

    sums: dict[tuple[str, ...], list[int]] = {}
    for part in by_step:
        own = sums.setdefault((part["study"], part["probe"], part["model"]), [0, 0, 0, 0])
        for number, name in enumerate(("runs", "finished", "unknown", "seconds")):
            own[number] += part[name]
    rows = [
        (*names, f"{runs:,}", f"{finished:,}", "not known" if unknown else duration(seconds))
        for names, (runs, finished, unknown, seconds) in sums.items()
    ]
    head = ("study", "probe", "model", "runs", "finished", "time")
    print_rows(head, rows, names=3, console=wide_console(stderr=True))
    for line in (expected, *(f"Not forecast: {problem}" for problem in expected.problems)):
        echo(str(line), err=True)


def paper_of(name: str) -> Paper:
    """Import the declaration of a paper."""
    found: Paper = import_module(f"evaluation.reproduce.{name.replace('-', '_')}").PAPER
    return found
