"""Learners that train heads on fixed vectors: linear, mlp, frozen, pooled, and MLM-Baseline.

[O], section 3.1: "linear" trains only the candidates' output embeddings and biases, "mlp" the whole
head of a masked LM. Output embeddings are often tied to the input embeddings: here they are
copied, so that training them leaves the encoder as it is. The published configuration gives no
learning rate above 0 for these two: ours are our own.

[F], "pooled": a small classifier of a text's labels, on the maximum over its tokens' vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from evaluation.items.types import LABELLED_SETUPS, SCORED_SETUPS
from evaluation.learners.base import (
    Epochs,
    HeadLearner,
    HeadTraining,
    TrainingOptions,
    WeightDecay,
    made_by_learner,
)
from evaluation.models.capabilities import Capability
from evaluation.scorers.base import ScorerEntry
from evaluation.vectors.options import VectorsOptions, vectors_content, word_vectors
from kbprobe.errors import UsageError
from kbprobe.format.setups import CLOZE
from kbprobe.options import RARE

if TYPE_CHECKING:
    from evaluation.results.metrics import Scores


class HeadOptions(TrainingOptions):
    """How heads on fixed vectors are trained."""

    next_size: Annotated[int | None, RARE] = Field(
        None,
        ge=1,
        description="Measure the code length of the answers of the rows drawn next, up to this "
        "many rows in total, those of --train included.",
    )


class PooledOptions(HeadOptions):
    """How classifiers on pooled vectors are trained."""

    epochs: Epochs = 20


class BaselineOptions(HeadOptions, VectorsOptions):
    """How MLM-Baseline is trained: with Adam, as published, and so without weight decay."""

    weight_decay: WeightDecay = 0.0


HEAD = ScorerEntry(
    name="head",
    label="head on a frozen model",
    version=1,
    needs=Capability.NOTHING,
    make=made_by_learner,
    setups=(*SCORED_SETUPS, *LABELLED_SETUPS),
)
"""The scorer of heads: logits of choices."""


def _fit_linear(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    from evaluation.frozen.plans import CandidatePlan, mask_body
    from evaluation.frozen.readers import ANSWER_VECTOR, MASK_VECTOR
    from evaluation.frozen.training import fit_side_by_side

    checkpoint = training.model.checkpoint
    if Capability.MASKED_SCORES in checkpoint.capabilities:
        plan = CandidatePlan(training, MASK_VECTOR, mask_body)
    elif Capability.CAUSAL_SCORES in checkpoint.capabilities:
        plan = CandidatePlan(training, ANSWER_VECTOR)
    else:
        raise UsageError(
            f"--learner linear trains a language model's output embeddings, but {checkpoint.id} "
            f"({checkpoint.architecture}) has none. Use --learner frozen."
        )
    return fit_side_by_side(training, plan)


def _fit_mlp(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    from evaluation.frozen.plans import CandidatePlan, mask_body
    from evaluation.frozen.readers import MASK_VECTOR
    from evaluation.frozen.training import fit_side_by_side

    plan = CandidatePlan(training, MASK_VECTOR, mask_body, trained=True)
    return fit_side_by_side(training, plan)


def _fit_frozen(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    from evaluation.frozen.plans import UnitPlan
    from evaluation.frozen.readers import LAST_VECTOR, PAIR_VECTOR
    from evaluation.frozen.training import fit_side_by_side

    causal = Capability.CAUSAL_SCORES in training.model.checkpoint.capabilities
    kind = LAST_VECTOR if causal else PAIR_VECTOR
    return fit_side_by_side(training, UnitPlan(training, kind))


def _fit_pooled(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    from evaluation.frozen.plans import LabelPlan
    from evaluation.frozen.readers import MAX_VECTOR
    from evaluation.frozen.training import fit_side_by_side

    return fit_side_by_side(training, LabelPlan(training, MAX_VECTOR))


def _fit_mlm_baseline(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    from evaluation.frozen.training import fit_side_by_side
    from evaluation.frozen.words import WordPlan

    words = word_vectors(training.fittings[0].options)
    return fit_side_by_side(training, WordPlan(training, words))


LINEAR = HeadLearner(
    name="linear",
    label="heads",
    version=1,
    needs=Capability.HIDDEN_STATES,
    scorer=HEAD,
    learning_rate=1e-3,
    fit=_fit_linear,
    options=HeadOptions,
    setups=(CLOZE,),
)
MLP = HeadLearner(
    name="mlp",
    label="heads",
    version=1,
    needs=Capability.MASKED_SCORES,
    scorer=HEAD,
    learning_rate=1e-4,
    fit=_fit_mlp,
    options=HeadOptions,
    setups=(CLOZE,),
)
FROZEN = HeadLearner(
    name="frozen",
    label="heads",
    version=1,
    needs=Capability.HIDDEN_STATES,
    scorer=HEAD,
    learning_rate=1e-3,
    fit=_fit_frozen,
    options=HeadOptions,
)
POOLED = HeadLearner(
    name="pooled",
    label="heads",
    version=1,
    needs=Capability.HIDDEN_STATES,
    scorer=HEAD,
    learning_rate=1e-3,
    fit=_fit_pooled,
    options=PooledOptions,
    setups=LABELLED_SETUPS,
)
MLM_BASELINE = HeadLearner(
    name="mlm_baseline",
    label="heads",
    version=1,
    needs=Capability.NOTHING,
    scorer=HEAD,
    learning_rate=4e-4,  # as published
    fit=_fit_mlm_baseline,
    options=BaselineOptions,
    setups=(CLOZE,),
    content=vectors_content,
)
