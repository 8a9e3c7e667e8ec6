"""What keeps questions out of the clean tier: old texts, rare words, definitions out of place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from builders.engine.flags import Flags
from builders.english.word_lists import word_list
from kb_cache.frequency import zipf_frequencies
from kbprobe.arrays import Bools
from kbprobe.function_words import FUNCTION_WORDS

KNOWN, SPELLED = 2.7, 2.0
"""Least frequencies (Zipf) of the word asked about, and of the others in its context."""

FEWEST_WORDS = 2
"""Content words that a context must hold beside the word."""

FLAGS = {
    "archaic_context": "The context holds archaic words or verb forms: it is an old quotation.",
    "verse": "The context is a piece of verse: a line begins in its midst.",
    "unusual_words": f"A word of the context is rarer than Zipf {SPELLED:g}, or spelled otherwise "
    "today.",
    "rare_word": f"The word asked about is rarer than Zipf {KNOWN:g}.",
    "little_context": f"The context has fewer than {FEWEST_WORDS} content words beside the word.",
    "headless_definition": "The definition refers to what is not shown: it says *thus*, *such*, "
    "*the same*.",
    "other_form": "The definition of a verb does not begin with *To*, or that of another word "
    "does.",
}
"""What keeps a question out of the clean tier."""

_TOKEN = re.compile(r"'t[a-z]+|[a-z]+(?:'[a-z]+)*")
_PLAIN = re.compile(r"(?<![\w'])[a-z]{3,}(?![\w'])")
_VERB_FORM = re.compile(
    r"\b(?!(?:teeth|beneath|underneath)\b)[a-z]{3,}eth\b"
    r"|\b(?:com|dar|feel|find|giv|hear|hold|keep|know|liv|lov|mak|say|see|speak|stand|tak|think)est\b"
)
_LINE_BEGINS = re.compile(
    r"[a-z,;:']\s(?:An?|And|As|At|But|By|For|From|He|Her|His|If|In|Is|Its?|Like|My|Nor?|Not|Of|On|"
    r"Or|Our|She|So|Such|That|Than|The|Their|Then|These|They|This|Those|Thus|To|Was|We|Were|What|"
    r"When|Where|Which|While|Who|Whom|Whose|With|Would)\b(?!\.)"
)
_ELIDED = re.compile(r"[a-z]'d\b")
_REFERS_BACK = re.compile(
    r"\bthus\b|\b(?:above|before|afore)[- ]?(?:described|mentioned|said|defined)"
    r"|\bsuch (?!as\b|like\b)|\bthe (?:same|latter|former)\b"
    r"|^(?:This|These|Such|Having this|The thing)\b"
    r"|\bso (?:called|made|formed|taken|obtained|done)\b"
)


def doubts(
    contexts: Sequence[str],
    surface_forms: Sequence[str],
    headwords: Sequence[str],
    definitions: Sequence[str],
    pos: Sequence[str],
) -> Flags:
    """Return the flags of questions: parallel sequences of texts, a line for each.

    >>> flags = doubts(["Thou hast a ready wit"], ["wit"], ["wit"], ["A sharp mind."], ["noun"])
    >>> flags.counts()["archaic_context"], flags.counts()["rare_word"]
    (1, 0)
    """
    lowered = [text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'") for text in contexts]
    tokens = [_TOKEN.findall(text) for text in lowered]
    own = [set(_TOKEN.findall(word.lower())) for word in surface_forms]
    archaic = word_list("archaic_words")
    known = np.maximum(zipf_frequencies(list(surface_forms)), zipf_frequencies(list(headwords)))
    function_words = frozenset(FUNCTION_WORDS.split())
    rest = [
        sum(len(token) > 2 and token not in function_words and token not in word for token in some)
        for some, word in zip(tokens, own, strict=True)
    ]
    marks = {
        "archaic_context": _each(
            not archaic.isdisjoint(some) or bool(_VERB_FORM.search(text))
            for some, text in zip(tokens, lowered, strict=True)
        ),
        "verse": _each(
            bool(_LINE_BEGINS.search(text) or _ELIDED.search(text)) for text in contexts
        ),
        "unusual_words": _unusual(contexts, own),
        "rare_word": known < KNOWN,
        "little_context": np.array(rest) < FEWEST_WORDS,
        "headless_definition": _each(bool(_REFERS_BACK.search(text)) for text in definitions),
        "other_form": _each(
            text.startswith("To ") != (kind == "verb")
            for text, kind in zip(definitions, pos, strict=True)
        ),
    }
    flags = Flags.none(len(contexts))
    for name, marked in marks.items():
        flags = flags.mark(name, np.asarray(marked, dtype=np.bool_))
    return flags


def _unusual(contexts: Sequence[str], own: Sequence[set[str]]) -> Bools:
    """Mark contexts with a rare word in lower case, other than the words asked about."""
    found = [
        [word for word in _PLAIN.findall(text) if word not in asked]
        for text, asked in zip(contexts, own, strict=True)
    ]
    distinct = sorted({word for words in found for word in words})
    zipf = zipf_frequencies(distinct)
    rare = {word for word, value in zip(distinct, zipf.tolist(), strict=True) if value < SPELLED}
    return _each(not rare.isdisjoint(words) for words in found)


def _each(marks: Iterable[bool]) -> Bools:
    return np.fromiter(marks, dtype=np.bool_)
