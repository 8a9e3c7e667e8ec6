"""Checks of card, licence, audit, records and baselines against the manifest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.audit.recorded import read_baselines
from kbprobe.audit.report import spread
from kbprobe.audit.verdicts import MARGIN
from kbprobe.errors import UsageError
from kbprobe.format.card import CANARY, canary_of, size_category
from kbprobe.format.dataset import BASELINES, CARD
from kbprobe.format.licences import UNSTATED, attributions_of, parts_of, terms_of
from kbprobe.format.manifest import MANIFEST, MOST_SIMILAR, BaselineCell, Manifest
from kbprobe.format.setups import DEFAULT_CONFIG, SETUPS
from kbprobe.reading import read_text
from release.cards import LICENCE, LISTED, Name, by_config, credited, data_paths, listed, split_card
from release.checks.findings import Finding, failure, some

if TYPE_CHECKING:
    from kbprobe.format.manifest import Audit, Manifest, OracleReport, Record


REMAKE = "Build the probe again with this version, or correct the card by hand."
REQUIRED = ("language", "license", "pretty_name", *LISTED[1:])
SECTIONS = (
    "What it cannot show", "A row", "Counts", "Columns", "Build it again", "Licence", "Citation",
    "Canary",
)  # fmt: skip
CREATORS = (
    "found", "crowdsourced", "expert-generated", "machine-generated", "no-annotation", "other",
)  # fmt: skip


def card_findings(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """Check the card, the licence, and the canary."""
    path = folder / CARD
    try:
        front, text = split_card(read_text(path))
    except (OSError, UsageError) as error:
        yield failure("card", f"it cannot be read: {error}", CARD, REMAKE)
        yield from _licence(manifest, {}, "")
        return
    problems = [*_front_problems(front, manifest), *_text_problems(text, manifest)]
    for problem in problems:
        yield failure("card", problem, CARD, REMAKE)
    if not problems:
        yield Finding("card", "ok", "front matter and text agree with the manifest")
    yield from _licence(manifest, front, text)
    expected = canary_of(manifest.probe, manifest.request.seed)
    if expected in text:
        yield Finding("canary", "ok", expected.removeprefix(CANARY).strip())
    else:
        yield failure("canary", f"the card lacks its canary: {expected}", CARD, REMAKE)


def _front_problems(front: Mapping[str, Any], manifest: Manifest) -> Iterator[str]:
    if lacking := [name for name in REQUIRED if not front.get(name)]:
        yield f"front matter lacks {some(lacking, shown=11)}"
    held = {name: {str(value) for value in listed(front.get(name))} for name in LISTED}
    if unknown := held["annotations_creators"] - set(CREATORS):
        yield f"annotations_creators: {some(sorted(unknown))} is none of {', '.join(CREATORS)}"
    if missing := set(manifest.language) - held["language"]:
        yield f"language lacks {some(sorted(missing))}"
    known_tasks = {task for setup in SETUPS.values() for task in setup.task_categories}
    if held["task_categories"] and not known_tasks & held["task_categories"]:
        yield f"task_categories names none of {', '.join(sorted(known_tasks))}"
    size = size_category(manifest.counts.rows)
    if held["size_categories"] and size not in held["size_categories"]:
        yield f"size_categories is not {size}"
    configs, infos = by_config(front.get("configs")), by_config(front.get("dataset_info"))
    if unlisted := manifest.configs.keys() - configs.keys():
        yield f"configs lacks {some(sorted(unlisted))}"
    defaults = [name for name, config in configs.items() if config.get("default")]
    if defaults != [DEFAULT_CONFIG]:
        yield f"configs names {some(defaults) or 'none'} as default, not {DEFAULT_CONFIG}"
    if infos and (unlisted := manifest.configs.keys() - infos.keys()):
        yield f"dataset_info lacks {some(sorted(unlisted))}"
    for name, entries in manifest.configs.items():
        paths = {(entry.split, entry.path) for entry in entries}
        if name in configs and data_paths(configs[name]) != paths:
            yield f"data_files of the config {name} are not those of the manifest"
        if (info := infos.get(name)) is None:
            continue
        splits = [entry for entry in listed(info.get("splits")) if isinstance(entry, dict)]
        counted = {str(entry.get("name")): entry.get("num_examples") for entry in splits}
        rows: dict[str, int] = {}
        for entry in entries:
            rows[entry.split] = rows.get(entry.split, 0) + entry.rows
        if counted != rows:
            yield f"dataset_info of {name}: num_examples are not the manifest's rows"
        if info.get("download_size") != sum(entry.bytes for entry in entries):
            yield f"dataset_info of {name}: download_size is not the size of its files"


def _text_problems(text: str, manifest: Manifest) -> Iterator[str]:
    # BibTeX itself uses double braces.
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    if left := re.findall(r"\{\{.*?\}\}|\{%.*?%\}", prose):
        yield f"template syntax is left: {some(left)}"
    if lacking := [name for name in SECTIONS if f"\n## {name}" not in text]:
        yield f"no section {some(lacking, shown=8)}"
    if f"{manifest.counts.rows:,} rows" not in text:
        yield f"it does not say that there are {manifest.counts.rows:,} rows"
    for split, rows in manifest.counts.splits.items():
        if f"| {split} | {rows:,} |" not in text:
            yield f"its table of splits does not have {rows:,} rows of {split}"
    for name, cells in (manifest.audit.baselines if manifest.audit else {}).items():
        row = re.search(rf"^\| {re.escape(name)} \|.*", text, re.MULTILINE)
        share = f"{cells['all'].value:.1%}"
        if row is None or f"| {share} |" not in row[0]:
            yield f"its audit does not have {share} for {name}"
    if lacking := [name for name in manifest.configs if f"`{name}`" not in text][1:]:
        yield f"it does not mention the configs {some(lacking)}"
    if any(digest not in text for digest in manifest.knowledge_base.digest.split("+")):
        yield "it does not name the digest of its knowledge base"


OTHERS = "Build it from other sources."
STATE_IT = (
    "If its authors permit it, keep the source with its licence (kb-cache fetch KIND --from FILE "
    "--licence SPDX --attribution TEXT; KIND is table for facts of your own), and build from that."
)


def _licence(manifest: Manifest, front: Mapping[str, Any], text: str) -> Iterator[Finding]:
    terms = terms_of(manifest.knowledge_base.licence)
    sources = f"{manifest.knowledge_base.name} ({manifest.knowledge_base.licence})"
    if terms.problem:
        unstated = UNSTATED in parts_of(manifest.knowledge_base.licence)
        yield failure("licence", terms.problem, sources, STATE_IT if unstated else OTHERS)
        return
    wrong = [
        f"{name}: {front.get(name)}, not {terms.front_matter.get(name)}"
        for name in LICENCE
        if front.get(name) != terms.front_matter.get(name)
    ]
    if wrong:
        what = f"the card's licence is not what its sources require: {some(wrong)}"
        yield failure("licence", what, CARD, REMAKE)
    credits = attributions_of(credited(manifest.knowledge_base))
    if any(credit not in text for credit in credits):
        what = "an attribution that a source requires is missing from the card"
        yield failure("licence", what, CARD, REMAKE)
    elif not wrong:
        yield Finding("licence", "ok", f"{terms.expression}, from {sources}")


AGAIN: Mapping[Name, str] = {
    "reading": "Have this build read: build-probe --sample N --blind, release-probe annotate score "
    "--into-card.",
    "adversaries": "Run release-probe check --deep --into-card again.",
}


def record_findings(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """Check that the records concern these rows, and are in the card."""
    records: dict[Name, Record | None] = {
        "reading": manifest.reading,
        "adversaries": manifest.adversaries,
    }
    for record, entry in records.items():
        if entry is None:
            continue
        name, remedy = f"{record} on record", AGAIN[record]
        summary = entry.summary
        if entry.rows_digest != manifest.rows_digest:
            yield failure(name, "it is of other rows than these", MANIFEST, remedy)
        elif summary.casefold() not in card_text(folder).casefold():
            yield failure(name, f"the card does not say: {summary}", CARD, remedy)
        else:
            yield Finding(name, "ok" if entry.passed else "warning", summary)


def card_text(folder: Path) -> str:
    """Return the text of a probe's card; empty if it cannot be read."""
    try:
        return read_text(folder / CARD)
    except (OSError, UsageError):
        return ""  # Another finding reports this.


