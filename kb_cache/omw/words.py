"""Words of a lexicon as they are shown: one spelling each, common nouns in lower case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, product
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Ints
from kbprobe.columns import mask, to_numpy

_TITLE_CASE = re.compile(r"\b([^\W\d_])(?=[^\W\d_A-Z]+\b)")
_MOST_FORMS = 64


def without_variants(
    lemmas: Iterable[tuple[str, str]], endings: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Leave out of each synset's words what is another one in other case, or its plural.

    Of spellings that differ in case, the one with fewest capitals stays.

    Args:
        lemmas: pairs (synset, word).
        endings: of plurals, each with that of its singular.

    >>> pairs = [("1-n", word) for word in ("Anfíbios", "anfíbio", "anfíbios", "rã")]
    >>> [word for _, word in without_variants(pairs, {"s": ""})]
    ['anfíbio', 'rã']
    """
    found = []
    for synset, group in groupby(sorted(lemmas, key=itemgetter(0)), key=itemgetter(0)):
        spellings: dict[str, str] = {}
        for _, word in group:
            plain = word.lower()
            spellings[plain] = min(spellings.get(plain, word), word, key=_capitals)
        for plain, word in spellings.items():
            if not any(one in spellings for one in _singulars(plain, endings)):
                found.append((synset, word))
    return found


def _capitals(word: str) -> int:
    return sum(letter.isupper() for letter in word)


def _singulars(text: str, endings: Mapping[str, str]) -> Iterator[str]:
    """Yield what a word or expression is the plural of by its endings, word by word."""
    forms = [
        [
            word,
            *(word.removesuffix(old) + new for old, new in endings.items() if word.endswith(old)),
        ]
        for word in text.split(" ")
    ]
    if np.prod([len(some) for some in forms]) > _MOST_FORMS:
        return
    for words in product(*forms):
        if (one := " ".join(words)) != text:
            yield one


def in_lower_case(princeton: WordNet, synset: Ints, lemma: pa.Array) -> pa.Array:
    """Return words without capitals at their beginning where no English word of the synset has any.

    Titles of encyclopedias are among the words of some lexicons: "Voo a vela" for gliding.
    Abbreviations keep their capitals.
    """
    capital = mask(pc.match_substring_regex(princeton.senses["lemma"], r"\p{Lu}"))
    named = np.zeros(len(princeton), dtype=np.bool_)
    named[to_numpy(princeton.senses["synset"])[capital]] = True
    starts = mask(pc.match_substring_regex(lemma, r"\b\p{Lu}\p{Ll}"))
    texts = lemma.to_pylist()
    for at in np.flatnonzero(starts & ~named[synset]).tolist():
        texts[at] = _TITLE_CASE.sub(lambda found: found[1].lower(), texts[at])
    return pa.array(texts, pa.string())
