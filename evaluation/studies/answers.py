"""The answers of several runs to the same items, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evaluation.results.items import NOT_SCORED, Answers
from evaluation.studies.base import Finished
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = ("id", "cluster", "question", "choices", "answer", "template")


class Gathered(NamedTuple):
    """Items that at least one run scored, and all runs' answers to them.

    Attributes:
        items: id, cluster, question, choices, answer and template of each item.
        answers: what each run answered; items in the order of ``items``, runs as they were given.
    """

    items: pa.Table
    answers: Answers


def gather(finished: Sequence[Finished], *, partial: bool = False) -> Gathered:
    """Align the answers of several runs on one probe: by position on the same rows, or by id.

    Raises:
        UsageError: the runs are on different rows and ``partial`` is off; the same ids have
            different choices or golds; or no run scored any item.
    """
    import pyarrow.compute as pc

    tables = [run.predictions for run in finished]
    if len({run.results.probe.fingerprint for run in finished}) == 1:
        shown = _shown(tables[0])
        said = [_predictions(table) for table in tables]
    else:
        shown, said = _by_ids(finished, tables, partial)
    answers = Answers(
        to_numpy(shown["answer"]).astype(np.int64),
        to_numpy(pc.list_value_length(shown["choices"])).astype(np.int64),
        np.stack(said, axis=1),
    )
    kept = answers.scored.any(axis=1)
    if not kept.any():
        raise UsageError(
            f"no item of {finished[0].folder} and the other runs was scored: their reasons are in "
            "the column set_aside of predictions.parquet"
        )
    return Gathered(shown.filter(kept), Answers(*(part[kept] for part in answers)))


def _shown(table: pa.Table) -> pa.Table:
    """Keep the columns that are shown of an item, with the premise prepended to the question."""
    import pyarrow.compute as pc

    shown = table.select(_SHOWN)
    if "premise" not in table.column_names:
        return shown
    joined = pc.binary_join_element_wise(
        table["premise"], table["question"], " ", null_handling="skip"
    )
    return shown.set_column(_SHOWN.index("question"), "question", joined)


def _predictions(table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return to_numpy(table["prediction"].fill_null(NOT_SCORED)).astype(np.int64)


def _by_ids(
    finished: Sequence[Finished], tables: Sequence[pa.Table], partial: bool
) -> tuple[pa.Table, list[np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    """Align runs by id: the rows of the first run, then those that later runs add."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = ", ".join(str(run.folder) for run in finished)
    for run, table in zip(finished, tables, strict=True):
        if len(single_chunk(table["id"]).unique()) < table.num_rows:
            raise UsageError(
                f"{run.folder} has items with the same id: they pair only with runs on exactly "
                "the same rows. Evaluate again on the same rows"
            )
    union = pa.concat_tables([_shown(table) for table in tables])
    ids = single_chunk(union["id"])
    known = ids.unique()
    if not partial and any(table.num_rows < len(known) for table in tables):
        raise UsageError(
            f"{names} are not on the same rows of {finished[0].results.probe.name}. "
            "Evaluate all on the same rows, or take the items that each has with --partial"
        )
    first = single_chunk(pc.index_in(known, value_set=ids))
    whole = union.take(first)
    alike = whole.take(pc.index_in(ids, value_set=known))
    if not (union["answer"].equals(alike["answer"]) and union["choices"].equals(alike["choices"])):
        raise UsageError(
            f"{names} have the same ids with other choices or golds: they are of several builds. "
            "Evaluate all on one"
        )
    said = []
    for table in tables:
        own = np.full(len(known), NOT_SCORED, dtype=np.int64)
        own[to_numpy(pc.index_in(single_chunk(table["id"]), value_set=known))] = _predictions(table)
        said.append(own)
    return whole, said
