"""Rows of built probes with what only these have: nodes, triples, relations, arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kbprobe.errors import UsageError
from kbprobe.format.dataset import read_rows
from kbprobe.format.manifest import Manifest, holds_manifest, read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG


def manifest_of_build(probe: str, purpose: str) -> Manifest:
    """Return the manifest of a probe that build-probe wrote.

    Args:
        probe: its folder.
        purpose: what it is needed for, such as ``consistency pairs rows by their triples``, for the
            message.

    Raises:
        UsageError: the folder holds no built probe.
        KbprobeError: the manifest is damaged.
    """
    if not holds_manifest(Path(probe)):
        raise UsageError(
            f"{purpose}, which only folders written by build-probe have, and {probe} is none"
        )
    return read_manifest(Path(probe))


def rows_of_build(
    probe: str, manifest: Manifest, columns: Sequence[str], config: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of all splits of a config, with some of their columns.

    Raises:
        UsageError: there is no such config.
        KbprobeError: a file is damaged.
    """
    for split in manifest.split_files(config or DEFAULT_CONFIG).values():
        yield from read_rows(Path(probe), split).select([*columns]).to_pylist()
