"""Sheets for people: the private key of their items, their folder, and the reading sheets.

Annotators see an item's id, its question and its choices, nothing else. Only the key says which row
that is, whether the item is a check, and what the right answer of a check is. A build writes
reading sheets, ``release-probe annotate export`` sheets of its own, and ``release-probe annotate``
reads both; neither layer imports the other, so what they share is here.

Layout: ``OUT/sheets/`` is for those who fill them in (``reading.csv``, and ``reading.html`` to read
or print); ``OUT/key.json`` and the record, :data:`RECORD`, are not, and only their owner may read
them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, with_config

from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError
from kbprobe.files import file_sha256, listed
from kbprobe.files.targets import OTHER_FOLDER, write_recorded
from kbprobe.format.dataset import read_rows, rows_by_id
from kbprobe.format.items import LABELS
from kbprobe.format.labels import SCALE, Scheme, marks_of, scheme_of
from kbprobe.format.manifest import Manifest, SplitFiles, read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG, MASK, NLI
from kbprobe.parsing import read_json, read_record, validated
from kbprobe.rng import RandomGenerator
from kbprobe.tables import csv_text

KEY = "key.json"
KEY_FORMAT = 1

Kind = Literal["item", "repeat", "check"]
_KNOWN_FIELDS = ConfigDict(extra="forbid")


@with_config(_KNOWN_FIELDS)
@dataclass(frozen=True)
class Shown:
    """One item of a sheet.

    Attributes:
        item_id: its id in the sheet.
        id: the probe's row.
        split: the split of that row.
        batch: number of the sheet, from 1.
        kind: ``item`` (annotated), ``repeat`` (an item again, to measure whether its annotator is
            consistent) or ``check`` (its answer is known).
        order: for each choice shown, its index in the row.
        answer: index in the row of a check's answer; -1 for the others.
    """

    item_id: str
    id: str
    split: str
    batch: int
    kind: Kind
    order: tuple[int, ...]
    answer: int = -1

    def __post_init__(self) -> None:
        """Check that ``order`` names each choice once, and ``answer`` a check's right one."""
        if sorted(self.order) != list(range(len(self.order))):
            raise ValueError(f"'order' must name each choice once, from 0; got {self.order}")
        if not -1 <= self.answer < len(self.order):
            raise ValueError(f"'answer' must be a choice, or -1; got {self.answer}")
        if (self.kind == "check") != (self.answer >= 0):
            raise ValueError(
                f"'answer' is that of a check, and -1 for others; got {self.answer} for {self.kind}"
            )


@with_config(_KNOWN_FIELDS)
@dataclass(frozen=True)
class Key:
    """All items of an export, in the order shown, and the build that they come from.

    Attributes:
        rows_sha256: the digest of the split's rows, from the probe's manifest: a key fits one
            build.
    """

    probe: str
    config: str
    split: str
    rows_sha256: str
    seed: int
    scheme: Scheme
    items: tuple[Shown, ...]

    def text(self) -> str:
        """Return the content of the key's file: one line per item."""
        about = {"format": KEY_FORMAT, **asdict(self)}
        items = about.pop("items")
        head = json.dumps(about, indent=1, ensure_ascii=False)[:-2]
        lines = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in items)
        return f'{head},\n "items": [\n  {lines}\n ]\n}}\n'

    def write(self, path: Path) -> None:
        """Write the key: the same bytes for the same key."""
        path.write_text(self.text(), encoding="utf-8", newline="\n")

    def check_fits(self, manifest: Manifest, entry: SplitFiles, path: Path) -> None:
        """Raise a UsageError if the key is for another probe or for other rows."""
        if self.probe != manifest.probe:
            raise UsageError(f"{path} is the key of {self.probe}, not of {manifest.probe}.")
        if self.rows_sha256 != entry.rows_digest:
            raise UsageError(
                f"{path} was made from another build of {self.probe}: its rows of {self.split} "
                "are not those in this folder. Name the folder that was exported."
            )

    def check_rows(self, rows: Mapping[str, Mapping[str, Any]], folder: Path, path: Path) -> None:
        """Raise a UsageError if the key shows rows that the probe lacks or that differ.

        ``rows`` are those of the probe in ``folder``, by id.
        """
        for item in self.items:
            row = rows.get(item.id)
            if row is None:
                raise UsageError(
                    f"{path} shows rows that {folder} does not have, such as {item.id}."
                )
            if len(item.order) != len(row["choices"]["text"]):
                raise UsageError(
                    f"{path} shows {len(item.order)} choices of the row {item.id}, which has "
                    f"{len(row['choices']['text'])}. Export the sheets again."
                )


