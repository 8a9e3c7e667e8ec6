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
from typing import TYPE_CHECKING, Any

from kbprobe.errors import UsageError
from kbprobe.format.dataset import files_of
from kbprobe.format.labels import read_labels
from kbprobe.format.manifest import read_manifest
from kbprobe.rng import RandomGenerator
from release.annotation.answers import Scheme, scheme_of
from release.annotation.key import Key, Kind, Shown
from release.annotation.options import SheetOptions
from release.rows import read_rows, rows_by_id, split_entry

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Sheets:
    """The plan of an export: the key, the rows shown by id, and a labelled one as an example."""

    key: Key
    manifest: Mapping[str, Any]
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
    per_sheet, repeats = _extras(options)
    manifest = read_manifest(folder)
    entry = split_entry(manifest, options.config, options.split)
    table = read_rows(folder, entry)
    scheme = scheme_of(table, f"{folder}, split {options.split}")
    drawn = _sample(table, options, f"{folder}, split {options.split}")
    chunks = _cut(drawn, max(1, options.batch - per_sheet - repeats))
    others = [other for other in files_of(manifest, options.config) if other is not entry]
    pool = _check_rows(folder, [*others, entry], options, set(drawn), per_sheet, len(chunks))
    rows = rows_by_id(table, drawn)
    rows |= {row["id"]: row for row, _, _ in pool}
    items: list[Shown] = []
    make = _Maker(manifest["probe"], options, scheme, rows, _fixed_answers(rows.values()))
    for number, ids in enumerate(chunks, 1):
        checks = [pool[(number * per_sheet + at) % len(pool)] for at in range(per_sheet)]
        items += make.sheet(number, ids, checks, repeats)
    of = (manifest["probe"], options.config, options.split, entry["rows_sha256"])
    key = Key(*of, seed=options.seed, scheme=scheme, items=tuple(items))
    return Sheets(key, manifest, rows, _example(folder, others, table, rows))


def _draw(seed: int, *words: object) -> int:
    return RandomGenerator.of(seed, *map(str, words)).key


def _extras(options: SheetOptions) -> tuple[int, int]:
    """Return how many checks and repeats each sheet has."""
    checks, repeats = (
        max(1, round(options.batch * share)) if share else 0
        for share in (options.gold_checks, options.repeats)
    )
    if checks + 2 * repeats >= options.batch:
        raise UsageError(
            f"--batch {options.batch} leaves no room for items: {checks} checks and {repeats} "
            "repeats. Raise it, or lower --gold-checks or --repeats."
        )
    return checks, repeats


def _sample(table: pa.Table, options: SheetOptions, source: str) -> list[str]:
    """Sample ids; of several strata, the first of each stratum before the second of any."""
    ids: list[str] = table["id"].to_pylist()
    wanted = options.n or len(ids)
    if wanted > len(ids):
        raise UsageError(f"{source} has {len(ids):,} rows, fewer than --n {wanted}. 0 takes all.")
    order = sorted(ids, key=lambda row: _draw(options.seed, "sample", row))
    if options.stratify:
        values = zip(*(table[name].to_pylist() for name in options.stratify), strict=True)
        stratum = dict(zip(ids, values, strict=True))
        seen: defaultdict[Any, Iterator[int]] = defaultdict(count)
        turn = {row: next(seen[stratum[row]]) for row in order}
        order.sort(key=turn.__getitem__)
    chosen = set(order[:wanted])
    # Shuffled once more, so that strata do not follow each other from sheet to sheet.
    return sorted(chosen, key=lambda row: _draw(options.seed, "place", row))


