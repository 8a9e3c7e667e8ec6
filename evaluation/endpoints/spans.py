"""Which tokens of a prompt are a continuation's, and their log-likelihood.

The rule is that of :class:`evaluation.scorers.causal.pair_tokens.PairTokenizer`, and so of
lm-evaluation-harness: white space that ends the context goes to the continuation, and the
continuation's tokens are those after as many as the context has alone. Where the continuation
begins with white space and a token starts there, those before it are the context's. Where a token
straddles the boundary, where the boundary is within a word, which may be divided differently when
the context is alone, or where the boundary is unclear, the context is sent alone and its tokens are
counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from evaluation.endpoints.answers import PromptTokens, holds_unknown

NO_TOKEN = "a choice leaves no token to score after its question"
UNKNOWN = "a candidate with characters unknown to the tokenizer"
TOO_LONG = "a prompt longer than the endpoint takes"


class Pair(NamedTuple):
    """A context without white space at its end, and a continuation that may begin with it."""

    context: str
    continuation: str

    @property
    def text(self) -> str:
        """What is sent."""
        return self.context + self.continuation


class Scored(NamedTuple):
    """The log-likelihood of a continuation.

    Attributes:
        log_likelihood: nats, summed over its tokens; 0 where it is set aside.
        tokens: how many it has.
        prompt_tokens: of context and continuation.
        obstacle: why it is set aside, such as :data:`NO_TOKEN`; None: it is not.
        straddles: whether what the tokens follow is divided in another way than the context alone,
            as where a token holds its end and more.
    """

    log_likelihood: float
    tokens: int
    prompt_tokens: int
    obstacle: str | None = None
    straddles: bool = False


class NothingBefore(Exception):
    """A continuation's first token is the first of the prompt, and so has no log-probability."""


def divided(context: str, continuation: str) -> Pair:
    """Divide a text where lm-evaluation-harness divides it.

    >>> divided("Is it ", "a dog")
    Pair(context='Is it', continuation=' a dog')
    """
    kept = context.rstrip()
    return Pair(kept, context[len(kept) :] + continuation)


def score_pair(pair: Pair, whole: PromptTokens, alone: Callable[[str], Sequence[str]]) -> Scored:
    """Return the log-likelihood of a continuation.

    Args:
        pair: context and continuation.
        whole: the tokens of both as one text.
        alone: returns the tokens of a context that is sent alone.

    Raises:
        NothingBefore: the prompt begins with the continuation.
    """
    first, straddles = _first_token(pair, whole, alone)
    total = len(whole.texts)
    texts, own = whole.texts[first:], whole.log_probs[first:]
    if not own:
        return Scored(0.0, 0, total, NO_TOKEN)
    if own[0] is None:
        raise NothingBefore
    if holds_unknown(texts, pair.continuation):
        return Scored(0.0, 0, total, UNKNOWN)
    log_likelihood = sum(value for value in own if value is not None)
    return Scored(log_likelihood, len(own), total, straddles=straddles)


def _first_token(
    pair: Pair, whole: PromptTokens, alone: Callable[[str], Sequence[str]]
) -> tuple[int, bool]:
    """Return the first token of the continuation, and :attr:`Scored.straddles`."""
    starts, boundary = whole.starts, len(pair.context)
    if not pair.context:
        return _special_tokens(pair, whole), False
    if pair.continuation[:1].isspace() and starts is not None and boundary in starts:
        return starts.index(boundary), False
    tokens = list(alone(pair.context))
    return len(tokens), tokens != list(whole.texts[: len(tokens)])


def _special_tokens(pair: Pair, whole: PromptTokens) -> int:
    """Return how many tokens a server put before a text that is all continuation."""
    if whole.log_probs[0] is not None:
        return 0  # Its beginning is not shown, and was taken into account.
    if whole.starts is not None:
        return int(whole.starts[0] < 0 or not whole.texts[0])
    shown = whole.texts[0].strip()
    return int(not shown or not pair.continuation.strip().startswith(shown))
