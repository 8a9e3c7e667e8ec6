"""Written answers: how many could be read, how they depend on the order of choices, and letters.

Where a model writes its answer to lettered choices, its accuracy depends on how the answer is read
and on the letters. An answer that names no choice, or several, counts as wrong here and is never
replaced by a guess; what was written is in the predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import Field

from evaluation.items.orders import LETTERS
from evaluation.results import intervals
from evaluation.results.analyses.base import Analysis, ResultFiles
from evaluation.results.breakdown import cluster_codes, headline_rows
from evaluation.results.types import Estimate, Model, Results
from evaluation.results.words import interval, percent
from kbprobe.arrays import Ints
from kbprobe.columns import to_numpy
from kbprobe.document import Part, Table, Text

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "generated"
UNREAD = -1
COLUMNS = {
    "answer_order": "list<item: string>",
    "answer_prompt": "list<item: string>",
    "answer_text": "list<item: string>",
    "answer_choice": "list<item: int32>",
}


class Answer(NamedTuple):
    """What a model answered to a question in one order of its choices.

    Attributes:
        order: the letters that the choices have in the probe, in the order shown.
        prompt: the messages before the answer, as JSON.
        text: what was written.
        choice: the choice that it names; :data:`UNREAD` if it names none, or several.
        cut: whether it ended because it was too long.
        mass: the total probability of all letters as its first token; None if unknown or unused.
    """

    order: str
    prompt: str
    text: str
    choice: int
    cut: bool
    mass: float | None


def are_counts(answers: Sequence[Sequence[Answer]]) -> bool:
    """Return whether scores are shares of written answers: none has probabilities."""
    flat = [answer for own in answers for answer in own]
    return bool(flat) and all(answer.mass is None for answer in flat)


class LetterRow(Model):
    """A letter, over all rows and orders in which a choice has it."""

    letter: str = Field(description="The letter.")
    accuracy: Estimate | None = Field(
        description="Accuracy where the gold has this letter; null where it never has."
    )
    chosen: Estimate = Field(description="Share of answers that are this letter.")
    expected: float = Field(
        description="Share of answers that would be, if each letter was equally likely: the mean "
        "of one over the number of choices."
    )


class Generated(Model):
    """Answers that were written, or the probabilities of their first letter."""

    read_by: str = Field(description="text, or probability: of the letters as the first token.")
    answers: int = Field(description="Answers to the rows, each in every order of its choices.")
    unread: int = Field(description="Answers that name no choice, or several; they are wrong.")
    cut: int = Field(description="Of these, answers that ended because they were too long.")
    accuracy: Estimate = Field(
        description="Share of all answers that name the gold: accuracy in a single order, over all "
        "orders."
    )
    flipped: Estimate | None = Field(
        description="Share of the rows asked in several orders and read in each whose choice is "
        "not the same in all; null where there are none."
    )
    mass: float | None = Field(
        description="Mean probability that all letters together have as the first token; null "
        "where the text was read."
    )
    letters: list[LetterRow] = Field(description="Each letter, of all answers.")


def generated_of(results: Results) -> Generated | None:
    """Return the block in the results; None if no answers were written."""
    return results.analysis(NAME, Generated)


def with_answers(predictions: pa.Table, answers: Sequence[Sequence[Answer]]) -> pa.Table:
    """Add columns to the predictions: what was asked and written in each order, and read."""
    import pyarrow as pa

    from kbprobe.columns import arrow_type

    values = {
        "answer_order": [[one.order for one in own] for own in answers],
        "answer_prompt": [[one.prompt for one in own] for own in answers],
        "answer_text": [[one.text for one in own] for own in answers],
        "answer_choice": [[one.choice for one in own] for own in answers],
    }
    for name, kind in COLUMNS.items():
        predictions = predictions.append_column(name, pa.array(values[name], arrow_type(kind)))
    return predictions


def measure_generated(
    predictions: pa.Table, answers: Sequence[Sequence[Answer]], seed: int
) -> Generated:
    """Measure written answers.

    Args:
        predictions: from :func:`evaluation.results.metrics.predictions_table`.
        answers: of each row, in each order.
        seed: of the bootstrap.
    """
    import pyarrow as pa

    numbered = predictions.append_column("row", pa.array(np.arange(len(answers))))
    rows = headline_rows(numbered)
    own = [answers[row] for row in rows["row"].to_pylist()]
    cluster, key = cluster_codes(rows), to_numpy(rows["answer"]).astype(np.int64)
    tries = np.array([len(one) for one in own])
    width = int(tries.max())
    letter = np.full((len(own), width, max(len(one[0].order) for one in own)), -1)
    said = np.full((len(own), width), UNREAD)
    for row, given in enumerate(own):
        for at, answer in enumerate(given):
            letter[row, at, [LETTERS.index(name) for name in answer.order]] = np.arange(
                len(answer.order)
            )
            said[row, at] = answer.choice
    flat = [answer for given in own for answer in given]
    unread = [answer for answer in flat if answer.choice == UNREAD]
    whole = ((said != UNREAD).sum(axis=1) == tries) & (tries > 1)
    first = said[:, :1]
    flipped = ((said != first) & (said != UNREAD)).any(axis=1)[whole]
    mass = [answer.mass for answer in flat if answer.mass is not None]
    return Generated(
        read_by="probability" if mass else "text",
        answers=len(flat),
        unread=len(unread),
        cut=sum(answer.cut for answer in unread),
        accuracy=intervals.repeated_share((said == key[:, None]).sum(axis=1), tries, cluster, seed),
        flipped=intervals.accuracy(flipped, cluster[whole], seed) if whole.any() else None,
        mass=float(np.mean(mass)) if mass else None,
        letters=letter_rows(letter, key, said, cluster, seed),
    )


def letter_rows(letter: Ints, key: Ints, said: Ints, cluster: Ints, seed: int) -> list[LetterRow]:
    """Count answers and right answers by letter, over all rows and orders.

    Args:
        letter: the letter of each choice in each order, shape [rows, orders, most choices]; -1 if
            there is no such choice, or no such order.
        key: the gold of each row, shape [rows].
        said: the choice in each order, negative if there is none, shape [rows, orders].
        cluster: each row's cluster, shape [rows].
        seed: of the bootstrap.
    """
    asked = letter.max(axis=2) >= 0
    choices = letter.max(axis=(1, 2)) + 1
    gold = np.take_along_axis(letter, key[:, None, None], axis=2)[:, :, 0]
    chosen = np.take_along_axis(letter, np.maximum(said, 0)[:, :, None], axis=2)[:, :, 0]
    chosen = np.where(said >= 0, chosen, -1)
    right = said == key[:, None]
    rows = []
    for number in range(letter.shape[2]):
        is_gold, has = gold == number, choices > number
        picked = (chosen[has] == number).sum(axis=1)
        tries = is_gold.sum(axis=1)
        tried, hits = tries > 0, (is_gold & right).sum(axis=1)
        recall = None
        if tried.any():
            recall = intervals.repeated_share(hits[tried], tries[tried], cluster[tried], seed)
        rows.append(
            LetterRow(
                letter=LETTERS[number],
                accuracy=recall,
                chosen=intervals.repeated_share(picked, asked[has].sum(axis=1), cluster[has], seed),
                expected=float((1 / choices[has]).mean()),
            )
        )
    return rows


def sentences(block: Generated) -> list[str]:
    """Return sentences with what a reader must know about written answers."""
    if block.read_by == "text":
        said = [
            f"answers were written and read: {block.unread:,} of {block.answers:,} name no choice, "
            f"or several ({block.cut:,} of them were cut), and count as wrong answers"
        ]
    else:
        said = [f"letters hold {percent(block.mass or 0)} of the probability of the first token"]
    flipped = "" if block.flipped is None else f"; flipped rows {percent(block.flipped.value)}"
    said.append(
        f"in one order of the choices, over all orders: {percent(block.accuracy.value)} "
        f"({interval(block.accuracy)}) of answers are right{flipped}"
    )
    if preferred := [row for row in block.letters if row.chosen.low > row.expected]:
        told = ", ".join(
            f"{row.letter} {percent(row.chosen.value)} (evenly {percent(row.expected)})"
            for row in preferred
        )
        said.append(f"letters preferred: {told}")
    return said


def _parts(_files: ResultFiles, block: Generated) -> list[Part]:
    texts = [Text(f"{sentence[:1].upper()}{sentence[1:]}.") for sentence in sentences(block)]
    return [
        *texts,
        Table(
            ("letter", "accuracy where it is right", "answers", "equally often"),
            [(row.letter, row.accuracy, row.chosen, row.expected) for row in block.letters],
            "By letter, over all rows and orders",
        ),
    ]


ANALYSIS = Analysis(
    NAME, "Written answers", "Written answers, orders and letters", _parts, Generated, COLUMNS
)
