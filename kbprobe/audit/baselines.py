"""The baselines of a build's audit: shortcuts that take no time.

Each looks at part of a row (its choices, one choice's length, the position) and picks a choice. If
the model that reads only the choices beats chance, the probe can be solved without its questions:
Richardson & Sabharwal (TACL 2020, section 4.1) call such models partial-input baselines, and their
published hypernymy probe falls to them. So does any probe whose distractors are drawn uniformly.

If all rows choose among the same few answers (not/really, younger/older), the choices carry no
information. Shortcuts are then in the question: in the carrier sentence or in single words. The
baselines look at part of the question instead.

*Giveaways* are golds that contain words of their question more often than distractors do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbprobe.arrays import Bools, Floats, Ints, mask_at, sorted_unique
from kbprobe.audit.features import (
    character_features,
    likeness,
    ngram_features,
    numbers,
    overlap,
    rarity_of,
    shared_ends,
)
from kbprobe.audit.learners import counts_in_train, fit_answer_model, fit_choice_model
from kbprobe.audit.rows import Rows
from kbprobe.audit.verdicts import MARGIN, Shortcut
from kbprobe.columns import to_numpy
from kbprobe.format.manifest import MOST_SIMILAR
from kbprobe.similarity import similarities
from kbprobe.tokens import tokenise

BINS = 10
WORD_TOLERANCE = 0.10
"""How far above chance words alone may be: 60% with two possible answers."""

BASELINES = {
    "choice-only model": "a linear model of the choices' words and word pairs, fitted on train",
    "choice-only model, inverted": "the same model's least likely choice",
    "longest choice": "most characters",
    "shortest choice": "fewest characters",
    "most frequent choice": "most frequent first lemma (Zipf scale, wordfreq)",
    "most general choice": "most hyponyms below it",
    "most specific choice": "fewest hyponyms below it",
    "most like the question": "shares the rarest words with the question",
    MOST_SIMILAR: "the choice most similar to the question, by a small static encoder",
    "most like the others": "shares the rarest words with the other choices",
    "least like the others": "the odd one out by shared words",
    "majority answer": "most often gold in train",
    "majority position": "the position most often right in train",
    "template majority": "the position most often right in train with the same wording",
}
"""What each baseline picks if choices differ from row to row."""


MOST_TIMES = 1.5
"""Maximum ratio between how often golds and distractors contain a word of the question."""


class QuestionPart(NamedTuple):
    """A part of each question, with whose words choices are compared.

    Attributes:
        words: description of the words that count ("a word of the context").
        texts: a text for each question.
        contained: returns for pairs of texts, the second a choice's, whether it contains such a
            word; see :func:`builders.english.kin.holds_kin`.
    """

    words: str
    texts: pa.Array
    contained: Callable[[pa.Array, Ints, pa.Array, Ints], Bools]


class Giveaway(NamedTuple):
    """Shares of golds and distractors that contain words of the question, and rows counted."""

    golds: float
    distractors: float
    rows: int

    def is_leak(self, choices: int) -> bool:
        """Return whether the ratio is significantly greater than `MOST_TIMES`."""
        spread = self.golds * (1 - self.golds)
        spread += MOST_TIMES**2 * self.distractors * (1 - self.distractors) / (choices - 1)
        margin = 1.96 * float(np.sqrt(spread / max(self.rows, 1)))
        return self.golds - MOST_TIMES * self.distractors > margin


def giveaways(
    parts: Iterable[QuestionPart], question: Ints, texts: pa.Array, choices: Ints, answer: Ints
) -> Iterator[tuple[str, Giveaway]]:
    """Count the choices that share words with the question, for each part of the question.

    Args:
        parts: the parts of the questions.
        question: (rows,) the row's question.
        texts: the distinct choices' texts.
        choices: (rows, K) index into ``texts``.
        answer: (rows,) the gold's column.

    Yields:
        A description of what was counted, and the counts.
    """
    rows, width = choices.shape
    gold = mask_at(choices.shape, (np.arange(rows), answer))
    asked, line = np.unique(question, return_inverse=True)
    shown, choice = np.unique(choices, return_inverse=True)
    lines, choice_texts = np.repeat(line, width), texts.take(pa.array(shown))
    for part in parts:
        some = part.texts.take(pa.array(asked))
        holds = part.contained(some, lines, choice_texts, choice.ravel()).reshape(choices.shape)
        yield part.words, Giveaway(float(holds[gold].mean()), float(holds[~gold].mean()), rows)


@dataclass(frozen=True)
class PartialInput:
    """The parts of each row's question.

    Attributes:
        carrier: (rows,) label of the question with its arguments blanked out.
        arguments: name -> texts, one per question.
        frequencies: returns the frequencies of texts.
        decided: whether the arguments together decide the answer, as two ages do.
    """

    carrier: Ints
    arguments: dict[str, pa.Array]
    frequencies: Callable[[Sequence[str]], Floats]
    decided: bool = False


@dataclass(frozen=True, kw_only=True)
class BuildRows(Rows):
    """The rows of a build; all have K choices.

    Attributes:
        template: (rows,) integer labels.
        frequency, generality: those of each of ``texts``; None if not applicable.
        partial: the parts of the questions, if all rows choose among the same few answers.
        parts: the parts of ``questions`` whose words choices are searched for.
    """

    template: Ints
    frequency: Floats | None
    generality: Floats | None
    partial: PartialInput | None = None
    parts: tuple[QuestionPart, ...] = ()


def baselines(rows: BuildRows) -> Iterator[Shortcut]:
    """Yield every baseline that makes sense for the rows."""
    if rows.partial is None:
        yield from _of_choices(rows)
    elif rows.train.size:
        yield from of_questions(rows, rows.partial)
    if rows.train.size:
        yield from _of_majorities(rows)


def _named(name: str, scores: Floats) -> Shortcut:
    return Shortcut(name, scores, BASELINES[name])


def _of_choices(rows: BuildRows) -> Iterator[Shortcut]:
    """Yield baselines over the choices' texts."""
    choices, train = rows.choices[rows.scored], rows.choices[rows.train]
    shown = sorted_unique(np.concatenate([choices.ravel(), train.ravel()]))
    texts = rows.texts.take(shown)
    local = np.searchsorted(shown, choices)
    if rows.train.size:
        features = ngram_features(texts)
        fitted = np.searchsorted(shown, train)
        score = (features @ fit_choice_model(features, fitted, rows.answer[rows.train]))[local]
        yield _named("choice-only model", score)
        yield _named("choice-only model, inverted", -score)
    length = to_numpy(pc.utf8_length(texts)).astype(np.float64)[local]
    yield _named("longest choice", length)
    yield _named("shortest choice", -length)
    if rows.frequency is not None:
        yield _named("most frequent choice", rows.frequency[choices])
    if rows.generality is not None:
        yield _named("most general choice", rows.generality[choices])
        yield _named("most specific choice", -rows.generality[choices])
    asked, question = np.unique(rows.question[rows.scored], return_inverse=True)
    tokens, questions = tokenise(texts, rows.questions.take(asked))
    rarity = rarity_of(tokens)
    yield _named("most like the question", overlap(tokens, questions, rarity, local, question))
    # What is similar to the question is likely to be true: reported, not a fault of the rows.
    similar = similarities(tokens, questions, local, question)
    yield Shortcut(MOST_SIMILAR, similar, BASELINES[MOST_SIMILAR], judged=False)
    alike = likeness(tokens, rarity, local)
    yield _named("most like the others", alike)
    yield _named("least like the others", -alike)


