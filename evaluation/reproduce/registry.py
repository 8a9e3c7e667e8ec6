"""The papers that can be reproduced."""

from __future__ import annotations

from evaluation.registry import Registry
from evaluation.reproduce.frame import Paper

PAPERS = Registry[Paper](
    "paper",
    "kbprobe.papers",
    Paper,
    {
        "olmpics": "evaluation.reproduce.olmpics:OLMPICS",
        "wordnetqa": "evaluation.reproduce.wordnetqa:WORDNETQA",
        "function-words": "evaluation.reproduce.function_words:FUNCTION_WORDS",
    },
)
