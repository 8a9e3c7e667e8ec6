"""What is seen in the curves, in sentences."""

from __future__ import annotations

from evaluation.models.checkpoint import NO_MODEL
from evaluation.results.types import Estimate
from evaluation.results.words import interval, last_name, percent, points
from evaluation.studies.curve.types import (
    PROBE,
    RANDOM_LABELS,
    LearnerCurves,
    ModelCurves,
)

LEARNERS = {
    "linear": "output vectors of the candidates, on the frozen model",
    "mlp": "the head of the masked LM, on the frozen encoder",
    "frozen": "a linear unit, on the frozen model",
    "full": "the whole network, as a multiple-choice model",
    "full_mlm": "the whole masked LM",
    "mlm_baseline": "a new head over word vectors, without a language model",
    "esim": "ESIM over word vectors, without a language model",
}
"""What each learner trains."""

RENDERINGS = {
    PROBE: "the probe",
    RANDOM_LABELS: "random labels",
    "no_language": "no language",
    "perturbed": "perturbed language",
}
"""Renderings as people call them; others are called by their config."""


def model_name(one: ModelCurves) -> str:
    """Name a model with its revision, or say that it is random."""
    if one.model == NO_MODEL:
        return "no language model"
    name = last_name(one.model)
    if one.random_init is not None:
        return f"{name}, randomly initialised ({one.random_init + 1})"
    return f"{name} at {one.revision}" if one.revision else name


def rendering_name(rendering: str) -> str:
    """Name a rendering for people."""
    return RENDERINGS.get(rendering, rendering)


def difference(estimate: Estimate) -> str:
    """Spell a difference with its interval: ``+2.1 points (−0.3 to +4.5)``."""
    low, high = points(estimate.low), points(estimate.high)
    return f"{points(estimate.value)} points ({low} to {high})"


def floor_name(one: ModelCurves) -> str:
    """Name what is reached without knowledge: by the audit's strongest baseline, or by guessing."""
    return "guessing" if one.floor[0] == "chance" else "the strongest baseline"


def _floor_number(one: ModelCurves) -> str:
    name, accuracy = one.floor
    return f"{percent(accuracy)}" if name == "chance" else f"{percent(accuracy)} ({name})"


def untrained(one: ModelCurves) -> str:
    """Say what the model knows without training, beside the strongest baseline."""
    zero, (_, floor) = one.own_zero_shot, one.floor
    if one.model == NO_MODEL:
        return (
            "What is learnt without a language model. "
            f"{floor_name(one).capitalize()} gets {_floor_number(one)}."
        )
    if zero is None:
        return (
            "The model cannot be asked without training. "
            f"{floor_name(one).capitalize()} gets {_floor_number(one)}."
        )
    return (
        f"Without training the model gets {percent(zero.value)} right ({interval(zero)}), "
        f"{_against(zero, floor)} {floor_name(one)}, {_floor_number(one)}."
    )


def _against(estimate: Estimate, floor: float) -> str:
    if estimate.low > floor:
        return "above"
    return "below" if estimate.high < floor else "not to be told from"


def sentences(one: ModelCurves, learner: LearnerCurves) -> list[str]:
    """Say what a learner's curves show."""
    curve, first, (_, floor) = learner.own, learner.first, one.floor
    said = [
        f"WS is {percent(curve.ws.value)} ({interval(curve.ws)}), "
        f"{_against(curve.ws, floor)} {floor_name(one)}; the best mean accuracy is "
        f"{percent(curve.maximum.accuracy.value)}, after {curve.maximum.size:,} rows."
    ]
    start = "guessing" if first.before is None else "zero-shot"
    if first.taught.low > 0:
        what = f"raise accuracy by {difference(first.taught)} over {start}"
    elif first.taught.high < 0:
        what = f"lower accuracy by {difference(first.taught)} against {start}"
    else:
        what = f"change nothing that can be told ({difference(first.taught)} against {start})"
    text = f"The first {first.size:,} rows {what}"
    if len(curve.points) > 1:
        text += f"; all further rows bring {difference(first.further)}"
    said.append(f"{text}. {_where_from(one, learner)}")
    for found in learner.lang_sense:
        name = rendering_name(found.config)
        if found.difference.low > 0:
            what = "the words of the question matter"
        elif found.difference.high < 0:
            what = "the control is the easier of the two"
        else:
            what = "that the words of the question matter is not shown"
        said.append(
            f"LangSense against {name} is {found.value.value:.1f} points; WS differs by "
            f"{difference(found.difference)}: {what}."
        )
    if learner.selectivity:
        last = learner.selectivity[-1]
        text = (
            f"After {last.size:,} rows accuracy differs by {difference(last.value)} from that on "
            "random labels (selectivity)"
        )
        if last.seen is not None:
            text += f", where {percent(last.seen)} of the test rows could be told from memory"
        said.append(f"{text}.")
    code = curve.code_length
    if code is not None:
        said.append(
            f"The answers of {code.rows:,} rows take {code.bits:,.0f} bits instead of "
            f"{code.uniform_bits:,.0f}: a compression of {code.compression:.2f}."
        )
    return said


def _where_from(one: ModelCurves, learner: LearnerCurves) -> str:
    """Say whether what is known was there after the first rows, or was learnt from many."""
    first, (_, floor) = learner.first, one.floor
    trained = one.model != NO_MODEL and one.random_init is None
    if first.after.low > floor and trained:
        return "So few can hardly teach the task: what is above came with pre-training."
    best = next(p for p in learner.own.points if p.size == learner.own.maximum.size)
    if learner.own.ws.low <= floor and best.accuracy.low <= floor:
        return f"Nothing above {floor_name(one)} is shown at any size."
    if first.further.low > 0:
        return f"What is above {floor_name(one)} was learnt from the probe's own rows."
    return f"Whether what is above {floor_name(one)} was learnt from them is not shown."
