"""The input and the results of adversaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.audit import FEW_ROWS, FEWEST_ROWS, MARGIN, Estimate, commonest, credit_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Verdict = Literal["exceeds", "ok", "few rows", "reported"]
"""``reported``: not judged, since it uses the question, or the way in which rows are balanced."""


@dataclass(frozen=True)
class Rows:
    """The rows that adversaries are trained on and those that they are scored on.

    Row arrays hold the whole train split first and the whole scored split after it.

    Attributes:
        texts: the distinct texts of choices.
        choices: (rows, K) index into ``texts``; -1 where a row has fewer than K choices.
        answer: (rows,) the gold's column.
        nodes: (rows, K) what stands in ``choice_nodes``; "" where there is nothing.
        question, cluster: (rows,) integer labels; ``questions`` are the distinct questions' texts.
        family: (rows,) names of the distractor families.
        arguments: name -> (rows,) texts, "" where a row has no such argument.
        sentences: (rows,) the sentences to be judged, where rows ask whether one is acceptable;
            else empty.
        natural: whether the answers are left unbalanced, as annotators found them.
        concept: (rows,) integer labels.
        ids: (rows,) the rows' ids.
        place: (rows,) the row's number within its split.
        is_train: (rows,) whether it is a row of the train split.
        train, scored: rows to train on and to score; without a train split, none to train on.
        word_list: the language of the texts, as wordfreq names it.
        wordnet: the WordNet that nodes are of, as ``kb-cache list`` names it; "" for none.
    """

    texts: list[str]
    choices: Ints
    answer: Ints
    nodes: npt.NDArray[np.str_]
    question: Ints
    questions: list[str]
    cluster: Ints
    family: npt.NDArray[np.str_]
    arguments: Mapping[str, list[str]]
    sentences: list[str]
    natural: bool
    concept: Ints
    ids: list[str]
    place: Ints
    is_train: Bools
    train: Ints
    scored: Ints
    word_list: str
    wordnet: str

    @cached_property
    def shown(self) -> Bools:
        """(rows, K) whether there is a choice."""
        return self.choices >= 0

    @cached_property
    def is_gold(self) -> Bools:
        """(rows, K) whether the choice is the gold."""
        return np.asarray(np.arange(self.choices.shape[1]) == self.answer[:, None])

    @cached_property
    def gold(self) -> Ints:
        """(rows,) index of the gold's text."""
        return self.choices[np.arange(self.answer.size), self.answer]

    @cached_property
    def used(self) -> Ints:
        """The rows to train on, then those to score."""
        return np.concatenate([self.train, self.scored])

    @cached_property
    def used_choices(self) -> tuple[list[str], Ints]:
        """The distinct texts that the used rows show, and (used rows, K) index into them or -1."""
        codes = self.choices[self.used]
        found, local = np.unique(codes[codes >= 0], return_inverse=True)
        local_codes = np.full(codes.shape, -1)
        local_codes[codes >= 0] = local
        return [self.texts[code] for code in found], local_codes

    @cached_property
    def character_ngrams(self) -> csr_matrix:
        """TF-IDF of two to four characters within words, of the texts of `used_choices`."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        return TfidfVectorizer(
            analyzer="char_wb", ngram_range=(2, 4), max_features=30_000, dtype=np.float32
        ).fit_transform(self.used_choices[0])


class Guesses(NamedTuple):
    """An adversary's scores of every choice of the scored rows, (scored rows, K); the best wins.

    Attributes:
        name, scores: of the adversary.
        trained: whether it was fitted on train.
        judged: whether it must not exceed chance; else it is reported.
    """

    name: str
    scores: Floats
    trained: bool = True
    judged: bool = True


class Outcome(NamedTuple):
    """How often an adversary was right on a config.

    ``low`` and ``high`` bound a 95% interval whose units are clusters.
    """

    config: str
    adversary: str
    accuracy: float
    low: float
    high: float
    chance: float
    rows: int
    verdict: Verdict
    remedy: str


def outcomes(
    config: str, guesses: Guesses, rows: Rows, remedy: str, adversaries: int
) -> Iterator[Outcome]:
    """Score an adversary on all rows, and yield each family in which it exceeds chance.

    ``adversaries`` is how many are judged on every family. The intervals of families are corrected
    for the number of tests, since a few of so many would exceed chance by luck. If n choices tie
    for the best, each counts 1 / n.
    """
    shown = rows.shown[rows.scored]
    credit = credit_of(np.where(shown, guesses.scores, -np.inf), rows.answer[rows.scored])
    family = rows.family[rows.scored]
    every = np.ones(credit.size, dtype=np.bool_)
    yield _outcome(config, guesses, credit, shown, rows, every, remedy)
    names = np.unique(family)
    for name in names if names.size > 1 else ():
        named = guesses._replace(name=f"{guesses.name}, {name} rows")
        tests = names.size * max(adversaries, 1)
        found = _outcome(config, named, credit, shown, rows, family == name, remedy, tests)
        if found.verdict == "exceeds":
            yield found


def _outcome(
    config: str,
    guesses: Guesses,
    credit: Floats,
    shown: Bools,
    rows: Rows,
    some: Bools,
    remedy: str,
    tests: int = 1,
) -> Outcome:
    """Estimate the accuracy on some of the scored rows, and compare it with chance.

    The interval is widened so that ``tests`` of them hold simultaneously. Where
    answers are left unbalanced, always giving the most common one counts as chance.
    """
    found = Estimate.of(credit[some], rows.cluster[rows.scored][some], tests)
    chance = float((1 / shown[some].sum(axis=1)).mean())
    if rows.natural:
        chance = max(chance, commonest(rows.gold[rows.scored[some]]))
    fewest = min(found.rows, rows.train.size) if guesses.trained else found.rows
    verdict: Verdict = "ok"
    if not guesses.judged:
        verdict = "reported"
    elif fewest < FEWEST_ROWS:
        verdict = FEW_ROWS
    elif found.against_bar(chance, MARGIN, chance) == "high":
        verdict = "exceeds"
    remedy = remedy if verdict == "exceeds" else ""
    accuracy, low, high, size = found
    return Outcome(config, guesses.name, accuracy, low, high, chance, size, verdict, remedy)
