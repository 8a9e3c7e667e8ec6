"""Words of texts as flat arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbprobe.arrays import Ints, ragged_ranges, run_starts
from kbprobe.columns import to_numpy


@dataclass(frozen=True)
class Tokens:
    """Lower-cased words of texts: those of text ``i`` are ``ids[indptr[i]:indptr[i + 1]]``.

    ``words`` are the distinct words of all texts that were split together.
    """

    indptr: Ints
    ids: Ints
    words: pa.Array

    @property
    def vocabulary(self) -> int:
        """Number of distinct words."""
        return len(self.words)

    @property
    def lengths(self) -> Ints:
        """Number of words of each text."""
        return np.diff(self.indptr)

    def of(self, texts: Ints) -> tuple[Ints, Ints]:
        """Return (position in ``texts``, word id) for every word of the given texts."""
        lengths = self.lengths[texts]
        position = np.repeat(np.arange(texts.size, dtype=np.int64), lengths)
        return position, self.ids[ragged_ranges(self.indptr[texts], lengths)]

    def parts(self, sizes: Iterable[int]) -> tuple[Tokens, ...]:
        """Divide into as many texts each; the words keep their numbers."""
        bounds = (self.indptr[at : end + 1] for at, end in pairwise(run_starts(sizes)))
        return tuple(
            Tokens(indptr - indptr[0], self.ids[indptr[0] : indptr[-1]], self.words)
            for indptr in bounds
        )


def tokenise(*texts: pa.Array) -> tuple[Tokens, ...]:
    """Split texts into lower-cased words, with one vocabulary for all the arrays given.

    A word is a run of letters and digits in any script; everything else is a separator.
    """
    spaced = pc.replace_substring_regex(
        pc.utf8_lower(pa.concat_arrays([text.cast(pa.string()) for text in texts])),
        r"[^\pL\pN]+",
        " ",
    )
    lists = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(spaced))
    encoded = lists.flatten().dictionary_encode()
    ids = to_numpy(encoded.indices).astype(np.int64)
    offsets = to_numpy(lists.offsets).astype(np.int64)
    # An empty text splits into one empty word: drop those words.
    empty = pc.index(encoded.dictionary, "").as_py()
    if empty >= 0:
        kept = np.concatenate([[0], np.cumsum(ids != empty)])
        ids, offsets = ids[ids != empty], kept[offsets]
    made = Tokens(offsets, ids, encoded.dictionary)
    return made.parts(len(text) for text in texts)
