"""Function words: Kim et al. (2019), Figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation.items.sources import open_probe
from evaluation.models.capabilities import Capability
from evaluation.names import model_name
from evaluation.reproduce.frame import OwnNumbers, Paper, ReproduceRequest, Step
from evaluation.reproduce.marks import Before, Protocol
from evaluation.results.types import AllResults
from kbprobe.document import Section

ACCEPTABILITY = ("fw_wh_words", "fw_definiteness", "fw_coordination", "fw_eos")
"""Probes that are cross-validated; the others are answered by what NLI taught."""


def steps(asked: ReproduceRequest) -> list[Step]:
    """Return cross-validation of acceptability, and the transfer of NLI."""
    judged = [name for name in asked.probes if name in ACCEPTABILITY]
    pairs = [name for name in asked.probes if name not in ACCEPTABILITY]
    # Without a model the study gives the majority label, of all probes.
    found = [Step("crossval", probe) for probe in asked.probes]
    for model in asked.models:
        able = asked.able(model)
        causal = Capability.CAUSAL_SCORES in able
        tuned = Capability.TRAINABLE in able and not causal and not asked.quick
        options: dict[str, Any] = {
            "learners": ("pooled", "full_labels") if tuned else ("pooled",),
            # Nothing says how to draw the weights of a GGUF file anew.
            "random_init": 0 if model.endswith(".gguf") else 1 if asked.quick else 5,
        }
        found += [Step("crossval", probe, model, options) for probe in judged]
        learnt = _transfer(asked, able) if pairs else None
        if learnt is None and pairs:
            asked.left_out.append(
                f"NLI probes of {model_name(model)}: it is no NLI classifier. Name a dataset to "
                "fit one on with --task, such as a folder of MNLI."
            )
        elif learnt is not None:
            options = {"facts": False, "split": "all", **learnt}
            before = Before("MNLI", asked.task, "mnli|multi_?nli")
            found += [Step("zero_shot", probe, model, options, before) for probe in pairs]
    return found


def _transfer(asked: ReproduceRequest, able: Capability) -> dict[str, Any] | None:
    """Return how a model learns NLI: not at all, if it is a classifier; None, if it cannot."""
    if Capability.CLASS_SCORES in able:
        return {}
    if asked.task is None:
        return None
    rows = len(open_probe(asked.task, split="train").items)
    pooled = asked.quick or Capability.CAUSAL_SCORES in able
    learner = "pooled" if pooled else "full_labels"
    return {
        "train_on": asked.task,
        "learner": learner,
        "train": min(rows, 500 if asked.quick else rows),
    }


def fill(own: OwnNumbers, steps: Sequence[Step]) -> list[Section]:
    """Put the numbers of studies into Figure 1."""
    for step in steps:
        probe = step.probe
        if isinstance(step.summary, AllResults):
            learner = step.options.get("learner", "as it is")
            accuracy, row = step.summary.results[0].metrics.accuracy, f"{step.name}, {learner}"
            own.add(step, step.specs, ("accuracy", row, probe), accuracy, after="BERT")
            continue
        (about,) = step.summary.tables["probes"]
        own.rows[probe] = about["rows"]
        every = ("accuracy", "people's votes", probe)
        own.add(step, step.specs, every, about["human"], after="people")
        for row in step.summary.tables["runs"]:
            name, after = {
                "majority": ("majority label", "majority"),
                "random": (f"{step.name}, random encoders", "random encoders"),
                "learner": (f"{step.name}, {row['learner']}", "BERT"),
                "zero_shot": (f"{step.name}, zero-shot", "BERT"),
            }[row["kind"]]
            specs = [
                spec
                for spec in step.runs(learner=row["learner"])
                if (spec.run.random_weights is not None) == (row["kind"] == "random")
            ]
            own.add(step, specs, ("accuracy", name, probe), row["accuracy"], after=after)
    return []


PAPER = Paper(
    name="function-words",
    steps=steps,
    fill=fill,
    protocol=Protocol(frozenset({"full_labels"}), {"random_init": 5}),
    refused="vectors",
    reduced="one random encoder instead of five, no network fine-tuned, NLI learnt from 500 rows.",
)
"""The reproduction."""
