"""The command ``evaluate-probe``: one for each study; ``suite``, ``report``, ``table``, ....

Only click, pydantic and the standard library are imported at the top: ``--help`` answers at once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evaluation.learners.registry import LEARNERS
from evaluation.names import names_option, read_names
from evaluation.options import RunOptions
from evaluation.runs.spec import import_named, plugins
from evaluation.scorers.entry import ScorerEntry
from evaluation.scorers.registry import SCORERS
from evaluation.studies.base import Study, StudyRequest, summarise_folders
from evaluation.studies.registry import COLLECT, DEFAULT, EVALUATE, OWN, STUDIES
from evaluation.tracking import TrackingOptions, take_tracking
from evaluation.workers import UNITS, Session, find_workers
from kbprobe.cli import FAILED, Command, Option, Program, Subcommand, command, run
from kbprobe.errors import KbprobeError, UsageError, did_you_mean
from kbprobe.options import Options, command_option, given_of, role
from kbprobe.plugins import let_arrow_ignore_pandas
from kbprobe.terminal import echo
from kbprobe.terminal.progress import shown_progress

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from evaluation.runs.executor import Outcome

PROGRAM = "evaluate-probe"
DEFAULT_PARENT = Path("results")
_OUTPUT = (
    "Folder of the results; of several probes or models, its parent. [default: "
    "results/PROBE/MODEL, with the options given: results/PROBE/MODEL+limit-200]"
)
_STUDY_OUTPUT = (
    "Folder of the summary and of all results. [default: results/{0}, with the options given: "
    "results/{0}+limit-200]"
)


SUBCOMMANDS = {
    **OWN,
    "suite": Subcommand(
        EVALUATE,
        "Run what a file declares: probes, models, studies, seeds.",
        "evaluation.suites.command:suite_command",
    ),
    "reproduce": Subcommand(
        EVALUATE,
        "Make the tables of a paper, published rows next to yours.",
        "evaluation.reproduce.command:reproduce_command",
    ),
    "report": Subcommand(
        COLLECT,
        "Make an HTML page of one result, or of all results in a folder.",
        "evaluation.cli:report_command",
    ),
    "table": Subcommand(
        COLLECT,
        "Print results, or a table of a study, as CSV, Markdown or LaTeX.",
        "evaluation.tables_command:table_command",
    ),
    "figure": Subcommand(
        COLLECT,
        "Draw results or learning curves for a paper, as PDF, SVG or PNG.",
        "evaluation.figure_command:figure_command",
    ),
    "export": Subcommand(
        COLLECT,
        "Write results for the Hub, Every Eval Ever or Inspect's viewer.",
        "evaluation.exports.command:export_command",
    ),
    "cache": Subcommand(
        COLLECT,
        "List or remove what evaluations keep in the cache.",
        "evaluation.cache:cache_command",
    ),
}
"""All subcommands, as the help lists them; studies of other packages come after them."""
EXAMPLES = (
    f"{PROGRAM} probes/wordnet_hypernymy -m FacebookAI/roberta-base",
    f"{PROGRAM} probes/age_comparison -m HuggingFaceTB/SmolLM2-135M --letters",
    f"{PROGRAM} curve probes/wordnet_hypernymy -m answerdotai/ModernBERT-base",
)


def main(args: Sequence[str] | None = None) -> None:
    """Run ``evaluate-probe`` and exit with its code."""
    words = list(sys.argv[1:] if args is None else args)
    sys.exit(run(_EvaluateProgram(), words, PROGRAM))


class _EvaluateProgram(Program):
    """All commands; scorers and learners that are files have options that help must know."""

    def __init__(self) -> None:
        others = {
            name: Subcommand("Commands of other packages", STUDIES.get(name).help or "", "")
            for name in STUDIES.names()
            if name not in OWN
        }
        super().__init__(PROGRAM, {**SUBCOMMANDS, **others}, self._study_of)

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        """Import the files that ``--scorer`` and ``--learner`` name, and make the command."""
        for option, value in pairwise(
            [*(part for word in args for part in word.split("=", 1)), ""]
        ):
            if option in ("--scorer", "--learner"):
                import_named({option.removeprefix("--"): value})
            elif option == "--learners":
                import_named({"learners": value.split(",")})
        return super().make_context(info_name, args, *rest, **extra)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a subcommand, or make that of a study."""
        if cmd_name in STUDIES.names():
            return study_command(STUDIES.get(cmd_name))
        return super().get_command(ctx, cmd_name)

    def _study_of(self, given: list[str]) -> Command:
        _refuse_misspelt_command(given[0], self.subcommands)
        default = study_command(STUDIES.get(DEFAULT))
        default.examples, default.described = EXAMPLES, f"{PROGRAM} {DEFAULT} --help"
        return default


