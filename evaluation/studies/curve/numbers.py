"""The tables of learning curves: accuracy by size, summaries over all sizes, and medals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import Field

from evaluation.models.checkpoint import NO_MODEL
from evaluation.models.revisions import stem_of, step_of
from evaluation.names import NO_NAMES, DisplayNames, model_name, told_apart
from evaluation.report import cells
from evaluation.report.charts import MARKERS
from evaluation.results.analyses import fitting
from evaluation.results.analyses.fitting import Fitting
from evaluation.results.intervals import Resampled
from evaluation.results.types import Estimate, Model
from evaluation.results.words import (
    AGAINST,
    difference,
    interval,
    percent,
    place,
    points,
)
from evaluation.studies.base import Finished, StudyRequest, read_summary
from evaluation.studies.counting import DrawAverages, group_by, train_overlap
from evaluation.studies.curve.axes import PROBE, RANDOM_LABELS, rendering_name, rendering_of
from evaluation.studies.table import (
    DataTable,
    Section,
    StudyTables,
    columns_of,
    fields,
    place_of,
    summary_of,
)
from kbprobe import document as doc
from kbprobe.errors import UsageError
from kbprobe.format.manifest import MOST_SIMILAR
from kbprobe.options import option_name


class CurveInfo(Model):
    """A model on a probe."""

    revision: str | None = Field(description="The revision asked for; null: the default one.")
    random_init: int | None = Field(
        description="Index of the randomly initialised model; null: the trained one."
    )
    step: int | None = Field(
        description="The training step, from the revision or folder name; null: none found."
    )
    rows: int = Field(description="Rows evaluated.")
    fingerprint: str = Field("", description="sha256 of these rows; empty: not known.")
    wording: str = Field(
        "", description="The wording that the probe was built in, in words; empty: not known."
    )
    clusters: int = Field(description="Clusters of these rows.")
    chance: float = Field(description="Mean of 1 / number of choices.")
    zero_shot: Estimate | None = Field(
        description="Zero-shot accuracy on the probe; null where no scorer applies to the model."
    )
    floor: str = Field(description="The strongest baseline of the audit, or chance if higher.")
    floor_accuracy: float = Field(description="Its accuracy.")
    left_out: list[int] = Field(description="Sizes for which train has too few rows.")
    weighting: str = Field(description="How the weights of sizes were chosen, in words.")


_RENDERING = "probe (its own wording), a control's config, or random_labels."


class Point(Model):
    """A place in the grid of runs, over its draws of training rows."""

    learner: str | None = Field(description="The learner's name; null: without training.")
    rendering: str = Field(description=_RENDERING)
    size: int | None = Field(description="Rows trained on; null: without training.")
    accuracy: Estimate = Field(
        description="Mean over the draws; the interval resamples test clusters and draws."
    )
    draws: list[float] = Field(
        description="Accuracy after training on each draw of rows, in the order of their seeds."
    )
    scored: int = Field(description="Rows scored, in the run that scored the fewest.")
    weight: float | None = Field(
        description="Weight of the size in WS and LangSense; all weights sum to 1."
    )
    selectivity: Estimate | None = Field(
        description="Of random labels: accuracy on true answers minus that on random ones, in "
        "points (Hewitt and Liang 2019)."
    )
    seen: float | None = Field(
        description="Of random labels: share of the test rows whose answer can be memorised, "
        "since a training row has the same first argument; null where not reported."
    )
    train_loss: float | None = Field(
        description="Mean cross-entropy in the last epoch, nats per row; null where not reported."
    )
    train_overlap: int = Field(description="Rows evaluated whose cluster is in train as well.")


class Curve(Model):
    """A learner on one rendering of a probe."""

    learner: str = Field(description="The learner's name.")
    rendering: str = Field(description=_RENDERING)
    ws: Estimate = Field(description="Weighted mean of the accuracies over the sizes.")
    maximum: Estimate = Field(
        description="MAX in oLMpics: the highest mean accuracy over the sizes. The maximum of "
        "noisy means is biased upwards, which the interval accounts for."
    )
    max_size: int = Field(description="The size at which it is reached; the smallest if tied.")
    taught: Estimate = Field(
        description="Accuracy at the smallest size minus zero-shot accuracy on the rendering, or "
        "minus chance where there is none, in points."
    )
    further: Estimate = Field(
        description="Accuracy at the largest size minus that at the smallest, in points."
    )
    lang_sense: Estimate | None = Field(
        description="Of a control: LangSense as in oLMpics, in points: the weighted mean over "
        "sizes of max(0, accuracy minus control accuracy). It is never negative, so noise alone "
        "makes it positive, which the interval accounts for."
    )
    lost: Estimate | None = Field(
        description="Of a control: WS on the probe minus that on the control, in points; may be "
        "negative, so its interval shows whether they differ."
    )
    coded_rows: int | None = Field(
        None,
        description="Rows whose answers are coded (Voita and Titov 2020); null unless the learner "
        "reports code lengths for all sizes.",
    )
    coded_draws: int | None = Field(
        None, description="Draws run at all sizes; the code lengths are means over them."
    )
    uniform_bits: float | None = Field(
        None, description="Bits of the uniform code: rows times log2 of the number of choices."
    )
    online_bits: float | None = Field(
        None,
        description="Bits of the online code: the uniform code for the first block, then each "
        "block encoded with the probabilities of the model fitted on all preceding rows.",
    )
    compression: float | None = Field(
        None, description="Uniform bits divided by online bits; 1: nothing was learnt."
    )
    compression_deviation: float | None = Field(
        None, description="Standard deviation of the compression over draws; null for one draw."
    )


class AuditBaseline(Model):
    """A baseline of the probe's audit."""

    name: str = Field(description="Its name in the audit.")
    accuracy: float = Field(description="Share of the test rows that it answers correctly.")


