"""Hypotheses of the NLI probes, in which a word of a sentence is changed or negated.

A hypothesis that is a clause of its premise shares most words with it. For premises of the default
corpus, a language model therefore wrote other hypotheses. ``data/rewordings_NAME.csv`` has a line
for each: the premise, and a template with two alternatives for the word that the probe is about
(first the one that follows from the premise) and two for the verb (the second negated): "Domestic
steel {was|was not} [more|less] expensive than imports."
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import product
from typing import NamedTuple

from builders.function_words.nli.clauses import (
    FINITE,
    NOUNS,
    SUBJECT_FIRST,
    Clause,
    Sentence,
    clauses,
    fixed_words,
)
from builders.function_words.nli.edits import Denial, Edit, is_denied, negated, rewritten
from builders.function_words.nli.lexicon import WordKinds
from kbprobe.format.negation import FORMS, PATTERNS

_WORD = re.compile(r"\[([^|]+)\|([^\]]+)\]")
_VERB = re.compile(r"\{([^|]+)\|([^}]+)\}")


class Form(NamedTuple):
    """A form of a reworded hypothesis.

    Attributes:
        swapped, negated: whether it contains the second word, and the second verb.
        word: the word that it contains, in lower case.
        text: the hypothesis.
    """

    swapped: bool
    negated: bool
    word: str
    text: str


def forms(template: str) -> list[Form]:
    """Return the four forms of a template.

    >>> [form.text for form in forms("[More|Fewer] guests {came|did not come}.")]
    ['More guests came.', 'More guests did not come.', 'Fewer guests came.', \
'Fewer guests did not come.']
    """
    (words,), (verbs,) = _WORD.findall(template), _VERB.findall(template)
    return [
        Form(
            bool(swapped),
            bool(negated),
            words[swapped].lower(),
            _VERB.sub(verbs[negated], _WORD.sub(words[swapped], template)),
        )
        for swapped, negated in product(range(2), repeat=2)
    ]


@cache
def rewordings(probe: str, package: str) -> Mapping[str, Sequence[Form]]:
    """Return the reworded hypotheses that come with a package, if any: premise -> forms."""
    file = resources.files(package).joinpath("data", f"rewordings_{probe}.csv")
    if not file.is_file():
        return {}
    _, *rows = csv.reader(file.read_text("utf-8").splitlines())
    return {premise: forms(template) for premise, template in rows}


KEPT, SWAPPED, NEGATED, BOTH = "kept", "swapped", "negated", "swapped and negated"
KINDS = (KEPT, SWAPPED, NEGATED, BOTH)

_STRANGE_DENIED = frozenset(("some", "few", "several"))
"""Words that do not go with a negation: "did not see some"."""

MOST_IN_DENIAL = 18
"""Maximum number of tokens of a text that is negated as a whole."""


class PairSource(NamedTuple):
    """The texts from which a pair is made.

    Attributes:
        premise: the first text.
        hypothesis: the second text; in a corpus of documents it is the premise itself, of which a
            clause becomes the hypothesis.
        before: the preceding text in the premise's paragraph, which is shown with it.
        reworded: hypotheses with a different wording.
    """

    premise: Sentence
    hypothesis: Sentence
    before: str = ""
    reworded: Sequence[Form] = ()

    @property
    def is_pair(self) -> bool:
        """Whether the two are different texts."""
        return self.premise is not self.hypothesis

    def with_rewordings(self, reworded: Mapping[str, Sequence[Form]]) -> PairSource:
        """Return the source with the reworded hypotheses that were written for it."""
        return self._replace(reworded=reworded.get(self.shown(self.premise.text), ()))

    def shown(self, premise: str) -> str:
        """Return the premise, perhaps changed, with the text before it."""
        return f"{self.before} {premise}" if self.before else premise


class TextPair(NamedTuple):
    """A premise and a hypothesis.

    Attributes:
        kind: what was done, one of the probe's kinds.
        old: the word that the probe is about, in lower case.
        new: its replacement; the same word if it was kept, only negated, or reworded.
        premise, hypothesis: the texts.
        flags: doubts about them (`builders.function_words.nli.edits.FLAGS`).
    """

    kind: str
    old: str
    new: str
    premise: str
    hypothesis: str
    flags: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, str]:
        """The premise and the hypothesis."""
        return self.premise, self.hypothesis


class Place(NamedTuple):
    """A word or phrase that may be replaced: the tokens ``first:last``.

    Attributes:
        first, last: the tokens.
        old: the word, in lower case.
        new: for each replacement, the new word and the edits.
        deny: whether its clause may be negated if the word is in its predicate.
        denial: the edits that negate its clause if the word begins it ("not all").
        deny_subject: whether its clause may be negated at the verb although the word is in the
            subject.
    """

    first: int
    last: int
    old: str
    new: Sequence[tuple[str, Sequence[Edit]]]
    deny: bool = True
    denial: Sequence[Edit] = ()
    deny_subject: bool = False


Places = Callable[[Sentence, WordKinds], Iterator[Place]]
"""A function that finds the places of a word class in a sentence."""


def swaps(places: Places, source: PairSource, lexicon: WordKinds) -> Iterator[TextPair]:
    """Yield the hypotheses in which a word is replaced: its clause, or the whole text."""
    for place in places(source.hypothesis, lexicon):
        yield from _swapped(source, place, _clause_of(source, place))


def swaps_and_denials(places: Places, source: PairSource, lexicon: WordKinds) -> Iterator[TextPair]:
    """Yield the hypotheses in which a word is kept or replaced, affirmative and negated.

    A clause is negated at its verb; if that is not possible, the whole text is: "it is not true
    that".
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


