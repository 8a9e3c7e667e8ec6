"""What part of a question gives away, where all rows choose among the same few answers.

Of such a probe (not/really, younger/older) the choices say nothing, so that a model of the
choices alone has nothing to find. Its shortcuts are in the question: in the carrier sentence, or
in single words. Each baseline here sees a part of the question, is fitted on train, and picks an
answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from builders.engine.audit.characters import character_features, numbers, shared_ends
from builders.engine.audit.choice_model import fit_choice_model
from kbprobe.arrays import Floats, Ints
from kbprobe.columns import to_numpy

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import csr_array

MAX_SETS = 4
"""Sets of choices that a probe may have and still be one of constant choices."""

BINS = 10
AT_CHANCE = 0.05
WORD_TOLERANCE = 0.10
"""How far above chance words alone may be: 60% where two answers are to choose from."""


@dataclass(frozen=True)
class PartialInput:
    """The parts of each row's question.

    Attributes:
        carrier: (rows,) label of the question with its arguments blanked out.
        question: (rows,) the row's line in ``arguments``.
        arguments: name -> texts, a line for each question.
        decided: whether the arguments together decide the answer, as two ages do.
    """

    carrier: Ints
    question: Ints
    arguments: dict[str, pa.Array]
    decided: bool = False


class Baseline(NamedTuple):
    """A way of guessing: what it picks, its score of every choice, the bar it is held to.

    ``scores`` is (scored rows, K). ``tolerance`` is how far above chance it may be.
    """

    name: str
    picks: str
    scores: Floats
    tolerance: float


def has_constant_choices(choices: Ints, most: int = 1 << 16) -> bool:
    """Tell whether all rows choose among the same few answers.

    That is so where at most ``MAX_SETS`` sets of choices occur (of at most ``most`` different
    choices in all), each in two rows or more on average.

    Args:
        choices: (rows, K) codes of the choices' texts.
        most: how many different choices there may be.
    """
    rows, width = choices.shape
    used = np.bincount(choices.ravel()) > 0
    if not 0 < used.sum() <= min(MAX_SETS * width, most):
        return False
    sets = np.unique(np.sort(choices, axis=1), axis=0).shape[0]
    return bool(sets <= MAX_SETS and 2 * sets <= rows)


def partial_baselines(
    part: PartialInput, answers: Ints, gold: Ints, train: Ints, scored: Ints
) -> Iterator[Baseline]:
    """Fit every baseline on the train rows and score the others.

    Args:
        part: what of each row can be seen.
        answers: (rows, K) the answers to choose from, as codes 0 .. n - 1.
        gold: (rows,) the right one's column.
        train: the rows to fit on, at least one.
        scored: the rows to score.
    """
    from scipy.sparse import hstack

    fit = _Fit(answers, gold, train, scored)
    picks = (
        "the answer most often right in train in the same carrier sentence "
        "(the question without its arguments)"
    )
    yield Baseline("template only", picks, fit.by_label(part.carrier), AT_CHANCE)
    lines, local = np.unique(part.question[np.concatenate([train, scored])], return_inverse=True)
    question = np.zeros(part.question.size, dtype=np.int64)
    question[np.concatenate([train, scored])] = local
    texts = {name: _taken(values, lines) for name, values in part.arguments.items()}
    features = {}
    for name, values in texts.items():
        frequency, length = _frequencies(values), _lengths(values)
        seen = [character_features(values), numbers(frequency, length)]
        features[name] = hstack(seen, format="csr")
        picks = (
            "a linear model, fitted on train, of the character n-grams, words, frequency and "
            f"length of {name}"
        )
        yield fit.words(f"{name} alone", picks, features[name], question)
        for what, like, value in (
            ("frequency", "frequent", frequency),
            ("length", "long", length),
        ):
            picks = f"the answer most often right in train where {name} is about as {like}"
            yield fit.words_by_label(f"{what} of {name}", picks, _bins(value[question], train))
    if len(texts) > 1:
        pairs = combinations(texts.values(), 2)
        ends = numbers(*(ends for one, other in pairs for ends in shared_ends(one, other)))
        picks = "a linear model, fitted on train, of the ends that the arguments share"
        alike = fit.words("likeness of the arguments", picks, ends, question)
        picks = "a linear model, fitted on train, of all that these models see"
        together = hstack([*features.values(), ends], format="csr")
        whole = fit.words("arguments without the carrier sentence", picks, together, question)
        # Two ages together tell who is older: that is the question, not a way round it.
        bar = np.inf if part.decided else WORD_TOLERANCE
        yield from (baseline._replace(tolerance=bar) for baseline in (alike, whole))


@dataclass(frozen=True)
class _Fit:
    """Rows to fit on and rows to score, and what both choose among."""

    answers: Ints
    gold: Ints
    train: Ints
    scored: Ints

    @property
    def kinds(self) -> int:
        return int(self.answers.max()) + 1

    def by_label(self, label: Ints) -> Floats:
        """Score each answer by how often it is right in train where label and choices agree."""
        shown = np.sort(self.answers, axis=1)
        _, choices = np.unique(shown, axis=0, return_inverse=True)
        _, cell = np.unique(label * (int(choices.max()) + 1) + choices.ravel(), return_inverse=True)
        counts = np.zeros((int(cell.max()) + 1, self.kinds))
        right = self.answers[self.train, self.gold[self.train]]
        np.add.at(counts, (cell[self.train], right), 1.0)
        return np.asarray(counts[cell[self.scored][:, None], self.answers[self.scored]])

    def words_by_label(self, name: str, picks: str, label: Ints) -> Baseline:
        return Baseline(name, picks, self.by_label(label), WORD_TOLERANCE)

    def words(self, name: str, picks: str, features: csr_array, question: Ints) -> Baseline:
        weights = self._weights(features, question)
        score = features @ weights.T
        scores = score[question[self.scored][:, None], self.answers[self.scored]]
        return Baseline(name, picks, scores, WORD_TOLERANCE)

    def _weights(self, features: csr_array, question: Ints) -> Floats:
        """Fit weights (answers, features): P(answer) proportional to exp(weights . features).

        A feature of one question alone says nothing of others and gets no weight.
        """
        from scipy.sparse import block_diag

        lines, local = np.unique(question[self.train], return_inverse=True)
        seen = features[lines]
        shared = np.flatnonzero(np.bincount(seen.indices, minlength=features.shape[1]) > 1)
        # As choices of a conditional logit: each pair of answer and question is one, whose
        # features stand in the columns of that answer.
        pairs = block_diag([seen[:, shared]] * self.kinds, format="csr")
        shown = self.answers[self.train] * lines.size + local[:, None]
        fitted = fit_choice_model(pairs, shown, self.gold[self.train])
        weights = np.zeros((self.kinds, features.shape[1]))
        weights[:, shared] = fitted.reshape(self.kinds, shared.size)
        return weights


def _taken(values: pa.Array, lines: Ints) -> pa.Array:
    import pyarrow as pa

    return values.take(pa.array(lines))


def _frequencies(texts: pa.Array) -> Floats:
    from kb_cache.frequency import zipf_frequencies

    return zipf_frequencies(texts.to_pylist())


def _lengths(texts: pa.Array) -> Floats:
    import pyarrow.compute as pc

    return to_numpy(pc.utf8_length(texts)).astype(np.float64)


def _bins(values: Floats, train: Ints) -> Ints:
    """Label values by the tenth of train that they fall into."""
    edges = np.quantile(values[train], np.arange(1, BINS) / BINS)
    return np.searchsorted(np.unique(edges), values, side="right").astype(np.int64)
