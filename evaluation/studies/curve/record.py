"""The contents of ``curve.json``, and the meaning of each number."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from evaluation.models.checkpoint import NO_MODEL
from evaluation.models.revisions import stem_of
from evaluation.results.types import Estimate, Model
from evaluation.results.words import last_name
from evaluation.studies.base import read_summary
from kbprobe.format.sealed import Sealed

SCHEMA_VERSION = "1.2"
PROBE = "probe"
RANDOM_LABELS = "random_labels"
"""Renderings other than the controls, which are named after their configs."""


class Point(Model):
    """A learner fitted with one number of training rows."""

    size: int = Field(description="Rows trained on.")
    draws: list[float] = Field(
        description="Accuracy after training on each draw of rows, in the order of their seeds."
    )
    accuracy: Estimate = Field(
        description="Mean over the draws; the interval resamples test clusters and draws."
    )
    train_loss: float | None = Field(
        description="Mean cross-entropy in the last epoch, nats per row; null where not reported."
    )


class Maximum(Model):
    """MAX in oLMpics: the highest mean accuracy over the sizes."""

    size: int = Field(description="The size at which it is reached; the smallest if tied.")
    accuracy: Estimate = Field(
        description="The mean accuracy there. The maximum of noisy means is biased upwards, which "
        "the interval accounts for."
    )


class CodeLength(Model):
    """The online code length of the training answers (Voita and Titov 2020)."""

    rows: int = Field(description="Rows whose answers are coded.")
    draws: int = Field(description="Draws run at all sizes; the numbers are means over them.")
    uniform_bits: float = Field(
        description="Bits of the uniform code: rows times log2 of the number of choices."
    )
    bits: float = Field(
        description="Bits of the online code: the uniform code for the first block, then each "
        "block encoded with the probabilities of the model fitted on all preceding rows."
    )
    compression: float = Field(description="Uniform bits divided by bits; 1: nothing was learnt.")
    compression_deviation: float | None = Field(
        description="Standard deviation of the compression over draws; null for one draw."
    )


class Curve(Model):
    """A learner on one rendering of a probe."""

    rendering: str = Field(
        description="probe (its own wording), a control's config, or random_labels."
    )
    points: list[Point] = Field(description="Accuracy by size, ascending.")
    ws: Estimate = Field(description="Weighted mean of the points' accuracies.")
    maximum: Maximum = Field(description="The highest of the points.")
    code_length: CodeLength | None = Field(
        description="Null unless the learner reports it for all sizes."
    )


class LangSense(Model):
    """How much lower a learner's accuracy is on a control than on the probe."""

    config: str = Field(description="The control's config.")
    value: Estimate = Field(
        description="LangSense as in oLMpics, in points: the weighted mean over sizes of "
        "max(0, accuracy minus control accuracy). It is never negative, so noise alone makes it "
        "positive, which the interval accounts for."
    )
    difference: Estimate = Field(
        description="WS on the probe minus that on the control, in points; may be negative, so its "
        "interval shows whether they differ."
    )


class Selectivity(Model):
    """Accuracy on true answers minus that on random ones, by size (Hewitt and Liang 2019)."""

    size: int = Field(description="Rows trained on.")
    value: Estimate = Field(description="In points.")
    seen: float | None = Field(
        description="Share of the test rows whose random answer can be memorised, since a "
        "training row has the same first argument; null where not reported."
    )


class First(Model):
    """What the model knew from pre-training, and what the first examples teach."""

    size: int = Field(description="The smallest size.")
    before: Estimate | None = Field(
        description="Zero-shot accuracy; null where no scorer applies to the model."
    )
    after: Estimate = Field(description="Accuracy at the smallest size.")
    taught: Estimate = Field(
        description="After minus before, or minus chance where before is null, in points."
    )
    further: Estimate = Field(
        description="Accuracy at the largest size minus that at the smallest, in points."
    )


