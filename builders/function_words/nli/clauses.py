"""Sentences as tokens and tags, and finite clauses in them that can stand alone.

Tags are those of the Penn Treebank. Uncertain cases are rejected: probes use only the structures
that rules recognize reliably, not everything in a corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from builders.english.word_lists import word_list

PACKAGE = "builders.function_words"

FINITE = frozenset(("VBZ", "VBP", "VBD", "MD"))
NOUNS = frozenset(("NN", "NNS", "NNP", "NNPS"))
_SUBJECT = NOUNS | {"DT", "PRP", "PRP$", "JJ", "JJR", "JJS", "CD", "IN", "CC", "POS", "PDT", "EX"}
SUBJECT_FIRST = NOUNS | {"DT", "PRP", "PRP$", "JJ", "JJR", "JJS", "CD", "PDT", "EX"}
_INNER_FIRST = NOUNS | {"DT", "PRP", "PRP$", "CD", "EX"}
"""Tags of the first token of a clause within a sentence; an adjective there ends another phrase."""

_SUBJECT_LAST = NOUNS | {"PRP", "DT", "EX"}
_NEVER_INSIDE = frozenset(("WP", "WDT", "WRB", "WP$", "UH", "EX", ":", "''", "``", "LS", "FW"))
_LAST = NOUNS | {"CD", "VBN", "VBG", "VB", "RB", "PRP", "RP", "JJR", "JJ"}
_SINGULAR, _PLURAL = frozenset(("NN", "NNP")), frozenset(("NNS", "NNPS"))
_THIRD = frozenset(("he", "she", "it"))
_OTHERS = frozenset(("i", "you", "we", "they"))
_SUBJECT_PRONOUNS = frozenset(("i", "he", "she", "we", "they"))
_PRONOUNS = _THIRD | _OTHERS
_SUBORDINATORS = frozenset(
    ("although", "because", "though", "unless", "until", "when", "whereas", "where", "while")
)
_TIME_CLAUSES = frozenset(("after", "before", "since", "until", "as", "while", "when", "because"))
"""Words in a subject which show that the verb belongs to an embedded clause."""

_AUXILIARIES = frozenset(
    ("am", "is", "are", "was", "were", "has", "have", "had", "'s", "'re", "'ve", "’s", "’re", "’ve")
)
_OPENS_SENTENCE = _SUBORDINATORS | {"after", "as", "before", "if", "once", "since", "so"}
_OPENS_CLAUSE = _SUBORDINATORS | {"whether"}
_BEGINS_MORE = frozenset(("CC", "IN", "WDT", "WP", "WRB", "VBG", "RB", "TO", "PRP", "VBN"))
"""Tags that may follow the comma after a complete clause: not nouns or adjectives of a list."""

_BARE_INFINITIVE = frozenset(("let", "lets", "help", "helps", "helped", "make", "makes", "made"))

LEAST_TOKENS = 4
"""Minimum number of tokens of a clause that can stand alone."""


@dataclass(frozen=True)
class Sentence:
    """A sentence with its tokens; ``start`` and ``end`` are offsets into the text."""

    text: str
    start: Sequence[int]
    end: Sequence[int]
    words: list[str]
    tags: list[str]

    @cached_property
    def lower(self) -> list[str]:
        """The tokens in lower case."""
        return [word.lower() for word in self.words]

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True)
class Clause:
    """A finite clause: the tokens ``first:last`` of a sentence, and where its finite verb is.

    The subject is ``first:subject_end``; adverbs may stand between it and the verb.
    """

    sentence: Sentence
    first: int
    last: int
    verb: int
    subject_end: int

    @property
    def whole(self) -> bool:
        """Whether it is the whole sentence except for the full stop."""
        return self.first == 0 and self.last >= len(self.sentence) - 1

    def holds(self, token: int) -> bool:
        """Return whether a token of the sentence is in the clause."""
        return self.first <= token < self.last


def clause_at(sentence: Sentence, first: int, last: int) -> Clause | None:
    """Return the clause formed by some tokens, or None if that is uncertain.

    It has one finite verb, a preceding subject that agrees in number, no question word, and an end
    that is possible for a clause.
    """
    tags, words = sentence.tags, sentence.words
    finite = [at for at in range(first, last) if tags[at] in FINITE]
    if len(finite) != 1 or last - first < LEAST_TOKENS:
        return None
    verb = finite[0]
    end = verb
    while end > first and tags[end - 1] == "RB":
        end -= 1
    if (
        end == first
        or tags[first] not in SUBJECT_FIRST
        or tags[end - 1] not in _SUBJECT_LAST
        or not _SUBJECT.issuperset(tags[first:end])
        or not _NEVER_INSIDE.isdisjoint(tags[first + 1 : last])
        or tags[last - 1] not in _LAST
        or not _agrees(sentence, first, end, verb)
        or not _infinitives(sentence, verb, last)
        or _lacks_a_verb(sentence, verb, last)
        or not _TIME_CLAUSES.isdisjoint(sentence.lower[first:end])
        or _holds_second_verb(sentence, verb, last)
    ):
        return None
    if any(word in ("?", "!", "(", ")", '"') for word in words[first:last]):
        return None
    if end == verb and verb + 1 < last and sentence.lower[verb + 1] in _SUBJECT_PRONOUNS:
        return None  # inverted
    return Clause(sentence, first, last, verb, end)


def clauses(sentence: Sentence) -> Iterator[Clause]:
    """Yield the clauses of a sentence that can stand alone: the whole first, then the longest.

    A clause begins the sentence, or follows a comma (and perhaps a conjunction) or a subordinator;
    it ends the sentence, or precedes a comma or a conjunction.
    """
    lower, tags = sentence.lower, sentence.tags
    stop = len(sentence) - 1  # the full stop
    begins, ends = [0], [stop]
    for at in range(1, stop):
        if tags[at] == ",":
            ends.append(at)
            after = at + 1
            begins.append(after)
            if tags[after] == "CC" and lower[after] != "or":
                begins.append(after + 1)
        elif lower[at] in _SUBORDINATORS:
            ends.append(at)
    spans = sorted(((last - first, first, last) for first in begins for last in ends), reverse=True)
    for _, first, last in spans:
        if first and (tags[first] not in _INNER_FIRST or not _may_begin(sentence, first)):
            continue
        if last != stop and not _may_end(sentence, first, last):
            continue
        if (found := clause_at(sentence, first, last)) is not None:
            yield found


def _may_begin(sentence: Sentence, first: int) -> bool:
    """Return whether a clause begins after a comma: not an absolute one ("his hat pulled low").

    After a comma alone this is certain if there is no verb before it, or a subordinate clause.
    """
    if sentence.tags[first - 1] == "CC":
        return True
    before = FINITE.isdisjoint(sentence.tags[:first])
    return before or sentence.lower[0] in _OPENS_SENTENCE


def _may_end(sentence: Sentence, first: int, last: int) -> bool:
    """Return whether the text after a clause is neither part of it nor of a list in it."""
    tags, before = sentence.tags, sentence.tags[last - 1]
    if before not in _LAST - {"JJ", "RB"}:
        return False
    if tags[last] != ",":
        return not sentence.tags[last - 1].startswith("VB")  # "not knowing where they went"
    pairs = zip(tags[first:last], tags[first + 1 : last], strict=False)
    if any(one == "," and other == "CC" for one, other in pairs):
        return False
    behind = sentence.tags[last + 1 : last + 2]
    if behind == ["CC"]:  # the last of a list, or another clause
        return "," not in tags[first:last]
    return bool(behind) and behind[0] in _BEGINS_MORE


def _agrees(sentence: Sentence, first: int, end: int, verb: int) -> bool:
    """Return whether a subject's head agrees with the verb in number; otherwise a tag is wrong."""
    tags, words = sentence.tags, sentence.words
    if end - first > 1 and "PRP" in tags[first:end]:
        return False
    if tags[first] == "PRP":
        subject = words[first].lower()
        if subject not in _PRONOUNS:
            return False
        if tags[verb] == "VBZ":
            return subject in _THIRD
        return tags[verb] != "VBP" or subject in _OTHERS
    if tags[end - 1] == "DT" and words[end - 1].lower() not in ("this", "that", "these", "those"):
        return False
    if tags[verb] in ("MD", "VBD") or tags[first] == "EX":
        return _was_agrees(sentence, first, end, verb)
    head, several = _head(tags, first, end)
    if several:
        return tags[verb] == "VBP"
    if head is None:
        return True
    return tags[head] in (_PLURAL if tags[verb] == "VBP" else _SINGULAR)


