"""Changed rows: random labels for control tasks, and choices shown without their question."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from evaluation.items.types import ItemColumns, ProbeSplit, setups_of
from kbprobe.errors import UsageError
from kbprobe.format.setups import QUESTION


def random_labels(split: ProbeSplit, seed: int) -> ProbeSplit:
    """Return a split whose answers are a hash of the seed and of each row's first argument."""

    def draw(key: str, choices: int) -> int:
        digest = hashlib.sha256(f"{seed}\0{key}".encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "little") % choices

    items = ItemColumns.of(
        [
            replace(item, answer=draw(key, len(item.choices)))
            for item, key in zip(split.items, control_keys(split), strict=True)
        ]
    )
    return replace(split, items=items, fingerprint=items.fingerprint())


def control_keys(split: ProbeSplit) -> list[str]:
    """Return the key of each row's random answer: its first argument, or its question.

    Raises:
        UsageError: rows have neither, since only their choices are shown.
    """
    questions = [item.question for item in split.items]
    keys = questions
    if split.arguments is not None:
        keys = [
            arguments[0]["value"] if arguments else question
            for arguments, question in zip(split.arguments.to_pylist(), questions, strict=True)
        ]
    if len(keys) > 1 and not any(keys):
        raise UsageError(
            f"--labels random: the rows of {split.name} have neither arguments nor, with --inputs "
            "choices, a question to decide their answers, which would all be the same. Leave one "
            "of the two options out."
        )
    return keys


def choices_alone(split: ProbeSplit) -> ProbeSplit:
    """Return a split whose questions are empty; ids, choices and answers stay.

    Raises:
        UsageError: rows are not questions followed by choices: a cloze needs its sentence.
    """
    others = sorted(setups_of(split.items) - {QUESTION})
    if others:
        raise UsageError(
            f"--inputs choices: {split.name} has rows of the setup {others[0]}, and only those of "
            f"{QUESTION} can be shown without the question. Leave it out, or name a --config of "
            "questions with choices."
        )
    items = ItemColumns.of([replace(item, question="") for item in split.items])
    return replace(split, items=items, fingerprint=items.fingerprint())
