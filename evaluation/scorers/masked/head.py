"""A masked LM whose head is applied to the masked positions only.

The head of a masked LM maps every position to the whole vocabulary, but a cloze needs only one
position and a few rows. The layers of heads differ between architectures, so the model's own code
is run: a hook on its encoder passes on one position of each sequence, and while candidates are
scored, the last layer computes only their rows. Whether the results equal those of the plain model
is checked once for each model; if not, the plain model is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}
_LOW_PRECISION_TOLERANCE = 2e-2
"""bf16 has 8 bits of precision; a wrong shortcut is off by about the number itself."""


class MaskHead:
    """Computes logits at one position of each sequence.

    ``gathers`` says whether the head is run at the asked positions only, ``selects`` whether the
    last layer computes the asked rows only.
    """

    def __init__(
        self, model: PreTrainedModel, inputs: Mapping[str, torch.Tensor], positions: torch.Tensor
    ) -> None:
        """Determine which shortcuts work for a model, on a padded batch of several lengths."""
        self._model = model
        self._encoder: nn.Module = model.base_model
        self._decoder: nn.Linear | None = None
        self.gathers = self.selects = False
        with torch.inference_mode():
            plain = self.logits(inputs, positions, None)
            has_encoder = self._encoder is not model
            self.gathers = has_encoder and self._agrees(plain, inputs, positions, None)
            decoder = _plain_decoder(model, plain.shape[-1])
            if self.gathers and decoder is not None:
                rows = torch.linspace(0, plain.shape[-1] - 1, 7, device=plain.device).long()
                self._decoder = decoder
                self.selects = self._agrees(plain, inputs, positions, rows)
                self._decoder = decoder if self.selects else None

    def logits(
        self,
        inputs: Mapping[str, torch.Tensor],
        positions: torch.Tensor,
        rows: torch.Tensor | None,
    ) -> torch.Tensor:
        """Return the logits at a position of each sequence, shape [sequences, vocabulary].

        Args:
            inputs: what the model takes; ``input_ids`` has shape [sequences, tokens].
            positions: the position of each sequence to look at, shape [sequences].
            rows: the distinct vocabulary entries that are needed; other logits are meaningless.
                None: all.
        """
        if self.gathers:
            return self._shortcut(inputs, positions, rows)[:, 0]
        logits: torch.Tensor = self._model(**inputs).logits
        return logits[torch.arange(len(positions), device=positions.device), positions]

    def _shortcut(
        self,
        inputs: Mapping[str, torch.Tensor],
        positions: torch.Tensor,
        rows: torch.Tensor | None,
    ) -> torch.Tensor:
        with _handing_on(self._encoder, positions), self._selecting(rows):
            logits: torch.Tensor = self._model(**inputs).logits
        return logits

    @contextmanager
    def _selecting(self, rows: torch.Tensor | None) -> Iterator[None]:
        decoder = self._decoder
        if rows is None or decoder is None:
            yield
            return

        def project(hidden: torch.Tensor) -> torch.Tensor:
            # In float32, since bf16 logits of similar candidates would often be equal.
            bias = None if decoder.bias is None else decoder.bias[rows].float()
            # On a CPU, a gradient for all rows of the vocabulary takes longer than the projection.
            sparse = hidden.device.type == "cpu"
            weight = nn.functional.embedding(rows, decoder.weight, sparse=sparse).float()
            with torch.autocast(hidden.device.type, enabled=False):
                asked = nn.functional.linear(hidden.float(), weight, bias)
            # As wide as the vocabulary, so that later operations (a bias, a soft cap) still fit.
            logits = asked.new_zeros(*hidden.shape[:-1], decoder.out_features)
            return logits.index_copy_(-1, rows, asked)

        decoder.forward = project  # type: ignore[assignment,method-assign]
        try:
            yield
        finally:
            del decoder.forward

    def _agrees(
        self,
        plain: torch.Tensor,
        inputs: Mapping[str, torch.Tensor],
        positions: torch.Tensor,
        rows: torch.Tensor | None,
    ) -> bool:
        fast = self._shortcut(inputs, positions, rows)
        if fast.shape != (plain.shape[0], 1, plain.shape[1]):
            return False
        fast = fast[:, 0]
        if rows is not None:
            fast, plain = fast[:, rows], plain[:, rows]
        scale = max(1.0, float(plain.abs().max()))
        tolerance = _TOLERANCE.get(plain.dtype, _LOW_PRECISION_TOLERANCE) * scale
        return bool((fast.float() - plain.float()).abs().max() <= tolerance)


@contextmanager
def _handing_on(encoder: nn.Module, positions: torch.Tensor) -> Iterator[None]:
    """Make an encoder return its last hidden state at one position of each sequence.

    The state becomes [sequences, 1, hidden]. An output of another shape is left as it is.
    """
    at = torch.arange(len(positions), device=positions.device)

    def pick(module: nn.Module, args: Any, output: Any) -> Any:
        hidden = output[0]
        if hidden.dim() != 3 or hidden.shape[0] != len(positions):
            return output
        picked = hidden[at, positions].unsqueeze(1)
        if isinstance(output, tuple):
            return (picked, *output[1:])
        output[next(iter(output))] = picked
        return output

    handle = encoder.register_forward_hook(pick)
    try:
        yield
    finally:
        handle.remove()


def _plain_decoder(model: PreTrainedModel, vocabulary: int) -> nn.Linear | None:
    """Return the layer that maps to the vocabulary, if it is an ordinary, unwrapped one."""
    decoder = model.get_output_embeddings()
    # Quantized layers are subclasses; wrappers set ``forward`` on the instance; and some
    # models name another layer of their head here.
    if type(decoder) is not nn.Linear or "forward" in vars(decoder):
        return None
    return decoder if decoder.out_features == vocabulary else None
