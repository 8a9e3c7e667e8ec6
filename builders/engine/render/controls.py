"""Control renderings: the same rows with the language removed or perturbed.

A model that still answers them correctly does not rely on the language of the question (Talmor et
al., "oLMpics", TACL 2020, section 3). A control has the same rows and ids as the default config;
only the questions differ and, where the answers are a few fixed words, the answers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.render.jinja import TemplateError
from builders.engine.render.questions import Fields, QuestionBatch
from builders.engine.render.rewrites import SEPARATOR, KeepArguments, ReplaceWords
from builders.engine.render.template_file import Template, Wording
from kbprobe.arrays import AnyInts, Bools, Ints
from kbprobe.columns import mask, to_numpy
from kbprobe.format.setups import CLOZE, MASK, NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

NONSENSE = ("blah", "ya", "foo", "snap", "woo", "boo", "da", "wee", "foe", "fee")


def check_template(template: Template, setup: str, controls: Iterable[str]) -> None:
    """Make sure that a template holds what the probe's setup and its controls need.

    Raises:
        TemplateError: a wording of a cloze probe has no mask, or no key words to perturb; or the
            template names no arguments.
    """
    remedy = "or build with --no-controls"
    where = template.sources[-1]
    if setup == CLOZE:
        bare = [wording.id for wording in template.questions if MASK not in wording.text]
        if bare:
            problem = f"a cloze question shows {MASK} where the answer belongs; not so in "
            raise TemplateError(problem + ", ".join(map(repr, bare)), where=where)
    if NO_LANGUAGE in controls and not template.arguments:
        problem = f"the control {NO_LANGUAGE} needs the key 'arguments'; name some, {remedy}"
        raise TemplateError(problem, where=where)
    if PERTURBED in controls:
        bare = [wording.id for wording in template.questions if not wording.key_words]
        if bare:
            raise TemplateError(
                f"the control {PERTURBED} needs 'key_words' of every question, and "
                f"{', '.join(map(repr, bare))} has none; name some, {remedy}",
                where=where,
            )


def nonsense_in(texts: pa.Array) -> Bools:
    """Tell which nonsense words each text holds: (texts, nonsense words).

    Some of them are words after all: a fee, to snap.
    """
    held = [mask(pc.match_substring_regex(texts, rf"(?i)\b{word}\b")) for word in NONSENSE]
    return np.stack(held, axis=1)


def mark_beside(taken: Bools, question: AnyInts, held: Bools, choices: AnyInts) -> None:
    """Mark in ``taken`` (questions, nonsense words) those that a choice beside a question holds.

    Args:
        taken: what :func:`nonsense_in` found in questions, or nothing yet.
        question: (rows,) each row's question.
        held: what :func:`nonsense_in` found in the choices' texts.
        choices: (rows, K) each row's choices.
    """
    for word in np.flatnonzero(held.any(axis=0)):
        taken[question[held[choices, word].any(axis=1)], word] = True


def without_language(questions: QuestionBatch) -> pa.Array:
    """Render questions of the mask and the arguments, in the order in which they stand."""
    keep = KeepArguments(frozenset(questions.template.arguments))
    spaced = pc.replace_substring_regex(questions.render(lambda _: keep), f"{SEPARATOR}+", " ")
    return pc.utf8_trim_whitespace(spaced)


def perturbed(questions: QuestionBatch, keys: Ints, taken: Bools, rng: RandomGenerator) -> pa.Array:
    """Render questions with a nonsense word for each key word, drawn for each question anew.

    A word that is ``taken`` (questions, nonsense words), since the question or a choice beside it
    holds it, gives way to the next that is not.
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
    """Give each distinct word of the key words the name of a field that replaces it."""
    words = [word for phrase in wording.key_words for word in phrase.lower().split()]
    return tuple((word, f"nonsense_{at}") for at, word in enumerate(dict.fromkeys(words)))


def _words(codes: Ints) -> list[str]:
    return [NONSENSE[code] for code in codes.tolist()]


def nonsense_answers(texts: pa.Array, taken: Bools, rng: RandomGenerator) -> pa.Array:
    """Return a nonsense word for each of a few answers.

    Words that are ``taken``, since questions hold them, are the last to be used.
    """
    drawn = np.lexsort((rng.bits(np.arange(len(NONSENSE))), taken))
    rank = to_numpy(pc.rank(texts, tiebreaker="dense")).astype(np.int64) - 1
    return pa.array(_words(drawn[np.minimum(rank, len(NONSENSE) - 1)]))
