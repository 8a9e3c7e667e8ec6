"""The rule by which medals are awarded, after the manually assigned marks in [O], Table 1."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.models.checkpoint import NO_MODEL
from evaluation.results.words import percent, points
from evaluation.studies.curve.types import LearnerCurves, ModelCurves
from evaluation.studies.curve.words import model_name, rendering_name
from evaluation.studies.medals.types import Award, ControlGap, Floor, Medal

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
    """Tell whether curves are of a trained model, not of a baseline or a random restart."""
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