NAME = "baselines on record"


def baseline_findings(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """Check ``baselines.json``, if it exists, and show its figures."""
    again = f"Measure again: evaluate-probe baselines {folder} --record. Or remove {BASELINES}."
    try:
        figures = read_baselines(folder)
    except UsageError as error:
        yield failure(NAME, str(error), BASELINES, again)
        return
    if figures is None:
        return
    if not figures.is_of(manifest):
        yield failure(NAME, "they are of other rows than these", BASELINES, again)
    elif figures.card_section() not in card_text(folder):
        yield failure(NAME, "the card does not have their table", CARD, again)
    else:
        yield Finding(NAME, "ok", figures.summary)


FLAGGED = (
    "Build it with other options (--sampling grouped, other families), or release it with --force: "
    "the card then says so."
)
ORACLE = "Claim nothing that needs the rest of the question; the card has the shares by family."
CLUSTERS = "clusters in train and elsewhere"
QUESTIONS = "questions in train and elsewhere"


def audit_findings(manifest: Manifest) -> Iterator[Finding]:
    """Check the audits of the default config and of each sub-question config, and the oracles.

    Controls show the default config's rows, so its audit also covers them.
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
    found = [finding for config, audit in audits.items() for finding in _findings(config, audit)]
    yield from found
    if not found:
        scored = sum(audit.scored_rows for audit in audits.values() if audit)
        what = f"no shortcut is off chance by more than its bar ({scored:,} rows scored)"
        for config, audit in audits.items():
            every = {name: cell["all"] for name, cell in audit.baselines.items()} if audit else {}
            if audit and (accuracies := spread(every, audit.chance)):
                of = f"{config}: " if len(audits) > 1 else ""
                what += f". {of}{accuracies}"
        yield Finding("audit", "ok", what)
    for config, audit in audits.items():
        if audit and (cells := audit.baselines.get(MOST_SIMILAR)):
            yield _similarity_finding(config, cells["all"], audit.chance)
        for oracle in (audit.oracles if audit else {}).values():
            yield _oracle_finding(config, oracle)


def _similarity_finding(config: str, similarity: BaselineCell, chance: float) -> Finding:
    """Return a finding on the choice most similar to the question; it is no failure."""
    what = f"the choice most similar to the question is right in {similarity.value:.1%}"
    if similarity.low <= chance + MARGIN:
        return Finding("similarity", "ok", f"{what}, chance {chance:.1%}")
    remedy = "Quote accuracies beside it: reports and score cards give the difference."
    return Finding("similarity", "warning", f"{what}, chance {chance:.1%}", config, remedy)


def _oracle_finding(config: str, oracle: OracleReport) -> Finding:
    """Return a finding on an oracle's accuracy; exceeding its target is not a failure."""
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
        what = f"too few rows ({audit.scored_rows:,}) for a verdict on {some(unsure, shown=2)}"
        yield Finding("audit", "warning", what, config, "Build it larger (--limit).")
