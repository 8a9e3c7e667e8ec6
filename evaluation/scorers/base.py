"""The scorer interface: items become token sequences, which become scores of choices.

A scorer decides what to feed to the model; how sequences are batched, resumed and spread over
devices is the same for all of them (:mod:`evaluation.scorers.batching`,
:mod:`evaluation.runs.scoring`). A :class:`ScorerEntry` declares it (docs/add-a-scorer.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from evaluation.items.types import Item, choice_starts
from evaluation.scorers.entry import ScorerEntry as ScorerEntry
from evaluation.scorers.entry import ScorerInputs as ScorerInputs
from kbprobe.arrays import Bools, Floats, Ints, ragged_ranges
from kbprobe.errors import UsageError

Tokens = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Encoded:
    """Token sequences to run, and the choices whose scores they determine.

    Choices are numbered through all items (:func:`evaluation.items.types.choice_starts`). Sequence
    ``s`` has slots ``slot_starts[s] .. slot_starts[s + 1]``; slot ``t`` is one number that the
    model gives, and a choice's score is the sum of the numbers of its slots. A sequence serves
    one question text only (all items that ask it), so that a part of the questions is a part of
    the sequences.

    Attributes:
        lengths: the number of tokens of each sequence, its cost in a batch, shape [sequences].
        item: an item that each sequence belongs to, shape [sequences].
        slot_starts: shape [sequences + 1].
        slot_choice: the choice that each slot adds to, shape [slots].
        choice_tokens: the number of tokens that each choice's score sums over, shape [choices].
        set_aside: items that are not scored, and why (see :func:`aside`).
        notes: counts worth reporting, such as items whose prompt was cut to fit. Counts of several
            parts are added up.
        answers: what the model wrote for each item in each order of its choices
            (:class:`evaluation.results.analyses.generated.Answer`); empty where it wrote nothing.
    """

    lengths: Ints
    item: Ints
    slot_starts: Ints
    slot_choice: Ints
    choice_tokens: Ints
    set_aside: Mapping[int, str] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)
    answers: Sequence[Sequence[Any]] = ()

    def slots(self, sequences: Ints) -> tuple[Ints, Ints]:
        """Return how many slots each of some sequences has, and the slots of all of them."""
        counts = np.diff(self.slot_starts)[sequences]
        return counts, ragged_ranges(self.slot_starts[sequences], counts)

    def sequence_of(self, slots: Ints) -> Ints:
        """Return the sequence that each of some slots belongs to."""
        sequences: Ints = np.searchsorted(self.slot_starts, slots, side="right") - 1
        return sequences


@dataclass(frozen=True, kw_only=True)
class EncodedTokens(Encoded):
    """Sequences with their tokens.

    Attributes:
        tokens: the ids of all sequences one after the other, shape [all tokens].
        token_starts: where each sequence starts in them, shape [sequences + 1].
    """

    tokens: Tokens
    token_starts: Ints

    def shown(self, sequences: Ints) -> Bools:
        """Return which positions of a batch hold tokens, not padding, shape [n, longest]."""
        lengths = self.lengths[sequences]
        return np.arange(lengths.max()) < lengths[:, None]

    def padded(self, sequences: Ints, values: Tokens, filling: int) -> Ints:
        """Lay out a batch of some sequences, padded on the right, shape [n, longest].

        Args:
            sequences: their numbers, shape [n].
            values: a number for each token of all sequences, such as its id.
            filling: what to pad with.
        """
        shown = self.shown(sequences)
        batch = np.full(shown.shape, filling, dtype=np.int64)
        here = ragged_ranges(self.token_starts[sequences], self.lengths[sequences])
        batch[shown] = values[here]
        return batch


def aside(kind: str, instance: str) -> str:
    """Return the reason why an item is set aside: the kind, which is counted, and the instance.

    >>> aside("a candidate of several pieces", "'penguins' (penguin ##s)")
    "a candidate of several pieces: 'penguins' (penguin ##s)"
    """
    shown = instance if len(instance) <= 80 else f"{instance[:77]}..."
    return f"{kind}: {shown}"


class Scorer(ABC):
    """Scores choices with one model.

    Attributes:
        divisible: whether items may be encoded and scored in parts, which limits memory and the
            cost of an interruption. False if notes count what recurs in several parts.
        score_kind: what a choice's score is, unless :meth:`score_name` is overridden.
    """

    divisible = True
    score_kind = ""

    @classmethod
    def from_inputs(cls, inputs: ScorerInputs) -> Self:
        """Make the scorer of an evaluation from a model, its tokenizer and the scorer's options."""
        make: Any = cls
        scorer: Self = make(inputs.model, inputs.tokenizer, **inputs.options.model_dump())
        return scorer

    @abstractmethod
    def encode(self, items: Sequence[Item]) -> Encoded:
        """Tokenize some items.

        Raises:
            UsageError: an item cannot be scored by this scorer; it names the item and the remedy.
        """

    def encode_parts(
        self, parts: Sequence[Sequence[Item]], score_name: str | None = None
    ) -> tuple[str, Iterator[Encoded]]:
        """Tokenize parts of the items, one at a time.

        Scorers override this if the meaning of scores depends on all items together.

        Args:
            parts: at least one; items that ask the same question are in the same part.
            score_name: what scores are, if other parts have already determined it.

        Returns:
            What a choice's score is, and the parts as :meth:`encode` gives them.
        """
        return score_name or self.score_name(parts[0]), map(self.encode, parts)

    @abstractmethod
    def score(self, encoded: Any, sequences: Ints) -> Floats:
        """Run some sequences as one batch, padded to the longest.

        Args:
            encoded: what :meth:`encode` returned.
            sequences: their numbers, shape [n].

        Returns:
            The numbers of all their slots, sequence after sequence, shape [slots of these].
        """

    def score_name(self, items: Sequence[Item]) -> str:
        """Return what a choice's score is: ``logit``, or ``log-likelihood`` (nats)."""
        return self.score_kind


