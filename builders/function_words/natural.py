"""Find the texts of a corpus that are complete, ordinary sentences.

Corpora contain headlines, lists, addresses and broken-off speech. They cannot be originals in
acceptability judgements, since readers reject them even unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.english.word_lists import word_list
from builders.function_words.tokens import TaggedTexts
from kbprobe.arrays import Bools, Ints
from kbprobe.columns import mask, to_numpy

PACKAGE = "builders.function_words"

_FINITE = ("VBD", "VBZ", "VBP", "MD")
_OPENS = "^[\"“‘'(\\[]*[A-Z0-9]"
_ENDS = "[.?!][\"”’')\\]]*$"
_ODD = (
    r"[@<>=|*_~^\\{}\[\]/#]|https?:|www\.|--|\.\.|…|\?[?!]|![?!]| [-–—]$|\x{fffd}|[\x{80}-\x{9f}]"
    r"|[.?!][\"”’')]* +[A-Z0-9]?[^.?!]*[.?!][\"”’')\]]*$"
    r"|\d{5}|\d:\d\d|\w- | -\w| [”’]|[“‘] "
)
"""Addresses, markup, broken-off text, damaged characters, or a second sentence in the text."""

_SPEAKER = r"^[\"“]?(?:[\w.'’]+ ?){1,4}:|^(?:Hi|Hello|Dear|Hey)\b"

_SPOKEN = ("UH", "FW", "LS", "SYM", "GW", "ADD", "NFP", "XX", "AFX")
"""Tags of interjections, foreign words, list marks and non-words."""


def unnatural(tagged: TaggedTexts, fewest: int, most: int) -> Mapping[str, Bools]:
    """Return which texts are not ordinary sentences: reason -> (texts,) mask.

    Args:
        tagged: the texts.
        fewest: minimum number of tokens of a sentence, including punctuation.
        most: maximum number of tokens.
    """
    texts = tagged.texts
    text = texts.text.cast(pa.large_string())
    length = np.diff(texts.token_start)
    reasons = {
        f"not {fewest} to {most} tokens": (length < fewest) | (length > most),
        "does not begin or end as a sentence": ~(_matches(text, _OPENS) & _matches(text, _ENDS)),
        "holds an address, markup or damaged text": _matches(text, _ODD),
        "begins with the name of a speaker, or a salutation": _matches(text, _SPEAKER),
        "unbalanced quotation marks or brackets": _unbalanced(text),
        "mostly capitals": _shouted(tagged),
        "begins with a title, or holds one": _titled(tagged),
        "no finite verb, or none with a subject": ~_has_clause(tagged),
        "broken-off or disfluent speech": _disfluent(tagged),
    }
    return reasons


def _matches(text: pa.Array, pattern: str) -> Bools:
    return mask(pc.match_substring_regex(text, pattern))


def _unbalanced(text: pa.Array) -> Bools:
    def count(mark: str) -> Ints:
        return to_numpy(pc.count_substring(text, mark).cast(pa.int64()))

    odd = count('"') % 2 == 1
    for opening, closing in (("(", ")"), ("“", "”")):
        odd |= count(opening) != count(closing)
    # Single quotation marks that are not apostrophes, and the quotation marks of LaTeX.
    return np.asarray(odd | _matches(text, r"(?:^|[\s(])['‘]|``|''|['’](?:[\s.,;:)]|$)"))


def _shouted(tagged: TaggedTexts) -> Bools:
    names = tagged.texts.forms.names
    upper = tagged.texts.forms.where([len(name) > 1 and name.isupper() for name in names])
    words = tagged.texts.forms.where([name[:1].isalpha() for name in names])
    capital = tagged.texts.forms.where([name[:1].isupper() for name in names])
    total = np.maximum(tagged.count(words), 1)
    return np.asarray(
        (tagged.count(upper & words) * 5 > total) | (tagged.count(capital & words) * 2 > total)
    )


def _titled(tagged: TaggedTexts) -> Bools:
    """Mark texts with a capitalized word that is neither a name nor the beginning of a sentence."""
    capital = tagged.texts.forms.where([name[:1].isupper() for name in tagged.texts.forms.names])
    plain = tagged.has_tag("VB*", "MD", "RB", "IN", "DT", "PRP", "CC", "WRB", "WP", "PRP$", "TO")
    opens = tagged.near(~tagged.has_tag("NN*", "VB*", "JJ*", "RB", "IN", "DT", "PRP*", "CC"), -1)
    odd = capital & plain & ~tagged.first & ~opens & ~tagged.is_word("i")
    return tagged.in_text(odd)


def _has_clause(tagged: TaggedTexts) -> Bools:
    finite = tagged.has_tag(*_FINITE)
    nominal = tagged.has_tag("NN*", "PRP", "EX", "DT", "WP", "CD", "WDT")
    return tagged.in_text(finite) & tagged.in_text(nominal)


def _disfluent(tagged: TaggedTexts) -> Bools:
    repeated = np.zeros(tagged.code.size, dtype=np.bool_)
    if tagged.code.size > 1:
        repeated[1:] = tagged.code[1:] == tagged.code[:-1]
        repeated &= ~tagged.first & ~tagged.is_word("had", "that", "very", "so")
    marked = tagged.has_tag(*_SPOKEN) | repeated | tagged.is_one_of(word_list("spoken", PACKAGE))
    return tagged.in_text(marked)
