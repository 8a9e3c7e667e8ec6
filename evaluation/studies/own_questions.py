"""What studies that ask questions of their own share: their rows, and the scores of all choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evaluation.options import TRAINING
from evaluation.results.breakdown import scored_rows
from evaluation.results.metrics import compared_values
from evaluation.studies.base import Finished
from kbprobe.format.items import LABELS

if TYPE_CHECKING:
    import datasets

FIXED = TRAINING | {"config", "split", "limit", "limit_by", "fold", "facts"}
"""Options of runs that do not apply, since the rows are the study's."""


def question_row(
    identity: str, question: str, kinds: Mapping[str, str], gold: str, **columns: Any
) -> dict[str, Any]:
    """Return a row; choices are in alphabetical order, which says nothing of the answer.

    Args:
        identity: the row's id.
        question: its text.
        kinds: what each choice is, by its text; the column ``choice_families``.
        gold: the right choice.
        **columns: other columns of the row.
    """
    choices = sorted(kinds)
    return {
        "id": identity,
        "question": question,
        "choices": {"text": choices, "label": [*LABELS[: len(choices)]]},
        "answerKey": LABELS[choices.index(gold)],
        "choice_families": [kinds[choice] for choice in choices],
        **columns,
    }


def dataset_of(name: str, rows: Sequence[Mapping[str, Any]]) -> datasets.Dataset:
    """Return rows as a dataset that a run can be on."""
    from datasets import Dataset

    dataset = Dataset.from_list([*rows])
    dataset.info.dataset_name = name
    return dataset


def scored_choices(
    run: Finished, columns: Sequence[str]
) -> Iterator[tuple[Mapping[str, Any], list[float], int]]:
    """Yield some columns of each scored row, the compared scores of its choices, its cluster."""
    rows, _, cluster = scored_rows(run.predictions)
    values, starts, _ = compared_values(rows, run.results.metrics.normalization)
    for number, row in enumerate(rows.select([*columns]).to_pylist()):
        yield row, values[starts[number] : starts[number + 1]].tolist(), int(cluster[number])