def _reworded(source: PairSource) -> Iterator[TextPair]:
    """Yield the reworded hypotheses."""
    premise = source.shown(source.premise.text)
    for form in source.reworded:
        kind = KINDS[form.swapped + 2 * form.negated]
        # The other word may not be in either text.
        yield TextPair(kind, form.word, form.word, premise, form.text)


def _denied(clause: Clause | None, place: Place) -> Denial | None:
    """Return the edits that negate a clause at its verb, or None if that is uncertain."""
    if clause is None or not place.deny:
        return None
    if place.first < clause.verb and not place.deny_subject:
        return None
    return negated(clause)


def _denied_as_a_whole(
    source: PairSource, place: Place, clause: Clause | None
) -> Iterator[TextPair]:
    """Yield the negations of a text that is short, affirmative, and begins with its subject."""
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


def _swapped(source: PairSource, place: Place, clause: Clause | None) -> Iterator[TextPair]:
    for new, edits in place.new:
        yield _pair(SWAPPED, source, place, new, clause, edits)


def _clause_of(source: PairSource, place: Place) -> Clause | None:
    """Return the longest clause with a place that can stand alone, or None.

    For a pair it is the whole hypothesis.
    """
    for clause in clauses(source.hypothesis):
        if clause.first <= place.first and place.last <= clause.last:
            return clause if clause.whole or not source.is_pair else None
    return None


