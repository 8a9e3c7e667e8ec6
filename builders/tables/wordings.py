"""How facts are asked for, from the names of relations alone, or as a user's file says.

A name is all that is known of what a relation means, so that a build shows what it made of it;
a file of wordings says it better.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import inflect

from builders.engine.render.jinja import TemplateError
from builders.engine.render.template_file import Template, Wording
from builders.tables.ways import Way
from kbprobe.errors import did_you_mean
from kbprobe.reading import read_text

PREPOSITIONS = ("at", "by", "for", "from", "in", "into", "of", "on", "to", "with")
VERBS = ("is", "was", "are", "were", "has", "have", "had", "can", "does", "did")

WORD = "{{ word }}"

_ID = re.compile(r"[^a-z0-9]+")
_WORDS = re.compile(r"[_\-\s]+|(?<=[a-z])(?=[A-Z])")


def plain_name(relation: str) -> str:
    """Return a relation's name as words.

    >>> plain_name("bornIn"), plain_name("discovery_year"), plain_name("capital of")
    ('born in', 'discovery year', 'capital of')
    """
    words = [word for word in _WORDS.split(relation) if word]
    return " ".join(word if word.isupper() else word.lower() for word in words)


def noun_of(relation: str) -> str | None:
    """Return the noun that names what a relation leads to; None if its name is a predicate.

    >>> noun_of("capital of"), noun_of("discovery_year"), noun_of("bornIn"), noun_of("has part")
    ('capital', 'discovery year', None, None)
    """
    words = plain_name(relation).removesuffix(" of").split()
    if not words or words[0] in VERBS or words[-1] in PREPOSITIONS:
        return None
    return " ".join(words)


def wordings_of(way: Way) -> tuple[str, ...]:
    """Return questions and beginnings of sentences, in which ``{}`` stands for the subject.

    >>> wordings_of(Way(("capital",)))
    ('What is the capital of {}?', 'The capital of {} is')
    >>> wordings_of(Way(("official_languages",), several=True))[0]
    'Which of these is an official language of {}?'
    >>> wordings_of(Way(("bornIn",)))
    ('{} was born in which of these?', '{} was born in')
    >>> wordings_of(Way(("capital",), inverse=True))
    ('{} is the capital of which of these?', '{} is the capital of')
    >>> wordings_of(Way(("bornIn", "capital")))
    ('What is the capital of what {} was born in?',)
    >>> wordings_of(Way(("discoverers",)))[1]
    'The discoverers of {} are'
    """
    *before, last = way.relations
    noun = noun_of(last)
    subject = "{}"
    for name in before:
        own = noun_of(name)
        subject = f"what {subject} {_predicate(name)}" if own is None else f"the {own} of {subject}"
    if way.inverse:
        if noun is None:
            return (f"Which of these {_predicate(last)} {{}}?",)
        article = _article(noun) if way.several and noun != _singular(noun) else "the"
        noun = _singular(noun)
        return f"{{}} is {article} {noun} of which of these?", f"{{}} is {article} {noun} of"
    if noun is None:
        predicate = _predicate(last)
        if before:
            return (f"{_upper(subject)} {predicate} which of these?",)
        return f"{subject} {predicate} which of these?", f"{subject} {predicate}"
    if way.several:
        noun = _singular(noun)
        asked = f"Which of these is {_article(noun)} {noun} of {subject}?"
        return (asked,) if before else (asked, f"One {noun} of {subject} is")
    noun = _singular(noun) if way.single else noun
    verb = "is" if noun == _singular(noun) else "are"
    asked = f"What {verb} the {noun} of {subject}?"
    return (asked,) if before else (asked, f"The {noun} of {subject} {verb}")


def _predicate(relation: str) -> str:
    """Return a relation's name as the predicate of a sentence.

    >>> _predicate("bornIn"), _predicate("part of"), _predicate("has part"), _predicate("")
    ('was born in', 'is part of', 'has part', 'goes with')
    """
    name = plain_name(relation)
    words = name.split()
    if not words:
        return "goes with"
    if words[0] in VERBS:
        return name
    return f"{'was' if words[0].endswith(('ed', 'en', 'rn')) else 'is'} {name}"


def _upper(text: str) -> str:
    return text if text.startswith("{") else text[:1].upper() + text[1:]


@lru_cache(maxsize=1)
def _english() -> inflect.engine:
    return inflect.engine()


def _singular(noun: str) -> str:
    """Return the singular of a noun phrase: a column of several values is often named so.

    >>> _singular("official languages"), _singular("discoverer"), _singular("series")
    ('official language', 'discoverer', 'series')
    """
    *before, last = noun.split()
    return " ".join([*before, _english().singular_noun(last) or last])


def _article(noun: str) -> str:
    return str(_english().a(noun)).split()[0]


def read_wordings(path: Path, ways: Sequence[Way]) -> Mapping[str, tuple[str, ...]]:
    """Read a user's wordings: a YAML file of a list of texts for each relation.

    Raises:
        TemplateError: the file cannot be read, names a relation that is not asked about, or has a
            text without the subject.
    """
    import yaml

    try:
        given: Any = yaml.safe_load(read_text(path))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise TemplateError(f"it is not YAML: {error.problem}", where=f"{path}:{line}") from error
    if not isinstance(given, dict):
        raise TemplateError(
            f"it has no wordings. Write a relation and its texts in each line, such as\n"
            f'  {ways[0].name}: ["What is the {noun_of(ways[0].relations[-1])} of {WORD}?"]',
            where=str(path),
        )
    names = [way.name for way in ways]
    wordings = {}
    for name, texts in given.items():
        if name not in names:
            hint = did_you_mean(str(name), names)
            raise TemplateError(
                f"{name!r} is no relation that is asked about.{hint} They are: {', '.join(names)}",
                where=str(path),
            )
        listed = [texts] if isinstance(texts, str) else texts
        if not isinstance(listed, list) or not listed:
            raise TemplateError(f"{name!r} has no texts", where=str(path))
        for text in listed:
            if not isinstance(text, str) or "word" not in text:
                raise TemplateError(
                    f"a wording of {name!r} does not show the subject; write {WORD} where it "
                    f"stands: {text!r}",
                    where=str(path),
                )
        wordings[name] = tuple(listed)
    return wordings


def texts_of(ways: Sequence[Way], override: Path | None) -> list[tuple[str, ...]]:
    """Return the wordings of each way as Jinja texts."""
    given = read_wordings(override, ways) if override else {}
    return [
        given.get(way.name) or tuple(text.replace("{}", WORD) for text in wordings_of(way))
        for way in ways
    ]


def _key_words(way: Way, text: str) -> tuple[str, ...]:
    """Return the words of a wording that say what is asked for."""
    names = " ".join(map(plain_name, way.relations)).split()
    named = {*names, *map(_singular, names)} - {*PREPOSITIONS, *VERBS}
    words = re.findall(r"[^\W\d_]+", re.sub(r"{.*?}", " ", text))
    found = tuple(dict.fromkeys(word for word in words if word in named))
    return found or (max(words, key=len),) if words else ()


def name_of(way: Way, number: int) -> str:
    """Return the name of a way's wordings; ``number`` tells ways with similar names apart."""
    return f"{_ID.sub('-', way.name.lower()).strip('-') or 'relation'}-{number}"


def template_of(ways: Sequence[Way], override: Path | None) -> Template:
    """Return the wordings of all ways, one after the other; see `texts_of`."""
    wordings = tuple(
        Wording(f"{name_of(way, number)}.{place}", text, _key_words(way, text), 1)
        for number, (way, texts) in enumerate(zip(ways, texts_of(ways, override), strict=True), 1)
        for place, text in enumerate(texts, 1)
    )
    digest = repr([(one.id, one.text) for one in wordings])
    return Template(
        probe="facts",
        about="What does a table say of its subjects?",
        questions=wordings,
        choice="{{ lemma }}",
        arguments=("word",),
        digest=hashlib.sha256(digest.encode("utf-8", "surrogatepass")).hexdigest(),
        sources=(str(override) if override else "the names of relations",),
    )
