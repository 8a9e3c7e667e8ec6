"""Tokens of contexts and continuations of a causal model as flat arrays, and their batches."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evaluation.scorers.base import EncodedTokens, Tokens
from evaluation.scorers.readable import unknown_token
from kbprobe.arrays import Bools, Floats, Ints, ragged_ranges, run_starts
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from evaluation.scorers.causal.prompts import Rendered


PACK_TOKENS = 512
"""Length up to which sequences are packed: in longer ones, attention, most of it masked, costs more
than reading the question again."""


_SAMPLE = "и 的 1 a city"
"""A text of which any tokenizer leaves something."""


class Tree:
    """One sequence of tokens, grown by adding continuations.

    Attributes:
        tokens: the context, then the continuations' tokens.
        positions: the depth of each token.
        ends: for each token, where the run of tokens that see it ends.
        paths: for each continuation, its number and, for each of its tokens, the token of the
            sequence after which the model predicts it.
        branched: whether the tree needs its own mask; if not, it is an ordinary sequence.
    """

    def __init__(self, context: Sequence[int]) -> None:
        self.tokens = list(context)
        self.positions = list(range(len(context)))
        self.ends = [0] * len(context)
        self.paths: list[tuple[int, list[int]]] = []
        self.branched = False
        self._root = len(context) - 1
        # The path to the last token added, as indices into the sequence.
        self._path: list[int] = []

    def add(self, number: int, continuation: Sequence[int], limit: int) -> bool:
        """Add a continuation, or return False if it has to go into another tree."""
        read = continuation[:-1]
        shared = 0
        while (
            shared < min(len(read), len(self._path))
            and self.tokens[self._path[shared]] == read[shared]
        ):
            shared += 1
        new = read[shared:]
        parent = self._path[shared - 1] if shared else self._root
        branched = self.branched or (bool(new) and parent != len(self.tokens) - 1)
        if branched and len(self.tokens) + len(new) > limit:
            return False
        self.branched = branched
        self._close(shared)
        self._path += range(len(self.tokens), len(self.tokens) + len(new))
        self.positions += range(self._root + 1 + shared, self._root + 1 + len(read))
        self.tokens += new
        self.ends += [0] * len(new)
        self.paths.append((number, [self._root, *self._path[: len(read)]]))
        return True

    def finish(self) -> None:
        """Set ``ends`` of the context and of the last path."""
        self._close(0)
        self.ends[: self._root + 1] = [len(self.tokens)] * (self._root + 1)

    def _close(self, depth: int) -> None:
        for token in self._path[depth:]:
            self.ends[token] = len(self.tokens)
        del self._path[depth:]


def grow_trees(
    context: Sequence[int], continuations: Sequence[Sequence[int]], *, limit: int
) -> list[Tree]:
    """Put continuations of one context into as few sequences as allowed.

    Args:
        context: at least one token.
        continuations: distinct, each of at least one token.
        limit: the maximum number of tokens in a branched tree. With 0 no tree branches, and
            continuations share a sequence only if one is a prefix of the other. A sequence that
            does not branch may have any length.

    Returns:
        Trees whose ``paths`` cover every continuation once.
    """
    # Sorted, each path shares as long a prefix with the one before it as with any other, and a
    # path that is a prefix of another comes first.
    order = sorted(range(len(continuations)), key=lambda number: tuple(continuations[number][:-1]))
    trees: list[Tree] = []
    for number in order:
        if not trees or not trees[-1].add(number, continuations[number], limit):
            trees.append(Tree(context))
            trees[-1].add(number, continuations[number], limit)
    for tree in trees:
        tree.finish()
    return trees


@dataclass(frozen=True, kw_only=True)
class EncodedCells(EncodedTokens):
    """Sequences whose slots are log-likelihoods of several tokens.

    A slot is the sum over its *cells*, each the log-probability of one token after others.

    Attributes:
        cell_starts: slot ``t`` has cells ``cell_starts[t] .. cell_starts[t + 1]``.
        cell_after: where each cell's target follows, shape [cells].
        cell_target: the token predicted, shape [cells].
        slot_weight: the weight of a slot's log-likelihood in its choice's score, shape [slots].
    """

    cell_starts: Ints
    cell_after: Tokens
    cell_target: Tokens
    slot_weight: Floats

    def cells(self, sequences: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the slots of some sequences, how many cells each has, and the cells of all."""
        _, slots = self.slots(sequences)
        counts = self.cell_starts[slots + 1] - self.cell_starts[slots]
        return slots, counts, ragged_ranges(self.cell_starts[slots], counts)

    def summed(self, sequences: Ints, values: Floats) -> Floats:
        """Return the weighted sum of each slot of some sequences, given the values of its cells."""
        slots, counts, _ = self.cells(sequences)
        sums: Floats = np.add.reduceat(values, np.cumsum(counts) - counts)
        return sums * self.slot_weight[slots]


