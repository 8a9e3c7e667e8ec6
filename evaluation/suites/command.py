"""The command ``evaluate-probe suite``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evaluation.workers import UNITS, Session
from kbprobe.cli import FAILED, command
from kbprobe.terminal import echo
from kbprobe.terminal.progress import shown_progress

if TYPE_CHECKING:
    from evaluation.executors.base import Executor
    from evaluation.runs.costs import Cost
    from evaluation.suites.run import Done, PlannedRun, SuitePlan
    from kbprobe.terminal.progress import Progress, ShownProgress

PROGRAM = "evaluate-probe"


@command(
    "suite",
    help="Run all that a file declares: probes x models x studies x seeds. Finished runs are found "
    "by what they depend on, and never run again.",
)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.yaml")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="DIR",
    help="Folder of all results. [default: the file's output; else results/NAME of the file]",
)  # fmt: skip
@click.option(
    "--dry-run", is_flag=True,
    help="Print the runs, and what they take: rows, tokens and time, from a timed sample.",
)  # fmt: skip
@click.option(
    "--sample", type=click.IntRange(min=0), metavar="N",
    help="With --dry-run: rows to time with each model; 0: none. [default: 16]",
)  # fmt: skip
@click.option(
    "--trust-remote-code", is_flag=True,
    help="Run code that comes with the file's checkpoints. Read it first.",
)  # fmt: skip
@click.option(
    "--key-for", multiple=True, metavar="URL",
    help="Send KBPROBE_API_KEY to this endpoint of the file; to no other is it sent. Repeatable.",
)  # fmt: skip
@click.option(
    "--retries", type=click.IntRange(min=0), default=0, metavar="N",
    help="How many more times to try a run that failed, unless its options, its probe or its model "
    "are at fault.",
)  # fmt: skip
@click.option(
    "--executor", type=click.Choice(["in-process", "ray"]), default="in-process",
    help="What executes the runs: this process, or workers that Ray starts. [default: in-process]",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N",
    help="How many processes execute runs on the CPU, on Linux; with Ray, how many workers. "
    "[default: as many as have a processor and memory if models are tiny or none, else 1; Ray: as "
    "many as there are processors, or GPUs]",
)  # fmt: skip
@click.option(
    "--address", metavar="ADDRESS",
    help="Ray: the cluster's address, or auto. [default: workers on this machine]",
)  # fmt: skip
@click.option(
    "--gpus-per-worker", type=click.FloatRange(min=0), metavar="F",
    help="Ray: GPUs of each worker, such as 0.5. [default: 1 where there are GPUs, else 0]",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def suite_command(
    file: Path,
    output: Path | None,
    dry_run: bool,
    sample: int | None,
    trust_remote_code: bool,
    key_for: Sequence[str],
    as_json: bool,
    retries: int,
    **executing: Any,
) -> int:
    """Run a suite."""
    from evaluation.suites.file import read_suite
    from evaluation.suites.run import SuitePlan, run_suite

    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")
    with shown_progress(True, {**UNITS, "timing samples": "runs"}) as progress:
        executor = _executor(progress, **executing)
        consents: dict[str, Any] = {"trust_remote_code": trust_remote_code, "key_for": key_for}
        plan = SuitePlan.of(*read_suite(file, output, **consents))
        if dry_run:
            return _dry_run(plan, sample, as_json, progress)
        done = run_suite(plan, executor, retries, _report)
    _show(plan, done, as_json)
    return FAILED if done.failed else 0


def _executor(
    progress: ShownProgress,
    executor: str,
    workers: int | None,
    address: str | None,
    gpus_per_worker: float | None,
) -> Executor:
    from evaluation.executors.base import InProcess
    from kbprobe.errors import UsageError

    if executor == "ray":
        from evaluation.executors.ray import RayWorkers

        return RayWorkers(workers, address, gpus_per_worker, progress)
    for name, value in (
        ("--address", address),
        ("--gpus-per-worker", gpus_per_worker),
    ):
        if value is not None:
            raise UsageError(f"{name} is for --executor ray: give that as well, or leave it out")
    return InProcess(Session(progress=progress, processes=workers, line=progress.line))


def _report(run: PlannedRun, done: int, total: int) -> None:
    """Report on stderr how a run ended."""
    said = f"accuracy {100 * (run.accuracy or 0.0):.1f}" if run.error is None else run.error
    name = f"{run.spec.probe_name} with {run.spec.model}"
    options = "".join(f", {key} {value}" for key, value in run.spec.named_options().items())
    echo(f"[{done}/{total}] {name}{options}: {said}", err=True)


def _dry_run(plan: SuitePlan, sample: int | None, as_json: bool, progress: Progress) -> int:
    import json

    from evaluation.runs.costs import SAMPLE, forecast

    planned = plan.sorted_runs
    found = forecast([run.spec for run in planned], SAMPLE if sample is None else sample, progress)
    if as_json:
        runs = [
            {
                "key": run.key,
                "probe": run.spec.probe_name,
                "model": run.spec.model,
                "options": run.spec.named_options(),
                "finished": cost.finished,
                "rows": cost.rows,
                "tokens": cost.tokens,
                "seconds": cost.seconds,
                "problem": cost.problem,
            }
            for run, cost in zip(planned, found.costs, strict=True)
        ]
        echo(json.dumps({"runs": runs, "total": found.totals}, ensure_ascii=False))
        return 0
    _print_forecast(planned, found.costs)
    echo(f"\n{found}")
    for problem in found.problems:
        echo(f"A run could not be forecast: {problem}", err=True)
    return 0


def _print_forecast(planned: Sequence[PlannedRun], costs: Sequence[Cost]) -> None:
    from evaluation.names import model_name
    from evaluation.results.console import print_rows

    rows = []
    for run, cost in zip(planned, costs, strict=True):
        spec = run.spec
        options = " ".join(f"{name}={value}" for name, value in spec.named_options().items())
        state = "finished" if cost.finished else "failed before" if run.error else "new"
        numbers = (cost.rows, cost.tokens, None if cost.seconds is None else round(cost.seconds))
        shown = ("-" if number is None or cost.finished else f"{number:,}" for number in numbers)
        rows.append((spec.probe_name, model_name(spec.model), options, state, *shown))
    head = ("probe", "model", "options", "state", "rows", "tokens", "seconds")
    print_rows(head, sorted(rows), names=4)


def _show(plan: SuitePlan, done: Done, as_json: bool) -> None:
    if as_json:
        echo(done.record.model_dump_json())
    else:
        _print_runs(done)
        for request, summary in done.summaries:
            assert request.output is not None
            echo(f"\n{request.output.name} ({request.output}):")
            request.study.display(summary)
    failed = [run for run in done.record.runs if run.state == "failed"]
    for run in failed:
        echo(f"{PROGRAM}: {run.probe} with {run.model}: {run.error}", err=True)
    for name, reason in done.lacking.items():
        echo(f"{PROGRAM}: {name} could not be summarised: {reason}", err=True)
    kept = len(done.record.runs) - done.executed
    echo(
        f"{plan.folder}: {len(done.record.runs):,} runs, {kept:,} of them finished before; "
        f"{len(failed):,} failed.",
        err=True,
    )
    if len(failed) < len(done.record.runs):
        _write_page(plan.folder)


def _write_page(folder: Path) -> None:
    """Write the page of all results, unless what draws it is not installed."""
    from evaluation.report.suite import make_suite_page
    from evaluation.results.types import REPORT
    from evaluation.suites.run import RUNS
    from kbprobe.errors import MissingDependencyError

    try:
        made = make_suite_page(folder / RUNS, folder / REPORT)
    except MissingDependencyError as error:
        echo(f"There is no page of all results: {error}", err=True)
        return
    echo(f"Wrote {made.path}", err=True)


def _print_runs(done: Done) -> None:
    from evaluation.names import model_name
    from evaluation.results.console import print_rows

    rows = [
        (
            run.probe,
            model_name(run.model),
            " ".join(f"{name}={value}" for name, value in run.options.items()),
            "-" if run.rows is None else f"{run.rows:,}",
            "failed" if run.accuracy is None else f"{100 * run.accuracy:.1f}",
        )
        for run in sorted(done.record.runs, key=lambda run: (run.probe, run.model, run.key))
    ]
    print_rows(("probe", "model", "options", "rows", "accuracy"), rows, names=3)
