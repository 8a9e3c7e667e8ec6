"""Hypotheses worded differently from their premises, as in the published sets.

A hypothesis that is a clause of its premise shares most words with it. For premises of the default
corpus, a language model therefore wrote other hypotheses. ``data/rewordings_NAME.csv`` has a line
for each: the premise, and a template with two alternatives for the word that the probe is about
(first the one that follows from the premise) and two for the verb (the second negated): "Domestic
steel {was|was not} [more|less] expensive than imports."
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import product
from typing import NamedTuple

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
