"""Reference implementation of the encoder-decoder scorer: one forward pass per choice.

Written for clarity rather than speed; it shares no code with ``evaluation.scorers.seq2seq``. The
encoder reads the question again for each choice, and the head is applied to every token.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@torch.inference_mode()
def log_likelihood(
    model: PreTrainedModel, source: list[int], given: list[int], scored: list[int]
) -> float:
    """Return log P(scored | source, given) in nats; the decoder input begins with ``given``."""
    written = torch.tensor([(given + scored)[:-1]], device=model.device)
    read = torch.tensor([source], device=model.device)
    # FSMT's decoder sees later tokens if its cache is on.
    output = model(
        input_ids=read,
        attention_mask=torch.ones_like(read),
        decoder_input_ids=written,
        use_cache=False,
    )
    logits = output.logits[0].float()
    log_probs = torch.log_softmax(logits, dim=-1)
    after = range(len(given) - 1, len(given) - 1 + len(scored))
    return sum(float(log_probs[row, token]) for row, token in zip(after, scored, strict=True))


def score_choices(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    question: str,
    choices: Iterable[str],
) -> list[float]:
    """Score each choice as the output for a question, without the end-of-sequence token."""
    source = tokenizer(question)["input_ids"]
    given = [model.config.decoder_start_token_id]
    if tokenizer(question)["input_ids"][0] == tokenizer.bos_token_id:
        given.append(tokenizer.bos_token_id)
    return [
        log_likelihood(model, source, given, tokenizer(text, add_special_tokens=False)["input_ids"])
        for text in choices
    ]


def fill_with_sentinels(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    before: str,
    candidates: Iterable[str],
    after: str,
    sentinels: tuple[int, int],
) -> list[float]:
    """Score candidates in a gap with a space on both sides, as T5 was pretrained to fill it."""
    left, right = (
        tokenizer(text, add_special_tokens=False)["input_ids"] for text in (before, after)
    )
    source = [*left, sentinels[0], *right, tokenizer.eos_token_id]
    given = [model.config.decoder_start_token_id, sentinels[0]]
    pieces = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in candidates]
    return [log_likelihood(model, source, given, [*some, sentinels[1]]) for some in pieces]


def fill_mask(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    before: str,
    candidates: Iterable[str],
    after: str,
) -> list[float]:
    """Score candidates in a gap with a space on both sides, as BART was pretrained to fill it."""
    left = tokenizer(before)["input_ids"][:-1]
    right = tokenizer(f" {after}", add_special_tokens=False)["input_ids"]
    right.append(tokenizer.eos_token_id)
    source = [*left, tokenizer.mask_token_id, *right]
    given = [model.config.decoder_start_token_id, *left]
    pieces = [tokenizer(f" {text}", add_special_tokens=False)["input_ids"] for text in candidates]
    return [log_likelihood(model, source, given, [*some, *right]) for some in pieces]