Award = Literal["success", "partial", "none"]


class Medal(Model):
    """The medal of a model on one probe."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, with its revision where one was asked for.")
    award: Award = Field(description="The medal, by the rule.")
    floor: str = Field(
        description="The strongest model-free result: a baseline of the audit, chance, or a "
        "learner without a model."
    )
    floor_accuracy: float = Field(description="Its accuracy; for a learner, its WS.")
    learner: str | None = Field(
        description="The learner on the frozen model with the highest WS; null: none was run."
    )
    ws: Estimate | None = Field(description="Its WS.")
    way: float | None = Field(
        description="Position of its WS between the floor (0) and 100% (1); negative below the "
        "floor; null where no such learner was run, or the floor is 100%."
    )
    controls: int = Field(
        description="Controls that the learner on the frozen model was run on; a success without "
        "any is not checked against them."
    )
    reason: str = Field(description="Why the medal is not higher, or what a success is based on.")


@dataclass(frozen=True)
class ModelCurves:
    """The curves of a model on a probe, as they are measured or read from a summary.

    Attributes:
        place: probe, split, model, and which weights of it: empty, a revision, or a random
            initialisation.
        about: the model and the probe.
        runs: accuracy by learner, rendering and size; without training first.
        curves: each learner on each rendering; the probe itself comes first.
        baselines: those of the probe's audit, strongest first.
    """

    place: Mapping[str, str]
    about: CurveInfo
    runs: Sequence[Point]
    curves: Sequence[Curve]
    baselines: Sequence[AuditBaseline]

    @property
    def name(self) -> str:
        """The model, and which weights of it."""
        return ", ".join(filter(None, (model_name(self.place["model"]), self.place["weights"])))

    @property
    def is_trained(self) -> bool:
        """Whether these are curves of a trained model, not of a baseline or a random restart."""
        return self.place["model"] != NO_MODEL and self.about.random_init is None

    @property
    def asked(self) -> tuple[Any, ...]:
        """What curves on the same rows have in common."""
        about = self.about
        # Earlier summaries have no fingerprint.
        known = about.rows, about.clusters, about.chance, about.floor_accuracy
        return self.place["probe"], self.place["split"], about.fingerprint or known

    @property
    def traits(self) -> list[str]:
        """What may distinguish the probe from others of its name, the most informative first."""
        about = self.about
        return [self.place["split"], about.wording, f"{about.rows:,} rows", about.fingerprint[:8]]

    @property
    def own(self) -> list[Curve]:
        """The curve of each learner on the probe itself."""
        return [curve for curve in self.curves if curve.rendering == PROBE]

    def points(self, curve: Curve) -> list[Point]:
        """Return the points of a curve, by size."""
        key = curve.learner, curve.rendering
        return [point for point in self.runs if (point.learner, point.rendering) == key]

    def without_model(self, models: Sequence[ModelCurves]) -> list[ModelCurves]:
        """Return the curves on the same probe of learners that need no model."""
        place = {**self.place, "model": NO_MODEL, "weights": ""}
        return [other for other in models if other.place == place and other is not self]


_FEW = 5
"""If there are fewer draws than this, a note says so."""


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> StudyTables:
    """Summarise the runs of the study."""

    def key(run: Finished) -> tuple[object, ...]:
        spec = run.asked
        probe = spec.probe if isinstance(spec.probe, str) else id(spec.probe)
        return probe, spec.model, spec.run.revision, spec.run.random_weights

    groups = group_by(finished, key).values()
    return report([_Grid(runs).curves_of(request.options.sizes) for runs in groups])


class _Place(NamedTuple):
    """A place in the grid of runs; without training, there is a rendering alone."""

    learner: str | None
    rendering: str
    size: int | None

    @classmethod
    def of(cls, run: Finished) -> _Place:
        """Return the place of a run."""
        return cls(run.asked.run.learner, rendering_of(run), run.asked.run.train)


class _Grid:
    """All runs of one model on one probe: learners by renderings by sizes, with several draws.

    Attributes:
        runs: the draws in each cell; the probe itself comes before its other renderings.
        own: a run on the probe itself: the first trained one.
        sizes: all sizes trained on.
        weights: the weight of each.
        weighting: how they were chosen.
        means: mean accuracy over the draws, all resampled together.
        ws: weighted mean over the sizes, by learner and rendering.
    """

    def __init__(self, finished: Sequence[Finished]) -> None:
        trained = [run for run in finished if run.asked.run.train is not None]
        self.own = next(run for run in trained if rendering_of(run) == PROBE)
        self.sizes = sorted({run.asked.run.train or 0 for run in trained})
        self.weights, self.weighting = weigh(self.sizes)
        groups = group_by(finished, _Place.of)
        learners = dict.fromkeys(cell.learner for cell in groups)
        renderings = dict.fromkeys([PROBE, *(cell.rendering for cell in groups)])
        cells = (_Place(*cell) for cell in product(learners, renderings, (None, *self.sizes)))
        self.runs = {cell: groups[cell] for cell in cells if cell in groups}
        averages = DrawAverages(self.runs, self.own.results.seed)
        self.means = averages.each()
        self.ws = {
            curve: averages.weighted({cell: self.weights[cell.size or 0] for cell in cells})
            for curve, cells in group_by(
                (cell for cell in self.runs if cell.size), lambda cell: cell[:2]
            ).items()
        }

    def curves_of(self, requested: Sequence[int]) -> ModelCurves:
        """Return the numbers; ``requested`` are the sizes that the user asked for."""
        model, options = self.own.asked.model, self.own.asked.run
        metrics, drawn = self.own.results.metrics, options.random_weights
        probe = self.own.results.probe
        untrained = self.runs.get(_Place(None, PROBE, None))
        strongest = [best for best in metrics.ranked_baselines[:1] if best[1] >= metrics.chance]
        floor, floor_accuracy = strongest[0] if strongest else ("chance", metrics.chance)
        about = CurveInfo(
            revision=options.revision,
            random_init=drawn,
            step=step_of(options.revision or model.rstrip("/").split("/")[-1]),
            rows=metrics.items,
            fingerprint=probe.fingerprint,
            wording=probe.wording,
            clusters=metrics.clusters,
            chance=metrics.chance,
            zero_shot=untrained[0].results.metrics.accuracy if untrained else None,
            floor=floor,
            floor_accuracy=floor_accuracy,
            left_out=[size for size in requested if size not in self.sizes],
            weighting=self.weighting,
        )
        weights = "" if drawn is None else f"random initialisation {drawn + 1}"
        place = {"model": model, "weights": options.revision or weights}
        return ModelCurves(
            {**place_of(self.own, "probe", "split"), **place},
            about,
            [self._point(cell) for cell in self.runs],
            [self._curve(str(learner), str(rendering)) for learner, rendering in self.ws],
            [AuditBaseline(name=name, accuracy=share) for name, share in metrics.ranked_baselines],
        )

    def _point(self, cell: _Place) -> Point:
        mean, on_probe = self.means[cell], self.means.get(cell._replace(rendering=PROBE))
        scores = [run.results.metrics for run in self.runs[cell]]
        reports = [_report(run) for run in self.runs[cell]]
        random = cell.rendering == RANDOM_LABELS
        return Point(
            **cell._asdict(),
            # Without training, it has the interval of its own results.
            accuracy=mean.estimate() if cell.size else scores[0].accuracy,
            draws=[score.accuracy.value for score in scores],
            scored=min(score.scored for score in scores),
            weight=self.weights[cell.size] if cell.size else None,
            selectivity=on_probe.less(mean).estimate(100) if random and on_probe else None,
            seen=_mean_of(block and block.seen for block in reports) if random else None,
            train_loss=_mean_of(block and block.train_loss for block in reports),
            train_overlap=train_overlap(self.runs[cell]),
        )

    def _means(self, learner: str, rendering: str) -> dict[int, Resampled]:
        """Return mean accuracies by size."""
        return {
            cell.size: mean
            for cell, mean in self.means.items()
            if cell[:2] == (learner, rendering) and cell.size
        }

    def _curve(self, learner: str, rendering: str) -> Curve:
        means, ws = self._means(learner, rendering), self.ws[learner, rendering]
        best = max(means, key=lambda size: (means[size].value, -size))
        # Each resample takes its own highest mean.
        samples = np.max([mean.samples for mean in means.values()], axis=0)
        highest = replace(means[best], samples=samples, clusters=0)
        first, last = means[min(means)], means[max(means)]
        chance = self.own.results.metrics.chance
        sense = lost = None
        if rendering not in (PROBE, RANDOM_LABELS):
            sense = _lang_sense(self._means(learner, PROBE), means, self.weights)
            lost = self.ws[learner, PROBE].less(ws).estimate(100)
        return Curve(
            learner=learner,
            rendering=rendering,
            ws=ws.estimate(),
            maximum=highest.basic_estimate(1.0),
            max_size=best,
            taught=first.less(self.means.get(_Place(None, rendering, None), chance)).estimate(100),
            further=last.less(first).estimate(100),
            lang_sense=sense and sense.basic_estimate(1.0, 100),
            lost=lost,
            **self._code_length(learner, rendering),
        )

    def _code_length(self, learner: str, rendering: str) -> dict[str, Any]:
        fittings: dict[int, dict[int, Fitting | None]] = {}
        for cell, runs in self.runs.items():
            for run in runs if cell[:2] == (learner, rendering) and cell.size else ():
                draw = run.asked.run.train_seed or 0
                fittings.setdefault(draw, {})[cell.size or 0] = _report(run)
        choices = self.own.predictions["choices"].to_pylist()
        return code_length(fittings, fmean(math.log2(len(texts)) for texts in choices))


def _report(run: Finished) -> Fitting | None:
    """Return what a learner reported about its training, if anything."""
    return run.results.analysis(fitting.NAME, Fitting)


def _mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean of numbers; None if one of them is missing."""
    numbers = list(values)
    known = [value for value in numbers if value is not None]
    return fmean(known) if len(known) == len(numbers) else None


