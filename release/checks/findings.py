"""Findings of a check: what was checked, what was found, where, and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from kbprobe.files import listed
from kbprobe.terminal import echo

Verdict = Literal["ok", "warning", "failed"]
MAX_PLACES = 3
"""Maximum number of faulty rows or files that a finding names."""

REBUILD = "Build the probe again."
STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}


@dataclass(frozen=True)
class Finding:
    """One thing that was checked.

    Attributes:
        name: what was checked ("checksums", "clusters").
        verdict: ``ok``, ``warning`` or ``failed``; a failure blocks a release.
        what: what was found.
        where: the files or rows; empty if not applicable.
        remedy: what to do about it; empty if there is nothing to do.
    """

    name: str
    verdict: Verdict
    what: str
    where: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class CheckFindings:
    """Everything that was found, in the order of the checks."""

    findings: tuple[Finding, ...]

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The failures."""
        return tuple(finding for finding in self.findings if finding.verdict == "failed")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The warnings."""
        return tuple(finding for finding in self.findings if finding.verdict == "warning")

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failed

    def as_dict(self) -> dict[str, Any]:
        """Return the findings in a form that JSON can represent."""
        own = {name: str(value) for name, value in vars(self).items() if name != "findings"}
        findings = [asdict(finding) for finding in self.findings]
        return {**own, "passed": self.passed, "findings": findings}

    def show(self, summary: str, as_json: bool) -> None:
        """Print the findings as JSON, or as text with a summary line."""
        if as_json:
            echo(json.dumps(self.as_dict()))
            return
        from rich.table import Table
        from rich.text import Text

        from kbprobe.terminal.console import Console

        table = Table.grid(padding=(0, 2))
        for finding in self.findings:
            text = Text(finding.what)
            if finding.where:
                text.append(f"\n{finding.where}", style="dim")
            if finding.remedy:
                text.append(f"\n{finding.remedy}")
            table.add_row(Text(finding.verdict, style=STYLES[finding.verdict]), finding.name, text)
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = 240  # it would be 80 in a file or pipe
        console.print(table)
        console.print(Text(f"\n{summary}"))


@dataclass(frozen=True)
class CheckReport(CheckFindings):
    """The findings in one built probe."""

    folder: Path

    def blocks(self, strict: bool = False) -> bool:
        """Whether a release is blocked; ``strict`` counts warnings too."""
        return bool(self.failed or (strict and self.warnings))


def failure(name: str, what: str, where: str = "", remedy: str = REBUILD) -> Finding:
    """Return the finding of a failed check."""
    return Finding(name, "failed", what, where, remedy)


def judged(
    name: str, what: str, faulty: Sequence[Any], ok: str = "", remedy: str = REBUILD
) -> Iterator[Finding]:
    """Yield a failure that lists the faulty places or, if there are none, ``ok`` (if given)."""
    if faulty:
        yield failure(name, what, some(faulty), remedy)
    elif ok:
        yield Finding(name, "ok", ok)


def once(findings: Iterable[Finding]) -> list[Finding]:
    """Merge identical findings on the same rows of several configs.

    Places are written "config: rows".
    """
    merged: dict[tuple[str, ...], Finding] = {}
    for finding in findings:
        config, separator, rows = finding.where.partition(": ")
        # Without rows, the place is the whole text.
        key = (
            finding.name,
            finding.verdict,
            finding.what,
            finding.remedy,
            rows if separator else finding.where,
        )
        if key in merged and separator:
            configs = merged[key].where.partition(": ")[0]
            merged[key] = replace(finding, where=f"{configs}, {config}: {rows}")
        else:
            merged[key] = finding
    return list(merged.values())


some = partial(listed, shown=MAX_PLACES)
"""Lists the first few rows or files, and says how many more there are."""
