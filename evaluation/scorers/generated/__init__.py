"""Scorers that read the answer which a model writes: of a chat endpoint, or loaded here."""

from __future__ import annotations

from evaluation.models.capabilities import Capability
from evaluation.registry import imported
from evaluation.scorers.base import ScorerEntry
from evaluation.scorers.generated.options import ChatOptions, GenerationOptions
from kbprobe.format.setups import QUESTION

CHAT_ANSWERS = ScorerEntry(
    name="chat",
    label="chat model behind an endpoint",
    version=1,
    needs=Capability.CHAT_ANSWERS,
    make=imported("evaluation.scorers.generated.chat:ChatScorer.from_inputs"),
    options=ChatOptions,
    wording=QUESTION,
    uses_train=lambda options: options.shots > 0,
)
GENERATE = ScorerEntry(
    name="generate",
    label="causal LM that writes its answer",
    version=1,
    needs=Capability.CAUSAL_SCORES,
    make=imported("evaluation.scorers.generated.local:LocalScorer.from_inputs"),
    options=GenerationOptions,
    wording=QUESTION,
    uses_train=lambda options: options.shots > 0,
)
