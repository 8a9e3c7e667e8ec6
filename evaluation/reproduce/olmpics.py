"""oLMpics: Talmor et al. (2020), the table of results of each task, and the medals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.items.sources import open_probe
from evaluation.items.types import setups_of
from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL
from evaluation.names import model_name
from evaluation.reproduce.frame import OwnNumbers, Paper, ReproduceRequest, Step
from evaluation.reproduce.marks import Before, Protocol
from evaluation.reproduce.record import published_papers
from evaluation.results.analyses.answers import answer_shares
from evaluation.results.types import AllResults, read_predictions
from evaluation.studies.curve.axes import CONTROLS, CurveOptions, suitable_learners
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
from kbprobe.format.setups import CLOZE, QUESTION

_OF_CLOZES = {"mlp": "MLP", "mlm_baseline": "MLP", "linear": "linear"}
_OF_QUESTIONS = {"full": "MC-QA", "esim": "MC-QA"}
"""The columns of the paper's learners, by the setup of a probe's rows."""

_AGES, _COMPOSITION = "age_comparison", "encyclopedic_composition"
_VARIANTS = "age_variants"
"""The table of zero-shot answers to the configs of age_comparison that ask in another way."""

_ANSWERS = Capability.MASKED_SCORES | Capability.CAUSAL_SCORES | Capability.SEQ2SEQ_SCORES
"""What it takes to answer without training."""

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
        configs = _configs(Path(source))
        own: dict[str, Any] = {"split": split, "controls": set(CONTROLS) <= configs}
        own |= _QUICK if asked.quick else {}
        before = Before("all single facts") if probe == _COMPOSITION else None
        for model in asked.models:
            able = asked.able(model)
            learners = _learners(able, clozes, asked.quick)
            options = {**own, "learners": learners} if learners else dict(own)
            setup = frozenset({CLOZE if clozes else QUESTION})
            if before and "facts" in configs:
                # Heads on frozen vectors learn nothing before their rows.
                taught = "full" in (learners or suitable_learners(able, setup))
                options |= {"facts_first": True} if taught else {}
            found.append(Step("curve", probe, model, options, before))
            if probe == _AGES:
                found += _variants(asked, model, able, configs, split)
        if vectors is not None:
            found.append(Step("curve", probe, NO_MODEL, {**own, **vectors}))
    return found


def _configs(folder: Path) -> set[str]:
    """Return a probe's configs; published files have none."""
    return set(read_manifest(folder).configs) if holds_manifest(folder) else set()


def _variants(
    asked: ReproduceRequest, model: str, able: Capability, configs: set[str], split: str
) -> list[Step]:
    """Return a model's answers to the variants of age_comparison, as far as it has any."""
    columns = published_papers()[PAPER.name].tables[_VARIANTS].columns
    wanted = [name for name in columns if name in configs]
    if not able & _ANSWERS:
        if wanted:
            asked.left_out.append(
                f"Variants of {_AGES} of {model_name(model)}: it answers nothing without training"
            )
        return []
    options = {"split": split, "facts": False}
    return [Step("zero_shot", _AGES, model, {**options, "config": name}) for name in wanted]


def _learners(able: Capability, clozes: bool, quick: bool) -> tuple[str, ...]:
    """Return the paper's learners for a model, or what comes nearest; none: those that suit it.

    On clozes heads are trained: on the vectors of questions and choices, if a model has none at the
    mask. On questions the whole network is, but a head in the quick version.
    """
    if clozes and Capability.MASKED_SCORES in able:
        return ("linear", "mlp")
    if able & (Capability.CAUSAL_SCORES | Capability.SEQ2SEQ_SCORES):
        return ()
    return ("frozen",) if clozes or quick else ("full",)


def fill(own: OwnNumbers, steps: Sequence[Step]) -> list[Section]:
    """Put learning curves and variants into the tables of their probes, and award medals."""
    models, varied = [], {step.model for step in steps if step.study == "zero_shot"}
    for step in steps:
        if isinstance(step.summary, AllResults):
            _add_variant(own, step)
            continue
        probe, baseline = step.probe, step.model == NO_MODEL
        (model,) = curves_in(step.summary)
        models.append(model)
        own.rows[probe] = model.about.rows
        question = probe in ("property_conjunction", _COMPOSITION)
        columns = _OF_QUESTIONS if question else _OF_CLOZES
        after = "" if not baseline else "ESIM" if question else "MLM-Baseline"
        row = ", ".join(curve.learner for curve in model.own) if baseline else step.name
        if not question:
            zero, untrained = model.about.zero_shot, step.runs(learner=None, config=None)
            own.add(step, untrained, (probe, row, "zero-shot"), zero, after=after)
            if probe == _AGES and step.model in varied:
                own.add(step, untrained, (_VARIANTS, row, "ages"), zero)
        for curve in sorted(model.own, key=lambda of: [*columns, of.learner].index(of.learner)):
            # Learners that the paper lacks have rows of their own.
            name = row if curve.learner in columns else f"{row}, {curve.learner}"
            other = "MC-QA" if question else "linear" if curve.learner in FROZEN else "MLP"
            several = [of for of in model.curves if of.learner == curve.learner]
            _add_curves(own, step, (probe, name), columns.get(curve.learner, other), several, after)
    # The rule needs the curves of baselines next to those of models.
    return [medals_section(award_medals(models)).shown]


def _add_variant(own: OwnNumbers, step: Step) -> None:
    """Add zero-shot accuracy on a variant, and how often the answer is that someone is older."""
    place, (spec,) = (_VARIANTS, step.name, str(step.options["config"])), step.specs
    own.add(step, [spec], place, step.summary.results[0].metrics.accuracy)
    if spec.folder is not None:
        shares = answer_shares(read_predictions(spec.folder))
        given = {share.answer: share.given for share in shares}
        own.add(step, [spec], place, given.get("older"), "older")


def _add_curves(
    own: OwnNumbers,
    step: Step,
    place: tuple[str, str],
    column: str,
    curves: Sequence[Curve],
    after: str,
) -> None:
    """Add a learner's numbers on the probe, and on its controls."""
    specs = step.runs(learner=curves[0].learner, config=None)
    own.add(step, specs, (*place, f"{column} WS"), curves[0].ws, after=after)
    own.add(step, specs, (*place, f"{column} MAX"), curves[0].maximum, after=after)
    # LangSense is that of the first learner: of MLP, where it is run.
    known = own.tables[place[0]][place[1]].cells
    for curve in curves:
        name = {"no_language": "nolang", "perturbed": "pert"}.get(curve.rendering)
        if name is not None and name not in known and curve.lang_sense is not None:
            own.add(step, specs, (*place, name), curve.lang_sense, scale=1)


PAPER = Paper(
    name="olmpics",
    steps=steps,
    fill=fill,
    protocol=Protocol(
        frozenset({"linear", "mlp", "full"}),
        CurveOptions().model_dump(include={"sizes", "seeds", "large_seeds"}),
    ),
    quick={"limit": 40, "limit_by": "rows"},
    build_options=("--for-training",),
    refused="task",
    reduced="{limit} rows of each probe; two training sizes (31, 62) and one draw of each, so that "
    "WS and MAX are not the paper's; heads alone are trained.",
)
"""The reproduction."""
