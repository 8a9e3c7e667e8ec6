"""The registered studies."""

from __future__ import annotations

from evaluation.registry import Registry
from evaluation.studies.base import Study
from kbprobe.commands import Subcommand

EVALUATE, COLLECT = "Commands to evaluate", "Commands to collect results"
_SENTENCES = {
    EVALUATE: {
        "zero_shot": "Evaluate models on probes, which is also done without naming a command.",
        "facts": "Evaluate questions that combine facts, and the single facts.",
        "baselines": "Evaluate baselines: guessing, majority, word vectors, choices alone.",
    },
    "Commands to compare results": {
        "compare": "Compare results on the same probe, question by question.",
        "controls": "Compare a probe with its control wordings.",
        "overlap": "Measure how similar the answers of several models are.",
        "items": "List the questions to reread, such as those with suspect answer keys.",
        "power": "Estimate how many clusters it takes to detect a difference.",
    },
    "Commands to train models": {
        "curve": "Measure accuracy after training on more and more rows.",
        "crossval": "Cross-validate label classifiers, with baselines.",
        "transfer": "Train on each of several probes, and evaluate on all of them.",
        "inoculate": "Train on a few rows; measure what is gained here and lost elsewhere.",
    },
    "Commands to vary the setup": {
        "prompts": "Evaluate with several prompts, or with other in-context examples.",
        "orders": "Evaluate with the lettered choices in several orders.",
        "revisions": "Evaluate several revisions of a model, such as training steps.",
    },
    COLLECT: {"medals": "Summarise learning curves: which models know which probes."},
}

OWN = {
<<<<<<< HEAD
    name: Subcommand(section, sentence, f"evaluation.studies.{name}:{name.upper()}")
    for section, sentences in _SENTENCES.items()
    for name, sentence in sentences.items()
=======
    "zero_shot": Subcommand(
        EVALUATE,
        "Evaluate models on probes, which is also done without naming a command.",
        "evaluation.studies.zero_shot:ZERO_SHOT",
    ),
    "scorecard": Subcommand(
        EVALUATE,
        "Score models on a suite of probes by one number.",
        "evaluation.studies.scorecard:SCORECARD",
    ),
    "facts": Subcommand(
        EVALUATE,
        "Evaluate questions that combine facts, and the single facts.",
        "evaluation.studies.facts:FACTS",
    ),
    "baselines": Subcommand(
        EVALUATE,
        "Evaluate baselines: guessing, majority, word vectors, choices alone.",
        "evaluation.studies.baselines:BASELINES",
    ),
    "compare": Subcommand(
        COMPARE,
        "Compare results on the same probe, question by question.",
        "evaluation.studies.compare:COMPARE",
    ),
    "controls": Subcommand(
        COMPARE,
        "Compare a probe with its control wordings.",
        "evaluation.studies.controls:CONTROLS",
    ),
    "overlap": Subcommand(
        COMPARE,
        "Measure how similar the answers of several models are.",
        "evaluation.studies.overlap:OVERLAP",
    ),
    "items": Subcommand(
        COMPARE,
        "List the questions to reread, such as those with suspect answer keys.",
        "evaluation.studies.items:ITEMS",
    ),
    "power": Subcommand(
        COMPARE,
        "Estimate how many clusters it takes to detect a difference.",
        "evaluation.studies.power:POWER",
    ),
    "curve": Subcommand(
        TRAIN,
        "Measure accuracy after training on more and more rows.",
        "evaluation.studies.curve:CURVE",
    ),
    "crossval": Subcommand(
        TRAIN,
        "Cross-validate label classifiers, with baselines.",
        "evaluation.studies.crossval:CROSSVAL",
    ),
    "transfer": Subcommand(
        TRAIN,
        "Train on each of several probes, and evaluate on all of them.",
        "evaluation.studies.transfer:TRANSFER",
    ),
    "inoculate": Subcommand(
        TRAIN,
        "Train on a few rows; measure what is gained here and lost elsewhere.",
        "evaluation.studies.inoculate:INOCULATE",
    ),
    "prompts": Subcommand(
        VARY,
        "Evaluate with several prompts, or with other in-context examples.",
        "evaluation.studies.prompts:PROMPTS",
    ),
    "orders": Subcommand(
        VARY,
        "Evaluate with the lettered choices in several orders.",
        "evaluation.studies.orders:ORDERS",
    ),
    "revisions": Subcommand(
        VARY,
        "Evaluate several revisions of a model, such as training steps.",
        "evaluation.studies.revisions:REVISIONS",
    ),
    "medals": Subcommand(
        COLLECT,
        "Summarise learning curves: which models know which probes.",
        "evaluation.studies.medals:MEDALS",
    ),
>>>>>>> 2d0de95 (kbprobe-1, the standard suite, and score cards)
}
"""Our studies, as the help lists them."""

STUDIES = Registry[Study](
    "study", "kbprobe.studies", Study, {name: listed.place for name, listed in OWN.items()}
)