def read_key(path: Path) -> Key:
    """Read a key.

    Raises:
        UsageError: there is none, or it is damaged.
    """
    remedy = "Export the sheets again."
    try:
        about = read_json(path, remedy)
    except FileNotFoundError:
        raise UsageError(
            f"There is no key {path}. It is the {KEY} that annotate export wrote beside the sheets."
        ) from None
    if not isinstance(about, dict) or about.pop("format", None) != KEY_FORMAT:
        raise UsageError(
            f"{path} is not a key: annotate export did not write it, or another version did. "
            f"{remedy}"
        )
    return validated(about, TypeAdapter(Key), str(path), remedy)


RECORD = "sheets.json"
"""The record of what the sheets were made from, with the checksums of their files."""


class _SheetRecord(BaseModel):
    files: dict[str, str]


def write_sheet_folder(
    output: Path,
    request: Mapping[str, Any],
    write: Callable[[Path], None],
    *,
    kind: str,
    overwrite: bool,
    remedy: str = OTHER_FOLDER,
) -> tuple[list[Path], bool]:
    """Write sheets into a folder atomically, unless they are already there.

    ``write`` writes the sheets, and the key if there is one, into an empty folder. Other arguments
    are those of :func:`kbprobe.files.targets.write_recorded`.

    Returns:
        The files, relative to ``output``, and whether they were there already.

    Raises:
        UsageError: the folder holds something else, or sheets that were filled in or edited.
        OSError: it cannot be written.
    """
    found = write_recorded(
        output,
        RECORD,
        request,
        write,
        kind=kind,
        overwrite=overwrite,
        remedy=remedy,
        before=lambda: _refuse_edited(output, remedy),
        private=(KEY, RECORD),
    )
    names = read_record(output / RECORD, _SheetRecord).files
    return sorted(map(Path, [*names, RECORD])), found


def _refuse_edited(output: Path, remedy: str) -> None:
    """Refuse a folder whose sheets have changed since they were written: people edited them."""
    try:
        files = read_record(output / RECORD, _SheetRecord).files
    except (FileNotFoundError, UsageError):
        return  # `already_there` says what is wrong.
    edited = [
        name
        for name, sha256 in files.items()
        if (output / name).is_file() and file_sha256(output / name) != sha256
    ]
    if edited:
        raise UsageError(
            f"{output} holds sheets that were filled in or edited, and are never replaced: "
            f"{listed(edited)}. Move them elsewhere. Or {remedy[:1].lower()}{remedy[1:]}"
        )


SHEETS = "sheets"
CSV, PAGE = "reading.csv", "reading.html"
SPLIT = "test"
GAP = "_____"
"""What readers see in place of the mask of a cloze question."""

NATURALNESS: Mapping[int, str] = {
    5: "good English, as an editor would pass it",
    4: "a small slip",
    3: "understandable, but nobody would write it so",
    2: "hard to understand",
    1: "not English",
}
"""The scale on which readers rate the wording of a row."""


def texts_shown(row: Mapping[str, Any]) -> dict[str, str]:
    """Return a row's texts as people see them: a gap for the mask, dots where a text breaks off."""
    if row["setup"] == NLI:
        return {"premise": row["premise"], "hypothesis": row["hypothesis"]}
    text = str(row["question"]).replace(MASK, GAP).strip()
    ends = text[-1:]
    return {"question": f"{text} …" if ends.isalnum() or ends in "\"”')" else text}