def _lang_sense(
    means: Mapping[int, Resampled], others: Mapping[int, Resampled], weights: Mapping[int, float]
) -> Resampled:
    shared = [(weights[size], means[size], others[size]) for size in means if size in others]
    value = sum(weight * max(0.0, mean.value - other.value) for weight, mean, other in shared)
    samples = np.sum(
        [weight * np.maximum(0.0, mean.samples - other.samples) for weight, mean, other in shared],
        axis=0,
    )
    return Resampled(value, samples, min(mean.n for _, mean, _ in shared))


def code_length(
    fittings: Mapping[int, Mapping[int, Fitting | None]], choice_bits: float
) -> dict[str, Any]:
    """Return the online code length (Voita and Titov 2020, section 2.2.2): fields of a curve.

    The answers of the first block are sent by the uniform code, each further block by the
    probabilities of the model fitted on all rows before it. Draws that were not trained on all
    sizes are left out.

    Args:
        fittings: what was reported for each draw and size.
        choice_bits: mean log2 of the number of choices.

    Returns:
        None of them if no draw has an unbroken series of at least two sizes.
    """
    longest = max((size for sizes in fittings.values() for size in sizes), default=0)
    coded = [
        length
        for sizes in fittings.values()
        if longest in sizes and (length := _of_draw(sizes, choice_bits)) is not None
    ]
    if not coded:
        return {}
    compressions = [rows * choice_bits / bits for rows, bits in coded]
    rows = fmean(rows for rows, _ in coded)
    return {
        "coded_rows": round(rows),
        "coded_draws": len(coded),
        "uniform_bits": rows * choice_bits,
        "online_bits": fmean(bits for _, bits in coded),
        "compression": fmean(compressions),
        "compression_deviation": stdev(compressions) if len(coded) > 1 else None,
    }


