"""Contexts and continuations as tokens, cut where lm-evaluation-harness cuts them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kbprobe.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from evaluation.scorers.causal.prompts import Rendered


class PairTokens(NamedTuple):
    """Tokens of a context and of its continuations."""

    context: array[int]
    continuations: list[array[int]]


class PairTokenizer:
    """Tokenizes contexts together with their continuations.

    The rule is ``_encode_pair`` of lm-evaluation-harness: white space that ends the context
    goes to the continuation; the two are tokenized as one text, and the continuation's tokens
    are those after as many as the context has alone. Special tokens are added as the tokenizer
    does by itself, unless the text already starts with the beginning-of-sequence token, as
    chat templates write it. An empty context is that token, or the end-of-sequence token where
    there is none.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        begin, end = tokenizer.bos_token_id, tokenizer.eos_token_id
        self._first: int | None = end if begin is None else begin
        self._first_text = None if self._first is None else str(tokenizer.decode(self._first))

    def encode(self, rendered: Sequence[Rendered]) -> list[PairTokens]:
        """Tokenize many at once.

        Returns:
            For each context its tokens, at least one, and the tokens of its continuations, which
            may be none where context and continuation merge.

        Raises:
            UsageError: a context is empty and the tokenizer has no token to stand for it.
        """
        divided = [
            (kept, [context[len(kept) :] + text for text in continuations])
            for context, continuations in rendered
            for kept in [context.rstrip()]
        ]
        whole = self._encode_texts(
            text
            for context, continuations in divided
            if context
            for text in (context, *(context + continuation for continuation in continuations))
        )
        # In no context to speak of, the continuation has no special tokens before it.
        alone = self._encode_texts(
            (text for context, texts in divided if not context for text in texts), special=False
        )
        pairs = []
        for context, continuations in divided:
            if context:
                tokens = whole[context]
                after = [whole[context + text][len(tokens) :] for text in continuations]
                pairs.append(PairTokens(tokens, after))
            else:
                pairs.append(self._begin_with([alone[text] for text in continuations]))
        return pairs

    def _begin_with(self, continuations: list[array[int]]) -> PairTokens:
        if self._first is None:
            raise UsageError(
                "a choice is scored with nothing before it, and the tokenizer of "
                f"{self._tokenizer.name_or_path!r} has neither a beginning- nor an end-of-sequence "
                'token to start from. Put something before it, such as --prompt "Q: {question}".'
            )
        # A continuation that already begins with that token is not given it twice.
        first = array("i", [self._first])
        after = [tokens[1:] if tokens[:1] == first else tokens for tokens in continuations]
        return PairTokens(first, after)

    def _encode_texts(
        self, texts: Iterable[str], *, special: bool | None = None
    ) -> dict[str, array[int]]:
        by_start: dict[bool | None, dict[str, None]] = {}
        for text in texts:
            starts = self._first_text is not None and text.startswith(self._first_text)
            by_start.setdefault(False if starts and special is None else special, {})[text] = None
        encoded: dict[str, array[int]] = {}
        for adding, distinct in by_start.items():
            options = {} if adding is None else {"add_special_tokens": adding}
            ids = self._tokenizer(
                list(distinct),
                return_attention_mask=False,
                return_token_type_ids=False,
                verbose=False,
                **options,
            )["input_ids"]
            encoded.update(
                (text, array("i", tokens)) for text, tokens in zip(distinct, ids, strict=True)
            )
        return encoded
