"""Scores clozes by a masked LM's logits at the mask, and answers by pseudo-log-likelihood.

A cloze whose candidates are all single pieces needs one sequence for each distinct text,
however many candidates it has. A candidate of several pieces is scored by its
pseudo-log-likelihood, within-word left-to-right (Kauf and Ivanova 2023, "PLL-word-l2r"): one
piece after another, each with itself and the pieces to its right in the same word masked, and
all other words visible. Each choice of a question is scored in the same way, after the question.

Models that were trained to do so (:class:`CandidateScorer`) score a candidate with several pieces
by the mean of its pieces' logits at a single mask.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from evaluation.items.types import Item, choice_starts
from evaluation.models.loading import longest_input, padding_token, refuse_unembedded
from evaluation.scorers.base import Encoded, EncodedTokens, Scorer, aside
from evaluation.scorers.masked.head import MaskHead
from evaluation.scorers.masked.pieces import Filled, Gap, Placer, unreadable
from evaluation.scorers.readable import SpecialTexts, unknown_token
from kbprobe.arrays import Bools, Floats, Ints, ragged_ranges, run_starts
from kbprobe.errors import KbprobeError, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


_REMEDIES = (
    "Score such items by pseudo-log-likelihood with --multi-piece pll, leave them out and count "
    "them with --multi-piece skip, or build the probe with candidates that the model knows as "
    "single tokens"
)
_LOGITS, _NATS = "logit", "log-likelihood"
_NAMED_AT_ONCE = 2048
"""Number of clozes held in memory until it is known what scores are."""
_NORMALIZED_AT_ONCE = 128
"""Number of sequences for which the whole vocabulary is held in float32 at a time."""


@dataclass(frozen=True, kw_only=True)
class MaskedEncoded(EncodedTokens):
    """Sequences of a masked LM.

    Attributes:
        position: the position of the mask to read in each sequence, shape [sequences].
        slot_piece: the token id whose score each slot is, shape [slots].
        log_probs: whether slots are log-probabilities (nats) rather than logits.
    """

    position: Ints
    slot_piece: Ints
    log_probs: bool


@dataclass
class MaskedSequences:
    """Collects the distinct sequences of all items."""

    mask: int
    contexts: dict[tuple[Gap, tuple[int, ...], tuple[int, ...]], int] = field(default_factory=dict)
    numbers: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)
    item: list[int] = field(default_factory=list)
    slots: list[list[tuple[int, int]]] = field(default_factory=list)
    tokens: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.item)

    def add(self, item: int, gap: Gap, choice: int, filled: Filled) -> None:
        """Add what a choice needs: a sequence for each of its pieces.

        Contexts of different texts are kept apart even if their tokens are the same, since a
        sequence must serve one question text only.
        """
        key = (gap, filled.left, filled.right)
        context = self.contexts.setdefault(key, len(self.contexts))
        self.tokens[choice] = len(filled.pieces)
        for piece, middle in zip(filled.pieces, self._masked(filled), strict=True):
            number = self.numbers.setdefault((context, middle), len(self.numbers))
            if number == len(self.item):
                self.item.append(item)
                self.slots.append([])
            self.slots[number].append((choice, piece))

    def _masked(self, filled: Filled) -> Iterator[tuple[int, ...]]:
        """Mask each piece in turn, together with the pieces to its right in its word."""
        pieces, words = filled.pieces, filled.words
        end = 0
        for at in range(len(pieces)):
            if at == end:
                while end < len(pieces) and words[end] == words[at]:
                    end += 1
            yield (*pieces[:at], *(self.mask,) * (end - at), *pieces[end:])

    def encoded(
        self, choices: int, set_aside: dict[int, str], notes: dict[str, int]
    ) -> MaskedEncoded:
        """Lay everything out as arrays."""
        contexts = list(self.contexts)
        rows = [(*contexts[number][1:], middle) for number, middle in self.numbers]
        lengths = _ints(sum(map(len, row)) for row in rows)
        tokens = chain.from_iterable(chain(left, middle, right) for left, right, middle in rows)
        choice_tokens = np.zeros(choices, dtype=np.int64)
        choice_tokens[_ints(self.tokens)] = _ints(self.tokens.values())
        slots = list(chain.from_iterable(self.slots))
        return MaskedEncoded(
            lengths=lengths,
            item=_ints(self.item),
            slot_starts=run_starts(map(len, self.slots)),
            slot_choice=_ints(choice for choice, _ in slots),
            choice_tokens=choice_tokens,
            set_aside=set_aside,
            notes=notes,
            tokens=np.fromiter(tokens, dtype=np.int32),
            token_starts=run_starts(lengths),
            position=_ints(len(left) + middle.index(self.mask) for left, _, middle in rows),
            slot_piece=_ints(piece for _, piece in slots),
            log_probs=False,
        )


class MaskedScorer(Scorer):
    """Scores choices with a masked language model.

    The input is the filled-in sentence with the candidate's pieces masked, as in pretraining. This
    equals replacing ``[MASK]`` by the model's mask token, unless the tokenizer treats text next to
    that token differently from text next to a word: SentencePiece begins a new word after it ("of
    <mask>." is split into "▁of <mask> ▁ ."), and some tokenizers remove all spaces before it.

    All scores of a run are of the same kind: logits at the mask if every item is a cloze whose
    candidates are single pieces, otherwise log-probabilities (nats). This depends on all items
    together (:meth:`encode_parts`).

    A text that is too long keeps the part nearest to the candidate, the same for all candidates of
    an item, and is counted in the notes as ``truncated``. Items that cannot be scored are set
    aside: those of :mod:`evaluation.scorers.readable`, and those with a candidate longer than the
    model reads. Sequences scored without the shortcuts of
    :class:`~evaluation.scorers.masked.head.MaskHead`, because the model gives different numbers
    with them, are counted as ``plain_forward``.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        multi_piece: Literal["pll", "skip", "error"] = "pll",
        log_probs: bool = False,
    ) -> None:
        """Set the loaded model, on its device and in any dtype, and its fast tokenizer.

        The options are those of :class:`~evaluation.scorers.entries.MaskedOptions`.

        Raises:
            UsageError: the tokenizer has no mask, or is a slow one.
            KbprobeError: the tokenizer gives single texts token types other than 0.
        """
        self._placer = Placer(tokenizer, "the scorer of masked LMs")
        if tokenizer.mask_token_id is None:
            raise UsageError(
                f"the tokenizer of {tokenizer.name_or_path!r} has no mask token, and a masked LM "
                "is scored with one. Name a checkpoint that has it, or choose another scorer."
            )
        self.model: PreTrainedModel = model.eval()
        self._tokenizer = tokenizer
        self._multi_piece = multi_piece
        self._log_probs = log_probs
        self._mask = tokenizer.mask_token_id
        self._special, self._unknown = SpecialTexts(tokenizer), unknown_token(tokenizer)
        self._pad = padding_token(model, tokenizer)
        self._max_length = longest_input(model, tokenizer)
        sample = tokenizer("a", return_special_tokens_mask=True, return_token_type_ids=True)
        if any(sample["token_type_ids"]):
            raise KbprobeError(
                f"the tokenizer of {tokenizer.name_or_path!r} gives a single text token types "
                "other than 0, which the masked-LM scorer cannot place. Name another checkpoint."
            )
        content = [at for at, special in enumerate(sample["special_tokens_mask"]) if not special]
        ids = sample["input_ids"]
        self._prefix, self._suffix = ids[: content[0]], ids[content[-1] + 1 :]
        self._head = self._try_out(ids[content[0]])

    def encode(self, items: Sequence[Item]) -> MaskedEncoded:
        """Tokenize all items; see :class:`MaskedScorer` for what is set aside or cut.

        Raises:
            UsageError: a cloze does not contain exactly one mask; or, with ``multi_piece="error"``,
                an item cannot be scored as single pieces.
        """
        encoded, several, _ = self._encoded(items)
        return replace(encoded, log_probs=self._in_nats(items) or several > 0)

    def _encoded(
        self, items: Sequence[Item], first: bool = False
    ) -> tuple[MaskedEncoded, int, list[tuple[int, ...]]]:
        """Tokenize all items, with a slot for each piece or for the ``first`` of a candidate alone.

        Returns:
            The sequences, with slots of logits; the number of rows with a candidate of several
            pieces; and the pieces of every choice.
        """
        gaps, starts = [gap_of_item(item) for item in items], choice_starts(items).tolist()
        placed = self._placer.place(gaps, [item.choices for item in items])
        set_aside: dict[int, str] = {}
        sequences = MaskedSequences(self._mask)
        pieces: list[tuple[int, ...]] = [()] * starts[-1]
        truncated = several = 0
        for number, (item, filled) in enumerate(zip(items, placed, strict=True)):
            reason = self._obstacle(item, filled)
            if reason and self._multi_piece == "error":
                raise UsageError(f"item {item.id}: {reason}. {_REMEDIES}")
            if reason:
                set_aside[number] = reason
                continue
            fitting = self._fit(filled)
            truncated += fitting is not filled
            several += any(len(one.pieces) > 1 for one in filled)
            for choice, one in enumerate(fitting, starts[number]):
                pieces[choice] = one.pieces
                if first:
                    one = replace(one, pieces=one.pieces[:1], words=one.words[:1])
                sequences.add(number, gaps[number], choice, one)
        notes = {"truncated": truncated} if truncated else {}
        if not self._head.gathers:
            notes["plain_forward"] = len(sequences)
        encoded = sequences.encoded(starts[-1], set_aside, notes)
        predicted = _ints(chain.from_iterable(pieces))
        refuse_unembedded(self.model, self._tokenizer, [encoded.tokens], [predicted])
        return encoded, several, pieces

    @torch.inference_mode()
    def score(self, encoded: MaskedEncoded, sequences: Ints) -> Floats:
        """Run some sequences as one batch; see :meth:`Scorer.score`."""
        counts, slots = encoded.slots(sequences)
        pieces = encoded.slot_piece[slots]
        rows = self._to_device(np.repeat(np.arange(len(sequences)), counts))
        asked = self._to_device(pieces)
        if encoded.log_probs:
            logits = self._mask_logits(encoded, sequences, None)
            parts = torch.split(logits, _NORMALIZED_AT_ONCE)
            norm = torch.cat([part.float().logsumexp(-1) for part in parts])
            values = logits[rows, asked].float() - norm[rows]
        else:
            needed = self._to_device(np.unique(pieces))
            values = self._mask_logits(encoded, sequences, needed)[rows, asked].float()
        scores: Floats = values.cpu().numpy().astype(np.float64)
        return scores

    def _mask_logits(
        self, encoded: MaskedEncoded, sequences: Ints, needed: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the logits at the mask of each sequence; see :meth:`MaskHead.logits`."""
        ids = encoded.padded(sequences, encoded.tokens, self._pad)
        inputs = self._inputs(ids, encoded.shown(sequences))
        positions = self._to_device(encoded.position[sequences])
        return self._head.logits(inputs, positions, needed)

    def score_name(self, items: Sequence[Item]) -> str:
        """Return what a choice's score is; this encodes clozes, some at a time.

        Raises:
            UsageError: as :meth:`encode`.
        """
        if self._in_nats(items):
            return _NATS
        parts = (items[at : at + _NAMED_AT_ONCE] for at in range(0, len(items), _NAMED_AT_ONCE))
        return _NATS if any(self.encode(part).log_probs for part in parts) else _LOGITS

    def encode_parts(
        self, parts: Sequence[Sequence[Item]], score_name: str | None = None
    ) -> tuple[str, Iterator[Encoded]]:
        """Tokenize parts of the items; see :meth:`Scorer.encode_parts`.

        Whether scores are logits or log-probabilities must be known before anything is scored. So
        clozes are encoded ahead until one has a candidate of several pieces, or to the end. This
        takes some hundred bytes each, since a cloze of single pieces is one sequence.
        """
        if self._multi_piece == "error":
            for part in parts:  # Errors are raised before anything is scored.
                self.encode(part)
        if any(map(self._in_nats, parts)):
            score_name = _NATS
        coming = map(self.encode, parts)
        ahead: deque[MaskedEncoded] = deque()
        while score_name is None:
            encoded = next(coming, None)
            if encoded is None:
                score_name = _LOGITS
            else:
                ahead.append(encoded)
                score_name = _NATS if encoded.log_probs else None
        log_probs = score_name == _NATS

        def given() -> Iterator[Encoded]:
            while ahead:
                yield replace(ahead.popleft(), log_probs=log_probs)
            for encoded in coming:
                yield replace(encoded, log_probs=log_probs)

        return score_name, given()

    def _in_nats(self, items: Sequence[Item]) -> bool:
        """Return whether scores are log-probabilities regardless of the pieces of candidates."""
        return self._log_probs or any(item.setup != "mc_mlm" for item in items)

    def _obstacle(self, item: Item, placed: Sequence[Filled]) -> str | None:
        """Return why an item cannot be scored, if so."""
        if reason := self._special.obstacle(item):
            return reason
        room = self._max_length - len(self._prefix) - len(self._suffix)
        for text, filled in zip(item.choices, placed, strict=True):
            if reason := unreadable(text, filled.pieces, self._unknown):
                return reason
            if len(filled.pieces) >= room:
                return aside(
                    "a candidate that leaves no room for its context",
                    f"{len(filled.pieces)} of the {self._max_length} tokens that the model reads",
                )
            if item.setup == "mc_mlm" and self._multi_piece != "pll" and len(filled.pieces) > 1:
                names = self._tokenizer.convert_ids_to_tokens(list(filled.pieces))
                return aside("a candidate of several pieces", f"{text!r} ({' '.join(names)})")
        return None

    def _fit(self, placed: list[Filled]) -> list[Filled]:
        """Cut the contexts of an item to what the model can read; the same list if they fit."""
        specials = len(self._prefix) + len(self._suffix)
        room = self._max_length - specials - max(len(filled.pieces) for filled in placed)
        if all(len(filled.left) + len(filled.right) - specials <= room for filled in placed):
            return placed
        return [self._cut(filled, room) for filled in placed]

    def _cut(self, filled: Filled, room: int) -> Filled:
        """Keep ``room`` tokens around the candidate, half of them on each side if both are long."""
        left = filled.left[len(self._prefix) :]
        right = filled.right[: len(filled.right) - len(self._suffix)]
        keep = min(len(left), max(room - len(right), room // 2))
        return Filled(
            left=(*self._prefix, *left[len(left) - keep :]),
            pieces=filled.pieces,
            words=filled.words,
            right=(*right[: room - keep], *self._suffix),
        )

    def _try_out(self, token: int) -> MaskHead:
        """Build the head, testing its shortcuts on two sequences of different lengths."""
        short = [*self._prefix, self._mask, *self._suffix]
        long = [*self._prefix, token, token, self._mask, token, *self._suffix]
        refuse_unembedded(self.model, self._tokenizer, [long])
        ids = np.array([short + [self._pad] * (len(long) - len(short)), long])
        inputs = self._inputs(ids, np.arange(len(long)) < [[len(short)], [len(long)]])
        positions = np.array([len(self._prefix), len(self._prefix) + 2])
        return MaskHead(self.model, inputs, self._to_device(positions))

    def _inputs(self, ids: Ints, shown: Bools) -> dict[str, torch.Tensor]:
        inputs = {"input_ids": self._to_device(ids), "attention_mask": self._to_device(shown)}
        if "token_type_ids" in self._tokenizer.model_input_names:
            inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
        return inputs

    def _to_device(self, numbers: Ints | Bools) -> torch.Tensor:
        return torch.from_numpy(numbers.astype(np.int64, copy=False)).to(self.model.device)


def gap_of_item(item: Item) -> Gap:
    """Return the text around a choice: its cloze, or its question, a space and nothing more."""
    if item.setup != "mc_mlm":
        return Gap(item.question + " ", "")
    return Gap.of(item.question, f"item {item.id}: ")


def _ints(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class CandidateEncoded(MaskedEncoded):
    """Clozes with one mask each; a slot is a choice at the mask of its text.

    Attributes:
        pieces: token ids of the pieces of all choices, one choice after another.
        piece_starts: where the pieces of each choice start, shape [choices + 1].
    """

    pieces: Ints
    piece_starts: Ints


class CandidateScorer(MaskedScorer):
    """Scores the candidates of clozes with the logits of their pieces at the mask.

    Single pieces have the scores that :class:`MaskedScorer` gives them. Rows with a candidate of
    several pieces are counted in the notes as ``several_pieces``.
    """

    score_kind = "logit"
    encode_parts, score_name = Scorer.encode_parts, Scorer.score_name  # whatever the pieces

    def encode(self, items: Sequence[Item]) -> CandidateEncoded:
        """Tokenize all items; see :class:`MaskedScorer` for what is set aside or cut.

        Raises:
            UsageError: a cloze does not hold exactly one mask.
        """
        encoded, several, pieces = self._encoded(items, first=True)
        tokens = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
        notes = {**encoded.notes, "several_pieces": several} if several else encoded.notes
        return CandidateEncoded(
            **{**vars(encoded), "choice_tokens": tokens, "notes": notes},
            pieces=np.fromiter(chain.from_iterable(pieces), dtype=np.int64),
            piece_starts=run_starts(tokens),
        )

    @torch.inference_mode()
    def score(self, encoded: Any, sequences: Ints) -> Floats:
        """Run some sequences as one batch; see :meth:`Scorer.score`."""
        values = self.slot_logits(encoded, encoded.slots(sequences)[1])
        scores: Floats = values.cpu().numpy().astype(np.float64)
        return scores

    def slot_logits(self, encoded: CandidateEncoded, slots: Ints) -> torch.Tensor:
        """Return the logit of each of some slots: float32, shape [n], differentiable.

        Candidates of one text share its forward pass.
        """
        texts, text_of_slot = np.unique(encoded.sequence_of(slots), return_inverse=True)
        choices = encoded.slot_choice[slots]
        counts = np.diff(encoded.piece_starts)[choices]
        pieces = encoded.pieces[ragged_ranges(encoded.piece_starts[choices], counts)]
        ids = encoded.padded(texts, encoded.tokens, self._pad)
        logits = self._head.logits(
            self._inputs(ids, encoded.shown(texts)),
            self._to_device(encoded.position[texts]),
            self._to_device(np.unique(pieces)),
        )
        rows, asked = self._to_device(np.repeat(text_of_slot, counts)), self._to_device(pieces)
        slot_of_piece = self._to_device(np.repeat(np.arange(len(slots)), counts))
        of_pieces = logits[rows, asked].float()
        sums = of_pieces.new_zeros(len(slots)).index_add(0, slot_of_piece, of_pieces)
        return sums / self._to_device(counts)
