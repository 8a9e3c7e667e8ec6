"""WordNetQA and DictionaryQA: Richardson and Sabharwal (2020), Tables 7 and 8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.items.sources import open_probe
from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL
from evaluation.names import folder_name, options_name
from evaluation.reproduce.frame import OwnNumbers, Paper, ReproduceRequest, Step
from evaluation.reproduce.marks import Before, Protocol
from evaluation.results.types import AllResults, Estimate
from evaluation.runs.executor import execute
from evaluation.runs.spec import RunSpec
from evaluation.studies.inoculate.axes import InoculateOptions
from evaluation.studies.table import StudyTables
from evaluation.workers import Session
from kbprobe.document import Section

BASELINES = {
    "random": "random",
    "vec_similarity_published": "VecSimilarity",
    "choice_only": "choice-only GloVe",
    "choice_to_choice": "choice-to-choice GloVe",
    "question_to_choice": "question-to-choice GloVe",
}
"""Baselines of the study, each with the published row that it reproduces."""

_SMALL = {"sizes": (48,), "learning_rates": (5e-5,), "epoch_counts": (1,), "seeds": 1}
"""Inoculation in the quick version."""

_ALONE = {"learner": "frozen", "train": 100, "inputs": "choices", "facts": False, "split": "test"}
"""How the choices alone are learnt in the quick version."""

_LIKELIHOODS = Capability.CAUSAL_SCORES | Capability.SEQ2SEQ_SCORES
_READY = _LIKELIHOODS | Capability.CHOICE_HEAD
"""What it takes to answer without further training: likelihoods of texts, or a trained head."""


def steps(asked: ReproduceRequest) -> list[Step]:
    """Return zero-shot evaluation, baselines, and inoculation."""
    if asked.task is None:
        asked.left_out.append(
            "Inoculation, its cost, and encoders without a multiple-choice head: name the task "
            "that models are trained for first with --task, such as a folder of CommonsenseQA."
        )
    vectors, found = asked.vector_options(), []
    names = ("random",) if vectors is None else tuple(BASELINES)
    before = Before("RACE, then five sets of science questions", asked.task)
    fewer: dict[str, Any] = {"rows": 300, "seeds": 1} if asked.quick else {}
    splits = ("test",) if asked.quick else ("validation", "test")
    probes = list(asked.probes)
    for split in splits:
        options = {"baselines": names, "split": split, **fewer, **(vectors or {})}
        found += [Step("baselines", probe, options=options) for probe in probes]
    for given in asked.models:
        able = asked.able(given)
        model = given if able & _READY else _with_head(asked, given)
        if model is not None:
            for split in splits:
                options = {"split": split, "facts": False}
                found += [
                    Step("zero_shot", probe, model, options, before) for probe in asked.probes
                ]
        if not able & _LIKELIHOODS:
            # On one split alone, so that each training is done once.
            step = Step("baselines", "", given, {"baselines": ("random",), "split": "test"})
            if asked.quick:
                step = Step("zero_shot", "", given, _ALONE)
            found += [replace(step, probe=probe) for probe in probes]
            if model is not None and asked.task is not None:
                options = {"original": asked.task, **(_SMALL if asked.quick else {})}
                # One by one: the paper tests no probe after training on another.
                found += [
                    Step("inoculate", probe, model, options, before) for probe in asked.probes
                ]
    return found


def _with_head(asked: ReproduceRequest, model: str) -> str | None:
    """Train a multiple-choice head on the task, and return its folder; None: it is not there."""
    if asked.task is None:
        return None
    rows = len(open_probe(asked.task, split="train").items)
    values: dict[str, Any] = {
        **asked.values,
        "split": "validation",
        "learner": "full",
        "train": min(rows, 96) if asked.quick else rows,
        "epochs": 1 if asked.quick else 3,
    }
    named = options_name(RunSpec.parse(asked.task, model, values).named_options())
    name = Path(named, f"{folder_name(model)}+{folder_name(asked.task)}")
    folder = asked.output / "models" / name
    if asked.dry_run and not folder.is_dir():
        asked.left_out.append(f"{name.name}: it is trained first, and its runs are known then")
        return None
    values["keep_checkpoint"] = str(folder)
    spec = RunSpec.parse(asked.task, model, values, asked.output / "tasks" / name)
    for outcome in execute([spec], Session(progress=asked.progress, reports=False)):
        outcome.or_raise()
    return str(folder)


def fill(own: OwnNumbers, steps: Sequence[Step]) -> list[Section]:
    """Put the numbers of studies into Tables 7 and 8."""
    for step in steps:
        probe, split, summary = step.probe, step.options.get("split"), step.summary
        if isinstance(summary, StudyTables) and summary.study == "baselines":
            for measured in summary.tables["runs"]:
                if split == "test":
                    own.rows[probe] = measured["rows"]
                alone = f"{step.name}, choices alone"
                name = measured["baseline"] if measured["model"] == NO_MODEL else alone
                after = BASELINES.get(measured["baseline"], "choice-only RoBERTa")
                specs = [one for one in step.specs if str(one.folder) in measured["folders"]]
                place = "accuracy", name, probe
                own.add(step, specs, place, measured["accuracy"], str(split), after=after)
        elif isinstance(summary, AllResults):
            metrics, row = summary.results[0].metrics, f"{step.name}, zero-shot"
            after = "RoBERTa science QA zero-shot"
            if "inputs" in step.options:
                row, after = f"{step.name}, choices alone", "choice-only RoBERTa"
            place = "accuracy", row, probe
            own.add(step, step.specs, place, metrics.accuracy, str(split), after=after)
            if split == "test" and metrics.clusters != metrics.accuracy.n:
                strict = metrics.strict_accuracy
                _add_strict(own, step, row, strict, metrics.accuracy.value, "choice-only")
        else:
            (best,) = summary.rows("runs", best=True)
            row, after = f"{step.name}, inoculated", "RoBERTa inoculated"
            place, specs = ("accuracy", row, probe), _trained(step)
            own.add(step, specs, place, best["validation"], "validation", after=after)
            own.add(step, specs, place, best["test"], "test")
            own.add(step, specs, place, best["cost"], "cost", scale=1)
            _add_strict(own, step, row, best["strict"], best["test"].value, after)
    return []


def _trained(step: Step) -> list[RunSpec]:
    """Return a step's runs on its probe after training, or all if none trains."""
    specs = [spec for spec in step.specs if spec.probe == step.request.probes[0]]
    return [spec for spec in specs if spec.run.train is not None] or specs


def _add_strict(
    own: OwnNumbers, step: Step, row: str, strict: Estimate | None, accuracy: float, after: str
) -> None:
    place, specs = ("strict", row, step.probe), _trained(step)
    if strict is not None:
        own.add(step, specs, place, strict, "strict", after=after)
        own.add(step, specs, place, strict.value - accuracy, "difference")


PAPER = Paper(
    name="wordnetqa",
    steps=steps,
    fill=fill,
    protocol=Protocol(
        frozenset({"full"}),
        InoculateOptions().model_dump(include={"sizes", "learning_rates", "epoch_counts", "seeds"}),
    ),
    # Whole clusters, as strict accuracy needs them.
    quick={"limit": 50},
    reduced="{limit} rows of a split, and of validation only where settings are chosen on it; the "
    "task is learnt from 96 rows in one epoch; one inoculation setting (48 rows, learning rate "
    "5e-5, one epoch, one seed); the choices alone are learnt by a head on the frozen model, from "
    "100 rows.",
)
"""The reproduction."""
