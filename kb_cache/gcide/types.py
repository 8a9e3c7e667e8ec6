"""GCIDE, the GNU Collaborative International Dictionary of English, as flat Arrow tables.

Largely Webster's Revised Unabridged Dictionary of 1913, with later additions. The data is
GPL-3.0-or-later: kbprobe does not ship it, and says so on the cards of probes made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kb_cache.knowledge import Loaded
from kbprobe.arrays import Ints
from kbprobe.columns import codes, to_numpy
from kbprobe.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "gcide"

#: Parts of speech in the order of their codes in `Gcide.pos_codes`.
POS = ("noun", "verb", "adjective", "adverb", "other")

#: The prefix of names of entries made from the installed package.
PACKAGED = "gcide-pip-"


@dataclass(frozen=True, eq=False)
class Gcide(Loaded):
    """One compiled GCIDE.

    A sense's id is its row in `senses`, which is sorted by word; the senses of a word keep the
    order of the source. Ids are not stable between sources.

    Attributes:
        words: ``word``, the headwords, in lower case, sorted.
        senses: ``word`` (row of `words`), ``entry`` (1, 2, ...: which of the word's entries it
            belongs to), ``number`` (its place in that entry, dropped senses counted), ``pos``
            (one of `POS`), ``printed_pos`` ("v. t."), ``field`` ("Bot."; "" for none), ``mark``
            ("Obs."; "" for none), ``definition``.
        contexts: where a sense is used: ``sense``, ``kind`` ("usage" or "quotation"), ``text``,
            ``author`` (""), ``start`` and ``end`` (character offsets of the word,
            inflected or not: the surface form is ``text[start:end]``; -1 where it was not
            found). Sorted by sense; a usage comes before the quotations.
    """

    words: pa.Table
    senses: pa.Table
    contexts: pa.Table

    def __len__(self) -> int:
        """Number of senses."""
        return int(self.senses.num_rows)

    def __repr__(self) -> str:
        return f"<Gcide {self.name}: {len(self):,} senses, digest {self.digest[:12]}>"

    @cached_property
    def pos_codes(self) -> npt.NDArray[np.int8]:
        """The part of speech of every sense, as an index into `POS`."""
        stored, names = codes(self.senses["pos"])
        return np.asarray(np.array([POS.index(name) for name in names], dtype=np.int8)[stored])

    @cached_property
    def word_ids(self) -> npt.NDArray[np.int32]:
        """The word of every sense, as a row of `words`."""
        return to_numpy(self.senses["word"])

    @cached_property
    def sense_start(self) -> Ints:
        """Row bounds: the senses of word ``i`` are ``sense_start[i]:sense_start[i + 1]``."""
        return np.searchsorted(self.word_ids, np.arange(self.words.num_rows + 1))

    @cached_property
    def located(self) -> npt.NDArray[np.bool_]:
        """Whether the word was found in each row of `contexts`."""
        return np.asarray(to_numpy(self.contexts["start"]) >= 0)

    @cached_property
    def candidates(self) -> Ints:
        """The senses, in order, that have at least one context in which the word was found."""
        return np.unique(to_numpy(self.contexts["sense"])[self.located]).astype(np.int64)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words["word"].to_pylist())}

    def word_id(self, word: str) -> int:
        """Return the row of a headword (case is ignored); UsageError if there is none."""
        found = self._ids.get(word.lower())
        if found is None:
            near = [known for known in self._ids if known[:3] == word[:3].lower()]
            raise UsageError(f"{self.name} has no word {word!r}.{did_you_mean(word, near)}")
        return found

    def senses_of(self, word: str) -> range:
        """Return the rows of a headword's senses; see `word_id`."""
        at = self.word_id(word)
        return range(int(self.sense_start[at]), int(self.sense_start[at + 1]))
