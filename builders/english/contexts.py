"""Examples and quotations in questions: what to call them, and how they end."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_ASKED = r"\s.*[?!]$"
_SUBJECT = (
    r"(?i)^(?:(?:I|you|he|she|it|we|they|there)(?:'\pL+)?|(?:this|that|these|those)"
    r" (?:is|was|are|were|will|would|can|could|has|had)) \S+ \S"
)
"""A subject and a verb followed by more text."""

_AUXILIARY = (
    r"(?i)\S \b(?:am|are|can|could|did|do|does|had|has|have|is|may|might|must|shall|should|was|were"
    r"|will|would|cannot|\pL+n't)\b"
)
_SUBORDINATE = (
    r"(?i)\b(?:as|because|how|if|than|that|what|when|where|whether|which|while|who|whom|whose|why"
    r"|wherewith|whereof|to have)\b"
)

_ABBREVIATED = r"\b(?:\pL\.\s?\pL|et al|etc|Bart|Dr|Inc|Jr|Ltd|Mr|Mrs|Sr|St)\.$"
_END = r"[\s.,;:]+$"


def kinds_of_context(texts: pa.Array) -> pa.Array:
    """Return what to call each text: "sentence", "phrase", or "example" if unclear.

    >>> texts = ["she couldn't lie down", "the room was dark", "to dab a wound", "a dog barked"]
    >>> kinds_of_context(pa.array(texts)).to_pylist()
    ['sentence', 'sentence', 'phrase', 'example']
    """
    holds = {
        pattern: pc.match_substring_regex(texts, pattern)
        for pattern in (_ASKED, _SUBJECT, _AUXILIARY, _SUBORDINATE)
    }
    finite = pc.and_not(holds[_AUXILIARY], holds[_SUBORDINATE])
    sentence = pc.or_(pc.or_(holds[_ASKED], holds[_SUBJECT]), finite)
    phrase = pc.match_substring_regex(texts, r"^(?:(?i)to .*[^?!]|\S+ \S+)$")
    return pc.if_else(sentence, "sentence", pc.if_else(phrase, "phrase", "example"))


def without_full_stop(texts: pa.Array) -> pa.Array:
    """Return texts without final punctuation, to be quoted within a sentence.

    A question mark, an exclamation mark and the stop of an abbreviation stay.

    >>> without_full_stop(pa.array(["the end of it;", "Why?", "at 8 a.m."])).to_pylist()
    ['the end of it', 'Why?', 'at 8 a.m.']
    """
    bare = pc.replace_substring_regex(texts, _END, "")
    return pc.if_else(pc.match_substring_regex(texts, _ABBREVIATED), texts, bare)
