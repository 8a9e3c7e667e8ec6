"""Manifests of probes that tests write by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kbprobe.format.dataset import data_folder
from kbprobe.format.items import Items
from kbprobe.format.manifest import DataFile
from kbprobe.format.shards import write_shards


def toy_manifest(
    probe: str, files: Iterable[DataFile | Mapping[str, Any]], **parts: Any
) -> dict[str, Any]:
    """Return a manifest with everything that one must have; ``parts`` add to it, or replace."""
    files = list(files)
    return {
        "probe": probe,
        "about": "A toy.",
        "schema_version": "1.0",
        "kbprobe_version": "0",
        "request": {"probe": probe, "options": {}, "seed": 0, "format": "parquet"},
        "knowledge_base": {"name": "toy", "licence": "CC0-1.0", "version": "1", "digest": "d"},
        "counts": {"rows": 1, "splits": {}, "concepts": 1, "clusters": 1},
        "audit": None,
        "sub_questions": {},
        "files": files,
        **parts,
    }


def write_parquet(folder: Path, configs: Mapping[str, Mapping[str, Items]]) -> list[DataFile]:
    """Write the items of each config and split into ``folder``."""
    shards = write_shards(folder, configs, "parquet", data_folder)
    return [shard.file for shard in shards]
