"""Scorers that read the answer which a model writes: of a chat endpoint, or loaded here."""

from __future__ import annotations

from evaluation.models.capabilities import Capability
from evaluation.scorers.base import Scorer, ScorerEntry, ScorerInputs
from evaluation.scorers.generated.options import ChatOptions, GenerationOptions
from kbprobe.format.setups import QUESTION


def _make_chat(inputs: ScorerInputs) -> Scorer:
    from evaluation.scorers.generated.chat import ChatScorer

    return ChatScorer.from_inputs(inputs)


def _make_local(inputs: ScorerInputs) -> Scorer:
    from evaluation.scorers.generated.local import LocalScorer

    return LocalScorer.from_inputs(inputs)


CHAT_ANSWERS = ScorerEntry(
    name="chat",
    label="chat model behind an endpoint",
    version=1,
    needs=Capability.CHAT_ANSWERS,
    make=_make_chat,
    options=ChatOptions,
    wording=QUESTION,
    uses_train=lambda options: options.shots > 0,
)
GENERATE = ScorerEntry(
    name="generate",
    label="causal LM that writes its answer",
    version=1,
    needs=Capability.CAUSAL_SCORES,
    make=_make_local,
    options=GenerationOptions,
    wording=QUESTION,
    uses_train=lambda options: options.shots > 0,
)
