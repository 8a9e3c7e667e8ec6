"""The summary of the study of learning curves, ``curve.json``, and what each number means."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import Field

from evaluation.results.types import Estimate, Model
from kbprobe.errors import UsageError

NAME = "curve"
SCHEMA_VERSION = "1.0"
PROBE = "probe"
RANDOM_LABELS = "random_labels"
"""Renderings beside the controls, which are called as their configs are."""


class Point(Model):
    """A learner fitted on one number of rows."""

    size: int = Field(description="Rows trained on.")
    draws: list[float] = Field(
        description="Accuracy after training on each draw of rows, in the order of their seeds."
    )
    accuracy: Estimate = Field(
        description="Mean of these; the interval resamples test clusters and draws."
    )
    train_loss: float | None = Field(
        description="Mean cross-entropy of the last epoch, nats a row; null where not reported."
    )


class Maximum(Model):
    """MAX: the best mean accuracy over the sizes [O]."""

    size: int = Field(description="The size that it is reached at, the smallest of equals.")
    accuracy: Estimate = Field(
        description="The mean accuracy there. The best of noisy means is a little too good, which "
        "the interval makes up for."
    )


class CodeLength(Model):
    """The online code length of the training answers (Voita and Titov 2020)."""

    rows: int = Field(description="Rows whose answers are coded.")
    draws: int = Field(description="Draws that all sizes were trained on: all numbers are means.")
    uniform_bits: float = Field(
        description="Bits of the uniform code: rows times log2 of the number of choices."
    )
    bits: float = Field(
        description="Bits of the online code: the uniform code for the first block, then each "
        "block by the probabilities of the model that was fitted on all rows before it."
    )
    compression: float = Field(description="Uniform bits over bits; 1: nothing was learnt.")
    compression_deviation: float | None = Field(
        description="Standard deviation of the compression over draws; null with one."
    )


class Curve(Model):
    """A learner on one rendering of a probe."""

    rendering: str = Field(
        description="probe (its own wording), a control's config, or random_labels."
    )
    points: list[Point] = Field(description="Accuracy by size, ascending.")
    ws: Estimate = Field(description="Weighted mean of the points' accuracies.")
    maximum: Maximum = Field(description="The best of the points.")
    code_length: CodeLength | None = Field(
        description="Null where the learner reports none for all sizes."
    )


class LangSense(Model):
    """How much less a learner gets from a control than from the probe."""

    config: str = Field(description="The control's config.")
    value: Estimate = Field(
        description="LangSense as published [O], in points: the weighted mean over sizes of "
        "max(0, accuracy less control accuracy). It is never negative, so noise alone makes it "
        "more than 0, which the interval makes up for."
    )
    difference: Estimate = Field(
        description="WS of the probe less WS of the control, in points: may be negative, so its "
        "interval tells a difference from none."
    )


class Selectivity(Model):
    """Accuracy on true answers less that on random ones, by size (Hewitt and Liang 2019)."""

    size: int = Field(description="Rows trained on.")
    value: Estimate = Field(description="In points.")
    seen: float | None = Field(
        description="Share of the test rows whose random answer the training rows tell, since "
        "they show the same first argument; null where not reported."
    )


class First(Model):
    """What pre-training knew, beside what the first examples teach."""

    size: int = Field(description="The smallest size.")
    before: Estimate | None = Field(
        description="Zero-shot accuracy; null where the model cannot be asked without training."
    )
    after: Estimate = Field(description="Accuracy at the smallest size.")
    taught: Estimate = Field(
        description="After less before, or less chance where before is null, in points."
    )
    further: Estimate = Field(
        description="Accuracy at the largest size less that at the smallest, in points."
    )


class LearnerCurves(Model):
    """A learner on a probe, its controls and its random labels."""

    learner: str = Field(description="The learner's name.")
    curves: list[Curve] = Field(description="That of the probe itself first.")
    first: First = Field(description="What the smallest size teaches.")
    lang_sense: list[LangSense] = Field(description="One for each control.")
    selectivity: list[Selectivity] = Field(description="Empty without random labels.")

    @property
    def own(self) -> Curve:
        """The curve of the probe itself."""
        return self.curves[0]

    def curve(self, rendering: str) -> Curve | None:
        """Return the curve of a rendering; None where there is none."""
        return next((one for one in self.curves if one.rendering == rendering), None)


class Baseline(Model):
    """A baseline of the probe's audit."""

    name: str = Field(description="Its name there.")
    accuracy: float = Field(description="Share of the test rows that it gets right.")


