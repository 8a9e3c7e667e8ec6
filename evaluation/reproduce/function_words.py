"""Function words: Kim et al. (2019), Table 2."""

from __future__ import annotations

from typing import Any

from evaluation.items.sources import open_probe
from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL
from evaluation.reproduce.frame import Asked, Ended, OwnNumbers, Paper, Step, own_name
from evaluation.results.types import AllResults
from evaluation.studies.crossval.record import CrossvalSummary

PROBES = {
    "fw_wh_words": "whwords",
    "fw_definiteness": "def",
    "fw_coordination": "coord",
    "fw_eos": "eos",
    "fw_prepositions": "prepositions",
    "fw_comparatives": "comparatives",
    "fw_quantification": "quantification",
    "fw_spatial": "spatial",
    "fw_negation": "negation",
}
"""The probes, and what names of published files contain."""

ACCEPTABILITY = ("fw_wh_words", "fw_definiteness", "fw_coordination", "fw_eos")
"""Probes that are cross-validated; the others are answered by what NLI taught."""


def steps(asked: Asked) -> list[Step]:
    """Return cross-validation of acceptability, and the transfer of NLI."""
    judged = asked.having(*ACCEPTABILITY)
    pairs = [name for name in asked.probes if name not in ACCEPTABILITY]
    # Without a model the study gives the majority label, of all probes.
    found = [Step("crossval", list(asked.probes), [NO_MODEL])]
    for model in asked.models:
        able = asked.able(model)
        learners = ["pooled"]
        if Capability.TRAINABLE in able and Capability.CAUSAL_SCORES not in able:
            learners += [] if asked.quick else ["full_labels"]
        options = {"learners": tuple(learners), "random_init": 1 if asked.quick else 5}
        found.append(Step("crossval", judged, [model], options))
        found += _transfer(asked, model, able, pairs)
    return found


def _transfer(asked: Asked, model: str, able: Capability, pairs: list[str]) -> list[Step]:
    options: dict[str, Any] = {"facts": False, "split": "all"}
    if not pairs:
        return []
    if Capability.CLASS_SCORES in able:
        return [Step("zero_shot", pairs, [model], options, "as it is")]
    if asked.task is None:
        asked.left_out.append(
            f"NLI probes of {own_name(model)}: it is no NLI classifier. Name a dataset to fit one "
            "on with --task, such as a folder of MNLI."
        )
        return []
    rows = len(open_probe(asked.task, split="train").items)
    learner = "pooled" if asked.quick or Capability.CAUSAL_SCORES in able else "full_labels"
    options |= {"train_on": asked.task, "learner": learner}
    options["train"] = min(rows, 500) if asked.quick else rows
    return [Step("zero_shot", pairs, [model], options, "fitted")]


def fill(own: OwnNumbers, ended: Ended) -> None:
    """Put the numbers of a study into Table 2."""
    names = ended.piece.names
    summary = ended.summary
    if isinstance(summary, CrossvalSummary):
        for one in summary.probes:
            probe = names[one.source]
            own.rows[probe] = one.rows
            own.add(("accuracy", "people's votes", probe), one.human, after="people")
            for row in one.results:
                name, after = {
                    "majority": ("majority label", "majority"),
                    "random": (own_name(row.model, "random encoders"), "random encoders"),
                    "learner": (own_name(row.model, str(row.learner)), "BERT"),
                    "zero_shot": (own_name(row.model, "zero-shot"), "BERT"),
                }[row.kind]
                own.add(("accuracy", name, probe), row.accuracy, after=after)
    elif isinstance(summary, AllResults):
        for results in summary.results:
            learnt = (results.model.finetuning or {}).get("learner", "as it is")
            name = own_name(results.model.id, str(learnt))
            place = "accuracy", name, names[results.probe.source]
            own.add(place, results.metrics.accuracy, after="BERT")


FUNCTION_WORDS = Paper(
    name="function-words",
    probes=PROBES,
    steps=steps,
    fill=fill,
    refused=["vectors"],
    differences=[
        "The paper trains encoders of one architecture on seven tasks; its columns of LM and BERT "
        "are the nearest to your models. Its BERT is fine-tuned in each fold (here: full_labels).",
        "NLI probes: a model that is an NLI classifier answers as it is, others by a classifier "
        "fitted on --task. The paper fits on MNLI.",
    ],
    of_builds=[
        "The rows are newly built: their answers are those that the change of the sentence "
        "intends, not people's, unless they were annotated; the NLI probes have none until then.",
        "Both sentences of a pair are asked here; the paper has either the original or the "
        "changed one, so that nothing can be matched.",
    ],
    reduced="one random encoder instead of five, no network fine-tuned, NLI learnt from 500 rows.",
)
"""The reproduction."""
