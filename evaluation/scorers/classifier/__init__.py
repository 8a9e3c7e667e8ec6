"""The scorer of sequence classifiers: its options, what it needs, and classes as labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from evaluation.items.recast import meaning
from evaluation.models.capabilities import Capability
from evaluation.registry import imported
from evaluation.scorers.entry import ScorerEntry
from kbprobe.errors import UsageError
from kbprobe.format.setups import LABELLED_SETUPS, NLI, SETUPS
from kbprobe.options import RARE, Options


class ClassifierOptions(Options):
    """What the classes of a checkpoint mean."""

    class_labels: Annotated[tuple[str, ...], RARE] = Field(
        (),
        description="Meaning of each class of the checkpoint in order, such as "
        "unacceptable,acceptable; by default the names in its configuration (id2label).",
    )


CLASSIFIER = ScorerEntry(
    name="classifier",
    label="sequence classifier",
    needs=Capability.CLASS_SCORES,
    make=imported("evaluation.scorers.classifier.scorer:ClassifierScorer.from_inputs"),
    options=ClassifierOptions,
    setups=LABELLED_SETUPS,
)

_OPTION = "--class-labels"


def classes_of(
    setup: str, id2label: Mapping[int, str], stated: Sequence[str], model: str
) -> dict[str, int]:
    """Return the class that stands for each label of a setup.

    Args:
        setup: the setup of the rows: ``acceptability`` or ``nli``.
        id2label: the checkpoint's names of its classes.
        stated: the labels of the classes, in order, as stated by the user; may be empty.
        model: the checkpoint, for messages.

    Raises:
        UsageError: the checkpoint has other classes, or their names do not tell which is which.

    >>> classes_of("nli", {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}, (), "m")
    {'entailment': 2, 'neutral': 1, 'contradiction': 0}
    """
    labels = SETUPS[setup].labels
    names = list(stated) or [id2label[number] for number in sorted(id2label)]
    shown = ", ".join(names)
    if stated and len(stated) != len(id2label):
        raise UsageError(
            f"{_OPTION} {','.join(stated)} names {len(stated)} classes, and {model} tells "
            f"{len(id2label)} apart. Name each of them once."
        )
    if len(names) != len(labels):
        raise UsageError(
            f"{model} tells {len(names)} classes apart ({shown}), and rows of the setup {setup} "
            f"have {len(labels)} labels: {', '.join(labels)}. {_other_number(setup, names)}"
        )
    meant = [meaning(setup, name) for name in names]
    if set(meant) == set(labels):
        return {label: meant.index(label) for label in labels}
    if stated:
        raise UsageError(
            f"{_OPTION} {','.join(stated)}: rows of the setup {setup} have the labels "
            f"{', '.join(labels)}. Name each of them once, in the order of the checkpoint's "
            "classes."
        )
    if all(re.fullmatch(r"(label)?[ _-]*\d+", name.casefold().strip()) for name in names):
        raise UsageError(
            f"{model} does not say what its classes mean ({shown}). Look it up where the "
            f"checkpoint is described, and state it from the first class on, such as "
            f"{_OPTION} {','.join(labels)}"
        )
    raise UsageError(
        f"the classes of {model} ({shown}) are not the labels of rows of the setup {setup} "
        f"({', '.join(labels)}). Give a checkpoint that was trained for these labels; if its "
        f"classes mean them under other names, state it from the first class on, such as "
        f"{_OPTION} {','.join(labels)}"
    )


def _other_number(setup: str, names: Sequence[str]) -> str:
    if setup == NLI and len(names) == 2:
        return (
            "A checkpoint that tells entailment from everything else (as RTE has it) cannot tell "
            "neutral from contradiction: give one that was trained on three classes, as MNLI has."
        )
    return "Give a checkpoint that was trained for these labels."
