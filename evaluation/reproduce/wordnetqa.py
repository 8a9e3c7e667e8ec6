"""WordNetQA and DictionaryQA: Richardson and Sabharwal (2020), Tables 7 and 8."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.items.sources import open_probe
from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL
from evaluation.names import folder_name, options_name
from evaluation.reproduce.frame import Asked, Ended, OwnNumbers, Paper, Step, own_name
from evaluation.results.types import AllResults
from evaluation.runs.executor import execute
from evaluation.runs.spec import RunSpec
from evaluation.studies.baselines.record import BaselinesSummary
from evaluation.studies.inoculate.record import InoculateSummary
from kbprobe.progress import Progress

PROBES = {
    "wordnet_definitions": "definitions",
    "wordnet_synonymy": "synonymy",
    "wordnet_hypernymy": "hypernymy",
    "wordnet_hyponymy": "hyponymy",
    "dictionary_wordsense": "dictionary",
}
"""The probes, and what names of published files contain."""

BASELINES = {
    "random": "random",
    "vec_similarity_published": "VecSimilarity",
    "choice_only": "choice-only GloVe",
    "choice_to_choice": "choice-to-choice GloVe",
    "question_to_choice": "question-to-choice GloVe",
}
"""Baselines of the study, each with the published row that it reproduces."""

_SMALL = {"sizes": (100,), "learning_rates": (5e-5,), "epoch_counts": (1,), "seeds": 1}
"""Inoculation in the quick version."""

_LIKELIHOODS = Capability.CAUSAL_SCORES | Capability.SEQ2SEQ_SCORES


def _scores_text(asked: Asked, model: str) -> bool:
    """Return whether a model scores choices by their likelihood."""
    return bool(asked.able(model) & _LIKELIHOODS)


def _has_head(asked: Asked, model: str) -> bool:
    return Capability.CHOICE_HEAD in asked.able(model)


def prepare(asked: Asked, progress: Progress) -> Asked:
    """Train a multiple-choice head on the task for each encoder that has none."""
    if asked.task is None:
        asked.left_out.append(
            "Inoculation, its cost, and encoders without a multiple-choice head: name the task "
            "that models are trained for first with --task, such as a folder of CommonsenseQA."
        )
        return asked
    return replace(asked, models=[_with_head(asked, model, progress) for model in asked.models])


def _with_head(asked: Asked, model: str, progress: Progress) -> str:
    if _scores_text(asked, model) or _has_head(asked, model):
        return model
    task = str(asked.task)
    rows = len(open_probe(task, split="train").items)
    values: dict[str, Any] = {
        **asked.values,
        "split": "validation",
        "learner": "full",
        "train": min(rows, 200) if asked.quick else rows,
        "epochs": 1 if asked.quick else 3,
    }
    named = options_name(RunSpec.parse(task, model, values).named_options())
    name = Path(named, f"{folder_name(model)}+{folder_name(task)}")
    folder = asked.output / "models" / name
    values["keep_checkpoint"] = str(folder)
    spec = RunSpec.parse(task, model, values, asked.output / "tasks" / name)
    for outcome in execute([spec], progress=progress, reports=False):
        outcome.or_raise()
    return str(folder)


def steps(asked: Asked) -> list[Step]:
    """Return zero-shot evaluation, baselines on both splits, and inoculation."""
    probes, found = list(asked.probes), []
    names = tuple(BASELINES) if asked.has_vectors() else ("random",)
    fewer: dict[str, Any] = {"rows": 300, "seeds": 1} if asked.quick else {}
    vectors = asked.vector_options if len(names) > 1 else {}
    for split in ("test",) if asked.quick else ("validation", "test"):
        options = {"baselines": names, "split": split, **fewer, **vectors}
        found.append(Step("baselines", probes, [NO_MODEL], options, split))
        for model in asked.models:
            if _scores_text(asked, model) or _has_head(asked, model):
                shown = {"split": split, "facts": False}
                found.append(Step("zero_shot", probes, [model], shown, split))
    for model in asked.models:
        if not _scores_text(asked, model):
            # On one split alone, so that each training is done once.
            few = {"rows": 60, "seeds": 1, "epochs": 1} if asked.quick else {}
            options = {"baselines": ("random",), "split": "test", **few}
            found.append(Step("baselines", probes, [model], options, "test"))
    for model in asked.models:
        if asked.task is not None and _has_head(asked, model):
            options = {"original": asked.task, **(_SMALL if asked.quick else {})}
            # One by one: the paper tests no probe after training on another.
            found += [Step("inoculate", [probe], [model], options, probe) for probe in probes]
    return found


def fill(own: OwnNumbers, ended: Ended) -> None:
    """Put the numbers of a study into Tables 7 and 8."""
    names = ended.piece.names
    summary, split = ended.summary, ended.piece.step.tag
    if isinstance(summary, BaselinesSummary):
        _fill_baselines(own, summary, names, split)
    elif isinstance(summary, AllResults):
        for results in summary.results:
            probe, metrics = names[results.probe.source], results.metrics
            row, after = own_name(results.model.id, "zero-shot"), "RoBERTa science QA zero-shot"
            own.add(("accuracy", row, probe), metrics.accuracy, split, after=after)
            if split == "test" and metrics.clusters != metrics.accuracy.n:
                _add_strict(
                    own, row, probe, metrics.strict_accuracy, metrics.accuracy.value, "choice-only"
                )
    elif isinstance(summary, InoculateSummary):
        _fill_inoculation(own, summary, names)


def _fill_baselines(
    own: OwnNumbers, summary: BaselinesSummary, names: dict[str, str], split: str
) -> None:
    for one in summary.probes:
        probe = names[one.source]
        if split == "test":
            own.rows[probe] = one.rows
        for found in one.baselines:
            after = BASELINES.get(found.name, "choice-only RoBERTa")
            own.add(("accuracy", found.name, probe), found.accuracy, split, after=after)


def _fill_inoculation(own: OwnNumbers, summary: InoculateSummary, names: dict[str, str]) -> None:
    for model in summary.models:
        for one in model.probes:
            probe, best = names[one.source], one.at_best
            row, after = own_name(model.model, "inoculated"), "RoBERTa inoculated"
            place = "accuracy", row, probe
            own.add(place, best.probe, "validation", after=after)
            own.add(place, best.test, "test")
            own.add(place, best.cost, "cost", scale=1)
            _add_strict(own, row, probe, best.strict, best.test.value, after)


def _add_strict(
    own: OwnNumbers, row: str, probe: str, strict: Any, accuracy: float, after: str
) -> None:
    if strict is not None:
        own.add(("strict", row, probe), strict, "strict", after=after)
        own.add(("strict", row, probe), strict.value - accuracy, "difference")


WORDNETQA = Paper(
    name="wordnetqa",
    probes=PROBES,
    steps=steps,
    fill=fill,
    prepare=prepare,
    # Whole clusters, as strict accuracy needs them.
    quick={"limit": 50},
    differences=[
        "The paper's models are trained on five collections of science questions (ARC, OpenBookQA "
        "and others) after RACE; yours on the task named with --task, or on none: causal and "
        "sequence-to-sequence models are scored as they are, by the likelihood of each choice.",
        "Strict cluster accuracy is of the test split here, and of the validation split in the "
        "paper.",
        "Cost is that of the size and setting with the best mean of both tasks, on the validation "
        "split of the task.",
    ],
    of_builds=[
        "The rows are newly built: distractors are drawn so that the choices alone tell nothing, "
        "while in the published data choice-only models reach 62% on hypernymy (chance: 20%). "
        "Expect lower partial-input baselines, and lower accuracy without training.",
        "Clusters are smaller than the published ones (means: definitions 10, synonymy 6, "
        "hypernymy 5, hyponymy 11 questions), so that strict accuracy is closer to accuracy.",
    ],
    reduced="50 rows of a split, and of validation only where settings are chosen on it; baselines "
    "fitted on 300 rows, once, and the choices alone on 60 in one epoch; one inoculation setting "
    "(100 rows, learning rate 5e-5, one epoch, one seed); the task learnt from 200 rows.",
)
"""The reproduction."""
