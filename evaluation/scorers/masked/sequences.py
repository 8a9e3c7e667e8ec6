"""The sequences a masked LM is run on: contexts, and what stands in their gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from evaluation.scorers.base import Encoded
from evaluation.scorers.masked.pieces import Filled, Gap
from kbprobe.arrays import Ints, run_starts


@dataclass(frozen=True, kw_only=True)
class MaskedEncoded(Encoded):
    """Sequences as a context and a middle that goes into it.

    Texts are long and their middles short, so contexts are kept once.

    Attributes:
        context: the context of each sequence, shape [sequences].
        context_ids: token ids of all contexts, one after another; context ``c`` has
            ``context_starts[c] .. context_starts[c + 1]``, special tokens included.
        context_starts: shape [contexts + 1].
        context_left: tokens of each context before the middle, shape [contexts].
        middle_ids: token ids of all middles; sequence ``s`` has
            ``middle_starts[s] .. middle_starts[s + 1]``.
        middle_starts: shape [sequences + 1].
        position: the mask that each sequence is read at, shape [sequences].
        slot_piece: the token id that each slot asks for, shape [slots].
        log_probs: whether slots are log-probabilities (nats) and not logits.
    """

    context: Ints
    context_ids: Ints
    context_starts: Ints
    context_left: Ints
    middle_ids: Ints
    middle_starts: Ints
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
        middles = [middle for _, middle in self.numbers]
        context = _ints(number for number, _ in self.numbers)
        left = _ints(len(key[1]) for key in self.contexts)
        context_starts = run_starts(len(key[1]) + len(key[2]) for key in self.contexts)
        middle_starts = run_starts(map(len, middles))
        choice_tokens = np.zeros(choices, dtype=np.int64)
        choice_tokens[_ints(self.tokens)] = _ints(self.tokens.values())
        return MaskedEncoded(
            lengths=np.diff(context_starts)[context] + np.diff(middle_starts),
            item=_ints(self.item),
            slot_starts=run_starts(map(len, self.slots)),
            slot_choice=_ints(choice for choice, _ in chain.from_iterable(self.slots)),
            choice_tokens=choice_tokens,
            set_aside=set_aside,
            notes=notes,
            context=context,
            context_ids=_ints(
                chain.from_iterable(left + right for _, left, right in self.contexts)
            ),
            context_starts=context_starts,
            context_left=left,
            middle_ids=_ints(chain.from_iterable(middles)),
            middle_starts=middle_starts,
            position=left[context] + _ints(middle.index(self.mask) for middle in middles),
            slot_piece=_ints(piece for _, piece in chain.from_iterable(self.slots)),
            log_probs=log_probs,
        )


def _ints(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, dtype=np.int64)
