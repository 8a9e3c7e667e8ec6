"""The built-in learners: their options, and what they need of a model.

Nothing here imports torch: the code is imported when a learner is fitted.

oLMpics (Talmor et al. 2020, section 3.1) trains masked LMs whole on the cross-entropy of the
candidates at the mask (``full_mlm``), and multiple-choice networks on that of the choices
(``full``). "linear" trains only the candidates' output embeddings and biases, "mlp" the whole head
of a masked LM. Output embeddings are often tied to the input embeddings: here they are copied, so
that training them leaves the encoder as it is. The published configuration gives no learning rate
above 0 for these two: ours are our own. Kim et al. 2019 fine-tune encoders with a classifier of
labels (``full_labels``); "pooled" is a small classifier of a text's labels, on the maximum over its
tokens' vectors, and "attention" a network over the states of both texts of a pair, which they train
on MNLI.

Networks over fixed word vectors are baselines without a pre-trained language model. ESIM reads
question and choice. Partial-input models see less: choices alone (``choice_only``), choices beside
each other (``choice_to_choice``), or a question and a choice as one vector each
(``question_to_choice``). All have one score for each choice of a row, and are trained with a
softmax over them, as Mihaylov et al. 2018 (OpenBookQA) and Richardson and Sabharwal 2020 do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from evaluation.learners.base import (
    HeadLearner,
    ModelLearner,
    Settings,
    Training,
    TrainingOptions,
    made_by_learner,
)
from evaluation.models.capabilities import Capability
from evaluation.registry import imported
from evaluation.scorers.classifier import CLASSIFIER, ClassifierOptions
from evaluation.scorers.entries import CANDIDATES, MULTIPLE_CHOICE
from evaluation.scorers.entry import ScorerEntry
from evaluation.vectors.options import VectorsOption, vectors_content
from kbprobe.format.setups import CLOZE, LABELLED_SETUPS, NLI, QUESTION, SCORED_SETUPS
from kbprobe.options import RARE, Metavar, named

if TYPE_CHECKING:
    from evaluation.scorers.base import ReadyScorer


def _scorer(name: str, label: str, setups: tuple[str, ...], version: int = 1) -> ScorerEntry:
    """Declare the scorer of a learner, which alone can make it."""
    return ScorerEntry(
        name=name,
        label=label,
        version=version,
        needs=Capability.NOTHING,
        make=made_by_learner,
        setups=setups,
    )


# Fine-tuning of whole networks

RECORD = "finetuning.json"
"""The file in a kept checkpoint that says how it was trained."""

LEARNING_RATE = 2e-5
"""The default, since no single rate is published: the middle of WordNetQA's 1e-5, 2e-5, 5e-5."""


class FinetuneOptions(TrainingOptions):
    """How to fine-tune a whole network."""

    facts_first: Annotated[bool, RARE] = Field(
        False,
        description="Train on all single facts that the probe's questions combine, those of every "
        "split, before the rows.",
    )
    keep_checkpoint: Annotated[str | None, Metavar("DIR")] = Field(
        None, exclude=True, description="Save the trained checkpoint in this folder."
    )


class LabelsOptions(FinetuneOptions, ClassifierOptions):
    """How to fine-tune a network that gives labels, and what the classes of its head mean."""


def _not_kept_yet(options: FinetuneOptions) -> bool:
    folder = options.keep_checkpoint
    return folder is not None and not (Path(folder) / RECORD).is_file()


def _finetuned(
    name: str,
    version: int,
    needs: Capability,
    scorer: ScorerEntry,
    setups: tuple[str, ...] = SCORED_SETUPS,
    options: type[FinetuneOptions] = FinetuneOptions,
) -> ModelLearner:
    """Declare a learner of one of the networks (:mod:`evaluation.learners.finetune.training`)."""
    return ModelLearner(
        name=name,
        label="fine-tuning",
        version=version,
        needs=needs | Capability.TRAINABLE,
        scorer=scorer,
        learning_rate=LEARNING_RATE,
        fit=imported("evaluation.learners.finetune.kept:finetuned", name),
        options=options,
        wanted=_not_kept_yet,
        setups=setups,
    )


FULL = _finetuned("full", 2, Capability.NOTHING, MULTIPLE_CHOICE)
FULL_MLM = _finetuned("full_mlm", 1, Capability.MASKED_SCORES, CANDIDATES, (CLOZE,))
FULL_LABELS = _finetuned(
    "full_labels", 1, Capability.NOTHING, CLASSIFIER, LABELLED_SETUPS, LabelsOptions
)


# Heads on fixed vectors


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

    DEFAULTS = named(epochs=20)


