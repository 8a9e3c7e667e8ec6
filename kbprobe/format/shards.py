"""Writing items, and how a split is cut into files.

A split is one file, or, if it is made in parts and large, several of about ``SHARD_BYTES``. What is
in a file depends on the items alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kbprobe.files import file_sha256
from kbprobe.format.manifest import DataFile
from kbprobe.format.parquet import ROWS_PER_GROUP, parquet_file, write_parquet

if TYPE_CHECKING:
    import pyarrow as pa

    from kbprobe.format.items import Items, ItemsInParts

SHARD_BYTES = 134_000_000
"""Approximate bytes per file of a large split: from 100 to 200 MB."""

Format = Literal["parquet", "jsonl"]
Splits = Mapping[str, "Items | ItemsInParts"]


class Shard(NamedTuple):
    """A file that was written.

    Attributes:
        file: the manifest's entry.
        num_bytes: the size of its rows in Arrow; 0 if the items were not made in parts.
        counted: the results of the parts' ``count``.
    """

    file: DataFile
    num_bytes: int = 0
    counted: int = 0


@dataclass(frozen=True)
class _Job:
    """A file to write: parts ``first .. last`` of a split."""

    folder: Path
    path: Path
    config: str
    split: str
    items: Items | ItemsInParts
    parts: tuple[tuple[int, int], ...]

    def run(self) -> Shard:
        """Write the file."""
        write = _write_jsonl if self.path.suffix == ".jsonl" else _write_parquet
        return write(self)

    def laid_out(self) -> Iterator[tuple[pa.Table, int, int]]:
        """Yield tables of at most ``ROWS_PER_GROUP`` rows, and the counts of each part."""
        from kbprobe.format.card import arrow_bytes
        from kbprobe.format.items import Items

        for start, stop in self.parts:
            items, num_bytes, counted = self.items, 0, 0
            if not isinstance(items, Items):
                counted_by = items.count
                items = items.make(start, stop)
                num_bytes, counted = arrow_bytes(items), counted_by(start, stop)
            for at in range(0, items.rows, ROWS_PER_GROUP):
                yield items.table(at, at + ROWS_PER_GROUP), num_bytes, counted
                num_bytes = counted = 0

    def shard(self, digest: Any, num_bytes: int, counted: int) -> Shard:
        """Describe the file once it is written."""
        entry = DataFile(
            path=self.path.relative_to(self.folder).as_posix(),
            config=self.config,
            split=self.split,
            rows=sum(stop - start for start, stop in self.parts),
            bytes=self.path.stat().st_size,
            sha256=file_sha256(self.path),
            rows_sha256=digest.hexdigest(),
        )
        return Shard(entry, num_bytes, counted)


def write_shards(
    folder: Path,
    configs: Mapping[str, Splits],
    format: Format,
    data_folder: Callable[[Path, str], Path],
) -> list[Shard]:
    """Write the items of each config and split into ``folder``.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    from kbprobe.format.items import Items

    jobs: list[_Job] = []
    for config, splits in configs.items():
        place = data_folder(folder, config)
        place.mkdir(parents=True)
        per_row = _bytes_per_row(splits) if format == "parquet" else 0.0
        for split, items in splits.items():
            cuts = (0, items.rows) if isinstance(items, Items) else items.cuts
            parts = list(pairwise(cuts))
            count = min(len(parts), max(1, round(items.rows * per_row / SHARD_BYTES)))
            for at in range(count):
                name = f"{split}-{at:05d}-of-{count:05d}.parquet"
                path = place / (name if format == "parquet" else f"{split}.jsonl")
                some = parts[len(parts) * at // count : len(parts) * (at + 1) // count]
                jobs.append(_Job(folder, path, config, split, items, tuple(some)))
    return [job.run() for job in jobs]


def _bytes_per_row(splits: Splits) -> float:
    """Return the bytes that a row takes in a file, measured on rows of the largest split.

    These are the first rows of its first, middle and last part. Only splits that are made in parts
    are measured, since others are a single file.
    """
    import pyarrow as pa

    from kbprobe.format.items import Items

    largest = max(splits.values(), key=lambda items: items.rows)
    if isinstance(largest, Items):
        return 0.0
    parts, written, rows = list(pairwise(largest.cuts)), 0, 0
    for start, stop in {parts[0], parts[len(parts) // 2], parts[-1]}:
        # Laid out as it will be: the dictionaries of a part are written with each of its groups.
        table = largest.make(start, stop).table(0, ROWS_PER_GROUP)
        sink = pa.BufferOutputStream()
        write_parquet(table, sink)
        written, rows = written + len(sink.getvalue()), rows + len(table)
    return written / rows


def _write_parquet(job: _Job) -> Shard:
    from kbprobe.format.items import arrow_schema

    digest, sums = hashlib.sha256(), [0, 0]
    tables = job.laid_out()
    first = next(tables)
    with parquet_file(job.path, first[0].schema, metadata=arrow_schema().metadata) as append:
        for table, *more in chain([first], tables):
            sums = [one + other for one, other in zip(sums, more, strict=True)]
            _feed(digest, table)
            append(table)
    return job.shard(digest, *sums)


def _write_jsonl(job: _Job) -> Shard:
    from kbprobe.format.items import plain

    digest, sums = hashlib.sha256(), [0, 0]
    with job.path.open("w", encoding="utf-8", newline="\n") as file:
        for table, *more in job.laid_out():
            sums = [one + other for one, other in zip(sums, more, strict=True)]
            _feed(digest, table)
            for row in plain(table).to_pylist():
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return job.shard(digest, *sums)


def _feed(digest: Any, table: pa.Table) -> None:
    """Add rows' ids, questions, choices and answers to a hash, without decoding their texts."""
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