def _refuse_misspelt_command(word: str, commands: Iterable[str]) -> None:
    """Refuse a first word that is no probe, and nearly the name of a command."""
    if word.startswith("-") or "/" in word or os.path.exists(word):
        return
    if hint := did_you_mean(word, commands):
        raise UsageError(
            f"there is no study or command {word!r}, nor a file or folder of that name.{hint}"
        )


def _output_of(study: Study) -> str:
    """Describe ``-o`` of a study that has runs."""
    if study.independent:
        return _OUTPUT
    about = _STUDY_OUTPUT.format(study.name)
    if study.collect is None:
        return about
    return f"{about} Of folders of results, nothing is written without it."


def study_command(study: Study) -> Command:
    """Make a study's command, with its own options and those of its runs."""
    json = Option(["--json", "as_json"], is_flag=True, help="Print JSON instead of a table.")
    callback: Callable[..., int | None] = _run_study
    about = study.help
    if study.expand is None:
        callback = _summarise
        inputs: list[click.Parameter] = [
            click.Argument(
                ["folders"], nargs=-1, type=click.Path(path_type=Path), metavar="DIR..."
            ),
            Option(
                ["-o", "--output"],
                type=click.Path(path_type=Path),
                metavar="DIR",
                help="Also write the summary to this folder.",
            ),
        ]
        fields = _fields(study.options, "Study")
    else:
        inputs = [
            click.Argument(
                ["probes"],
                nargs=-1,
                metavar="PROBE..." if study.collect is None else "PROBE...|DIR...",
                required=True,
            ),
            Option(
                ["-m", "--model", "models"],
                multiple=True,
                metavar="MODEL",
                section="Model",
                help="A folder, a .gguf file, a Hub id, its name at --endpoint, or none (for a "
                "scorer that needs no model). Can be repeated." + _without_model(study),
            ),
            Option(
                ["-o", "--output"],
                type=click.Path(path_type=Path),
                metavar="DIR",
                help=_output_of(study),
            ),
            Option(
                ["--tag"],
                metavar="NAME",
                help="Append this to the name of the folder, to keep results apart.",
            ),
            Option(
                ["--dry-run"],
                is_flag=True,
                section="Endpoint",
                help="Print what would be sent to --endpoint, and stop.",
            ),
            Option(["--overwrite"], is_flag=True, help="Replace other results in the folder."),
            Option(
                ["--workers"],
                type=click.IntRange(min=1),
                metavar="N",
                rare=True,
                help="How many processes execute several runs on the CPU, on Linux. [default: as "
                "many as have a processor and memory if models are tiny or none, else 1]",
            ),
        ]
        tracking = {} if study.track is None else _fields(TrackingOptions, "Output")
        of_runs = _run_fields(study.fixed)
        if study.name != DEFAULT:
            _hide(of_runs)
            about = f"{about}\n\nIts runs take the options of {PROGRAM} as well: --help-all."
        fields = {**_fields(study.options, "Study"), **of_runs, **tracking}
    command = Command(
        study.name,
        params=[*inputs, json, *(command_option(name, field) for name, field in fields.items())],
        callback=partial(callback, study, fields),
        help=about,
    )
    return command


