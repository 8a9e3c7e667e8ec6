"""Control renderings: the same rows once more, with the language taken out or spoilt.

What a model still gets right there it does not get from the question's language (Talmor et al.,
"oLMpics", TACL 2020, section 3). A control has the same rows and ids as the default config; only
the questions differ and, where the answers are a few fixed words, the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.audit.partial_input import has_constant_choices
from builders.engine.render.jinja import TemplateError
from builders.engine.render.questions import Fields, QuestionBatch
from builders.engine.render.rewrites import SEPARATOR, KeepArguments, ReplaceWords
from builders.engine.render.template_file import Template, Wording
from kbprobe.arrays import Bools, Ints
from kbprobe.columns import mask, to_numpy
from kbprobe.format.items import Coded
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


def render_controls(
    controls: Iterable[str],
    questions: QuestionBatch,
    texts: Coded,
    keys: Ints,
    choices: Coded,
    setup: str,
    rng: RandomGenerator,
) -> Iterator[tuple[str, pa.Array, Coded]]:
    """Yield each control's name, its texts of the questions in use, and its choices.

    Args:
        controls: names among :data:`kbprobe.format.setups.CONTROLS`.
        questions: the questions in use.
        texts: (rows,) each row's question among the texts of those in use.
        keys: their identity in the knowledge base: what the nonsense words are drawn by.
        choices: (rows, K) the choices' texts, as shown.
        setup: a cloze probe's questions are checked for their mask.
        rng: the random generator.
    """
    taken = nonsense_in(texts, choices)
    for name in controls:
        if name == NO_LANGUAGE:
            shown = without_language(questions)
            answers = nonsense_answers(choices, np.asarray(taken.any(axis=0)), rng.child(name))
        else:
            shown, answers = perturbed(questions, keys, taken, rng.child(name)), choices
        if setup == CLOZE:
            questions.check_masks(shown, name)
        yield name, shown, answers


def nonsense_in(texts: Coded, choices: Coded) -> Bools:
    """Tell which nonsense words a question's text or choices hold: (questions, nonsense words).

    Given are the question and the choices of every row. Some nonsense words are words after all:
    a fee, to snap.
    """
    held = []
    for word in NONSENSE:
        pattern = rf"(?i)\b{word}\b"
        in_text, in_choice = (
            mask(pc.match_substring_regex(one.values, pattern)) for one in (texts, choices)
        )
        in_text[texts.codes[in_choice[choices.codes].any(axis=1)]] = True
        held.append(in_text)
    return np.stack(held, axis=1)


def without_language(questions: QuestionBatch) -> pa.Array:
    """Render questions of the mask and the arguments, in the order in which they stand."""
    keep = KeepArguments(frozenset(questions.template.arguments))
    spaced = pc.replace_substring_regex(questions.render(lambda _: keep), f"{SEPARATOR}+", " ")
    return pc.utf8_trim_whitespace(spaced)


def perturbed(questions: QuestionBatch, keys: Ints, taken: Bools, rng: RandomGenerator) -> pa.Array:
    """Render questions with a nonsense word for each key word, drawn for each question anew.

    A word that is ``taken``, of :func:`nonsense_in`, gives way to the next that is not.
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


def nonsense_answers(choices: Coded, taken: Bools, rng: RandomGenerator) -> Coded:
    """Put one nonsense word for each answer word, where all rows choose among the same few.

    Words that are ``taken``, since questions hold them, are the last to be used. Choices that are
    open stay as they are.
    """
    if not has_constant_choices(choices.codes, len(NONSENSE)):
        return choices
    drawn = np.lexsort((rng.bits(np.arange(len(NONSENSE))), taken))
    rank = to_numpy(pc.rank(choices.values, tiebreaker="dense")).astype(np.int64) - 1
    return Coded(pa.array(_words(drawn[rank])), choices.codes)
