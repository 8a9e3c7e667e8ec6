"""A built probe on disk (Parquet or JSON lines with a manifest), and its rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.errors import BUILT, KbprobeError, UsageError, path_argument
from kbprobe.files import datasets_cache, file_sha256, regular_path
from kbprobe.files.targets import already_there, own_files
from kbprobe.format.manifest import (
    MANIFEST,
    DataFile,
    Manifest,
    SplitFiles,
    plain_json,
    read_manifest,
)
from kbprobe.format.parquet import ROWS_PER_GROUP
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.reading import open_file, read_text

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

    from kbprobe.format.in_memory import ProbeSplits


CARD = "README.md"
ANNOTATIONS = "annotations.jsonl"
BASELINES = "baselines.json"
DATA = "data"


def data_folder(folder: Path, config: str) -> Path:
    """Return where a config's files are in a built probe."""
    return folder / DATA if config == DEFAULT_CONFIG else folder / config / DATA


def write_annotations(folder: Path, lines: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Write the labels file of a probe answered by people; return its manifest entry."""
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


def read_sound(folder: Path) -> tuple[Manifest, str]:
    """Read the manifest and the card of a built probe, to which a record is to be added.

    Raises:
        UsageError: the folder holds no probe, or its card cannot be read.
        KbprobeError: a data file is missing or damaged: nothing is recorded about other rows.
    """
    manifest = read_manifest(folder)
    if damage := damaged_files(folder, manifest.files):
        raise KbprobeError(f"{folder}: {damage[0]}. Build the probe again.")
    try:
        return manifest, read_text(folder / CARD, remedy="Build it again.")
    except FileNotFoundError:
        raise UsageError(f"{folder} has no {CARD}. Build it again.") from None


def check_target(folder: Path, request: Mapping[str, Any], overwrite: bool) -> bool:
    """Return whether a folder holds the probe; see `kbprobe.files.targets.already_there`."""
    return already_there(folder, MANIFEST, plain_json(request), kind="a probe", overwrite=overwrite)


def probe_files(folder: Path) -> set[str]:
    """Return the files that a build replaces; see `kbprobe.files.targets.own_files`."""
    return own_files(folder, MANIFEST, CARD, BASELINES, ANNOTATIONS)


def load(path: str | Path, config: str = DEFAULT_CONFIG) -> ProbeSplits:
    """Load a config of a built probe, after checking its files against the manifest.

    Args:
        path: the probe's folder, as ``build-probe`` wrote it.
        config: ``default``, or another config that was built with it, such as ``no_language``.

    Returns:
        A dataset for each split, with the features of :func:`kbprobe.format.items.features`.

    Raises:
        UsageError: the folder holds no probe, or no such config.
        KbprobeError: one of the config's files is missing, damaged, or holds something other than
            rows of a probe.
    """
    import datasets

    from kbprobe.format.in_memory import ProbeSplits, dataset_info
    from kbprobe.format.items import features

    folder = path_argument("load(path=...)", path, BUILT)
    manifest = read_manifest(folder)
    entries = manifest.files_of(config)
    if damage := damaged_files(folder, entries):
        raise KbprobeError(f"{folder}: {'; '.join(damage)}. Build the probe again.")
    info = dataset_info(manifest.content, config)
    info.features = features()
    return ProbeSplits(
        {
            split: datasets.Dataset(
                _read([folder / file.path for file in held.files]).data,
                info,
                datasets.NamedSplit(split),
            )
            for split, held in manifest.split_files(config).items()
        }
    )


def _read(paths: list[Path]) -> datasets.Dataset:
    """Read the files of a split: all Parquet, or all JSON lines."""
    import datasets
    import pyarrow as pa

    from kbprobe.format.items import features

    files, read = [regular_path(path) for path in paths], datasets.Dataset.from_json
    if files[0].endswith(".parquet"):
        read = datasets.Dataset.from_parquet
    try:
        return read(files, features=features(), cache_dir=datasets_cache(paths))
    except (datasets.exceptions.DatasetsError, pa.ArrowException, ValueError, TypeError) as error:
        cause = error.__cause__ or error
        if isinstance(cause, OSError):
            raise cause from None  # from the cache of datasets, such as a full disk
        what = " ".join(str(cause).split())[:200]
        raise KbprobeError(
            f"{', '.join(files)} cannot be read as rows of a probe, although the checksum is that "
            f"of the manifest: {what}. Build the probe again, or get it again from where it was "
            "published."
        ) from None


def read_rows(folder: Path, split: SplitFiles) -> pa.Table:
    """Read a split of a built probe, all columns, after verifying its files' checksums.

    Raises:
        KbprobeError: a file is missing, damaged, or not of kbprobe's schema.
    """
    import pyarrow as pa

    from kbprobe.format.items import arrow_schema

    if damage := damaged_files(folder, split.files):
        raise KbprobeError(f"{folder}: {damage[0]}. Build the probe again.")
    tables = [table for file in split.files for table in row_groups(folder / file.path)]
    return pa.concat_tables([arrow_schema().empty_table(), *tables])


def row_groups(path: Path) -> Iterator[pa.Table]:
    """Yield the rows of a data file, all columns of the item schema, a row group at a time.

    JSON lines are read as many at a time as a row group has at most.

    Raises:
        KbprobeError: it is damaged, or not of kbprobe's schema.
    """
    import pyarrow as pa

    try:
        yield from _parquet_groups(path) if path.suffix == ".parquet" else _line_groups(path)
    except (pa.ArrowException, ValueError, KeyError, TypeError, RecursionError) as error:
        raise KbprobeError(f"{path} cannot be read as rows of a probe: {error}") from None


def _parquet_groups(path: Path) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from kbprobe.format.items import ADDED, COLUMNS, arrow_schema

    schema = arrow_schema()
    with pq.ParquetFile(regular_path(path)) as file:
        for at in range(file.num_row_groups):
            table = file.read_row_group(at, columns=list(COLUMNS))
            for name in ADDED.keys() - set(table.column_names):
                field = schema.field(name)
                empty: list[Any] = [[] if pa.types.is_list(field.type) else None] * len(table)
                table = table.append_column(field, pa.array(empty, field.type))
            yield table.select(list(COLUMNS)).cast(schema)


def _line_groups(path: Path) -> Iterator[pa.Table]:
    import pyarrow as pa

    from kbprobe.format.items import arrow_schema

    with TextIOWrapper(open_file(path), encoding="utf-8") as lines:
        while rows := [json.loads(line) for line in islice(lines, ROWS_PER_GROUP)]:
            if not all(isinstance(row, dict) for row in rows):
                raise ValueError("a line is not an object")
            yield pa.Table.from_pylist(rows, arrow_schema())


def rows_with(table: pa.Table, ids: Collection[str]) -> pa.Table:
    """Return the rows with these ids, in the table's order; unknown ids are ignored."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table["id"], pa.array(list(ids), pa.string()))).combine_chunks()


def rows_by_id(table: pa.Table, ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the rows with these ids as plain Python, by id."""
    return {row["id"]: row for row in rows_with(table, ids).to_pylist()}
