"""A built probe on disk: Parquet or JSON lines beside its manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kbprobe.errors import KbprobeError
from kbprobe.files import file_sha256
from kbprobe.format.manifest import MANIFEST, DataFile, plain_json, read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.targets import already_there

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

    from kbprobe.format.items import Items

CARD = "README.md"
ANNOTATIONS = "annotations.jsonl"
DATA = "data"
ROWS_PER_GROUP = 1 << 16
"""Rows laid out and written at a time: bounds memory however many rows there are."""

Format = Literal["parquet", "jsonl"]


def write_configs(
    folder: Path, configs: Mapping[str, Mapping[str, Items]], format: Format, workers: int = 2
) -> list[DataFile]:
    """Write the items of each config and split into ``folder``, several files at a time.

    Bytes depend on the items alone, not on ``workers``.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    write = _write_parquet if format == "parquet" else _write_jsonl
    with ThreadPoolExecutor(max_workers=workers) as pool:
        jobs = []
        for config, splits in configs.items():
            data_folder(folder, config).mkdir(parents=True)
            for split, items in splits.items():
                jobs.append(pool.submit(write, folder, config, split, items))
        return [job.result() for job in jobs]


def data_folder(folder: Path, config: str) -> Path:
    """Return where a config's files are in a built probe."""
    return folder / DATA if config == DEFAULT_CONFIG else folder / config / DATA


def _write_parquet(folder: Path, config: str, split: str, items: Items) -> DataFile:
    import pyarrow.parquet as pq

    from kbprobe.format.items import arrow_schema

    path = data_folder(folder, config) / f"{split}-00000-of-00001.parquet"
    digest = hashlib.sha256()
    writer = None
    try:
        for start in range(0, items.rows, ROWS_PER_GROUP):
            table = items.table(start, start + ROWS_PER_GROUP)
            _feed(digest, table)
            if writer is None:
                # The stored Arrow schema would say "dictionary"; readers are to see strings.
                writer = pq.ParquetWriter(
                    path,
                    table.schema,
                    compression="zstd",
                    compression_level=1,
                    store_schema=False,
                    use_dictionary=_repeating(table.schema),
                    dictionary_pagesize_limit=1 << 30,
                    write_statistics=False,
                )
            writer.write_table(table, row_group_size=ROWS_PER_GROUP)
        if writer is not None:
            writer.add_key_value_metadata(arrow_schema().metadata)
    finally:
        if writer is not None:
            writer.close()
    return _written(folder, path, config, split, items.rows, digest)


def _repeating(schema: pa.Schema) -> list[str]:
    """The Parquet paths of all columns whose values repeat: all but ``id``."""

    def leaves(field: pa.Field, path: str) -> list[str]:
        kind = field.type
        if hasattr(kind, "value_field"):
            return leaves(kind.value_field, f"{path}.list.element")
        if kind.num_fields and not hasattr(kind, "index_type"):
            inner = (kind.field(at) for at in range(kind.num_fields))
            return [leaf for part in inner for leaf in leaves(part, f"{path}.{part.name}")]
        return [path]

    return [leaf for field in schema if field.name != "id" for leaf in leaves(field, field.name)]


def _write_jsonl(folder: Path, config: str, split: str, items: Items) -> DataFile:
    from kbprobe.format.items import plain

    path = data_folder(folder, config) / f"{split}.jsonl"
    digest = hashlib.sha256()
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for start in range(0, items.rows, ROWS_PER_GROUP):
            table = items.table(start, start + ROWS_PER_GROUP)
            _feed(digest, table)
            for row in plain(table).to_pylist():
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return _written(folder, path, config, split, items.rows, digest)


def _feed(digest: Any, table: pa.Table) -> None:
    """Add the rows' ids, questions, choices and answers to a hash, without decoding their texts."""
    from kbprobe.columns import to_numpy

    for name in ("id", "question", "answer", "choices"):
        column = table[name].combine_chunks()
        if name == "choices":
            column = column.field("text").values
        if hasattr(column, "dictionary"):
            digest.update(to_numpy(column.indices).astype("<i4").tobytes())
            column = column.dictionary
        for buffer in column.buffers()[1:]:
            digest.update(memoryview(buffer))


def _written(folder: Path, path: Path, config: str, split: str, rows: int, digest: Any) -> DataFile:
    name, sha256 = path.relative_to(folder).as_posix(), file_sha256(path)
    return DataFile(
        path=name,
        config=config,
        split=split,
        rows=rows,
        bytes=path.stat().st_size,
        sha256=sha256,
        rows_sha256=digest.hexdigest(),
    )


def write_annotations(folder: Path, lines: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Write the labels file of a probe whose answers people gave; return its manifest entry."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    data = text.encode()
    (folder / ANNOTATIONS).write_bytes(data)
    return {
        "path": ANNOTATIONS,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "rows": text.count("\n"),
    }


def damaged_files(folder: Path, files: Iterable[DataFile]) -> list[str]:
    """Return those data files of a built probe that are missing or differ from the manifest."""
    found = []
    for entry in files:
        path = folder / entry.path
        if not path.is_file():
            found.append(f"{entry.path} is missing")
        elif file_sha256(path) != entry.sha256:
            found.append(f"{entry.path} differs from its checksum in {MANIFEST}")
    return found


def check_target(folder: Path, request: Mapping[str, Any], overwrite: bool) -> bool:
    """Tell whether a probe is where it is to go already; see `kbprobe.targets.already_there`."""
    return already_there(folder, MANIFEST, plain_json(request), kind="a probe", overwrite=overwrite)


def dataset_info(manifest: Mapping[str, Any], config: str) -> datasets.DatasetInfo:
    """Return what a dataset in memory says of itself; evaluation takes probe and config from it."""
    from datasets import DatasetInfo

    return DatasetInfo(
        description=manifest["about"],
        license=manifest["knowledge_base"]["licence"],
        dataset_name=manifest["probe"],
        config_name=config,
    )


def load(path: str | Path, config: str = DEFAULT_CONFIG) -> datasets.DatasetDict:
    """Load a config of a built probe, after checking its files against the manifest.

    Args:
        path: the probe's folder, as ``build-probe`` wrote it.
        config: ``default``, or another config that was built beside it, such as ``no_language``.

    Returns:
        A dataset for each split, with the features of :func:`kbprobe.format.items.features`.

    Raises:
        UsageError: the folder holds no probe, or no such config.
        KbprobeError: one of the config's files is missing or damaged.
    """
    import datasets

    from kbprobe.format.items import features

    folder = Path(path)
    manifest = read_manifest(folder)
    entries = manifest.files_of(config)
    if damage := damaged_files(folder, entries):
        raise KbprobeError(f"{folder}: {'; '.join(damage)}. Build the probe again.")
    files = {entry.split: str(folder / entry.path) for entry in entries}
    if all(name.endswith(".parquet") for name in files.values()):
        read = datasets.Dataset.from_parquet
        return datasets.DatasetDict(
            {split: read(name, features=features()) for split, name in files.items()}
        )
    return datasets.load_dataset("json", data_files=files, features=features())
