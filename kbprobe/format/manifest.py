"""The manifest of a built probe: what was asked for, and what is in its folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kbprobe.errors import UsageError

MANIFEST = "manifest.json"

RENAMED = {
    "companions": "sub_questions",
    "most like the stem": "most like the question",
    "arguments without the frame": "arguments without the carrier sentence",
    "stems in train and elsewhere": "questions in train and elsewhere",
}
"""Keys of manifests written before kbprobe 0.2, and what they are called now."""


@dataclass(frozen=True)
class WrittenFile:
    """One data file: where it is in the probe's folder, and what identifies its content.

    The default config's files are in ``data/``, those of another config in ``CONFIG/data/``.

    ``rows_sha256`` hashes ids, questions, choices and answers alone: it tells "other rows" from
    "the same rows, encoded by another version of Arrow".
    """

    path: str
    config: str
    split: str
    rows: int
    bytes: int
    sha256: str
    rows_sha256: str


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write ``manifest.json``: sorted, indented, the same bytes for the same content."""
    (folder / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8", newline="\n")


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """Return the text of ``manifest.json``."""
    text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False, default=jsonable)
    return text + "\n"


def rows_digest(manifest: Mapping[str, Any]) -> str:
    """Return a digest of the rows of all configs and splits, however they are encoded.

    Files without a digest of their rows, of other writers, count with all of their bytes.
    """
    rows = sorted(
        (entry["path"], entry.get("rows_sha256", entry["sha256"])) for entry in manifest["files"]
    )
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def jsonable(value: Any) -> Any:
    """Turn what a manifest holds in memory into what JSON can hold."""
    if isinstance(value, WrittenFile):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} cannot stand in a manifest")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a built probe, its keys under today's names.

    Args:
        folder: a probe's folder, or the path of its manifest.

    Raises:
        UsageError: the folder holds no probe, or its manifest is damaged.
    """
    path = folder / MANIFEST if folder.is_dir() else folder
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"), object_hook=_renamed)
    except FileNotFoundError:
        raise UsageError(
            f"{folder} holds no built probe (no {MANIFEST}). "
            "Build one with: build-probe NAME -o DIR"
        ) from None
    except (ValueError, OSError) as error:
        raise UsageError(f"{path} cannot be read: {error}. Build the probe again.") from None
    if not isinstance(manifest, dict) or "probe" not in manifest or "request" not in manifest:
        raise UsageError(f"{path} is not a manifest of kbprobe. Name a probe's folder or manifest.")
    return manifest


def _renamed(part: dict[str, Any]) -> dict[str, Any]:
    return {RENAMED.get(key, key): value for key, value in part.items()}
