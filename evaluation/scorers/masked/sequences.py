"""The sequences a masked LM is run on: contexts, and what stands in their gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from evaluation.scorers.base import EncodedTokens
from evaluation.scorers.masked.pieces import Filled, Gap
from kbprobe.arrays import Ints, run_starts


@dataclass(frozen=True, kw_only=True)
class MaskedEncoded(EncodedTokens):
    """Sequences of a masked LM.

    Attributes:
        position: the mask that each sequence is read at, shape [sequences].
        slot_piece: the token id that each slot asks for, shape [slots].
        log_probs: whether slots are log-probabilities (nats) and not logits.
    """

    position: Ints
    slot_piece: Ints
    log_probs: bool


@dataclass
class MaskedSequences:
    """Collects the sequences of all items, each once.

    Attributes:
        mask: token id of the mask.
    """

    mask: int
    contexts: dict[tuple[Gap, tuple[int, ...], tuple[int, ...]], int] = field(default_factory=dict)
    numbers: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)
    item: list[int] = field(default_factory=list)
    slots: list[list[tuple[int, int]]] = field(default_factory=list)
    tokens: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.item)

    def add(self, item: int, gap: Gap, choice: int, filled: Filled) -> None:
        """Add what a choice needs: a sequence for each of its pieces.

        Contexts of different texts are kept apart even where their tokens agree, since a sequence
        is to serve one question text only.
        """
        key = (gap, filled.left, filled.right)
        context = self.contexts.setdefault(key, len(self.contexts))
        self.tokens[choice] = len(filled.pieces)
        for piece, middle in zip(filled.pieces, self._masked(filled), strict=True):
            number = self.numbers.setdefault((context, middle), len(self.numbers))
            if number == len(self.item):
                self.item.append(item)
                self.slots.append([])
            self.slots[number].append((choice, piece))

    def _masked(self, filled: Filled) -> Iterator[tuple[int, ...]]:
        """Mask each piece in turn, together with the pieces to its right in its word."""
        pieces, words = filled.pieces, filled.words
        end = 0
        for at in range(len(pieces)):
            if at == end:
                while end < len(pieces) and words[end] == words[at]:
                    end += 1
            yield (*pieces[:at], *(self.mask,) * (end - at), *pieces[end:])

    def encoded(
        self, choices: int, log_probs: bool, set_aside: dict[int, str], notes: dict[str, int]
    ) -> MaskedEncoded:
        """Lay everything out as arrays."""
        contexts = list(self.contexts)
        rows = [(*contexts[number][1:], middle) for number, middle in self.numbers]
        lengths = _ints(sum(map(len, row)) for row in rows)
        tokens = chain.from_iterable(chain(left, middle, right) for left, right, middle in rows)
        choice_tokens = np.zeros(choices, dtype=np.int64)
        choice_tokens[_ints(self.tokens)] = _ints(self.tokens.values())
        slots = list(chain.from_iterable(self.slots))
        return MaskedEncoded(
            lengths=lengths,
            item=_ints(self.item),
            slot_starts=run_starts(map(len, self.slots)),
            slot_choice=_ints(choice for choice, _ in slots),
            choice_tokens=choice_tokens,
            set_aside=set_aside,
            notes=notes,
            tokens=np.fromiter(tokens, dtype=np.int32),
            token_starts=run_starts(lengths),
            position=_ints(len(left) + middle.index(self.mask) for left, _, middle in rows),
            slot_piece=_ints(piece for _, piece in slots),
            log_probs=log_probs,
        )


def _ints(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, dtype=np.int64)
