"""The learner interface: a learner is fitted on items of the train split and scores others.

A :class:`LearnerEntry` declares it. There are two kinds: a :class:`ModelLearner` trains a model,
one run at a time; a :class:`HeadLearner` trains small heads on vectors that never change, those
of many runs side by side. The number of rows to fit on, their choice and the seed
are options of the run (:class:`evaluation.runs.spec.RunSpec`), the same for all learners.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
)

from evaluation.models.capabilities import Capability
from evaluation.options import key_and_value
from evaluation.scorers.entry import ScorerEntry, ScorerInputs
from kbprobe.errors import KbprobeError, did_you_mean
from kbprobe.format.setups import SCORED_SETUPS
from kbprobe.options import RARE, REPEATED, Metavar, Options, explain_all, parsed

if TYPE_CHECKING:
    from evaluation.items.types import Item
    from evaluation.models.handle import ModelHandle
    from evaluation.results.metrics import Scores
    from evaluation.scorers.base import ReadyScorer, Scorer
    from evaluation.workers import Workers
    from kbprobe.terminal.progress import Progress

FINETUNED = "finetuned"
"""The folder of trained models of interrupted runs, in kbprobe's cache."""


@dataclass(frozen=True)
class Training:
    """The inputs for training a model.

    Attributes:
        model: the checkpoint, not yet loaded.
        items: the rows to fit on, drawn from the train split
            (:func:`evaluation.items.sampling.draw_items`).
        seed: the seed of everything else that the learner draws.
        workers: the processes that share the run; all of them get the scorer.
        first: rows to fit on before the others: once for all draws of these.
        first_seed: the seed of what is drawn there.
    """

    model: ModelHandle
    items: Sequence[Item]
    seed: int
    options: Any
    workers: Workers
    progress: Progress
    first: Sequence[Item] = ()
    first_seed: int = 0


@dataclass(frozen=True)
class HeadFitting:
    """One head to train, and what it is to score.

    Attributes:
        train: the rows of the train split; fittings of one split hold the same sequence.
        order: their indices in the order of the draw, that of ``draw_items``.
        count: how many of them, from the first, the head is fitted on.
        scored: the rows to score.
        seed: of everything that the learner draws.
        options: the learner's own, with a learning rate.
    """

    train: Sequence[Item]
    order: Sequence[int]
    count: int
    scored: Sequence[Item]
    seed: int
    options: Any


@dataclass(frozen=True)
class HeadTraining:
    """Heads to train side by side: of one learner on one model, in any number of runs.

    Attributes:
        model: the checkpoint, not yet loaded.
        folder: where vectors are kept.
        workers: the processes that share the work; the first of them trains.
    """

    model: ModelHandle
    fittings: Sequence[HeadFitting]
    folder: Path
    workers: Workers
    progress: Progress


@dataclass(frozen=True, kw_only=True)
class LearnerEntry:
    """Declares a learner: what the registry, the command line and the score cache need to know.

    Attributes:
        name: as in results and on the command line.
        label: its name in the help of its options: ``fine-tuning``.
        needs: what a model must be able to do.
        scorer: the scorer that uses the fitted model.
        version: increased whenever what is learnt may change; part of the key of cached scores.
        learning_rate: the default peak learning rate; None if it has no such option.
        options: its options. A field declared with ``exclude=True`` has no influence on scores
            and names something to write, so that it belongs to a single run.
        setups: the setups of items on which it can be fitted.
        content: what else its scores depend on, with these options, such as the digest of word
            vectors: part of their key, and named in results.
    """

    name: str
    label: str
    needs: Capability
    scorer: ScorerEntry
    version: int = 1
    learning_rate: float | None = None
    options: type[Options] = Options
    setups: tuple[str, ...] = SCORED_SETUPS
    content: Callable[[Any], Mapping[str, str]] = lambda _options: {}

    def takes(self, setup: str) -> bool:
        """Return whether it is fitted on rows of a setup."""
        return setup in self.setups


@dataclass(frozen=True, kw_only=True)
class ModelLearner(LearnerEntry):
    """A learner that trains a model, which is then scored like other models.

    Attributes:
        fit: fits it. The scorer is valid within the context, which may clean up when it ends
            well. Import torch and transformers in it, not at the top of the file.
        wanted: whether, with these options, it is to be fitted even where the scores are known:
            because something is to be kept that is not there yet.
    """

    fit: Callable[[Training], AbstractContextManager[ReadyScorer]]
    wanted: Callable[[Any], bool] = lambda _options: False


@dataclass(frozen=True, kw_only=True)
class HeadLearner(LearnerEntry):
    """A learner of heads on vectors that do not change while they are trained.

    Attributes:
        fit: trains the heads of many runs, and yields the number of a fitting with the scores of
            its rows, in whatever order they are ready. Import torch and transformers in it, not
            at the top of the file.
    """

    fit: Callable[[HeadTraining], Iterator[tuple[int, Scores]]]


def made_by_learner(_: ScorerInputs) -> Scorer:
    """Replace ``make`` in the entry of a scorer that only a learner can make.

    Raises:
        KbprobeError: always.
    """
    raise KbprobeError("this scorer is made by a learner: name one with --learner and --train N")


