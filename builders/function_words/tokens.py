"""Texts as arrays of word and tag codes, in which swaps are searched."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kb_cache.corpora.types import Labels, Texts
from kbprobe.arrays import Bools, Ints
from kbprobe.errors import UsageError

NO_WORD = ""
"""Code for positions before the first and after the last token of a text."""


@dataclass(frozen=True, eq=False)
class TaggedTexts:
    """Texts with the lower-case form and the Penn Treebank tag of each token.

    Masks are (tokens,) arrays over all texts.

    Attributes:
        texts: the texts.
        code: (tokens,) index of each token's lower-case form in ``words``.
        words: the distinct lower-case forms.
        tags: the tags.
    """

    texts: Texts
    code: Ints
    words: tuple[str, ...]
    tags: Labels

    @classmethod
    def of(cls, texts: Texts, name: str) -> TaggedTexts:
        """Read the texts of a corpus.

        Args:
            texts: the texts.
            name: what the corpus is called in errors.

        Raises:
            UsageError: its tokens have no Penn Treebank tags.
        """
        if texts.tokens and not texts.xpos.known:
            raise UsageError(
                f"{name} has no part-of-speech tags (Penn Treebank, as in CoNLL-U's fifth column): "
                "have it tagged when it is fetched (see kb-cache fetch corpus --help), or name "
                "another one with --corpus"
            )
        forms = texts.forms
        number: dict[str, int] = {}
        lower = [number.setdefault(form.lower(), len(number)) for form in forms.names]
        code = np.array(lower, dtype=np.int64)[forms.codes] if lower else np.empty(0, np.int64)
        return cls(texts, code, tuple(number), texts.xpos)

    @cached_property
    def _code_of(self) -> dict[str, int]:
        return {word: at for at, word in enumerate(self.words)}

    @cached_property
    def text(self) -> Ints:
        """(tokens,) the text of each token."""
        return self.texts.token_text

    def is_word(self, *words: str) -> Bools:
        """Mark the tokens that are one of these words, ignoring case."""
        return self.is_one_of(words)

    def is_one_of(self, words: Collection[str]) -> Bools:
        """Mark the tokens that are one of a list's words, ignoring case."""
        chosen = np.zeros(len(self.words) + 1, dtype=np.bool_)
        chosen[[self._code_of.get(word, -1) for word in words]] = True
        chosen[-1] = False
        return chosen[self.code]

    def ends_with(self, *endings: str) -> Bools:
        """Mark the tokens whose lower-case form has one of these endings."""
        return np.array([word.endswith(endings) for word in self.words], dtype=np.bool_)[self.code]

    def has_tag(self, *tags: str) -> Bools:
        """Mark the tokens with one of these tags; "VB*" matches all tags that begin with "VB"."""
        exact = {tag for tag in tags if not tag.endswith("*")}
        begins = tuple(tag[:-1] for tag in tags if tag.endswith("*"))
        return self.tags.where(
            [name in exact or bool(begins and name.startswith(begins)) for name in self.tags.names]
        )

    def near(self, marked: Bools, offset: int) -> Bools:
        """Mark the tokens with a marked token of the same text ``offset`` positions later."""
        found = np.zeros_like(marked)
        size = marked.size
        if abs(offset) >= size:
            return found
        here = slice(max(-offset, 0), size - max(offset, 0))
        there = slice(max(offset, 0), size - max(-offset, 0))
        found[here] = marked[there] & (self.text[here] == self.text[there])
        return found

    @cached_property
    def first(self) -> Bools:
        """Mark the first token of each text."""
        found = np.zeros(self.code.size, dtype=np.bool_)
        starts = self.texts.token_start
        found[starts[:-1][np.diff(starts) > 0]] = True
        return found

    def in_text(self, marked: Bools) -> Bools:
        """Return (texts,) whether a text has a marked token."""
        return self.count(marked) > 0

    def count(self, marked: Bools) -> Ints:
        """Return (texts,) the number of marked tokens of each text."""
        return np.bincount(self.text[marked], minlength=len(self.texts)).astype(np.int64)

    def words_at(self, token: Ints, offset: int) -> list[str]:
        """Return the lower-case words ``offset`` positions from some tokens, "" beyond the text."""
        at = np.clip(token + offset, 0, max(self.code.size - 1, 0))
        inside = (at == token + offset) & (self.text[at] == self.text[token])
        return [
            self.words[code] if there else NO_WORD
            for code, there in zip(self.code[at].tolist(), inside.tolist(), strict=True)
        ]

    def words_behind(self, tokens: Ints) -> list[str]:
        """Return the next word after each of some tokens as in the text, skipping punctuation."""
        starts, ends = self.texts.start, self.texts.end
        bounds = self.texts.token_start
        found = []
        texts = self.texts.text.take(self.text[tokens]).to_pylist() if tokens.size else []
        for token, row, text in zip(
            tokens.tolist(), self.text[tokens].tolist(), texts, strict=True
        ):
            following = (text[starts[at] : ends[at]] for at in range(token + 1, bounds[row + 1]))
            found.append(next((word for word in following if word[0].isalnum()), ""))
        return found
