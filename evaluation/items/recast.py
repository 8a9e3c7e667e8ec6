"""Labelled texts from other sources: published function-word probes and NLI collections.

Those probes have the format of recast NLI collections: a file ``NAME_data.json`` lists rows with
``context``, ``hypothesis`` (empty where a sentence is judged), ``label``, ``label-set`` and
``pair-id`` (Poliak et al. 2018; Kim et al. 2019). ``NAME_metadata.json`` next to it may give the
fold, out of ten, in which each row is tested. MNLI, SNLI and similar collections are read as they
are published (``sentence1``, ``sentence2``, ``gold_label``) and as the Hub has them (``premise``,
``hypothesis`` and ``label``). Labels that are numbers mean what their names say: sets number them
in different orders.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbprobe.errors import KbprobeError
from kbprobe.format.setups import ACCEPTABILITY, NLI, SETUPS
from kbprobe.parsing import MAX_JSON_BYTES
from kbprobe.reading import read_bytes

MARK = "label-set"
"""The field that identifies rows of published probes."""

PAIRS = (
    *("sentence1", "sentence2", "gold_label", "pairID"),
    *("premise", "hypothesis", "label", "idx"),
)
"""The columns of NLI collections."""
LABEL_COLUMNS = ("gold_label", "label")
"""Those of labels; the first that is there counts."""
_NO_LABEL = (None, "", "-", "-1", -1)

_DATA, _METADATA = "_data.json", "_metadata.json"


SPELLINGS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    ACCEPTABILITY: {
        "unacceptable": ("unacceptable", "not acceptable", "ungrammatical", "not grammatical"),
        "acceptable": ("acceptable", "grammatical"),
    },
    NLI: {
        "entailment": ("entailment", "entail", "entails"),
        "neutral": ("neutral",),
        "contradiction": ("contradiction", "contradict", "contradicts"),
    },
}
"""How sets and checkpoints name the labels of a setup, in lower case with spaces between words."""

UNNAMED = "is a number without a name"


class RowError(Exception):
    """A row that cannot be scored: the field ("": the whole row), and what is wrong with it."""


def meaning(setup: str, name: str) -> str | None:
    """Return the label of a setup that a name stands for, or None.

    >>> meaning("nli", "CONTRADICTS")
    'contradiction'
    """
    plain = " ".join(name.casefold().replace("_", " ").replace("-", " ").split())
    return next((label for label, texts in SPELLINGS[setup].items() if plain in texts), None)


def own_form(row: Mapping[str, Any], folds: Mapping[str, int]) -> dict[str, Any]:
    """Return a published row in kbprobe's own format; folds are by ``pair-id``.

    Raises:
        RowError: its labels are not those of a setup, which the message lists, or its own is not
            among them.
    """
    from kbprobe.format.items import LABELS

    stated = row.get(MARK)
    if not isinstance(stated, list) or not all(isinstance(label, str) for label in stated):
        raise RowError(MARK, "must be a list of labels")
    for setup in (ACCEPTABILITY, NLI):
        labels = SETUPS[setup].labels
        if set(stated) == set(labels):
            break
    else:
        known = " or ".join(", ".join(SETUPS[setup].labels) for setup in (ACCEPTABILITY, NLI))
        raise RowError(MARK, f"is {', '.join(stated)}; the labels must be {known}")
    texts = {"question": row.get("context")}
    if setup == NLI:
        # Hypotheses about one premise contradict each other: they must be in one fold.
        texts = {"premise": row.get("context"), "hypothesis": row.get("hypothesis")}
        texts["cluster"] = row.get("context")
    answer = row.get("label")
    if answer not in (*labels, *_NO_LABEL):
        raise RowError("label", f"is {reprlib.repr(answer)}, which is not in {MARK}")
    return {
        "id": row.get("pair-id"),
        "setup": setup,
        **texts,
        "choices": {"text": list(labels), "label": list(LABELS[: len(labels)])},
        "answerKey": LABELS[labels.index(answer)] if answer in labels else answer,
        "fold": folds.get(str(row.get("pair-id"))),
    }


def is_pair(row: Mapping[str, Any]) -> bool:
    """Return whether a row is a pair of sentences of an NLI collection."""
    stated = {"gold_label", "sentence1", "sentence2"} <= row.keys()
    return stated or ({"premise", "hypothesis", "label"} <= row.keys() and "choices" not in row)


def pair_form(row: Mapping[str, Any], place: int, names: Sequence[str] = ()) -> dict[str, Any]:
    """Return a pair in kbprobe's own format; ``answerKey`` is None if annotators disagreed.

    Pairs without an id are identified by their position in the file. ``names`` are those of labels
    that are numbers, in order from 0.

    Raises:
        RowError: its label is none of NLI, or a number without a name.
    """
    from kbprobe.format.items import LABELS

    labels, answer = SETUPS[NLI].labels, _pair_label(row, names)
    premise = row.get("sentence1", row.get("premise"))
    return {
        "id": row.get("pairID", row.get("idx", place)),
        "setup": NLI,
        "premise": premise,
        "hypothesis": row.get("sentence2", row.get("hypothesis")),
        "cluster": premise,
        "choices": {"text": list(labels), "label": list(LABELS[: len(labels)])},
        "answerKey": None if answer is None else LABELS[labels.index(answer)],
    }


def _pair_label(row: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """Return the label of a pair, None if it has none; raises as `pair_form`."""
    column = next(name for name in LABEL_COLUMNS if name in row)
    given = row[column]
    if given in _NO_LABEL:
        return None
    if (number := _number(given)) is not None:
        if not names:
            raise RowError(column, UNNAMED)
        if not 0 <= number < len(names):
            what = f"is {number}, and --label-names names those from 0 to {len(names) - 1}"
            raise RowError(column, what)
        given = names[number]
    label = meaning(NLI, given) if isinstance(given, str) else None
    if label is None:
        known = ", ".join(SETUPS[NLI].labels)
        raise RowError(column, f"is {reprlib.repr(given)}; the labels of NLI are {known}")
    return label


def _number(label: Any) -> int | None:
    """Return the number that a label is, also as text or as pandas stores numbers beside nulls."""
    if isinstance(label, str) and re.fullmatch(r"\s*\d{1,9}\s*", label):
        return int(label)
    whole = isinstance(label, int | float) and not isinstance(label, bool) and label == label // 1
    return int(label) if whole else None


def folds_beside(path: Path) -> dict[str, int]:
    """Return the fold, from 0, that each row of a file is tested in; empty if unknown.

    Raises:
        KbprobeError: the metadata next to the file cannot be read.
    """
    metadata = path.with_name(path.name.removesuffix(_DATA) + _METADATA)
    if not path.name.endswith(_DATA) or not metadata.is_file():
        return {}
    try:
        rows = json.loads(read_bytes(metadata, MAX_JSON_BYTES))
        roles = {str(row["pair-id"]): row.get("misc") or {} for row in rows}
        return {
            name: int(fold.removeprefix("fold")) - 1
            for name, misc in roles.items()
            for fold, role in misc.items()
            if fold.startswith("fold") and role == "test"
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise KbprobeError(
            f"{metadata} cannot be read: {type(error).__name__}: {error}. Remove it to read "
            f"{path.name} without folds."
        ) from error
