"""oLMpics: Talmor et al. (2020), the table of results of each task, and the medals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.items.sources import open_probe
from evaluation.items.types import setups_of
from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL
from evaluation.reproduce.frame import OwnNumbers, Paper, ReproduceRequest, Step
from evaluation.studies.curve.axes import CONTROLS
from evaluation.studies.curve.medals import FROZEN, award_medals, medal_sections
from evaluation.studies.curve.record import LearnerCurves
from kbprobe.document import Section
from kbprobe.errors import KbprobeError
from kbprobe.format.manifest import holds_manifest, read_manifest
from kbprobe.format.setups import CLOZE

_OF_CLOZES = {"mlp": "MLP", "mlm_baseline": "MLP", "linear": "linear"}
_OF_QUESTIONS = {"full": "MC-QA", "esim": "MC-QA"}
"""The columns of the paper's learners, by the setup of a probe's rows."""

_QUICK = {"sizes": (31, 62), "seeds": 1, "large_seeds": 1}


def steps(asked: ReproduceRequest) -> list[Step]:
    """Return the learning curves of each model, with controls where a probe has them."""
    vectors, found = asked.vector_options(), []
    # oLMpics published no test split.
    split = "validation" if asked.published else "test"
    for probe, source in asked.probes.items():
        try:
            clozes = setups_of(open_probe(source, split=split).items) == {CLOZE}
        except KbprobeError as error:
            asked.left_out.append(f"{probe}: {error}")
            continue
        own: dict[str, Any] = {"split": split, "controls": _has_controls(Path(source))}
        own |= _QUICK if asked.quick else {}
        for model in asked.models:
            learners = _learners(asked.able(model), clozes, asked.quick)
            options = {**own, "learners": learners} if learners else own
            found.append(Step("curve", probe, model, options))
        if vectors is not None:
            found.append(Step("curve", probe, NO_MODEL, {**own, **vectors}))
    return found


def _has_controls(folder: Path) -> bool:
    """Return whether a probe has the controls' configs, which published files lack."""
    return holds_manifest(folder) and set(CONTROLS) <= set(read_manifest(folder).configs)


def _learners(able: Capability, clozes: bool, quick: bool) -> tuple[str, ...]:
    """Return the paper's learners for a model; none: those that suit it.

    Quick: no whole network is fine-tuned.
    """
    if clozes and Capability.MASKED_SCORES in able:
        return ("linear", "mlp")
    return ("frozen",) if quick and Capability.CAUSAL_SCORES not in able else ()


def fill(own: OwnNumbers, steps: Sequence[Step]) -> list[Section]:
    """Put learning curves into the tables of their probes, and award medals."""
    for step in steps:
        probe, baseline = step.probe, step.model == NO_MODEL
        (one,) = step.summary.models
        own.rows[probe] = one.rows
        question = probe in ("property_conjunction", "encyclopedic_composition")
        columns = _OF_QUESTIONS if question else _OF_CLOZES
        after = "" if not baseline else "ESIM" if question else "MLM-Baseline"
        row = ", ".join(curves.learner for curves in one.learners) if baseline else step.name
        if not question:
            own.add((probe, row, "zero-shot"), one.own_zero_shot, after=after)
        for curves in sorted(one.learners, key=lambda of: [*columns, of.learner].index(of.learner)):
            # Learners that the paper lacks have rows of their own.
            name = row if curves.learner in columns else f"{row}, {curves.learner}"
            other = "MC-QA" if question else "linear" if curves.learner in FROZEN else "MLP"
            _add_curve(own, (probe, name), columns.get(curves.learner, other), curves, after)
    # The rule needs the curves of baselines next to those of models.
    return medal_sections(award_medals([one for step in steps for one in step.summary.models]))


def _add_curve(
    own: OwnNumbers, place: tuple[str, str], column: str, curves: LearnerCurves, after: str
) -> None:
    own.add((*place, f"{column} WS"), curves.own.ws, after=after)
    own.add((*place, f"{column} MAX"), curves.own.maximum.accuracy, after=after)
    # LangSense is that of the first learner: of MLP, where it is run.
    known = own.tables[place[0]][place[1]].cells
    for sense in curves.lang_sense:
        name = {"no_language": "nolang", "perturbed": "pert"}[sense.config]
        if name not in known:
            own.add((*place, name), sense.value, scale=1)


PAPER = Paper(
    name="olmpics",
    steps=steps,
    fill=fill,
    quick={"limit": 40, "limit_by": "rows"},
    refused="task",
    reduced="40 rows of each probe; two training sizes (31, 62) and one draw of each, so that WS "
    "and MAX are not the paper's; heads alone are trained.",
)
"""The reproduction."""