class BaselineOptions(HeadOptions, VectorsOption):
    """How MLM-Baseline is trained: with Adam, as published, and so without weight decay."""

    SETTINGS = Settings(weight_decay=0.0)


HEAD = _scorer("head", "head on a frozen model", (*SCORED_SETUPS, *LABELLED_SETUPS))
"""The scorer of heads: logits of choices."""


def _head(
    name: str,
    needs: Capability,
    learning_rate: float,
    setups: tuple[str, ...] = SCORED_SETUPS,
    options: type[HeadOptions] = HeadOptions,
) -> HeadLearner:
    """Declare a learner of heads (:mod:`evaluation.frozen.plans`)."""
    return HeadLearner(
        name=name,
        label="heads",
        needs=needs,
        scorer=HEAD,
        learning_rate=learning_rate,
        fit=imported(f"evaluation.frozen.plans:fit_{name}"),
        options=options,
        setups=setups,
        content=vectors_content if issubclass(options, VectorsOption) else lambda _options: {},
    )


LINEAR = _head("linear", Capability.HIDDEN_STATES, 1e-3, (CLOZE,))
MLP = _head("mlp", Capability.MASKED_SCORES, 1e-4, (CLOZE,))
FROZEN = _head("frozen", Capability.HIDDEN_STATES, 1e-3)
POOLED = _head("pooled", Capability.HIDDEN_STATES, 1e-3, LABELLED_SETUPS, PooledOptions)
MLM_BASELINE = _head(
    "mlm_baseline",
    Capability.NOTHING,
    4e-4,  # as published
    (CLOZE,),
    BaselineOptions,
)


# Without a model


@contextmanager
def _majority(training: Training) -> Iterator[ReadyScorer]:
    from evaluation.scorers.base import ReadyScorer
    from evaluation.scorers.model_free import MajorityScorer

    yield ReadyScorer(MajorityScorer(training.items, training.seed), 0)


MAJORITY = ModelLearner(
    name="majority",
    label="majority",
    needs=Capability.NOTHING,
    scorer=_scorer("majority", "majority", HEAD.setups),
    fit=_majority,
    setups=HEAD.setups,
)

WORDS_LEARNING_RATE = 1e-3
"""The default. Chen et al. 2017, section 5.1, take 4e-4 for 550,000 rows and 300 units; a probe has
few rows, and so few steps."""

PARTIAL_LEARNING_RATE = 5e-3
"""The default of the partial-input models, which are smaller. The defaults were
chosen on wordnet_definitions, for question_to_choice."""


class NetworkOptions(TrainingOptions):
    """How a network with LSTMs is built and trained."""

    SETTINGS = Settings(hidden_units=128, dropout=0.2)

    @property
    def network(self) -> tuple[int, float]:
        """The number of units of each LSTM, and the dropout rate."""
        settings = self.settings
        assert settings.hidden_units is not None
        assert settings.dropout is not None
        return settings.hidden_units, settings.dropout


class WordsOptions(NetworkOptions, VectorsOption):
    """How a network over word vectors is built and trained."""

    DEFAULTS = named(epochs=20)
    SETTINGS = Settings(hidden_units=50, dropout=0.5)


class PartialOptions(WordsOptions):
    """How a partial-input model is built and trained."""

    SETTINGS = Settings(train_batch=32, hidden_units=50, dropout=0.2)


def _network(
    name: str,
    label: str,
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
        scorer=_scorer(name, label, (QUESTION,), version),
        learning_rate=learning_rate,
        fit=imported("evaluation.learners.words.fitting:fitted", name),
        options=options,
        setups=(QUESTION,),
        content=vectors_content,
    )


ATTENTION_LEARNING_RATE = 1e-3

ATTENTION = ModelLearner(
    name="attention",
    label="attention",
    needs=Capability.HIDDEN_STATES,
    scorer=_scorer("attention", "attention over a frozen encoder", (NLI,)),
    learning_rate=ATTENTION_LEARNING_RATE,
    fit=imported("evaluation.learners.attention:fitted"),
    options=NetworkOptions,
    setups=(NLI,),
)
"""A network over the states of premise and hypothesis (:mod:`evaluation.learners.attention`)."""


ENTRIES = (
    FULL,
    FULL_MLM,
    FULL_LABELS,
    LINEAR,
    MLP,
    FROZEN,
    POOLED,
    ATTENTION,
    MAJORITY,
    _network("choice_only", "choice-only network"),
    _network("choice_to_choice", "choice-to-choice network"),
    _network("question_to_choice", "question-to-choice network"),
    _network("esim", "ESIM", 2, WORDS_LEARNING_RATE, WordsOptions),
    MLM_BASELINE,
)
"""All of them. A checkpoint is fitted with the first whose needs it meets, unless one is named."""
