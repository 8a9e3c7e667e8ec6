"""The files that are published for a built probe: those in its manifest, and descriptions."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kbprobe.cli import kbprobe_version
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.dataset import BASELINES, CARD
from kbprobe.format.manifest import MANIFEST, Manifest, read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.parsing import MAX_JSON_BYTES, json_value
from kbprobe.reading import read_bytes, read_text
from release.cards import LICENCE, LISTED, join_card, split_card
from release.checks.files import CROISSANT, RECORD
from release.checks.findings import CheckReport, Finding
from release.croissant import croissant_text
from release.exports.flat import FlatConfig, write_flat_configs
from release.hub.names import prefix_of, published_name
from release.hub.registration import evaluation_section, registration
from release.hub.repo_card import unmarked

FORMAT = 1
RELEASE = "## Release"
_HINT = "   # the path of this folder, or its id on the Hub"
EVALUATION = "## Evaluation"
_SECTION, _EVALUATION_SECTION = (
    re.compile(rf"^{title}\n.*?(?=^## )", re.DOTALL | re.MULTILINE)
    for title in (RELEASE, EVALUATION)
)


@dataclass(frozen=True)
class LocalFile:
    """A file as it should be on the Hub: ``source`` is the file, or its content."""

    path: str
    source: Path | bytes
    size: int
    sha256: str

    @classmethod
    def of(cls, path: str, content: bytes) -> LocalFile:
        """Make a file from its content."""
        return cls(path, content, len(content), hashlib.sha256(content).hexdigest())

    def content(self) -> bytes:
        """Return the whole content."""
        return self.source if isinstance(self.source, bytes) else read_bytes(self.source, self.size)


@dataclass(frozen=True)
class Package:
    """A probe, ready for publishing.

    Attributes:
        config: the name under which its default config is published.
        files: data, flat rows, manifest, baselines, Croissant and record; the card and the
            registration are made once those on the Hub are known.
        front, text: the front matter and text of its card.
        registration: its part of ``eval.yaml``; empty if no harness can score its rows.
    """

    config: str
    manifest: Manifest
    files: tuple[LocalFile, ...]
    front: Mapping[str, Any]
    text: str
    registration: Mapping[str, Any]


def pack(
    folder: Path, report: CheckReport, scratch: Path, *, repo_id: str, config: str, version: str
) -> Package:
    """Gather what is published: the probe's files, and those derived from them.

    The report of the check has hashed the data files. ``scratch`` holds the flat rows, and must
    outlast the package.

    Raises:
        UsageError: the folder holds no probe, or its card cannot be read.
        KbprobeError: a file is a link or is reached through one, or has changed since the check.
    """
    manifest = read_manifest(folder)
    prefix = prefix_of(config)
    flat = write_flat_configs(folder, manifest, scratch)
    described = croissant_text(folder, repo_id=repo_id, version=version, prefix=prefix, flat=flat)
    files = [
        *_data_files(folder, manifest, prefix),
        *(
            LocalFile(f"{prefix}{file.path}", scratch / file.path, file.bytes, file.sha256)
            for one in flat
            for file in one.files.files
        ),
        LocalFile.of(f"{prefix}{MANIFEST}", read_bytes(folder / MANIFEST, MAX_JSON_BYTES)),
        LocalFile.of(f"{prefix}{CROISSANT}", described.encode()),
    ]
    if (folder / BASELINES).is_file():
        files.append(
            LocalFile.of(f"{prefix}{BASELINES}", read_bytes(folder / BASELINES, MAX_JSON_BYTES))
        )
    registered = registration(manifest, flat, config)
    card = publication_card(folder, repo_id=repo_id, version=version, forced=report.failed)
    front, text = split_card(card)
    front = _with_flat(front, flat)
    section = evaluation_section(flat, registered, repo_id, config)
    text = _with_evaluation(unmarked(text), section)
    if prefix:
        front, text = _renamed_card(front, text, config, repo_id)
    record = {
        "format": FORMAT,
        "probe": manifest.probe,
        "config": config,
        "version": version,
        "kbprobe_version": kbprobe_version(),
        "request": manifest.content["request"],
        "environment": manifest.environment,
        "check": [asdict(one) for one in report.findings],
        "forced": [one.name for one in report.failed],
        "files": [{"path": one.path, "bytes": one.size, "sha256": one.sha256} for one in files],
        "front": front,
        "registration": registered,
    }
    content = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    files.append(LocalFile.of(f"{prefix}{RECORD}", content.encode()))
    return Package(config, manifest, tuple(files), front, text, registered)


def publication_card(
    folder: Path,
    *,
    repo_id: str,
    version: str = "",
    forced: Sequence[Finding] = (),
) -> str:
    """Return the card under which a built probe is published.

    It lists the failures that publishing ignores (``forced``).

    Publishing adds its id on the Hub, its version, and what was forced; everything else is already
    in the card. For a card made by this function, only what publishing adds is replaced.

    Raises:
        UsageError: the folder holds no probe, or its card cannot be read.
    """
    manifest = read_manifest(folder)
    try:
        front, text = split_card(read_text(folder / CARD))
    except FileNotFoundError:
        raise UsageError(f"{folder} has no {CARD}. Build the probe again.") from None
    text = re.sub(r'load_dataset\("[^"]*"', f'load_dataset("{repo_id}"', text).replace(_HINT, "")
    section = f"{RELEASE}\n\n{_release(repo_id, version, forced, manifest)}\n\n"
    text = _SECTION.sub("", text)
    at = text.find("\n## ") + 1
    text = text[:at] + section + text[at:] if at else f"{text.rstrip()}\n\n{section}"
    return join_card(front, text)


def _release(repo_id: str, version: str, forced: Sequence[Finding], manifest: Manifest) -> str:
    text = f"Published by kbprobe as `{repo_id}`, built with seed {manifest.request.seed}."
    if version:
        text += (
            f' This is version {version}: `load_dataset("{repo_id}", revision="{version}")` always '
            "loads it, whatever is published later."
        )
    if not forced:
        return text
    items = []
    for one in forced:
        where = f" ({one.where})" if one.where else ""
        items.append(f"- {one.name}: {' '.join(one.what.split())}{where}")
    warning = "**It was published although its check before release failed:**"
    return "\n\n".join([text, warning, "\n".join(items)])


def _below(config: str, path: str | list[str]) -> str | list[str]:
    """Return the path, or the paths, of a split's files in the folder of a config."""
    return f"{config}/{path}" if isinstance(path, str) else [f"{config}/{one}" for one in path]


