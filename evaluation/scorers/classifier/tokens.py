"""Single texts, and pairs of texts, as the tokens that a model's own tokenizer makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evaluation.scorers.base import Tokens
from evaluation.scorers.encoder import EncoderRunner
from kbprobe.arrays import Ints

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_TEXTS_AT_A_TIME = 8192


class Tokenized(NamedTuple):
    """Texts as tokens, one after another.

    Attributes:
        tokens: the ids of all texts.
        types: the segment of each token, or None where the model takes none.
        lengths: the number of tokens of each text, shape [texts].
        cut: the numbers of the texts that were too long.
    """

    tokens: Tokens
    types: Tokens | None
    lengths: Ints
    cut: frozenset[int]


def tokenize(
    texts: Sequence[tuple[str, str]], tokenizer: PreTrainedTokenizerBase, runner: EncoderRunner
) -> Tokenized:
    """Tokenize texts, each a premise ("": there is none) and what is asked about it.

    A text that is too long is cut as the tokenizer cuts it: the longer text of a pair loses tokens
    first.
    """

    def encoding(some: Sequence[tuple[str, str]], paired: bool, cut: bool = False) -> Any:
        first, second = zip(*some, strict=True)
        return tokenizer(
            *((list(first), list(second)) if paired else (list(second),)),
            truncation=cut,
            max_length=runner.limit if cut else None,
            return_token_type_ids=runner.takes_types,
            return_attention_mask=False,
            verbose=False,
        )

    ids: list[Sequence[int]] = [()] * len(texts)
    types: list[Sequence[int]] = [()] * len(texts)
    cut: set[int] = set()
    for paired in (False, True):
        numbers = [number for number, text in enumerate(texts) if bool(text[0]) is paired]
        for start in range(0, len(numbers), _TEXTS_AT_A_TIME):
            part = numbers[start : start + _TEXTS_AT_A_TIME]
            encoded = encoding([texts[number] for number in part], paired)
            for row, number in enumerate(part):
                found, at = encoded, row
                if len(encoded["input_ids"][row]) > runner.limit:
                    cut.add(number)
                    found, at = encoding([texts[number]], paired, cut=True), 0
                ids[number] = found["input_ids"][at]
                if runner.takes_types:
                    types[number] = found["token_type_ids"][at]
    lengths = np.fromiter(map(len, ids), dtype=np.int64)
    return Tokenized(
        _flat(ids), _flat(types) if runner.takes_types else None, lengths, frozenset(cut)
    )


def _flat(rows: Sequence[Sequence[int]]) -> Tokens:
    return np.fromiter(chain.from_iterable(rows), dtype=np.int32)
