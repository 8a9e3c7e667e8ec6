"""The command ``release-probe``: publish, check, verify, export and annotate a probe.

Only click and the standard library are imported at the top, so that ``--help`` is fast.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kbprobe.cli import FAILED, Command, Program, Subcommand, command, option, run
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.plugins import let_arrow_ignore_pandas
from kbprobe.reading import read_text
from kbprobe.terminal import echo
from kbprobe.terminal.progress import on_terminal
from release.exports.targets import TARGETS

if TYPE_CHECKING:
    from release.hub.publishing import Publication

PROGRAM = "release-probe"
MARKS = {"new": "+ green", "changed": "~ yellow", "same": "= dim", "deleted": "- red"}
SUBCOMMANDS = {
    "check": Subcommand(
        "Commands",
        "Check a built probe before it is released.",
        "release.cli:check",
    ),
    "verify": Subcommand(
        "Commands",
        "Verify a published dataset against its manifests.",
        "release.cli:verify",
    ),
    "export": Subcommand(
        "Commands",
        "Write a built probe as tasks of another evaluation harness.",
        "release.cli:export",
    ),
    "annotate": Subcommand(
        "Commands",
        "Have people judge rows: export sheets, import votes, score readings.",
        "release.annotation.command:annotate",
    ),
}
EXAMPLES = (
    f"{PROGRAM} check probes/wordnet_hypernymy --deep",
    f"{PROGRAM} probes/wordnet_hypernymy --repo-id me/hypernymy --dry-run",
    f"{PROGRAM} export probes/wordnet_hypernymy --to lm-eval",
)
_PATH = click.Path(path_type=Path)


def main(args: Sequence[str] | None = None) -> None:
    """Run ``release-probe`` and exit with its code."""
    # Without a subcommand, the command publishes.
    sys.exit(run(Program(PROGRAM, SUBCOMMANDS, _publish_of), args, PROGRAM))


def _publish_of(words: Sequence[str]) -> Command:
    """Return the command that publishes, unless its first word is neither option nor folder."""
    word = words[0]
    asks_for_help = {"-h", "--help"} & set(words)
    if not word.startswith("-") and not asks_for_help and not Path(word).exists():
        raise UsageError(
            f"{word!r} is neither a subcommand nor a folder to publish."
            f"{did_you_mean(word, SUBCOMMANDS)} Subcommands: {', '.join(SUBCOMMANDS)}. Build a "
            "probe with: build-probe NAME -o DIR"
        )
    return publish


def hub_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that uses the Hub."""
    for add in (
        option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
        option(
            "--token-file",
            type=_PATH,
            metavar="FILE",
            section="Hub",
            rare=True,
            help="File with the access token. [default: HF_TOKEN, or that of `hf auth login`]",
        ),
        option(
            "--endpoint",
            metavar="URL",
            section="Hub",
            rare=True,
            help="URL of the Hub. [default: HF_ENDPOINT]",
        ),
    ):
        function = add(function)
    return function


