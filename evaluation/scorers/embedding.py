"""Embedding: the cosine of the vectors of question and choice, by a model of whole texts.

It gives sentence encoders a zero-shot score. They know what texts are about rather than what is
true, so the score is also the strongest baseline without knowledge that needs no training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pydantic import BaseModel

from evaluation.items.types import Item
from evaluation.scorers.base import RowScorer
from evaluation.scorers.encoder import EncodedTexts, EncoderRunner, Inputs
from kbprobe.arrays import Floats
from kbprobe.errors import UsageError
from kbprobe.parsing import read_json, validated

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_BATCH = 128
"""Number of texts encoded at once; they are sorted by length, to reduce padding."""


_POOLING = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "first",
    "pooling_mode_lasttoken": "last",
}
"""Keys of sentence-transformers, and the pooling that each stands for."""


class _Module(BaseModel):
    """A layer as ``modules.json`` of sentence-transformers lists it."""

    type: str
    path: str


def saved_pooling(folder: Path) -> str | None:
    """Return the pooling that sentence-transformers saved with a checkpoint; None where none is.

    Raises:
        UsageError: the checkpoint has layers of its own, or a pooling that is not computed here.
    """
    listed = folder / "modules.json"
    if not listed.is_file():
        return None
    found = None
    for module in validated(read_json(listed), list[_Module], str(listed)):
        kind = module.type.rpartition(".")[2]
        if kind not in ("Transformer", "Pooling", "Normalize"):
            raise UsageError(
                f"--scorer embedding: {folder} ends in a layer ({kind}) that is not read here, and "
                "its vectors would be others than the model's. Choose a checkpoint that ends in a "
                "pooling."
            )
        if kind == "Pooling":
            config = folder / module.path / "config.json"
            stated = validated(read_json(config), dict[str, Any], str(config))
            kinds = [key for key, on in stated.items() if key.startswith("pooling_mode") and on]
            names = [_POOLING.get(key, key) for key in kinds]
            if len(names) != 1 or names[0] not in _POOLING.values():
                raise UsageError(
                    f"--scorer embedding: {folder} was trained with the pooling "
                    f"{' and '.join(names)}, which is not computed here: choose another checkpoint"
                )
            found = names[0]
    return found


def check_pooling(folder: Path, pooling: str) -> None:
    """Compare the pooling with the one that was saved with a checkpoint, if any.

    Raises:
        UsageError: the checkpoint was trained with another one, or :func:`saved_pooling` raises.
    """
    if (saved := saved_pooling(folder)) not in (None, pooling):
        raise UsageError(
            f"--scorer embedding: {folder} was trained with the pooling {saved}, not {pooling}: "
            f"give --pooling {saved}"
        )


def pooled(states: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """Reduce the states of tokens to a vector for each text, shape [texts, dimensions].

    Args:
        states: the last hidden states, padded on the right, shape [texts, tokens, dimensions].
        mask: 1 for tokens and 0 for padding, shape [texts, tokens].
        pooling: the kind of pooling, see :class:`~evaluation.scorers.entries.EmbeddingOptions`.
    """
    if pooling == "first":
        return states[:, 0]
    if pooling == "last":
        return states[torch.arange(len(mask), device=mask.device), mask.sum(1) - 1]
    shown = mask.unsqueeze(-1).to(states.dtype)
    return (states * shown).sum(1) / shown.sum(1)


class EmbeddingScorer(RowScorer):
    """Encodes each text once; the notes count those that were too long for the model."""

    score_kind = "cosine"

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, pooling: str
    ) -> None:
        check_pooling(Path(str(model.config.name_or_path)), pooling)
        self._model, self._pooling = model, pooling
        self._runner = EncoderRunner(model, tokenizer)

    def choice_scores(self, items: Sequence[Item]) -> tuple[Floats, Mapping[str, int]]:
        """Return the cosine of each choice with its question."""
        questions = [item.question for item in items for _ in item.choices]
        choices = [text for item in items for text in item.choices]
        numbers = {text: n for n, text in enumerate(dict.fromkeys([*questions, *choices]))}
        vectors, cut = self._vectors(list(numbers))
        asked = vectors[[numbers[text] for text in questions]]
        scores = np.einsum("ij,ij->i", asked, vectors[[numbers[text] for text in choices]])
        return scores.astype(np.float64), {"cut_texts": cut} if cut else {}

    @torch.inference_mode()
    def _vectors(self, texts: list[str]) -> tuple[Floats, int]:
        """Return the vectors of texts, of length 1, and how many were too long."""
        read = self._runner.tokenize([("", text) for text in texts])
        encoded = EncodedTexts.one_each(read)
        order = np.argsort(read.lengths, kind="stable")
        batches = np.split(order, np.arange(_BATCH, len(order), _BATCH))
        found = torch.cat(
            [self._runner.run(encoded, batch, self._forward).cpu() for batch in batches]
        )
        vectors = np.empty(found.shape, dtype=np.float64)
        vectors[order] = torch.nn.functional.normalize(found.float(), dim=1).numpy()
        return vectors, len(read.cut)

    def _forward(self, batch: Inputs) -> torch.Tensor:
        states = self._model.base_model(**batch)[0]
        mask = batch.get("attention_mask", torch.ones_like(batch["input_ids"]))
        return pooled(states, mask, self._pooling)