class ZeroShot(Model):
    """The model as it is, on one rendering."""

    rendering: str = Field(description="probe, or a control's config.")
    accuracy: Estimate = Field(description="Share of the scored rows answered right.")


class Weight(Model):
    """What a size counts in WS and LangSense."""

    size: int = Field(description="Rows trained on.")
    weight: float = Field(description="All weights sum to 1.")


class ModelCurves(Model):
    """A model on a probe."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, as it was given.")
    revision: str | None = Field(description="The revision asked for; null: the default one.")
    random_init: int | None = Field(
        description="Number of the randomly initialised model; null: the trained one."
    )
    step: int | None = Field(
        description="The training step, from the name of revision or folder; null: none there."
    )
    rows: int = Field(description="Rows evaluated.")
    clusters: int = Field(description="Clusters of these rows.")
    chance: float = Field(description="Mean of one over the number of choices.")
    baselines: list[Baseline] = Field(description="Of the audit, the strongest first.")
    sizes: list[int] = Field(description="Sizes trained on.")
    left_out: list[int] = Field(description="Sizes that train has too few rows for.")
    weights: list[Weight] = Field(description="What each size counts.")
    weighting: str = Field(description="How the weights were chosen, in words.")
    zero_shot: list[ZeroShot] = Field(description="Empty where the model cannot be asked so.")
    learners: list[LearnerCurves] = Field(description="In the order asked for.")
    notes: list[str] = Field(description="What a reader of the numbers must know.")

    @property
    def own_zero_shot(self) -> Estimate | None:
        """Zero-shot accuracy on the probe itself; None where there is none."""
        return next((one.accuracy for one in self.zero_shot if one.rendering == PROBE), None)

    @property
    def floor(self) -> tuple[str, float]:
        """Name and accuracy of what needs no model: the strongest baseline, or chance if more."""
        best = self.baselines[0] if self.baselines else None
        if best is None or best.accuracy < self.chance:
            return "chance", self.chance
        return best.name, best.accuracy


class Spread(Model):
    """Mean and standard deviation over models."""

    mean: float = Field(description="Mean accuracy.")
    deviation: float | None = Field(description="Standard deviation; null with one model.")


class RestartPoint(Spread):
    """The accuracy of randomly initialised models at one size."""

    size: int = Field(description="Rows trained on.")


class Restarts(Model):
    """Randomly initialised models of an architecture, beside the trained one."""

    probe: str = Field(description="The probe's name.")
    model: str = Field(description="The model, as it was given.")
    learner: str = Field(description="The learner's name.")
    models: int = Field(description="Randomly initialised models.")
    ws: Spread = Field(description="Of their WS.")
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
    model: str = Field(description="The model, without what tells its checkpoints apart.")
    learner: str = Field(description="The learner's name.")
    chance: float = Field(description="Mean of one over the number of choices.")
    points: list[SeriesPoint] = Field(description="By step.")


class CurveSummary(Model):
    """All of ``curve.json``."""

    schema_version: str = Field(SCHEMA_VERSION, description="Version of this schema.")
    models: list[ModelCurves] = Field(description="Each model (and revision) on each probe.")
    restarts: list[Restarts] = Field(description="Empty without randomly initialised models.")
    series: list[Series] = Field(description="Empty where no model has several checkpoints.")


def read_curves(folder: Path) -> CurveSummary:
    """Read ``curve.json`` of a folder, or the file itself.

    Raises:
        UsageError: there is none, or it is damaged or of another schema.
    """
    path = folder if folder.is_file() else folder / f"{NAME}.json"
    again = "Run evaluate-probe curve again with the same -o: finished runs are found."
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        version = held.get("schema_version") if isinstance(held, dict) else None
        if isinstance(version, str) and version != SCHEMA_VERSION:
            raise UsageError(
                f"{path} has schema version {version}, and this kbprobe reads {SCHEMA_VERSION}. "
                f"{again}"
            )
        return CurveSummary.model_validate(held)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(
            f"{folder} holds no learning curves (no {NAME}.json). Make them with: "
            f"evaluate-probe curve PROBE --model MODEL -o {folder}"
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {str(error).splitlines()[0]}. {again}") from error
