"""Changes to a template's syntax tree: the same question, with part of it taken out or replaced.

They work on the tree rather than on rendered text, so that a key word in the data is never taken
for one of the wording, and conditions go on holding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jinja2 import nodes

from kbprobe.format.setups import MASK

SEPARATOR = "\x1f"
"""ASCII's unit separator: stands on both sides of each part that `KeepArguments` keeps."""

BLANK = "_"


class _OfParts:
    """A rewrite of each part of each output: literal text, or an expression."""

    def __call__(self, tree: nodes.Template) -> None:
        """Change the tree in place."""
        for output in list(tree.find_all(nodes.Output)):
            output.nodes = [new for part in output.nodes for new in self.rewritten(part)]

    def rewritten(self, part: nodes.Expr) -> Iterable[nodes.Expr]:
        """Return what stands in place of a part."""
        raise NotImplementedError


@dataclass(frozen=True)
class KeepArguments(_OfParts):
    """Keep the mask and the arguments, bare of filters, wherever they stand; drop the rest."""

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
    """Put a blank for everything that shows an argument; what is left is the carrier sentence."""

    arguments: frozenset[str]

    def rewritten(self, part: nodes.Expr) -> list[nodes.Expr]:
        """Return the part, or a blank."""
        return [nodes.TemplateData(BLANK) if any(_mentions(part, self.arguments)) else part]


@dataclass(frozen=True)
class ReplaceWords(_OfParts):
    """Replace key words, word by word, with fields that hold other words.

    Attributes:
        key_words: words and phrases as they stand in the text.
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
