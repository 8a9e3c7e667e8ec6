"""The card of a built probe: its front matter and text, compared with the manifest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.errors import UsageError
from kbprobe.format.attribution import attributions_of, terms_of
from kbprobe.format.card import CANARY, canary_of, size_category
from kbprobe.format.dataset import CARD
from kbprobe.format.setups import DEFAULT_CONFIG, SETUPS
from release.cards import LICENCE, LISTED, by_config, credited, data_paths, listed, split_card
from release.checks.findings import Finding, failure, some

if TYPE_CHECKING:
    from kbprobe.format.manifest import Manifest

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
        front, text = split_card(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, UsageError) as error:
        yield failure("card", f"it cannot be read: {error}", CARD, REMAKE)
        yield from _licence(manifest, {}, "")
        return
    problems = [*_front_problems(front, manifest), *_text_problems(text, manifest)]
    for problem in problems:
        yield failure("card", problem, CARD, REMAKE)
    if not problems:
        yield Finding("card", "ok", "front matter and text agree with the manifest")
    yield from _licence(manifest, front, text)
    yield from _canary(manifest, text)


def _front_problems(front: Mapping[str, Any], manifest: Manifest) -> Iterator[str]:
    if lacking := [name for name in REQUIRED if not front.get(name)]:
        yield f"front matter lacks {some(lacking, 11)}"
    held = {name: {str(one) for one in listed(front.get(name))} for name in LISTED}
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
    defaults = [name for name, one in configs.items() if one.get("default")]
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
        splits = [one for one in listed(info.get("splits")) if isinstance(one, dict)]
        counted = {str(one.get("name")): one.get("num_examples") for one in splits}
        rows: dict[str, int] = {}
        for entry in entries:
            rows[entry.split] = rows.get(entry.split, 0) + entry.rows
        if counted != rows:
            yield f"dataset_info of {name}: num_examples are not the manifest's rows"
        if info.get("download_size") != sum(entry.bytes for entry in entries):
            yield f"dataset_info of {name}: download_size is not the size of its files"


def _text_problems(text: str, manifest: Manifest) -> Iterator[str]:
    # BibTeX has double braces of its own.
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    if left := re.findall(r"\{\{.*?\}\}|\{%.*?%\}", prose):
        yield f"template syntax is left: {some(left)}"
    if lacking := [name for name in SECTIONS if f"\n## {name}" not in text]:
        yield f"no section {some(lacking, 8)}"
    if f"{manifest.counts.rows:,} rows" not in text:
        yield f"it does not say that there are {manifest.counts.rows:,} rows"
    for split, rows in manifest.counts.splits.items():
        if f"| {split} | {rows:,} |" not in text:
            yield f"its table of splits does not have {rows:,} rows of {split}"
    for name, cells in (manifest.audit.baselines if manifest.audit else {}).items():
        row = re.search(rf"^\| {re.escape(name)} \|.*", text, re.MULTILINE)
        share = f"{cells['all'].accuracy:.1%}"
        if row is None or f"| {share} |" not in row[0]:
            yield f"its audit does not have {share} for {name}"
    if lacking := [name for name in manifest.configs if f"`{name}`" not in text][1:]:
        yield f"it does not mention the configs {some(lacking)}"
    if any(one not in text for one in manifest.knowledge_base.digest.split("+")):
        yield "it does not name the digest of its knowledge base"


def _licence(manifest: Manifest, front: Mapping[str, Any], text: str) -> Iterator[Finding]:
    terms = terms_of(manifest.knowledge_base.licence)
    sources = f"{manifest.knowledge_base.name} ({manifest.knowledge_base.licence})"
    if terms.problem:
        yield failure("licence", terms.problem, sources, "Build it from other sources.")
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


def _canary(manifest: Manifest, text: str) -> Iterator[Finding]:
    expected = canary_of(manifest.probe, manifest.request.seed)
    if expected in text:
        yield Finding("canary", "ok", expected.removeprefix(CANARY).strip())
    else:
        yield failure("canary", f"the card lacks its canary: {expected}", CARD, REMAKE)
