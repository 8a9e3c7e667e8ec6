"""Planning an export: rows to annotate, their sheets, checks, and the order of their choices.

All draws are hashes of the seed and of what is drawn (a row's id, an item's choice), so that the
plan depends on neither the order of the rows nor the version of any library.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from kbprobe.errors import UsageError
from kbprobe.format.dataset import read_rows, rows_by_id
from kbprobe.format.labels import read_labels, scheme_of
from kbprobe.format.manifest import Manifest, read_manifest
from kbprobe.format.sheets import Key, Kind, Shown
from kbprobe.rng import RandomGenerator
from release.annotation.options import SheetOptions

_HARDNESS = ("distractor_hops", "hops")
"""Columns that indicate how hard a row is; lower values are easier."""


@dataclass(frozen=True)
class Sheets:
    """The plan of an export: the key, the rows shown by id, and a labelled one as an example."""

    key: Key
    manifest: Manifest
    rows: Mapping[str, dict[str, Any]]
    example: dict[str, Any] | None

    @property
    def batches(self) -> dict[int, list[Shown]]:
        """The items of each sheet, in order."""
        found: dict[int, list[Shown]] = {}
        for item in self.key.items:
            found.setdefault(item.batch, []).append(item)
        return found


def plan_sheets(folder: Path, options: SheetOptions) -> Sheets:
    """Plan an export of a built probe, whose rows may be unlabelled.

    Raises:
        UsageError: no such split or config, fewer rows than asked for, or no rows for checks.
        KbprobeError: a data file is damaged.
    """
    checks, repeats = (
        max(1, round(options.batch * share)) if share else 0
        for share in (options.gold_checks, options.repeats)
    )
    if checks + 2 * repeats >= options.batch:
        raise UsageError(
            f"--batch {options.batch} leaves no room for items: {checks} checks and {repeats} "
            "repeats. Raise it, or lower --gold-checks or --repeats."
        )
    return _Planner(folder, options).plan(checks, repeats)


class _Planner:
    """Draws rows and makes the items of sheets: ids, order in the sheet, order of the choices."""

    def __init__(self, folder: Path, options: SheetOptions) -> None:
        self.folder, self.options = folder, options
        self.manifest = read_manifest(folder)
        self.entry = self.manifest.files_of_split(options.config, options.split)
        files = self.manifest.split_files(options.config).values()
        annotation = self.manifest.annotation
        known = annotation is None or annotation.annotator_kind in (None, "human")
        self.others = [other for other in files if known and other.split != options.split]
        self.table = read_rows(folder, self.entry)
        self.source = f"{folder}, split {options.split}"
        self.scheme = scheme_of(self.table, self.source)
        self.rows: dict[str, dict[str, Any]] = {}
        self.answers: tuple[str, ...] = ()

    def plan(self, checks: int, repeats: int) -> Sheets:
        """Plan sheets with this many checks and repeats each."""
        drawn = self.sample()
        chunks = _cut(drawn, max(1, self.options.batch - checks - repeats))
        self.rows = rows_by_id(self.table, drawn)
        pool = self.check_rows(checks, checks * len(chunks)) if checks else []
        self.answers = _fixed_answers(self.rows.values())
        items: list[Shown] = []
        for number, ids in enumerate(chunks, 1):
            own = [pool[(number * checks + at) % len(pool)] for at in range(checks)]
            items += self.sheet(number, ids, own, repeats)
        key = Key(
            self.manifest.probe,
            self.options.config,
            self.options.split,
            self.entry.rows_digest,
            self.options.seed,
            self.scheme,
            tuple(items),
        )
        return Sheets(key, self.manifest, self.rows, self.example())

    def draw(self, *words: object) -> int:
        """Return 64 random bits for what is drawn."""
        return RandomGenerator.of(self.options.seed, *map(str, words)).key

    def sample(self) -> list[str]:
        """Sample ids; with several strata, take the first of each before the second of any."""
        ids: list[str] = self.table["id"].to_pylist()
        wanted = self.options.n or len(ids)
        if wanted > len(ids) and "n" in self.options.model_fields_set:
            raise UsageError(
                f"{self.source} has {len(ids):,} rows, fewer than --n {wanted}. 0 takes all."
            )
        order = sorted(ids, key=lambda row: self.draw("sample", row))
        if self.options.stratify:
            columns = (self.table[name].to_pylist() for name in self.options.stratify)
            stratum = dict(zip(ids, zip(*columns, strict=True), strict=True))
            seen: defaultdict[Any, Iterator[int]] = defaultdict(count)
            turn = {row: next(seen[stratum[row]]) for row in order}
            order.sort(key=turn.__getitem__)
        # Shuffled once more, so that strata do not follow each other from sheet to sheet.
        return sorted(set(order[:wanted]), key=lambda row: self.draw("place", row))

    def check_rows(self, each: int, wanted: int) -> list[tuple[str, str, int]]:
        """Find rows whose answer is known, ``each`` a sheet; return id, split and answer."""
        options, known = self.options, None
        if options.checks:
            known = {label["id"]: label["answer"] for label in read_labels(options.checks)}
        found, tables = [], {}
        # Without a labels file, the annotated split is left out.
        for entry in [*self.others, *([] if known is None else [self.entry])]:
            split = entry.split
            table = tables[split] = read_rows(self.folder, entry)
            columns = (table[name].to_pylist() for name in ("id", "answer", *_HARDNESS))
            for row, answer, *hardness in zip(*columns, strict=True):
                right = answer if known is None else known.get(row, -1)
                if right >= 0 and row not in self.rows:
                    first = hardness if known is None else []
                    found.append((first, self.draw("check", row), row, split, right))
        if len(found) < each:
            raise UsageError(
                f"--gold-checks {options.gold_checks} needs {each} rows a sheet whose answer is "
                f"known; there are {len(found)}. Name some with --checks FILE, a labels file as "
                "annotate import writes it, or leave --gold-checks out."
            )
        chosen = [(row, split, right) for _, _, row, split, right in sorted(found)[:wanted]]
        for name, table in tables.items():
            self.rows |= rows_by_id(table, [row for row, split, _ in chosen if split == name])
        return chosen

    def sheet(
        self, batch: int, ids: Sequence[str], checks: Sequence[tuple[str, str, int]], repeats: int
    ) -> list[Shown]:
        """Order a sheet: checks anywhere, repeats half a sheet after the items they repeat."""
        split = self.options.split
        placed = [
            (at / len(ids), self.item(row, split, batch, "item")) for at, row in enumerate(ids)
        ]
        # Only items of the first half of the sheet are repeated.
        for place, item in placed[: min(repeats, len(ids) // 2)]:
            placed.append((place + 0.5, self.item(item.id, split, batch, "repeat")))
        for row, home, answer in checks:
            position = self.draw("check place", batch, row) / 2**64
            placed.append((position, self.item(row, home, batch, "check", answer)))
        placed.sort(key=lambda pair: (pair[0], pair[1].item_id))
        return [item for _, item in placed]

    def item(self, row: str, split: str, batch: int, kind: Kind, answer: int = -1) -> Shown:
        """Make an item. Its id starts with a letter: spreadsheets read ``12e4`` as a number."""
        number = self.draw(self.manifest.probe, self.options.config, row, batch, kind)
        item_id = f"q{number & (1 << 48) - 1:012x}"
        texts = self.rows[row]["choices"]["text"]
        order = list(range(len(texts)))
        if self.answers:
            order.sort(key=lambda at: self.answers.index(texts[at]))
        elif self.scheme == "choices":
            order.sort(key=lambda at: self.draw("choice", item_id, at))
        return Shown(item_id, row, split, batch, kind, tuple(order), answer)

    def example(self) -> dict[str, Any] | None:
        """Find the easiest labelled row that is not among the items."""
        for rows in (*(read_rows(self.folder, entry) for entry in self.others), self.table):
            columns = (rows[name].to_pylist() for name in (*_HARDNESS, "id", "answer"))
            found = [
                (*hardness, row, at)
                for at, (*hardness, row, answer) in enumerate(zip(*columns, strict=True))
                if answer >= 0 and row not in self.rows
            ]
            if found:
                row: dict[str, Any] = rows.slice(min(found)[-1], 1).to_pylist()[0]
                return row
        return None


def _cut(ids: Sequence[str], most: int) -> list[list[str]]:
    """Cut into sheets of nearly equal length, at most ``most`` long."""
    sheets = -(-len(ids) // most)
    ends = [len(ids) * number // sheets for number in range(sheets + 1)]
    return [list(ids[start:end]) for start, end in pairwise(ends)]


def _fixed_answers(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the answers that all rows choose among, in one order; empty if rows differ.

    People who choose among the same few words are slowed down when the order changes.
    """
    orders = {tuple(row["choices"]["text"]) for row in rows}
    return min(orders) if len({frozenset(order) for order in orders}) == 1 else ()
