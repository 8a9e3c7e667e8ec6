"""The registered scorers, and which of them a checkpoint is scored with."""

from __future__ import annotations

from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL, Checkpoint
from evaluation.registry import Registry
from evaluation.scorers.base import ScorerEntry
from kbprobe.errors import UsageError

SCORERS = Registry[ScorerEntry](
    "scorer",
    "kbprobe.scorers",
    ScorerEntry,
    [
        "evaluation.scorers.masked:MASKED_LM",
        "evaluation.scorers.causal:CAUSAL_LM",
        "evaluation.scorers.pmi:PMI",
        "evaluation.scorers.multiple_choice:MULTIPLE_CHOICE",
        "evaluation.scorers.classifier:CLASSIFIER",
        "evaluation.scorers.guessing:RANDOM",
        "evaluation.scorers.vec_similarity:VEC_SIMILARITY",
    ],
)
"""All scorers. A checkpoint is scored with the first whose needs it meets, unless one is named."""


def choose_scorer(checkpoint: Checkpoint, name: str | None = None) -> ScorerEntry:
    """Return the scorer by its name, or the first that a checkpoint of this kind can be used with.

    A scorer that is named is taken whatever the architecture says: loading the checkpoint finds
    out whether it holds the head.

    Raises:
        UsageError: there is no such scorer, or none for such a checkpoint.
    """
    if name is not None:
        return SCORERS.get(name)
    for entry in SCORERS:
        if entry.needs and entry.needs in checkpoint.capabilities:
            return entry
    raise UsageError(
        f"{checkpoint.id} is a {checkpoint.architecture}, which none of the scorers reads "
        f"({', '.join(entry.label for entry in SCORERS)}). {_remedy(checkpoint)}"
    )


def _remedy(checkpoint: Checkpoint) -> str:
    if checkpoint.id == NO_MODEL:
        return "Without a model, name with --scorer one that needs none."
    if not checkpoint.capabilities & Capability.HIDDEN_STATES:
        return "Encoder-decoder models are not supported."
    return (
        "If it is an encoder, fine-tune it first with --train N; if it has one of these heads "
        "after all, say which with --scorer."
    )