Beta = Annotated[float, Field(ge=0, lt=1)]


class Settings(BaseModel):
    """Settings of training that are rarely changed: the keys of ``--training``.

    Defaults are those of oLMpics (AdamW, weight decay 0.1, betas (0.9, 0.98), 4 epochs,
    effective batch 16, slanted triangular learning rate with 6% warm-up). Clipping gradients at
    norm 1 and excluding biases and norms from weight decay follow BERT.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    train_batch: int = Field(16, ge=1, description="Rows per step, with all their choices.")
    weight_decay: float = Field(
        0.1, ge=0, description="Weight decay of matrices; biases and norms have none."
    )
    betas: tuple[Beta, Beta] = Field((0.9, 0.98), description="Betas of AdamW.")
    warmup: float = Field(
        0.06,
        ge=0,
        lt=1,
        description="Share of the steps that are warm-up; if schedule is constant, of the steps of "
        "one epoch.",
    )
    schedule: Literal["slanted", "constant"] = Field(
        "slanted",
        description="How the learning rate changes: slanted (triangular: it falls from its peak "
        "until the last step), or constant, so that a longer training continues a shorter one.",
    )
    max_grad_norm: float = Field(1.0, gt=0, description="Clip gradients to this norm.")
    hidden_units: int | None = Field(
        None,
        ge=1,
        description="Number of units of each LSTM, per direction: networks over word vectors, and "
        "attention, alone.",
    )
    dropout: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="Dropout rate: networks over word vectors, and attention, alone.",
    )


class TrainingOptions(Options):
    """How to train.

    Attributes:
        SETTINGS: the learner's defaults of what ``training`` changes; None for what it lacks.
    """

    SETTINGS: ClassVar[Settings] = Settings()

    learning_rate: float | None = Field(
        None,
        gt=0,
        description="Peak learning rate; by default that of the learner.",
    )
    epochs: int = Field(
        4, ge=1, description="Passes over the rows; for pooled and over word vectors 20."
    )
    training: Annotated[dict[str, Any], RARE, Metavar(REPEATED)] = Field(
        {},
        description="Rarely changed settings of training; may be given several times. Keys: "
        f"{', '.join(Settings.model_fields)}.",
    )

    @field_validator("training", mode="before")
    @classmethod
    def _checked(cls, given: Any) -> dict[str, Any]:
        pairs = given.items() if isinstance(given, Mapping) else map(key_and_value, _texts(given))
        values: dict[str, Any] = {}
        for key, value in pairs:
            if key not in Settings.model_fields:
                raise ValueError(
                    f"no setting {key!r}.{did_you_mean(str(key), Settings.model_fields)} There "
                    f"are: {', '.join(Settings.model_fields)}"
                )
            if value is None:
                raise ValueError(f"{key}: must have a value")
            if key in values:
                raise ValueError(f"{key}: is given twice")
            values[key] = value
        try:
            values = {k: parsed(Settings.model_fields[k], value) for k, value in values.items()}
            return Settings.model_validate(values).model_dump(include=set(values))
        except ValidationError as error:
            raise ValueError(explain_all(error.errors())) from None

    @property
    def settings(self) -> Settings:
        """All settings: those given, and the learner's defaults."""
        return self.SETTINGS.model_copy(update=self.training)

    @model_serializer(mode="wrap")
    def _flat(
        self, others: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        """Return settings beside the other options, as results record them; or what was given."""
        values: dict[str, Any] = others(self)
        if info.exclude_unset or info.exclude_defaults:
            return values
        del values["training"]
        return values | self.settings.model_dump(mode="json", exclude_none=True)


def has_setting(model: type[Options], key: str) -> bool:
    """Return whether learners with these options have a setting of training."""
    return issubclass(model, TrainingOptions) and getattr(model.SETTINGS, key) is not None


def flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options given for a run with the settings of training beside the others."""
    others = {name: value for name, value in options.items() if name != "training"}
    return others | dict(options.get("training", {}))


def _texts(given: Any) -> Sequence[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ValueError("must be names with values")
    return texts


def rate_share(options: TrainingOptions, step: int, steps: int) -> float:
    """Return the share of the peak learning rate at a step (from 0) of all ``steps``."""
    settings = options.settings
    if settings.schedule == "slanted":
        return slanted_triangle(step, steps, settings.warmup)
    rise = math.floor(steps // options.epochs * settings.warmup)
    return min(1.0, (step + 1) / (rise + 1))


def slanted_triangle(step: int, steps: int, warmup: float) -> float:
    """Return the share of the peak learning rate at a step (from 0): fast rise, slow decay.

    Howard and Ruder 2018 (ULMFiT), section 3.2, with their ratio of 32 between peak and minimum.

    >>> [round(slanted_triangle(step, 10, 0.2), 2) for step in (0, 1, 2, 6, 9)]
    [0.03, 0.52, 1.0, 0.52, 0.15]
    """
    ratio = 32
    peak = math.floor(steps * warmup)
    height = step / peak if step < peak else 1 - (step - peak) / (steps - peak)
    return (1 + height * (ratio - 1)) / ratio
