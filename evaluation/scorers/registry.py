"""The registered scorers, and the choice of a scorer for a checkpoint."""

from __future__ import annotations

from evaluation.models.capabilities import Capability, heads_that_give
from evaluation.models.checkpoint import NO_MODEL, Checkpoint, refuse_idle_model
from evaluation.registry import Registry
from evaluation.scorers.entries import ENTRIES
from evaluation.scorers.entry import ScorerEntry
from kbprobe.errors import UsageError

SCORERS = Registry[ScorerEntry](
    "scorer",
    "kbprobe.scorers",
    ScorerEntry,
    {entry.name: entry for entry in ENTRIES},
)


def choose_scorer(checkpoint: Checkpoint, name: str | None = None) -> ScorerEntry:
    """Return the scorer of this name, or the first that suits the checkpoint.

    A named scorer is used whatever head the architecture names: loading the checkpoint shows
    whether it contains the right one. Encoder-decoder models have their own scorers.

    Raises:
        UsageError: there is no such scorer, or none for such a checkpoint; or the scorer uses no
            model, and one was given.
    """
    if name is not None:
        entry = SCORERS.get(name)
        if not entry.needs:
            refuse_idle_model(checkpoint.id, f"--scorer {name}")
        _refuse_other_place(entry, checkpoint)
        here, both = checkpoint.read_config is not None, checkpoint.encoder_decoder
        if here and not heads_that_give(entry.needs, both):
            is_or_not = "an" if both else "not an"
            raise UsageError(
                f"--scorer {name}: {checkpoint.id} ({checkpoint.architecture}) is {is_or_not} "
                f"encoder-decoder model, which a {entry.label} scorer does not read. Name another "
                "--scorer, or leave it out."
            )
        return entry
    found = suitable_scorer(checkpoint.capabilities)
    if found is None:
        raise UsageError(_without_scorer(checkpoint))
    return found


def suitable_scorer(able: Capability) -> ScorerEntry | None:
    """Return the first scorer whose needs a model meets without being told so; None: there is none.

    Every network has vectors, and few are trained so that similar texts have similar ones.
    """
    suitable = (e for e in SCORERS if e.needs & ~Capability.HIDDEN_STATES and e.needs in able)
    return next(suitable, None)


def _refuse_other_place(entry: ScorerEntry, checkpoint: Checkpoint) -> None:
    """Refuse a local scorer for a model behind an endpoint, and the reverse."""
    anywhere = Capability.ENDPOINT_SCORES | Capability.CHAT_ANSWERS
    served = checkpoint.capabilities & anywhere
    if entry.needs & anywhere and not entry.needs & served:
        chat = " with --chat" if Capability.CHAT_ANSWERS in entry.needs else ", without --chat"
        raise UsageError(
            f"--scorer {entry.name} asks an endpoint{chat}: give its address with --endpoint, such "
            "as --endpoint http://localhost:8000/v1"
        )
    if served and entry.needs and entry.needs not in checkpoint.capabilities:
        names = [one.name for one in SCORERS if one.needs & served]
        raise UsageError(
            f"--scorer {entry.name} needs the model itself, and {checkpoint.id} is behind an "
            f"endpoint: use --scorer {' or '.join(names)}, or leave --endpoint out"
        )


def _without_scorer(checkpoint: Checkpoint) -> str:
    """Return a message on why no scorer suits a checkpoint, and what to do about it."""
    if checkpoint.id == NO_MODEL:
        return "There is no model. Without a model, name with --scorer one that needs none."
    model = f"{checkpoint.id} ({checkpoint.architecture})"
    if not checkpoint.capabilities & Capability.HIDDEN_STATES:
        return (
            f"{model} is an encoder-decoder model without a language-model head. Name its head "
            "with --scorer seq2seq_lm if it has one."
        )
    return (
        f"{model} has no trained head that scores choices. Fine-tune it with --train N, or name "
        "its head with --scorer if it has one. Of a sentence encoder, --scorer embedding compares "
        "the vectors."
    )
