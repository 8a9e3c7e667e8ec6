"""Orders in which the choices of a question are shown.

An order is written either as the letters of a question's choices, in the order in which to show
them (``CAB``: the third choice first), or as a number. A number denotes an order of each question
drawn by a hash of its id: the same one in each config and wording of a row.
"""

from __future__ import annotations

import hashlib
import math
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from kbprobe.errors import UsageError

LETTERS = string.ascii_uppercase
"""The letters that name choices in the order shown."""

MAX_NUMBER = (1 << 63) - 1


@dataclass(frozen=True)
class Order:
    """One order of the choices of every question, as written: letters or a number."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an order.

        >>> Order.parse("CAB").places("q1", 3)
        (2, 0, 1)

        Raises:
            ValueError: it is neither a number nor the first letters of the alphabet, each once.
        """
        number = text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_NUMBER))
        if number and int(text) <= MAX_NUMBER:
            return cls(str(int(text)))
        if len(text) > 1 and sorted(text) == list(LETTERS[: len(text)]):
            return cls(text)
        raise ValueError(
            "must be a number, such as 3, or the letters of all choices in the order to show "
            "them, such as CAB"
        )

    def places(self, name: str, size: int) -> tuple[int, ...]:
        """Return the choice at each position of the question with this id.

        The orders of ``size`` successive numbers from a multiple of ``size`` are the rotations of
        one drawn order: among them each choice is in each place once.

        Raises:
            UsageError: the letters are of another number of choices.
        """
        if not self.text.isdecimal():
            if size != len(self.text):
                raise UsageError(
                    f"item {name} has {size} choices and the order {self.text} {len(self.text)}: "
                    "where questions differ in this, give a number as --order, such as --order 0"
                )
            return tuple(LETTERS.index(letter) for letter in self.text)
        block, turn = divmod(int(self.text), size)
        drawn = drawn_permutation(size, "order of choices", str(block), name)
        return (*drawn[turn:], *drawn[:turn])


def drawn_permutation(size: int, *keys: str) -> tuple[int, ...]:
    """Draw a permutation of ``0 .. size - 1`` by a hash of some texts; each is equally likely.

    >>> sorted(drawn_permutation(5, "some", "keys"))
    [0, 1, 2, 3, 4]
    """
    text = "\0".join(keys).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=32).digest()
    rank = int.from_bytes(digest, "little") % math.factorial(size)
    left, drawn = list(range(size)), []
    for remaining in range(size, 0, -1):
        rank, at = divmod(rank, remaining)
        drawn.append(left.pop(at))
    return tuple(drawn)


def rotations(size: int) -> Sequence[tuple[int, ...]]:
    """Return the choice at each position, for every rotation of a question's choices.

    >>> rotations(3)
    [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    """
    return [tuple((place + turn) % size for place in range(size)) for turn in range(size)]


def several_orders(name: str, size: int, count: int | None) -> Sequence[tuple[int, ...]]:
    """Return the choice at each position, for several orders of a question.

    These are the rotations of its choices, then the rotations of orders drawn for it; fewer orders
    are a prefix of more. If ``count`` is None, they are the rotations of its choices alone, in
    which each choice is in each position once.

    >>> several_orders("q1", 3, 2), len(several_orders("q1", 3, 5))
    ([(0, 1, 2), (1, 2, 0)], 5)
    """
    further = range(size, size if count is None else count)
    return [*rotations(size)[:count], *(Order(str(one)).places(name, size) for one in further)]
