"""All choices of a question in one sequence: the question once, then a tree of continuations.

Each token sees the question, and of the choices only the tokens before it on its own path;
its position is its depth on that path. So every choice is scored as if it alone had followed
the question. Continuations that begin alike share those tokens too, and the last token of each
is left out, since nothing is predicted from it.

Tokens stand in depth-first order. Then the tokens that see token ``j`` are exactly
``j .. end[j] - 1``, the subtree below it, and the whole attention mask is two comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence

PACK_TOKENS = 512
"""Longer sequences cost more in attention, most of it masked, than a question read again."""


class Tree:
    """One sequence of tokens, grown by adding continuations.

    Attributes:
        tokens: the context, then the continuations' tokens.
        positions: of each token, its depth.
        ends: for each token, where the run of tokens that see it ends.
        paths: for each continuation, its number and, token by token, from which token of the
            sequence the model predicts it.
        branched: whether the tree needs a mask of its own; if not, it is an ordinary sequence.
    """

    def __init__(self, context: Sequence[int]) -> None:
        self.tokens = list(context)
        self.positions = list(range(len(context)))
        self.ends = [0] * len(context)
        self.paths: list[tuple[int, list[int]]] = []
        self.branched = False
        self._root = len(context) - 1
        # The tokens on the way to the last one added, as indices into the sequence.
        self._path: list[int] = []

    def add(self, number: int, continuation: Sequence[int], limit: int) -> bool:
        """Add a continuation, or return False if it has to go elsewhere."""
        read = continuation[:-1]
        shared = 0
        while (
            shared < min(len(read), len(self._path))
            and self.tokens[self._path[shared]] == read[shared]
        ):
            shared += 1
        new = read[shared:]
        parent = self._path[shared - 1] if shared else self._root
        branched = self.branched or (bool(new) and parent != len(self.tokens) - 1)
        if branched and len(self.tokens) + len(new) > limit:
            return False
        self.branched = branched
        self._close(shared)
        self._path += range(len(self.tokens), len(self.tokens) + len(new))
        self.positions += range(self._root + 1 + shared, self._root + 1 + len(read))
        self.tokens += new
        self.ends += [0] * len(new)
        self.paths.append((number, [self._root, *self._path[: len(read)]]))
        return True

    def finish(self) -> None:
        """Note where what sees the context and the last path ends."""
        self._close(0)
        self.ends[: self._root + 1] = [len(self.tokens)] * (self._root + 1)

    def _close(self, depth: int) -> None:
        for token in self._path[depth:]:
            self.ends[token] = len(self.tokens)
        del self._path[depth:]


def grow_trees(
    context: Sequence[int], continuations: Sequence[Sequence[int]], *, limit: int
) -> list[Tree]:
    """Put continuations of one context into as few sequences as allowed.

    Args:
        context: at least one token.
        continuations: distinct, each of at least one token.
        limit: tokens that a branched tree may hold. With 0 no tree branches, and continuations
            share a sequence only if one is read on the way to the other. A sequence that does
            not branch may be of any length.

    Returns:
        Trees whose ``paths`` cover every continuation once.
    """
    # In this order each path shares with the one before it as much as with any other, and a
    # path that is read on the way to another comes first.
    order = sorted(range(len(continuations)), key=lambda number: tuple(continuations[number][:-1]))
    trees: list[Tree] = []
    for number in order:
        if not trees or not trees[-1].add(number, continuations[number], limit):
            trees.append(Tree(context))
            trees[-1].add(number, continuations[number], limit)
    for tree in trees:
        tree.finish()
    return trees