def _pair(
    kind: str,
    source: PairSource,
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


_DENIED = ("not", "both")


class _Opposed(NamedTuple):
    """An adjective with an antonym, in a clause that can be denied.

    ``forms`` are the edits that produce each of `FORMS`, ``flags`` the doubts if it is negated.
    """

    clause: Clause
    word: str
    other: str
    forms: Sequence[Sequence[Edit]]
    flags: tuple[str, ...]

    def text(self, form: int, alone: bool) -> str:
        """Return the clause, or its whole sentence, in one of the forms."""
        sentence, edits = self.clause.sentence, self.forms[form]
        if alone:
            return rewritten(sentence, edits, self.clause.first, self.clause.last)
        return rewritten(sentence, edits) if edits else sentence.text


def patterns(source: PairSource, lexicon: WordKinds) -> Iterator[TextPair]:
    """Yield the text pairs of all patterns that a sentence, or a pair, allows.

    Premise and hypothesis are each unchanged (*none*), negated (*not*), with an adjective replaced
    by its antonym (*antonym*), or both. In a corpus of documents, the premise is a sentence and the
    hypothesis one of its clauses; if both have the same form, the premise must be longer than the
    clause. In pairs, the premise contains a word and the hypothesis its antonym.
    """
    if source.is_pair:
        for one, two in product(
            _opposed(source.premise, lexicon), _opposed(source.hypothesis, lexicon)
        ):
            if one.word == two.other and one.clause.whole and two.clause.whole:
                yield from _in_all_forms(source, one, two)
        return
    for opposed in _opposed(source.premise, lexicon):
        yield from _in_all_forms(source, opposed, opposed)
        yield from _reworded_patterns(source, opposed)


def _in_all_forms(
    source: PairSource, premise: _Opposed, hypothesis: _Opposed
) -> Iterator[TextPair]:
    for one, two in product(range(len(FORMS)), repeat=2):
        texts = source.shown(premise.text(one, alone=False)), hypothesis.text(two, alone=True)
        if texts[0] == texts[1]:
            continue
        flags = premise.flags * (FORMS[one] in _DENIED) + hypothesis.flags * (FORMS[two] in _DENIED)
        yield TextPair(
            PATTERNS[len(FORMS) * one + two],
            hypothesis.word,
            hypothesis.other,
            *texts,
            tuple(dict.fromkeys(flags)),
        )


def _reworded_patterns(source: PairSource, premise: _Opposed) -> Iterator[TextPair]:
    """Yield the patterns of a premise and its reworded hypotheses."""
    for one, form in product(range(len(FORMS)), source.reworded):
        pattern = PATTERNS[len(FORMS) * one + form.negated + 2 * form.swapped]
        text = source.shown(premise.text(one, alone=False))
        flags = premise.flags * (FORMS[one] in _DENIED)
        yield TextPair(pattern, premise.word, premise.other, text, form.text, flags)


def _opposed(sentence: Sentence, lexicon: WordKinds) -> Iterator[_Opposed]:
    """Yield the only adjective of a sentence with an antonym, with each clause that contains it."""
    lower, one_way = sentence.lower, fixed_words("opposites_one_way")
    found = [
        (at, lexicon.opposites[word])
        for at, word in enumerate(lower)
        if word in lexicon.opposites and word not in one_way and sentence.tags[at] == "JJ"
    ]
    if len(found) != 1:
        return
    at, other = found[0]
    if other in lower or _is_name(sentence, at) or not _is_free(sentence, at):
        return
    if lexicon.is_compound(lower, at):
        return
    for clause in clauses(sentence):
        if (
            clause.holds(at)
            and _in_predicate(clause, at)
            and (denied := negated(clause)) is not None
        ):
            swap = [Edit(at, at + 1, other)]
            yield _Opposed(
                clause,
                lower[at],
                other,
                ((), denied.edits, swap, [*denied.edits, *swap]),
                denied.flags,
            )


def _in_predicate(clause: Clause, at: int) -> bool:
    """Return whether a word follows the verb and is not in a later part of a list."""
    between = clause.sentence.tags[clause.verb + 1 : at]
    return at > clause.verb and "," not in between and "CC" not in between


_WITH_OF = frozenset(("aware", "unaware", "full", "empty", "capable", "incapable"))
_WITH_ANY = frozenset(("in", "at", "on", "for", "because", "when", "after", "before", "during"))


def _is_free(sentence: Sentence, at: int) -> bool:
    """Return whether an adjective is in no fixed expression, and its complement fits."""
    lower, tags = sentence.lower, sentence.tags
    before, behind = tags[at - 1] if at else "", tags[at + 1] if at + 1 < len(tags) else ""
    if behind in ("HYPH", "-", "CC") or before in ("HYPH", "-", "CC", "RBS", "RBR"):
        return False
    if behind in ("CD", "VBN"):
        return False
    if at and lower[at - 1] in ("so", "too", "as", "how", "long", "no"):
        return False
    if behind == "IN":
        return lower[at + 1] in _WITH_ANY or (lower[at + 1] == "of" and lower[at] in _WITH_OF)
    # "at large", "if necessary"
    return before != "IN" or behind in NOUNS


def _is_name(sentence: Sentence, at: int) -> bool:
    named = sentence.tags[at + 1 : at + 2] in (["NNP"], ["NNPS"])
    return named or (at > 0 and sentence.words[at][0].isupper())
