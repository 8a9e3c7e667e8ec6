"""The papers that can be reproduced."""

from __future__ import annotations

from evaluation.reproduce.function_words import FUNCTION_WORDS
from evaluation.reproduce.olmpics import OLMPICS
from evaluation.reproduce.wordnetqa import WORDNETQA

PAPERS = {paper.name: paper for paper in (OLMPICS, WORDNETQA, FUNCTION_WORDS)}
