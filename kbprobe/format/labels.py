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
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kbprobe.errors import UsageError
from kbprobe.files import replacing_file

SUFFIXES = (".jsonl", ".parquet")


def check_suffix(path: Path) -> None:
    """Raise a UsageError if the name of a labels file does not end in .jsonl or .parquet."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: the name of a labels file ends in {' or '.join(SUFFIXES)}.")


def write_labels(path: Path, labels: Sequence[Mapping[str, Any]]) -> None:
    """Write a labels file, whole or not at all.

    Raises:
        UsageError: its name does not end in .jsonl or .parquet.
        OSError: it cannot be written.
    """
    check_suffix(path)
    with replacing_file(path) as aside:
        if path.suffix == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.Table.from_pylist(list(labels), _schema()), aside)
        else:
            lines = (json.dumps(label, ensure_ascii=False) + "\n" for label in labels)
            aside.write_text("".join(lines), encoding="utf-8", newline="\n")


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
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            rows = pq.read_table(path).to_pylist()
            yield from ((f"{path}, row {number}", row) for number, row in enumerate(rows, 1))
            return
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"there is no labels file {path}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if path.suffix == ".csv":
        reader = csv.DictReader(text.splitlines(keepends=True))
        for row in reader:
            yield f"{path}, row {reader.line_num}", row
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError as error:
                raise UsageError(f"{path}, row {number}: not JSON ({error})") from None
            if not isinstance(row, dict):
                raise UsageError(f"{path}, row {number}: not an object")
            yield f"{path}, row {number}", row


def _schema() -> Any:
    import pyarrow as pa

    vote = pa.struct([("annotator", pa.string()), ("answer", pa.int32()), ("label", pa.string())])
    text, number = pa.string(), pa.int32()
    return pa.schema({
        "id": text, "answer": number, "label": text, "kept": pa.bool_(), "reason": text,
        "agreement": pa.float64(), "rule": text, "votes": pa.list_(vote),
    })  # fmt: skip
