"""Control renderings, and the changes to templates that they and sub-questions need.

A model that still answers them correctly does not rely on the language of the question (Talmor et
al., "oLMpics", TACL 2020, section 3). A control has the same rows and ids as the default config;
only the questions differ and, where the answers are a few fixed words, the answers.

They work on the tree rather than on rendered text, so that a key word in the data is never mistaken
for one of the wording, and conditions remain valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import nodes

from builders.engine.render.assemble import Fields, QuestionBatch
from builders.engine.render.jinja import TemplateError
from builders.engine.render.template_file import Template, Wording
from kbprobe.arrays import AnyInts, Bools, Ints
from kbprobe.columns import mask, to_numpy
from kbprobe.format.setups import MASK, NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

SEPARATOR = "\x1f"
"""ASCII's unit separator, on both sides of each part that `KeepArguments` keeps."""

BLANK = "_"

SHOWN = 4
"""Number of wordings that a sentence names."""


class _OfParts:
    """A rewrite of each part of each output: literal text, or an expression."""

    def __call__(self, tree: nodes.Template) -> None:
        """Change the tree in place."""
        for output in list(tree.find_all(nodes.Output)):
            output.nodes = [new for part in output.nodes for new in self.rewritten(part)]

    def rewritten(self, part: nodes.Expr) -> Iterable[nodes.Expr]:
        """Return the replacement of a part."""
        raise NotImplementedError


@dataclass(frozen=True)
class KeepArguments(_OfParts):
    """Keep the mask and the arguments, without filters, wherever they occur; drop the rest."""

    arguments: frozenset[str]

    def rewritten(self, part: nodes.Expr) -> Iterator[nodes.Expr]:
        """Yield the masks of a text, or the arguments that an expression shows."""
        kept: Iterable[nodes.Expr] = _mentions(part, self.arguments)
        if isinstance(part, nodes.TemplateData):
            kept = [nodes.TemplateData(MASK)] * part.data.count(MASK)
        gap = nodes.TemplateData(SEPARATOR)
        for one in kept:
            yield from (gap, one, gap)


@dataclass(frozen=True)
class BlankArguments(_OfParts):
    """Replace everything that shows an argument by a blank, which leaves the carrier sentence."""

    arguments: frozenset[str]

    def rewritten(self, part: nodes.Expr) -> list[nodes.Expr]:
        """Return the part, or a blank."""
        return [nodes.TemplateData(BLANK) if any(_mentions(part, self.arguments)) else part]


@dataclass(frozen=True)
class ReplaceWords(_OfParts):
    """Replace key words, word by word, with fields that hold other words.

    Attributes:
        key_words: words and phrases as they occur in the text.
        fields: word (lower case) of the key words -> name of the field that replaces it.
    """

    key_words: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]

    def rewritten(self, part: nodes.Expr) -> Iterator[nodes.Expr]:
        """Yield a text in pieces, with a field in place of each key word."""
        if not isinstance(part, nodes.TemplateData):
            yield part
            return
        # The longest phrase first: "a kind of" before "kind".
        phrases = sorted(self.key_words, key=lambda phrase: (-len(phrase), phrase))
        whole = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, phrases))})(?!\w)")
        field_of, end = dict(self.fields), 0
        for match in whole.finditer(part.data):
            yield nodes.TemplateData(part.data[end : match.start()])
            for number, word in enumerate(match[0].split()):
                if number:
                    yield nodes.TemplateData(" ")
                yield nodes.Name(field_of[word.lower()], "load")
            end = match.end()
        yield nodes.TemplateData(part.data[end:])


def _mentions(part: nodes.Node, arguments: frozenset[str]) -> Iterator[nodes.Expr]:
    """Yield the arguments that an expression shows, in order; a condition shows nothing."""
    if isinstance(part, nodes.Name):
        if part.name in arguments:
            yield part
    elif isinstance(part, nodes.CondExpr):
        either = (part.expr1, part.expr2)
        branches = [list(_mentions(branch, arguments)) if branch else [] for branch in either]
        if any(branches):
            gap = nodes.Const(SEPARATOR)
            first, second = (
                nodes.Concat([piece for one in some for piece in (one, gap)] or [nodes.Const("")])
                for some in branches
            )
            yield nodes.CondExpr(part.test, first, second)
    elif not isinstance(part, nodes.Compare | nodes.Test | nodes.Not):
        for child in part.iter_child_nodes():
            yield from _mentions(child, arguments)


NONSENSE = ("blah", "ya", "foo", "snap", "woo", "boo", "da", "wee", "foe", "fee")