def _of_draw(sizes: Mapping[int, Fitting | None], choice_bits: float) -> tuple[int, float] | None:
    """Return the number of rows coded in a draw and their code length; None if a block is missing.

    Rows that the learner skipped are in no block, so blocks may be slightly short.
    """
    ordered = sorted(sizes)
    if len(ordered) < 2:
        return None
    rows, bits = ordered[0], ordered[0] * choice_bits
    for size, following in pairwise(ordered):
        block = sizes[size]
        if block is None or block.next_bits is None or size + block.next_rows > following:
            return None
        rows, bits = rows + block.next_rows, bits + block.next_bits
    return (rows, bits) if math.isfinite(bits) and bits > 0 else None


PUBLISHED = {62: 0.23, 125: 0.2, 250: 0.17, 500: 0.14, 1000: 0.11, 2000: 0.08, 4000: 0.07}
"""oLMpics, section 3.2: sizes with few rows count more, since little can be learnt from them."""


def weigh(sizes: Sequence[int]) -> tuple[dict[int, float], str]:
    """Return the weight of each size, summing to one, and how they were chosen.

    >>> weights, how = weigh([62, 125])
    >>> {size: round(weight, 3) for size, weight in weights.items()}
    {62: 0.535, 125: 0.465}
    >>> weigh([10, 20])[0]
    {10: 0.5, 20: 0.5}
    """
    if not all(size in PUBLISHED for size in sizes):
        return dict.fromkeys(sizes, 1 / len(sizes)), (
            "equal, as some of the sizes have no published weight"
        )
    total = sum(PUBLISHED[size] for size in sizes)
    weights = {size: PUBLISHED[size] / total for size in sizes}
    if len(sizes) == len(PUBLISHED):
        return weights, "as published"
    missing = ", ".join(f"{size:,}" for size in PUBLISHED if size not in sizes)
    return weights, f"as published, renormalised without {missing}"


