"""Checks of the audit in a manifest: that it exists, covers enough rows, and is at chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kbprobe.format.setups import DEFAULT_CONFIG
from release.checks.findings import Finding, failure, some

if TYPE_CHECKING:
    from kbprobe.format.manifest import Audit, Manifest, OracleReport

FLAGGED = (
    "Build it with other options (--sampling grouped, other families), or release it with --force: "
    "the card then says so."
)
ORACLE = "Claim nothing that needs the rest of the question; the card has the shares by family."
CLUSTERS = "clusters in train and elsewhere"
QUESTIONS = "questions in train and elsewhere"


def audit_findings(manifest: Manifest) -> Iterator[Finding]:
    """Look at the audits of the default config and of each sub-question config, and the oracles.

    Controls show the default's rows, so its audit is theirs.
    """
    audits = {DEFAULT_CONFIG: manifest.audit}
    audits |= {name: sub_question.audit for name, sub_question in manifest.sub_questions.items()}
    if manifest.annotation and manifest.audit is None:
        if manifest.counts.unlabelled:
            what = "none: rows without answers cannot be audited; a build with --labels is"
            yield Finding("audit", "warning", what)
            return
        what = "none: its rows were chosen by annotators"
        yield Finding("audit", "warning", what, "", "Say in the card how the source's audit was.")
        return
    found = [one for config, audit in audits.items() for one in _findings(config, audit)]
    yield from found
    if not found:
        scored = sum(audit.scored_rows for audit in audits.values() if audit)
        what = f"every baseline is at chance ({scored:,} rows scored)"
        yield Finding("audit", "ok", what)
    for config, audit in audits.items():
        for oracle in (audit.oracles if audit else {}).values():
            yield _oracle_finding(config, oracle)


def _oracle_finding(config: str, oracle: OracleReport) -> Finding:
    """Say how often an oracle is right; exceeding its target is a remark, not a failure."""
    share, near = oracle.families["all"], oracle.families.get("near")
    what = f"who knows only {oracle.knows} gets {share:.1%}"
    if near is not None:
        what += f" (near distractors {near:.1%})"
    if share <= oracle.target:
        return Finding("oracles", "ok", f"{what}, target {oracle.target:.0%}")
    return Finding("oracles", "warning", f"{what}, above {oracle.target:.0%}", config, ORACLE)


def _findings(config: str, audit: Audit | None) -> Iterator[Finding]:
    if audit is None:
        remedy = "Build it again without --no-audit."
        yield failure("audit", "it was built without an audit", config, remedy)
        return
    if not audit.baselines:
        what = "the audit scored no baseline: too few rows in train or in the other splits"
        yield failure("audit", what, config, "Build it larger (--limit).")
        return
    if audit.flags:
        what = f"off chance by more than {audit.bar}: {some(audit.flags)}"
        yield failure("audit", what, config, FLAGGED)
    leakage = audit.leakage
    if leakage.get(CLUSTERS):
        yield failure("audit", f"{leakage[CLUSTERS]:,} {CLUSTERS}", config, "Build it again.")
    if leakage.get(QUESTIONS):
        what = (
            f"{leakage[QUESTIONS]:,} {QUESTIONS}: their answers differ, but their words are known"
        )
        yield Finding("audit", "warning", what, config, "Say so in the card.")
    unsure = [name for name, cells in audit.baselines.items() if cells["all"].verdict == "few rows"]
    if unsure:
        what = f"too few rows ({audit.scored_rows:,}) for a verdict on {some(unsure, 2)}"
        yield Finding("audit", "warning", what, config, "Build it larger (--limit).")
