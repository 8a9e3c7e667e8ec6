"""Input of the encoder and output of the decoder as tokens, with special tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kbprobe.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Ids = tuple[int, ...]

_SAMPLE = "an answer of several words"


class Source(NamedTuple):
    """What the encoder reads.

    Attributes:
        tokens: with the special tokens around.
        cut: whether its beginning was left out to fit.
    """

    tokens: Ids
    cut: bool


class SourceTokenizer:
    """Tokenizes what the encoder reads.

    Special tokens are added as the tokenizer does by itself, unless the text already starts with
    the beginning-of-sequence token, as chat templates write it.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, limit: int) -> None:
        """Take the checkpoint's tokenizer, and the most tokens that the encoder reads."""
        self._tokenizer, self._limit = tokenizer, limit
        first = tokenizer.bos_token_id
        self._first = None if first is None else str(tokenizer.decode(first))
        self._before = _special_before(tokenizer)

    def __call__(self, texts: Iterable[str]) -> dict[str, Source]:
        """Tokenize distinct texts; white space that ends them is left out.

        Raises:
            UsageError: nothing is left of a text, and the tokenizer adds nothing to it.
        """
        found: dict[str, Source] = {}
        begun: dict[bool, list[str]] = {}
        for text in dict.fromkeys(texts):
            starts = self._first is not None and text.startswith(self._first)
            begun.setdefault(starts, []).append(text)
        for starts, some in begun.items():
            stripped = [text.rstrip() for text in some]
            ids = _ids(self._tokenizer, text=stripped, add_special_tokens=not starts)
            for text, tokens in zip(some, ids, strict=True):
                found[text] = self._fit(tokens, 1 if starts else self._before)
        if any(not source.tokens for source in found.values()):
            raise UsageError(
                "a question is empty, and the tokenizer of "
                f"{self._tokenizer.name_or_path!r} leaves the encoder nothing to read. Put "
                'something before it, such as --prompt "Q: {question}".'
            )
        return found

    def _fit(self, tokens: Sequence[int], before: int) -> Source:
        """Leave out what is too much, after the special tokens at the beginning."""
        excess = max(0, len(tokens) - self._limit)
        return Source((*tokens[:before], *tokens[before + excess :]), bool(excess))


class TargetTokenizer:
    """Tokenizes what the decoder writes.

    A text in the decoder is tokenized as in training (``text_target``), alone and without the
    white space around it. The tokens that the model and its tokenizer put before it are given,
    not scored: T5's padding token, BART's ``</s><s>``.

    Attributes:
        start: the tokens that the decoder is given before a text; the first of them begins every
            text that it writes.
        end: the tokens that the tokenizer puts after a text.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        """Find out what surrounds a text in training.

        Raises:
            UsageError: it is not known what the decoder starts from.
        """
        self._tokenizer = tokenizer
        labels = _ids(tokenizer, text_target=[_SAMPLE])[0]
        bare = _ids(tokenizer, text_target=[_SAMPLE], add_special_tokens=False)[0]
        inputs = _decoder_inputs(model, labels)
        begins, at = _find(inputs, bare[:-1]), _find(labels, bare)
        if not begins or at is None:
            raise UsageError(
                f"{tokenizer.name_or_path!r} does not say what its decoder starts from: set "
                "decoder_start_token_id in its config.json, as it was in training."
            )
        start = inputs[:begins]
        # A tokenizer may add the token that the model starts from anyway.
        self.start: Ids = tuple(start[1:] if start[:1] == start[1:2] else start)
        self.end: Ids = tuple(labels[at + len(bare) :])

    def __call__(self, texts: Iterable[str]) -> dict[str, Ids]:
        """Tokenize distinct texts, without special tokens."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        stripped = [text.strip() for text in distinct]
        ids = _ids(self._tokenizer, text_target=stripped, add_special_tokens=False)
        return {text: tuple(tokens) for text, tokens in zip(distinct, ids, strict=True)}


def _decoder_inputs(model: PreTrainedModel, labels: list[int]) -> list[int]:
    """Return what the decoder is given in training to write some labels."""
    import torch

    shift: Any = getattr(model, "prepare_decoder_input_ids_from_labels", None)
    if shift is not None:
        try:
            shifted: list[int] = shift(torch.tensor([labels]))[0].tolist()
        except (ValueError, TypeError):  # So classes say that a token is not configured.
            return []
        return shifted
    generation = getattr(model, "generation_config", None)
    start = getattr(generation, "decoder_start_token_id", None)
    if start is None:
        start = getattr(model.config, "decoder_start_token_id", None)
    return [] if start is None else [int(start), *labels[:-1]]


def _special_before(tokenizer: PreTrainedTokenizerBase) -> int:
    """Count the special tokens that a tokenizer puts before a text."""
    whole = _ids(tokenizer, text=[_SAMPLE])[0]
    return _find(whole, _ids(tokenizer, text=[_SAMPLE], add_special_tokens=False)[0]) or 0


def _find(tokens: Sequence[int], part: Sequence[int]) -> int | None:
    """Return where a part of some tokens begins."""
    places = range(len(tokens) - len(part) + 1)
    return next((at for at in places if list(tokens[at : at + len(part)]) == list(part)), None)


def _ids(tokenizer: PreTrainedTokenizerBase, **texts: Any) -> list[list[int]]:
    plain = {"return_attention_mask": False, "return_token_type_ids": False, "verbose": False}
    ids: list[list[int]] = tokenizer(**texts, **plain)["input_ids"]
    return ids
