"""Snapshots: a folder of Parquet tables, and the ``snapshot.json`` that describes them.

``snapshot.json`` states what the tables hold, where they came from, whom to credit, the sha256 of
every file, and a *digest* of their content. The digest does not depend on how Parquet encodes the
tables, so it names the knowledge base itself: the same source compiled by the same code has the
same digest whichever version of Arrow wrote it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, with_config

from kb_cache.knowledge import Loaded
from kbprobe import files
from kbprobe.errors import SnapshotError, UsageError
from kbprobe.files import file_sha256, plain_path, regular_path
from kbprobe.parsing import read_json, validated

if TYPE_CHECKING:
    import pyarrow as pa

    from kb_cache.base import Compiled

FORMAT = 2
#: Compression levels of zstd, below and above a table's size in bytes. Level 19 takes nearly twenty
#: times as long as 9, to save a tenth of the bytes.
_LEVEL, _LARGE_LEVEL, _LARGE = 9, 6, 1 << 26
INFO_FILE = "snapshot.json"
_SEAL = "record_sha256"
_KNOWN_FIELDS = ConfigDict(extra="forbid")


@with_config(_KNOWN_FIELDS)
@dataclass(frozen=True)
class SourceInfo:
    """Where a snapshot's content came from.

    Attributes:
        description: a description for people.
        path: the folder or archive on this machine, from which the snapshot can be rebuilt;
            None if there is none (embedded snapshots).
        files: sha256 of every source file that was read, by name.
        notes: what was left out, what was missing and how it was replaced.
        options: the options it was fetched with.
    """

    description: str
    path: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@with_config(_KNOWN_FIELDS)
@dataclass(frozen=True)
class FileInfo:
    """One file of a snapshot; ``rows`` is None for files that are not tables."""

    sha256: str
    bytes: int
    rows: int | None = None


@with_config(_KNOWN_FIELDS)
@dataclass(frozen=True)
class SnapshotInfo:
    """The content of ``snapshot.json``: the fields of `kb_cache.knowledge.Loaded`, and others.

    Attributes:
        kind: which loader and compiler it belongs to ("wordnet").
        digest: sha256 over the content of all tables, and of an engine's files.
        created_by: versions of the packages that shaped the content.
        counts: the number of items in an engine's files, by kind.
    """

    kind: str
    name: str
    version: str
    licence: str
    digest: str
    created_by: Mapping[str, str]
    source: SourceInfo
    files: Mapping[str, FileInfo]
    format: int = FORMAT
    attribution: str = ""
    citation: str = ""
    language: str = "en"
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def identity(self) -> dict[str, str]:
        """The fields that a loaded knowledge base has as well (`kb_cache.knowledge.Loaded`)."""
        return {field.name: getattr(self, field.name) for field in fields(Loaded)}

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows of each table, by name, and `counts`."""
        tables = {
            name.removesuffix(".parquet"): file.rows
            for name, file in self.files.items()
            if file.rows is not None
        }
        return tables | dict(self.counts)

    @property
    def bytes(self) -> int:
        """Size of all files, ``snapshot.json`` left out."""
        return sum(file.bytes for file in self.files.values())


def content_digest(tables: Mapping[str, pa.Table]) -> str:
    """Return the sha256 (hex) of names, types, validity and values of tables and columns.

    The division into chunks, dictionary encoding and the width of string offsets do not count.
    """
    digest = hashlib.sha256()
    for table_name in sorted(tables):
        table = tables[table_name]
        _feed(digest, "table", table_name, table.num_rows)
        for column_name in table.column_names:
            _feed(digest, "column", column_name)
            _feed_array(digest, table.column(column_name))
    return digest.hexdigest()


def _feed(digest: hashlib._Hash, *words: object) -> None:
    """Hash a record with its length, so that records cannot run into each other."""
    record = json.dumps(words).encode()
    digest.update(len(record).to_bytes(8, "little"))
    digest.update(record)