@command(
    PROGRAM,
    help="Publish a built probe on the Hub: data, card, manifest and Croissant, in one commit. "
    "In the card there, what others wrote outside the marked sections is kept. Publishing the same "
    "probe twice changes nothing.",
    examples=EXAMPLES,
)
@click.argument("folder", type=_PATH, metavar="DIR")
@option(
    "--repo-id", required=True, metavar="USER/NAME", section="Hub",
    help="Dataset on the Hub.",
)  # fmt: skip
@option("--private", is_flag=True, section="Hub", help="Create the dataset as a private one.")
@option(
    "--revision", default="main", metavar="NAME", section="Hub",
    help="Branch, created if it does not exist. [default: main]",
)  # fmt: skip
@option(
    "--tag", default="", metavar="VERSION", section="Hub",
    help="Tag the commit, such as v1.0; an existing tag is never moved.",
)  # fmt: skip
@option(
    "--create-pr", is_flag=True, section="Hub",
    help="Open a pull request instead of committing to the branch.",
)  # fmt: skip
@option(
    "--config-name", default="default", metavar="NAME", section="Hub", rare=True,
    help="Name of the probe in a repository of several probes. [default: default]",
)  # fmt: skip
@option("--message", default="", metavar="TEXT", section="Hub", rare=True, help="Commit message.")
@option(
    "--canary-column", is_flag=True, rare=True,
    help="Also write the canary into a column of each row.",
)  # fmt: skip
@option("--force", is_flag=True, help="Publish even if the check fails; the card says so.")
@option(
    "--replace", is_flag=True, rare=True,
    help="Also replace files on the Hub that release-probe did not write.",
)  # fmt: skip
@option(
    "--dry-run", is_flag=True, help="Only show what would change; needs neither token nor network."
)
@hub_options
def publish(
    folder: Path, repo_id: str, token_file: Path | None, as_json: bool, **options: Any
) -> int:
    """Publish, and print what was done."""
    quiet_bars()
    from release.hub.publishing import publish as run_publish

    token = read_token(token_file)
    progress = (lambda line: echo(line, err=True)) if on_terminal() else (lambda _: None)
    done = run_publish(folder, repo_id, token=token, progress=progress, **options)
    if as_json:
        echo(json.dumps(done.as_dict()))
    else:
        _show(done)
    return FAILED if done.dry_run and done.forced and not options["force"] else 0


@command(
    "verify",
    help="Verify a published dataset against the manifests that were published with it. Large "
    "files are compared by the checksums under which the Hub keeps them. Exit code 1 if anything "
    "differs.",
)
@click.argument("repo_id", metavar="USER/NAME")
@option(
    "--revision", default="main", show_default=True, metavar="NAME", help="Branch, tag or commit."
)
@option("--download", is_flag=True, help="Fetch and hash large files too.")
@option("--against", type=_PATH, metavar="DIR", help="Compare with a local build as well.")
@hub_options
def verify(repo_id: str, token_file: Path | None, as_json: bool, **options: Any) -> int:
    """Print what was found."""
    quiet_bars()
    from release.hub.verification import verify as run_verify

    done = run_verify(repo_id, token=read_token(token_file), **options)
    verdict = "as it was published" if done.passed else "NOT as it was published"
    done.show(f"{done.repo_id} at {done.commit[:8]} is {verdict}.", as_json)
    return 0 if done.passed else FAILED


@command(
    "check",
    help="Check a built probe before it is released: files, rows, splits, audit, card, licence. "
    "Exit code 1 if anything failed.",
)
@click.argument("folder", type=_PATH, metavar="DIR")
@option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@option("--strict", is_flag=True, help="Warnings fail too.")
@option("--deep", is_flag=True, help="Also train adversaries: models that do not see the question.")
@option(
    "--encoder", default="", metavar="MODEL",
    help="With --deep: a transformers model, a folder or Hub id, that encodes the choices.",
)  # fmt: skip
@option(
    "--into-card", is_flag=True,
    help="With --deep: write the adversaries' figures into the probe's card and manifest.",
)  # fmt: skip
def check(
    folder: Path, as_json: bool, strict: bool, deep: bool, encoder: str, into_card: bool
) -> int:
    """Print what was found: what failed, where, and what to do about it."""
    from release.checks.checking import check as run_check

    if (encoder or into_card) and not deep:
        raise UsageError(f"{'--encoder' if encoder else '--into-card'} needs --deep.")
    let_arrow_ignore_pandas()
    report = run_check(folder)
    if deep:
        from release.checks.deep import DeepReport, deepened, write_outcomes

        report = deepened(report, encoder)
        if into_card and isinstance(report, DeepReport):
            write_outcomes(folder, report.deep, encoder)
            echo(f"Wrote the figures into card and manifest of {folder}.", err=True)
    warnings = len(report.warnings)
    counts = f"{len(report.failed)} failed, {warnings} warning{'s' * (warnings != 1)}"
    ready = "ready" if report.passed else "NOT ready"
    report.show(f"{report.folder}: {counts}. It is {ready} to be released.", as_json)
    return FAILED if report.blocks(strict) else 0


