"""The order of rows and choices: numbers, ids, and where golds have stood."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kbprobe.arrays import Floats, Ints
from release.adversaries.models import boosted
from release.adversaries.types import Guesses, Rows

CYCLES = range(2, 9)
BITS = 64


def order(rows: Rows) -> Iterator[Guesses]:
    """Predict the gold's position without any text."""
    counts = np.bincount(rows.answer[rows.train], minlength=rows.choices.shape[1])
    yield Guesses("order:position", np.tile(counts.astype(np.float64), (rows.scored.size, 1)))
    if np.count_nonzero(counts) > 1:
        for name, features in (
            ("number", _numbers(rows)),
            ("id", _bits([rows.ids[row] for row in rows.used])),
            ("previous", _previous(rows)),
        ):
            yield Guesses(f"order:{name}", _scores(rows, features))


def _scores(rows: Rows, features: Floats) -> Floats:
    positions, chances = boosted(features, rows.answer[rows.train], iterations=60)
    scores = np.zeros((rows.scored.size, rows.choices.shape[1]))
    scores[:, positions] = chances
    return scores


def _numbers(rows: Rows) -> Floats:
    """Return each row's number in its split, as such, as a share, and its remainders."""
    place = rows.place[rows.used]
    sizes = np.where(rows.is_train, rows.is_train.sum(), (~rows.is_train).sum())[rows.used]
    return np.stack([place, place / sizes, *(place % cycle for cycle in CYCLES)], axis=1)


def _bits(ids: list[str]) -> Floats:
    """Return the bits of ids: of hexadecimal numbers, or of the last characters."""
    found = np.array([_integer(one) % 2**BITS for one in ids], dtype=np.uint64)
    return (found[:, None] >> np.arange(BITS, dtype=np.uint64) & np.uint64(1)).astype(np.float64)


def _integer(name: str) -> int:
    try:
        return int(name, 16)
    except ValueError:
        return int.from_bytes(name.encode(), "big")


def _previous(rows: Rows) -> Floats:
    """Return where the golds of the two rows before stand, and whether they share the question."""
    columns: list[Ints] = []
    for back in (1, 2):
        inside = rows.place >= back
        columns.append(np.where(inside, np.roll(rows.answer, back), -1))
        columns.append(inside & (np.roll(rows.question, back) == rows.question))
    return np.stack(columns, axis=1)[rows.used].astype(np.float64)