def _hide(fields: Mapping[str, FieldInfo]) -> None:
    """Show options in the help of a command only on request."""
    for field in fields.values():
        field.metadata = [*field.metadata, replace(role(field), rare=True)]


def _without_model(study: Study) -> str:
    """Return what the help says of a study without ``--model``."""
    if study.collect is not None:
        return f" Without it, {study.name} takes folders of results."
    return "" if study.modelless else " Required."


def _fields(model: type[Options], section: str, label: str = "") -> dict[str, FieldInfo]:
    """Return the fields of a model for a section of the help, except those of another section.

    They are described as those of a scorer or learner if one is named.
    """
    fields = {name: copy(field) for name, field in model.model_fields.items()}
    for field in fields.values():
        own = role(field)
        field.metadata = [*field.metadata, replace(own, section=own.section or section)]
        if label:
            field.description = f"{label[:1].upper()}{label[1:]}: {field.description}"
    return fields


def _run_fields(fixed: AbstractSet[str]) -> dict[str, FieldInfo]:
    """Return the options of all runs, then those of scorers and learners."""
    fields = _fields(RunOptions, "Probe")
    for entry in plugins():
        section = "Scoring" if isinstance(entry, ScorerEntry) else "Training"
        further = _fields(entry.options, section, entry.label)
        fields |= {name: field for name, field in further.items() if name not in fields}
    for name, names in (("scorer", SCORERS.names()), ("learner", LEARNERS.names())):
        fields[name].description = f"{fields[name].description} There are: {', '.join(names)}."
    return {name: field for name, field in fields.items() if name not in fixed}


def _run_study(
    study: Study,
    fields: dict[str, FieldInfo],
    probes: tuple[str, ...],
    models: tuple[str, ...],
    output: Path | None,
    tag: str | None,
    dry_run: bool,
    overwrite: bool,
    workers: int | None,
    as_json: bool,
    **values: Any,
) -> int:
    from evaluation.studies.run import forecast_study, run_study

    let_arrow_ignore_pandas()  # not in run_study: callers in Python may give pandas to Arrow
    if study.takes_folders(models):
        if overwrite or dry_run or tag is not None or workers is not None:
            raise UsageError(
                "--overwrite, --workers, --dry-run and --tag are for runs: name a model with "
                f"--model, or leave them out where {study.name} is given folders of results"
            )
        _summarise(study, fields, tuple(map(Path, probes)), output, as_json, **values)
        return 0
    if odd := [name for name in (*probes, *models) if name.startswith("-")]:
        raise UsageError(f"{odd[0]} is given where the value of --model or a probe is expected")
    if not sys.stderr.isatty():
        # Read once, when transformers imports tqdm: no bars in logs.
        os.environ.setdefault("TQDM_DISABLE", "1")
    given = given_of(fields, values)
    if tag is not None and not re.fullmatch(r"\w[\w.,=@+-]{0,59}", tag):
        raise UsageError(f"--tag {tag!r}: use letters, digits, _ and - . , = @ + (60 at most)")
    owner = "the run" if study.name == DEFAULT else study.name
    tracking = None if study.track is None else take_tracking(given, owner)
    request = StudyRequest.parse(study, probes, models, given, output, owner)
    request = replace(request, tag=tag or "")
    if output is None:
        request = request.within(DEFAULT_PARENT)
    elif tag is not None and not (study.independent and len(probes) * len(models) > 1):
        raise UsageError(
            f"--tag is added to the folder's name: name it with -o alone, -o {output}+{tag}"
        )
    if dry_run:
        count = forecast_study(request)
        echo(f"{count} {'run' if count == 1 else 'runs'}; nothing was evaluated.", err=True)
        return 0
    launched = find_workers(request.defaults.run)
    failures: list[Outcome] = []

    def report(outcome: Outcome) -> None:
        if isinstance(outcome.result, KbprobeError):
            failures.append(outcome)
            _report(outcome, as_json)
        elif launched.leads and study.reports_runs:
            _report(outcome, as_json and study.independent)

    with shown_progress(launched.leads, UNITS) as progress:
        summary = run_study(
            request,
            Session(overwrite, launched, progress, processes=workers, line=progress.line),
            tracking=tracking,
            report=report,
        )
    if launched.leads and tracking is not None and tracking.log_to:
        echo(f"Logged to {', '.join(tracking.log_to)} in {tracking.log_dir}", err=True)
    if launched.leads and not study.independent:
        _report_summary(request)
    if launched.leads and not as_json:
        study.display(summary)
    elif launched.leads and not study.independent:
        echo(summary.model_dump_json())
    return FAILED if failures else 0