def _feed_array(digest: hashlib._Hash, column: Any) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from kbprobe.columns import single_chunk, to_numpy

    array = single_chunk(column)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    _feed(digest, "nulls", array.null_count)
    if array.null_count:
        digest.update(to_numpy(array.is_valid().cast(pa.uint8())).tobytes())
        array = array.drop_null()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        binary = array.cast(pa.large_binary())
        lengths = to_numpy(pc.binary_length(binary).cast(pa.int64()))
        _feed(digest, "string", int(lengths.sum()))
        digest.update(lengths.astype("<i8").tobytes())
        _, offsets, data = binary.buffers()
        if data is not None and len(binary):
            bounds = np.frombuffer(offsets, dtype=np.int64)
            start = int(bounds[binary.offset])
            end = int(bounds[binary.offset + len(binary)])
            digest.update(memoryview(data)[start:end])
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = to_numpy(pc.list_value_length(array).cast(pa.int64()))
        _feed(digest, "list")
        digest.update(lengths.astype("<i8").tobytes())
        _feed_array(digest, pc.list_flatten(array))
    elif pa.types.is_boolean(kind):
        _feed(digest, "bool")
        digest.update(to_numpy(array.cast(pa.uint8())).tobytes())
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = to_numpy(array)
        _feed(digest, str(kind))
        digest.update(values.astype(values.dtype.newbyteorder("<")).tobytes())
    else:
        raise TypeError(f"no canonical form is defined for columns of type {kind}")


def write_snapshot(folder: Path, compiled: Compiled, **described: Any) -> SnapshotInfo:
    """Write tables, further files and ``snapshot.json`` into an existing folder.

    The folder is empty, or holds what an engine wrote; the engine must have closed its files. The
    bytes depend only on the arguments and the version of Arrow; no time is recorded.

    Args:
        folder: where to write; usually what ``kbprobe.files.replacing_folder`` yields.
        compiled: what to write.
        **described: fields of `SnapshotInfo`: ``kind``, ``name``, ``version``, ``licence``,
            ``source``, and whom to credit.
    """
    import pyarrow.parquet as pq

    tables, engine = compiled.tables, compiled.engine
    written: dict[str, FileInfo] = {}
    for table_name in sorted(tables):
        table = tables[table_name]
        path = folder / f"{table_name}.parquet"
        encodings = _encodings(table)
        pq.write_table(
            table,
            plain_path(path),
            compression="zstd",
            compression_level=_LEVEL if table.nbytes < _LARGE else _LARGE_LEVEL,
            column_encoding=encodings or None,
            use_dictionary=[name for name in table.column_names if name not in encodings],
            write_statistics=False,  # they serve selective reads; we always read whole tables
            write_page_checksum=True,
            row_group_size=max(table.num_rows, 1),
        )
        written[path.name] = FileInfo(file_sha256(path), path.stat().st_size, table.num_rows)
    for file_name, content in sorted(compiled.texts.items()):
        (folder / file_name).write_bytes(content)
        written[file_name] = FileInfo(hashlib.sha256(content).hexdigest(), len(content))
    digest = content_digest(tables)
    if engine is not None:
        for path in sorted(each for each in (folder / engine.folder).rglob("*") if each.is_file()):
            known = FileInfo(file_sha256(path), path.stat().st_size)
            written[path.relative_to(folder).as_posix()] = known
        digest = hashlib.sha256(f"{digest} {engine.digest}".encode()).hexdigest()
    info = SnapshotInfo(
        **described,
        digest=digest,
        created_by=dict(sorted(compiled.created_by.items())),
        files=written,
        counts=dict(engine.counts) if engine is not None else {},
    )
    write_info(folder, info)
    return info


