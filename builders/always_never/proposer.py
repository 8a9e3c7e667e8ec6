"""Objects that a masked LM proposes: Talmor et al.'s way (oLMpics, section 4.2).

The model completes the statement without its adverb ("Lions eat [MASK]."). Of its top completions,
only words of the slot's kind are kept.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from builders.always_never.pairs import Pool
from kbprobe.arrays import Ints
from kbprobe.checkpoints import FILES, reading
from kbprobe.errors import UsageError, require
from kbprobe.format.setups import MASK

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCH = 64


def propose(pool: Pool, model: str, top_k: int) -> Pool:
    """Restrict a family's pairs to those that a masked LM proposes.

    Args:
        pool: all pairs.
        model: a masked LM of transformers, folder or Hub id.
        top_k: number of completions considered for each subject; each is a single token.

    Raises:
        MissingDependencyError: transformers or torch are not installed.
        UsageError: the model cannot be loaded, or has no mask.
    """
    tokenizer, network = _load(model)
    objects = pool.objects
    place: dict[str, int] = {}
    for at, forms in enumerate(zip(objects.text, objects.shown, strict=True)):
        for form in forms:
            place.setdefault(form, at)
    proposed = np.zeros((pool.subjects.size, objects.size), dtype=np.bool_)
    mask = tokenizer.mask_token
    prompts = [
        _sentence(pool.family.prompt.format(shown)).replace(MASK, mask)
        for shown in pool.subjects.shown
    ]
    for start in range(0, len(prompts), BATCH):
        best = _completions(tokenizer, network, prompts[start : start + BATCH], top_k)
        for row, tokens in enumerate(best.tolist(), start):
            for token in tokens:
                word = tokenizer.decode([token]).strip().lower()
                if word in place:
                    proposed[row, place[word]] = True
    return replace(pool, proposed=proposed)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _load(model: str) -> tuple[Any, Any]:
    for package in ("torch", "transformers"):
        require(package, "eval", "asking a masked LM for objects (--proposer)")
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    with reading(f"--proposer {model}: no masked LM can be loaded", Path(model), FILES, UsageError):
        tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
        network = AutoModelForMaskedLM.from_pretrained(model, trust_remote_code=False)
    if tokenizer.mask_token_id is None:
        raise UsageError(f"--proposer {model}: its tokenizer has no mask token; name a masked LM")
    return tokenizer, network.eval()


def _completions(tokenizer: Any, network: Any, prompts: Sequence[str], top_k: int) -> Ints:
    """Return the ids of the most likely tokens at each prompt's mask: (prompts, top_k)."""
    import torch

    batch = tokenizer(list(prompts), return_tensors="pt", padding=True)
    with torch.inference_mode():
        logits = network(**batch).logits
    row, column = torch.nonzero(batch["input_ids"] == tokenizer.mask_token_id, as_tuple=True)
    scores = logits[row, column].float()
    # Ties are broken by id, so that the result is the same on all machines.
    order = torch.sort(scores, dim=1, descending=True, stable=True).indices
    return np.asarray(order[:, :top_k].numpy(), dtype=np.int64)
