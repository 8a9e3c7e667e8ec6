"""What the curves show, in sentences."""

from __future__ import annotations

from evaluation.models.checkpoint import NO_MODEL
from evaluation.results.types import Estimate
from evaluation.results.words import AGAINST, interval, last_name, percent, place, points
from evaluation.studies.curve.types import (
    PROBE,
    RANDOM_LABELS,
    LearnerCurves,
    ModelCurves,
)

LEARNERS = {
    "linear": "the candidates' output embeddings, with the model frozen",
    "mlp": "the masked-LM head, with the encoder frozen",
    "frozen": "a linear layer, with the model frozen",
    "full": "the whole network, with a multiple-choice head",
    "full_mlm": "the whole masked LM",
    "mlm_baseline": "a new masked-LM head over word vectors, without a language model",
    "esim": "ESIM over word vectors, without a language model",
    "choice_only": "a network over the word vectors of each choice alone",
    "choice_to_choice": "a network over the word vectors of the choices of a row",
    "question_to_choice": "a network over the word vectors of question and choice",
}
"""What each learner trains."""

RENDERINGS = {
    PROBE: "the probe",
    RANDOM_LABELS: "random labels",
    "no_language": "no language",
    "perturbed": "perturbed language",
}
"""Display names of renderings; others are shown by their config."""


def model_name(one: ModelCurves) -> str:
    """Name a model with its revision, or say that it is random."""
    if one.model == NO_MODEL:
        return "no language model"
    name = last_name(one.model)
    if one.random_init is not None:
        return f"{name}, randomly initialised ({one.random_init + 1})"
    return f"{name} at {one.revision}" if one.revision else name


def rendering_name(rendering: str) -> str:
    """Return a rendering's display name."""
    return RENDERINGS.get(rendering, rendering)


def difference(estimate: Estimate) -> str:
    """Format a difference with its interval: ``+2.1 points (−0.3 to +4.5)``."""
    low, high = points(estimate.low), points(estimate.high)
    return f"{points(estimate.value)} points ({low} to {high})"


def floor_name(one: ModelCurves) -> str:
    """Name the floor, reached without a model: the audit's strongest baseline, or guessing."""
    return "guessing" if one.floor[0] == "chance" else "the strongest baseline"


def _floor_number(one: ModelCurves) -> str:
    name, accuracy = one.floor
    return f"{percent(accuracy)}" if name == "chance" else f"{percent(accuracy)} ({name})"


def untrained(one: ModelCurves) -> str:
    """Describe zero-shot accuracy relative to the strongest baseline."""
    zero, (_, floor) = one.own_zero_shot, one.floor
    if one.model == NO_MODEL:
        return (
            "These learners use no language model. "
            f"{floor_name(one).capitalize()} reaches {_floor_number(one)}."
        )
    if zero is None:
        return (
            "The model cannot be evaluated zero-shot. "
            f"{floor_name(one).capitalize()} reaches {_floor_number(one)}."
        )
    return (
        f"Zero-shot accuracy is {percent(zero.value)} ({interval(zero)}), "
        f"{AGAINST[place(zero, floor)]} {floor_name(one)}, {_floor_number(one)}."
    )


def sentences(one: ModelCurves, learner: LearnerCurves) -> list[str]:
    """Say what a learner's curves show."""
    curve, first, (_, floor) = learner.own, learner.first, one.floor
    said = [
        f"WS is {percent(curve.ws.value)} ({interval(curve.ws)}), "
        f"{AGAINST[place(curve.ws, floor)]} {floor_name(one)}; the highest mean accuracy is "
        f"{percent(curve.maximum.accuracy.value)}, with {curve.maximum.size:,} training rows."
    ]
    start = "chance" if first.before is None else "zero-shot accuracy"
    if first.taught.low > 0:
        what = f"raise accuracy by {difference(first.taught)} over {start}"
    elif first.taught.high < 0:
        what = f"change accuracy by {difference(first.taught)} relative to {start}"
    else:
        what = f"have no detectable effect: {difference(first.taught)} relative to {start}"
    text = f"The first {first.size:,} rows {what}"
    if len(curve.points) > 1:
        text += f"; the remaining rows change accuracy by {difference(first.further)}"
    said.append(f"{text}. {_where_from(one, learner)}")
    for found in learner.lang_sense:
        name = rendering_name(found.config)
        if found.difference.low > 0:
            what = "the words of the question matter"
        elif found.difference.high < 0:
            what = "the control is the easier of the two"
        else:
            what = "no evidence that the words of the question matter"
        said.append(
            f"LangSense with {name} as control is {found.value.value:.1f} points; WS differs by "
            f"{difference(found.difference)}: {what}."
        )
    if learner.selectivity:
        last = learner.selectivity[-1]
        text = (
            f"With {last.size:,} training rows, selectivity (accuracy minus accuracy on random "
            f"labels) is {difference(last.value)}"
        )
        if last.seen is not None:
            text += f"; {percent(last.seen)} of the test rows can be answered from memory"
        said.append(f"{text}.")
    code = curve.code_length
    if code is not None:
        said.append(
            f"Encoding the answers of {code.rows:,} rows takes {code.bits:,.0f} bits instead of "
            f"{code.uniform_bits:,.0f}: a compression of {code.compression:.2f}."
        )
    return said


def _where_from(one: ModelCurves, learner: LearnerCurves) -> str:
    """Say whether knowledge was present after the first rows, or was learnt from many."""
    first, (_, floor) = learner.first, one.floor
    trained = one.model != NO_MODEL and one.random_init is None
    if first.after.low > floor and trained:
        return (
            "So few rows can hardly teach the task: accuracy above "
            f"{floor_name(one)} comes from pre-training."
        )
    best = next(p for p in learner.own.points if p.size == learner.own.maximum.size)
    if learner.own.ws.low <= floor and best.accuracy.low <= floor:
        return f"Accuracy is not clearly above {floor_name(one)} at any size."
    if first.further.low > 0:
        return f"The gain over {floor_name(one)} was learnt from the probe's own rows."
    return f"It is unclear whether the gain over {floor_name(one)} was learnt from these rows."
