"""How a relation is asked for, from its name alone.

The name is all that is known of what a relation means, so that a build shows what it made of it;
a template says it better.
"""

from __future__ import annotations

import re
from typing import NamedTuple

PREPOSITIONS = ("at", "by", "for", "from", "in", "into", "of", "on", "to", "with")
VERBS = ("is", "was", "are", "were", "has", "have", "had", "can", "does", "did")

_WORDS = re.compile(r"[_\-\s]+|(?<=[a-z])(?=[A-Z])")


class Wording(NamedTuple):
    """A question, and the beginning of a sentence, in which ``{}`` stands for the subject."""

    question: str
    statement: str


def plain_name(relation: str) -> str:
    """Return a relation's name as words.

    >>> plain_name("bornIn"), plain_name("discovery_year"), plain_name("capital of")
    ('born in', 'discovery year', 'capital of')
    """
    words = [word for word in _WORDS.split(relation) if word]
    return " ".join(word if word.isupper() else word.lower() for word in words)


def wording(relation: str, several: bool) -> Wording:
    """Make the wording of a relation.

    Args:
        relation: its name.
        several: whether a subject may have several objects.

    >>> wording("capital", False).question, wording("capital of", False).statement
    ('What is the capital of {}?', 'The capital of {} is')
    >>> wording("official_language", True).question
    'Which of these is an official language of {}?'
    >>> wording("bornIn", False)
    Wording(question='{} was born in which of these?', statement='{} was born in')
    >>> wording("has part", False).statement
    '{} has part'
    """
    name = plain_name(relation)
    words = name.split()
    if not words:
        return Wording("Which of these goes with {}?", "{} goes with")
    if words[0] in VERBS:
        return Wording(f"{{}} {name} which of these?", f"{{}} {name}")
    if words[-1] in PREPOSITIONS and words[-1] != "of":
        verb = "was" if words[0].endswith(("ed", "en", "rn")) else "is"
        return Wording(f"{{}} {verb} {name} which of these?", f"{{}} {verb} {name}")
    noun = name.removesuffix(" of")
    if several:
        article = "an" if noun[0].lower() in "aeiou" else "a"
        return Wording(f"Which of these is {article} {noun} of {{}}?", f"One {noun} of {{}} is")
    return Wording(f"What is the {noun} of {{}}?", f"The {noun} of {{}} is")
