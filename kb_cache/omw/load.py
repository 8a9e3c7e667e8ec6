"""Loading a language's words as they are shown, and joining them to Princeton WordNet."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kb_cache.knowledge import Combined
from kb_cache.omw.types import KIND, PRINCETON, Lexicon, WordNetInLanguage
from kb_cache.opening import open_snapshot
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Ints
from kbprobe.columns import mask, positions, single_chunk, to_numpy
from kbprobe.errors import UsageError

_TITLE_CASE = re.compile(r"\b([^\W\d_])(?=[^\W\d_A-Z]+\b)")
_NAME = re.compile(r"\b[A-ZÀ-Þ][^\W\d_]{2,}")
_LOWER = re.compile(r"\b[a-zà-ÿ][^\W\d_]{2,}\b")


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


TABLES = ("synsets", "senses", "examples", "mentions", "pointers", "frames")


class _Both(Combined):
    """The identity of a WordNet and a lexicon together."""

    def __init__(self, *sources: WordNet | Lexicon) -> None:
        self._sources = sources

    @property
    def sources(self) -> tuple[WordNet | Lexicon, ...]:
        return self._sources


def load_lexicon(name: str) -> Lexicon:
    """Load the words of a language, by name as `open_snapshot` does."""
    info, tables = open_snapshot(KIND, name)
    return Lexicon(**info.identity, **tables)


def load_in_language(language: str, wordnet: str = PRINCETON) -> WordNetInLanguage:
    """Load Princeton WordNet with the words of a language.

    Raises:
        UsageError: the language has not been fetched, or the WordNet's synsets are not those that
            its words are of.
    """
    return in_language(load_wordnet(wordnet), load_lexicon(language))


def load_parallel(languages: Sequence[str], wordnet: str = PRINCETON) -> WordNetInLanguage:
    """Load Princeton WordNet with the words of the first of some languages.

    Only synsets for which all of them have words count as having words.

    Raises:
        UsageError: as `load_in_language` does.
    """
    princeton = load_wordnet(wordnet)
    each = {
        code: princeton if code == princeton.language else load_in_language(code, wordnet)
        for code in sorted(set(languages))
    }
    shown = each[languages[0]]
    tables = {name: getattr(shown, name) for name in TABLES}
    lexicon = shown.lexicon if isinstance(shown, WordNetInLanguage) else None
    lexicons = [
        wordnet.lexicon for wordnet in each.values() if isinstance(wordnet, WordNetInLanguage)
    ]
    both = _Both(princeton, *filter(None, lexicons))
    return WordNetInLanguage(
        **_identity(both),
        language=shown.language,
        princeton=princeton,
        lexicon=lexicon,
        parallel=tuple(each.values()),
        **tables,
    )


load_in_language_once = lru_cache(maxsize=4)(load_in_language)
load_parallel_once = lru_cache(maxsize=4)(load_parallel)
"""For builders, which share what they derive from a WordNet in a process."""


def _identity(both: _Both) -> dict[str, Any]:
    names = ("name", "version", "digest", "licence", "attribution", "citation")
    return {name: getattr(both, name) for name in names}


def in_language(princeton: WordNet, lexicon: Lexicon) -> WordNetInLanguage:
    """Join a lexicon to the WordNet of whose synsets its words are.

    The lexicons order and count no senses. A sense's ``count`` is therefore that of its synset's
    English lemmas, ``number`` is its rank among the lemma's synsets by that count, and the lemmas
    of a synset that have it as their commonest sense come first. Definitions that were not
    translated from English are left out.

    Raises:
        UsageError: the lexicon names hardly any synset of this WordNet.
    """
    part = pc.replace_substring(princeton.synsets["pos"].cast(pa.string()), "s", "a")
    offset = pc.utf8_lpad(princeton.synsets["offset"].cast(pa.string()), 8, "0")
    names = single_chunk(pc.binary_join_element_wise(offset, part, "-"))

    def placed(table: pa.Table) -> tuple[Ints, pa.Table]:
        at = positions(names, single_chunk(table["synset"]))
        order = np.argsort(at, kind="stable")
        order = order[at[order] >= 0]
        return at[order], table.take(pa.array(order))

    synset, lemmas = placed(lexicon.lemmas)
    if synset.size < 0.9 * len(lexicon.lemmas):
        raise UsageError(
            f"{lexicon.name} has words for the synsets of Princeton WordNet {PRINCETON}, which are "
            f"not those of {princeton.name}: choose --wordnet {PRINCETON}"
        )
    defined, definitions = placed(lexicon.definitions)
    glosses = np.full(len(princeton), "", dtype=object)
    english = princeton.synsets["gloss"].take(pa.array(defined)).to_pylist()
    glosses[defined] = [
        "" if _same_text(text, untranslated) else text
        for text, untranslated in zip(definitions["text"].to_pylist(), english, strict=True)
    ]
    shown, examples = placed(lexicon.examples)
    count = np.add.reduceat(to_numpy(princeton.senses["count"]), princeton.sense_start[:-1])
    lemma = single_chunk(lemmas["lemma"])
    lemma = in_lower_case(princeton, synset, lemma)
    lemma = with_capitals_of_names(princeton, synset, lemma)
    number = _numbers(princeton, synset, lemma, count)
    order = np.lexsort((number > 1, synset))  # stable: else the commonest word first
    synset, lemma, number = synset[order], lemma.take(pa.array(order)), number[order]
    blank = pa.array([""] * synset.size)
    tables = {
        "synsets": princeton.synsets.set_column(
            princeton.synsets.column_names.index("gloss"), "gloss", pa.array(glosses, pa.string())
        ),
        "senses": pa.table(
            {
                "synset": pa.array(synset, pa.int32()),
                "lemma": lemma,
                "number": number,
                "key": blank,
                "count": count[synset],
                "lex_id": np.zeros(synset.size, dtype=np.int8),
                "syntactic_marker": blank,
            }
        ),
        "examples": pa.table(
            {"synset": pa.array(shown, pa.int32()), "text": single_chunk(examples["text"])}
        ),
        "pointers": princeton.pointers,
        "frames": princeton.frames.slice(0, 0),
    }
    tables["mentions"] = _mentions(tables["senses"], tables["examples"], len(princeton))
    both = _Both(princeton, lexicon)
    return WordNetInLanguage(
        **_identity(both),
        language=lexicon.language,
        princeton=princeton,
        lexicon=lexicon,
        **tables,
    )


def _same_text(one: str, other: str) -> bool:
    """Return whether a definition is the untranslated English one, or its beginning."""
    plain, whole = (" ".join(re.findall(r"\w+", text.lower())) for text in (one, other))
    return f"{whole} ".startswith(f"{plain} ")


def _numbers(princeton: WordNet, synset: Ints, lemma: pa.Array, count: Ints) -> Ints:
    """Return the place of each sense among those of its lemma and part of speech, from 1.

    They are ordered by how often the synset occurs in WordNet's tagged texts, then by its best
    place among the senses of its English lemmas.
    """
    start = princeton.sense_start[:-1]
    best = np.minimum.reduceat(to_numpy(princeton.senses["number"]), start)
    part = np.where(princeton.pos_codes == POS.index("s"), POS.index("a"), princeton.pos_codes)
    text = to_numpy(pc.utf8_lower(lemma).dictionary_encode().indices).astype(np.int64)
    word = text * len(POS) + part[synset]
    order = np.lexsort((synset, best[synset], -count[synset], word))
    word = word[order]
    first = np.flatnonzero(np.diff(word, prepend=-1))
    number = np.empty(synset.size, dtype=np.int64)
    length = np.diff(np.append(first, word.size))
    number[order] = np.arange(word.size) - np.repeat(first, length) + 1
    return number


def _mentions(senses: pa.Table, examples: pa.Table, size: int) -> pa.Table:
    """Locate the words of each example's synset in it, as spelled in the lexicon.

    Inflected forms are not recognised: such examples are not contexts.
    """
    start = np.searchsorted(to_numpy(senses["synset"]), np.arange(size + 1))
    lemmas = senses["lemma"].to_pylist()
    rows: dict[str, list[int]] = {"example": [], "sense": [], "start": [], "end": []}
    texts = zip(examples["synset"].to_pylist(), examples["text"].to_pylist(), strict=True)
    for example, (synset, text) in enumerate(texts):
        for sense in range(start[synset], start[synset + 1]):
            found = re.search(rf"(?<!\w){re.escape(lemmas[sense])}(?!\w)", text, re.IGNORECASE)
            if found:
                for name, value in zip(rows, (example, sense, *found.span()), strict=True):
                    rows[name].append(value)
    return pa.table({name: pa.array(values, pa.int32()) for name, values in rows.items()})