def write_reading(
    folder: Path,
    output: Path,
    n: int,
    *,
    blind: bool,
    seed: int = 0,
    overwrite: bool = False,
) -> list[Path]:
    """Write a reading sheet of some random rows of a probe's test split.

    Args:
        folder: the built probe; its rows have answers.
        output: folder to write.
        n: the number of rows.
        blind: omit the answers, and write a key next to the sheets; otherwise answers are shown,
            and nothing can be scored.
        seed: draws the rows.
        overwrite: replace another reading sheet in the folder, unless it was filled in.

    Returns:
        The files, relative to ``output``. The same probe, options and seed give the same bytes.

    Raises:
        UsageError: there is no test split, or it has too few rows, or none has an answer; or
            ``output`` holds something else, or a sheet that was filled in.
        KbprobeError: a data file is damaged.
        OSError: the output cannot be written.
    """
    manifest = read_manifest(folder)
    entry = manifest.files_of_split(DEFAULT_CONFIG, SPLIT)
    table = read_rows(folder, entry)
    source = f"{folder}, split {SPLIT}"
    scheme = scheme_of(table, source)
    columns = (table[name].to_pylist() for name in ("id", "answer"))
    ids = [row for row, answer in zip(*columns, strict=True) if answer >= 0]
    if n > len(ids):
        raise UsageError(f"{source} has {len(ids):,} rows with an answer, fewer than --sample {n}.")

    def draw(*words: str) -> int:
        return RandomGenerator.of(seed, manifest.probe, *words).key

    drawn = sorted(ids, key=lambda row: draw("reading", row))[:n]
    rows = rows_by_id(table, drawn)
    items = []
    for row in drawn:
        order = range(len(rows[row]["choices"]["text"]))
        item_id = f"r{draw('reading item', row) & (1 << 48) - 1:012x}"
        items.append(Shown(item_id, row, SPLIT, 1, "item", tuple(order)))
    key = Key(
        manifest.probe,
        DEFAULT_CONFIG,
        SPLIT,
        entry.rows_digest,
        seed,
        scheme,
        tuple(items),
    )
    shown = [rows[item.id] for item in items]

    def write(new: Path) -> None:
        (new / SHEETS).mkdir()
        text = _csv(items, shown, scheme == "scale", blind)
        (new / SHEETS / CSV).write_bytes(text.encode())
        page = _page(manifest, items, shown, scheme == "scale", blind)
        (new / SHEETS / PAGE).write_bytes(page.encode())
        if blind:
            key.write(new / KEY)

    request = {
        "rows": entry.rows_digest,
        "seed": seed,
        "n": n,
        "blind": blind,
        "kbprobe_version": kbprobe_version(),
    }
    files, _ = write_sheet_folder(
        output,
        request,
        write,
        kind="a reading sheet",
        overwrite=overwrite,
        remedy="Choose another folder with --sheet.",
    )
    return files


def _right(row: Mapping[str, Any], scale: bool) -> str:
    return str(row["choices"]["text"][row["answer"]] if scale else row["answerKey"])


def _csv(
    items: Sequence[Shown], rows: Sequence[Mapping[str, Any]], scale: bool, blind: bool
) -> str:
    """Return the sheet as CSV: everything quoted, with line endings as in RFC 4180."""
    width = 0 if scale else max(len(row["choices"]["text"]) for row in rows)
    head = ["number", "item_id", *texts_shown(rows[0]), *LABELS[:width]]
    empty = ["answer", "natural", "annotator", "comment"]
    lines: list[list[Any]] = [[*head, *empty] if blind else [*head, "key", *empty[1:]]]
    for number, (item, row) in enumerate(zip(items, rows, strict=True), 1):
        choices = row["choices"]["text"][:width]
        cells = [*texts_shown(row).values(), *choices, *[""] * (width - len(choices))]
        right = "" if blind else _right(row, scale)
        lines.append([number, item.item_id, *cells, right, "", "", ""])
    return csv_text(lines, quoting=csv.QUOTE_ALL)


def _page(
    manifest: Manifest,
    items: Sequence[Shown],
    rows: Sequence[Mapping[str, Any]],
    scale: bool,
    blind: bool,
) -> str:
    """Return the HTML page: instructions, then all rows."""
    from jinja2 import Environment, StrictUndefined

    shown = []
    for item, row in zip(items, rows, strict=True):
        texts = row["choices"]["text"]
        choices = [] if scale else list(zip(LABELS[: len(texts)], texts, strict=True))
        right = "" if blind else _right(row, scale)
        shown.append((item.item_id, list(texts_shown(row).values()), choices, right))
    template = Path(__file__).with_name("reading.html.j2").read_text(encoding="utf-8")
    environment = Environment(undefined=StrictUndefined, autoescape=True, trim_blocks=True)
    return environment.from_string(template).render(
        probe=manifest.probe,
        rows=shown,
        scale=SCALE if scale else {},
        marks=marks_of(rows[0]["setup"]),
        naturalness=NATURALNESS,
        blind=blind,
    )
