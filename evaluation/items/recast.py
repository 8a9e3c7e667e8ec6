"""Labelled texts from other sources: published function-word probes and NLI collections.

Those probes have the format of recast NLI collections: a file ``NAME_data.json`` lists rows with
``context``, ``hypothesis`` (empty where a sentence is judged), ``label``, ``label-set`` and
``pair-id`` (Poliak et al. 2018; Kim et al. 2019). ``NAME_metadata.json`` next to it may give the
fold, out of ten, in which each row is tested. MNLI, SNLI and similar collections are read as they
are published (``sentence1``, ``sentence2``, ``gold_label``) and as the Hub has them (``premise``,
``hypothesis`` and a numbered ``label``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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

_DATA, _METADATA = "_data.json", "_metadata.json"


NLI_NAMES = {
    **dict.fromkeys(("entailment", "entail", "entails"), "entailment"),
    "neutral": "neutral",
    **dict.fromkeys(("contradiction", "contradict", "contradicts"), "contradiction"),
}
"""What the names of classes mean, in lower case."""


def own_form(row: Mapping[str, Any], folds: Mapping[str, int]) -> dict[str, Any]:
    """Return a published row in kbprobe's own format; folds are by ``pair-id``.

    Raises:
        ValueError: its labels are not those of a setup; the message lists the setups' labels.
    """
    from kbprobe.format.items import LABELS

    stated = row.get(MARK)
    if not isinstance(stated, list) or not all(isinstance(label, str) for label in stated):
        raise ValueError("must be a list of labels")
    for setup in (ACCEPTABILITY, NLI):
        labels = SETUPS[setup].labels
        if set(stated) == set(labels):
            break
    else:
        known = " or ".join(", ".join(SETUPS[setup].labels) for setup in (ACCEPTABILITY, NLI))
        raise ValueError(f"is {', '.join(stated)}; the labels must be {known}")
    texts = {"question": row.get("context")}
    if setup == NLI:
        # Hypotheses about one premise contradict each other: they must be in one fold.
        texts = {"premise": row.get("context"), "hypothesis": row.get("hypothesis")}
        texts["cluster"] = row.get("context")
    answer = row.get("label")
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


def pair_form(row: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Return a pair in kbprobe's own format; ``answerKey`` is None if annotators disagreed.

    Pairs without an id are identified by their position in the file.
    """
    from kbprobe.format.items import LABELS

    labels = SETUPS[NLI].labels
    answer = row.get("gold_label", row.get("label"))
    if isinstance(answer, str):
        answer = NLI_NAMES.get(answer.strip().lower(), answer)
    if answer in labels:
        answer = LABELS[labels.index(answer)]
    elif answer in ("-", "", -1):
        answer = None
    premise = row.get("sentence1", row.get("premise"))
    return {
        "id": row.get("pairID", row.get("idx", place)),
        "setup": NLI,
        "premise": premise,
        "hypothesis": row.get("sentence2", row.get("hypothesis")),
        "cluster": premise,
        "choices": {"text": list(labels), "label": list(LABELS[: len(labels)])},
        "answerKey": answer,
    }


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
