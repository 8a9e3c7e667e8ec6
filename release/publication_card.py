"""What publishing adds to a built probe's card: its id on the Hub, its version, what was forced.

Everything else is in the card already, and changes made to it by hand are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbprobe.errors import UsageError
from kbprobe.format.dataset import CARD
from kbprobe.format.manifest import read_manifest
from release.cards import join_card, split_card
from release.checks.findings import Finding

RELEASE = "## Release"
_HINT = "   # the path of this folder, or its id on the Hub"
_SECTION = re.compile(rf"^{RELEASE}\n.*?(?=^## )", re.DOTALL | re.MULTILINE)


def publication_card(
    folder: Path,
    *,
    repo_id: str,
    version: str = "",
    forced: Sequence[Finding] = (),
) -> str:
    """Return the card under which a built probe is published.

    For a card made by this function, only what publishing adds is replaced.

    Args:
        folder: the probe.
        repo_id: ``USER/NAME``.
        version: the tag of this release; empty for none.
        forced: the failures that publishing passes over; the card lists them.

    Raises:
        UsageError: the folder holds no probe, or its card cannot be read.
    """
    manifest = read_manifest(folder)
    try:
        front, text = split_card((folder / CARD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{folder} has no {CARD}. Build the probe again.") from None
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
