"""Checks of a built probe's rows: of each row, and across rows, splits and configs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbprobe.arrays import Ints
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.files import regular_path
from kbprobe.format.items import arrow_schema
from kbprobe.format.rows import UNLABELLED, CodedRows, problems
from kbprobe.format.setups import DEFAULT_CONFIG, SPLITS
from kbprobe.rng import RandomGenerator
from release.checks.findings import MAX_PLACES, Finding, failure, some

if TYPE_CHECKING:
    import pyarrow as pa

    from kbprobe.format.manifest import Counts, DataFile, Manifest

TEXTS = (
    "question", "premise", "hypothesis", "answerKey", "setup", "cluster", "concept",
    "schema_version",
)  # fmt: skip
READ = ("id", *TEXTS, "choices", "answer", "choice_families", "fact_ids")


class ConfigRows(CodedRows):
    """All rows of a config, splits one after another.

    Attributes:
        split: index into ``SPLITS``. Shape [rows].
        ids: their ids. Shape [rows].
    """

    def __init__(self, table: pa.Table, split: Ints) -> None:
        super().__init__(table)
        self.split, self.ids = split, table["id"]

    @cached_property
    def row_of_choice(self) -> Ints:
        """The row of each choice."""
        return self.row_of_entry("choices.text")


def read_config(folder: Path, entries: Sequence[DataFile], pool: Executor) -> ConfigRows:
    """Read all files of a config.

    Raises:
        OSError, pyarrow.ArrowException: a file cannot be read.
    """
    import pyarrow as pa

    order = sorted(entries, key=lambda entry: SPLITS.index(entry.split))
    tables = list(pool.map(_table, [folder / entry.path for entry in order]))
    splits = [SPLITS.index(entry.split) for entry in order]
    return ConfigRows(
        pa.concat_tables(tables), np.repeat(splits, [table.num_rows for table in tables])
    )


def _table(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = list(READ)
    if path.suffix != ".parquet":
        import pyarrow.json

        options = pa.json.ParseOptions(explicit_schema=arrow_schema())
        return pa.json.read_json(regular_path(path), parse_options=options).select(wanted)
    dictionaries = [*TEXTS, "choices.text.list.element", "choices.label.list.element"]
    dictionaries += ["choice_families.list.element", "fact_ids.list.element"]
    with pq.ParquetFile(regular_path(path), read_dictionary=dictionaries) as file:
        # Several row groups of nested dictionaries cannot be read at once.
        groups = [file.read_row_group(at, columns=wanted) for at in range(file.num_row_groups)]
        return pa.concat_tables(groups or [file.read(columns=wanted)])


FAULT = "The probe or its template has a fault: correct it and build again."
REMEDIES = {UNLABELLED: "Have people label them: release-probe annotate export DIR -o SHEETS"}
"""What to do about rows with a problem, if not to build again."""


def row_findings(folder: Path, manifest: Manifest, pool: Executor) -> Iterator[Finding]:
    """Check the rows of every config, the default first."""
    import pyarrow as pa

    default: ConfigRows | None = None
    known_facts: list[Any] = []
    for config, entries in sorted(
        manifest.configs.items(), key=lambda one: one[0] != DEFAULT_CONFIG
    ):
        try:
            rows = read_config(folder, entries, pool)
        except (pa.ArrowException, OSError, ValueError) as error:
            where = some(entry.path for entry in entries)
            yield failure("rows", f"{config} cannot be read: {error}", where)
            continue
        checker = _Checker(rows, config)
        before = list(checker.check(config in manifest.controls))
        yield from before
        if config == DEFAULT_CONFIG:
            default = rows
            yield from checker.counts(manifest.counts)
        elif config in manifest.sub_questions:
            known_facts += rows.ids.chunks
            yield from checker.counts(manifest.sub_questions[config].counts)
        elif default is not None:
            annotated = manifest.annotation is not None
            yield from _same_ids(rows, default, config, annotated, config in manifest.variants)
        # Rows that are not labelled yet are not faulty.
        if not any(finding.verdict == "failed" and finding.remedy == FAULT for finding in before):
            yield Finding("rows", "ok", f"{config}: {len(rows):,} rows, no fault found")
    if default is not None and manifest.sub_questions:
        yield from _facts(default, known_facts)


class _Checker:
    """Checks the rows of one config."""

    def __init__(self, rows: ConfigRows, config: str) -> None:
        self.rows, self.config = rows, config

    def check(self, is_control: bool) -> Iterator[Finding]:
        rows = self.rows
        if not len(rows):
            yield failure("rows", "no rows", self.config)
            return
        ids = single_chunk(rows.ids).dictionary_encode()
        repeated = _repeated(to_numpy(ids.indices.fill_null(-1)))
        yield from self.fault("ids", "their id is not unique", repeated)
        for problem in problems(rows, built=True):
            name = problem.field.partition(".")[0]
            remedy = REMEDIES.get(problem.what, FAULT)
            yield from self.fault(name, str(problem), problem.rows, remedy)
        yield from self.clusters()
        # A control removes language: its rows may be identical, and it has no separate splits.
        if not is_control:
            yield from self.duplicates()
            yield from self.leaks()

    def fault(self, name: str, what: str, at: Any, remedy: str = FAULT) -> Iterator[Finding]:
        """Report rows by their ids; nothing if there are none."""
        if len(at):
            ids = [str(self.rows.ids[int(row)]) for row in np.asarray(at)[:MAX_PLACES]]
            where = f"{self.config}: ids {some(ids, total=len(at))}"
            yield failure(name, f"{len(at):,} rows: {what}", where, remedy)

    def clusters(self) -> Iterator[Finding]:
        codes = self.rows.codes("cluster").astype(np.int64)
        if (shared := _in_several(codes[codes >= 0], self.rows.split[codes >= 0])).size:
            names = some(self.rows.column("cluster").dictionary.take(shared[:1000]).to_pylist())
            what = f"{shared.size:,} clusters are in more than one split"
            yield failure("clusters", what, f"{self.config}: {names}", FAULT)

    def duplicates(self) -> Iterator[Finding]:
        """Find rows with the same question and the same choices, in any order.

        Sets of choices are compared by a sum of 64-bit hashes.
        """
        rows, hashed = self.rows, RandomGenerator(0).bits
        key = hashed(rows.codes("question").astype(np.int64)) * np.uint64(3)
        np.add.at(key, rows.row_of_choice, hashed(rows.codes("choices.text").astype(np.int64)))
        what = "question and choices are those of another row"
        yield from self.fault("duplicates", what, _repeated(key))

    def leaks(self) -> Iterator[Finding]:
        rows = self.rows
        at = np.flatnonzero(rows.labelled)
        golds = rows.codes("choices.text")[rows.starts[:-1][at] + rows.answers[at]]
        choices = len(rows.column("choices.text").dictionary)
        key = rows.codes("question")[at].astype(np.int64) * (choices + 1) + golds
        at = at[np.isin(key, _in_several(key, rows.split[at]))]
        yield from self.fault("splits", "question and gold are in another split as well", at)

    def counts(self, counts: Counts) -> Iterator[Finding]:
        """Compare the manifest's counts with the data."""
        rows = self.rows
        held: dict[str, Any] = {
            "rows": len(rows),
            "concepts": np.unique(rows.codes("concept")).size,
            "clusters": np.unique(rows.codes("cluster")).size,
            "unlabelled": int((rows.answers < 0).sum()),
            **{name: int((rows.split == code).sum()) for code, name in enumerate(SPLITS)},
        }
        said = {**counts.model_dump(exclude={"splits"}), **counts.splits}
        wrong = [
            f"{name} {held[name]:,} (recorded: {said.get(name, 0):,})"
            for name in held
            if held[name] != said.get(name, 0)
        ]
        if wrong:
            yield failure("counts", f"not those of the data: {some(wrong)}", self.config)


