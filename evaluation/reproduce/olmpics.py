"""oLMpics: Talmor et al. (2020), the table of results of each task, and the medals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL
from evaluation.reproduce.frame import Asked, Ended, OwnNumbers, Paper, Step, own_name, setups_in
from evaluation.studies.curve.axes import CONTROLS
from evaluation.studies.curve.medals import FROZEN, award_medals, medal_sections
from evaluation.studies.curve.record import CurveSummary, LearnerCurves, ModelCurves
from kbprobe.document import Section
from kbprobe.format.manifest import MANIFEST, read_manifest
from kbprobe.format.setups import CLOZE

PROBES = {
    "age_comparison": "age_comparison|age_compare",
    "object_comparison": "object_comparison|size_comparison",
    "always_never": "always_never|coffee_cats_quantifiers",
    "antonym_negation": "antonym_negation|antonym_synonym_negation",
    "taxonomy_conjunction": "taxonomy_conjunction|hypernym_conjunction",
    "multihop_comparison": "multihop_comparison|multihop_composition|compositional_comparison",
    "property_conjunction": "property_conjunction|conjunction_filt",
    "encyclopedic_composition": "encyclopedic_composition|composition_v",
}
"""The probes, and what names of published files contain: the authors' own, or those of copies."""

_QUICK = {"sizes": (62, 125), "seeds": 1, "large_seeds": 1}


def steps(asked: Asked) -> list[Step]:
    """Return the learning curves of each model, with controls where a probe has them."""
    groups: dict[tuple[bool, bool], list[str]] = {}
    for name, setups in setups_in(asked, list(asked.probes)).items():
        groups.setdefault((setups == {CLOZE}, _has_controls(asked.probes[name])), []).append(name)
    vectors, found = asked.has_vectors(), []
    for (clozes, controls), probes in groups.items():
        own: dict[str, Any] = {"split": asked.split, "controls": controls}
        own |= _QUICK if asked.quick else {}
        tag = f"{'cloze' if clozes else 'question'}{'s-controls' if controls else 's'}"
        for model in asked.models:
            learners = _learners(asked.able(model), clozes, asked.quick)
            options = {**own, "learners": learners} if learners else own
            found.append(Step("curve", probes, [model], options, tag))
        if vectors:
            found.append(Step("curve", probes, [NO_MODEL], {**own, **asked.vector_options}, tag))
    return found


def _has_controls(source: str) -> bool:
    """Return whether a probe has the controls' configs, which published files lack."""
    folder = Path(source)
    return (folder / MANIFEST).is_file() and set(CONTROLS) <= set(read_manifest(folder).configs)


def _learners(able: Capability, clozes: bool, quick: bool) -> tuple[str, ...]:
    """Return the paper's learners for a model; none: those that suit it.

    Quick: no whole network is fine-tuned.
    """
    if clozes and Capability.MASKED_SCORES in able:
        return ("linear", "mlp")
    if Capability.CAUSAL_SCORES in able:
        return ()
    return ("frozen",) if quick else ()


def fill(own: OwnNumbers, ended: Ended) -> None:
    """Put learning curves into the tables of their probes."""
    summary = ended.summary
    assert isinstance(summary, CurveSummary)
    for probe, one in zip(ended.piece.step.probes, summary.models, strict=True):
        own.rows[probe] = one.rows
        _fill(own, probe, one)


def _fill(own: OwnNumbers, probe: str, one: ModelCurves) -> None:
    question = probe in ("property_conjunction", "encyclopedic_composition")
    baseline = one.model == NO_MODEL
    after = "" if not baseline else "ESIM" if question else "MLM-Baseline"
    learners = {curves.learner: curves for curves in one.learners}
    row = ", ".join(learners) if baseline else own_name(one.model)
    if not question:
        own.add((probe, row, "zero-shot"), one.own_zero_shot, after=after)
        shown = {"MLP": ("mlp", "mlm_baseline"), "linear": ("linear",)}
    else:
        shown = {"MC-QA": ("full", "esim")}
    placed: set[str] = set()
    for column, those in shown.items():
        for name in those:
            if name in learners:
                _add_curve(own, (probe, row), column, learners[name], after)
                placed.add(name)
    for name, curves in learners.items():
        # Learners that the paper lacks have rows of their own.
        if name not in placed:
            column = "MC-QA" if question else "linear" if name in FROZEN else "MLP"
            _add_curve(own, (probe, f"{row}, {name}"), column, curves, after)


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


def sections(ended: Sequence[Ended]) -> list[Section]:
    """Return the medals of all curves, by the rule of the study."""
    curves = [one.summary for one in ended if isinstance(one.summary, CurveSummary)]
    return medal_sections(award_medals([model for held in curves for model in held.models]))


OLMPICS = Paper(
    name="olmpics",
    probes=PROBES,
    steps=steps,
    fill=fill,
    sections=sections,
    quick={"limit": 50, "limit_by": "rows"},
    refused=["task"],
    differences=[
        "MLP and linear train a head on the frozen model, as the paper describes them; the "
        "published configuration has a learning rate of 0. Causal models have no head at a mask: "
        "only linear is fitted.",
        "pert and nolang are LangSense of the MLP head, or of the only learner there is. They are "
        "never negative, so noise alone makes them positive.",
        "An answer of several tokens is scored by all of them, and padding is masked; the "
        "published code scores the first piece, so that its numbers depend on the batch.",
        "always_never has no answers until people give them (release-probe annotate); "
        "property_conjunction needs ConceptNet, and encyclopedic_composition Wikidata.",
        "The medals follow a rule that is printed; the paper's are judgements.",
    ],
    of_builds=[
        "The rows are newly built. Published always_never and antonym_negation can be guessed "
        "from their sentence frame alone (53% and 69%), and published multihop_comparison repeats "
        "ages within a row: built rows do not.",
        "The default wordings differ from the paper's; build age_comparison with --wording tacl "
        "for the paper's own.",
    ],
    reduced="50 rows of each probe; two training sizes (62, 125) and one draw of each, so that WS "
    "and MAX are not the paper's; heads alone are trained.",
)
"""The reproduction."""
