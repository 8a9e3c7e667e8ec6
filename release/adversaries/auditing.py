"""The deep audit: every adversary on every config with its own questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbprobe.audit.verdicts import MARGIN
from kbprobe.errors import BUILT, path_argument, require
from kbprobe.format.manifest import read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from release.adversaries.types import Guesses, Outcome, Rows, outcomes
from release.cards import record
from release.checks.findings import REBUILD, Finding, Report

NAME = "adversaries"
REMEDIES = {
    "surface": "Draw distractors that are like golds in form: --sampling grouped, --families.",
    "meaning": "Draw distractors from where golds come from: --sampling grouped, --families.",
    "tuned": "Draw distractors from where golds come from: --sampling grouped, --families.",
    "central": "Draw distractors as like one another as the gold is like them: --sampling grouped.",
    "similar": "Draw distractors from the neighbourhood of the gold: --families near.",
    "elimination": "Let a choice be right as often in any row that shows it: --sampling grouped.",
    "argument": "Ask about each argument with each answer equally often, in every split.",
    "sentence": "Ask about each document with acceptable and unacceptable sentences alike.",
    "place": "Change words as often into one another as back, whatever stands beside them.",
    "recurrence": "Ask each question once (--once), build without --limit, or show no model "
    "several of its rows.",
    "order": "Shuffle rows and choices by the seed, and let ids depend on neither.",
}
LABELLED = "Label the rows, or build it larger (--limit) or with other --split-shares."
"""The remedy if a split lacks rows with answers."""

UNREADABLE = ("manifest", "files", "checksums", "row numbers", "schema")
"""Findings after which rows are not read."""

STYLES = {"exceeds": "bold red", "ok": "green", "few rows": "yellow", "reported": "dim"}


@dataclass(frozen=True)
class DeepAudit:
    """The results of all adversaries.

    Attributes:
        outcomes: one for each config and adversary.
        unscored: configs without labelled rows outside train, none of whose adversaries ran.
        untrained: configs without labelled rows in train, for which trained adversaries did not
            run.
    """

    outcomes: tuple[Outcome, ...]
    unscored: tuple[str, ...]
    untrained: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether no adversary exceeds chance."""
        return all(one.verdict != "exceeds" for one in self.outcomes)

    @property
    def _judged(self) -> list[Outcome]:
        return [one for one in self.outcomes if one.verdict != "reported"]

    def as_dict(self) -> dict[str, Any]:
        """Return the audit in a form that JSON can represent."""
        outcomes = [one._asdict() for one in self.outcomes]
        return {**vars(self), "passed": self.passed, "outcomes": outcomes}

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each adversary that exceeds chance, and for any that did not run."""
        for one in self.outcomes:
            if one.verdict == "exceeds":
                what = f"{one.adversary}: {_percent(one)} right, chance is {one.chance:.1%}"
                yield Finding(NAME, "failed", what, one.config, one.remedy)
        for config in self.unscored:
            what = "none ran: no labelled rows in test or validation"
            yield Finding(NAME, "warning", what, config, LABELLED)
        for config in self.untrained:
            what = "none was trained: no labelled rows in train"
            yield Finding(NAME, "warning", what, config, LABELLED)
        few = sum(one.verdict == "few rows" for one in self.outcomes)
        if few:
            what = f"too few rows for a verdict on {few} of {len(self._judged)}"
            yield Finding(NAME, "warning", what, "", "Build it larger (--limit).")
        if self.passed and self.outcomes and not few:
            what = f"none of {len(self._judged)} exceeds chance by more than {MARGIN:.0%}"
            yield Finding(NAME, "ok", what.replace("%", " points"))

    @property
    def summary(self) -> str:
        """The audit in one line, as shown on the card and by the check."""
        if not self.outcomes:
            return "no adversary ran"
        exceeding = sum(one.verdict == "exceeds" for one in self.outcomes)
        unsure = sum(one.verdict == "few rows" for one in self.outcomes)
        verb = "exceed" if exceeding > 1 else "exceeds"
        many = f"{exceeding or 'none'} of {len(self._judged)} adversaries"
        text = f"{many} {verb} chance by more than 5 points"
        return f"{text} (too few rows for a verdict on {unsure})" if unsure else text

    def as_markdown(self) -> str:
        """Return the table for the card."""
        lines = [
            "Models that see the data without what should be needed, trained on train and scored "
            "on test (`release-probe check --deep`). Accuracy with its 95% interval, clusters as "
            "units; an adversary exceeds chance if the whole interval is above it and the accuracy "
            "by more than 5 points.",
            "",
            "| adversary | config | accuracy | from | to | chance | rows | verdict |",
            "|---|---|---:|---:|---:|---:|---:|---|",
        ]
        lines += [
            f"| {one.adversary} | {one.config} | {one.accuracy:.1%} | {one.low:.1%} | "
            f"{one.high:.1%} | {one.chance:.1%} | {one.rows:,} | {one.verdict} |"
            for one in self.outcomes
        ]
        return "\n".join(lines)

    def show(self) -> None:
        """Print a table of all adversaries."""
        from rich.table import Table
        from rich.text import Text

        from kbprobe.terminal.console import Console

        table = Table("adversary", box=None, pad_edge=False)
        for title in ("accuracy", "chance", "rows"):
            table.add_column(title, justify="right")
        table.add_column("verdict")
        for one in self.outcomes:
            table.add_row(
                Text(
                    one.adversary
                    if one.config == DEFAULT_CONFIG
                    else f"{one.adversary} ({one.config})"
                ),
                _percent(one),
                f"{one.chance:.1%}",
                f"{one.rows:,}",
                Text(one.verdict, style=STYLES[one.verdict]),
            )
        console = Console(highlight=False)
        console.print(Text("\nAdversaries: accuracy, with a 95% interval by cluster"))
        console.print(table)


def audit(folder: str | Path, encoder: str = "", seed: int = 0) -> DeepAudit:
    """Run every adversary on a built probe: its default config, and its sub-question configs.

    Args:
        folder: the probe, as ``build-probe`` wrote it.
        encoder: a transformers model (folder or id) that reads the choices; "" for none.
        seed: selects the rows if there are more than are trained on or scored.

    Raises:
        MissingDependencyError: scikit-learn is not installed.
        UsageError: the folder holds no probe, or one of another version, or ``encoder`` does not
            load.
        KbprobeError: a file is missing or damaged.
    """
    require("sklearn", "release", "the deep audit")
    from release.adversaries.types import read

    path = path_argument("audit(folder=...)", folder, BUILT)
    manifest = read_manifest(path)
    found: list[Outcome] = []
    unscored, untrained = [], []
    for config in (DEFAULT_CONFIG, *manifest.sub_questions):
        rows = read(path, manifest, config, seed)
        if rows is None:
            unscored.append(config)
            continue
        if not rows.train.size:
            untrained.append(config)
        every = list(_guesses(rows, encoder))
        judged = sum(guesses.judged for guesses in every)
        for guesses in every:
            remedy = REMEDIES[guesses.name.partition(":")[0]]
            found += outcomes(config, guesses, rows, remedy, judged)
    return DeepAudit(tuple(found), tuple(unscored), tuple(untrained))


def write_outcomes(folder: str | Path, done: DeepAudit, encoder: str = "") -> None:
    """Write the results of all adversaries into a built probe's card and manifest.

    Raises:
        UsageError, KbprobeError, OSError: see :func:`release.cards.record`.
    """
    about = {**done.as_dict(), "encoder": Path(encoder).name}
    record(folder, "adversaries", done.summary, about, done.as_markdown())


@dataclass(frozen=True)
class DeepReport(Report):
    """The findings in one built probe, including those of the adversaries."""

    deep: DeepAudit

    def as_dict(self) -> dict[str, Any]:
        """Return findings and outcomes in a form that JSON can represent."""
        return {**super().as_dict(), "deep": self.deep.as_dict()}

    def show(self, summary: str, as_json: bool) -> None:
        """Print everything as JSON, or as text: the findings, then every adversary."""
        super().show(summary, as_json)
        if not as_json:
            self.deep.show()


def deepened(report: Report, encoder: str = "") -> Report:
    """Add the adversaries' findings to those of a check, unless files failed it.

    Raises:
        MissingDependencyError, UsageError: see :func:`audit`.
    """
    if any(one.name in UNREADABLE for one in report.failed):
        what = "none ran: they need undamaged files"
        return Report((*report.findings, Finding(NAME, "failed", what, "", REBUILD)), report.folder)
    done = audit(report.folder, encoder)
    return DeepReport((*report.findings, *done.findings()), report.folder, done)


def _guesses(rows: Rows, encoder: str) -> Iterator[Guesses]:
    from release.adversaries.choices import arguments, likeness, meaning, sentences, surface
    from release.adversaries.rows import elimination, order, recurrence

    if rows.train.size:
        yield surface(rows)
        yield meaning(rows, encoder)
        if encoder:
            from release.adversaries.choices import tuned

            yield tuned(rows, encoder)
        yield from arguments(rows)
        yield from sentences(rows)
    yield from likeness(rows, encoder)
    yield from elimination(rows)
    yield from recurrence(rows)
    if rows.train.size:
        yield from order(rows)


def _percent(one: Outcome) -> str:
    return f"{one.accuracy:.1%} ({one.low:.1%}\N{EN DASH}{one.high:.1%})"
