"""Word vectors as a table of words and a matrix that is mapped into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kb_cache.base import Loaded
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