def read_curves(folder: Path) -> tuple[Path, list[ModelCurves]]:
    """Read ``curve.json`` of a folder, or the file itself; return the folder as well.

    Raises:
        UsageError: there is none, or it is damaged or of another schema.
    """
    summary = read_summary(folder, "curve", StudyTables, "2.0", "PROBE --model MODEL")
    return folder, curves_in(summary)


_Row = TypeVar("_Row", bound=Model)


def curves_in(summary: StudyTables) -> list[ModelCurves]:
    """Return the curves of each model on each probe in a summary."""

    def rows(table: str, kind: type[_Row], place: Mapping[str, str]) -> list[_Row]:
        return [
            kind(**{name: value for name, value in row.items() if name not in place})
            for row in summary.rows(table, **place)
        ]

    places = [{name: row[name] for name in PLACE} for row in summary.tables["models"]]
    return [
        ModelCurves(
            place,
            rows("models", CurveInfo, place)[0],
            rows("runs", Point, place),
            rows("curves", Curve, place),
            rows("baselines", AuditBaseline, place),
        )
        for place in places
    ]


def collect(
    request: StudyRequest, folders: Sequence[tuple[Path, Sequence[ModelCurves]]]
) -> StudyTables:
    """Join the curves of several folders."""
    if request.options.model_fields_set:
        name = option_name(min(request.options.model_fields_set))
        raise UsageError(f"{name} is for runs: name a model with --model, or leave it out")
    places: dict[tuple[str, ...], Path] = {}
    for folder, models in folders:
        for model in models:
            other = places.setdefault(tuple(model.place.values()), folder)
            if other is not folder:
                raise UsageError(
                    f"{other} and {folder} both hold curves of {model.name} on "
                    f"{model.place['probe']}: leave one of them out"
                )
    return report([model for _, models in folders for model in models])


PLACE = ("probe", "split", "model", "weights")
"""What distinguishes the curves of a model on a probe from others."""

_ABOUT, _BASELINES = columns_of(CurveInfo), columns_of(AuditBaseline)
_POINTS = columns_of(
    Point,
    {"size": "rows", "seen": "first argument seen in training"},
    hidden=("scored", "weight", "train_loss", "train_overlap"),
    show={"rendering": rendering_name, "draws": len, "selectivity": cells.points},
)
_CURVES = columns_of(
    Curve,
    {
        "ws": "WS",
        "maximum": "MAX",
        "max_size": "rows at MAX",
        "lang_sense": "LangSense",
        "lost": "WS minus the control’s",
    },
    hidden=("coded_draws", "compression_deviation"),
    show={
        "rendering": rendering_name,
        **dict.fromkeys(("taught", "further", "lost"), cells.points),
        "lang_sense": lambda sense: cells.plain(sense and sense.value, ".1f"),
        **dict.fromkeys(("uniform_bits", "online_bits"), lambda bits: cells.plain(bits, ",.0f")),
        "compression": lambda ratio: cells.plain(ratio, ".2f"),
    },
)
_RESTARTS = fields(
    {
        "probe": "The probe's name.",
        "model": "The model, as it was given.",
        "learner": "The learner's name.",
        "size": "Rows trained on; null: WS, over all sizes.",
        "models": "Randomly initialised models.",
        "mean": "Their mean accuracy.",
        "deviation": "Standard deviation; null with one model.",
        "trained": "Accuracy of the trained model; null: not run.",
    },
    {"size": "rows", "deviation": "standard deviation (points)"},
    show={
        "size": lambda size: "all (WS)" if size is None else size,
        "deviation": lambda share: cells.plain(share and 100 * share, ".1f"),
    },
)
_SIGNS = {"success": "✔", "partial": "◐", "none": "–"}
_MEDALS = columns_of(
    Medal,
    {"award": "medal", "ws": "WS on the frozen model", "floor_accuracy": "its accuracy"},
    hidden=("split", "way"),
    show={"award": lambda award: doc.Cell(f"{_SIGNS[award]} {award}", tone=award)},
)


def report(models: Sequence[ModelCurves]) -> StudyTables:
    """Summarise curves, with medals, and what several models of an architecture show together."""
    caption = (
        "The same architecture with weights drawn at random: what the learner and the "
        "architecture alone can learn from the training rows"
    )
    restarts = DataTable("restarts", _restarts(models), _RESTARTS)
    sections = [
        *(_section(model, models) for model in models),
        Section({}, [], _charts_by_step(models), heading="By training step"),
        Section(
            {}, [restarts], [restarts.shown(caption, names=3)], heading="Random initialisation"
        ),
        medals_section(award_medals(models)),
    ]
    return summary_of("curve", "Learning curves", sections, "models and probes")