def _cut(ids: Sequence[str], most: int) -> list[list[str]]:
    """Cut into sheets of nearly equal length, at most ``most`` long."""
    sheets = -(-len(ids) // most)
    ends = [len(ids) * number // sheets for number in range(sheets + 1)]
    return [list(ids[start:end]) for start, end in pairwise(ends)]


def _check_rows(
    folder: Path,
    entries: Sequence[Mapping[str, Any]],
    options: SheetOptions,
    taken: set[str],
    each: int,
    sheets: int,
) -> list[tuple[dict[str, Any], str, int]]:
    """Find rows whose answer is known: (row, split, answer), as many as the sheets need."""
    if not each:
        return []
    known = None
    if options.checks:
        known = {label["id"]: label["answer"] for label in read_labels(options.checks)}
    found, tables = [], {}
    # Without a labels file the last entry, the split that is annotated, is left out.
    for entry in entries if known is not None else entries[:-1]:
        split = entry["split"]
        table = tables[split] = read_rows(folder, entry)
        columns = (table[name].to_pylist() for name in ("id", "answer", "distractor_hops", "hops"))
        for row, answer, distance, hops in zip(*columns, strict=True):
            right = answer if known is None else known.get(row, -1)
            if right >= 0 and row not in taken:
                hardness = (distance, hops) if known is None else (0, 0)
                drawn = _draw(options.seed, "check", row)
                found.append((hardness, drawn, row, split, right))
    if len(found) < each:
        raise UsageError(
            f"--gold-checks {options.gold_checks} needs {each} rows a sheet whose answer is known; "
            f"there are {len(found)}. Name some with --checks FILE, a labels file as annotate "
            "import writes it, or leave --gold-checks out."
        )
    chosen = [one[2:] for one in sorted(found)[: each * sheets]]
    rows: dict[str, dict[str, Any]] = {}
    for name, table in tables.items():
        rows |= rows_by_id(table, [row for row, split, _ in chosen if split == name])
    return [(rows[row], split, right) for row, split, right in chosen]


@dataclass(frozen=True)
class _Maker:
    """Makes the items of sheets: ids, order in the sheet, and order of the choices."""

    probe: str
    options: SheetOptions
    scheme: Scheme
    rows: Mapping[str, dict[str, Any]]
    answers: tuple[str, ...]

    def sheet(
        self,
        batch: int,
        ids: Sequence[str],
        checks: Sequence[tuple[dict[str, Any], str, int]],
        repeats: int,
    ) -> list[Shown]:
        """Order a sheet: checks anywhere, repeats half a sheet after the items they repeat."""
        seed, split = self.options.seed, self.options.split
        placed = [
            (at / len(ids), self.item(row, split, batch, "item")) for at, row in enumerate(ids)
        ]
        # Only items of the first half of the sheet are repeated.
        for place, item in placed[: min(repeats, len(ids) // 2)]:
            placed.append((place + 0.5, self.item(item.id, split, batch, "repeat")))
        for row, home, answer in checks:
            position = _draw(seed, "check place", batch, row["id"]) / 2**64
            placed.append((position, self.item(row["id"], home, batch, "check", answer)))
        placed.sort(key=lambda pair: (pair[0], pair[1].item_id))
        return [item for _, item in placed]

    def item(self, row: str, split: str, batch: int, kind: Kind, answer: int = -1) -> Shown:
        """Make an item. Its id starts with a letter: spreadsheets read ``12e4`` as a number."""
        number = _draw(self.options.seed, self.probe, self.options.config, row, batch, kind)
        item_id = f"q{number & (1 << 48) - 1:012x}"
        order = list(range(len(self.rows[row]["choices"]["text"])))
        if self.options.shuffle == "auto" and self.answers:
            texts = self.rows[row]["choices"]["text"]
            order.sort(key=lambda at: self.answers.index(texts[at]))
        elif self.options.shuffle != "never" and self.scheme == "choices":
            order.sort(key=lambda at: _draw(self.options.seed, "choice", item_id, at))
        return Shown(item_id, row, split, batch, kind, tuple(order), answer)


def _fixed_answers(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the answers that all rows choose among, in one order; empty if rows differ.

    People who choose among the same few words are slowed down when the order changes.
    """
    orders = {tuple(row["choices"]["text"]) for row in rows}
    return min(orders) if len({frozenset(order) for order in orders}) == 1 else ()


def _example(
    folder: Path,
    others: Sequence[Mapping[str, Any]],
    table: pa.Table,
    shown: Mapping[str, dict[str, Any]],
) -> dict[str, Any] | None:
    """Find the easiest labelled row that is not among the items."""
    for rows in (*(read_rows(folder, entry) for entry in others), table):
        columns = (rows[name].to_pylist() for name in ("distractor_hops", "hops", "id", "answer"))
        found = [
            (distance, hops, row, at)
            for at, (distance, hops, row, answer) in enumerate(zip(*columns, strict=True))
            if answer >= 0 and row not in shown
        ]
        if found:
            row: dict[str, Any] = rows.slice(min(found)[-1], 1).to_pylist()[0]
            return row
    return None
