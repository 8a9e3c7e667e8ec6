"""Clozes as denoising pretraining shows them: a text with a gap, and what the decoder writes.

How a model was pretrained to fill gaps is known of two families. T5 reads a sentinel in place of
a span and writes the span between that sentinel and the next (Raffel et al. 2020, section 3.1.4).
BART reads a mask in place of a span and writes the whole text (Lewis et al. 2020, section 2.2).
Any other model, such as Pegasus, Marian or mBART, is not asked for words in gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from evaluation.scorers.masked.pieces import Filled
from evaluation.scorers.seq2seq.tokens import Ids

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_SENTINELS = ("▁<extra_id_{}>", "<extra_id_{}>")
"""mT5's vocabulary has them with the mark of a space; its tokenizer may add others, untrained."""


class FilledGap(NamedTuple):
    """A candidate in a gap.

    Attributes:
        source: what the encoder reads.
        given: the tokens that the decoder is given.
        target: those that are scored after them.
    """

    source: Ids
    given: Ids
    target: Ids


class GapFormat(Protocol):
    """Writes a candidate in its text as the encoder and the decoder see it."""

    def write(self, filled: Filled) -> FilledGap:
        """Write it; the pieces of the candidate are those that it has in its text."""
        ...


@dataclass(frozen=True)
class SentinelFormat:
    """T5's: "A <extra_id_0> can fly." and "<extra_id_0> robin <extra_id_1>".

    The sentinel after the candidate is scored: it says that nothing more is missing.

    Attributes:
        start: the tokens that the decoder starts from.
        first, second: the sentinels.
    """

    start: Ids
    first: int
    second: int

    def write(self, filled: Filled) -> FilledGap:
        """Put the first sentinel in the candidate's place, and the candidate between the two."""
        return FilledGap(
            (*filled.left, self.first, *filled.right),
            (*self.start, self.first),
            (*filled.pieces, self.second),
        )


@dataclass(frozen=True)
class SentenceFormat:
    """BART's: "A <mask> can fly." and "A robin can fly.".

    What stands before the gap is given, since all candidates share it; the candidate and the rest
    of the text with its end are scored.

    Attributes:
        start: the token that the decoder starts from.
        mask: the mask's id.
    """

    start: int
    mask: int

    def write(self, filled: Filled) -> FilledGap:
        """Put the mask in the candidate's place, and the filled-in text into the decoder."""
        return FilledGap(
            (*filled.left, self.mask, *filled.right),
            (self.start, *filled.left),
            (*filled.pieces, *filled.right),
        )


def gap_format(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, start: Ids
) -> GapFormat | str:
    """Return how a model was pretrained to fill gaps, or why that is not known.

    Args:
        model: loaded.
        tokenizer: the model's.
        start: what its decoder is given before a text.
    """
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    embeddings: Any = model.get_input_embeddings()
    known = len(embeddings.weight)
    for written in _SENTINELS:
        first, second = (vocabulary.get(written.format(number), known) for number in (0, 1))
        if max(first, second) < known:
            return SentinelFormat(start, first, second)
    if model.config.model_type == "bart" and tokenizer.mask_token_id is not None:
        return SentenceFormat(start[0], tokenizer.mask_token_id)
    return (
        f"the tokenizer of {tokenizer.name_or_path!r} has no sentinels (<extra_id_0>, "
        f"<extra_id_1>) as T5's, and a model of type {model.config.model_type} is not known to be "
        "pretrained on a mask as BART is"
    )