def _section(model: ModelCurves, models: Sequence[ModelCurves]) -> Section:
    """Report a model on a probe."""
    runs = DataTable("runs", model.runs, _POINTS)
    curves = DataTable("curves", model.curves, _CURVES, "All models and probes")
    baselines = DataTable("baselines", model.baselines, _BASELINES)
    by_learner = group_by(model.curves, lambda curve: curve.learner).values()
    charts = [_chart(model, model.own, models)]
    charts += [_chart(model, several) for several in by_learner if len(several) > 1]
    all_baselines = f"All {len(model.baselines)} baselines"
    return Section(
        model.place,
        [DataTable("models", [model.about], _ABOUT), runs, curves, baselines],
        [
            # Random models are drawn only if there are no others.
            *(charts if model.about.random_init is None or model is models[0] else ()),
            curves.shown(
                "WS: weighted mean over sizes. MAX: highest mean. LangSense: weighted mean of "
                "max(0, accuracy minus the control’s). Differences in points.",
                curves.filled,
                names=2,
            ),
            runs.shown(
                "Accuracy by number of training rows",
                runs.filled,
                names=3,
                fold="Each number of training rows",
            ),
            baselines.shown(
                "Accuracy of each baseline: of the probe’s audit, recorded with it, and similarity",
                fold=all_baselines,
            ),
        ],
        [_untrained(model), *(_sentence(model, curve) for curve in model.own)],
        _notes(model),
    )


def _chart(
    model: ModelCurves, curves: Sequence[Curve], models: Sequence[ModelCurves] = ()
) -> doc.Chart:
    """Draw the curves of several learners on the probe, or of one learner on its renderings."""
    learners = list(dict.fromkeys(curve.learner for curve in model.curves))
    among_learners = all(curve.rendering == PROBE for curve in curves)
    looks: dict[str, tuple[doc.Dash, str]] = {PROBE: ("solid", "o"), RANDOM_LABELS: ("dotted", "x")}
    controls: list[tuple[doc.Dash, str]] = [("dashed", "s"), ("short dashes", "^")]
    lines = []
    for curve in curves:
        if curve.rendering not in looks:
            looks[curve.rendering] = controls[len(looks) % 2]
        number = learners.index(curve.learner)
        lines.append(
            _line(
                model.points(curve),
                curve.learner if among_learners else rendering_name(curve.rendering),
                "soft" if curve.rendering == RANDOM_LABELS else number,
                *looks[curve.rendering],
            )
        )
    lines += [
        _line(points, f"{points[0].learner} (no model)", "reference", "dashed", "d")
        for other in model.without_model(models)
        for points in map(other.points, other.own)
    ]
    levels = _levels(model)
    if (zero := model.about.zero_shot) is not None:
        levels.insert(0, doc.Level("zero-shot", zero.value, 4, "dash-dotted"))
    return doc.Chart(
        f"Accuracy on {model.place['probe']} by rows trained on: "
        f"{', '.join(line.name for line in lines)}.",
        [doc.Panel(lines, levels, "" if among_learners else curves[0].learner)],
        _across(lines),
        note="Mean accuracy over draws of training rows; the band is its 95% interval. Controls "
        "are dashed, random labels dotted.",
    )


def joint_charts(
    folders: Sequence[tuple[Path, Sequence[ModelCurves]]], given: DisplayNames = NO_NAMES
) -> list[doc.Chart]:
    """Draw the curves of all models on the same rows together, but those with random weights.

    Curves that several folders hold are drawn once. Zero-shot accuracy, which each model has its
    own of, is left out.
    """
    drawn: list[tuple[str, ModelCurves]] = []
    for folder, models in folders:
        for model in models:
            if model.about.random_init is None and all(model != other for _, other in drawn):
                drawn.append((str(folder), model))
    groups = list(group_by(drawn, lambda one: one[1].asked).values())
    first = [group[0] for group in groups]
    titles = told_apart(
        [given.of(model.place["probe"]) for _, model in first],
        [[*model.traits, folder] for folder, model in first],
    )
    trained = [model for _, model in drawn if model.is_trained]
    several = len({curve.learner for model in trained for curve in model.own}) > 1
    styles: dict[str, int] = {}
    charts = []
    for title, group in zip(titles, groups, strict=True):
        own = [model for _, model in group]
        every = [(folder, model, curve) for folder, model in group for curve in model.own]
        named = [_in_joint_chart(model, curve, given, several) for _, model, curve in every]
        lines: list[doc.Line] = []
        for name, (_, model, curve) in zip(
            told_apart(named, [[folder] for folder, _, _ in every]), every, strict=True
        ):
            # A model looks the same in all charts.
            style = styles.setdefault(name, len(styles))
            ink: doc.Ink = style if model.is_trained else "reference"
            marker = MARKERS[style % len(MARKERS)]
            lines.append(_line(model.points(curve), name, ink, marker=marker))
        levels = _levels(max(own, key=lambda m: len(m.baselines)), given)
        panel = doc.Panel(lines, levels, title)
        label = f"Accuracy on {title} by rows trained on."
        charts.append(doc.Chart(label, [panel], _across(lines)))
    return charts


def _in_joint_chart(model: ModelCurves, curve: Curve, given: DisplayNames, several: bool) -> str:
    """Return the name of a curve among those of other models, with its learner if ``several``."""
    if not model.is_trained:
        return f"{curve.learner} (no model)"
    parts = [given.of_model(model.place["model"]), model.place["weights"]]
    return ", ".join(filter(None, [*parts, curve.learner if several else ""]))


