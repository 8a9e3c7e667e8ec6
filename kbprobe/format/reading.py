"""Reading sheets: a sample of a built probe for people to read, and the key that scores it.

A sheet shows rows without anything that tells their answers. ``release-probe annotate score`` reads
filled-in sheets. Both layers know the sheet, neither imports the other: what they share is here.

Layout: ``OUT/sheets/`` is for readers (``reading.csv`` to fill in, ``reading.html`` to read or
print); ``OUT/key.json`` is not.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError
from kbprobe.format.answers import SCALE, marks_of, scheme_of
from kbprobe.format.items import LABELS
from kbprobe.format.manifest import Manifest, read_manifest
from kbprobe.format.rows import read_rows, rows_by_id
from kbprobe.format.setups import DEFAULT_CONFIG, MASK, NLI
from kbprobe.format.sheet_key import KEY, Key, Shown, write_sheet_folder
from kbprobe.rng import RandomGenerator
from kbprobe.tables import csv_text

SHEETS = "sheets"
CSV, PAGE = "reading.csv", "reading.html"
SPLIT = "test"
GAP = "_____"
"""What readers see for the mask of a cloze question."""

NATURALNESS: Mapping[int, str] = {
    5: "good English, as an editor would pass it",
    4: "a small slip",
    3: "understandable, but nobody would write it so",
    2: "hard to understand",
    1: "not English",
}
"""The scale on which readers rate the wording of a row."""


def texts_shown(row: Mapping[str, Any]) -> dict[str, str]:
    """Return what people read of a row: a gap for the mask, dots where a text breaks off."""
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
        n: how many rows.
        blind: without answers, and with a key beside the sheets; otherwise answers are shown, and
            nothing can be scored.
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
        f"writing a reading sheet of {manifest.probe}",
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
    """Return the sheet: everything quoted, lines ended as in RFC 4180."""
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
    """Return the page: how to answer, then all rows."""
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
