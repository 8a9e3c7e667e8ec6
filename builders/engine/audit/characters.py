"""Features of single words: character n-grams, numbers, and what two words have in common.

scikit-learn's CountVectorizer finds the same n-grams; its import takes longer than the whole audit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from builders.engine.audit.ngrams import tokenise
from kbprobe.arrays import Bools, Floats, Ints, ragged_ranges
from kbprobe.columns import to_numpy

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import csr_array

LONGEST_NGRAM = 4
_EDGES = ("\x02", "\x03")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
WIDEST = 32
"""How many characters are looked at from either end of a word."""


def character_features(texts: pa.Array) -> csr_array:
    """Character n-grams of one to four characters, a text's edges among them, and words.

    Lower case. Values are scaled to a squared sum of 1, so that long texts weigh no more.
    """
    from scipy.sparse import csr_array

    codes, indptr = _characters(texts)
    owner = np.repeat(np.arange(len(texts), dtype=np.int64), np.diff(indptr))
    (words,) = tokenise(texts)
    # The highest bit tells an n-gram from a word's number.
    keys = [words.ids.astype(np.uint64)]
    owners = [np.repeat(np.arange(len(texts), dtype=np.int64), words.lengths)]
    run = np.zeros(codes.size, dtype=np.uint64)
    for length in range(1, LONGEST_NGRAM + 1):
        with np.errstate(over="ignore"):
            run = (run[: codes.size - length + 1] + codes[length - 1 :]) * _FACTOR
        inside = owner[: run.size] == owner[length - 1 :]
        keys.append(run[inside] | np.uint64(1 << 63))
        owners.append(owner[: run.size][inside])
    _, column = np.unique(np.concatenate(keys), return_inverse=True)
    width = int(column.max(initial=-1)) + 1
    cell = np.unique(np.concatenate(owners) * max(width, 1) + column)
    count = np.bincount(cell // max(width, 1), minlength=len(texts))
    values = np.repeat(1.0 / np.sqrt(np.maximum(count, 1)), count)
    indptr = np.concatenate([[0], np.cumsum(count)])
    return csr_array((values, cell % max(width, 1), indptr), shape=(len(texts), width))


def numbers(*columns: Floats) -> csr_array:
    """Numbers as features, a column each, scaled to about the size of the others; and a 1."""
    from scipy.sparse import csr_array

    table = np.stack([np.ones_like(columns[0]), *(_scaled(column) for column in columns)], axis=1)
    return csr_array(table)


def shared_ends(left: pa.Array, right: pa.Array) -> tuple[Floats, Floats, Floats, Floats]:
    """Compare texts pairwise by their ends.

    Returns:
        The characters that each pair shares at its start and at its end; then, as 0 or 1, whether
        they are all of the shorter text (happy, unhappy).
    """
    ends = []
    lengths = np.minimum(*(np.diff(_characters(texts)[1]) - len(_EDGES) for texts in (left, right)))
    for backwards in (False, True):
        same = _grid(left, backwards) == _grid(right, backwards)
        shared = np.minimum(np.cumprod(same, axis=1).sum(axis=1), lengths)
        ends.append(shared.astype(np.float64))
    whole: list[Bools] = [shared == np.minimum(lengths, WIDEST) for shared in ends]
    return ends[0], ends[1], whole[0].astype(np.float64), whole[1].astype(np.float64)


def _scaled(column: Floats) -> Floats:
    spread = float(column.std())
    return (column - column.mean()) / spread if spread else np.zeros_like(column)


def _characters(texts: pa.Array) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], Ints]:
    """Return the lower-cased characters of all texts, each between its edges, and its bounds."""
    import pyarrow.compute as pc

    first, last = _EDGES
    framed = pc.binary_join_element_wise(first, pc.utf8_lower(texts), last, "")
    codes = np.frombuffer("".join(framed.to_pylist()).encode("utf-32-le"), dtype=np.uint32)
    lengths = to_numpy(pc.utf8_length(framed)).astype(np.int64)
    return codes.astype(np.uint64), np.concatenate([[0], np.cumsum(lengths)])


def _grid(texts: pa.Array, backwards: bool) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Return (texts, WIDEST) the characters of each text from its start or from its end."""
    codes, indptr = _characters(texts)
    lengths = np.minimum(np.diff(indptr) - len(_EDGES), WIDEST)
    line = np.repeat(np.arange(len(texts)), lengths)
    step = ragged_ranges(np.zeros(len(texts), dtype=np.int64), lengths)
    at = (indptr[1:] - 2)[line] - step if backwards else (indptr[:-1] + 1)[line] + step
    grid = np.zeros((len(texts), WIDEST), dtype=np.uint64)
    grid[line, step] = codes[at]
    return grid