class LearnerCurves(Model):
    """A learner on a probe, its controls and its random labels."""

    learner: str = Field(description="The learner's name.")
    curves: list[Curve] = Field(description="The curve of the probe itself comes first.")
    first: First = Field(description="What is learnt at the smallest size.")
    lang_sense: list[LangSense] = Field(description="One for each control.")
    selectivity: list[Selectivity] = Field(description="Empty without random labels.")

    @property
    def own(self) -> Curve:
        """The curve of the probe itself."""
        return self.curves[0]

    def curve(self, rendering: str) -> Curve | None:
        """Return the curve of a rendering; None if there is none."""
        return next((one for one in self.curves if one.rendering == rendering), None)


class Baseline(Model):
    """A baseline of the probe's audit."""

    name: str = Field(description="Its name in the audit.")
    accuracy: float = Field(description="Share of the test rows that it answers correctly.")


class ZeroShot(Model):
    """The model without training, on one rendering."""

    rendering: str = Field(description="probe, or a control's config.")
    accuracy: Estimate = Field(description="Share of the scored rows answered correctly.")


class Weight(Model):
    """The weight of a size in WS and LangSense."""

    size: int = Field(description="Rows trained on.")
    weight: float = Field(description="All weights sum to 1.")


class ModelCurves(Model):
    """A model on a probe."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, as it was given.")
    revision: str | None = Field(description="The revision asked for; null: the default one.")
    random_init: int | None = Field(
        description="Index of the randomly initialised model; null: the trained one."
    )
    step: int | None = Field(
        description="The training step, from the revision or folder name; null: none found."
    )
    rows: int = Field(description="Rows evaluated.")
    clusters: int = Field(description="Clusters of these rows.")
    chance: float = Field(description="Mean of 1 / number of choices.")
    baselines: list[Baseline] = Field(description="Baselines of the audit, strongest first.")
    sizes: list[int] = Field(description="Sizes trained on.")
    left_out: list[int] = Field(description="Sizes for which train has too few rows.")
    weights: list[Weight] = Field(description="The weight of each size.")
    weighting: str = Field(description="How the weights were chosen, in words.")
    zero_shot: list[ZeroShot] = Field(description="Empty where zero-shot scoring is impossible.")
    learners: list[LearnerCurves] = Field(min_length=1, description="In the order requested.")
    notes: list[str] = Field(description="Caveats on the numbers.")

    @property
    def is_trained(self) -> bool:
        """Whether these are curves of a trained model, not of a baseline or a random restart."""
        return self.model != NO_MODEL and self.random_init is None

    @property
    def stem(self) -> str:
        """The model without its training step, whether a revision or a folder names it."""
        return self.model if self.revision else stem_of(self.model)

    @property
    def own_zero_shot(self) -> Estimate | None:
        """Zero-shot accuracy on the probe itself; None if there is none."""
        return next((one.accuracy for one in self.zero_shot if one.rendering == PROBE), None)

    @property
    def floor(self) -> tuple[str, float]:
        """Name and accuracy of the strongest model-free baseline, or of chance if higher."""
        best = self.baselines[0] if self.baselines else None
        if best is None or best.accuracy < self.chance:
            return "chance", self.chance
        return best.name, best.accuracy


RENDERINGS = {
    PROBE: "the probe",
    RANDOM_LABELS: "random labels",
    "no_language": "no language",
    "perturbed": "perturbed language",
}
"""Display names of renderings; others are shown by their config."""


def model_name(one: ModelCurves) -> str:
    """Return the name of a model, with its revision or a remark that it has random weights."""
    if one.model == NO_MODEL:
        return "no language model"
    name = last_name(one.model)
    if one.random_init is not None:
        return f"{name}, randomly initialised ({one.random_init + 1})"
    return f"{name} at {one.revision}" if one.revision else name


def rendering_name(rendering: str) -> str:
    """Return a rendering's display name."""
    return RENDERINGS.get(rendering, rendering)


