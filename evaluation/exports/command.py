"""``evaluate-probe export``: results in formats that others read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kbprobe.cli import command
from kbprobe.errors import UsageError
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.terminal import echo

HUB, EVERY_EVAL_EVER, INSPECT = "hub", "every-eval-ever", "inspect"
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")


@command(
    "export",
    help="Write results, those in the folders and below them, in a format that others read: "
    "files for the repository of a model on the Hub, Every Eval Ever's records, or logs of written "
    "answers for Inspect's viewer.",
)
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="RESULTS...",
)
@click.option(
    "--to",
    "target",
    type=click.Choice((HUB, EVERY_EVAL_EVER, INSPECT)),
    required=True,
    help="Format.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder to write to. [default: exports/results-FORMAT]",
)
@click.option("--dataset", metavar="USER/NAME", help="hub: where the probe is published.")
@click.option(
    "--revision",
    metavar="REV",
    default="main",
    show_default=True,
    help="hub: branch, tag or commit of the dataset; its commit is written. A whole commit hash is "
    "taken as it is, without asking the Hub.",
)
@click.option(
    "--config-name",
    metavar="NAME",
    help="hub: the probe's name in a dataset of several probes, as it was published.",
)
@click.option(
    "--create-pr",
    metavar="USER/MODEL",
    help="hub: open a pull request at the repository of this model as well.",
)
@click.option("--endpoint", metavar="URL", help="hub: another Hub. [default: HF_ENDPOINT]")
@click.option(
    "--organization",
    metavar="NAME",
    help="every-eval-ever: who evaluated. Required for that format.",
)
@click.option(
    "--relationship",
    type=click.Choice(RELATIONSHIPS),
    default="third_party",
    show_default=True,
    help="every-eval-ever: of the evaluator to the model.",
)
def export_command(
    folders: tuple[Path, ...],
    target: str,
    output: Path | None,
    organization: str | None,
    relationship: str,
    **hub: Any,
) -> None:
    """Export results; prints the files, and the page of the pull request."""
    place = output or Path("exports", f"results-{target}")
    if target == HUB:
        if hub["dataset"] is None:
            raise UsageError("--to hub needs --dataset USER/NAME: where the probe is published")
        _to_hub(folders, place, **hub)
        return
    if any(hub[name] is not None for name in ("dataset", "config_name", "create_pr")):
        raise UsageError("--dataset, --config-name and --create-pr are options of --to hub")
    if target == INSPECT:
        _to_inspect(folders, place)
        return
    if organization is None:
        raise UsageError("--to every-eval-ever needs --organization NAME: who evaluated")
    _to_every_eval_ever(folders, place, organization, relationship)


def _to_hub(
    folders: tuple[Path, ...],
    place: Path,
    dataset: str,
    revision: str,
    config_name: str | None,
    create_pr: str | None,
    endpoint: str | None,
) -> None:
    from evaluation.exports.hub import (
        check_id,
        entries,
        hub_api,
        open_pull_request,
        pinned,
        write_entries,
    )
    from evaluation.exports.reading import read_exported

    check_id(dataset, "--dataset")
    if create_pr is not None:
        check_id(create_pr, "--create-pr")
    exported = read_exported(folders, config_name or DEFAULT_CONFIG)
    # Refused before the Hub is asked.
    entries(exported, dataset, revision)
    api = hub_api(endpoint)
    new = entries(exported, dataset, pinned(api, dataset, revision, exported))
    echo(write_entries(place, dataset, new))
    if create_pr is not None:
        page = open_pull_request(api, create_pr, dataset, new)
        echo(page or f"{create_pr} holds these results already")


def _to_inspect(folders: tuple[Path, ...], place: Path) -> None:
    from evaluation.exports.inspect_logs import write_log
    from evaluation.exports.reading import read_runs
    from evaluation.results.analyses.generated import generated_of

    written = [one for one in read_runs(folders) if generated_of(one.results) is not None]
    if not written:
        raise UsageError(
            "none of these results has written answers, and so no conversations to show: evaluate "
            "with --chat and --endpoint, or with --scorer generate"
        )
    for one in written:
        echo(write_log(one, place))


def _to_every_eval_ever(
    folders: tuple[Path, ...], place: Path, organization: str, relationship: str
) -> None:
    import time

    from evaluation.exports.every_eval_ever import write_card, write_run
    from evaluation.exports.reading import read_cards, read_exported
    from evaluation.results.types import read_results

    who: Any = {
        "organization": organization,
        "relationship": relationship,
        "now": int(time.time()),
    }
    cards, rest = read_cards(folders), []
    for folder in folders:
        card = cards.get(folder)
        if card is None:
            rest.append(folder)
            continue
        for model in card.models:
            runs = [folder / one.folder for one in model.probes]
            rest += runs
            echo(write_card(card, model, read_results(runs[0]), place, **who))
    for one in read_exported(rest):
        for path in write_run(one, place, **who):
            echo(path)
