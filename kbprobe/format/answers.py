"""What annotators may answer: the letter of a choice, a point of a scale, or a mark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from kbprobe.errors import UsageError
from kbprobe.format.items import LABELS

if TYPE_CHECKING:
    import pyarrow as pa

Scheme = Literal["choices", "scale"]

MARKS: Mapping[str, str] = {
    "none": "none of the answers fits",
    "two": "two or more answers fit equally well",
    "nonsense": "the question or its answers make no sense",
}
"""What an annotator may write instead of an answer, and what it means."""

MARKS_OF: Mapping[str, Mapping[str, str]] = {
    "nli": {"nonsense": "one of the sentences, or the pair, makes no sense"},
    "acceptability": {"nonsense": "the text is cut off or garbled: it cannot be judged"},
}
"""Setups with other marks: where no answer can be missing, and two cannot fit."""

SCALE: Mapping[int, str] = {
    5: "the second sentence must be true",
    4: "the second sentence is probably true",
    3: "the second sentence may be true or false: it is impossible to tell",
    2: "the second sentence is probably false",
    1: "the second sentence must be false",
}
"""The scale on which pairs of sentences are judged (Kim et al., 2019)."""

SCALE_LABELS: Mapping[int, str] = {
    5: "entailment",
    4: "entailment",
    3: "neutral",
    2: "contradiction",
    1: "contradiction",
}
"""The label that each point of the scale stands for (Kim et al., 2019)."""

_LETTER = re.compile(r"\(?([a-z])(?:[.):].*)?", re.DOTALL)
"""``b``, ``B.``, ``(b)``, or a letter with the answer's text as Label Studio returns it."""

_POINT = re.compile(r"([1-5])(?:\.0+)?(?:[.):].*)?", re.DOTALL)
"""``4``, ``4.0`` as spreadsheets may write it, or ``4. ...``."""

_MARK = re.compile(rf"({'|'.join(MARKS)})(?:[.:].*)?", re.DOTALL)


def marks_of(setup: str) -> Mapping[str, str]:
    """Return the marks for rows of a setup, and what each means."""
    return MARKS_OF.get(setup, MARKS)


def parse_answer(
    text: str, order: Sequence[int], scheme: Scheme, row: Mapping[str, Any]
) -> tuple[int, str] | None:
    """Read an answer to a row whose choices were shown in some ``order``.

    Returns:
        The index in the row's choices (-1: a mark), and the mark or the point of the scale (else
        empty); None if it is not an answer.
    """
    text = text.strip().casefold()
    if match := _MARK.fullmatch(text):
        return (-1, match[1]) if match[1] in marks_of(row["setup"]) else None
    if scheme == "scale":
        if not (match := _POINT.fullmatch(text)):
            return None
        return row["choices"]["text"].index(SCALE_LABELS[int(match[1])]), match[1]
    if not (match := _LETTER.fullmatch(text)):
        return None
    place = ord(match[1]) - ord("a")
    return (order[place], "") if place < len(order) else None


def allowed_answers(width: int, scheme: Scheme, setup: str) -> tuple[str, ...]:
    """Return everything that may be answered to an item with that many choices."""
    answers = map(str, SCALE) if scheme == "scale" else LABELS[:width]
    return (*answers, *marks_of(setup))


def scheme_of(table: pa.Table, source: str) -> Scheme:
    """Tell how rows are annotated: by choosing, or, for pairs of sentences, on a scale.

    Raises:
        UsageError: rows of several kinds, or pairs with other labels than the scale stands for.
    """
    import pyarrow.compute as pc

    setups = pc.unique(table["setup"]).to_pylist()
    if setups != ["nli"]:
        if "nli" in setups:
            raise UsageError(
                f"{source} mixes setups: {', '.join(setups)}. Annotate them separately."
            )
        return "choices"
    labels = set(pc.unique(pc.list_flatten(pc.struct_field(table["choices"], "text"))).to_pylist())
    if labels != set(SCALE_LABELS.values()):
        raise UsageError(
            f"{source}: pairs of sentences are annotated on a scale that stands for "
            f"{', '.join(dict.fromkeys(SCALE_LABELS.values()))}; these have "
            f"{', '.join(sorted(labels))}."
        )
    return "scale"