def _levels(model: ModelCurves, given: DisplayNames = NO_NAMES) -> list[doc.Level]:
    """Return what is reached without training: the best baseline, similarity, chance."""
    levels = []
    if model.baselines:
        best = model.baselines[0]
        name = f"baseline: {given.of(best.name)}"
        levels.append(doc.Level(name, best.accuracy, "reference", "dashed"))
        similar = [one for one in model.baselines[1:] if one.name.startswith(MOST_SIMILAR)]
        if similar and not best.name.startswith(MOST_SIMILAR):
            name = given.of(similar[0].name)
            levels.append(doc.Level(name, similar[0].accuracy, "soft", "dashed"))
    return [*levels, doc.Level(given.of("chance"), model.about.chance)]


def _across(lines: Sequence[doc.Line]) -> doc.Across:
    sizes = sorted({int(size) for line in lines for size in line.x})
    return doc.Across("rows trained on", "rows", sizes)


def _line(
    points: Sequence[Point], name: str, ink: doc.Ink, dash: doc.Dash = "solid", marker: str = "o"
) -> doc.Line:
    sizes = [point.size or 0 for point in points]
    return doc.Line(name, sizes, [point.accuracy for point in points], ink, dash, marker)


def _notes(model: ModelCurves) -> list[str]:
    """Return how the numbers were computed, and caveats."""
    about, trained = model.about, [point for point in model.runs if point.size]
    notes = [f"Weights of WS and LangSense: {about.weighting}."]
    if about.left_out:
        left = ", ".join(f"{size:,}" for size in about.left_out)
        notes.append(f"Sizes left out, since train has fewer rows: {left}.")
    draws = min(len(point.draws) for point in trained)
    if draws < _FEW:
        drawn = "a single draw" if draws == 1 else f"{draws} draws"
        notes.append(
            f"Some sizes were trained on {drawn} of rows only: intervals do not show well how much "
            "other draws would change."
        )
    scored = min(point.scored for point in model.runs)
    if scored < about.rows:
        notes.append(
            f"Rows were skipped: some runs scored {scored:,} of {about.rows:,}, and accuracies are "
            "of these."
        )
    if overlap := max(point.train_overlap for point in model.runs):
        notes.append(f"{overlap:,} test rows are of clusters that are in train as well.")
    return notes


def _floor_name(model: ModelCurves) -> str:
    return "guessing" if model.about.floor == "chance" else "the strongest baseline"


def _untrained(model: ModelCurves) -> str:
    """Describe zero-shot accuracy relative to the strongest baseline."""
    about, zero = model.about, model.about.zero_shot
    floor = f"{_floor_name(model)}, {percent(about.floor_accuracy)} ({about.floor})"
    if zero is None:
        return f"There is no zero-shot accuracy to compare with {floor}."
    relation = AGAINST[place(zero, about.floor_accuracy)]
    return f"Zero-shot accuracy is {percent(zero.value)} ({interval(zero)}), {relation} {floor}."


def _sentence(model: ModelCurves, curve: Curve) -> str:
    """Describe a learner's curve on the probe itself."""
    floor, start = model.about.floor_accuracy, "chance"
    if model.about.zero_shot is not None:
        start = "zero-shot accuracy"
    points = model.points(curve)
    first = points[0].accuracy
    best = next(point.accuracy for point in points if point.size == curve.max_size)
    whence = f"It is unclear whether the gain over {_floor_name(model)} was learnt from these rows."
    if first.low > floor and model.is_trained:
        whence = (
            f"So few rows can hardly teach the task: accuracy above {_floor_name(model)} comes "
            "from pre-training."
        )
    elif curve.ws.low <= floor and best.low <= floor:
        whence = f"Accuracy is not clearly above {_floor_name(model)} at any size."
    elif curve.further.low > 0:
        whence = f"The gain over {_floor_name(model)} was learnt from the probe's own rows."
    return (
        f"{curve.learner}: {percent(curve.maximum.value)} at best, with {curve.max_size:,} "
        f"training rows; over all sizes (WS) {percent(curve.ws.value)} ({interval(curve.ws)}), "
        f"{AGAINST[place(curve.ws, floor)]} {_floor_name(model)}. The first {points[0].size:,} "
        f"rows change accuracy by {difference(curve.taught)} relative to {start}, the others by "
        f"{difference(curve.further)}. {whence}"
    )


