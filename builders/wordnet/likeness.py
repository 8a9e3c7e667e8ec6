"""How similar the WordNet probes' questions and golds are: the texts that encoders compare.

The texts are those of a question without its wording: the word in its sentence, or with its
definition, and a choice as it is shown. The vectors of those that default builds ask about come
with the package; other texts have the static encoder's.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.draw import likeness
from builders.engine.draw.likeness import ComparedTexts, VectorTable, vector_table
from builders.engine.plan import Nodes, Questions
from builders.engine.rows import Asking
from builders.wordnet.synsets import OTHER_LEMMAS_SHOWN
from kbprobe.arrays import Ints

TABLES = Path(likeness.__file__).parent / "data" / "wordnet-3.0"


class TextKinds(NamedTuple):
    """The table with a probe's questions and the one with its choices, by name."""

    question: str
    choice: str


KINDS_OF_TEXTS = {
    "definition": TextKinds("contexts", "glosses"),
    "hypernym": TextKinds("contexts", "named"),
    "hyponym": TextKinds("senses", "words"),
    "synonym": TextKinds("glosses", "words"),
}
"""Those of each relation; of all others, those of hyponyms."""

MOST_ALIKE = {"definition": 3, "hypernym": 3, "hyponym": 3}
"""How similar a choice may be to the gold (`ComparedTexts`), by relation. Of judged pairs that are
more similar, readers accept several times as many as of others (``alike`` in
``builders/judged/data/models.json``); of synonyms and parts hardly any."""


def compared_texts(
    relation: str, questions: Questions, nodes: Nodes, asking: Asking
) -> ComparedTexts:
    """Return the texts by which the questions asked and their golds are compared.

    Args:
        relation: what is asked for.
        questions: the questions that ``asking`` refers to.
        nodes: the golds, as they are shown.
        asking: the questions asked.
    """
    kinds = KINDS_OF_TEXTS.get(relation, KINDS_OF_TEXTS["hyponym"])
    line, question = np.unique(asking.question, return_inverse=True)
    gold, choice = np.unique(asking.gold, return_inverse=True)
    asked, shown = question_texts(kinds, questions, line), choice_texts(kinds, nodes, gold)
    tables = table_of(kinds.question), table_of(kinds.choice)
    return ComparedTexts(asked, shown, question, choice, tables, MOST_ALIKE.get(relation))


def table_of(name: str) -> VectorTable:
    """Return a table of vectors that comes with the package."""
    return vector_table(TABLES / f"vectors.{name}.arrow")


def question_texts(kinds: TextKinds, questions: Questions, rows: Ints) -> list[str]:
    """Return the texts of some questions that are compared with choices.

    >>> fields = {"word": ["bank"], "sentence": ["sat on the bank"], "gloss": ["sloping land"]}
    >>> asked = Questions.from_columns(np.zeros(1, np.int64), fields)
    >>> question_texts(TextKinds("contexts", "named"), asked, np.zeros(1, np.int64))
    ['"bank" in "sat on the bank"']
    """
    at = pa.array(rows)
    gloss = questions.fields["gloss"].take(at)
    if kinds.question == "glosses":
        return list(gloss.to_pylist())
    word = questions.fields["word"].take(at)
    defined = pc.binary_join_element_wise('"', word, '", defined as "', gloss, '"', "")
    if "sentence" not in questions.fields:
        return list(defined.to_pylist())
    sentence = questions.fields["sentence"].take(at)
    used = pc.binary_join_element_wise('"', word, '" in "', sentence, '"', "")
    if kinds.question == "senses":
        used = pc.binary_join_element_wise(used, ', defined as "', gloss, '"', "")
    return list(pc.if_else(pc.equal(sentence, ""), defined, used).to_pylist())


def choice_texts(kinds: TextKinds, nodes: Nodes, gold: Ints) -> list[str]:
    """Return the texts of some choices that are compared with questions."""
    if kinds.choice == "glosses":
        return list(nodes.fields(gold, ["gloss"])["gloss"])
    if kinds.question == "glosses":
        return [", ".join(lemmas) for lemmas in nodes.fields(gold, ["lemmas"])["lemmas"]]
    fields = nodes.fields(gold, ["lemma", "others", "gloss"])
    names = [
        f"{lemma} (or {' or '.join(others)})"
        if (others := list(more[:OTHER_LEMMAS_SHOWN]))
        else lemma
        for lemma, more in zip(fields["lemma"], fields["others"], strict=True)
    ]
    if kinds.choice == "words":
        return names
    return [
        f'{name}, defined as "{gloss}"' for name, gloss in zip(names, fields["gloss"], strict=True)
    ]