def check_masks_of(template: Template) -> None:
    """Check that every wording of a cloze probe shows the mask.

    Raises:
        TemplateError: one does not.
    """
    bare = [wording.id for wording in template.questions if MASK not in wording.text]
    if bare:
        problem = f"a cloze question shows {MASK} where the answer belongs; not so in "
        raise TemplateError(problem + ", ".join(map(repr, bare)), where=template.sources[-1])


def controls_lacking(template: Template, controls: Iterable[str]) -> dict[str, str]:
    """Return the controls that a template cannot show, each with what it lacks.

    A control has all rows of the default config, so that one wording without key words is enough.
    """
    lacking = {}
    where = Path(template.sources[-1]).name
    bare = [repr(wording.id) for wording in template.questions if not wording.key_words]
    if NO_LANGUAGE in controls and not template.arguments:
        lacking[NO_LANGUAGE] = f"{where} names no 'arguments', which it keeps of a question"
    if PERTURBED in controls and bare:
        more = f" and {len(bare) - SHOWN} others" if len(bare) > SHOWN else ""
        lacking[PERTURBED] = (
            f"{where} has no 'key_words', which it replaces, for the wording"
            f"{'s' * (len(bare) > 1)} {', '.join(bare[:SHOWN])}{more}"
        )
    return lacking


def nonsense_in(texts: pa.Array) -> Bools:
    """Return which nonsense words each text holds: (texts, nonsense words).

    Some of them are also real words: a fee, to snap.
    """
    held = [mask(pc.match_substring_regex(texts, rf"(?i)\b{word}\b")) for word in NONSENSE]
    return np.stack(held, axis=1)


def mark_beside(taken: Bools, question: AnyInts, held: Bools, choices: AnyInts) -> None:
    """Mark in ``taken`` (questions, nonsense words) the words in a question's choices.

    Args:
        taken: the result of :func:`nonsense_in` for questions, or all false.
        question: (rows,) each row's question.
        held: the result of :func:`nonsense_in` for the choices' texts.
        choices: (rows, K) each row's choices.
    """
    for word in np.flatnonzero(held.any(axis=0)):
        taken[question[held[choices, word].any(axis=1)], word] = True


def without_language(questions: QuestionBatch) -> pa.Array:
    """Render questions that consist of the mask and the arguments, in their original order.

    A wording may show none of the arguments, but another form of one, such as the lemma of a word:
    then all arguments are shown, in the template's order.
    """
    keep = KeepArguments(frozenset(questions.template.arguments))
    spaced = pc.replace_substring_regex(questions.render(lambda _: keep), f"{SEPARATOR}+", " ")
    shown = pc.utf8_trim_whitespace(spaced)
    arguments = pc.binary_join_element_wise(*questions.arguments().values(), " ")
    return pc.if_else(pc.equal(shown, ""), arguments, shown)


def perturbed(questions: QuestionBatch, keys: Ints, taken: Bools, rng: RandomGenerator) -> pa.Array:
    """Render questions with a nonsense word for each key word, drawn anew for each question.

    A word that is ``taken`` (questions, nonsense words), since the question or one of its choices
    contains it, is replaced by the next free one.
    """
    turn = np.arange(len(NONSENSE))

    def more(wording: Wording, some: Ints) -> Fields:
        fields = {}
        for word, field in _replacements(wording):
            drawn = rng.child(wording.id, word).below(len(NONSENSE), keys[some])
            order = (drawn[:, None] + turn) % len(NONSENSE)
            steps = np.argmin(np.take_along_axis(taken[some], order, axis=1), axis=1)
            fields[field] = _words((drawn + steps) % len(NONSENSE))
        return fields

    return questions.render(lambda words: ReplaceWords(words.key_words, _replacements(words)), more)


def _replacements(wording: Wording) -> tuple[tuple[str, str], ...]:
    """Assign each distinct word of the key words the name of a field that replaces it."""
    words = [word for phrase in wording.key_words for word in phrase.lower().split()]
    return tuple((word, f"nonsense_{at}") for at, word in enumerate(dict.fromkeys(words)))


def _words(codes: Ints) -> list[str]:
    return [NONSENSE[code] for code in codes.tolist()]


def nonsense_answers(texts: pa.Array, taken: Bools, rng: RandomGenerator) -> pa.Array:
    """Return a nonsense word for each of a few answers.

    Words that are ``taken``, since questions contain them, are used last.
    """
    drawn = np.lexsort((rng.bits(np.arange(len(NONSENSE))), taken))
    rank = to_numpy(pc.rank(texts, tiebreaker="dense")).astype(np.int64) - 1
    return pa.array(_words(drawn[np.minimum(rank, len(NONSENSE) - 1)]))
