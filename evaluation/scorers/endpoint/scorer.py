"""Scores choices with a causal model behind an endpoint, from the log-probabilities of prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Self

import numpy as np

from evaluation.endpoints.answers import Scored, TokenPair, divided
from evaluation.endpoints.served import SentPrompts
from evaluation.items.types import Item, choice_starts
from evaluation.scorers.base import Encoded, Scorer, ScorerInputs, aside
from evaluation.scorers.batching import longest_first
from evaluation.scorers.causal.prompts import Prompt
from kbprobe.arrays import Floats, Ints, run_starts

if TYPE_CHECKING:
    from evaluation.endpoints.endpoint import Endpoint


@dataclass(frozen=True, kw_only=True)
class EndpointEncoded(Encoded):
    """Distinct prompts.

    What is known only from the answers is filled in when they arrive
    (:meth:`EndpointScorer.score`): ``lengths``, estimates until then, ``choice_tokens``,
    ``set_aside`` and ``notes``.

    Attributes:
        pairs: what is sent, shape [sequences].
        sent: sends them, and gives the answers.
        slot_weight: the weight of a slot's log-likelihood in its choice's score, shape [slots].
        item_of: the item of each choice, shape [choices].
        token_means: ``choice_tokens`` as the mean over prompts so far, shape [choices].
        set_aside: as in :class:`Encoded`, like ``notes``.
        straddled: items with a token that spans the end of a context.
    """

    pairs: Sequence[TokenPair]
    sent: SentPrompts[TokenPair, Scored]
    slot_weight: Floats
    item_of: Ints
    token_means: Floats
    set_aside: dict[int, str]
    notes: dict[str, int]
    straddled: set[int]


class EndpointScorer(Scorer):
    """Scores choices with a causal model behind an endpoint.

    A choice's score is that of :class:`~evaluation.scorers.causal.scorer.CausalScorer`: the
    log-likelihood of its continuation (nats, summed over its tokens), or the mean of it over the
    rotations of a lettered prompt; with a neutral text, minus its log-likelihood after that.
    A prompt is sent once for all items that share it, and never again once it is answered.

    An item is set aside if a choice has no token to score or contains an unknown token, or if its
    prompt is longer than the endpoint allows: nothing is cut.
    """

    divisible = False  # Answers are kept one by one, and all prompts are counted beforehand.

    def __init__(
        self,
        endpoint: Endpoint,
        prompt: Prompt | None = None,
        *,
        start: str = "",
    ) -> None:
        """Set endpoint, prompt, and the text before a continuation that has no context."""
        self._endpoint, self._prompt, self._start = endpoint, prompt or Prompt(), start

    @classmethod
    def from_inputs(cls, inputs: ScorerInputs) -> Self:
        """Make the scorer of an evaluation, whose options are ``EndpointOptions``."""
        options = inputs.options
        prompt = Prompt(options, inputs.examples, inputs.seed)
        return cls(inputs.model, prompt, start=options.start)

    def encode(self, items: Sequence[Item]) -> EndpointEncoded:
        """Render all prompts, and report how many are to be sent.

        Raises:
            UsageError: an item does not fit the prompt.
        """
        starts = choice_starts(items)
        item_of = np.repeat(np.arange(len(items)), np.diff(starts))
        slots: dict[TokenPair, list[tuple[int, float]]] = {}
        for item, first in zip(items, starts.tolist(), strict=False):
            for (context, continuations), weight in self._prompt.weighted(item):
                for choice, continuation in enumerate(continuations, start=first):
                    pair = divided(context, continuation)
                    if not pair.context and self._start:
                        pair = TokenPair(self._start, pair.continuation)
                    slots.setdefault(pair, []).append((choice, weight))
        flat = [slot for own in slots.values() for slot in own]
        endpoint, pairs, text_of = self._endpoint, list(slots), attrgetter("text")
        estimates = [endpoint.estimated_tokens(pair.text) for pair in pairs]
        lengths = np.array(estimates, dtype=np.int64)
        order = [pairs[number] for number in longest_first(lengths)]
        sent = SentPrompts(endpoint, order, endpoint.known, endpoint.scores, text_of)
        todo = [endpoint.estimated_tokens(pair.text) for pair in sent.waiting]
        endpoint.announce(todo, len(pairs) - len(todo))
        return EndpointEncoded(
            lengths=lengths,
            item=np.array([item_of[own[0][0]] for own in slots.values()], dtype=np.int64),
            slot_starts=run_starts([len(own) for own in slots.values()]),
            slot_choice=np.array([choice for choice, _ in flat], dtype=np.int64),
            choice_tokens=np.zeros(starts[-1], dtype=np.int64),
            pairs=pairs,
            sent=sent,
            slot_weight=np.array([weight for _, weight in flat]),
            item_of=item_of,
            token_means=np.zeros(starts[-1]),
            set_aside={},
            notes={},
            straddled=set(),
        )

    def score(self, encoded: EndpointEncoded, sequences: Ints) -> Floats:
        """Return the weighted log-likelihoods of some prompts' slots; only new prompts are sent.

        Raises:
            UsageError: nothing precedes a choice, and the endpoint adds no start token.
            KbprobeError: the endpoint returns no usable answers, or the budget is spent.
        """
        answers = encoded.sent.answers(encoded.pairs[number] for number in sequences)
        counts, slots = encoded.slots(sequences)
        self._fill_in(encoded, sequences, answers)
        values = np.repeat([scored.log_likelihood for scored in answers], counts)
        scores: Floats = values * encoded.slot_weight[slots]
        return scores

    def score_name(self, items: Sequence[Item]) -> str:
        """Return what a choice's score is."""
        return self._prompt.score_name

    def _fill_in(
        self, encoded: EndpointEncoded, sequences: Ints, answers: Sequence[Scored]
    ) -> None:
        """Record what the answers contain in addition to log-likelihoods."""
        for sequence, scored in zip(sequences.tolist(), answers, strict=True):
            first, stop = encoded.slot_starts[sequence : sequence + 2].tolist()
            choices = encoded.slot_choice[first:stop].tolist()
            if scored.prompt_tokens:
                encoded.lengths[sequence] = scored.prompt_tokens
            for choice, weight in zip(choices, encoded.slot_weight[first:stop], strict=True):
                if weight > 0:
                    encoded.token_means[choice] += weight * scored.tokens
                item = int(encoded.item_of[choice])
                if scored.straddles:
                    encoded.straddled.add(item)
                    encoded.notes["straddled"] = len(encoded.straddled)
                if scored.obstacle is not None:
                    shown = repr(encoded.pairs[sequence].continuation.strip())
                    encoded.set_aside.setdefault(item, aside(scored.obstacle, shown))
            encoded.choice_tokens[choices] = np.rint(encoded.token_means[choices])
