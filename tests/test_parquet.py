"""Parquet files: the same bytes again, pages by content, row groups that viewers can show."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbprobe.format import parquet
from kbprobe.format.parquet import parquet_file, rows_per_group, write_parquet


def rows(count: int, start: str = "") -> pa.Table:
    """Rows whose texts begin with ``start``."""
    texts = [f"{start}text {at} {hash_of(at)}" for at in range(count)]
    return pa.table({"id": texts, "kind": ["one", "other"] * (count // 2), "n": range(count)})


def hash_of(number: int) -> str:
    """Text that does not compress."""
    return f"{pow(number + 3, 97, (1 << 127) - 1):032x}"


def test_equal_tables_give_equal_bytes_in_their_order(tmp_path: Path) -> None:
    table = rows(1000)
    for name in ("one", "two"):
        write_parquet(table, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert pq.read_table(tmp_path / "one").equals(table)


def test_pages_are_indexed_and_most_stay_when_a_row_is_added(tmp_path: Path) -> None:
    table, columns = rows(60_000), []
    for name, some in (("one", table), ("two", pa.concat_tables([rows(2, "new "), table]))):
        write_parquet(some, tmp_path / name)
        column = pq.ParquetFile(tmp_path / name).metadata.row_group(0).column(0)
        assert column.has_offset_index
        end = column.data_page_offset + column.total_compressed_size
        columns.append((tmp_path / name).read_bytes()[column.data_page_offset : end])
    one, two = columns
    assert one[:1000] != two[:1000]
    # Pages end where they did.
    assert len(one) > 1_000_000
    assert one[-500_000:] == two[-500_000:]


def test_row_groups_are_bounded_by_rows_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 300)
    table = rows(1000)
    write_parquet(table, tmp_path / "rows")
    file = pq.ParquetFile(tmp_path / "rows")
    assert [file.metadata.row_group(at).num_rows for at in range(4)] == [300, 300, 300, 100]
    monkeypatch.setattr(parquet, "GROUP_BYTES", 10_000)
    write_parquet(table, tmp_path / "bytes")
    file = pq.ParquetFile(tmp_path / "bytes")
    groups = [file.metadata.row_group(at) for at in range(file.num_row_groups)]
    assert sum(group.num_rows for group in groups) == 1000
    assert len(groups) > 4
    assert max(group.total_byte_size for group in groups) < 12_000


def test_a_large_dictionary_makes_no_more_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_BYTES", 10_000)
    column = pa.array(["x" * 20_000, "y"] * 50).dictionary_encode()
    lists = pa.ListArray.from_arrays(pa.array(range(0, 101, 2), pa.int32()), column)
    nested = pa.StructArray.from_arrays([lists], ["text"])
    assert rows_per_group(pa.table({"text": column})) == 2_500
    assert rows_per_group(pa.table({"choices": nested})) > 50
    assert rows_per_group(pa.table({"text": pa.array(["x" * 20_000])})) == 1


def test_tables_are_appended_and_readers_see_strings(tmp_path: Path) -> None:
    schema = pa.schema([("kind", pa.dictionary(pa.int32(), pa.string()))])
    table = pa.table({"kind": pa.array(["a", "b", "a"]).dictionary_encode()}, schema=schema)
    with parquet_file(tmp_path / "file", schema, metadata={b"about": b"two tables"}) as append:
        append(table)
        append(table)
    file = pq.ParquetFile(tmp_path / "file")
    assert file.num_row_groups == 2
    assert file.schema_arrow.field("kind").type == pa.string()
    assert file.read()["kind"].to_pylist() == ["a", "b", "a"] * 2
    assert file.metadata.metadata[b"about"] == b"two tables"
