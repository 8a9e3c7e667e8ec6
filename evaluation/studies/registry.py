"""The registered studies."""

from __future__ import annotations

from evaluation.registry import Registry
from evaluation.studies.base import Study
from kbprobe.cli import Subcommand

EVALUATE, COLLECT = "Commands to evaluate", "Commands to collect results"
_SENTENCES = {
    EVALUATE: {
        "zero_shot": "Evaluate models on probes, which is also done without naming a command.",
        "scorecard": "Score models on a suite of probes by one number.",
        "baselines": "Evaluate baselines: guessing, majority, word vectors, choices alone.",
    },
    "Commands to compare results": {
        "compare": "Compare models, or a probe with its controls, question by question.",
        "consistency": "Measure how often questions on one fact are right together.",
        "items": "List the questions to reread, such as those with suspect answer keys.",
        "power": "Estimate how many clusters it takes to detect a difference.",
    },
    "Commands to train models": {
        "curve": "Measure accuracy by the number of training rows; award medals.",
        "crossval": "Cross-validate label classifiers, with baselines.",
        "transfer": "Train on each of several probes, and evaluate on all of them.",
        "inoculate": "Train on a few rows; measure gains here and losses elsewhere.",
    },
    "Commands to vary the setup": {
        "prompts": "Evaluate with several prompts, or with other in-context examples.",
        "orders": "Evaluate with the lettered choices in several orders.",
        "revisions": "Evaluate several revisions of a model, such as training steps.",
    },
}

OWN = {
    name: Subcommand(section, sentence, f"evaluation.studies.{name}:{name.upper()}")
    for section, sentences in _SENTENCES.items()
    for name, sentence in sentences.items()
}
"""Built-in studies, as the help lists them."""

STUDIES = Registry[Study](
    "study", "kbprobe.studies", Study, {name: listed.place for name, listed in OWN.items()}
)
