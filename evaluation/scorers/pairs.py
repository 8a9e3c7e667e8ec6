"""Distinct pairs of question and choice: the sequences of scorers that read them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.items.types import Item, choice_starts
from kbprobe.arrays import Ints, run_starts


@dataclass(frozen=True)
class Pairs:
    """The distinct pairs of some items, in the order of the items.

    Items that share a question and a choice share the pair.

    Attributes:
        of_choice: the pair of each choice of each item, shape [choices].
        item: the first item that each pair belongs to, shape [pairs].
        choices: the text of each pair's choice.
    """

    of_choice: Ints
    item: Ints
    choices: list[str]

    @classmethod
    def of(cls, items: Sequence[Item]) -> Pairs:
        """Number the pairs of some items."""
        item_of_choice = np.repeat(np.arange(len(items)), np.diff(choice_starts(items)))
        keys = [(item.setup, item.question, text) for item in items for text in item.choices]
        number_of = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        of_choice = np.array([number_of[key] for key in keys], dtype=np.int64)
        _, first = np.unique(of_choice, return_index=True)
        return cls(of_choice, item_of_choice[first], [text for _, _, text in number_of])

    @property
    def slot_starts(self) -> Ints:
        """Where each pair's slots start (:class:`evaluation.scorers.base.Encoded`)."""
        return run_starts(np.bincount(self.of_choice, minlength=len(self.choices)))

    @property
    def slot_choice(self) -> Ints:
        """The choice of each slot."""
        return np.argsort(self.of_choice, kind="stable")