def _of_majorities(rows: BuildRows) -> Iterator[Shortcut]:
    """Yield baselines over frequencies in train."""
    often = np.bincount(rows.gold[rows.train], minlength=len(rows.texts)).astype(np.float64)
    yield _named("majority answer", often[rows.choices[rows.scored]])
    width = rows.choices.shape[1]
    for name, label in (
        ("majority position", np.zeros_like(rows.template)),
        ("template majority", rows.template),
    ):
        yield _named(name, counts_in_train(label, rows.answer, width, rows.train, rows.scored))


def of_questions(rows: Rows, partial: PartialInput) -> Iterator[Shortcut]:
    """Yield baselines over parts of the question, each fitted on train (at least one row)."""
    from scipy.sparse import csr_array, hstack  # slow to import; most builds do without

    train, scored = rows.train, rows.scored
    codes, answers = np.unique(rows.choices, return_inverse=True)
    answers = answers.reshape(rows.choices.shape)
    gold = np.take_along_axis(answers, rows.answer[:, None], axis=1)[:, 0]
    _, sets = np.unique(np.sort(answers, axis=1), axis=0, return_inverse=True)

    def by_label(name: str, picks: str, label: Ints, tolerance: float = WORD_TOLERANCE) -> Shortcut:
        """Score answers by their share of right ones in train where label and choices agree."""
        _, cell = np.unique(label * (int(sets.max()) + 1) + sets.ravel(), return_inverse=True)
        counts = counts_in_train(cell, gold, codes.size, train, scored)
        scores = np.take_along_axis(counts, answers[scored], axis=1)
        return Shortcut(name, scores, picks, tolerance)

    def linear(
        name: str, picks: str, features: csr_array, tolerance: float = WORD_TOLERANCE
    ) -> Shortcut:
        right = rows.answer[train]
        weights = fit_answer_model(features, question[train], answers[train], right, codes.size)
        score = features @ weights.T
        return Shortcut(name, score[question[scored][:, None], answers[scored]], picks, tolerance)

    yield by_label(
        "template only",
        "the answer most often right in train in the same carrier sentence "
        "(the question without its arguments)",
        partial.carrier,
        MARGIN,
    )
    lines, local = np.unique(rows.question[rows.used], return_inverse=True)
    question = np.zeros(rows.question.size, dtype=np.int64)
    question[rows.used] = local
    texts = {name: values.take(pa.array(lines)) for name, values in partial.arguments.items()}
    features = {}
    for name, values in texts.items():
        frequency = partial.frequencies(values.to_pylist())
        length = to_numpy(pc.utf8_length(values)).astype(np.float64)
        seen = [character_features(values), numbers(frequency, length)]
        features[name] = hstack(seen, format="csr")
        picks = (
            "a linear model, fitted on train, of the character n-grams, words, frequency and "
            f"length of {name}"
        )
        yield linear(f"{name} alone", picks, features[name])
        for what, like, value in (
            ("frequency", "frequent", frequency),
            ("length", "long", length),
        ):
            picks = f"the answer most often right in train where {name} is about as {like}"
            yield by_label(f"{what} of {name}", picks, _bins(value[question], train))
    if len(texts) > 1:
        pairs = combinations(texts.values(), 2)
        ends = numbers(*(ends for left, right in pairs for ends in shared_ends(left, right)))
        # Two ages together show who is older: that is the question itself, not a shortcut.
        tolerance = np.inf if partial.decided else WORD_TOLERANCE
        picks = "a linear model, fitted on train, of the ends that the arguments share"
        yield linear("likeness of the arguments", picks, ends, tolerance)
        together = hstack([*features.values(), ends], format="csr")
        picks = "a linear model, fitted on train, of all that these models see"
        yield linear("arguments without the carrier sentence", picks, together, tolerance)


def _bins(values: Floats, train: Ints) -> Ints:
    """Label values by the decile of train that they fall into."""
    edges = np.quantile(values[train], np.arange(1, BINS) / BINS)
    return np.searchsorted(np.unique(edges), values, side="right").astype(np.int64)
