"""Contextual calibration: how much likelier a choice is after its question than without content.

After Zhao, Wallace, Feng, Klein & Singh, "Calibrate Before Use" (ICML 2021, section 5). A model
favours some answers whatever the question. Its probabilities of a row's choices are divided by
their mean probabilities after several content-free texts.

PMI (:data:`evaluation.scorers.entries.PMI`) subtracts one log-likelihood. With a single
content-free text, the choices are ranked as by PMI; with several, the mean is over probabilities,
each normalised over the row's choices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from evaluation.items.types import Item, choice_starts
from evaluation.scorers.base import Encoded, Scorer, ScorerInputs
from evaluation.scorers.batching import BackOff
from evaluation.scorers.causal.prompts import Prompt
from evaluation.scorers.masked.scorer import MaskedScorer
from evaluation.scorers.seq2seq.scorer import likelihood_scorer
from kbprobe.arrays import Floats, Ints
from kbprobe.format.setups import CLOZE, MASK

_BATCH_TOKENS = 4096
"""Number of padded tokens in a batch of content-free texts, which are short."""


@dataclass(frozen=True, kw_only=True)
class CalibratedEncoded(Encoded):
    """Sequences of another scorer, and what is added to the numbers of their slots.

    Attributes:
        inner: the sequences of the other scorer.
        added: shape [slots]: minus the log of a choice's content-free probability in its first
            slot, 0 in the others.
    """

    inner: Encoded
    added: Floats


class CalibratedScorer(Scorer):
    """Scores choices with another scorer, minus the log of their content-free probabilities.

    A choice is scored after the content-free texts only once, however many rows show it. A prompt's
    examples also precede these texts, drawn as for a question with that text. For a lettered
    prompt in one order, the letters are calibrated: all choices are shown as the content-free text.
    If each choice takes each letter, that changes nothing.
    """

    def __init__(self, inner: Scorer, texts: Sequence[str], prompt: Prompt | None = None) -> None:
        """Set the scorer, the content-free texts, and the scorer's prompt, if it has one."""
        self._inner, self._texts, self._prompt = inner, texts, prompt
        self._letters = prompt is not None and prompt.options.letters
        self._known: dict[tuple[str, str, str], Floats] = {}
        self._back_off = BackOff()
        self.divisible = inner.divisible

    def encode(self, items: Sequence[Item]) -> Encoded:
        """Tokenize the items, and score their choices without content."""
        _, parts = self.encode_parts([items])
        return next(parts)

    def encode_parts(
        self, parts: Sequence[Sequence[Item]], score_name: str | None = None
    ) -> tuple[str, Iterator[Encoded]]:
        """Tokenize parts of the items; see :meth:`Scorer.encode_parts`."""
        known = score_name and score_name.removeprefix("calibrated ")
        name, coming = self._inner.encode_parts(parts, known)
        encoded = (
            self._calibrated(items, inner, name) for items, inner in zip(parts, coming, strict=True)
        )
        return f"calibrated {name}", encoded

    def score(self, encoded: CalibratedEncoded, sequences: Any) -> Floats:
        """Run some sequences as one batch, and calibrate."""
        _, slots = encoded.slots(sequences)
        scores: Floats = self._inner.score(encoded.inner, sequences) + encoded.added[slots]
        return scores

    def score_name(self, items: Sequence[Item]) -> str:
        """Return what a choice's score is."""
        return f"calibrated {self._inner.score_name(items)}"

    def _calibrated(
        self, items: Sequence[Item], inner: Encoded, score_name: str
    ) -> CalibratedEncoded:
        obstacles = self._learn(items, inner.set_aside, score_name)
        starts, set_aside = choice_starts(items), dict(inner.set_aside)
        without = np.zeros((int(starts[-1]), len(dict.fromkeys(self._texts))))
        for number, item in enumerate(items):
            if number in set_aside:
                continue
            keys = [self._key(item, choice) for choice in range(len(item.choices))]
            if lacking := [key for key in keys if key not in self._known]:
                set_aside[number] = obstacles[lacking[0]]
            else:
                without[starts[number] : starts[number + 1]] = [self._known[key] for key in keys]
        log_share = _mean_log_share(without, starts)
        added = np.zeros(len(inner.slot_choice))
        choices, first = np.unique(inner.slot_choice, return_index=True)
        added[first] = -log_share[choices]
        shared = {one.name: getattr(inner, one.name) for one in fields(Encoded)}
        return CalibratedEncoded(**{**shared, "set_aside": set_aside}, inner=inner, added=added)

    def _key(self, item: Item, choice: int) -> tuple[str, str, str]:
        """Return what a choice's content-free score depends on."""
        if self._prompt is None or not self._letters:
            return item.setup, "", item.choices[choice]
        size, order = len(item.choices), self._prompt.order
        place = choice if order is None else order.places(item.id, size).index(choice)
        return item.setup, str(size), str(place)

    def _learn(
        self, items: Sequence[Item], left_out: Mapping[int, str], score_name: str
    ) -> dict[tuple[str, str, str], str]:
        """Score new choices after each content-free text; return why some cannot be scored."""
        asked: dict[tuple[str, str, str], tuple[Item, int]] = {}
        for number, item in enumerate(items):
            if number not in left_out:
                for choice in range(len(item.choices)):
                    if (key := self._key(item, choice)) not in self._known:
                        asked.setdefault(key, (item, choice))
        if not asked:
            return {}
        bare = [
            self._bare(text, item, choice)
            for text in dict.fromkeys(self._texts)
            for item, choice in asked.values()
        ]
        _, coming = self._inner.encode_parts([bare], score_name)
        encoded = next(coming)
        scores = np.zeros(int(choice_starts(bare)[-1]))
        score = partial(self._inner.score, encoded)
        for batch, values in self._back_off.batches(score, encoded.lengths, _BATCH_TOKENS):
            np.add.at(scores, encoded.slot_choice[encoded.slots(batch)[1]], values)
        starts = choice_starts(bare)[:-1]
        obstacles = {}
        for at, (key, (_, choice)) in enumerate(asked.items()):
            rows = np.arange(at, len(bare), len(asked))
            aside = [encoded.set_aside[row] for row in rows.tolist() if row in encoded.set_aside]
            if aside:
                obstacles[key] = f"without content, {aside[0]}"
            else:
                self._known[key] = scores[starts[rows] + (choice if self._letters else 0)]
        return obstacles

    def _bare(self, text: str, item: Item, choice: int) -> Item:
        if item.setup == CLOZE and MASK not in text:
            text = f"{text} {MASK}".strip()
        shown = (text,) * len(item.choices) if self._letters else (item.choices[choice],)
        return replace(item, question=text, choices=shown, answer=0)


def _mean_log_share(scores: Floats, starts: Ints) -> Floats:
    """Return the log of each choice's mean share of its row.

    Args:
        scores: the score of each choice after each text, in nats, shape [choices, texts].
        starts: where the choices of each row start, shape [rows + 1].
    """
    total = np.logaddexp.reduceat(scores, starts[:-1], axis=0)
    shares = scores - np.repeat(total, np.diff(starts), axis=0)
    return np.asarray(np.logaddexp.reduce(shares, axis=1) - np.log(scores.shape[1]))


def calibrated(inputs: ScorerInputs) -> CalibratedScorer:
    """Make the scorer of a model that gives log-likelihoods."""
    inner = likelihood_scorer(inputs)
    return CalibratedScorer(inner, inputs.options.content_free, inner.prompt)


def masked_calibrated(inputs: ScorerInputs) -> CalibratedScorer:
    """Make the scorer of a masked LM."""
    given = inputs.options.model_dump()
    texts = given.pop("content_free")
    return CalibratedScorer(MaskedScorer(inputs.model, inputs.tokenizer, **given), texts)
