"""How a relation is asked for, from its name alone.

The name is all that is known of what a relation means, so that a build shows what it made of it;
a template says it better.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import inflect

from builders.engine.render.template_file import Template, Wording

PREPOSITIONS = ("at", "by", "for", "from", "in", "into", "of", "on", "to", "with")
VERBS = ("is", "was", "are", "were", "has", "have", "had", "can", "does", "did")

_ID = re.compile(r"[^a-z0-9]+")
_WORDS = re.compile(r"[_\-\s]+|(?<=[a-z])(?=[A-Z])")


def plain_name(relation: str) -> str:
    """Return a relation's name as words.

    >>> plain_name("bornIn"), plain_name("discovery_year"), plain_name("capital of")
    ('born in', 'discovery year', 'capital of')
    """
    words = [word for word in _WORDS.split(relation) if word]
    return " ".join(word if word.isupper() else word.lower() for word in words)


def wordings_of(relation: str, several: bool) -> tuple[str, str]:
    """Return a question and the beginning of a sentence, in which ``{}`` stands for the subject.

    Args:
        relation: its name.
        several: whether a subject may have several objects.

    >>> wordings_of("capital", False)
    ('What is the capital of {}?', 'The capital of {} is')
    >>> wordings_of("official_language", True)[0]
    'Which of these is an official language of {}?'
    >>> wordings_of("bornIn", False)
    ('{} was born in which of these?', '{} was born in')
    >>> wordings_of("has part", False)[1]
    '{} has part'
    """
    name = plain_name(relation)
    words = name.split()
    if not words:
        return "Which of these goes with {}?", "{} goes with"
    if words[0] in VERBS:
        return f"{{}} {name} which of these?", f"{{}} {name}"
    if words[-1] in PREPOSITIONS and words[-1] != "of":
        verb = "was" if words[0].endswith(("ed", "en", "rn")) else "is"
        return f"{{}} {verb} {name} which of these?", f"{{}} {verb} {name}"
    noun = name.removesuffix(" of")
    if several:
        noun = _singular(noun)
        article = "an" if noun[0].lower() in "aeiou" else "a"
        return f"Which of these is {article} {noun} of {{}}?", f"One {noun} of {{}} is"
    return f"What is the {noun} of {{}}?", f"The {noun} of {{}} is"


def _singular(noun: str) -> str:
    """Return the singular of a noun phrase: a column of several values is often named so.

    >>> _singular("official languages"), _singular("discoverer")
    ('official language', 'discoverer')
    """
    *before, last = noun.split()
    return " ".join([*before, inflect.engine().singular_noun(last) or last])


def template_of(relations: Sequence[tuple[str, bool]]) -> Template:
    """Return the wordings of relations, two each; see `wordings_of`."""
    wordings = tuple(
        Wording(f"{_ID.sub('-', relation.lower())}-{number}-{kind}",
                text.replace("{}", "{{ word }}"), (plain_name(relation).removesuffix(" of"),), 1)
        for number, (relation, several) in enumerate(relations, 1)
        for kind, text in zip(("question", "statement"), wordings_of(relation, several), strict=True)
    )  # fmt: skip
    texts = repr([(one.id, one.text) for one in wordings])
    return Template(
        probe="facts",
        about="What does a table say of its subjects?",
        questions=wordings,
        choice="{{ lemma }}",
        arguments=("word",),
        digest=hashlib.sha256(texts.encode("utf-8", "surrogatepass")).hexdigest(),
        sources=("the names of relations",),
    )
