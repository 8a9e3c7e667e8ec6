"""What the NLI probes make of sentences: hypotheses in which a word is changed, or denied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from builders.function_words.nli.clauses import Clause, Sentence, clauses
from builders.function_words.nli.edits import Edit, rewritten
from builders.function_words.nli.lexicon import Lexicon
from builders.function_words.nli.negation import is_denied, negated

SWAPPED, NEGATED, BOTH = "swapped", "negated", "swapped and negated"
KINDS = (SWAPPED, NEGATED, BOTH)

_STRANGE_DENIED = frozenset(("some", "few", "several"))
"""Words that a denial does not go with: "did not see some"."""


class Source(NamedTuple):
    """What a pair is made of.

    Attributes:
        premise: the first text.
        hypothesis: the second text; of a corpus of documents it is the premise itself, of which a
            clause becomes the hypothesis.
    """

    premise: Sentence
    hypothesis: Sentence

    @property
    def is_pair(self) -> bool:
        """Whether the two are different texts."""
        return self.premise is not self.hypothesis


class TextPair(NamedTuple):
    """A premise and a hypothesis.

    Attributes:
        kind: what was done, one of the probe's kinds.
        old: the word of the class that the probe is about, in lower case.
        new: what stands for it; the same where it was denied alone.
        premise, hypothesis: the texts.
        flags: what is doubtful about them, of `builders.function_words.nli.negation.FLAGS`.
    """

    kind: str
    old: str
    new: str
    premise: str
    hypothesis: str
    flags: tuple[str, ...] = ()


class Place(NamedTuple):
    """A word, or several, that may be replaced: the tokens ``first:last``.

    Attributes:
        first, last: the tokens.
        old: the word, in lower case.
        new: for each way to replace it, the word that is then shown as new, and the edits.
        deny: whether its clause may be denied where the word stands in its predicate.
        denial: the edits that deny its clause where the word begins it ("not all").
        deny_subject: whether its clause may be denied at the verb though it is in the subject.
    """

    first: int
    last: int
    old: str
    new: Sequence[tuple[str, Sequence[Edit]]]
    deny: bool = True
    denial: Sequence[Edit] = ()
    deny_subject: bool = False


Places = Callable[[Sentence, Lexicon], Iterator[Place]]
"""Finds the places of a word class in a sentence."""


def swaps(places: Places, source: Source, lexicon: Lexicon) -> Iterator[TextPair]:
    """Yield the hypotheses in which a word is replaced: the clause with it, or all of the text."""
    for place in places(source.hypothesis, lexicon):
        yield from _swapped(source, place, _clause_of(source, place))


def swaps_and_denials(places: Places, source: Source, lexicon: Lexicon) -> Iterator[TextPair]:
    """Yield the hypotheses in which a word is replaced, its clause denied, or both.

    A denial needs a clause that stands alone; the hypothesis is that clause.
    """
    for place in places(source.hypothesis, lexicon):
        clause = _clause_of(source, place)
        yield from _swapped(source, place, clause)
        if clause is None:
            continue
        if place.denial and place.first == clause.first:
            if is_denied(clause):
                continue
            yield _pair(NEGATED, source, place, place.old, clause, place.denial)
            continue
        if place.first < clause.verb and not place.deny_subject:
            continue
        denied = negated(clause) if place.deny else None
        if denied is None:
            continue
        yield _pair(NEGATED, source, place, place.old, clause, *denied)
        for new, edits in place.new:
            if new not in _STRANGE_DENIED:
                yield _pair(BOTH, source, place, new, clause, [*edits, *denied.edits], denied.flags)


def _swapped(source: Source, place: Place, clause: Clause | None) -> Iterator[TextPair]:
    for new, edits in place.new:
        yield _pair(SWAPPED, source, place, new, clause, edits)


def _clause_of(source: Source, place: Place) -> Clause | None:
    """Return the longest clause with a place that can stand alone; None if there is none.

    Of a pair it is the whole hypothesis.
    """
    for clause in clauses(source.hypothesis):
        if clause.first <= place.first and place.last <= clause.last:
            return clause if clause.whole or not source.is_pair else None
    return None


def _pair(
    kind: str,
    source: Source,
    place: Place,
    new: str,
    clause: Clause | None,
    edits: Sequence[Edit],
    flags: tuple[str, ...] = (),
) -> TextPair:
    span = (clause.first, clause.last) if clause is not None else (0, 0)
    hypothesis = rewritten(source.hypothesis, edits, *span)
    return TextPair(kind, place.old, new, source.premise.text, hypothesis, flags)
