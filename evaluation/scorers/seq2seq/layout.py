"""Input of the encoder and output of the decoder: texts, tokens, and flat arrays of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evaluation.scorers.base import Tokens
from evaluation.scorers.causal.layout import Collector, EncodedCells, find_tokens, grow_trees
from kbprobe.arrays import Ints, ragged_ranges
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


Ids = tuple[int, ...]

_SAMPLE = "an answer of several words"


class EncodedSource(NamedTuple):
    """What the encoder reads.

    Attributes:
        tokens: the tokens, including special tokens around them.
        cut: whether its beginning was left out to fit.
    """

    tokens: Ids
    cut: bool


class SourceTokenizer:
    """Tokenizes what the encoder reads.

    Special tokens are added as the tokenizer does by default, unless the text already starts with
    the beginning-of-sequence token, as chat templates write it.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, limit: int) -> None:
        """Set the checkpoint's tokenizer, and the maximum number of tokens for the encoder."""
        self._tokenizer, self._limit = tokenizer, limit
        first = tokenizer.bos_token_id
        self._first = None if first is None else str(tokenizer.decode(first))
        # The special tokens that the tokenizer puts before a text.
        whole = _ids(tokenizer, text=[_SAMPLE])[0]
        bare = _ids(tokenizer, text=[_SAMPLE], add_special_tokens=False)[0]
        self._before = find_tokens(whole, bare) or 0

    def __call__(self, texts: Iterable[str]) -> dict[str, EncodedSource]:
        """Tokenize distinct texts; white space that ends them is left out.

        Raises:
            UsageError: nothing is left of a text, and the tokenizer adds nothing to it.
        """
        found: dict[str, EncodedSource] = {}
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

    def _fit(self, tokens: Sequence[int], before: int) -> EncodedSource:
        """Remove excess tokens after the special tokens at the beginning."""
        excess = max(0, len(tokens) - self._limit)
        return EncodedSource((*tokens[:before], *tokens[before + excess :]), bool(excess))


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
        begins, at = find_tokens(inputs, bare[:-1]), find_tokens(labels, bare)
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
        except (ValueError, TypeError):  # raised by classes if a token is not configured
            return []
        return shifted
    generation = getattr(model, "generation_config", None)
    start = getattr(generation, "decoder_start_token_id", None)
    if start is None:
        start = getattr(model.config, "decoder_start_token_id", None)
    return [] if start is None else [int(start), *labels[:-1]]


def _ids(tokenizer: PreTrainedTokenizerBase, **texts: Any) -> list[list[int]]:
    plain = {"return_attention_mask": False, "return_token_type_ids": False, "verbose": False}
    ids: list[list[int]] = tokenizer(**texts, **plain)["input_ids"]
    return ids


class AskedSources(NamedTuple):
    """A text for the encoder, and the targets whose log-likelihoods are asked for.

    Attributes:
        item: an item that it belongs to.
        source: the tokens that the encoder reads.
        given: the tokens that the decoder is given, at least one.
        targets: token sequences that are scored after them, and the choices that each stands for.
        weight: what their log-likelihoods count in a choice's score.
        cut: whether the beginning of the source was left out to fit.
    """

    item: int
    source: Ids
    given: Ids
    targets: dict[Ids, list[int]]
    weight: float
    cut: bool = False


@dataclass(frozen=True, kw_only=True)
class Seq2SeqEncoded(EncodedCells):
    """Sequences of an encoder-decoder model: the tokens are those of the encoder.

    Sequence ``s`` has the decoder's rows ``row_starts[s] .. row_starts[s + 1]``. All of them begin
    with what the decoder is given. ``cell_after`` is how many of a row's own tokens stand before
    the target.

    Attributes:
        given: tokens that the decoder is given, of all sequences.
        given_starts: where those of each sequence start, shape [sequences + 1].
        row_starts: shape [sequences + 1].
        row_tokens: what each row adds to the given tokens, which may be nothing.
        row_token_starts: where the tokens of each row start, shape [rows + 1].
        cell_row: the row that predicts each cell's target, shape [cells].
    """

    given: Tokens
    given_starts: Ints
    row_starts: Ints
    row_tokens: Tokens
    row_token_starts: Ints
    cell_row: Ints

    def given_tokens(self, sequences: Ints) -> Ints:
        """Return what the decoder is given for some sequences, equally many tokens: [n, tokens]."""
        counts = np.diff(self.given_starts)[sequences]
        flat = self.given[ragged_ranges(self.given_starts[sequences], counts)]
        return flat.reshape(len(sequences), -1).astype(np.int64)

    def rows_of(self, sequences: Ints) -> tuple[Ints, Ints]:
        """Return how many rows each of some sequences has, and the rows of all of them."""
        counts = np.diff(self.row_starts)[sequences]
        return counts, ragged_ranges(self.row_starts[sequences], counts)

    def padded_rows(self, rows: Ints, filling: int) -> Ints:
        """Lay out the own tokens of some rows, padded on the right, shape [n, longest]."""
        lengths = np.diff(self.row_token_starts)[rows]
        batch = np.full((len(rows), int(lengths.max())), filling, dtype=np.int64)
        here = ragged_ranges(self.row_token_starts[rows], lengths)
        batch[np.arange(batch.shape[1]) < lengths[:, None]] = self.row_tokens[here]
        return batch


def lay_out(
    asked: Sequence[AskedSources],
    choice_tokens: Ints,
    set_aside: Mapping[int, str],
    notes: dict[str, int],
) -> Seq2SeqEncoded:
    """Lay out what is asked: each text is a sequence, and targets that it stands for are slots.

    Targets of which one is read on the way to another share a row.
    """
    runs = ("given_starts", "row_starts", "row_token_starts")
    collector = Collector({"given": "i", "row_tokens": "i", "cell_row": "q"}, runs)
    columns, lengths = collector.columns, collector.runs
    rows = lengths["row_token_starts"]
    for one in asked:
        collector.add_sequence(one.item, one.source)
        columns["given"].extend(one.given)
        lengths["given_starts"].append(len(one.given))
        targets, before = list(one.targets), len(rows)
        for tree in grow_trees(one.given, targets, limit=0):
            own = tree.tokens[len(one.given) :]
            columns["row_tokens"].extend(own)
            for number, after in tree.paths:
                choices = one.targets[targets[number]]
                columns["cell_row"].extend([len(rows)] * len(after) * len(choices))
                places = [at - len(one.given) + 1 for at in after]
                collector.add_slots(choices, one.weight, places, targets[number])
            rows.append(len(own))
        lengths["row_starts"].append(len(rows) - before)
    arrays = collector.arrays()
    return Seq2SeqEncoded(**arrays, choice_tokens=choice_tokens, set_aside=set_aside, notes=notes)
