"""How much a model reads at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def longest_input(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the most tokens that an encoder reads, special tokens included.

    RoBERTa and models like it count positions from the padding token's, so their tables hold fewer
    tokens than entries.
    """
    # A tokenizer without a limit states an immense one, a configuration none, or -1.
    limits = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            unused = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - unused)
    return int(min(limit for limit in limits if limit is not None and limit > 0))
