"""The registered learners, and which of them a checkpoint is fitted with."""

from __future__ import annotations

from evaluation.learners.base import LearnerEntry
from evaluation.learners.entries import ENTRIES
from evaluation.models.checkpoint import Checkpoint, refuse_idle_model
from evaluation.registry import Registry
from kbprobe.errors import UsageError

LEARNERS = Registry[LearnerEntry](
    "learner",
    "kbprobe.learners",
    LearnerEntry,
    {entry.name: entry for entry in ENTRIES},
)


def choose_learner(checkpoint: Checkpoint, name: str | None, scorer: str | None) -> LearnerEntry:
    """Return the learner by its name, or the first that a checkpoint of this kind can be used with.

    A learner that needs no model is taken by its name alone, and without a model.

    Raises:
        UsageError: there is no such learner, the checkpoint lacks what it needs, or it reads no
            model and there is one; or what it fits is not scored by the scorer that was asked for.
    """
    named = [one for one in LEARNERS if one.needs] if name is None else [LEARNERS.get(name)]
    fitting = [entry for entry in named if entry.needs in checkpoint.capabilities]
    if not fitting:
        what = f"--learner {name}" if name else "--train"
        raise UsageError(
            f"{what}: {checkpoint.id} ({checkpoint.architecture}) is not a checkpoint that it can "
            "be fitted on. Leave it out, or name another checkpoint."
        )
    if not fitting[0].needs:
        refuse_idle_model(checkpoint.id, f"--learner {name} --train N")
    if scorer is not None and scorer != fitting[0].scorer.name:
        raise UsageError(
            f"--train with {fitting[0].label} makes a {fitting[0].scorer.name} model; it does not "
            f"go with --scorer {scorer}"
        )
    return fitting[0]
