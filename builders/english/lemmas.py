"""Lemmas of many words at once: regular forms by their endings, irregular ones by a table."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.english.word_lists import word_groups
from kbprobe.arrays import Ints
from kbprobe.columns import mask, to_numpy


def _doubled(letters: str) -> tuple[str, str]:
    """Return a rule for doubled consonants ("dragging"): pattern and replacement."""
    either = "|".join(f"({letter}){letter}" for letter in letters)
    return rf"^(.+)(?:{either})(?:ed|ing)$", "".join(rf"\{at}" for at in range(1, len(letters) + 2))


_REGULAR = (
    (r"^(..*[^sui])s$", r"\1"),
    (r"^(..+)es$", r"\1"),
    (r"^(..+)ie[sd]$", r"\1y"),
    (r"^(..+)(?:ed|ing)$", r"\1"),
    (r"^(..+)(?:ed|ing)$", r"\1e"),
    _doubled("bdfgklm"),
    _doubled("nprstvz"),
)
"""Patterns of endings and the lemmas that they may come from."""


def regular_lemmas(words: pa.Array) -> tuple[Ints, pa.Array]:
    """Return possible lemmas of regular forms: parallel arrays of positions and lemmas.

    These are all lemmas that the endings allow: "plane" and "plan" for "planed".
    """
    owners, forms = [], []
    for pattern, lemma in _REGULAR:
        matched = pc.match_substring_regex(words, pattern)
        owners.append(np.flatnonzero(mask(matched)))
        forms.append(pc.replace_substring_regex(words.filter(matched), pattern, lemma))
    return np.concatenate(owners), pa.concat_arrays(forms)


def lemmas(words: pa.Array) -> tuple[Ints, pa.Array]:
    """Return possible lemmas of words: parallel arrays of positions and lemmas.

    Each word is among its own lemmas. Regular forms are recognized by their endings, irregular ones
    by a table derived from lemminflect's, which itself takes longer to load than this function
    takes to run.

    >>> position, lemma = lemmas(pa.array(["swept", "dogs"]))
    >>> position.tolist(), lemma.to_pylist()
    ([0, 1, 1, 0], ['swept', 'dogs', 'dog', 'sweep'])
    """
    own = np.arange(len(words), dtype=np.int64)
    regular, regular_forms = regular_lemmas(words)
    irregular_forms, table = _irregular_forms()
    at = pc.index_in(words, irregular_forms)
    known = np.flatnonzero(mask(at.is_valid()))
    listed = table.take(at.drop_null())
    irregular = np.repeat(known, to_numpy(pc.list_value_length(listed)))
    return (
        np.concatenate([own, regular, irregular]),
        pa.concat_arrays([words.cast(pa.string()), regular_forms, listed.flatten()]),
    )


@cache
def _irregular_forms() -> tuple[pa.Array, pa.Array]:
    """The irregular forms, and the list of lemmas of each."""
    lines = word_groups("irregular_forms")
    return pa.array([form for form, *_ in lines]), pa.array([rest for _, *rest in lines])
