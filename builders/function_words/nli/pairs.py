"""What the NLI probes make of sentences: hypotheses in which a word is changed, or denied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from builders.function_words.nli.clauses import (
    FINITE,
    SUBJECT_FIRST,
    Clause,
    Sentence,
    clauses,
    fixed_words,
)
from builders.function_words.nli.edits import Edit, rewritten
from builders.function_words.nli.lexicon import Lexicon
from builders.function_words.nli.negation import Denial, is_denied, negated
from builders.function_words.nli.rewordings import Form

KEPT, SWAPPED, NEGATED, BOTH = "kept", "swapped", "negated", "swapped and negated"
KINDS = (KEPT, SWAPPED, NEGATED, BOTH)

_STRANGE_DENIED = frozenset(("some", "few", "several"))
"""Words that a denial does not go with: "did not see some"."""

MOST_IN_DENIAL = 18
"""Most tokens of a text that is denied as a whole."""


class Source(NamedTuple):
    """What a pair is made of.

    Attributes:
        premise: the first text.
        hypothesis: the second text; of a corpus of documents it is the premise itself, of which a
            clause becomes the hypothesis.
        before: what stands before the premise in its paragraph, and is shown with it.
        reworded: hypotheses in words of their own.
    """

    premise: Sentence
    hypothesis: Sentence
    before: str = ""
    reworded: Sequence[Form] = ()

    @property
    def is_pair(self) -> bool:
        """Whether the two are different texts."""
        return self.premise is not self.hypothesis

    def shown(self, premise: str) -> str:
        """Return the premise, or what has been made of it, with the text before it."""
        return f"{self.before} {premise}" if self.before else premise


class TextPair(NamedTuple):
    """A premise and a hypothesis.

    Attributes:
        kind: what was done, one of the probe's kinds.
        old: the word of the class that the probe is about, in lower case.
        new: what stands for it; the same where it was kept, denied alone, or reworded.
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
    """Yield the hypotheses in which a word is kept or replaced, as they stand and denied.

    A clause is denied at its verb; what cannot be is denied as a whole, "it is not true that".
    """
    yield from _reworded(source)
    for place in places(source.hypothesis, lexicon):
        clause = _clause_of(source, place)
        kept = _pair(KEPT, source, place, place.old, clause, ())
        if not source.is_pair and kept.hypothesis != kept.premise:
            yield kept
        yield from _swapped(source, place, clause)
        if clause is not None and place.denial and place.first == clause.first:
            if not is_denied(clause):
                yield _pair(NEGATED, source, place, place.old, clause, place.denial)
            continue
        denied = _denied(clause, place)
        if denied is None:
            yield from _denied_as_a_whole(source, place, clause)
            continue
        yield _pair(NEGATED, source, place, place.old, clause, *denied)
        for new, edits in place.new:
            if new not in _STRANGE_DENIED:
                yield _pair(BOTH, source, place, new, clause, [*edits, *denied.edits], denied.flags)


def _reworded(source: Source) -> Iterator[TextPair]:
    """Yield the hypotheses in words of their own."""
    premise = source.shown(source.premise.text)
    for form in source.reworded:
        kind = KINDS[form.swapped + 2 * form.negated]
        # The other word may be in neither text.
        yield TextPair(kind, form.word, form.word, premise, form.text)


def _denied(clause: Clause | None, place: Place) -> Denial | None:
    """Return the edits that deny a clause at its verb; None where that is not sure."""
    if clause is None or not place.deny:
        return None
    if place.first < clause.verb and not place.deny_subject:
        return None
    return negated(clause)


def _denied_as_a_whole(source: Source, place: Place, clause: Clause | None) -> Iterator[TextPair]:
    """Yield the denials of a text that is short, begins with its subject, and denies nothing."""
    sentence = source.hypothesis
    first, last = (clause.first, clause.last) if clause else (0, len(sentence))
    tags, words = sentence.tags[first:last], sentence.words[first:last]
    if (
        len(words) > MOST_IN_DENIAL
        or tags[0] not in SUBJECT_FIRST
        or FINITE.isdisjoint(tags)
        or "," in tags[: next(at for at, tag in enumerate(tags) if tag in FINITE)]
        or not fixed_words("negative_words").isdisjoint(sentence.lower[first:last])
    ):
        return
    keeps_capital = tags[0] in ("NNP", "NNPS") or words[0] == "I" or words[0][1:].isupper()
    for kind, new, edits in (
        (NEGATED, place.old, ()),
        *((BOTH, new, edits) for new, edits in place.new),
    ):
        pair = _pair(kind, source, place, new, clause, edits)
        text = (
            pair.hypothesis if keeps_capital else pair.hypothesis[0].lower() + pair.hypothesis[1:]
        )
        yield pair._replace(hypothesis=f"It is not true that {text}")


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
    premise = source.shown(source.premise.text)
    return TextPair(kind, place.old, new, premise, hypothesis, flags)