def _data_files(folder: Path, manifest: Manifest, prefix: str) -> list[LocalFile]:
    """Return the data files in a manifest, with the checksums that it records."""
    for name in (CARD, MANIFEST, BASELINES, *(entry.path for entry in manifest.files)):
        if (folder / name).resolve() != folder.resolve() / name:
            raise KbprobeError(
                f"{folder / name} is a link, or is reached through one. Links are not published: "
                "put the file itself there."
            )
    found = []
    for entry in manifest.files:
        path = folder / entry.path
        if not path.is_file() or path.stat().st_size != entry.bytes:
            raise KbprobeError(f"{path} is not as {MANIFEST} records it. Build the probe again.")
        found.append(LocalFile(f"{prefix}{entry.path}", path, entry.bytes, entry.sha256))
    return found


def _renamed_card(
    front: Mapping[str, Any], text: str, config: str, repo_id: str
) -> tuple[dict[str, Any], str]:
    """Rename the configs of a card, and move its files into a folder, for a shared repository."""

    def renamed(entry: Mapping[str, Any]) -> dict[str, Any]:
        name = published_name(entry["config_name"], config)
        rest = {key: value for key, value in entry.items() if key not in ("config_name", "default")}
        if "data_files" in rest:
            files = entry["data_files"]
            rest["data_files"] = [{**file, "path": _below(config, file["path"])} for file in files]
        return {"config_name": name, **rest}

    shared = {key: value for key, value in front.items() if key in (*LISTED, *LICENCE)}
    for key in ("configs", "dataset_info"):
        shared[key] = [renamed(entry) for entry in front[key]]
    loads = re.compile(rf'load_dataset\("{re.escape(repo_id)}"(?:, "([^"]+)")?')
    return shared, loads.sub(
        lambda found: (
            f'load_dataset("{repo_id}", "{published_name(found[1] or DEFAULT_CONFIG, config)}"'
        ),
        text,
    )


def _with_evaluation(text: str, section: str) -> str:
    """Insert the section about evaluating a model into a card, before its counts."""
    text = _EVALUATION_SECTION.sub("", text)
    at = text.find("\n## Counts\n") + 1 or len(text)
    return f"{text[:at]}{EVALUATION}\n\n{section}\n\n{text[at:]}"


def _with_flat(front: Mapping[str, Any], flat: Sequence[FlatConfig]) -> dict[str, Any]:
    """Add flat configs to a card's front matter, replacing existing ones."""
    names = {one.name for one in flat}
    entries = [one.front_matter for one in flat]
    new = {
        key: [
            *(one for one in front[key] if one["config_name"] not in names),
            *(entry[at] for entry in entries),
        ]
        for at, key in enumerate(("configs", "dataset_info"))
    }
    return {**front, **new}


@dataclass(frozen=True)
class ReleaseRecord:
    """What ``release.json`` says about the last publication.

    Attributes:
        front: what was generated as the card's front matter.
        files: SHA-256 by path.
        registration: what was registered in ``eval.yaml``.
    """

    front: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    registration: Mapping[str, Any] = field(default_factory=dict)


def read_record(content: bytes | None) -> ReleaseRecord | None:
    """Read the record of the last publication; None if it is missing or damaged."""
    try:
        record = json_value(content or b"", RECORD)
        files = {str(one["path"]): str(one["sha256"]) for one in record["files"]}
        return ReleaseRecord(dict(record["front"]), files, dict(record["registration"]))
    except (UsageError, ValueError, KeyError, TypeError):
        return None
