"""Changes to a template's syntax tree: the same question, with part of it taken out or replaced.

They work on the tree rather than on rendered text, so that a key word in the data is never taken
for one of the wording, and conditions go on holding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbprobe.format.setups import MASK

if TYPE_CHECKING:
    from jinja2 import nodes

SEPARATOR = "\x1f"
"""ASCII's unit separator: stands between the parts that `KeepArguments` keeps."""

BLANK = "_"


@dataclass(frozen=True)
class KeepArguments:
    """Keep the mask and the arguments, bare of filters, wherever they stand; drop the rest.

    Attributes:
        arguments: names of the fields to keep.
    """

    arguments: frozenset[str]

    def __call__(self, tree: nodes.Template) -> None:
        """Change the tree in place; what is kept is surrounded by separators."""
        from jinja2.nodes import TemplateData

        gap = TemplateData(SEPARATOR)
        for output in _outputs(tree):
            kept: list[nodes.Expr] = [gap]
            for part in output.nodes:
                if isinstance(part, TemplateData):
                    masks = part.data.count(MASK)
                    kept += [TemplateData(MASK + SEPARATOR) for _ in range(masks)]
                else:
                    for argument in _mentions(part, self.arguments):
                        kept += [argument, gap]
            output.nodes = kept


@dataclass(frozen=True)
class BlankArguments:
    """Put a blank for everything that shows an argument; what is left is the carrier sentence.

    Attributes:
        arguments: names of the fields to blank out.
    """

    arguments: frozenset[str]

    def __call__(self, tree: nodes.Template) -> None:
        """Change the tree in place."""
        from jinja2.nodes import TemplateData

        for output in _outputs(tree):
            output.nodes = [
                TemplateData(BLANK) if any(_mentions(part, self.arguments)) else part
                for part in output.nodes
            ]


@dataclass(frozen=True)
class ReplaceWords:
    """Replace key words, word by word, with fields that hold other words.

    Attributes:
        key_words: words and phrases as they stand in the text.
        fields: word (lower case) of the key words -> name of the field that replaces it.
    """

    key_words: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]

    def __call__(self, tree: nodes.Template) -> None:
        """Change the tree in place."""
        from jinja2.nodes import TemplateData

        for output in _outputs(tree):
            replaced: list[nodes.Expr] = []
            for part in output.nodes:
                replaced += self._split(part.data) if isinstance(part, TemplateData) else [part]
            output.nodes = replaced

    def _split(self, text: str) -> Iterator[nodes.Expr]:
        from jinja2.nodes import Name, TemplateData

        field_of = dict(self.fields)
        end = 0
        for match in _whole_words(self.key_words).finditer(text):
            yield TemplateData(text[end : match.start()])
            for number, word in enumerate(match[0].split()):
                if number:
                    yield TemplateData(" ")
                yield Name(field_of[word.lower()], "load")
            end = match.end()
        yield TemplateData(text[end:])


def _whole_words(phrases: Sequence[str]) -> re.Pattern[str]:
    """Match any of the phrases as whole words, the longest first."""
    ordered = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ordered))})(?!\w)")


def _outputs(tree: nodes.Template) -> list[nodes.Output]:
    from jinja2.nodes import Output

    return list(tree.find_all(Output))


def _mentions(part: nodes.Node, arguments: frozenset[str]) -> Iterator[nodes.Expr]:
    """Yield the arguments that an expression shows, in order; a condition shows nothing."""
    from jinja2 import nodes

    if isinstance(part, nodes.Name):
        if part.name in arguments:
            yield part
    elif isinstance(part, nodes.CondExpr):
        yield from _mentions_of_either(part, arguments)
    elif not isinstance(part, nodes.Compare | nodes.Test | nodes.Not):
        for child in part.iter_child_nodes():
            yield from _mentions(child, arguments)


def _mentions_of_either(part: nodes.CondExpr, arguments: frozenset[str]) -> Iterator[nodes.Expr]:
    from jinja2 import nodes

    branches = [
        [] if branch is None else list(_mentions(branch, arguments))
        for branch in (part.expr1, part.expr2)
    ]
    if any(branches):
        gap = nodes.Const(SEPARATOR)
        first, second = (
            nodes.Concat([piece for shown in branch for piece in (shown, gap)] or [nodes.Const("")])
            for branch in branches
        )
        yield nodes.CondExpr(part.test, first, second)
