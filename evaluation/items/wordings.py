"""Rows of labels reworded as questions, for models without a classification head.

A language model does not label a text, so such a row is asked as a question with choices or as a
cloze, and a word represents each label. The wordings are data (``data/wordings.yaml``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from evaluation.items.types import Item
from kbprobe.format.setups import CLOZE, QUESTION


@dataclass(frozen=True)
class TaskWording:
    """How the rows of a setup are asked.

    Attributes:
        templates: by setup, ``mc_qa`` or ``mc_mlm``: the text, with ``{question}`` in it and,
            for pairs, ``{premise}``.
        words: the word for each label.
    """

    templates: Mapping[str, str]
    words: Mapping[str, str]

    def item(self, item: Item, setup: str) -> Item:
        """Return a row as an item of ``setup``: the same id, order of choices and answer."""
        return replace(
            item,
            setup=setup,
            question=self.templates[setup].format(question=item.question, premise=item.premise),
            choices=tuple(self.words[label] for label in item.choices),
            premise="",
        )


@cache
def wordings() -> Mapping[str, TaskWording]:
    """Return the wording of each setup of labels."""
    import yaml

    text = files("evaluation.items").joinpath("data/wordings.yaml").read_text(encoding="utf-8")
    return {
        setup: TaskWording({name: held[name] for name in (QUESTION, CLOZE)}, held["words"])
        for setup, held in yaml.safe_load(text).items()
    }


def worded(items: Sequence[Item], setup: str) -> tuple[Item, ...]:
    """Reword the rows of labels among some items as items of ``setup``; others are unchanged.

    >>> row = Item("1", "acceptability", "The cat sat.", ("unacceptable", "acceptable"), 1)
    >>> worded([row], "mc_mlm")[0].question
    '"The cat sat." The grammar of this sentence is [MASK].'
    >>> worded([row], "mc_mlm")[0].choices
    ('wrong', 'right')
    """
    known = wordings()
    return tuple(
        known[item.setup].item(item, setup) if item.setup in known else item for item in items
    )
