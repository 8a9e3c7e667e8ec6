"""The labels file: what annotators said about each row, and which label their votes make.

JSON lines, one row of the probe per line, or the same columns as Parquet. Probes whose answers come
from people are built with it, and it accompanies a gold standard.

A line: ``id`` (of the row) · ``answer`` (index in the row's choices; -1: no label) · ``label`` (the
text of that choice, empty without one) · ``kept`` (whether the row is in the gold standard) ·
``reason`` (why not) · ``agreement`` (share of the votes for the label, or for the choice with most
votes) · ``rule`` · ``votes`` (a list of ``annotator``, ``answer``, ``label``; a vote for no choice
has -1 and, as its label, the mark: none, two or nonsense).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kbprobe.errors import UsageError
from kbprobe.files import replacing_file
from kbprobe.format.parquet import write_parquet
from kbprobe.parsing import MAX_JSON_BYTES, json_value, read_bytes
from kbprobe.targets import unwritable

SUFFIXES = (".jsonl", ".parquet")


def check_suffix(path: Path) -> None:
    """Raise a UsageError if the name of a labels file does not end in .jsonl or .parquet."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: the name of a labels file ends in {' or '.join(SUFFIXES)}.")


def write_labels(
    path: Path, labels: Sequence[Mapping[str, Any]], remedy: str = "Choose another file with -o."
) -> None:
    """Write a labels file, whole or not at all.

    Args:
        path: of the file.
        labels: its lines.
        remedy: what to do where it cannot be written.

    Raises:
        UsageError: its name does not end in .jsonl or .parquet.
        KbprobeError: it cannot be written.
    """
    check_suffix(path)
    try:
        with replacing_file(path) as aside:
            if path.suffix == ".parquet":
                import pyarrow as pa

                write_parquet(pa.Table.from_pylist(list(labels), _schema()), aside)
            else:
                lines = (json.dumps(label, ensure_ascii=False) + "\n" for label in labels)
                aside.write_text("".join(lines), encoding="utf-8", newline="\n")
    except OSError as error:
        raise unwritable(path, error, remedy) from error


def read_labels(path: Path) -> list[dict[str, Any]]:
    """Read a labels file; each line needs ``id`` and ``answer``, the rest may be missing.

    Raises:
        UsageError: there is no such file, or it is not a labels file; the message names the row.
    """
    labels = []
    for place, row in read_lines(path):
        if not isinstance(row.get("id"), str) or type(row.get("answer")) is not int:
            raise UsageError(f"{place}: a label has an id (text) and an answer (int).")
        labels.append(dict(row))
    return labels


def read_lines(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each line of a file of labels or votes (.jsonl, .parquet or .csv), with its place.

    Rows are counted from 1 (a table's header is row 1).

    Raises:
        UsageError: there is no such file, or it cannot be read; the message names the row.
    """
    try:
        content = read_bytes(path, MAX_JSON_BYTES)
        if path.suffix == ".parquet":
            for number, row in enumerate(_parquet_rows(content, path), 1):
                yield f"{path}, row {number}", row
            return
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"there is no labels file {path}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start:,})") from None
    if path.suffix == ".csv":
        # Not splitlines: it also ends lines at characters that may occur within cells.
        reader = csv.DictReader(io.StringIO(text, newline=""))
        try:
            for row in reader:
                yield f"{path}, row {reader.line_num}", row
        except csv.Error as error:
            raise UsageError(f"{path}, row {reader.line_num}: not CSV ({error})") from None
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            row = json_value(line, f"{path}, row {number}:")
            if not isinstance(row, dict):
                raise UsageError(f"{path}, row {number}: not an object")
            yield f"{path}, row {number}", row


def _parquet_rows(content: bytes, path: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Not read_table: it would take the name of a folder above for a column.
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        rows: list[dict[str, Any]] = file.read().to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: text is not UTF-8
        raise UsageError(f"{path} cannot be read as Parquet: {error}") from None
    return rows


def _schema() -> Any:
    import pyarrow as pa

    vote = pa.struct([("annotator", pa.string()), ("answer", pa.int32()), ("label", pa.string())])
    text, number = pa.string(), pa.int32()
    return pa.schema({
        "id": text, "answer": number, "label": text, "kept": pa.bool_(), "reason": text,
        "agreement": pa.float64(), "rule": text, "votes": pa.list_(vote),
    })  # fmt: skip
