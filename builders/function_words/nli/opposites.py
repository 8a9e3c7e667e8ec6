"""Negation and antonyms: all 16 patterns of premise and hypothesis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from builders.function_words.nli.clauses import NOUNS, Clause, Sentence, clauses, fixed_words
from builders.function_words.nli.edits import Edit, rewritten
from builders.function_words.nli.lexicon import Lexicon
from builders.function_words.nli.negation import negated
from builders.function_words.nli.pairs import Source, TextPair

FORMS = ("none", "not", "antonym", "both")
_DENIED = ("not", "both")
PATTERNS = tuple(f"{premise}, {hypothesis}" for premise in FORMS for hypothesis in FORMS)


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


def patterns(source: Source, lexicon: Lexicon) -> Iterator[TextPair]:
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
        yield from _reworded(source, opposed)


def _in_all_forms(source: Source, premise: _Opposed, hypothesis: _Opposed) -> Iterator[TextPair]:
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


def _reworded(source: Source, premise: _Opposed) -> Iterator[TextPair]:
    """Yield the patterns of a premise and its reworded hypotheses."""
    for one, form in product(range(len(FORMS)), source.reworded):
        pattern = PATTERNS[len(FORMS) * one + form.negated + 2 * form.swapped]
        text = source.shown(premise.text(one, alone=False))
        flags = premise.flags * (FORMS[one] in _DENIED)
        yield TextPair(pattern, premise.word, premise.other, text, form.text, flags)


def _opposed(sentence: Sentence, lexicon: Lexicon) -> Iterator[_Opposed]:
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
