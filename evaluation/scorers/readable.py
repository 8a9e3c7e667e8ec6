"""Items that a tokenizer cannot represent faithfully, by the same rule for all scorers.

An item is not scored, but set aside and counted, if part of its text would be read as a special
token (a literal ``[MASK]`` or ``</s>`` in a question), or if a candidate contains the unknown
token: two unknown candidates would have the same score.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from evaluation.items.types import Item
from evaluation.scorers.base import aside
from kbprobe.format.setups import CLOZE, LABELLED_SETUPS, MASK

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_TEXTS_AT_ONCE = 8192
_SENTINELS = r"<extra_id_\d+>"
"""Ordinary pieces of mT5's vocabulary that are nevertheless special tokens."""


class SpecialTexts:
    """Texts that a tokenizer reads as special tokens wherever they occur."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        added = tokenizer.added_tokens_decoder.values()
        texts = {str(token) for token in added if token.special} | {*tokenizer.all_special_tokens}
        # White space is a special token of some models, but is treated as text.
        longest_first = sorted(filter(str.strip, texts), key=lambda text: (-len(text), text))
        patterns = [re.escape(text) for text in longest_first]
        sentinel = tokenizer.convert_tokens_to_ids("▁<extra_id_0>")
        if sentinel is not None and sentinel != tokenizer.unk_token_id:
            patterns.append(_SENTINELS)
        self._pattern = re.compile("|".join(patterns) or r"(?!)")

    def obstacle(self, item: Item) -> str | None:
        """Return why an item cannot be scored, if so; a cloze's gap is not part of its text."""
        question = item.question.replace(MASK, "\0", 1) if item.setup == CLOZE else item.question
        for text in (question, item.premise, *item.choices):
            if found := self._pattern.search(text):
                return aside("a text that holds a special token of the model", repr(found.group()))
        return None

    def obstacles(self, items: Sequence[Item]) -> dict[int, str]:
        """Return the items that cannot be scored, and why."""
        found = ((number, self.obstacle(item)) for number, item in enumerate(items))
        return {number: reason for number, reason in found if reason is not None}


def unknown_token(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Return the id of the unknown token; None if the tokenizer can represent any text.

    Some byte-level tokenizers name the token that ends a text as their unknown token.
    """
    others = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    unknown: int | None = tokenizer.unk_token_id
    return None if unknown in others else unknown


def unknown_candidate(text: str, pieces: Collection[int], unknown: int | None) -> str | None:
    """Return why a candidate with these pieces cannot be scored, if one is the unknown token."""
    if unknown is not None and unknown in pieces:
        return aside("a candidate with characters unknown to the tokenizer", repr(text))
    return None


def unreadable_items(
    items: Sequence[Item], tokenizer: PreTrainedTokenizerBase
) -> Mapping[int, str]:
    """Return the items that no scorer with this tokenizer can score, and why.

    For scorers that do not check the tokens of candidates themselves.
    """
    reasons, unknown = SpecialTexts(tokenizer).obstacles(items), unknown_token(tokenizer)
    if unknown is None:
        return reasons
    asked = [item for item in items if item.setup not in LABELLED_SETUPS]
    candidates = sorted({text for item in asked for text in item.choices})
    known: dict[str, str] = {}
    for start in range(0, len(candidates), _TEXTS_AT_ONCE):
        part = candidates[start : start + _TEXTS_AT_ONCE]
        ids = tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"]
        for text, pieces in zip(part, ids, strict=True):
            if reason := unknown_candidate(text, pieces, unknown):
                known[text] = reason
    for number, item in enumerate(items):
        found = next((known[text] for text in item.choices if text in known), None)
        if found is not None and item.setup not in LABELLED_SETUPS:
            reasons.setdefault(number, found)
    return reasons
