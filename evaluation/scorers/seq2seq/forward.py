"""One batch through an encoder-decoder model.

The encoder reads each text once, whatever number of targets is scored for it. What the decoder is
given before all of them is also read once, with the keys and values of the encoder's states cached,
and the targets continue from there. Whether a model then gives the same scores as in its plain
forward pass is tested once (:func:`supports_reuse`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from evaluation.scorers.batching import out_of_memory
from evaluation.scorers.likelihoods import GROSS, TOLERANCES, logits_at, target_log_probs
from evaluation.scorers.seq2seq.layout import AskedSources, Seq2SeqEncoded, lay_out
from kbprobe.arrays import Floats, Ints
from kbprobe.errors import KbprobeError, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_CLAMPED = torch.finfo(torch.float16).max - 1000
"""The value to which T5's and BART's code clips numbers that float16 cannot represent."""

Found = tuple[Ints, torch.Tensor]
"""Cells of a batch, by number, and their log-probabilities."""


class Seq2SeqRunner:
    """Scores the targets of batches.

    Attributes:
        model: on its device, in evaluation mode.
        padding: a token to pad with; no token that counts attends to it.
        reuses: read each text once for all its targets; if not, once for each row.
    """

    def __init__(self, model: PreTrainedModel, padding: int, *, reuses: bool) -> None:
        self.model, self.padding, self.reuses = model, padding, reuses

    @torch.inference_mode()
    def score(self, encoded: Seq2SeqEncoded, sequences: Ints) -> Floats:
        """Run some sequences as one batch.

        Returns:
            The weighted log-likelihood (nats) of each of their slots, sequence after sequence.

        Raises:
            KbprobeError: scores are not finite, or a number left the range of float16.
        """
        batch = _EncodedBatch(encoded, sequences)
        values = np.empty(len(batch.cells))
        with _within_range(self.model):
            found = list((self._reusing if self.reuses else self._plain)(batch))
        at = np.concatenate([cells for cells, _ in found])
        values[at] = torch.cat([log_probs for _, log_probs in found]).cpu().numpy()
        if not np.isfinite(values).all():
            raise KbprobeError(
                f"the model gives scores that are not finite in {self.model.dtype}. "
                "Use --dtype bfloat16 or --dtype float32."
            )
        return encoded.summed(sequences, values)

    def _plain(self, batch: _EncodedBatch) -> Iterator[Found]:
        """Run each sequence alone, in the plain forward pass: the encoder for each row."""
        encoded = batch.encoded
        for at, sequence in enumerate(batch.sequences):
            one = np.array([sequence])
            source = self._to_device(encoded.padded(one, encoded.tokens, self.padding))
            given = encoded.given_tokens(one)
            for rows in self._chunks(batch, encoded.rows_of(one)[1]):
                own = encoded.padded_rows(rows, self.padding)
                before = np.repeat(given, len(rows), axis=0)
                written = self._to_device(np.concatenate([before, own], axis=1))
                inputs = {
                    "input_ids": source.expand(len(rows), -1),
                    "attention_mask": torch.ones_like(source).expand(len(rows), -1),
                    "decoder_input_ids": written,
                    "use_cache": False,
                }
                cells = np.flatnonzero((batch.cell_sequence == at) & np.isin(batch.cell_row, rows))
                after = batch.cell_after[cells] + given.shape[1] - 1
                place = batch.row_place(rows, cells) * written.shape[1] + after
                yield self._found(batch, inputs, cells, place)[0]

    def _reusing(self, batch: _EncodedBatch) -> Iterator[Found]:
        """Run the encoder once; then what is given, then the rows from there."""
        encoded = batch.encoded
        shown = self._to_device(encoded.shown(batch.sequences))
        source = self._to_device(encoded.padded(batch.sequences, encoded.tokens, self.padding))
        encoder: Any = self.model.get_encoder()
        states = encoder(input_ids=source, attention_mask=shown)[0]
        given = np.diff(encoded.given_starts)[batch.sequences]
        # One length at a time, since positions continue from it.
        for length in np.unique(given):
            members = np.flatnonzero(given == length)
            yield from self._members(batch, members, states, shown)

    def _members(
        self, batch: _EncodedBatch, members: Ints, states: torch.Tensor, shown: torch.Tensor
    ) -> Iterator[Found]:
        encoded, sequences = batch.encoded, batch.sequences[members]
        given = encoded.given_tokens(sequences)
        place_of = np.zeros(len(batch.sequences), dtype=np.int64)
        place_of[members] = np.arange(len(members))
        mine = np.isin(batch.cell_sequence, members)
        first = np.flatnonzero(mine & (batch.cell_after == 0))
        at = self._to_device(members)
        inputs = {
            "encoder_outputs": BaseModelOutput(last_hidden_state=states[at]),
            "attention_mask": shown[at],
            "decoder_input_ids": self._to_device(given),
            "use_cache": True,
        }
        place = (place_of[batch.cell_sequence[first]] + 1) * given.shape[1] - 1
        found, output = self._found(batch, inputs, first, place)
        yield found

        counts, rows = encoded.rows_of(sequences)
        member_of = np.repeat(np.arange(len(members)), counts)
        longer = np.diff(encoded.row_token_starts)[rows] > 0
        rows, member_of = rows[longer], member_of[longer]
        number_of = dict(zip(rows.tolist(), member_of.tolist(), strict=True))
        further = np.flatnonzero(mine & (batch.cell_after > 0))
        for chunk in self._chunks(batch, rows):
            own = encoded.padded_rows(chunk, self.padding)
            mine_of = self._to_device(np.array([number_of[row] for row in chunk.tolist()]))
            inputs = {
                "encoder_outputs": BaseModelOutput(last_hidden_state=states[at[mine_of]]),
                "attention_mask": shown[at[mine_of]],
                "decoder_input_ids": self._to_device(own),
                "past_key_values": _selected(output.past_key_values, mine_of),
                "use_cache": True,
            }
            cells = further[np.isin(batch.cell_row[further], chunk)]
            after = batch.cell_after[cells] - 1
            place = batch.row_place(chunk, cells) * own.shape[1] + after
            yield self._found(batch, inputs, cells, place)[0]

    def _found(
        self, batch: _EncodedBatch, inputs: dict[str, Any], cells: Ints, place: Ints
    ) -> tuple[Found, Any]:
        """Run the model, and return the cells predicted at places of the flattened batch."""
        places, row = np.unique(place, return_inverse=True)
        logits, output = logits_at(self.model, inputs, self._to_device(places))
        return (cells, target_log_probs(logits, row, batch.cell_target[cells])), output

    def _chunks(self, batch: _EncodedBatch, rows: Ints) -> Iterator[Ints]:
        """Cut rows, the longest first, into parts that cost as much as the batch's encoder."""
        encoded = batch.encoded
        lengths = np.diff(encoded.row_token_starts)[rows]
        rows = rows[np.argsort(-lengths, kind="stable")]
        source = int(encoded.lengths[batch.sequences].max())
        widest = max(source, int(lengths.max(initial=0)))
        size = max(1, source * len(batch.sequences) // widest)
        for start in range(0, len(rows), size):
            yield rows[start : start + size]

    def _to_device(self, numbers: Any) -> torch.Tensor:
        return torch.from_numpy(numbers.astype(np.int64, copy=False)).to(self.model.device)


class _EncodedBatch:
    """Some sequences and the cells of their slots, slot after slot.

    Attributes:
        cells: their numbers among all cells, shape [n].
        cell_sequence: for each, which of the batch's sequences it belongs to.
        cell_row, cell_after, cell_target: of :class:`Seq2SeqEncoded`, shape [n].
    """

    def __init__(self, encoded: Seq2SeqEncoded, sequences: Ints) -> None:
        self.encoded, self.sequences = encoded, sequences
        slot_counts, _ = encoded.slots(sequences)
        _, counts, self.cells = encoded.cells(sequences)
        self.cell_sequence = np.repeat(np.repeat(np.arange(len(sequences)), slot_counts), counts)
        self.cell_row = encoded.cell_row[self.cells]
        self.cell_after = encoded.cell_after[self.cells].astype(np.int64)
        self.cell_target = encoded.cell_target[self.cells].astype(np.int64)

    def row_place(self, rows: Ints, cells: Ints) -> Ints:
        """Return the index, within some rows, of the row in which each cell is predicted."""
        order = np.argsort(rows)
        return order[np.searchsorted(rows, self.cell_row[cells], sorter=order)]


def supports_reuse(runner: Seq2SeqRunner, asked: Sequence[AskedSources]) -> bool:
    """Score some targets plainly, one at a time and together, then with all that is reused.

    Args:
        runner: of the model; its ``reuses`` is left as it is.
        asked: fixed texts of different lengths; the targets stand for choices 0, 1, ...

    Returns:
        Whether scores are those of the plain forward pass when texts are read once.

    Raises:
        UsageError: other texts in a batch change a target's score.
        KbprobeError: scores are not finite.
    """
    length_of = {
        choice: len(target)
        for one in asked
        for target, choices in one.targets.items()
        for choice in choices
    }
    tokens = np.array([length_of[choice] for choice in range(len(length_of))])
    allowed = TOLERANCES.get(runner.model.dtype, TOLERANCES[torch.bfloat16]) * tokens

    def scored(asked: Sequence[AskedSources], *, reuses: bool) -> Floats:
        encoded = lay_out(asked, tokens, {}, {})
        scores = np.empty(len(tokens))
        trial = Seq2SeqRunner(runner.model, runner.padding, reuses=reuses)
        scores[encoded.slot_choice] = trial.score(encoded, np.arange(len(encoded.lengths)))
        return scores

    single = [
        one._replace(targets={target: choices})
        for one in asked
        for target, choices in one.targets.items()
    ]
    alone = scored(single, reuses=False)
    if not (np.abs(scored(asked, reuses=False) - alone) <= GROSS * allowed).all():
        raise UsageError(
            f"{type(runner.model).__name__} gives a text another score when longer ones are scored "
            "beside it: its attention is drawn at random, or its decoder does not write from left "
            "to right. It cannot be scored."
        )
    try:
        together = scored(asked, reuses=True)
    except (TypeError, ValueError, IndexError, KeyError, AttributeError, RuntimeError) as error:
        # Models raise these if they cache nothing, or cache it in another form.
        if out_of_memory(error):
            raise
        return False
    return bool((np.abs(together - alone) <= allowed).all())


def _selected(cache: Any, rows: torch.Tensor) -> EncoderDecoderCache:
    """Return a decoder's cache for some rows of a batch."""

    def of_rows(kept: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(
            part.index_select(0, rows) if isinstance(part, torch.Tensor) and part.dim() else part
            for part in kept
        )

    return EncoderDecoderCache([of_rows(layer) for layer in cache])


@contextmanager
def _within_range(model: PreTrainedModel) -> Iterator[None]:
    """Refuse scores that depend on numbers which float16 cannot represent.

    T5 was trained in bfloat16, whose range is larger. Its code in transformers sets such numbers
    to the largest that float16 can represent, so that scores would be finite but wrong. All of them
    go through a norm next.
    """
    if model.dtype != torch.float16:
        yield
        return
    largest: list[torch.Tensor] = []

    def note(module: torch.nn.Module, args: tuple[Any, ...]) -> None:
        if args and args[0].dtype == torch.float16 and args[0].numel():
            largest.append(args[0].abs().amax())

    norms = [part for part in model.modules() if type(part).__name__.endswith("Norm")]
    handles = [norm.register_forward_pre_hook(note) for norm in norms]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
    if largest and not bool((torch.stack(largest) < _CLAMPED).all()):
        raise KbprobeError(
            "numbers inside the model leave the range of float16, and its scores would be wrong. "
            "Use --dtype bfloat16 or --dtype float32."
        )
