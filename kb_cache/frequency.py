"""How often words occur in text of a language, on the Zipf scale, and English function words.

A word of Zipf frequency z occurs 10**z times in a billion words: 7 is "the", 3 is one in a
million. The numbers are wordfreq's (Speer, 2022), installed with kbprobe and used offline.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

FUNCTION_WORDS = (
    "about above after again against all also and another any are around away back been before "
    "behind being below between both but can cannot could did does doing done down during each "
    "either else etc every few for from get had has have having her here him his how into its "
    "itself just less like made make makes many may more most much must neither nor not off one "
    "only onto other others our out over own same several she should since some something "
    "someone such than that the their them then there these they thing this those through too "
    "toward two under until upon use used very was were what when where which while who whom "
    "whose will with within without would you your"
)
"""English words of three or more letters that do not indicate a text's topic."""


@lru_cache(maxsize=4)
def _inverse_frequencies(language: str) -> dict[str, float]:
    # A list of words for each frequency, which is stated in centibels.
    return {
        word: inverse
        for centibels, words in enumerate(_words_by_frequency(language))
        for inverse in (1.0 / 10 ** (-centibels / 100),)
        for word in words
    }


def _words_by_frequency(language: str) -> list[list[str]]:
    """Return the words of each frequency, in centibels from 0 down: wordfreq's largest list.

    Its file is read directly where it is as expected: importing wordfreq takes longer.
    """
    package = find_spec("wordfreq")
    places = package.submodule_search_locations if package is not None else None
    for size in ("large", "small") if language.isalnum() else ():
        for place in places or ():
            path = Path(place) / "data" / f"{size}_{language}.msgpack.gz"
            if path.is_file():
                import msgpack  # which wordfreq requires

                with gzip.open(path) as file:
                    header, *words = msgpack.load(file, raw=False)
                if header == {"format": "cB", "version": 1}:
                    return list(words)
    from wordfreq import get_frequency_list

    lists: list[list[str]] = get_frequency_list(language, wordlist="best")
    return lists


@lru_cache(maxsize=64)
def has_frequencies(language: str) -> bool:
    """Return whether frequencies are known for a language; wordfreq knows about forty."""
    from wordfreq import available_languages

    return language in available_languages(wordlist="small")


def zipf_frequencies(terms: Sequence[str], language: str = "en") -> npt.NDArray[np.float64]:
    """Return the Zipf frequency of each term (0 for unknown words).

    A term of several words counts as one of frequency 1 / sum(1 / f), as wordfreq
    does, so it is rarer than its rarest word.

    >>> z = zipf_frequencies(["dog", "sea dog", "qqzzx"])
    >>> bool(z[0] > z[1] > z[2] == 0.0)
    True
    """
    known = _inverse_frequencies(language)
    found = np.zeros(len(terms))
    for at, term in enumerate(terms):
        lowered, inverse = term.lower(), 0.0
        for word in (lowered,) if lowered.isalnum() else _WORD.findall(lowered):
            if word not in known:
                inverse = 0.0
                break
            inverse += known[word]
        found[at] = inverse
    some = found > 0.0
    return np.maximum(9.0 - np.log10(found, where=some, out=np.full(len(terms), 9.0)), 0.0)
