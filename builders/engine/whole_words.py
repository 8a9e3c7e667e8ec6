"""Which words a tokenizer keeps whole, so that a masked LM can predict them in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kbprobe.arrays import Bools
from kbprobe.checkpoints import FILES, reading
from kbprobe.errors import UsageError, require


def whole_words(words: Sequence[str], tokenizer: str) -> Bools:
    """Tell which words a tokenizer keeps whole inside a sentence.

    Args:
        words: the words; any that the tokenizer does not know is not kept whole.
        tokenizer: a transformers tokenizer, by folder or Hub id.

    Raises:
        MissingDependencyError: transformers is not installed.
        UsageError: the tokenizer cannot be loaded.
    """
    require("transformers", "eval", "--tokenizer")
    from transformers import AutoTokenizer

    with reading(f"--tokenizer: cannot load {tokenizer!r}", Path(tokenizer), FILES, UsageError):
        loaded = AutoTokenizer.from_pretrained(tokenizer, trust_remote_code=False)
    if not words:
        return np.zeros(0, dtype=np.bool_)
    pieces = loaded([f" {word}" for word in words], add_special_tokens=False)["input_ids"]
    unknown = loaded.unk_token_id
    return np.array([len(ids) == 1 and ids[0] != unknown for ids in pieces], dtype=np.bool_)
