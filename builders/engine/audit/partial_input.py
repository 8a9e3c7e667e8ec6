"""Partial-input baselines for probes whose rows all have the same few answers to choose from.

In such probes (not/really, younger/older) the choices carry no information, so a choice-only model
has nothing to learn. Shortcuts are in the question: in the carrier sentence or in single words.
Each baseline here sees a part of the question, is fitted on train, and picks an answer.

scikit-learn's CountVectorizer finds the same n-grams; its import takes longer than the whole audit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.audit.ngrams import fit_choice_model
from kb_cache.frequency import zipf_frequencies
from kbprobe.arrays import Bools, Floats, Ints, UInts, ragged_ranges
from kbprobe.audit import MARGIN
from kbprobe.columns import to_numpy
from kbprobe.tokens import tokenise

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_SETS = 4
"""Maximum number of distinct sets of choices in a probe with constant choices."""

LONGEST_NGRAM = 4
_EDGES = ("\x02", "\x03")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
WIDEST = 32
"""Maximum number of characters compared at either end of a word."""

BINS = 10
WORD_TOLERANCE = 0.10
"""How far above chance words alone may be: 60% with two possible answers."""


@dataclass(frozen=True)
class PartialInput:
    """The parts of each row's question.

    Attributes:
        carrier: (rows,) label of the question with its arguments blanked out.
        question: (rows,) index of the row's question in ``arguments``.
        arguments: name -> texts, one per question.
        decided: whether the arguments together decide the answer, as two ages do.
    """

    carrier: Ints
    question: Ints
    arguments: dict[str, pa.Array]
    decided: bool = False


class Baseline(NamedTuple):
    """A baseline: what it picks, its scores of all choices, and its tolerance.

    ``scores`` is (scored rows, K). ``tolerance`` is how far above chance it may be.
    """

    name: str
    picks: str
    scores: Floats
    tolerance: float


def has_constant_choices(choices: Ints, most: int = 1 << 16) -> bool:
    """Return whether all rows choose among the same few answers.

    That is the case if at most ``MAX_SETS`` sets of choices occur (of at most ``most`` different
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
    """Fit every baseline on the train rows, and score other rows.

    Args:
        part: the visible parts of each row.
        answers: (rows, K) the answers to choose from, as codes 0 .. n - 1.
        gold: (rows,) the right one's column.
        train: the rows to fit on, at least one.
        scored: the rows to score.
    """
    from scipy.sparse import hstack  # Slow to import, and not needed by other parts of a build.

    fit = _Fit(answers, gold, train, scored)
    picks = (
        "the answer most often right in train in the same carrier sentence "
        "(the question without its arguments)"
    )
    yield Baseline("template only", picks, fit.by_label(part.carrier), MARGIN)
    lines, local = np.unique(part.question[np.concatenate([train, scored])], return_inverse=True)
    question = np.zeros(part.question.size, dtype=np.int64)
    question[np.concatenate([train, scored])] = local
    texts = {name: values.take(pa.array(lines)) for name, values in part.arguments.items()}
    features = {}
    for name, values in texts.items():
        frequency = zipf_frequencies(values.to_pylist())
        length = to_numpy(pc.utf8_length(values)).astype(np.float64)
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
        # Two ages together show who is older: that is the question itself, not a shortcut.
        bar = np.inf if part.decided else WORD_TOLERANCE
        yield from (baseline._replace(tolerance=bar) for baseline in (alike, whole))


@dataclass(frozen=True)
class _Fit:
    """Rows to fit on, rows to score, and the choices of both."""

    answers: Ints
    gold: Ints
    train: Ints
    scored: Ints

    @property
    def kinds(self) -> int:
        return int(self.answers.max()) + 1

    def by_label(self, label: Ints) -> Floats:
        """Score answers by their share of right ones in train where label and choices agree."""
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

        Features that occur in a single question get no weight, since they do not generalize.
        """
        from scipy.sparse import block_diag

        lines, local = np.unique(question[self.train], return_inverse=True)
        seen = features[lines]
        shared = np.flatnonzero(np.bincount(seen.indices, minlength=features.shape[1]) > 1)
        # As choices of a conditional logit: each pair of answer and question is a choice, whose
        # features are in the columns of that answer.
        pairs = block_diag([seen[:, shared]] * self.kinds, format="csr")
        shown = self.answers[self.train] * lines.size + local[:, None]
        fitted = fit_choice_model(pairs, shown, self.gold[self.train])
        weights = np.zeros((self.kinds, features.shape[1]))
        weights[:, shared] = fitted.reshape(self.kinds, shared.size)
        return weights


def _bins(values: Floats, train: Ints) -> Ints:
    """Label values by the decile of train that they fall into."""
    edges = np.quantile(values[train], np.arange(1, BINS) / BINS)
    return np.searchsorted(np.unique(edges), values, side="right").astype(np.int64)


def character_features(texts: pa.Array) -> csr_array:
    """Return features: n-grams of one to four characters, including a text's edges, and words.

    All in lower case. Values are scaled to a squared sum of 1, so that long texts weigh no more.
    """
    from scipy.sparse import csr_array

    codes, indptr = _characters(texts)
    owner = np.repeat(np.arange(len(texts), dtype=np.int64), np.diff(indptr))
    (words,) = tokenise(texts)
    # The highest bit distinguishes an n-gram from a word's number.
    keys = [words.ids.astype(np.uint64)]
    owners = [np.repeat(np.arange(len(texts), dtype=np.int64), words.lengths)]
    run = np.zeros(codes.size, dtype=np.uint64)
    for length in range(1, LONGEST_NGRAM + 1):
        with np.errstate(over="ignore"):
            run = (run[: codes.size - length + 1] + codes[length - 1 :]) * _FACTOR
        inside = owner[: run.size] == owner[length - 1 :]
        keys.append(run[inside] | np.uint64(1 << 63))
        owners.append(owner[: run.size][inside])
    _, column = np.unique(np.concatenate(keys), return_inverse=True)
    width = int(column.max(initial=-1)) + 1
    cell = np.unique(np.concatenate(owners) * max(width, 1) + column)
    count = np.bincount(cell // max(width, 1), minlength=len(texts))
    values = np.repeat(1.0 / np.sqrt(np.maximum(count, 1)), count)
    indptr = np.concatenate([[0], np.cumsum(count)])
    return csr_array((values, cell % max(width, 1), indptr), shape=(len(texts), width))


def numbers(*columns: Floats) -> csr_array:
    """Return numbers as feature columns, scaled like the others, and a column of ones."""
    from scipy.sparse import csr_array

    table = np.stack([np.ones_like(columns[0]), *(_scaled(column) for column in columns)], axis=1)
    return csr_array(table)


def shared_ends(left: pa.Array, right: pa.Array) -> tuple[Floats, Floats, Floats, Floats]:
    """Compare texts pairwise by their ends.

    Returns:
        The characters that each pair shares at its start and at its end; then, as 0 or 1, whether
        they are all of the shorter text (happy, unhappy).
    """
    ends = []
    lengths = np.minimum(*(np.diff(_characters(texts)[1]) - len(_EDGES) for texts in (left, right)))
    for backwards in (False, True):
        same = _grid(left, backwards) == _grid(right, backwards)
        shared = np.minimum(np.cumprod(same, axis=1).sum(axis=1), lengths)
        ends.append(shared.astype(np.float64))
    whole: list[Bools] = [shared == np.minimum(lengths, WIDEST) for shared in ends]
    return ends[0], ends[1], whole[0].astype(np.float64), whole[1].astype(np.float64)


def _scaled(column: Floats) -> Floats:
    spread = float(column.std())
    return (column - column.mean()) / spread if spread else np.zeros_like(column)


def _characters(texts: pa.Array) -> tuple[UInts, Ints]:
    """Return the lower-cased characters of all texts, each between its edges, and its bounds."""
    first, last = _EDGES
    framed = pc.binary_join_element_wise(first, pc.utf8_lower(texts), last, "")
    codes = np.frombuffer("".join(framed.to_pylist()).encode("utf-32-le"), dtype=np.uint32)
    lengths = to_numpy(pc.utf8_length(framed)).astype(np.int64)
    return codes.astype(np.uint64), np.concatenate([[0], np.cumsum(lengths)])


def _grid(texts: pa.Array, backwards: bool) -> UInts:
    """Return (texts, WIDEST) the characters of each text from its start or from its end."""
    codes, indptr = _characters(texts)
    lengths = np.minimum(np.diff(indptr) - len(_EDGES), WIDEST)
    line = np.repeat(np.arange(len(texts)), lengths)
    step = ragged_ranges(np.zeros(len(texts), dtype=np.int64), lengths)
    at = (indptr[1:] - 2)[line] - step if backwards else (indptr[:-1] + 1)[line] + step
    grid = np.zeros((len(texts), WIDEST), dtype=np.uint64)
    grid[line, step] = codes[at]
    return grid
