"""What publishing adds to a built probe's card: its id on the Hub, its version, what was forced.

Everything else is in the card already, and changes made to it by hand are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbprobe.errors import UsageError
from kbprobe.format.canary import COLUMN, canary_of
from kbprobe.format.dataset import CARD
from kbprobe.format.manifest import read_manifest
from release.cards import join_card, split_card
from release.checks.findings import Finding

RELEASE = "## Release"
CANARY_COLUMN = f"| `{COLUMN}` | string | The canary of this probe, the same in every row. |"
_HINT = "   # the path of this folder, or its id on the Hub"
_SECTION = re.compile(rf"^{RELEASE}\n.*?(?=^## )", re.DOTALL | re.MULTILINE)


def publication_card(
    folder: Path,
    *,
    repo_id: str,
    version: str = "",
    forced: Sequence[Finding] = (),
    canary: bool = False,
) -> str:
    """Return the card under which a built probe is published.

    For a card made by this function, only what publishing adds is replaced.

    Args:
        folder: the probe.
        repo_id: ``USER/NAME``.
        version: the tag of this release; empty for none.
        forced: the failures that publishing passes over; the card lists them.
        canary: whether the data has the canary as a column
            (:func:`release.canary_column.add_canary_column`).

    Raises:
        UsageError: the folder holds no probe, or its card cannot be read.
    """
    manifest = read_manifest(folder)
    try:
        front, text = split_card((folder / CARD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{folder} has no {CARD}. Build the probe again.") from None
    if canary:
        front, text = with_canary_column(front, text, manifest)
    text = re.sub(r'load_dataset\("[^"]*"', f'load_dataset("{repo_id}"', text).replace(_HINT, "")
    section = f"{RELEASE}\n\n{_release(repo_id, version, forced, manifest)}\n\n"
    text = _SECTION.sub("", text)
    at = text.find("\n## ") + 1
    text = text[:at] + section + text[at:] if at else f"{text.rstrip()}\n\n{section}"
    return join_card(front, text)


def _release(
    repo_id: str, version: str, forced: Sequence[Finding], manifest: Mapping[str, Any]
) -> str:
    text = f"Published by kbprobe as `{repo_id}`, built with seed {manifest['request']['seed']}."
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


def with_canary_column(
    front: Mapping[str, Any], text: str, manifest: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    """Describe the canary's column in a card's front matter and table of columns.

    Args:
        front: the card's front matter; it may describe the column already.
        text: the rest of the card.
        manifest: of the files that have the column; sizes are theirs.
    """
    # Each row adds the text and an offset.
    row_bytes = len(canary_of(manifest["probe"], manifest["request"]["seed"])) + 4
    infos = []
    for info in front.get("dataset_info", []):
        files = [one for one in manifest["files"] if one["config"] == info["config_name"]]
        info = {**info, "download_size": sum(one["bytes"] for one in files)}
        if not any(feature["name"] == COLUMN for feature in info["features"]):
            info["features"] = [*info["features"], {"name": COLUMN, "dtype": "string"}]
            info["splits"] = [
                {**one, "num_bytes": one["num_bytes"] + one["num_examples"] * row_bytes}
                for one in info["splits"]
            ]
            info["dataset_size"] = sum(one["num_bytes"] for one in info["splits"])
        infos.append(info)
    if CANARY_COLUMN not in text:
        last = re.compile(r"^\| `schema_version` \|.*$", re.MULTILINE)
        text = last.sub(lambda found: f"{found[0]}\n{CANARY_COLUMN}", text)
    return {**front, "dataset_info": infos}, text