def _report_summary(request: StudyRequest) -> None:
    """Report on stderr where a study's summary is."""
    if request.output is not None and request.study.show is None:
        files = sorted(path.name for path in request.output.glob(f"{request.study.name}.*"))
        echo(f"Wrote {request.output} ({', '.join(files)})", err=True)


def _summarise(
    study: Study,
    fields: dict[str, FieldInfo],
    folders: tuple[Path, ...],
    output: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    request = StudyRequest.parse(study, (), (), given_of(fields, values), output, study.name)
    summary = summarise_folders(request, folders)
    _report_summary(request)
    if as_json:
        echo(summary.model_dump_json())
    else:
        study.display(summary)


def _report(outcome: Outcome, as_json: bool) -> None:
    """Report how a run ended: on stdout as JSON, else on stderr."""
    spec, result = outcome.spec, outcome.result
    if isinstance(result, KbprobeError):
        echo(f"{PROGRAM}: {spec.probe_name} with {spec.model_name}: {result}", err=True)
    elif as_json:
        echo(result.results.model_dump_json())
    elif outcome.found:
        echo(f"{spec.folder} already holds exactly this.", err=True)
    else:
        files = "report.html, results.json, predictions.parquet"
        echo(f"Wrote {spec.folder} ({files})", err=True)
        if result.facts is not None:
            asked = result.facts.results.metrics.items
            echo(
                f"Its questions combine {asked:,} single facts, which were evaluated as well: "
                f"{spec.folder}/facts (--no-facts skips them)",
                err=True,
            )


@command(
    "report",
    help="Make report.html from results.json and predictions.parquet: of a folder of results its "
    "own; of any other folder one page of all results below it, models by probes.",
)
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR..."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Page of all results below DIR. [default: DIR/report.html]",
)
@click.option(
    "--rows",
    type=click.IntRange(min=0),
    metavar="N",
    help="Questions of each probe that a page of several results holds at most; of more a sample "
    "is drawn. 0: none, to publish the page but not the questions. [default: 50000]",
)
@names_option("on a page of all results")
def report_command(
    folders: tuple[Path, ...], output: Path | None, rows: int | None, names_file: Path | None
) -> None:
    """Write each folder's report."""
    from evaluation.report.page import make_report
    from evaluation.report.suite import DEFAULT_ROWS, make_suite_page
    from evaluation.results.types import RESULTS

    let_arrow_ignore_pandas()
    if output is not None and len(folders) > 1:
        raise UsageError(
            f"-o names one page, but {len(folders)} folders are given: name the folder that holds "
            "them all, or leave -o out"
        )
    names = read_names(names_file)
    for folder in folders:
        own = output is None and rows is None and names_file is None
        if own and (folder / RESULTS).is_file():
            echo(make_report(folder))
            continue
        made = make_suite_page(folder, output, DEFAULT_ROWS if rows is None else rows, names)
        for line in made.left_out:
            echo(f"{PROGRAM}: left out: {line}", err=True)
        echo(made.path)
    names.note_unused()


if __name__ == "__main__":
    main()
