"""Vectors of texts from an encoder of transformers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kbprobe.errors import UsageError, require

BATCH = 64
LONGEST = 256
"""Tokens of a text that are read."""


def encode(texts: list[str], name: str) -> npt.NDArray[np.float32]:
    """Return the mean of the last hidden states of each text's tokens, (texts, dimensions).

    Args:
        texts: what to encode.
        name: a folder or an id on the Hub, of any model that ``AutoModel`` loads.

    Raises:
        MissingDependencyError: torch or transformers is not installed.
        UsageError: the model cannot be loaded.
    """
    for package in ("torch", "transformers"):
        require(package, "eval", "--encoder")
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModel.from_pretrained(name).eval()
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UsageError(f"--encoder {name} cannot be loaded: {reason}") from None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    tokenizer.padding_side = "right"
    vectors = np.empty((len(texts), model.config.hidden_size), dtype=np.float32)
    # Texts of like length together: little padding.
    order = np.argsort([len(text) for text in texts], kind="stable")
    with torch.inference_mode():
        for batch in np.split(order, np.arange(BATCH, order.size, BATCH)):
            given = tokenizer(
                [texts[at] for at in batch],
                padding=True,
                truncation=True,
                max_length=LONGEST,
                return_tensors="pt",
            ).to(device)
            states = model(**given).last_hidden_state.float()
            mask = given["attention_mask"][:, :, None]
            pooled = (states * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
            vectors[batch] = pooled.cpu().numpy()
    return vectors
