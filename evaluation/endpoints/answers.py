"""Answers of completions endpoints: a prompt's tokens with log-probabilities, and spans.

A prompt is sent to ``/completions`` with ``echo`` and ``logprobs``, and one token is generated:
none is an error to some servers, and means any number to others. The answer that is read is that
of OpenAI's older models, of vLLM, SGLang and llama-cpp-python:
``choices[0].logprobs`` holds ``tokens`` and ``token_logprobs``, first of the prompt, then of what
was generated. The first token has no log-probability, unless the server put a token for the
beginning of a text before it.

``text_offset`` is not relied upon: SGLang fills it with -1, and vLLM adds up the lengths of
tokens that it decodes one by one, which differ from those in the text where a token is a part of
a character, or begins with a space that decoding strips.

The rule is that of :class:`evaluation.scorers.causal.layout.PairTokenizer`, and so of
lm-evaluation-harness: white space that ends the context goes to the continuation, and the
continuation's tokens are those after as many as the context has alone. Where the continuation
begins with white space and a token starts there, those before it are the context's. Where a token
straddles the boundary, where the boundary is within a word, which may be divided differently when
the context is alone, or where the boundary is unclear, the context is sent alone and its tokens are
counted.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kbprobe.http import ServerError, printable
from kbprobe.parsing import MAX_INTEGER

_NO_PROMPT_SCORES = (
    "{url} gives no log-probabilities of prompts: {why}. kbprobe scores a choice by those of its "
    "tokens after the question, so this server cannot be used. vLLM, SGLang and llama-cpp-python "
    "(with logits_all) give them. llama.cpp's own server does not: name the .gguf file itself "
    "with --model, without --endpoint."
)
_UNKNOWN = re.compile(r"<unk>|\[UNK\]")
"""Tokens that represent text unknown to the tokenizer."""
_END = re.compile(r"<[^<>\s]+>|\[[A-Z]+\]")
"""Tokens that some tokenizers put after every text."""
_MOST = 1e-3
"""Log-probabilities above 0 by no more than this are rounding."""


class NoPromptScores(ServerError):
    """The endpoint gives no log-probabilities of the tokens of a prompt."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(_NO_PROMPT_SCORES.format(url=url, why=why))


@dataclass(frozen=True)
class PromptTokens:
    """The tokens of a prompt as read by a server.

    Attributes:
        texts: of the tokens, decoded one by one; shape [tokens].
        log_probs: nats; None for a token that nothing precedes. Shape [tokens].
        starts: where each token starts in the prompt, in characters, and the prompt's end: a
            special token before the text starts below 0. None: the texts do not add up to the
            prompt. Shape [tokens + 1].
    """

    texts: Sequence[str]
    log_probs: Sequence[float | None]
    starts: Sequence[int] | None


