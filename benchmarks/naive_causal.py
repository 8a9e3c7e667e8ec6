"""Reference implementation of the causal scorer: one forward pass per choice, all logits.

Written for clarity rather than speed, following lm-evaluation-harness's documentation. It shares no
code with ``evaluation.scorers.causal``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def tokens_of_pair(
    tokenizer: PreTrainedTokenizerBase, context: str, continuation: str
) -> tuple[list[int], list[int]]:
    """Return the context tokens and the scored tokens."""
    first = tokenizer.bos_token_id
    if first is None:
        first = tokenizer.eos_token_id

    while context and context[-1].isspace():
        context, continuation = context[:-1], context[-1] + continuation
    if not context:
        scored = tokenizer.encode(continuation, add_special_tokens=False)
        return ([first], scored[1:]) if scored[:1] == [first] else ([first], scored)

    starts_itself = first is not None and context.startswith(str(tokenizer.decode(first)))
    given = tokenizer.encode(context, add_special_tokens=not starts_itself)
    both = tokenizer.encode(context + continuation, add_special_tokens=not starts_itself)
    return given, both[len(given) :]


@torch.inference_mode()
def log_likelihood(
    model: PreTrainedModel, given: list[int], scored: list[int], max_length: int
) -> float:
    """Return log P(scored | given) in nats, with ``given`` truncated on the left to fit."""
    excess = len(given) + len(scored) - (max_length + 1)
    given = given[max(0, excess) :]
    tokens = torch.tensor([(given + scored)[:-1]], device=model.device)
    log_probs = torch.log_softmax(model(tokens).logits[0].float(), dim=-1)
    after = range(len(given) - 1, len(given) - 1 + len(scored))
    return sum(float(log_probs[row, token]) for row, token in zip(after, scored, strict=True))


def score_choices(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    context: str,
    continuations: Iterable[str],
    max_length: int = 2048,
) -> list[float]:
    """Score each continuation of a context separately."""
    return [
        log_likelihood(model, *tokens_of_pair(tokenizer, context, continuation), max_length)
        for continuation in continuations
    ]