def write_info(folder: Path, info: SnapshotInfo) -> None:
    """Write ``snapshot.json``, with a checksum of its other contents."""
    described = {"format": info.format, **asdict(info)}
    if not info.counts:
        del described["counts"]
    described[_SEAL] = _digest_of_record(described)
    text = json.dumps(described, indent=2, ensure_ascii=False) + "\n"
    (folder / INFO_FILE).write_bytes(text.encode())


def _digest_of_record(described: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _encodings(table: pa.Table) -> dict[str, str]:
    """Parquet encodings by column; columns left out are dictionary encoded.

    Measured on WordNet 3.0: 6.3 MB, against 9.6 MB with dictionaries throughout.
    """
    import numpy as np
    import pyarrow as pa

    encodings = {}
    for column in table.schema:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            encodings[column.name] = "DELTA_LENGTH_BYTE_ARRAY"
        elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            values = table[column.name].to_numpy()
            rising = np.count_nonzero(values[1:] >= values[:-1])
            ascending = values.dtype.kind != "f" and rising > 0.9 * (len(values) - 1)
            encodings[column.name] = "DELTA_BINARY_PACKED" if ascending else "BYTE_STREAM_SPLIT"
    return encodings


def read_info(folder: Path) -> SnapshotInfo:
    """Read ``snapshot.json``.

    Raises:
        SnapshotError: it is missing, is not what we write, or has another format version.
    """
    path = folder / INFO_FILE
    try:
        raw = read_json(path)
    except FileNotFoundError as error:
        raise SnapshotError(f"{folder} has no {INFO_FILE}: it is not a snapshot") from error
    except UsageError as error:
        raise SnapshotError(str(error)) from error
    if not isinstance(raw, dict) or not isinstance(raw.get("format"), int):
        raise SnapshotError(f"{path} is not a snapshot's description")
    if raw["format"] != FORMAT:
        raise SnapshotError(
            f"{path} has format {raw['format']}; this kbprobe reads format {FORMAT}"
        )
    if raw.pop(_SEAL, None) != _digest_of_record(raw):
        raise SnapshotError(f"{path} was changed after kbprobe wrote it: its checksum differs")
    try:
        info = validated(raw, SnapshotInfo, str(path))
    except UsageError as error:
        raise SnapshotError(f"{error}; it is incomplete or has unknown fields") from error
    for name in info.files:
        if "\0" in name or PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise SnapshotError(f"{path}: files: {name!r} is not a path within the snapshot")
    return info


def find_damage(folder: Path, info: SnapshotInfo, *, full: bool) -> list[str]:
    """Return a sentence for each file that does not match ``snapshot.json``.

    With ``full``, sha256 is also compared (reads every byte), otherwise only presence and size.
    """
    expected = {name: (file.sha256, file.bytes) for name, file in info.files.items()}
    return files.find_damage(folder, expected, full=full)


def read_tables(folder: Path, info: SnapshotInfo) -> dict[str, pa.Table]:
    """Read every table of a snapshot, checking presence, sizes and page checksums.

    Files of up to 64 MiB are compared with their sha256 as well, which takes milliseconds; of
    larger ones ``kb-cache verify`` does so.

    Raises:
        SnapshotError: a file is missing, truncated or corrupt; the message names it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    small = {name: file for name, file in info.files.items() if file.bytes <= _LARGE}
    damage = find_damage(folder, info, full=False)
    damage = damage or find_damage(folder, replace(info, files=small), full=True)
    if damage:
        raise SnapshotError("; ".join(damage))
    tables = {}
    for name, file in info.files.items():
        if file.rows is None:
            continue
        try:
            table = pq.ParquetFile(
                regular_path(folder / name), page_checksum_verification=True
            ).read()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise SnapshotError(f"{folder / name} is corrupt: {error}") from error
        if table.num_rows != file.rows:
            raise SnapshotError(f"{folder / name} has {table.num_rows} rows, not {file.rows}")
        tables[name.removesuffix(".parquet")] = table
    return tables
