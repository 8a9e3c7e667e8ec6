"""Networks over fixed word vectors: baselines without a pre-trained language model.

ESIM reads question and choice. Partial-input models see less: choices alone (``choice_only``),
choices beside each other (``choice_to_choice``), or a question and a choice as one vector each
(``question_to_choice``). All have one score for each choice of a row, and are trained with a
softmax over them, as Mihaylov et al. 2018 (OpenBookQA) and Richardson and Sabharwal 2020 do.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Annotated, TypeAlias

from pydantic import Field

from evaluation.learners.base import (
    Epochs,
    ModelLearner,
    TrainBatch,
    Training,
    TrainingOptions,
    made_by_learner,
)
from evaluation.models.capabilities import Capability
from evaluation.scorers.base import ReadyScorer, ScorerEntry
from evaluation.vectors.options import VectorsOptions, vectors_content
from kbprobe.format.setups import QUESTION
from kbprobe.options import RARE

LEARNING_RATE = 1e-3
"""The default. Chen et al. 2017, section 5.1, take 4e-4 for 550,000 rows and 300 units; a probe has
few rows, and so few steps."""

PARTIAL_LEARNING_RATE = 5e-3
"""The default of the partial-input models, which are smaller. The defaults were
chosen on wordnet_definitions, for question_to_choice."""

Dropout: TypeAlias = Annotated[
    float, RARE, Field(ge=0, lt=1, description="Dropout rate during training.")
]


class WordsOptions(TrainingOptions, VectorsOptions):
    """How a network over word vectors is built and trained."""

    epochs: Epochs = 20
    hidden_units: Annotated[int, RARE] = Field(
        50, ge=1, description="Number of units of each LSTM, per direction."
    )
    dropout: Dropout = 0.5


class PartialOptions(WordsOptions):
    """How a partial-input model is built and trained."""

    train_batch: TrainBatch = 32
    dropout: Dropout = 0.2


def _fit(training: Training, name: str, network: str) -> AbstractContextManager[ReadyScorer]:
    from evaluation.learners.words import networks
    from evaluation.learners.words.fitting import fitted

    return fitted(training, name, getattr(networks, network))


def _learner(
    name: str,
    label: str,
    network: str,
    version: int = 1,
    learning_rate: float = PARTIAL_LEARNING_RATE,
    options: type[WordsOptions] = PartialOptions,
) -> ModelLearner:
    """Declare a learner of one of the networks (:mod:`evaluation.learners.words.networks`)."""
    return ModelLearner(
        name=name,
        label=label,
        version=version,
        needs=Capability.NOTHING,
        scorer=ScorerEntry(
            name=name,
            label=label,
            version=version,
            needs=Capability.NOTHING,
            make=made_by_learner,
            setups=(QUESTION,),
        ),
        learning_rate=learning_rate,
        fit=partial(_fit, name=name, network=network),
        options=options,
        setups=(QUESTION,),
        content=vectors_content,
    )


ESIM = _learner("esim", "ESIM", "Esim", 2, LEARNING_RATE, WordsOptions)
CHOICE_ONLY = _learner("choice_only", "choice-only network", "ChoiceOnly")
CHOICE_TO_CHOICE = _learner("choice_to_choice", "choice-to-choice network", "ChoiceToChoice")
QUESTION_TO_CHOICE = _learner(
    "question_to_choice", "question-to-choice network", "QuestionToChoice"
)
