"""Learners that train heads on fixed vectors: linear, mlp, frozen, pooled, and MLM-Baseline.

[O], section 3.1: "linear" trains only the candidates' output embeddings and biases, "mlp" the whole
head of a masked LM. Output embeddings are often tied to the input embeddings: here they are
copied, so that training them leaves the encoder as it is. The published configuration gives no
learning rate above 0 for these two: ours are our own.

[F], "pooled": a small classifier of a text's labels, on the maximum over its tokens' vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from evaluation.items.types import LABELLED_SETUPS, SCORED_SETUPS
from evaluation.learners.base import (
    Epochs,
    HeadLearner,
    TrainingOptions,
    WeightDecay,
    made_by_learner,
)
from evaluation.models.capabilities import Capability
from evaluation.registry import imported
from evaluation.scorers.base import ScorerEntry
from evaluation.vectors.options import VectorsOptions, vectors_content
from kbprobe.format.setups import CLOZE
from kbprobe.options import RARE


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


def _learner(
    name: str,
    fit: str,
    needs: Capability,
    learning_rate: float,
    options: type[HeadOptions] = HeadOptions,
    setups: tuple[str, ...] = SCORED_SETUPS,
    content: Callable[[Any], Mapping[str, str]] = lambda _options: {},
) -> HeadLearner:
    """Declare a learner of heads, which a function of this package trains."""
    return HeadLearner(
        name=name,
        label="heads",
        version=1,
        needs=needs,
        scorer=HEAD,
        learning_rate=learning_rate,
        fit=imported(f"evaluation.frozen.{fit}"),
        options=options,
        setups=setups,
        content=content,
    )


LINEAR = _learner("linear", "plans:fit_linear", Capability.HIDDEN_STATES, 1e-3, setups=(CLOZE,))
MLP = _learner("mlp", "plans:fit_mlp", Capability.MASKED_SCORES, 1e-4, setups=(CLOZE,))
FROZEN = _learner("frozen", "plans:fit_frozen", Capability.HIDDEN_STATES, 1e-3)
POOLED = _learner(
    "pooled",
    "plans:fit_pooled",
    Capability.HIDDEN_STATES,
    1e-3,
    PooledOptions,
    LABELLED_SETUPS,
)
MLM_BASELINE = _learner(
    "mlm_baseline",
    "plans:fit_mlm_baseline",
    Capability.NOTHING,
    4e-4,  # as published
    BaselineOptions,
    (CLOZE,),
    vectors_content,
)