class Spread(Model):
    """Mean and standard deviation over models."""

    mean: float = Field(description="Mean accuracy.")
    deviation: float | None = Field(description="Standard deviation; null with one model.")


class RestartPoint(Spread):
    """The accuracy of randomly initialised models at one size."""

    size: int = Field(description="Rows trained on.")


class Restarts(Model):
    """Randomly initialised models of an architecture, compared with the trained one."""

    probe: str = Field(description="The probe's name.")
    model: str = Field(description="The model, as it was given.")
    learner: str = Field(description="The learner's name.")
    models: int = Field(description="Randomly initialised models.")
    ws: Spread = Field(description="Mean and deviation of their WS.")
    points: list[RestartPoint] = Field(description="By size.")
    trained_ws: Estimate | None = Field(description="WS of the trained model; null: not run.")


class SeriesPoint(Model):
    """One checkpoint of a series."""

    step: int = Field(description="The training step.")
    label: str = Field(description="The revision, or the model's folder.")
    zero_shot: Estimate | None = Field(description="Zero-shot accuracy; null where there is none.")
    first: Estimate = Field(description="Accuracy at the smallest size.")
    ws: Estimate = Field(description="WS.")
    maximum: Estimate = Field(description="MAX.")


class Series(Model):
    """Checkpoints of one model by training step."""

    probe: str = Field(description="The probe's name.")
    model: str = Field(description="The model, without its training step.")
    learner: str = Field(description="The learner's name.")
    chance: float = Field(description="Mean of 1 / number of choices.")
    points: list[SeriesPoint] = Field(description="By step.")


Award = Literal["success", "partial", "none"]


class ControlGap(Model):
    """How much higher a learner's WS is on the probe than on a control."""

    config: str = Field(description="The control's config.")
    difference: Estimate = Field(description="WS minus the control's WS, in points.")


class Floor(Model):
    """The best accuracy reached without a language model."""

    name: str = Field(description="A baseline of the audit, chance, or a learner without a model.")
    accuracy: float = Field(description="Its accuracy; for a learner, its WS.")


class Medal(Model):
    """The medal of a model on one probe."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, with its revision where one was asked for.")
    award: Award = Field(description="The medal, by the rule.")
    floor: Floor = Field(description="The strongest model-free result.")
    learner: str | None = Field(
        description="The learner on the frozen model with the highest WS; null: none was run."
    )
    ws: Estimate | None = Field(description="Its WS.")
    way: float | None = Field(
        description="Position of its WS between the floor (0) and 100% (1); negative below the "
        "floor; null where no such learner was run, or the floor is 100%."
    )
    best_learner: str = Field(description="The learner with the highest WS overall.")
    best_ws: Estimate = Field(description="Its WS.")
    zero_shot: Estimate | None = Field(description="Null where zero-shot scoring is impossible.")
    controls: list[ControlGap] = Field(
        description="For the learner on the frozen model; empty where no control was run."
    )
    reason: str = Field(description="Why the medal is not higher, or what a success is based on.")

    @property
    def unchecked(self) -> bool:
        """Whether a success was not checked against controls."""
        return self.award == "success" and not self.controls


class CurveSummary(Model, Sealed):
    """The contents of ``curve.json``."""

    schema_version: str = Field(SCHEMA_VERSION, description="Version of this schema.")
    models: list[ModelCurves] = Field(description="Each model (and revision) on each probe.")
    restarts: list[Restarts] = Field(description="Empty without randomly initialised models.")
    series: list[Series] = Field(description="Empty where no model has several checkpoints.")
    medals: list[Medal] = Field(description="One for each trained model on each probe.")


def read_curves(folder: Path) -> CurveSummary:
    """Read ``curve.json`` of a folder, or the file itself.

    Raises:
        UsageError: there is none, or it is damaged or of another schema.
    """
    makes = "PROBE --model MODEL"
    return read_summary(folder, "curve", CurveSummary, SCHEMA_VERSION, makes)