def _restarts(models: Sequence[ModelCurves]) -> list[dict[str, Any]]:
    """Return mean and spread of accuracy over the random initialisations of each architecture."""
    accuracies: dict[tuple[Any, ...], dict[int | None, Estimate]] = {}
    drawn: dict[tuple[Any, ...], list[float]] = {}
    for model in models:
        for curve in model.own:
            of = model.place["probe"], model.place["model"], curve.learner
            points = {point.size: point.accuracy for point in model.points(curve)}
            if model.about.random_init is None:
                accuracies[of] = {None: curve.ws, **points}
                continue
            for size, accuracy in {None: curve.ws, **points}.items():
                drawn.setdefault((*of, size), []).append(accuracy.value)
    return [
        {
            **dict(zip(("probe", "model", "learner", "size"), of, strict=True)),
            "models": len(values),
            "mean": fmean(values),
            "deviation": stdev(values) if len(values) > 1 else None,
            "trained": accuracies.get(of[:3], {}).get(of[3]),
        }
        for of, values in drawn.items()
    ]


def _charts_by_step(models: Sequence[ModelCurves]) -> list[doc.Chart]:
    """Draw accuracy over the checkpoints of each model at two or more training steps."""
    series: dict[tuple[str, ...], dict[int, tuple[Estimate, Estimate]]] = {}
    for model in models:
        name, step = model.place["model"], model.about.step
        stem = name if model.about.revision else stem_of(name)
        for curve in model.own if step is not None and model.about.random_init is None else ():
            of = model.place["probe"], model_name(stem), curve.learner
            first = model.points(curve)[0].accuracy
            series.setdefault(of, {})[step or 0] = curve.ws, first
    charts = []
    for (probe, stem, learner), by_step in series.items():
        steps = sorted(by_step)
        lines = [
            doc.Line(name, steps, [by_step[step][number] for step in steps], number)
            for number, name in enumerate(("WS", "at the smallest size"))
        ]
        if len(steps) > 1:
            label = f"Accuracy of {stem}, {learner}, on {probe} by training step."
            across = doc.Across("training step", "steps", steps)
            charts.append(doc.Chart(label, [doc.Panel(lines, title=f"{stem}, {learner}")], across))
    return charts


FROZEN = ("linear", "mlp", "frozen")
"""Learners that keep the pre-trained model frozen."""

_HALF = 0.5


def award_medals(models: Sequence[ModelCurves]) -> list[Medal]:
    """Award a medal to each trained model on each probe that it was run on."""
    return [award(model, models) for model in models if model.is_trained]


def award(model: ModelCurves, models: Sequence[ModelCurves] = ()) -> Medal:
    """Award a model its medal on a probe; ``models`` may include learners without a model."""
    floors = [(model.about.floor, model.about.floor_accuracy)] + [
        (f"WS of {curve.learner}", curve.ws.value)
        for other in model.without_model(models)
        for curve in other.own
    ]
    floor, accuracy = max(floors, key=lambda floor: floor[1])
    best = max(model.own, key=lambda curve: curve.ws.value)
    heads = [curve for curve in model.own if curve.learner in FROZEN]
    frozen = max(heads, key=lambda curve: curve.ws.value, default=None)
    controls = [
        curve
        for curve in model.curves
        if frozen is not None and curve.learner == frozen.learner and curve.lost is not None
    ]
    way = None
    if frozen is not None and accuracy < 1:
        way = (frozen.ws.value - accuracy) / (1 - accuracy)
    zero, level = model.about.zero_shot, f"the floor, {percent(accuracy)} ({floor})"
    above = {f"WS of {best.learner}": max(curve.ws.low for curve in model.own) > accuracy}
    if zero is not None:
        above = {"zero-shot accuracy": zero.low > accuracy, **above}
    weak = [c for c in controls if c.lost is not None and c.lost.low <= 0]
    given: Award = "partial"
    if not any(above.values()):
        given, reason = "none", f"no interval of zero-shot accuracy or WS is entirely above {level}"
    elif frozen is None or way is None:
        reason = "no learner was run on the frozen model"
    elif frozen.ws.low <= accuracy:
        what = next(name for name, is_above in above.items() if is_above)
        reason = f"{what} is above {level}, but WS of {frozen.learner} is not"
    else:
        reason = f"WS of {frozen.learner} goes {percent(way)} of the way from {level} to 100%"
        if way >= _HALF and weak:
            least = weak[0].lost and points(weak[0].lost.low)
            reason = (
                f"WS of {frozen.learner} is not clearly above WS on "
                f"{rendering_name(weak[0].rendering)} (interval from {least})"
            )
        elif way >= _HALF:
            given = "success"
            checked = "it exceeds WS on each control" if controls else "no control was run"
            reason = f"{reason}; {checked}"
    return Medal(
        probe=model.place["probe"],
        split=model.place["split"],
        model=model.name,
        award=given,
        floor=floor,
        floor_accuracy=accuracy,
        learner=frozen and frozen.learner,
        ws=frozen and frozen.ws,
        way=way,
        controls=len(controls),
        reason=reason,
    )


def medals_section(medals: Sequence[Medal]) -> Section:
    """Report medals."""
    table = DataTable("medals", medals, _MEDALS)
    caption = "A success with 0 controls was not compared with any"
    return Section({}, [table], [table.shown(caption, names=2)], heading="Medals")
