"""Tokenization of candidates in context: their pieces in filled-in sentences.

How a word is split depends on its context: byte-level BPE and SentencePiece mark the space before a
word, and quotes, brackets and punctuation may or may not join it. So a candidate's pieces are taken
from the filled-in sentence, not from the candidate alone. Tokenizing every sentence with each of
its candidates would be slow. Tokenizers split at spaces first, so it is enough to tokenize each
sentence once, and each candidate once in each context that reaches to the next space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from evaluation.models.loading import require_fast
from evaluation.scorers.base import aside
from evaluation.scorers.readable import unknown_candidate
from kbprobe.errors import UsageError
from kbprobe.format.setups import MASK

if TYPE_CHECKING:
    from tokenizers import Encoding
    from transformers import PreTrainedTokenizerBase

_NEIGHBOUR = "a"
"""A placeholder for all text beyond the spaces next to a gap."""
_NEAR_LEFT = re.compile(r"\s*\S*\Z")
_NEAR_RIGHT = re.compile(r"\S*\s*")
_TEXTS_AT_ONCE = 8192


class Gap(NamedTuple):
    """A text with one gap to fill: the text before it and after it."""

    left: str
    right: str

    @classmethod
    def of(cls, question: str, owner: str = "") -> Gap:
        """Return the text around a cloze's mask.

        Raises:
            UsageError: it contains no mask, or several; ``owner`` begins the message.
        """
        left, mask, right = question.partition(MASK)
        if not mask or MASK in right:
            raise UsageError(
                f"{owner}a cloze holds exactly one {MASK}, and this one holds "
                f"{question.count(MASK)}: {question!r}"
            )
        return cls(left, right)

    def surrounding(self) -> Gap:
        """Return the part of the text that may affect how a candidate is tokenized here."""
        left = _NEAR_LEFT.search(self.left)
        right = _NEAR_RIGHT.match(self.right)
        near_left = left.group() if left else ""
        near_right = right.group() if right else ""
        return Gap(
            (_NEIGHBOUR if len(near_left) < len(self.left) else "") + near_left,
            near_right + (_NEIGHBOUR if len(near_right) < len(self.right) else ""),
        )


def unreadable(text: str, pieces: Sequence[int], unknown: int | None) -> str | None:
    """Return why a candidate with these pieces cannot be scored; ``unknown`` is a token id."""
    if not pieces:
        return aside("a candidate of which the tokenizer leaves nothing", repr(text))
    return unknown_candidate(text, pieces, unknown)


@dataclass(frozen=True, slots=True)
class Filled:
    """A filled-in text, tokenized.

    Attributes:
        left: token ids before the candidate, including special tokens.
        pieces: token ids of the candidate: all that contain a character of it, and a piece that
            is only the space before its first word. Empty if the tokenizer drops every character
            of it.
        words: for each piece, the index of its word within the candidate; words are those of the
            tokenizer's pre-tokenizer.
        right: token ids after it, including special tokens.
    """

    left: tuple[int, ...]
    pieces: tuple[int, ...]
    words: tuple[int, ...]
    right: tuple[int, ...]


class Placer:
    """Tokenizes candidates in context.

    The results equal those of tokenizing every filled-in sentence as a whole. For every text it is
    checked that its first candidate is split in its context as it is in the whole text; if it is
    not (a tokenizer that does not split at spaces), or if a candidate changes its neighbours'
    tokens, the whole sentence is tokenized.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, user: str = "a masked LM") -> None:
        """Set the model's fast tokenizer; ``user`` is what needs it, for messages.

        Raises:
            UsageError: it is a slow one.
        """
        require_fast(tokenizer, user)
        self._tokenizer = tokenizer.backend_tokenizer

    def place(self, gaps: Sequence[Gap], candidates: Sequence[Sequence[str]]) -> list[list[Filled]]:
        """Fill each gap with each of its candidates, of which it has at least one.

        Whitespace around a candidate is left out.

        Returns:
            For each gap and candidate, the tokens of the filled-in text.
        """
        candidates = [[text.strip() for text in texts] for texts in candidates]
        first = {gap: texts[0] for gap, texts in zip(gaps, candidates, strict=True)}
        near = {gap: gap.surrounding() for gap in first}
        whole = dict(zip(first, self._tokenize(first.items()), strict=True))
        asked = {
            (near[gap], text): None
            for gap, texts in zip(gaps, candidates, strict=True)
            for text in (first[gap], *texts)
        }
        local = dict(zip(asked, self._tokenize(asked), strict=True))

        placed: list[list[Filled]] = []
        elsewhere: dict[tuple[Gap, str], list[tuple[int, int]]] = {}
        for number, (gap, texts) in enumerate(zip(gaps, candidates, strict=True)):
            sentence, surrounding = whole[gap], near[gap]
            model = local[surrounding, first[gap]]
            holds = model.pieces == sentence.pieces and model.words == sentence.words
            placed.append([])
            for at, text in enumerate(texts):
                cut = local[surrounding, text]
                if not (holds and cut.left == model.left and cut.right == model.right):
                    elsewhere.setdefault((gap, text), []).append((number, at))
                placed[-1].append(Filled(sentence.left, cut.pieces, cut.words, sentence.right))
        for places, filled in zip(elsewhere.values(), self._tokenize(elsewhere), strict=True):
            for number, at in places:
                placed[number][at] = filled
        return placed

    def _tokenize(self, filled: Iterable[tuple[Gap, str]]) -> list[Filled]:
        waiting = list(filled)
        # A limit or padding that someone set on the tokenizer would change the tokens.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        found: list[Filled] = []
        for begin in range(0, len(waiting), _TEXTS_AT_ONCE):
            part = waiting[begin : begin + _TEXTS_AT_ONCE]
            texts = [gap.left + candidate + gap.right for gap, candidate in part]
            encodings = self._tokenizer.encode_batch(texts)
            for (gap, candidate), text, encoding in zip(part, texts, encodings, strict=True):
                start = len(gap.left)
                found.append(_locate(encoding, text, start, start + len(candidate)))
        return found


def _locate(encoding: Encoding, text: str, start: int, stop: int) -> Filled:
    """Find the tokens of characters ``start .. stop`` of a text."""
    ids, words, spans = encoding.ids, encoding.word_ids, encoding.offsets
    inside = [at for at, (begin, end) in enumerate(spans) if begin < stop and end > start]
    if not inside:
        return Filled(tuple(ids), (), (), ())
    first, last = inside[0], inside[-1]
    while first and words[first - 1] is not None and words[first - 1] == words[first]:
        begin, end = spans[first - 1]
        if text[begin:end].strip():
            break
        first -= 1
    number: dict[int | None, int] = {}
    return Filled(
        left=tuple(ids[:first]),
        pieces=tuple(ids[first : last + 1]),
        words=tuple(number.setdefault(word, len(number)) for word in words[first : last + 1]),
        right=tuple(ids[last + 1 :]),
    )
