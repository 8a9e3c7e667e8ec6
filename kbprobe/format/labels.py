"""What annotators may answer, and the labels file: what they said, and the labels that it makes.

An answer is the letter of a choice, a point of a scale, or a mark.

The file is JSON lines, one row of the probe per line, or the same columns as Parquet. Probes whose
answers come from people are built with it, and it accompanies a gold standard.

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
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kbprobe.errors import UsageError
from kbprobe.files import replacing_file
from kbprobe.files.targets import unwritable
from kbprobe.format.items import LABELS
from kbprobe.format.parquet import write_parquet
from kbprobe.parsing import MAX_JSON_BYTES, json_value
from kbprobe.reading import read_bytes

if TYPE_CHECKING:
    import pyarrow as pa


Scheme = Literal["choices", "scale"]

MARKS: Mapping[str, str] = {
    "none": "none of the answers fits",
    "two": "two or more answers fit equally well",
    "nonsense": "the question or its answers make no sense",
}
"""What an annotator may write instead of an answer, and what it means."""

MARKS_OF: Mapping[str, Mapping[str, str]] = {
    "nli": {"nonsense": "one of the sentences, or the pair, makes no sense"},
    "acceptability": {"nonsense": "the text is cut off or garbled: it cannot be judged"},
}
"""Setups with different marks: those where exactly one answer fits."""

SCALE: Mapping[int, str] = {
    5: "the second sentence must be true",
    4: "the second sentence is probably true",
    3: "the second sentence may be true or false: it is impossible to tell",
    2: "the second sentence is probably false",
    1: "the second sentence must be false",
}
"""The scale on which pairs of sentences are judged (Kim et al., 2019)."""

SCALE_LABELS: Mapping[int, str] = {
    5: "entailment",
    4: "entailment",
    3: "neutral",
    2: "contradiction",
    1: "contradiction",
}
"""The label that each point of the scale stands for (Kim et al., 2019)."""

_LETTER = re.compile(r"\(?([a-z])(?:[.):].*)?", re.DOTALL)
"""``b``, ``B.``, ``(b)``, or a letter with the answer's text."""

_POINT = re.compile(r"([1-5])(?:\.0+)?(?:[.):].*)?", re.DOTALL)
"""``4``, ``4.0`` as spreadsheets may write it, or ``4. ...``."""

_MARK = re.compile(rf"({'|'.join(MARKS)})(?:[.:].*)?", re.DOTALL)


def marks_of(setup: str) -> Mapping[str, str]:
    """Return the marks for rows of a setup, and their meanings."""
    return MARKS_OF.get(setup, MARKS)


def parse_answer(
    text: str, order: Sequence[int], scheme: Scheme, row: Mapping[str, Any]
) -> tuple[int, str] | None:
    """Read an answer to a row whose choices were shown in some ``order``.

    Returns:
        The index in the row's choices (-1: a mark), and the mark or the point of the scale (else
        empty); None if it is not an answer.
    """
    text = text.strip().casefold()
    if match := _MARK.fullmatch(text):
        return (-1, match[1]) if match[1] in marks_of(row["setup"]) else None
    if scheme == "scale":
        if not (match := _POINT.fullmatch(text)):
            return None
        return row["choices"]["text"].index(SCALE_LABELS[int(match[1])]), match[1]
    if not (match := _LETTER.fullmatch(text)):
        return None
    place = ord(match[1]) - ord("a")
    return (order[place], "") if place < len(order) else None


def allowed_answers(width: int, scheme: Scheme, setup: str) -> tuple[str, ...]:
    """Return everything that may be answered to an item with that many choices."""
    answers = map(str, SCALE) if scheme == "scale" else LABELS[:width]
    return (*answers, *marks_of(setup))


def scheme_of(table: pa.Table, source: str) -> Scheme:
    """Return how rows are annotated: by choosing, or, for pairs of sentences, on a scale.

    Raises:
        UsageError: the rows are of several kinds, or pairs have labels that the scale does not
            cover.
    """
    import pyarrow.compute as pc

    setups = pc.unique(table["setup"]).to_pylist()
    if setups != ["nli"]:
        if "nli" in setups:
            raise UsageError(
                f"{source} mixes setups: {', '.join(setups)}. Annotate them separately."
            )
        return "choices"
    labels = set(pc.unique(pc.list_flatten(pc.struct_field(table["choices"], "text"))).to_pylist())
    if labels != set(SCALE_LABELS.values()):
        raise UsageError(
            f"{source}: pairs of sentences are annotated on a scale that stands for "
            f"{', '.join(dict.fromkeys(SCALE_LABELS.values()))}; these have "
            f"{', '.join(sorted(labels))}."
        )
    return "scale"


class LabelVote(NamedTuple):
    """A vote: its row, annotator, answer (-1: a mark), and the text as written."""

    id: str
    annotator: str
    answer: int
    label: str


@dataclass(frozen=True)
class LabelVerdict:
    """The outcome of the votes on a row: its answer (-1 if none), and why it is left out, if it is.

    ``agreement`` is the share of the votes for the answer, or for the one with the most votes.
    """

    id: str
    answer: int
    agreement: float | None
    reason: str = ""
    rule: str = "majority"
    votes: tuple[LabelVote, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether the row is in the labelled probe."""
        return not self.reason

    def left_out(self, reason: str) -> LabelVerdict:
        """Return the same verdict, but left out."""
        return replace(self, reason=reason)

    def line(self, names: Mapping[str, str], answers: Sequence[str]) -> dict[str, Any]:
        """Return the line of the labels file.

        ``names`` are those of the annotators in the file, ``answers`` the texts of the choices.
        """
        return {
            "id": self.id,
            "answer": self.answer,
            "label": answers[self.answer] if self.answer >= 0 else "",
            "kept": self.kept,
            "reason": self.reason,
            "agreement": None if self.agreement is None else round(self.agreement, 4),
            "rule": self.rule,
            "votes": [
                {"annotator": names[vote.annotator], "answer": vote.answer, "label": vote.label}
                for vote in sorted(self.votes, key=lambda vote: names[vote.annotator])
            ],
        }


SUFFIXES = (".jsonl", ".parquet")


def check_suffix(path: Path) -> None:
    """Raise a UsageError if the name of a labels file does not end in .jsonl or .parquet."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: the name of a labels file ends in {' or '.join(SUFFIXES)}.")


def write_labels(
    path: Path, labels: Sequence[Mapping[str, Any]], remedy: str = "Choose another file with -o."
) -> None:
    """Write a labels file atomically.

    Args:
        path: of the file.
        labels: its lines.
        remedy: what to do if it cannot be written.

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
        # Not read_table, which would take the name of a parent folder for a column.
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