REQUEST = {"echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}
"""Parameters posted with a model and a prompt, to request log-probabilities of its tokens."""


def only_choice(answer: Any, url: str) -> tuple[dict[str, Any], Callable[[str], ServerError]]:
    """Return the only choice of an answer, and a function that makes errors about it.

    Raises:
        ServerError: the answer has another form.
    """

    def malformed(why: str) -> ServerError:
        return ServerError(f"{url} answers in a form that is not known: {why}")

    if not isinstance(answer, dict) or not isinstance(answer.get("choices"), list):
        raise malformed("an object with a list of choices was expected")
    if len(answer["choices"]) != 1:
        raise malformed(f"{len(answer['choices'])} choices, where one was asked for")
    choice = answer["choices"][0]
    return choice if isinstance(choice, dict) else {}, malformed


def read_answer(answer: Any, prompt: str, url: str) -> PromptTokens:
    """Read the answer to a :data:`REQUEST`.

    Raises:
        NoPromptScores: it says nothing about the prompt's tokens.
        ServerError: it has another form, or is for another prompt.
    """
    choice, malformed = only_choice(answer, url)
    text = choice.get("text")
    if not isinstance(text, str):
        raise malformed("its choice has no text")
    found = choice.get("logprobs")
    if found is None:
        raise NoPromptScores(url, "its answer holds no logprobs")
    if not isinstance(found, dict):
        raise malformed("logprobs is no object")
    if "tokens" not in found and isinstance(found.get("content"), list):
        raise NoPromptScores(url, "its logprobs are of what it generates alone")
    texts, log_probs = found.get("tokens"), found.get("token_logprobs")
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise malformed("logprobs.tokens is no list of texts")
    if not isinstance(log_probs, list) or len(log_probs) != len(texts):
        raise malformed("logprobs.token_logprobs is no list as long as logprobs.tokens")
    if not _echoes(text, prompt):
        if len(texts) <= 1:
            raise NoPromptScores(url, "it does not heed echo")
        raise ServerError(
            f"{url} answers with another text than the prompt: it may have cut it. The prompt is "
            f"{printable(prompt, 60)!r}, and the answer {printable(text, 60)!r}"
        )
    count, starts = _prompt_length(texts, text, prompt, answer)
    if count is None:
        raise malformed("it does not say which tokens are the prompt's (usage.completion_tokens)")
    if count < 1:
        raise NoPromptScores(url, "its logprobs are of what it generates alone")
    if starts is None:
        count = _without_ends(texts, count, prompt)
    own = [log_prob_of(value) for value in log_probs[:count]]
    if any(value is not None and math.isnan(value) for value in own):
        raise malformed("a log-probability is not a number, above 0, or beyond 64 bits")
    if None in own[1:]:
        raise NoPromptScores(url, "it leaves out those of some tokens")
    return PromptTokens(texts[:count], own, starts)


def log_prob_of(value: Any) -> float | None:
    """Return a log-probability; NaN for anything else."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value > _MOST:
        return math.nan
    if isinstance(value, int) and value < -MAX_INTEGER:  # it may exceed any float
        return math.nan
    return min(float(value), 0.0)


def _echoes(text: str, prompt: str) -> bool:
    """Return whether a text begins with a prompt, as a tokenizer may have normalised it."""
    if text.startswith(prompt):
        return True
    squeezed = [
        "".join(unicodedata.normalize("NFKC", one).casefold().split()) for one in (text, prompt)
    ]
    return squeezed[0].startswith(squeezed[1])


def _prompt_length(
    texts: Sequence[str], text: str, prompt: str, answer: dict[str, Any]
) -> tuple[int | None, list[int] | None]:
    """Return the number of the prompt's tokens, and their starts in it if known."""
    ends = [0]
    for one in texts:
        ends.append(ends[-1] + len(one))
    joined = "".join(texts)
    # Before the text there is the token for its beginning.
    before = len(joined) - len(text)
    if text.startswith(prompt) and before >= 0 and joined.endswith(text):
        stop = before + len(prompt)
        if stop in ends:
            count = ends.index(stop)
            return count, [end - before for end in ends[: count + 1]]
    usage = answer.get("usage")
    generated = usage.get("completion_tokens") if isinstance(usage, dict) else None
    if isinstance(generated, bool) or not isinstance(generated, int) or generated < 0:
        return None, None
    return len(texts) - generated, None


def _without_ends(texts: Sequence[str], count: int, prompt: str) -> int:
    """Return the number of a prompt's tokens without those that the server puts after any text."""
    while count > 1 and _END.fullmatch(last := texts[count - 1].strip()):
        if prompt.rstrip().endswith(last):
            break
        count -= 1
    return count


NO_TOKEN = "a choice leaves no token to score after its question"
UNKNOWN = "a candidate with characters unknown to the tokenizer"
TOO_LONG = "a prompt longer than the endpoint takes"
FILTERED = "a prompt that the endpoint's content filter refuses"


class TokenPair(NamedTuple):
    """A context without white space at its end, and a continuation that may begin with it."""

    context: str
    continuation: str

    @property
    def text(self) -> str:
        """The text that is sent."""
        return self.context + self.continuation


class Scored(NamedTuple):
    """The log-likelihood of a continuation.

    Attributes:
        log_likelihood: nats, summed over its tokens; 0 where it is set aside.
        tokens: the number of its tokens.
        prompt_tokens: the number of tokens of context and continuation.
        obstacle: why it is set aside, such as :data:`NO_TOKEN`; None if it is not.
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


def divided(context: str, continuation: str) -> TokenPair:
    """Split a text into context and continuation like lm-evaluation-harness.

    >>> divided("Is it ", "a dog")
    TokenPair(context='Is it', continuation=' a dog')
    """
    kept = context.rstrip()
    return TokenPair(kept, context[len(kept) :] + continuation)


def score_pair(
    pair: TokenPair, whole: PromptTokens, alone: Callable[[str], Sequence[str]]
) -> Scored:
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
    shown = [one.strip() for one in texts]
    if any(_UNKNOWN.fullmatch(one) and one not in pair.continuation for one in shown):
        return Scored(0.0, 0, total, UNKNOWN)
    log_likelihood = sum(value for value in own if value is not None)
    return Scored(log_likelihood, len(own), total, straddles=straddles)


def _first_token(
    pair: TokenPair, whole: PromptTokens, alone: Callable[[str], Sequence[str]]
) -> tuple[int, bool]:
    """Return the first token of the continuation, and :attr:`Scored.straddles`."""
    starts, boundary = whole.starts, len(pair.context)
    if not pair.context:
        return _special_tokens(pair, whole), False
    if pair.continuation[:1].isspace() and starts is not None and boundary in starts:
        return starts.index(boundary), False
    tokens = list(alone(pair.context))
    return len(tokens), tokens != list(whole.texts[: len(tokens)])


def _special_tokens(pair: TokenPair, whole: PromptTokens) -> int:
    """Return how many tokens a server put before a text that is all continuation."""
    if whole.log_probs[0] is not None:
        return 0  # Its beginning is not shown, and was already accounted for.
    if whole.starts is not None:
        return int(whole.starts[0] < 0 or not whole.texts[0])
    shown = whole.texts[0].strip()
    return int(not shown or not pair.continuation.strip().startswith(shown))
