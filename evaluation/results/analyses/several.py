"""Questions with several right answers: is any of them the model's answer, and are all of them?

Who is asked for a language of Switzerland may name one of four. Each row of such a question has one
right answer and its own wrong ones; all rows together have a set of each. The best choice of all is
right, or not; and a model that knows the whole set prefers all right answers to all wrong ones.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from evaluation.results import intervals
from evaluation.results.analyses.base import Analysis, ResultFiles
from evaluation.results.analyses.consistency import golds_of, numbers_of
from evaluation.results.breakdown import cluster_codes, drop_unscored, headline_rows
from evaluation.results.metrics import compared_values
from evaluation.results.types import Estimate, Model, Normalization
from evaluation.results.words import percent
from kbprobe.arrays import Ints
from kbprobe.columns import single_chunk
from kbprobe.document import Part, Table, Text

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "several"
FEWEST = 10
"""Minimum number of clusters with such a question."""


class SeveralAnswers(Model):
    """Questions for which rows have different right answers; the choices are those of all rows."""

    questions: int = Field(description="Number of questions.")
    answers: int = Field(description="Their right answers that rows ask for.")
    choices: int = Field(description="Their choices, right and wrong.")
    any: Estimate = Field(description="Share of questions whose best choice is a right answer.")
    any_chance: float = Field(description="The same for a choice at random.")
    each: Estimate = Field(
        description="Share of the right answers with a better score than all wrong choices."
    )
    all: Estimate = Field(
        description="Share of questions in which all right answers have a better score than all "
        "wrong choices."
    )
    all_chance: float = Field(description="The same for choices in random order.")


def measure_several(
    predictions: pa.Table, normalization: Normalization, seed: int
) -> SeveralAnswers | None:
    """Pool the choices of rows that ask the same question, with different right answers.

    Args:
        predictions: from :func:`evaluation.results.metrics.predictions_table`. The score of a
            choice must not depend on which others are in its row.
        normalization: of the scores that are compared.
        seed: of the bootstrap.

    Returns:
        None if such questions are in fewer than :data:`FEWEST` clusters. Questions with a choice
        that is right in one row and wrong in another are left out.
    """
    rows = headline_rows(predictions)
    rows = drop_unscored(rows)
    rows = rows.take(_of_several(rows)) if len(rows) else rows
    if not len(rows):
        return None
    cluster, (question, first) = cluster_codes(rows), _questions(rows)
    values, starts, answer = compared_values(rows, normalization)
    texts = numbers_of(single_chunk(rows["choices"]).flatten())
    gold = np.zeros(texts.size, dtype=np.int64)
    gold[starts[:-1] + answer] = 1
    # Each question's distinct choices, right and wrong, with their scores in the last row of each.
    distinct = texts.max() + 1
    every = np.repeat(question, np.diff(starts)) * distinct + texts
    keys, last = np.unique((2 * every + gold)[::-1], return_index=True)
    score, right = values[::-1][last], keys % 2 == 1
    every = keys // 2
    question = every // distinct
    best = np.full(len(first), -np.inf)
    np.maximum.at(best, question[~right], score[~right])
    usable = np.ones(len(first), dtype=np.bool_)
    usable[question[1:][every[1:] == every[:-1]]] = False
    clusters = cluster[first][usable]
    if np.unique(clusters).size < FEWEST:
        return None
    answers, choices, better = (
        np.bincount(question[some], minlength=len(first))[usable]
        for some in (right, slice(None), right & (score > best[question]))
    )
    pairs = zip(choices.tolist(), answers.tolist(), strict=True)
    return SeveralAnswers(
        questions=clusters.size,
        answers=int(answers.sum()),
        choices=int(choices.sum()),
        any=intervals.accuracy(better > 0, clusters, seed),
        any_chance=float((answers / choices).mean()),
        each=intervals.repeated_share(better, answers, clusters, seed),
        all=intervals.accuracy(better == answers, clusters, seed),
        all_chance=float(np.mean([1 / comb(*pair) for pair in pairs])),
    )


def _questions(rows: pa.Table) -> tuple[Ints, Ints]:
    """Number the rows' questions, which include the concept asked about, as they appear.

    Returns:
        The number of each row's question, shape [rows]; and each question's first row.
    """
    asked, concept = (numbers_of(rows[name]) for name in ("question", "concept"))
    both = asked * (concept.max() + 1) + concept
    _, first, own = np.unique(both, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.argsort(order)[own], first[order]


def _of_several(rows: pa.Table) -> Ints:
    """Return the rows whose question has other right answers in other rows."""
    question, _ = _questions(rows)
    golds = golds_of(rows)
    pairs = np.unique(question * (golds.max() + 1) + golds) // (golds.max() + 1)
    return np.flatnonzero(np.bincount(pairs)[question] > 1)


def _parts(_files: ResultFiles, block: SeveralAnswers) -> list[Part]:
    return [
        Text(
            f"{block.questions:,} questions have {block.answers:,} right answers in their rows. "
            f"The best of all their choices is right in {percent(block.any.value)} of them, and "
            f"all right answers are preferred to all wrong ones in {percent(block.all.value)}.",
        ),
        Table(
            ("of the questions with several right answers", "share", "chance"),
            [
                ("any: the best choice is right", block.any, block.any_chance),
                ("each: a right answer is preferred to all wrong ones", block.each, None),
                ("all: all right answers are", block.all, block.all_chance),
            ],
            "The choices are those of all rows that ask the same question.",
        ),
    ]


ANALYSIS = Analysis(NAME, "Several answers", "Several right answers", _parts, SeveralAnswers)