def _same_ids(
    rows: ConfigRows, default: ConfigRows, config: str, annotated: bool, variant: bool
) -> Iterator[Finding]:
    """Check that a control shows each row of the default config, in the same split.

    In a gold standard it has only the annotated split; a variant may leave rows out.
    """
    import pyarrow as pa

    if rows.ids.equals(default.ids) and np.array_equal(rows.split, default.split):
        return
    ids = pa.chunked_array([*default.ids.chunks, *rows.ids.chunks])
    both = single_chunk(ids).dictionary_encode()
    codes = to_numpy(both.indices.fill_null(-1)).astype(np.int64)
    placed = codes * len(SPLITS) + np.concatenate([default.split, rows.split])
    shown, expected = placed[len(default.ids) :], placed[: len(default.ids)]
    if annotated:
        expected = expected[np.isin(default.split, rows.split)]
    odd = np.setdiff1d(shown, expected) if variant else np.setxor1d(expected, shown)
    if odd.size:
        names = some(both.dictionary.take(np.unique(odd // len(SPLITS))[:1000]).to_pylist())
        what = f"{config} does not have the ids of {DEFAULT_CONFIG}, split by split"
        yield failure("ids", what, f"ids {names}")


def _facts(default: ConfigRows, known: list[Any]) -> Iterator[Finding]:
    """Check that every fact that a row names is the id of a row of a sub-question config."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = pa.concat_arrays([pa.array(["", None], pa.string()), *known])
    named = default.column("fact_ids").unique().drop_null()
    unknown = named.filter(pc.invert(pc.is_in(named, value_set=ids)))
    if len(unknown):
        what = f"{len(unknown):,} facts are asked for in no sub-question config"
        yield failure("facts", what, f"ids {some(unknown.to_pylist())}")


def _repeated(keys: Any) -> Ints:
    """Return the positions of keys that occur earlier in the array."""
    _, first = np.unique(keys, return_index=True)
    return np.delete(np.arange(keys.size), first)


def _in_several(keys: Ints, split: Ints) -> Ints:
    """Return the keys that are in more than one split."""
    pairs = np.unique(keys * len(SPLITS) + split)
    found, times = np.unique(pairs // len(SPLITS), return_counts=True)
    return np.asarray(found[times > 1])
