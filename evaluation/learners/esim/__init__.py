"""ESIM over fixed word vectors: a baseline without a pre-trained language model.

Chen et al. 2017, "Enhanced LSTM for Natural Language Inference", as Talmor et al. 2020 (oLMpics)
and Richardson and Sabharwal 2020 use it for questions with choices: one score for each pair of
question and choice, with a softmax over the choices of a row.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from pydantic import Field

from evaluation.learners.base import ModelLearner, Training, made_by_learner
from evaluation.learners.options import TrainingOptions
from evaluation.learners.vectors import VectorsOptions, vectors_content
from evaluation.models.capabilities import Capability
from evaluation.scorers.base import ReadyScorer, ScorerEntry
from kbprobe.format.setups import QUESTION

LEARNING_RATE = 1e-3
"""The default. Chen et al. 2017, section 5.1, take 4e-4 for 550,000 rows and 300 units; a probe has
few rows, and so few steps."""


class EsimOptions(TrainingOptions, VectorsOptions):
    """How ESIM is built and trained."""

    epochs: int = Field(20, ge=1, description="Passes over the rows; 20 by default for esim.")
    hidden_units: int = Field(50, ge=1, description="Units of each LSTM, per direction.")
    dropout: float = Field(0.5, ge=0, lt=1, description="Dropout rate during training.")


def _fit(training: Training) -> AbstractContextManager[ReadyScorer]:
    from evaluation.learners.esim.fitting import fitted

    return fitted(training)


SCORER = ScorerEntry(
    name="esim",
    label="ESIM",
    version=1,
    needs=Capability.NOTHING,
    make=made_by_learner,
    setups=(QUESTION,),
)
"""The scorer of a trained ESIM: the logit of each choice."""

ESIM = ModelLearner(
    name="esim",
    label="ESIM",
    version=1,
    needs=Capability.NOTHING,
    scorer=SCORER,
    learning_rate=LEARNING_RATE,
    fit=_fit,
    options=EsimOptions,
    setups=(QUESTION,),
    content=vectors_content,
)
