"""How often words occur in text of a language, on the Zipf scale, and English function words.

A word of Zipf frequency z occurs 10**z times in a billion words: 7 is "the", 3 is one in a
million. The numbers are wordfreq's (Speer, 2022), installed with kbprobe and used offline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kb_cache.array_files import derived_dir, kept_arrays

if TYPE_CHECKING:
    import pyarrow as pa

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


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case, in order.

    >>> list(words_of("The dog's bone: 2 cats"))
    ['the', "dog's", 'bone', '2', 'cats']
    """
    lowered = text.lower()
    if lowered.isalnum():
        yield lowered
    else:
        yield from _WORD.findall(lowered)


@lru_cache(maxsize=4)
def _inverse_frequencies(language: str) -> dict[str, float]:
    """Return one over the share of each word, from the cache: wordfreq takes long to import."""
    path = derived_dir() / "wordfreq" / f"{language}.arrow"
    depends = f"word list {language} {version('wordfreq')}"
    words, inverse, counts = kept_arrays(path, depends, partial(_listed, language))
    each = np.repeat(inverse, counts).tolist()
    return dict(zip(words[0].as_py().split("\n"), each, strict=True))


def _listed(language: str) -> tuple[pa.Array, npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return all words, a line each, one over each share, and how many words have that share."""
    import pyarrow as pa
    from wordfreq import cB_to_freq, get_frequency_list

    # A list of words for each frequency, which is stated in centibels.
    lists = get_frequency_list(language, wordlist="best")
    inverse = [1.0 / cB_to_freq(-centibels) for centibels in range(len(lists))]
    lines = "\n".join(word for words in lists for word in words)
    return pa.array([lines]), np.array(inverse), np.array([len(words) for words in lists])


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
    return zipf_scale(terms, _inverse_frequencies(language))


def zipf_scale(terms: Sequence[str], inverse: Mapping[str, float]) -> npt.NDArray[np.float64]:
    """Return the Zipf frequency of each term, given one over the share of each known word.

    >>> zipf_scale(["dog", "sea dog", "cat"], {"dog": 1e6, "sea": 1e5}).round(2).tolist()
    [3.0, 2.96, 0.0]
    """
    found = np.zeros(len(terms))
    for at, term in enumerate(terms):
        total = 0.0
        for word in words_of(term):
            if word not in inverse:
                total = 0.0
                break
            total += inverse[word]
        found[at] = total
    some = found > 0.0
    return np.maximum(9.0 - np.log10(found, where=some, out=np.full(len(terms), 9.0)), 0.0)
