"""Words of a lexicon as they are shown: one spelling each, common nouns in lower case."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby, product
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Ints
from kbprobe.columns import mask, to_numpy

_TITLE_CASE = re.compile(r"\b([^\W\d_])(?=[^\W\d_A-Z]+\b)")
_NAME = re.compile(r"\b[A-ZÀ-Þ][^\W\d_]{2,}")
_LOWER = re.compile(r"\b[a-zà-ÿ][^\W\d_]{2,}\b")
_MOST_FORMS = 64
_NO_LETTERS_OF_WORDS = re.compile(r"[{}<>\[\]$=?_\xad\ufffd]")
_ALTERNATIVES = re.compile(r"[^\W\d_]{4}.*/|/.*[^\W\d_]{4}")
_ACCENTS = "\u0300\u0301\u0302\u0303"  # grave, acute, circumflex, tilde
_LATIN_MARKS = re.compile("[\u0300-\u036f]")


def without_variants(
    lemmas: Iterable[tuple[str, str]], endings: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Drop words of a synset that are plurals of another one, or differ only in case.

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
    """Yield possible singulars of a word or expression by its endings, word by word."""
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


def is_damaged(word: str) -> bool:
    """Return whether a word holds remains of markup or encodings, or is two words in one.

    >>> [is_damaged(word) for word in ("capital{{m}}", "mercado/mercadinho", "km/h", "pré-pago")]
    [True, True, False, False]
    """
    return bool(_NO_LETTERS_OF_WORDS.search(word) or _ALTERNATIVES.search(word))


def one_spelling_each(lemmas: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Drop spellings that differ from another one only by accents, hyphens and spaces.

    The spelling with most accents is kept, since lexicons omit accents more often than they add
    them; of several, the first. The diaeresis does not count, since Portuguese no longer uses it.

    >>> one_spelling_each([("1-n", "proteina"), ("1-n", "proteína"), ("2-n", "proteina")])
    [('1-n', 'proteína'), ('2-n', 'proteina')]
    """
    ordered = list(lemmas)
    best: dict[tuple[str, str], tuple[int, int]] = {}
    for at, (synset, word) in enumerate(ordered):
        apart = unicodedata.normalize("NFD", word.lower())
        plain = re.sub(r"[\W_]", "", _LATIN_MARKS.sub("", apart)) or word
        rank = (-sum(apart.count(mark) for mark in _ACCENTS), at)
        best[synset, plain] = min(best.get((synset, plain), rank), rank)
    return [ordered[at] for at in sorted(at for _, at in best.values())]


def with_capitals_of_names(princeton: WordNet, synset: Ints, lemma: pa.Array) -> pa.Array:
    """Return names with the capitals that English words of their synset have: "Ilha norfolk".

    Names are expressions that begin with a capital; the words compared have three letters or more.
    """
    names = np.flatnonzero(mask(pc.match_substring_regex(lemma, r"^\p{Lu}.* .*\b\p{Ll}")))
    owner = to_numpy(princeton.senses["synset"])
    senses = np.flatnonzero(np.isin(owner, synset[names]))
    english = princeton.lemma_texts().take(pa.array(senses)).to_pylist()
    capitals: dict[int, dict[str, str]] = defaultdict(dict)
    for one, text in zip(owner[senses].tolist(), english, strict=True):
        for word in _NAME.findall(text):
            capitals[one][word.lower()] = word
    texts = lemma.to_pylist()
    for at in names.tolist():
        texts[at] = _LOWER.sub(partial(_looked_up, capitals[synset[at]]), texts[at])
    return pa.array(texts, pa.string())


def _looked_up(names: Mapping[str, str], found: re.Match[str]) -> str:
    return names.get(found[0], found[0])


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
