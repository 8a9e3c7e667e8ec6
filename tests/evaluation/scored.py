"""Questions drawn for scorers of language models, and all their choices scored as by the engine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation.items.types import Item, choice_starts
from evaluation.scorers.base import Encoded, Floats
from evaluation.scorers.batching import cut_batches


def questions(words: Sequence[str], rows: int, seed: int = 0, longest: int = 8) -> list[Item]:
    """Questions, some asked more than once, with choices that begin alike or are one word."""
    draw = random.Random(seed)
    stems = [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(rows // 2 + 1)]
    items = []
    for row in range(rows):
        choices = [" ".join(draw.choices(words, k=draw.randint(1, longest))) for _ in range(4)]
        choices[1] = choices[0] + " " + choices[1] if row % 3 else choices[0]
        items.append(Item(f"row-{row}", "mc_qa", draw.choice(stems), tuple(choices), 0))
    return items


def score(
    scorer: Any, items: Sequence[Item], budget: int = 300, seed: int | None = None
) -> tuple[Floats, Encoded]:
    """Score all choices as the engine does, in batches of the budget or in the order of a seed."""
    encoded = scorer.encode(items)
    scores = np.zeros(int(choice_starts(items)[-1]))
    batches = cut_batches(encoded.lengths, budget)
    if seed is not None:
        batches = [np.random.default_rng(seed).permutation(len(encoded.lengths))]
    for batch in batches:
        slots = encoded.slot_choice[encoded.slots(batch)[1]]
        np.add.at(scores, slots, scorer.score(encoded, batch))
    return scores, encoded
