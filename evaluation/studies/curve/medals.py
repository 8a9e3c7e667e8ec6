"""Medals: which models know which probes, awarded by a rule to their learning curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evaluation.models.checkpoint import NO_MODEL
from evaluation.report import cells
from evaluation.results.words import difference, percent, points
from evaluation.studies.curve import record
from kbprobe.document import Cell, Findings, Row, Section, Table, Value


def award_medals(models: Sequence[record.ModelCurves]) -> list[record.Medal]:
    """Award a medal to each trained model on each probe that it was run on."""
    return [
        award(
            one,
            [
                other
                for other in models
                if (other.model, other.random_init) == (NO_MODEL, None)
                and (other.probe, other.split) == (one.probe, one.split)
            ],
        )
        for one in models
        if one.is_trained
    ]


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


def award(
    one: record.ModelCurves, without_model: Sequence[record.ModelCurves] = ()
) -> record.Medal:
    """Award a model its medal on a probe, given the curves of learners without a model."""
    name, accuracy = one.floor
    floors = [record.Floor(name=name, accuracy=accuracy)] + [
        record.Floor(name=f"WS of {learner.learner}", accuracy=learner.own.ws.value)
        for other in without_model
        for learner in other.learners
    ]
    floor = max(floors, key=lambda floor: floor.accuracy)
    best = max(one.learners, key=_ws)
    frozen = max((held for held in one.learners if held.learner in FROZEN), key=_ws, default=None)
    gaps = [
        record.ControlGap(config=found.config, difference=found.difference)
        for found in (frozen.lang_sense if frozen else ())
    ]
    way = None
    if frozen is not None and floor.accuracy < 1:
        way = (_ws(frozen) - floor.accuracy) / (1 - floor.accuracy)
    given, reason = _judge(one, floor, best, frozen, way, gaps)
    return record.Medal(
        probe=one.probe,
        split=one.split,
        model=record.model_name(one),
        award=given,
        floor=floor,
        learner=frozen and frozen.learner,
        ws=frozen and frozen.own.ws,
        way=way,
        best_learner=best.learner,
        best_ws=best.own.ws,
        zero_shot=one.own_zero_shot,
        controls=gaps,
        reason=reason,
    )


def _ws(learner: record.LearnerCurves) -> float:
    return learner.own.ws.value


def _judge(
    one: record.ModelCurves,
    floor: record.Floor,
    best: record.LearnerCurves,
    frozen: record.LearnerCurves | None,
    way: float | None,
    gaps: Sequence[record.ControlGap],
) -> tuple[record.Award, str]:
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
            name, least = record.rendering_name(gap.config), points(gap.difference.low)
            return "partial", (
                f"WS of {frozen.learner} is not clearly above WS on {name} (interval from {least})"
            )
    checked = "no control was run" if not gaps else "it exceeds WS on each control"
    return "success", (
        f"WS of {frozen.learner} goes {percent(way)} of the way from {level} to 100%; {checked}"
    )


_SIGNS = {"success": "✔", "partial": "◐", "none": "–"}


def medal_sections(medals: Sequence[record.Medal]) -> list[Section]:
    """Return the sections on medals: the table of probes by models, the rule, and the reasons."""
    if not medals:
        return []
    named = {(medal.probe, medal.model): medal for medal in medals}
    probes = dict.fromkeys(medal.probe for medal in medals)
    models = dict.fromkeys(medal.model for medal in medals)
    rows: list[Row] = [
        (probe, *(_cell(named.get((probe, model))) for model in models)) for probe in probes
    ]
    return [
        Section(
            "Medals: Which models know which probes",
            [
                Table(
                    ("probe", *models),
                    rows,
                    "Medal and WS of each model on each probe. Empty cells: not run.",
                )
            ],
        ),
        Section("Medals: The rule", [Findings(RULE)]),
        Section("Medals: Why", [Table.of(medals, _DETAILS, names=2)]),
    ]


def _cell(medal: record.Medal | None) -> Cell:
    """Return a table cell with a medal and its WS; an asterisk marks a medal without controls."""
    if medal is None:
        return Cell("")
    text = f"{_SIGNS[medal.award]} {medal.award}{'*' if medal.unchecked else ''}"
    ws = medal.ws or medal.best_ws
    return Cell(
        text, f"WS {percent(ws.value)}, floor {percent(medal.floor.accuracy)}", tone=medal.award
    )


def _gaps(medal: record.Medal) -> str:
    """Return how much higher WS is than on each control, in words."""
    gaps = (
        f"{record.rendering_name(gap.config)} {difference(gap.difference)}"
        for gap in medal.controls
    )
    return "; ".join(gaps) or "not run"


def _learner_ws(medal: record.Medal) -> Cell:
    ws = cells.share(medal.ws or medal.best_ws)
    return Cell(f"{medal.learner or medal.best_learner} {ws.text}", ws.note)


_DETAILS: Mapping[str, Callable[[record.Medal], Value]] = {
    "probe": lambda medal: medal.probe,
    "model": lambda medal: medal.model,
    "medal": lambda medal: medal.award,
    "floor": lambda medal: Cell(percent(medal.floor.accuracy), medal.floor.name),
    "WS": _learner_ws,
    "zero-shot": lambda medal: medal.zero_shot or "not available",
    "WS minus the control's": _gaps,
    "why": lambda medal: medal.reason,
}
"""The columns of the table of reasons."""
