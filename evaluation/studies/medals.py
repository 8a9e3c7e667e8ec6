"""Medals: learning curves of several probes and models as one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from evaluation.models.checkpoint import NO_MODEL
from evaluation.report import cells
from evaluation.results.types import Estimate, Model
from evaluation.results.words import difference, name_or_count, percent, points
from evaluation.studies.base import Study, StudyRequest
from evaluation.studies.curve.document import model_name, rendering_name
from evaluation.studies.curve.record import CurveSummary, LearnerCurves, ModelCurves, read_curves
from kbprobe.document import Cell, Document, Findings, Row, Section, Table
from kbprobe.errors import UsageError

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


class Medals(Model):
    """Medals of models on probes."""

    schema_version: str = Field("1.0", description="Version of this schema.")
    rule: list[str] = Field(description="How they were awarded.")
    probes: list[str] = Field(description="Rows of the table.")
    models: list[str] = Field(description="Columns of the table.")
    medals: list[Medal] = Field(description="One for each model on each probe that it was run on.")

    def at(self, probe: str, model: str) -> Medal | None:
        """Return the medal of a model on a probe; None if it was not run."""
        found = (one for one in self.medals if (one.probe, one.model) == (probe, model))
        return next(found, None)


class CurvesIn(NamedTuple):
    """The learning curves that a folder holds."""

    folder: Path
    curves: CurveSummary


def _read(folder: Path) -> CurvesIn:
    return CurvesIn(folder, read_curves(folder))


def _summarise(_request: StudyRequest, found: Sequence[CurvesIn]) -> Medals:
    """Award medals; refuse two curves of one model on one probe."""
    models = [(one, held.folder) for held in found for one in held.curves.models]
    medals: list[Medal] = []
    places: dict[tuple[str, str], Path] = {}
    for one, folder in models:
        if not is_model(one):
            continue
        without_model = [
            other
            for other, _ in models
            if not is_model(other)
            and other.random_init is None
            and (other.probe, other.split) == (one.probe, one.split)
        ]
        medal = award(one, without_model)
        other = places.setdefault((medal.probe, medal.model), folder)
        if any((held.probe, held.model) == (medal.probe, medal.model) for held in medals):
            raise UsageError(
                f"{other} and {folder} both hold curves of {medal.model} on {medal.probe}: "
                "leave one of them out"
            )
        medals.append(medal)
    if not medals:
        raise UsageError(
            "the folders hold no curves of trained models: make them with evaluate-probe curve "
            "PROBE --model MODEL -o DIR"
        )
    return Medals(
        rule=RULE,
        probes=list(dict.fromkeys(medal.probe for medal in medals)),
        models=list(dict.fromkeys(medal.model for medal in medals)),
        medals=medals,
    )


FROZEN = ("linear", "mlp", "frozen")
"""Learners that keep the pre-trained model frozen."""

_HALF = 0.5

RULE = [
    "The floor is the strongest model-free result: chance, the baselines of the probe's audit, "
    "and WS of learners over word vectors where they were run on the probe.",
    "Success: WS of the best learner on the frozen model "
    f"({', '.join(FROZEN)}) has an interval entirely above the floor, goes at least half the way "
    "from the floor to 100%, and exceeds WS on each control by a difference whose interval is "
    "above 0. An asterisk marks a success for which no control was run.",
    "Partial: no success, but WS of some learner, or zero-shot accuracy, has an interval entirely "
    "above the floor.",
    "None: neither success nor partial.",
]


def floor_of(one: ModelCurves, without_model: Sequence[ModelCurves]) -> Floor:
    """Return the strongest result reached without a language model.

    Args:
        one: the curves of a model on a probe.
        without_model: the curves of learners without a model on the same probe.
    """
    name, accuracy = one.floor
    held = [Floor(name=name, accuracy=accuracy)]
    held += [
        Floor(name=f"WS of {learner.learner}", accuracy=learner.own.ws.value)
        for other in without_model
        for learner in other.learners
    ]
    return max(held, key=lambda floor: floor.accuracy)


def award(one: ModelCurves, without_model: Sequence[ModelCurves] = ()) -> Medal:
    """Award a model its medal on a probe; arguments as for :func:`floor_of`."""
    floor = floor_of(one, without_model)
    best = max(one.learners, key=_ws)
    frozen = max((held for held in one.learners if held.learner in FROZEN), key=_ws, default=None)
    gaps = (
        []
        if frozen is None
        else [
            ControlGap(config=found.config, difference=found.difference)
            for found in frozen.lang_sense
        ]
    )
    way = None
    if frozen is not None and floor.accuracy < 1:
        way = (_ws(frozen) - floor.accuracy) / (1 - floor.accuracy)
    given, reason = _judge(one, floor, best, frozen, way, gaps)
    return Medal(
        probe=one.probe,
        split=one.split,
        model=model_name(one),
        award=given,
        floor=floor,
        learner=None if frozen is None else frozen.learner,
        ws=None if frozen is None else frozen.own.ws,
        way=way,
        best_learner=best.learner,
        best_ws=best.own.ws,
        zero_shot=one.own_zero_shot,
        controls=gaps,
        reason=reason,
    )


def is_model(one: ModelCurves) -> bool:
    """Return whether curves are of a trained model, not of a baseline or a random restart."""
    return one.model != NO_MODEL and one.random_init is None


def _ws(learner: LearnerCurves) -> float:
    return learner.own.ws.value


def _judge(
    one: ModelCurves,
    floor: Floor,
    best: LearnerCurves,
    frozen: LearnerCurves | None,
    way: float | None,
    gaps: Sequence[ControlGap],
) -> tuple[Award, str]:
    """Return the award, and why it is not a higher one."""
    zero = one.own_zero_shot
    level = f"the floor, {percent(floor.accuracy)} ({floor.name})"
    if not any(
        estimate is not None and estimate.low > floor.accuracy
        for estimate in (zero, *(learner.own.ws for learner in one.learners))
    ):
        return "none", f"no interval of zero-shot accuracy or WS is entirely above {level}"
    if frozen is None or way is None:
        return "partial", "no learner was run on the frozen model"
    ws = frozen.own.ws
    if ws.low <= floor.accuracy:
        above = (
            "zero-shot accuracy"
            if zero is not None and zero.low > floor.accuracy
            else f"WS of {best.learner}"
        )
        return "partial", f"{above} is above {level}, but WS of {frozen.learner} is not"
    if way < _HALF:
        return "partial", (
            f"WS of {frozen.learner} goes {percent(way)} of the way from {level} to 100%"
        )
    for gap in gaps:
        if gap.difference.low <= 0:
            name, least = rendering_name(gap.config), points(gap.difference.low)
            return "partial", (
                f"WS of {frozen.learner} is not clearly above WS on {name} (interval from {least})"
            )
    checked = "no control was run" if not gaps else "it exceeds WS on each control"
    return "success", (
        f"WS of {frozen.learner} goes {percent(way)} of the way from {level} to 100%; {checked}"
    )


_SIGNS = {"success": "✔", "partial": "◐", "none": "–"}


def _document(medals: Medals) -> Document:
    rows: list[Row] = [
        (probe, *(_cell(medals.at(probe, model)) for model in medals.models))
        for probe in medals.probes
    ]
    head = ("medal", "floor", "WS", "zero-shot", "WS minus the control's", "why")
    why: list[Row] = [(medal.probe, medal.model, *_details(medal)) for medal in medals.medals]
    return Document(
        "Medals",
        f"{name_or_count(medals.models, 'models')} on {name_or_count(medals.probes, 'probes')}",
        [
            Section(
                "Which models know which probes",
                [
                    Table(
                        ("probe", *medals.models),
                        rows,
                        "Medal and WS of each model on each probe. Empty cells: not run.",
                    )
                ],
            ),
            Section("The rule", [Findings(medals.rule)]),
            Section("Why", [Table(("probe", "model", *head), why, names=2)]),
        ],
    )


def _cell(medal: Medal | None) -> Cell:
    """Return a table cell with a medal and its WS; an asterisk marks a medal without controls."""
    if medal is None:
        return Cell("")
    text = f"{_SIGNS[medal.award]} {medal.award}{'*' if medal.unchecked else ''}"
    ws = medal.ws or medal.best_ws
    return Cell(
        text, f"WS {percent(ws.value)}, floor {percent(medal.floor.accuracy)}", tone=medal.award
    )


def _details(medal: Medal) -> list[Cell]:
    gaps = "; ".join(
        f"{rendering_name(gap.config)} {difference(gap.difference)}" for gap in medal.controls
    )
    ws = cells.share(medal.ws or medal.best_ws)
    return [
        Cell(medal.award),
        Cell(percent(medal.floor.accuracy), medal.floor.name),
        Cell(f"{medal.learner or medal.best_learner} {ws.text}", ws.note),
        Cell("not available") if medal.zero_shot is None else cells.share(medal.zero_shot),
        Cell(gaps or "not run"),
        Cell(medal.reason),
    ]


MEDALS = Study(
    name="medals",
    help="Show which models know which probes: one table of medals, from the folders that "
    "evaluate-probe curve wrote.",
    expand=None,
    summarise=_summarise,
    document=_document,
    read=_read,
)
"""The study."""