@command(
    "export",
    help="Write a built probe as tasks of another harness, one for each config: a folder that "
    "anyone can run, with the command printed at the end.",
)
@click.argument("folder", type=_PATH, metavar="DIR")
@option("--to", required=True, metavar=f"[{'|'.join(TARGETS)}]", help="The harness to export to.")
@option(
    "-o", "--output", type=_PATH, metavar="DIR", help="The folder to write [exports/PROBE-TARGET]."
)
@option("--split", default="test", show_default=True, metavar="NAME", help="The split to evaluate.")
@option(
    "--config", "configs", multiple=True, metavar="NAME",
    help="A config to export; may be given several times. [all]",
)  # fmt: skip
@option(
    "--name", default="", metavar="NAME",
    help="Name of the tasks; exports of one probe that are run together need different ones. "
    "[default: that of the probe]",
)  # fmt: skip
@option(
    "--repo-id", metavar="USER/NAME",
    help="Read the rows of the published probe instead of a copy; for inspect: where the export "
    "will be uploaded.",
)  # fmt: skip
@option("--overwrite", is_flag=True, help="Replace another export in the folder.")
@option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def export(folder: Path, to: str, output: Path | None, as_json: bool, **options: Any) -> None:
    """Write it, and print how it is run."""
    from release.exports.exporting import export as run_export

    output = output or Path("exports") / f"{Path(os.path.abspath(folder)).name}-{to}"
    done = run_export(folder, to, output, **options)
    if as_json:
        echo(json.dumps({**vars(done), "folder": str(done.folder)}, ensure_ascii=False))
        return
    state = "already holds exactly this" if done.found else "written"
    names = ", ".join(f"{name} ({done.rows[name]:,} rows)" for name in done.tasks)
    echo(f"{done.folder} {state}: {names}", err=True)
    echo("\n".join([f"cd {shlex.quote(str(done.folder))}", *done.commands]))


def quiet_bars() -> None:
    """Disable progress bars in logs. This is read once, when huggingface_hub is imported."""
    if not on_terminal():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


MAX_TOKEN_BYTES = 1 << 12
"""Maximum bytes of a file with a token."""


def read_token(path: Path | None) -> str | None:
    """Read a token from a file; errors do not show its content."""
    if path is None:
        return None
    try:
        token = read_text(path.expanduser(), MAX_TOKEN_BYTES).strip()
    except FileNotFoundError:
        raise UsageError(f"--token-file {path}: there is no such file") from None
    except UsageError as error:
        raise UsageError(f"--token-file {error}") from None
    if not token or not token.isascii() or len(token.split()) != 1:
        raise UsageError(f"--token-file {path} holds no token: one word is expected")
    return token


def _show(done: Publication) -> None:
    from rich.text import Text

    from kbprobe.format.dataset import CARD
    from kbprobe.terminal.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for change in done.plan.changes:
        mark, style = MARKS[change.state].split()
        console.print(
            Text(f"{mark} {change.state:8}{change.size:>14,}  {change.path}", style=style)
        )
    if done.plan.card.kept:
        kept = ", ".join(done.plan.card.kept)
        console.print(Text(f"Kept in README.md, as edited on the Hub: {kept}"))
    new_card = any(change.path == CARD and change.state == "new" for change in done.plan.changes)
    if done.dry_run and done.plan.card_diff and not new_card:
        console.print(Text(f"\n{done.plan.card_diff}\n"))
    console.print(Text(_summary(done)))


def _summary(done: Publication) -> str:
    forced = f" Its check failed: {', '.join(done.forced)}." if done.forced else ""
    at = f"(commit {done.commit[:8]}{f', tagged {done.tag}' if done.tag else ''})"
    if done.dry_run:
        sent = sum(file.size for file in done.plan.upload)
        files = f"{len(done.plan.upload)} files ({sent:,} bytes) would be sent to {done.url}"
        what = files if done.changed else f"{done.url} holds exactly this already"
        unread = f"\nEverything counts as new: {done.unread}" if done.unread else ""
        return f"Dry run: {what}.{forced}{unread}"
    if not done.changed:
        return f"{done.url} holds exactly this already {at}.{forced}"
    return f"Published {done.url} {at}.{forced}"


if __name__ == "__main__":
    main()