@dataclass(frozen=True, kw_only=True)
class CausalEncoded(EncodedCells):
    """Sequences of a causal model; a cell's target follows one token of its sequence.

    Attributes:
        positions: of :class:`~evaluation.scorers.causal.layout.Tree`, as ``ends``; shape [tokens].
        ends: see ``Tree``.
        branched: which sequences need positions and a mask of their own, shape [sequences].
        forked: whether these are run without a mask, by copies of the question's state
            (:mod:`evaluation.scorers.causal.forked`).
    """

    positions: Tokens
    ends: Tokens
    branched: Bools
    forked: bool = False


class Batch(NamedTuple):
    """Sequences in lines of one length, padded on the right, and the cells to compute.

    Attributes:
        tokens: shape [lines, length], as are ``positions`` and ``ends`` of
            :class:`~evaluation.scorers.causal.layout.Tree`; padding is seen by itself alone.
        branched: whether positions and mask differ from those of ordinary sequences.
        rows: the distinct tokens after which something is predicted, as indices into the
            flattened batch, shape [rows].
        cell_row: for each cell, its index into ``rows``, shape [cells].
        cell_target: shape [cells].
    """

    tokens: Ints
    positions: Ints
    ends: Ints
    branched: bool
    rows: Ints
    cell_row: Ints
    cell_target: Ints


class Collector:
    """Collects sequences one by one, and lays them out as arrays."""

    def __init__(self, columns: Mapping[str, str] | None = None, runs: Sequence[str] = ()) -> None:
        """Name what is collected for each sequence besides its tokens, slots and cells.

        Args:
            columns: fields, and the type of their numbers in :class:`array.array`.
            runs: fields that say where runs start, for which the lengths are collected.
        """
        self.columns: dict[str, array[Any]] = {
            **{name: array("i") for name in ("tokens", "cell_after", "cell_target")},
            **{name: array("q") for name in ("lengths", "item", "slot_choice")},
            "slot_weight": array("d"),
            **{name: array(kind) for name, kind in (columns or {}).items()},
        }
        self.runs = {name: array("q") for name in ("slot_starts", "cell_starts", *runs)}
        names = ("slot_choice", "slot_weight", "cell_after", "cell_target")
        self._of_slots = tuple(self.columns[name] for name in names)

    def add_sequence(self, item: int, tokens: Sequence[int]) -> None:
        """Add the tokens of a sequence; its slots come next."""
        self.columns["item"].append(item)
        self.columns["lengths"].append(len(tokens))
        self.columns["tokens"].extend(tokens)
        self.runs["slot_starts"].append(0)

    def add_slots(
        self, choices: Sequence[int], weight: float, after: Sequence[int], target: Sequence[int]
    ) -> None:
        """Add a slot of the last sequence for each choice that a target stands for."""
        slot_choice, slot_weight, cell_after, cell_target = self._of_slots
        for choice in choices:
            slot_choice.append(choice)
            slot_weight.append(weight)
            cell_after.extend(after)
            cell_target.extend(target)
            self.runs["cell_starts"].append(len(after))
        self.runs["slot_starts"][-1] += len(choices)

    def arrays(self) -> dict[str, Any]:
        """Return the fields of :class:`EncodedCells` and further ones, as arrays."""
        arrays: dict[str, Any] = {name: np.array(held) for name, held in self.columns.items()}
        arrays |= {name: run_starts(lengths) for name, lengths in self.runs.items()}
        return {**arrays, "token_starts": run_starts(arrays["lengths"])}


