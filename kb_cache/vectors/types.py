"""Word vectors as a table of words and a matrix that is mapped into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kb_cache.knowledge import Loaded
from kbprobe.arrays import Ints
from kbprobe.columns import positions

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "vectors"

#: The version of GloVe that the package of the extra holds: 400,000 words, 50 dimensions.
DEFAULT_VERSION = "glove.6B.50d"

#: The subfolder of a snapshot with the matrix, and its file: float32, little-endian, word by word.
MATRIX_FOLDER = "matrix"
MATRIX_FILE = "vectors.f32"

#: Each word starts with a letter, other than in GloVe's placeholders such as formula_1.
_EXPRESSION = r"^\pL[\pL'-]*([ _]\pL[\pL'-]*)+$"
MOST_WORDS = 4
"""Maximum number of words of an expression that is looked up as a whole."""

Float32s = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class WordVectors(Loaded):
    """Compiled word vectors.

    Attributes:
        words: the vocabulary, each word once, in the order of the source (string).
        matrix: their vectors, float32, shape [words, dimensions]; read-only, mapped from disk.
    """

    words: pa.Array
    matrix: Float32s

    @property
    def dimensions(self) -> int:
        """Numbers in a vector."""
        return int(self.matrix.shape[1])

    @cached_property
    def longest_expression(self) -> int:
        """Words of the longest expression that has a vector, `MOST_WORDS` at most; 1: none has.

        Expressions are joined by an underscore (ice_cream, as in word2vec's) or a space. If fewer
        than one word in a hundred has this form, as with slips in GloVe's, none counts.
        """
        import pyarrow.compute as pc

        joined = self.words.filter(pc.match_substring_regex(self.words, _EXPRESSION))
        if len(joined) * 100 < len(self.words) or not len(joined):
            return 1
        longest = int(pc.max(pc.count_substring_regex(joined, "[ _]")).as_py())
        return min(MOST_WORDS, 1 + longest)

    def rows(self, words: Sequence[str]) -> Ints:
        """Return the row of each word in `matrix`; -1: it has no vector.

        A word that is unknown as it is written is looked up in lower case. A call takes tens of
        milliseconds, whether for one word or for thousands: ask for many at once.
        """
        import pyarrow as pa

        found = positions(self.words, pa.array(words, pa.string()))
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            lower = [words[at].lower() for at in unknown.tolist()]
            found[unknown] = positions(self.words, pa.array(lower, pa.string()))
        return found
