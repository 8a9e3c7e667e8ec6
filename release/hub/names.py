"""Names in a repository, and the copy of a probe whose rows carry the canary."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbprobe.errors import UsageError
from kbprobe.files import file_sha256, regular_path, replacing_folder
from kbprobe.format.card import COLUMN, canary_of
from kbprobe.format.dataset import BASELINES, CARD
from kbprobe.format.manifest import DataFile, read_manifest, write_manifest
from kbprobe.format.parquet import parquet_file
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.reading import read_text
from release.cards import join_card, split_card
from release.checks.files import item_schema
from release.exports.flat import FLAT

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_RESERVED = ("data", FLAT, "README", "manifest", "release", "croissant", "eval")


def prefix_of(config: str) -> str:
    """Return the folder of a config in a repository, with a slash; empty for the default one."""
    return "" if config == DEFAULT_CONFIG else f"{config}/"


def check_name(config: str) -> None:
    """Raise a UsageError for what cannot be the name of a config in a repository."""
    if not _NAME.fullmatch(config) or config in _RESERVED:
        raise UsageError(
            f"--config-name {config!r}: use letters, digits, '_', '-' and '.', a letter or digit "
            f"first, and none of {', '.join(_RESERVED)}"
        )


def published_name(name: str, config: str) -> str:
    """Return the name of a probe's config in a repository with several probes.

    >>> published_name("default", "hypernymy"), published_name("perturbed", "hypernymy")
    ('hypernymy', 'hypernymy-perturbed')
    """
    if config == DEFAULT_CONFIG:
        return name
    return config if name == DEFAULT_CONFIG else f"{config}-{name}"


ROW = f"| `{COLUMN}` | string | The canary of this probe, the same in every row. |"
"""The canary column's row in the card's table of columns."""


def add_canary_column(folder: Path, output: Path) -> None:
    """Write a copy of a probe with the canary as last column of all configs and splits.

    Manifest and card describe the copy. Rows, ids and their order are the same.

    Raises:
        UsageError: the folder holds no probe, its data is not Parquet, or ``output`` exists.
        OSError: ``output`` cannot be written.
    """
    manifest = read_manifest(folder)
    if odd := [one.path for one in manifest.files if not one.path.endswith(".parquet")]:
        raise UsageError(f"{odd[0]} is not Parquet: build the probe with --format parquet")
    if output.exists():
        raise UsageError(f"{output} exists already. Name another folder.")
    text = canary_of(manifest.probe, manifest.request.seed)
    with replacing_folder(output) as aside:
        features = item_schema(manifest.schema_version, canary=True).metadata
        files = [_copied(folder, aside, entry, text, features) for entry in manifest.files]
        write_manifest(aside, {**manifest.content, "files": files, "canary_column": True})
        front, body = split_card(read_text(folder / CARD))
        card = join_card(*_described(front, body, text, files))
        (aside / CARD).write_text(card, encoding="utf-8", newline="\n")
        if (folder / BASELINES).is_file():
            shutil.copyfile(folder / BASELINES, aside / BASELINES)


def _copied(
    folder: Path, aside: Path, entry: DataFile, text: str, features: dict[bytes, bytes]
) -> DataFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = aside / entry.path
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetFile(regular_path(folder / entry.path)) as source:
        field = pa.field(COLUMN, pa.string())
        schema = source.schema_arrow.append(field)
        with parquet_file(path, schema, metadata=features) as append:
            for at in range(source.num_row_groups):
                table = source.read_row_group(at)
                column = pa.repeat(pa.scalar(text), table.num_rows)
                append(table.append_column(field, column))
    size, sha256 = path.stat().st_size, file_sha256(path)
    return entry.model_copy(update={"bytes": size, "sha256": sha256})


def _described(
    front: Mapping[str, Any], text: str, canary: str, files: Sequence[DataFile]
) -> tuple[dict[str, Any], str]:
    """Describe the column in a card's front matter and table of columns.

    ``canary`` is its text, ``files`` are those that have it.
    """
    # Each row adds the text and an offset.
    row_bytes = len(canary) + 4
    infos = []
    for info in front.get("dataset_info", []):
        own_files = [one for one in files if one.config == info["config_name"]]
        splits = [
            {**one, "num_bytes": one["num_bytes"] + one["num_examples"] * row_bytes}
            for one in info["splits"]
        ]
        own = {
            "features": [*info["features"], {"name": COLUMN, "dtype": "string"}],
            "splits": splits,
            "download_size": sum(one.bytes for one in own_files),
            "dataset_size": sum(one["num_bytes"] for one in splits),
        }
        infos.append({**info, **own})
    text = re.sub(r"(?m)^(\| `schema_version` \|.*)$", rf"\1\n{ROW}", text)
    return {**front, "dataset_info": infos}, text