class ReadyScorer(NamedTuple):
    """A scorer of a loaded model, and how many parameters the model has."""

    scorer: Scorer
    parameters: int


def row_sequences(items: Sequence[Item], lengths: Ints, choice_tokens: Ints) -> dict[str, Any]:
    """Return arguments of :class:`Encoded` that make each item a sequence with a slot per choice.

    Args:
        items: the items.
        lengths: the cost of each item in a batch, shape [items].
        choice_tokens: the number of tokens of each choice, shape [choices].
    """
    starts = choice_starts(items)
    return {
        "lengths": np.maximum(lengths, 1),
        "item": np.arange(len(items)),
        "slot_starts": starts,
        "slot_choice": np.arange(starts[-1]),
        "choice_tokens": choice_tokens,
    }


@dataclass(frozen=True, kw_only=True)
class ScoredRows(Encoded):
    """Rows whose scores have already been computed.

    Attributes:
        scores: the score of each choice, shape [choices].
    """

    scores: Floats


class RowScorer(Scorer):
    """Scores choices with a cheap function of their rows, computed for all rows at once."""

    divisible = False

    @abstractmethod
    def choice_scores(self, items: Sequence[Item]) -> tuple[Floats, Mapping[str, int]]:
        """Return the score of each choice, item after item, and notes (:attr:`Encoded.notes`)."""

    def encode(self, items: Sequence[Item]) -> ScoredRows:
        """Score all items; see :meth:`Scorer.encode`.

        Raises:
            UsageError: the scorer did not return a score for each choice, and notes.
        """
        scored, choices = self.choice_scores(items), int(choice_starts(items)[-1])
        if not (
            isinstance(scored, tuple) and len(scored) == 2 and np.shape(scored[0]) == (choices,)
        ):
            raise UsageError(
                f"{type(self).__name__}.choice_scores has to return an array with the score of "
                f"each choice of each item (here {choices:,}), and a mapping of notes, such as {{}}"
            )
        scores, notes = np.asarray(scored[0], dtype=np.float64), scored[1]
        ones = np.ones(len(scores), dtype=np.int64)
        rows = row_sequences(items, ones[: len(items)], ones)
        return ScoredRows(**rows, notes=notes, scores=scores)

    def score(self, encoded: Any, sequences: Ints) -> Floats:
        """Return the scores of the choices of some rows."""
        scores: Floats = encoded.scores[encoded.slots(sequences)[1]]
        return scores
