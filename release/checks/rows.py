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
from kbprobe.format.items import LABELS, Coded, arrow_schema
from kbprobe.format.setups import DEFAULT_CONFIG, SETUPS, SPLITS
from kbprobe.rng import RandomGenerator
from release.checks.findings import SHOWN, Finding, failure, some

if TYPE_CHECKING:
    import pyarrow as pa

    from kbprobe.format.manifest import Counts, DataFile, Manifest

TEXTS = (
    "question", "premise", "hypothesis", "answerKey", "setup", "cluster", "concept",
    "schema_version",
)  # fmt: skip
READ = ("id", *TEXTS, "choices", "answer", "choice_families", "fact_ids")


class ConfigRows:
    """All rows of a config, splits one after another.

    Attributes:
        split: index into ``SPLITS``. Shape [rows].
        ids: their ids. Shape [rows].
        texts: the columns of :data:`TEXTS`; codes are -1 for null.
        answer: index of the gold; -1 for null. Shape [rows].
        width, label_width, family_width: number of choices, labels and families. Shape [rows].
        choice, label, family, fact: the entries of the rows' lists, one after another.
        nulls: columns that have nulls.
    """

    def __init__(self, table: pa.Table, split: Ints) -> None:
        import pyarrow.compute as pc

        self.split, self.ids = split, table["id"]
        self.texts = {name: coded(table[name]) for name in TEXTS}
        self.answer = to_numpy(pc.fill_null(table["answer"], -1)).astype(np.int64)
        lists = {part: pc.struct_field(table["choices"], part) for part in ("text", "label")}
        lists |= {name: table[name] for name in ("choice_families", "fact_ids")}
        entries = {name: pc.list_flatten(column) for name, column in lists.items()}
        self.choice, self.label, self.family, self.fact = map(coded, entries.values())
        self.width, self.label_width, self.family_width, _ = (
            to_numpy(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)
            for column in lists.values()
        )
        checked = [(name, table[name]) for name in READ]
        checked += [(part, one[part]) for one in (lists, entries) for part in ("text", "label")]
        self.nulls = sorted({name for name, column in checked if column.null_count})

    @cached_property
    def first(self) -> Ints:
        """The start of each row's choices. Shape [rows]."""
        return np.cumsum(self.width) - self.width

    @cached_property
    def row_of_choice(self) -> Ints:
        """The row of each choice."""
        return np.repeat(np.arange(self.width.size), self.width)

    @cached_property
    def labelled(self) -> Any:
        """Whether the answer is one of the choices. Shape [rows]."""
        return (self.answer >= 0) & (self.answer < self.width)

    @cached_property
    def gold(self) -> Ints:
        """The code of the gold's text; -1 where there is none. Shape [rows]."""
        at = np.where(self.labelled, self.first + self.answer, -1)
        return np.append(self.choice.codes, -1)[at]


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


def coded(column: pa.ChunkedArray) -> Coded:
    """Return a column of texts as distinct texts and indices into them (-1 for null)."""
    array = single_chunk(
        column if hasattr(column.type, "index_type") else column.dictionary_encode()
    )
    return Coded(array.dictionary, to_numpy(array.indices.fill_null(-1)).astype(np.int64))


def code_of(column: Coded, text: str) -> int:
    """Return the code of a text; -2 if no entry has it."""
    found = column.values.index(text).as_py()
    return found if found >= 0 else -2


FAULT = "The probe or its template has a fault: correct it and build again."
UNLABELLED = "Have people label them: release-probe annotate export DIR -o SHEETS"


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
        if not any(one.verdict == "failed" and one.remedy != UNLABELLED for one in before):
            yield Finding("rows", "ok", f"{config}: {rows.answer.size:,} rows, no fault found")
    if default is not None and manifest.sub_questions:
        yield from _facts(default, known_facts)


