"""Rows of a built probe: what must hold of each, between rows, between splits and configs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbprobe.arrays import Ints
from kbprobe.columns import to_numpy
from kbprobe.format.dataset import DEFAULT_CONFIG
from kbprobe.format.items import LABELS
from kbprobe.format.setups import SETUPS, SPLITS
from release.checks.columns import ConfigRows, Texts, read_config
from release.checks.findings import REBUILD, Finding, some

if TYPE_CHECKING:
    from release.checks.manifest import Counts, Layout

FAULT = "The probe or its template has a fault: correct it and build again."
UNLABELLED = "Have people label them: release-probe annotate export DIR -o SHEETS"


def row_findings(folder: Path, layout: Layout, pool: Executor) -> Iterator[Finding]:
    """Check the rows of every config, the default first."""
    default: ConfigRows | None = None
    known_facts: list[Any] = []
    for config, entries in sorted(layout.configs.items(), key=lambda one: one[0] != DEFAULT_CONFIG):
        import pyarrow as pa

        try:
            rows = read_config(folder, entries, pool)
        except (pa.ArrowException, OSError) as error:
            what = f"{config} cannot be read: {error}"
            where = some(entry.path for entry in entries)
            yield Finding("rows", "failed", what, where, REBUILD)
            continue
        checker = _Checker(rows, config)
        before = list(checker.check(config in layout.controls))
        yield from before
        if config == DEFAULT_CONFIG:
            default = rows
            yield from checker.counts(layout.counts)
        elif config in layout.sub_questions:
            known_facts.append(rows.ids)
            yield from checker.counts(layout.sub_questions[config].counts)
        elif default is not None:
            annotated = layout.annotation is not None
            yield from _same_ids(rows, default, config, annotated, config in layout.variants)
        if not any(one.verdict == "failed" for one in before):
            yield Finding("rows", "ok", f"{config}: {rows.answer.size:,} rows, no fault found")
    if default is not None and layout.sub_questions:
        yield from _facts(default, known_facts)


@dataclass(frozen=True)
class _Checker:
    """Checks the rows of one config."""

    rows: ConfigRows
    config: str

    def check(self, is_control: bool) -> Iterator[Finding]:
        if not self.rows.answer.size:
            yield Finding("rows", "failed", "no rows", self.config, REBUILD)
            return
        repeated = _repeated(_encoded(self.rows.ids).codes)
        yield from self.fault("ids", "their id is not unique", repeated)
        yield from self.blanks()
        yield from self.answers()
        yield from self.choices()
        yield from self.setups()
        yield from self.clusters()
        # A control takes language away: its rows may be alike, and it has no splits of its own.
        if not is_control:
            yield from self.duplicates()
            yield from self.leaks()

    def fault(self, name: str, what: str, at: Any, remedy: str = FAULT) -> Iterator[Finding]:
        """Report rows by their ids; nothing if there are none."""
        if len(at):
            where = f"{self.config}: ids {some(self.rows.ids_at(at), total=len(at))}"
            yield Finding(name, "failed", f"{len(at):,} rows: {what}", where, remedy)

    def blanks(self) -> Iterator[Finding]:
        import pyarrow.compute as pc

        rows = self.rows
        if rows.nulls:
            yield Finding("blanks", "failed", f"nulls in {some(rows.nulls)}", self.config, FAULT)
        length = to_numpy(pc.utf8_length(pc.utf8_trim_whitespace(rows.choice.values)))
        if (length == 0).any():
            at = np.flatnonzero(np.isin(rows.choice.codes, np.flatnonzero(length == 0)))
            yield from self.fault("blanks", "a choice is blank", np.unique(rows.row_of_choice[at]))

    def answers(self) -> Iterator[Finding]:
        rows = self.rows
        unlabelled = np.flatnonzero(rows.answer < 0)
        yield from self.fault("answers", "not labelled yet", unlabelled, UNLABELLED)
        outside = np.flatnonzero(rows.answer >= rows.width)
        yield from self.fault("answers", "the answer is none of the choices", outside)
        odd = np.flatnonzero((rows.width != rows.label_width) | (rows.width != rows.families[0]))
        if odd.size:
            yield from self.fault("choices", "texts, labels and families differ in number", odd)
            return
        position = np.arange(rows.choice.codes.size) - rows.first[rows.row_of_choice]
        expected = _codes_of(rows.label, LABELS)
        expected = np.where(
            position < len(LABELS), expected[np.minimum(position, len(LABELS) - 1)], -2
        )
        odd = np.unique(rows.row_of_choice[rows.label.codes != expected])
        yield from self.fault("choices", "labels are not A, B, ... in order", odd)
        good = np.flatnonzero(rows.labelled & (rows.answer < len(LABELS)))
        keys = _codes_of(rows.texts["answerKey"], LABELS)
        wrong = good[rows.texts["answerKey"].codes[good] != keys[rows.answer[good]]]
        yield from self.fault("answers", "answerKey is not the label of answer", wrong)
        families = rows.families[1]
        is_gold = families.codes == families.of("gold")
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
        """Check what each setup demands of its texts; equal texts are checked once."""
        rows, named = self.rows, self.rows.texts["setup"]
        unknown = np.flatnonzero(~np.isin(named.codes, [named.of(name) for name in SETUPS]))
        yield from self.fault("setups", f"their setup is none of {', '.join(SETUPS)}", unknown)
        for name, setup in SETUPS.items():
            columns = [rows.texts[text] for text in setup.texts]
            codes = np.stack([column.codes for column in columns])
            at = np.flatnonzero((named.codes == named.of(name)) & (codes >= 0).all(axis=0))
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
            yield Finding("clusters", "failed", what, f"{self.config}: {names}", FAULT)

    def duplicates(self) -> Iterator[Finding]:
        """Find rows with the same question and the same choices, in any order.

        Sets of choices are compared by a sum of 64-bit hashes: among a million rows two different
        sets would be taken for equal once in ten million checks.
        """
        rows = self.rows
        summed = np.zeros(rows.answer.size, dtype=np.uint64)
        np.add.at(summed, rows.row_of_choice, _scrambled(rows.choice.codes))
        key = summed + _scrambled(rows.texts["question"].codes) * np.uint64(3)
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
            **{name: int((rows.split == code).sum()) for code, name in enumerate(SPLITS)},
        }
        said = {**counts.model_dump(include={"rows", "concepts", "clusters"}), **counts.splits}
        wrong = [
            f"{name} {held[name]:,} (recorded: {said.get(name, 0):,})"
            for name in held
            if held[name] != said.get(name, 0)
        ]
        if wrong:
            what = f"not those of the data: {some(wrong)}"
            yield Finding("counts", "failed", what, self.config, REBUILD)


def _same_ids(
    rows: ConfigRows, default: ConfigRows, config: str, annotated: bool, variant: bool
) -> Iterator[Finding]:
    """A control shows each row of the default config, in the same split.

    Of a gold standard it has only the split that was annotated; a variant may leave rows out.
    """
    import pyarrow as pa

    if rows.ids.equals(default.ids) and np.array_equal(rows.split, default.split):
        return
    both = _encoded(pa.chunked_array([*default.ids.chunks, *rows.ids.chunks], type=pa.string()))
    placed = both.codes * len(SPLITS) + np.concatenate([default.split, rows.split])
    shown, expected = placed[len(default.ids) :], placed[: len(default.ids)]
    if annotated:
        expected = expected[np.isin(default.split, rows.split)]
    odd = np.setdiff1d(shown, expected) if variant else np.setxor1d(expected, shown)
    if odd.size:
        names = some(both.values.take(np.unique(odd // len(SPLITS))[:1000]).to_pylist())
        what = f"{config} does not have the ids of {DEFAULT_CONFIG}, split by split"
        yield Finding("ids", "failed", what, f"ids {names}", REBUILD)


def _facts(default: ConfigRows, known: list[Any]) -> Iterator[Finding]:
    """Check that every fact that a row names is the id of a row of a sub-question config."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = pa.concat_arrays(
        [chunk for one in known for chunk in one.chunks] or [pa.array([], "str")]
    )
    named = default.facts.values.take(np.unique(default.facts.codes[default.facts.codes >= 0]))
    unknown = named.filter(pc.invert(pc.is_in(named, value_set=ids)))
    unknown = unknown.filter(pc.not_equal(unknown, ""))
    if len(unknown):
        what = f"{len(unknown):,} facts are asked for in no sub-question config"
        yield Finding("facts", "failed", what, f"ids {some(unknown.to_pylist())}", REBUILD)


def _encoded(column: Any) -> Texts:
    coded = column.combine_chunks().dictionary_encode()
    return Texts(coded.dictionary, to_numpy(coded.indices.fill_null(-1)).astype(np.int64))


def _codes_of(column: Texts, words: tuple[str, ...]) -> Ints:
    """The code of each word in a column; -2 where no entry has it."""
    known = {word: code for code, word in enumerate(column.values.to_pylist())}
    return np.array([known.get(word, -2) for word in words])


def _repeated(keys: Any) -> Ints:
    """Return where keys stand that have stood before."""
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    return np.sort(order[1:][ranked[1:] == ranked[:-1]])


def _in_several(keys: Ints, split: Ints) -> Ints:
    """Return the keys that are in more than one split."""
    pairs = np.unique(keys * len(SPLITS) + split)
    found, times = np.unique(pairs // len(SPLITS), return_counts=True)
    return np.asarray(found[times > 1])


def _scrambled(codes: Ints) -> Any:
    """Spread integers over 64 bits (the finalizer of SplitMix64)."""
    value = codes.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
