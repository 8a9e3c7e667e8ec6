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
from evaluation.studies.curve.numbers import (
    FROZEN,
    Curve,
    award_medals,
    curves_in,
    medals_section,
)
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
    models = []
    for step in steps:
        probe, baseline = step.probe, step.model == NO_MODEL
        (model,) = curves_in(step.summary)
        models.append(model)
        own.rows[probe] = model.about.rows
        question = probe in ("property_conjunction", "encyclopedic_composition")
        columns = _OF_QUESTIONS if question else _OF_CLOZES
        after = "" if not baseline else "ESIM" if question else "MLM-Baseline"
        row = ", ".join(curve.learner for curve in model.own) if baseline else step.name
        if not question:
            own.add((probe, row, "zero-shot"), model.about.zero_shot, after=after)
        for curve in sorted(model.own, key=lambda of: [*columns, of.learner].index(of.learner)):
            # Learners that the paper lacks have rows of their own.
            name = row if curve.learner in columns else f"{row}, {curve.learner}"
            other = "MC-QA" if question else "linear" if curve.learner in FROZEN else "MLP"
            several = [of for of in model.curves if of.learner == curve.learner]
            _add_curves(own, (probe, name), columns.get(curve.learner, other), several, after)
    # The rule needs the curves of baselines next to those of models.
    return [medals_section(award_medals(models)).shown]


def _add_curves(
    own: OwnNumbers, place: tuple[str, str], column: str, curves: Sequence[Curve], after: str
) -> None:
    """Add a learner's numbers on the probe, and on its controls."""
    own.add((*place, f"{column} WS"), curves[0].ws, after=after)
    own.add((*place, f"{column} MAX"), curves[0].maximum, after=after)
    # LangSense is that of the first learner: of MLP, where it is run.
    known = own.tables[place[0]][place[1]].cells
    for curve in curves:
        name = {"no_language": "nolang", "perturbed": "pert"}.get(curve.rendering)
        if name is not None and name not in known and curve.lang_sense is not None:
            own.add((*place, name), curve.lang_sense, scale=1)


PAPER = Paper(
    name="olmpics",
    steps=steps,
    fill=fill,
    quick={"limit": 40, "limit_by": "rows"},
    build_options=("--for-training",),
    refused="task",
    reduced="40 rows of each probe; two training sizes (31, 62) and one draw of each, so that WS "
    "and MAX are not the paper's; heads alone are trained.",
)
"""The reproduction."""