class _Checker:
    """Checks the rows of one config."""

    def __init__(self, rows: ConfigRows, config: str) -> None:
        self.rows, self.config = rows, config

    def check(self, is_control: bool) -> Iterator[Finding]:
        if not self.rows.answer.size:
            yield failure("rows", "no rows", self.config)
            return
        yield from self.fault(
            "ids", "their id is not unique", _repeated(coded(self.rows.ids).codes)
        )
        yield from self.blanks()
        yield from self.answers()
        yield from self.choices()
        yield from self.setups()
        yield from self.clusters()
        # A control removes language: its rows may be identical, and it has no separate splits.
        if not is_control:
            yield from self.duplicates()
            yield from self.leaks()

    def fault(self, name: str, what: str, at: Any, remedy: str = FAULT) -> Iterator[Finding]:
        """Report rows by their ids; nothing if there are none."""
        if len(at):
            ids = [str(self.rows.ids[int(row)]) for row in np.asarray(at)[:SHOWN]]
            where = f"{self.config}: ids {some(ids, total=len(at))}"
            yield failure(name, f"{len(at):,} rows: {what}", where, remedy)

    def blanks(self) -> Iterator[Finding]:
        import pyarrow.compute as pc

        rows = self.rows
        if rows.nulls:
            yield failure("blanks", f"nulls in {some(rows.nulls)}", self.config, FAULT)
        length = to_numpy(pc.utf8_length(pc.utf8_trim_whitespace(rows.choice.values)))
        blank = np.isin(rows.choice.codes, np.flatnonzero(length == 0))
        yield from self.fault("blanks", "a choice is blank", np.unique(rows.row_of_choice[blank]))

    def answers(self) -> Iterator[Finding]:
        rows = self.rows
        unlabelled = np.flatnonzero(rows.answer < 0)
        yield from self.fault("answers", "not labelled yet", unlabelled, UNLABELLED)
        outside = np.flatnonzero(rows.answer >= rows.width)
        yield from self.fault("answers", "the answer is none of the choices", outside)
        odd = np.flatnonzero((rows.width != rows.label_width) | (rows.width != rows.family_width))
        if odd.size:
            yield from self.fault("choices", "texts, labels and families differ in number", odd)
            return
        position = np.arange(rows.choice.codes.size) - rows.first[rows.row_of_choice]
        expected = np.array([*(code_of(rows.label, label) for label in LABELS), -2])
        wrong = rows.label.codes != expected[np.minimum(position, len(LABELS))]
        odd = np.unique(rows.row_of_choice[wrong])
        yield from self.fault("choices", "labels are not A, B, ... in order", odd)
        good = np.flatnonzero(rows.labelled & (rows.answer < len(LABELS)))
        named = rows.texts["answerKey"]
        keys = np.array([code_of(named, label) for label in LABELS])
        wrong = good[named.codes[good] != keys[rows.answer[good]]]
        yield from self.fault("answers", "answerKey is not the label of answer", wrong)
        is_gold = rows.family.codes == code_of(rows.family, "gold")
        golds = np.bincount(rows.row_of_choice[is_gold], minlength=rows.answer.size)
        at_answer = np.zeros(rows.answer.size, dtype=np.bool_)
        at_answer[good] = is_gold[rows.first[good] + rows.answer[good]]
        wrong = np.flatnonzero(rows.labelled & ((golds != 1) | ~at_answer))
        yield from self.fault("answers", "the gold family is not at the answer alone", wrong)

    def choices(self) -> Iterator[Finding]:
        rows = self.rows
        yield from self.fault("choices", "fewer than two", np.flatnonzero(rows.width < 2))
        key = rows.row_of_choice * (len(rows.choice.values) + 1) + rows.choice.codes
        repeated = np.unique(rows.row_of_choice[_repeated(key)])
        yield from self.fault("choices", "a choice is there twice", repeated)

    def setups(self) -> Iterator[Finding]:
        """Check each setup's requirements on its texts; equal texts are checked once."""
        rows, named = self.rows, self.rows.texts["setup"]
        unknown = np.flatnonzero(~np.isin(named.codes, [code_of(named, name) for name in SETUPS]))
        yield from self.fault("setups", f"their setup is none of {', '.join(SETUPS)}", unknown)
        for name, setup in SETUPS.items():
            columns = [rows.texts[text] for text in setup.texts]
            codes = np.stack([column.codes for column in columns])
            at = np.flatnonzero((named.codes == code_of(named, name)) & (codes >= 0).all(axis=0))
            if not at.size:
                continue
            key = codes[0, at] * (len(columns[-1].values) + 1) + codes[-1, at]
            _, first, which = np.unique(key, return_index=True, return_inverse=True)
            texts = (
                column.values.take(own[at[first]]).to_pylist()
                for column, own in zip(columns, codes, strict=True)
            )
            found: dict[str, list[int]] = {}
            for index, shown in enumerate(zip(*texts, strict=True)):
                row = dict(zip(setup.texts, shown, strict=True))
                blank = [f"the {text} is blank" for text in row if not row[text].strip()]
                for problem in blank or setup.problems(row):
                    found.setdefault(problem, []).append(index)
            for problem, indexes in found.items():
                kind = "blanks" if problem.endswith("blank") else "questions"
                yield from self.fault(kind, problem, at[np.isin(which, indexes)])

    def clusters(self) -> Iterator[Finding]:
        cluster = self.rows.texts["cluster"]
        if (shared := _in_several(cluster.codes, self.rows.split)).size:
            names = some(cluster.values.take(shared[:1000]).to_pylist())
            what = f"{shared.size:,} clusters are in more than one split"
            yield failure("clusters", what, f"{self.config}: {names}", FAULT)

    def duplicates(self) -> Iterator[Finding]:
        """Find rows with the same question and the same choices, in any order.

        Sets of choices are compared by a sum of 64-bit hashes.
        """
        rows, hashed = self.rows, RandomGenerator(0).bits
        key = hashed(rows.texts["question"].codes) * np.uint64(3)
        np.add.at(key, rows.row_of_choice, hashed(rows.choice.codes))
        what = "question and choices are those of another row"
        yield from self.fault("duplicates", what, _repeated(key))

    def leaks(self) -> Iterator[Finding]:
        rows = self.rows
        labelled = np.flatnonzero(rows.labelled)
        key = rows.texts["question"].codes * (len(rows.choice.values) + 1) + rows.gold
        shared = _in_several(key[labelled], rows.split[labelled])
        at = labelled[np.isin(key[labelled], shared)]
        yield from self.fault("splits", "question and gold are in another split as well", at)

    def counts(self, counts: Counts) -> Iterator[Finding]:
        """Compare the manifest's counts with the data."""
        rows = self.rows
        held: dict[str, Any] = {
            "rows": rows.answer.size,
            "concepts": np.unique(rows.texts["concept"].codes).size,
            "clusters": np.unique(rows.texts["cluster"].codes).size,
            "unlabelled": int((rows.answer < 0).sum()),
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
    both = coded(pa.chunked_array([*default.ids.chunks, *rows.ids.chunks]))
    placed = both.codes * len(SPLITS) + np.concatenate([default.split, rows.split])
    shown, expected = placed[len(default.ids) :], placed[: len(default.ids)]
    if annotated:
        expected = expected[np.isin(default.split, rows.split)]
    odd = np.setdiff1d(shown, expected) if variant else np.setxor1d(expected, shown)
    if odd.size:
        names = some(both.values.take(np.unique(odd // len(SPLITS))[:1000]).to_pylist())
        what = f"{config} does not have the ids of {DEFAULT_CONFIG}, split by split"
        yield failure("ids", what, f"ids {names}")


def _facts(default: ConfigRows, known: list[Any]) -> Iterator[Finding]:
    """Check that every fact that a row names is the id of a row of a sub-question config."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = pa.concat_arrays([pa.array(["", None], pa.string()), *known])
    named = default.fact.values.take(np.unique(default.fact.codes[default.fact.codes >= 0]))
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
