"""How facts are asked for, from the names of relations alone, or as a user's file says.

A name is all that is known of what a relation means, so that a build shows what it made of it;
a file of wordings says it better.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from builders.engine.render.jinja import TemplateError
from builders.engine.render.template_file import Template, Wording, plain_values, read_nodes
from builders.english.inflection import inflect_engine, with_article
from builders.english.word_lists import word_list
from builders.tables.ways import WayToAsk
from kbprobe.errors import did_you_mean

PREPOSITIONS = (
    "about", "after", "against", "as", "at", "before", "between", "by", "during", "for", "from",
    "in", "into", "near", "of", "on", "over", "through", "to", "under", "via", "with", "within",
)  # fmt: skip

DATA = "builders.tables"

WORD = "{{ word }}"

_ID = re.compile(r"[^a-z0-9]+")
_WORDS = re.compile(r"[_\s{}]+|(?<=[a-z])(?=[A-Z])")
_PARTICIPLE = re.compile("(?:first |last |originally )?([a-z]+ed|born|built)")
_NUMBER_OF, _ASIDE = re.compile(r"^(?:#|[Nn]o\.) of"), re.compile(r"\s*\(.*\)|[?:]$")
_NAMESPACE = re.compile(r"^(?:.*[/#]|[A-Za-z][\w.-]*:(?=\w))(?=[^/#]*\w)")


def plain_name(relation: str) -> str:
    """Return a relation's name as words.

    >>> plain_name("bornIn"), plain_name("discovery_year"), plain_name("capital of")
    ('born in', 'discovery year', 'capital of')
    >>> plain_name("http://schema.org/birthPlace"), plain_name("date-of-birth")
    ('birth place', 'date of birth')
    """
    name = _NAMESPACE.sub("", _NUMBER_OF.sub("number of", relation))
    name = _ASIDE.sub("", name) or name
    if name.count("-") > 1 and " " not in name:
        name = name.replace("-", " ")
    words = [word for word in _WORDS.split(name) if word]
    return " ".join(word if word[1:].isupper() else word.lower() for word in words)


class Meaning(NamedTuple):
    """What the name of a relation says: a predicate of the subject, or a noun for one of its ends.

    Attributes:
        predicate: what is said of the subject, before the object; empty: the name is a noun.
        noun: the noun.
        of_subject: whether the subject is the noun of the object ("capital of"); otherwise the
            object is the noun of the subject ("capital").
    """

    predicate: str = ""
    noun: str = ""
    of_subject: bool = False


def meaning_of(relation: str) -> Meaning:
    """Return what the name of a relation says.

    >>> meaning_of("discovery_year").noun, meaning_of("place of birth").noun
    ('discovery year', 'place of birth')
    >>> meaning_of("capital of")
    Meaning(predicate='', noun='capital', of_subject=True)
    >>> [meaning_of(name).predicate for name in ("bornIn", "part of", "located_in", "speaks", "")]
    ['was born in', 'is part of', 'is located in', 'speaks', 'goes with']
    """
    name = plain_name(relation)
    first, *rest = name.split() or [""]
    if not first:
        return Meaning("goes with")
    if first in ("is", "was", "are", "were"):
        return Meaning(name)
    if first in ("has", "have") and rest:
        return Meaning(name) if rest[-1] in ("a", "an", "the") else Meaning("", " ".join(rest))
    if rest[:1] == ["of"] and _singular(first) in word_list("said_of_subject", DATA):
        noun = _singular(first)
        article, whole = "" if noun == "part" else f"{_article(noun)} ", " ".join(rest[1:])
        return Meaning(f"is {article}{noun} of{f' the {whole}' if whole else ''}")
    if rest[-1:] == ["of"] and first not in word_list("states", DATA):
        return Meaning("", name.removesuffix(" of"), of_subject=True)
    if rest and rest[0] in PREPOSITIONS:
        # What follows the preposition says only what kind of thing the object is.
        begun = f"{first} {rest[0]}"
        if first in word_list("states", DATA):
            return Meaning(f"is {begun}")
        if first in word_list("intransitive", DATA) and rest[0] != "by":
            return Meaning(begun)
        if first.endswith(("ed", "en", "rn")) or rest[0] == "by":
            return Meaning(f"was {begun}")
        if first.endswith("s") and rest[0] != "of":
            return Meaning(begun)
    if first in word_list("predicates", DATA):
        return Meaning(f"{first} the {rest[0]}" if len(rest) == 1 else name)
    if first in PREPOSITIONS or (rest and rest[-1] in PREPOSITIONS):
        passive = rest[-1:] == ["by"] or first.endswith(("ed", "en", "rn"))
        return Meaning(f"{'was' if passive else 'is'} {name}")
    return Meaning("", name)


def wordings_of(way: WayToAsk) -> tuple[str, ...]:
    """Return questions and beginnings of sentences, in which ``{}`` stands for the subject.

    >>> wordings_of(WayToAsk(("capital",)))
    ('What is the capital of {}?', 'The capital of {} is')
    >>> wordings_of(WayToAsk(("official_languages",), several=True))[0]
    'Which of these is an official language of {}?'
    >>> wordings_of(WayToAsk(("bornIn",)))
    ('{} was born in which of these?', '{} was born in')
    >>> wordings_of(WayToAsk(("capital",), inverse=True))
    ('{} is the capital of which of these?', '{} is the capital of')
    >>> wordings_of(WayToAsk(("capital of",))) == wordings_of(WayToAsk(("capital",), inverse=True))
    True
    >>> wordings_of(WayToAsk(("number of moons",)))[1]
    'The number of moons of {} is'
    >>> wordings_of(WayToAsk(("bornIn", "capital")))
    ('What is the capital of the place where {} was born?',)
    >>> wordings_of(WayToAsk(("discoverers",)))[1]
    'The discoverers of {} are'
    """
    if way.sentence:
        return (way.sentence,)
    *before, last = way.relations
    subject = "{}"
    participle = _PARTICIPLE.fullmatch(plain_name(last))
    if participle and way.dated and not (before or way.inverse):
        text = participle[0]
        if participle[1] in word_list("intransitive", DATA):
            return f"{{}} {text} in which year?", f"{{}} {text} in"
        return f"In which year was {{}} {text}?", f"{{}} was {text} in"
    for name in before:
        subject = _reached_from(subject, meaning_of(name), way.through_several)
    meaning = meaning_of(last)
    if meaning.predicate:
        if way.inverse:
            return (f"Which of these {meaning.predicate} {{}}?",)
        asked = f"{_upper(subject)} {meaning.predicate} which of these?"
        return (asked,) if before else (asked, f"{subject} {meaning.predicate}")
    noun = _singular(meaning.noun)
    if meaning.of_subject != way.inverse:
        article = "the"
        if way.shared or noun != meaning.noun:
            article = _article(noun)
        asked = f"{_upper(subject)} is {article} {noun} of which of these?"
        return (asked,) if before else (asked, f"{subject} is {article} {noun} of")
    if way.several:
        asked = f"Which of these is {_article(noun)} {noun} of {subject}?"
        return (asked,) if before else (asked, f"One {noun} of {subject} is")
    noun = noun if way.single or way.inverse else meaning.noun
    verb = "is" if noun == _singular(noun) else "are"
    asked = f"What {verb} the {noun} of {subject}?"
    return (asked,) if before else (asked, f"The {noun} of {subject} {verb}")


def _reached_from(subject: str, meaning: Meaning, several: bool) -> str:
    """Return what a first relation leads to, as a phrase."""
    if meaning.noun:
        if meaning.of_subject:
            return f"what {subject} is the {meaning.noun} of"
        noun = _singular(meaning.noun)
        return f"{_article(noun) if several else 'the'} {noun} of {subject}"
    verb, _, preposition = meaning.predicate.rpartition(" ")
    if preposition in ("in", "at"):
        return f"the place where {subject} {verb}"
    return f"what {subject} {meaning.predicate}"


def leads_to_years(way: WayToAsk) -> bool:
    """Return whether a relation is called so that four digits are years.

    >>> leads_to_years(WayToAsk(("discovery_year",))), leads_to_years(WayToAsk(("elevation",)))
    (True, False)
    """
    names = " ".join(map(plain_name, way.relations)).split()
    return not word_list("year_names", DATA).isdisjoint(names)


def _upper(text: str) -> str:
    return text if text.startswith("{") else text[:1].upper() + text[1:]


def _singular(noun: str) -> str:
    """Return the singular of a noun phrase: a column of several values is often named so.

    >>> _singular("official languages"), _singular("places of birth"), _singular("series")
    ('official language', 'place of birth', 'series')
    """
    words = noun.split()
    head = (
        next((at for at, word in enumerate(words) if at and word in PREPOSITIONS), len(words)) - 1
    )
    word = words[head]
    kept = (
        word.isupper() or word.endswith(("is", "us", "ss")) or word in word_list("singulars", DATA)
    )
    singular = word if kept else inflect_engine().singular_noun(word) or word
    return " ".join([*words[:head], singular, *words[head + 1 :]])


def _article(noun: str) -> str:
    return with_article(noun).split()[0]


def read_wordings(path: Path, ways: Sequence[WayToAsk]) -> Mapping[str, tuple[str, ...]]:
    """Read a user's wordings: a YAML file of a list of texts for each relation.

    Raises:
        TemplateError: the file cannot be read, names a relation that is not asked about, or has a
            text without the subject.
    """
    source = str(path)
    given = plain_values(read_nodes(path, source, "a file of wordings")[1], source)
    names = [way.name for way in ways]
    if not isinstance(given, dict):
        noun = meaning_of(ways[0].relations[-1]).noun or "capital"
        raise TemplateError(
            f"it has no wordings. Write a relation and its texts in each line, such as\n"
            f'  {ways[0].name}: ["What is the {noun} of {WORD}?"]',
            where=source,
        )
    wordings = {}
    for name, texts in given.items():
        if name not in names:
            hint = did_you_mean(name, names)
            raise TemplateError(
                f"{name!r} is no relation that is asked about.{hint} They are: {', '.join(names)}",
                where=source,
            )
        listed = [texts] if isinstance(texts, str) else texts
        if not isinstance(listed, list) or not listed:
            raise TemplateError(f"{name!r} has no texts", where=source)
        for text in listed:
            if not isinstance(text, str) or "word" not in text:
                raise TemplateError(
                    f"a wording of {name!r} does not show the subject; write {WORD} where it "
                    f"stands: {text!r}",
                    where=source,
                )
        wordings[name] = tuple(listed)
    return wordings


def texts_of(ways: Sequence[WayToAsk], override: Path | None) -> list[tuple[str, ...]]:
    """Return the wordings of each way as Jinja texts."""
    given = read_wordings(override, ways) if override else {}
    return [
        given.get(way.name) or tuple(_with_word(text) for text in wordings_of(way)) for way in ways
    ]


def _with_word(text: str) -> str:
    """Return a wording as a Jinja text, which shows the subject with *the* where it takes it."""
    first, rest = text[:2], text[2:]
    start = "{{ word | definite('The') }}" if first == "{}" else first
    return start + rest.replace("{}", "{{ word | definite }}")


def _key_words(way: WayToAsk, text: str) -> tuple[str, ...]:
    """Return the words of a wording that say what is asked for."""
    names = " ".join(map(plain_name, way.relations)).split()
    named = {*names, *map(_singular, names)} - {*PREPOSITIONS, "is", "was", "are"}
    words = re.findall(r"[^\W\d_]+", re.sub(r"{.*?}", " ", text))
    found = tuple(dict.fromkeys(word for word in words if word in named))
    return found or (max(words, key=len),) if words else ()


def name_of(way: WayToAsk, number: int) -> str:
    """Return the name of a way's wordings; ``number`` tells ways with similar names apart."""
    return f"{_ID.sub('-', way.name.lower()).strip('-') or 'relation'}-{number}"


def template_of(ways: Sequence[WayToAsk], override: Path | None) -> Template:
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
