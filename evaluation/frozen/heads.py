"""The heads: from the vectors of a row to a score for each of its choices.

Each is a module for one set of rows; :mod:`evaluation.frozen.training` stacks many of one shape.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from kbprobe.errors import KbprobeError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


HIDDEN_UNITS = 512
"""Units of the classifier of labels, as in Kim et al. (2019)."""


class CandidateHead(nn.Module):
    """Scores candidates by their output embeddings: one vector per row, at its gap.

    ``body`` maps the row's vector to the state that is multiplied by the output embeddings.
    """

    def __init__(self, body: nn.Module, weight: torch.Tensor, bias: torch.Tensor) -> None:
        """Take the candidates' output embeddings, shape [candidates, dimensions], and biases."""
        super().__init__()
        self.body = body
        self.weight = nn.Parameter(weight.clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, vectors: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
        """Return scores, shape [rows, choices].

        Args:
            vectors: shape [rows, 1, dimensions].
            candidates: the candidate that each choice is, shape [rows, choices].
        """
        states = self.body(vectors[:, 0])
        weights = nn.functional.embedding(candidates, self.weight)
        scores: torch.Tensor = (weights @ states.unsqueeze(-1)).squeeze(-1)
        return scores + self.bias[candidates]


class UnitHead(nn.Module):
    """Scores choices by one linear layer on each vector; no bias, which all would share."""

    def __init__(self, dimensions: int, generator: torch.Generator) -> None:
        """Initialise the weights as in BERT."""
        super().__init__()
        drawn = torch.empty(dimensions).normal_(0, 0.02, generator=generator)
        self.weight = nn.Parameter(drawn.unsqueeze(0))

    def forward(self, vectors: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
        """Return scores, shape [rows, choices].

        Args:
            vectors: shape [rows, choices, dimensions].
            candidates: not used.
        """
        return vectors @ self.weight[0]


class LabelHead(nn.Module):
    """Scores labels by a small network on a text's vector: a linear layer, tanh, norm, and another.

    The classifier of Kim et al. (2019), as their code (jiant) has it, but for dropout.
    """

    def __init__(self, dimensions: int, labels: int, generator: torch.Generator) -> None:
        """Initialise the layers as torch does."""
        super().__init__()
        self.hidden = nn.Linear(dimensions, HIDDEN_UNITS)
        self.norm = nn.LayerNorm(HIDDEN_UNITS)
        self.output = nn.Linear(HIDDEN_UNITS, labels)
        with torch.no_grad():
            for layer in (self.hidden, self.output):
                reach = layer.in_features**-0.5
                layer.weight.uniform_(-reach, reach, generator=generator)
                layer.bias.uniform_(-reach, reach, generator=generator)

    def forward(self, vectors: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
        """Return scores, shape [rows, choices].

        Args:
            vectors: shape [rows, 1, dimensions].
            candidates: the label that each choice is, shape [rows, choices].
        """
        states = self.norm(torch.tanh(self.hidden(vectors[:, 0])))
        scores: torch.Tensor = self.output(states).gather(1, candidates)
        return scores


class FreshBody(nn.Module):
    """A masked-LM head's layers before its output embeddings, untrained: dense, GELU, norm."""

    def __init__(self, dimensions: int, generator: torch.Generator) -> None:
        """Initialise the layers as in BERT."""
        super().__init__()
        self.dense = nn.Linear(dimensions, dimensions)
        self.norm = nn.LayerNorm(dimensions)
        with torch.no_grad():
            self.dense.weight.normal_(0, 0.02, generator=generator)
            self.dense.bias.zero_()

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return states of the vectors' shape, [rows, dimensions]."""
        states: torch.Tensor = self.norm(nn.functional.gelu(self.dense(vectors)))
        return states


class _Given(nn.Module):
    """Stands in for an encoder, and returns the states that it is given."""

    def forward(self, *_: Any, inputs_embeds: torch.Tensor, **__: Any) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=inputs_embeds)


class ModelBody(nn.Module):
    """A masked LM's own head up to its output embeddings, run by the model's own code.

    Its parameters are copies in float32: those of the model stay as they are.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        """Copy the head.

        Raises:
            KbprobeError: the model does not end in an ordinary linear output layer, or its
                head reads anything but the encoder's last hidden state.
        """
        super().__init__()
        prefix, encoder = model.base_model_prefix, model.base_model
        decoder = model.get_output_embeddings()
        if encoder is model or type(decoder) is not nn.Linear:
            raise KbprobeError(_unsuited(model, "its output layer is not an ordinary linear one"))
        place = next(name for name, module in model.named_modules() if module is decoder)
        parent, _, last = place.rpartition(".")
        holder = model.get_submodule(parent)
        setattr(model, prefix, _Given())
        setattr(holder, last, nn.Identity())
        try:
            self.shell = copy.deepcopy(model).float()
        finally:
            setattr(model, prefix, encoder)
            setattr(holder, last, decoder)
        self.shell.requires_grad_(True)
        self._drop_idle(decoder.in_features, model)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return the states that are multiplied by the output embeddings.

        Args:
            vectors: the encoder's last hidden states, shape [rows, dimensions].
        """
        states: torch.Tensor = self.shell(inputs_embeds=vectors.unsqueeze(1)).logits
        return states[:, 0]

    def _drop_idle(self, width: int, model: PreTrainedModel) -> None:
        """Freeze parameters that the head's states do not depend on, such as output biases."""
        hidden = getattr(model.config, "hidden_size", None) or model.config.dim
        try:
            states = self(torch.randn(2, hidden, device=model.device))
        except (RuntimeError, TypeError, AttributeError) as error:
            raise KbprobeError(_unsuited(model, str(error).splitlines()[0])) from error
        if states.shape != (2, width):
            raise KbprobeError(_unsuited(model, "its head's states have a different width"))
        weights = list(self.shell.parameters())
        found = torch.autograd.grad(states.sum(), weights, allow_unused=True)
        for weight, gradient in zip(weights, found, strict=True):
            weight.requires_grad_(gradient is not None)


def _unsuited(model: PreTrainedModel, why: str) -> str:
    return (
        f"the head of {type(model).__name__} cannot be trained on its own: {why}. Leave out the "
        "learners linear and mlp, or use another model"
    )