def _was_agrees(sentence: Sentence, first: int, end: int, verb: int) -> bool:
    was = sentence.words[verb].lower()
    if was not in ("was", "were") or sentence.tags[first] == "EX":
        return True
    head, several = _head(sentence.tags, first, end)
    if head is None or several:
        return not several or was == "were"
    return sentence.tags[head] in (_PLURAL if was == "were" else _SINGULAR)


def _head(tags: Sequence[str], first: int, end: int) -> tuple[int | None, bool]:
    """Return the head noun of a subject (None if none), and whether there are several."""
    head = None
    for at in range(first, end):
        if tags[at] in NOUNS:
            head = at
        elif tags[at] == "IN" and head is not None:
            return head, False
        elif tags[at] == "CC":
            return head, True
    return head, False


def _infinitives(sentence: Sentence, verb: int, last: int) -> bool:
    """Return whether every later infinitive is governed by a verb; otherwise a tag is wrong."""
    lower, tags = sentence.lower, sentence.tags
    governed = tags[verb] == "MD" or lower[verb] in ("do", "does", "did", *_BARE_INFINITIVE)
    for at in range(verb + 1, last):
        if tags[at] == "TO" or lower[at] in _BARE_INFINITIVE:
            governed = True
        elif tags[at] == "VB" and not governed:
            return False
    return True


def _lacks_a_verb(sentence: Sentence, verb: int, last: int) -> bool:
    """Return whether a conjunction opens another clause without its verb."""
    lower, tags = sentence.lower, sentence.tags
    return any(
        (lower[at] == "that" and tags[at] == "IN") or lower[at] in _OPENS_CLAUSE
        for at in range(verb + 1, last)
    )


def _holds_second_verb(sentence: Sentence, verb: int, last: int) -> bool:
    """Return whether a participle after a conjunction may be a finite verb: "lay and napped"."""
    lower, tags = sentence.lower, sentence.tags
    if tags[verb] == "MD" or lower[verb] in _AUXILIARIES:
        return False
    behind = tags[verb + 1 : last]
    return "CC" in behind and not {"VBN", "VBD"}.isdisjoint(behind[behind.index("CC") :])


@cache
def fixed_words(name: str) -> frozenset[str]:
    """Return the words of one of the family's lists, with spaces in multi-word entries."""
    return frozenset(word.replace("-", " ") for word in word_list(name, PACKAGE))
