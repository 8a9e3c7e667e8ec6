"""Setups: how the rows of a probe are asked and scored; its controls, and names of tasks.

Every row names its setup. A :class:`Setup` says which of the item's columns the setup uses, what
its rows must satisfy, and how it is announced and scored elsewhere. Only the standard library is
imported here: all probes are declared whenever a command lists them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

MASK = "[MASK]"
"""The placeholder for the answer in a cloze question; it occurs once."""

QUESTION, CLOZE, ACCEPTABILITY, NLI = "mc_qa", "mc_mlm", "acceptability", "nli"


@dataclass(frozen=True)
class Setup:
    """One way of asking.

    Attributes:
        name: the value of the column ``setup``.
        summary: what a model is asked.
        texts: the item's text columns that the setup shows; those of other setups are empty.
        labels: the choices of every row, in this order; empty where rows have their own.
        task_categories, task_ids: what the Hub calls the task.
        metrics: the metrics that are reported, by the names of the ``evaluate`` library.
        masks: how often each of these texts holds :data:`MASK`.
    """

    name: str
    summary: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    task_categories: tuple[str, ...]
    task_ids: tuple[str, ...]
    metrics: tuple[str, ...]
    masks: int = 0


SETUPS: Mapping[str, Setup] = {
    setup.name: setup
    for setup in (
        Setup(
            QUESTION,
            "Which choice answers the question, or ends the sentence?",
            ("question",),
            (),
            ("multiple-choice",),
            ("multiple-choice-qa",),
            ("accuracy",),
        ),
        Setup(
            CLOZE,
            f"Which choice belongs where {MASK} stands?",
            ("question",),
            (),
            ("multiple-choice", "fill-mask"),
            ("multiple-choice-qa", "masked-language-modeling"),
            ("accuracy",),
            masks=1,
        ),
        Setup(
            ACCEPTABILITY,
            "Is the sentence, shown as the question, acceptable English?",
            ("question",),
            ("unacceptable", "acceptable"),
            ("text-classification",),
            ("acceptability-classification",),
            ("matthews_correlation", "accuracy"),
        ),
        Setup(
            NLI,
            "Given the premise, is the hypothesis true, undetermined or false?",
            ("premise", "hypothesis"),
            ("entailment", "neutral", "contradiction"),
            ("text-classification",),
            ("natural-language-inference",),
            ("accuracy", "f1"),
        ),
    )
}
"""Every setup by name."""

SCORED_SETUPS = (CLOZE, QUESTION)
"""Setups in which each row has its own choices."""

LABELLED_SETUPS = (ACCEPTABILITY, NLI)
"""Setups whose rows all have the same choices: the labels that a classifier gives a text."""

NO_LANGUAGE = "no_language"
PERTURBED = "perturbed"
CONTROLS = {
    NO_LANGUAGE: "The question keeps its arguments and the mask alone. Answers that are a few "
    "fixed words become nonsense words, always the same one for the same answer.",
    PERTURBED: "Nonsense words stand in the question for the words that carry its meaning.",
}
"""Every control rendering, and what it does to a row."""

SPLITS = ("train", "validation", "test")
DEFAULT_CONFIG = "default"
"""The config of the rows themselves; controls, variants and sub-questions have other configs."""


TEST = "test"
"""The split that tasks evaluate unless they say otherwise."""


def task_name(
    probe: str,
    config: str = DEFAULT_CONFIG,
    split: str = TEST,
    published_as: str = DEFAULT_CONFIG,
) -> str:
    """Return the task name of a split: letters, digits and underscores, for any harness.

    Args:
        probe: the probe's name.
        config: one of its configs.
        split: the split that is evaluated.
        published_as: the probe's name in a repository of several probes.

    >>> task_name("wordnet hypernymy", "no-language")
    'kbprobe_wordnet_hypernymy_no_language'
    >>> task_name("wordnet_hypernymy", split="train", published_as="italian")
    'kbprobe_wordnet_hypernymy_train_italian'
    """
    parts = ["kbprobe", probe]
    parts += [config] if config != DEFAULT_CONFIG else []
    parts += [split] if split != TEST else []
    parts += [published_as] if published_as != DEFAULT_CONFIG else []
    return re.sub(r"\W+", "_", "_".join(parts), flags=re.ASCII).lower()