class LayoutBuilder(Collector):
    """Collects trees one by one, and lays them out as sequences."""

    def __init__(self) -> None:
        super().__init__({"positions": "i", "ends": "i", "branched": "b"})

    def add(
        self,
        tree: Tree,
        item: int,
        continuations: Sequence[Sequence[int]],
        choices: Sequence[Sequence[int]],
        weight: float,
    ) -> None:
        """Add a sequence, each of whose continuations scores some choices."""
        self.add_sequence(item, tree.tokens)
        self.columns["positions"].extend(tree.positions)
        self.columns["ends"].extend(tree.ends)
        self.columns["branched"].append(tree.branched)
        for number, after in tree.paths:
            self.add_slots(choices[number], weight, after, continuations[number])

    def build(
        self,
        choice_tokens: Ints,
        set_aside: Mapping[int, str],
        notes: Mapping[str, int],
        *,
        forked: bool = False,
    ) -> CausalEncoded:
        """Return all sequences as arrays."""
        arrays = self.arrays()
        arrays["branched"] = arrays["branched"].astype(np.bool_)
        return CausalEncoded(
            **arrays,
            choice_tokens=choice_tokens,
            set_aside=set_aside,
            notes=notes,
            forked=forked,
        )


def cut_out(encoded: CausalEncoded, sequences: Ints, *, multiple: int = 1) -> Batch:
    """Lay out some sequences, all branched or none, as a batch.

    Ordinary sequences have one line each. Branched ones, which their mask hides from each other
    anyway, share lines as long as the longest of them, to reduce padding. The length of a line is
    rounded up to a ``multiple``.
    """
    branched = bool(encoded.branched[sequences[0]])
    lengths = encoded.lengths[sequences]
    width = -(-int(lengths.max()) // multiple) * multiple
    if branched:
        line, offset = _share_lines(lengths, width)
    else:
        line, offset = np.arange(len(sequences)), np.zeros(len(sequences), dtype=np.int64)
    lines = int(line.max()) + 1
    at = np.repeat(line, lengths), ragged_ranges(offset, lengths)
    source = ragged_ranges(encoded.token_starts[sequences], lengths)
    # Padding uses token 0, which exists in every vocabulary; no token that counts sees it.
    tokens = np.zeros((lines, width), dtype=np.int64)
    positions = np.zeros_like(tokens)
    ends = np.tile(np.arange(1, width + 1), (lines, 1))
    tokens[at] = encoded.tokens[source]
    positions[at] = encoded.positions[source]
    ends[at] = encoded.ends[source] + np.repeat(offset, lengths)

    slot_counts, _ = encoded.slots(sequences)
    _, cell_counts, cells = encoded.cells(sequences)
    first = np.repeat(np.repeat(line * width + offset, slot_counts), cell_counts)
    rows, cell_row = np.unique(first + encoded.cell_after[cells], return_inverse=True)
    return Batch(
        tokens=tokens,
        positions=positions,
        ends=ends,
        branched=branched,
        rows=rows.astype(np.int64),
        cell_row=cell_row.astype(np.int64),
        cell_target=encoded.cell_target[cells].astype(np.int64),
    )


def _share_lines(lengths: Ints, width: int) -> tuple[Ints, Ints]:
    """Place sequences in lines, longest first, each in the first line with enough room.

    Returns:
        The line of each sequence, and its start in the line.
    """
    line, offset = np.zeros_like(lengths), np.zeros_like(lengths)
    filled: list[int] = []
    for sequence in np.argsort(-lengths, kind="stable"):
        length = int(lengths[sequence])
        found = next((n for n, used in enumerate(filled) if used + length <= width), len(filled))
        if found == len(filled):
            filled.append(0)
        line[sequence], offset[sequence] = found, filled[found]
        filled[found] += length
    return line, offset


class PairTokens(NamedTuple):
    """Tokens of a context and of its continuations."""

    context: array[int]
    continuations: list[array[int]]


class TextTokenizer:
    """Tokenizes texts that a model is to continue: special tokens before them, and none after.

    Special tokens are added as the tokenizer does by default, unless the text already starts with
    the beginning-of-sequence token, as chat templates write it. A token that the tokenizer puts
    after every text (``</s>``) would end what is to be continued, and is left out.

    Attributes:
        tokenizer: the checkpoint's.
        before: the tokens that it puts before a text.
        first: what stands for an empty text: the beginning-of-sequence token, or the
            end-of-sequence token where there is none, or else ``before``.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Find out what the tokenizer puts around a text.

        Raises:
            UsageError: it ends every text with a token that cannot be left out.
        """
        self.tokenizer = tokenizer
        whole, bare = self._ids([_SAMPLE])[0], self._ids([_SAMPLE], add_special_tokens=False)[0]
        at = find_tokens(whole, bare)
        ends = {*tokenizer.all_special_ids} - {unknown_token(tokenizer)}
        if ends.intersection(bare[-1:] if at is not None else whole[-1:]):
            raise UsageError(
                f"the tokenizer of {tokenizer.name_or_path!r} ends each text with "
                f"{tokenizer.decode(whole[-1:])!r}, even without special tokens, and a causal LM "
                "would read it between a question and its choice. Leave it out where the tokenizer "
                "adds it (add_eos_token in tokenizer_config.json, or its code)."
            )
        self.before: list[int] = whole[:at] if at else []
        self._after = 0 if at is None else len(whole) - at - len(bare)
        begin, end = tokenizer.bos_token_id, tokenizer.eos_token_id
        token: int | None = end if begin is None else begin
        self._first_text = None if token is None else str(tokenizer.decode(token))
        self.first = self.before if token is None else [token]

    def __call__(self, texts: Iterable[str], *, special: bool = True) -> dict[str, array[int]]:
        """Tokenize distinct texts, without special tokens if they are not asked for."""
        by_start: dict[bool, dict[str, None]] = {}
        for text in texts:
            starts = self._first_text is not None and text.startswith(self._first_text)
            by_start.setdefault(special and not starts, {})[text] = None
        encoded: dict[str, array[int]] = {}
        for adding, distinct in by_start.items():
            # By default, a tokenizer may put fewer tokens around a text than when asked to.
            ids = self._ids(list(distinct), **({} if adding else {"add_special_tokens": False}))
            after = self._after if adding else 0
            encoded.update(
                (text, array("i", tokens[: len(tokens) - after]))
                for text, tokens in zip(distinct, ids, strict=True)
            )
        return encoded

    def _ids(self, texts: list[str], **options: bool) -> list[list[int]]:
        ids: list[list[int]] = self.tokenizer(
            texts,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
            **options,
        )["input_ids"]
        return ids


def find_tokens(tokens: Sequence[int], part: Sequence[int]) -> int | None:
    """Return where a part of some tokens begins; None if they do not contain it."""
    places = range(len(tokens) - len(part) + 1)
    return next((at for at in places if list(tokens[at : at + len(part)]) == list(part)), None)


class PairTokenizer:
    """Tokenizes contexts together with their continuations.

    The rule is ``_encode_pair`` of lm-evaluation-harness: white space that ends the context
    goes to the continuation; the two are tokenized as one text, and the continuation's tokens
    are those after as many as the context alone has. Unlike there, a token that the tokenizer puts
    after every text belongs to neither (:class:`TextTokenizer`). An empty context is
    ``TextTokenizer.first``.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.texts = TextTokenizer(tokenizer)

    def encode(self, rendered: Sequence[Rendered]) -> list[PairTokens]:
        """Tokenize many at once.

        Returns:
            For each context its tokens, at least one, and the tokens of its continuations, which
            may be none where context and continuation merge.

        Raises:
            UsageError: a context is empty and the tokenizer has no token to represent it.
        """
        divided = [
            (kept, [context[len(kept) :] + text for text in continuations])
            for context, continuations in rendered
            for kept in [context.rstrip()]
        ]
        whole = self.texts(
            text
            for context, continuations in divided
            if context
            for text in (context, *(context + continuation for continuation in continuations))
        )
        # With an empty context, the continuation has no special tokens before it.
        alone = self.texts(
            (text for context, texts in divided if not context for text in texts), special=False
        )
        pairs = []
        for context, continuations in divided:
            tokens = whole[context] if context else array("i")
            if tokens:
                after = [whole[context + text][len(tokens) :] for text in continuations]
                pairs.append(PairTokens(tokens, after))
            else:  # A tokenizer may leave nothing of a context that is not empty.
                found = whole if context else alone
                pairs.append(self._begin_with([found[context + text] for text in continuations]))
        return pairs

    def _begin_with(self, continuations: list[array[int]]) -> PairTokens:
        first = array("i", self.texts.first)
        if not first:
            raise UsageError(
                "a choice is scored with nothing before it, and the tokenizer of "
                f"{self.texts.tokenizer.name_or_path!r} has neither a beginning- nor an "
                "end-of-sequence token to start from. Put something before it, such as --prompt "
                '"Q: {question}".'
            )
        # A continuation that already begins with these tokens is not given them twice.
        size = len(first)
        after = [tokens[size:] if tokens[:size] == first else tokens for tokens in continuations]
        return PairTokens(first, after)
