"""Questions to score, one by one and as Arrow columns: a million take a hundred megabytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from kbprobe.arrays import Ints
from kbprobe.columns import plain, single_chunk, to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 1 << 13
"""Number of rows held at a time as Python objects, or as bytes to hash."""


@dataclass(frozen=True, slots=True)
class Item:
    """One question: its text, its choices in the order shown, and the index of the gold.

    In an ``mc_mlm`` item ``question`` contains exactly one ``[MASK]``, which each choice fills; in
    an ``mc_qa`` item each choice follows the question. In an ``acceptability`` item it is the
    sentence to judge, in an ``nli`` item the hypothesis, and ``premise`` is its premise.
    """

    id: str
    setup: str
    question: str
    choices: tuple[str, ...]
    answer: int
    premise: str = ""


@dataclass(frozen=True, eq=False)
class ItemColumns(Sequence[Item]):
    """A sequence of items, each created when it is accessed.

    Iterate over it, or `take` what is needed first: accessing single rows is slow.

    Attributes:
        ids: strings.
        setups: a dictionary of strings.
        questions: a dictionary of strings.
        choices: lists of a dictionary of strings.
        answers: indices of the golds, int32.
        premises: a dictionary of strings, "" where there is none.
    """

    ids: pa.Array
    setups: pa.Array
    questions: pa.Array
    choices: pa.Array
    answers: pa.Array
    premises: pa.Array

    @classmethod
    def of(cls, items: Sequence[Item]) -> ItemColumns:
        """Return items as columns; columns are returned unchanged."""
        if isinstance(items, ItemColumns):
            return items
        import pyarrow as pa

        def coded(texts: Sequence[str]) -> pa.Array:
            return pa.array(texts, pa.string()).dictionary_encode()

        starts = np.concatenate([[0], np.cumsum([len(item.choices) for item in items])])
        return cls(
            pa.array([item.id for item in items], pa.string()),
            coded([item.setup for item in items]),
            coded([item.question for item in items]),
            pa.ListArray.from_arrays(
                pa.array(starts, pa.int32()),
                coded([text for item in items for text in item.choices]),
            ),
            pa.array([item.answer for item in items], pa.int32()),
            coded([item.premise for item in items]),
        )

    @classmethod
    def joined(cls, parts: Sequence[Sequence[Item]]) -> ItemColumns:
        """Return the items of several sequences, one after another."""
        import pyarrow as pa

        columns = zip(*(cls.of(part)._columns for part in parts), strict=True)
        return cls(*(single_chunk(pa.chunked_array(list(column))) for column in columns))

    @property
    def _columns(self) -> tuple[pa.Array, ...]:
        return self.ids, self.setups, self.questions, self.choices, self.answers, self.premises

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> ItemColumns: ...
    def __getitem__(self, at: int | slice) -> Item | ItemColumns:
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if step == 1:
                return self._slice(start, stop)
            return self.take(range(start, stop, step))
        if not -len(self) <= at < len(self):
            raise IndexError(f"no item {at} among {len(self)}")
        at %= len(self)
        return next(iter(self._slice(at, at + 1)))

    def __iter__(self) -> Iterator[Item]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self._slice(start, start + _AT_ONCE)._items()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(
            one == two for one, two in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]  # equal to lists of the same items

    def _slice(self, start: int, stop: int) -> ItemColumns:
        return ItemColumns(*(column[start:stop] for column in self._columns))

    def _items(self) -> Iterator[Item]:
        """Make all items at once."""
        texts, ends = plain(self.choices.flatten()).to_pylist(), self.starts.tolist()
        choices = [tuple(texts[a:b]) for a, b in pairwise(ends)]
        names, setups, questions, premises = (
            plain(column).to_pylist()
            for column in (self.ids, self.setups, self.questions, self.premises)
        )
        return map(Item, names, setups, questions, choices, self.answers.to_pylist(), premises)

    def take(self, rows: Any) -> ItemColumns:
        """Return some items, in the order given: ``rows`` are their numbers, shape [n]."""
        import pyarrow as pa

        wanted = pa.array(np.asarray(rows, dtype=np.int64))
        return ItemColumns(*(column.take(wanted) for column in self._columns))

    @cached_property
    def starts(self) -> Ints:
        """Start of each item's choices: item ``i`` has choices ``starts[i] .. starts[i + 1]``."""
        offsets = to_numpy(self.choices.offsets).astype(np.int64)
        return offsets - offsets[0] if len(offsets) else np.zeros(1, dtype=np.int64)

    @property
    def texts(self) -> pa.Array:
        """The texts of all choices, items one after another: strings, shape [choices]."""
        return plain(self.choices.flatten())

    def fingerprint(self) -> str:
        """Hash ids, setups, texts, choices and answers, in order.

        This is the sha256 of, for each item, the lengths (8 bytes) and bytes of its id, setup,
        question, answer, choices and, if it has one, premise, followed by a byte 0xff.
        """
        digest = hashlib.sha256()
        for start in range(0, len(self), _AT_ONCE):
            digest.update(self._slice(start, start + _AT_ONCE)._framed())
        return digest.hexdigest()

    def _framed(self) -> memoryview:
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = _framed(plain(self.choices.flatten()))
        offsets = pa.array(self.starts, pa.int32())
        premises = plain(self.premises)
        blank = pa.array([b""] * len(self), pa.binary())
        rows = pc.binary_join_element_wise(
            _framed(self.ids),
            _framed(plain(self.setups)),
            _framed(plain(self.questions)),
            _framed(self.answers.cast(pa.string())),
            pc.binary_join(pa.ListArray.from_arrays(offsets, texts), b""),
            pc.if_else(pc.equal(premises, ""), blank, _framed(premises)),
            pa.array([b"\xff"] * len(self), pa.binary()),
            b"",
        )
        return memoryview(pc.binary_join(_whole(rows), b"")[0].as_buffer())


def _framed(texts: pa.Array) -> pa.Array:
    """Return the length of each text, as 8 bytes, and its bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.binary_length(texts).cast(pa.int64())
    prefix = pa.Array.from_buffers(
        pa.binary(8), len(lengths), [None, lengths.buffers()[1]], offset=lengths.offset
    )
    return pc.binary_join_element_wise(prefix.cast(pa.binary()), texts.cast(pa.binary()), b"")


def _whole(rows: pa.Array) -> pa.Array:
    """Return a single array of all rows."""
    import pyarrow as pa

    return pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows)
