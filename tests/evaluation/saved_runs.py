"""Folders of results of runs whose predictions a test gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.items.types import Item, ItemColumns, ProbeSplit, fingerprint
from evaluation.results.metrics import Scores, measure, predictions_table
from evaluation.results.types import (
    PREDICTIONS,
    RESULTS,
    Normalization,
    write_predictions,
    write_results,
)
from kbprobe.format.sealed import write_sealed
from tests.evaluation.sample_results import results_of

GOLD = 0
CHOICES = ("gold", "wrong", "worse")


def save_run(
    folder: Path,
    model: str,
    said: Sequence[int | None],
    clusters: Sequence[str] | None = None,
    *,
    ids: Sequence[str] | None = None,
    families: Sequence[str | None] | None = None,
    templates: Sequence[str | None] | None = None,
    contents: Sequence[str | None] | None = None,
    hops: Sequence[int | None] | None = None,
    probe: str = "made",
    gold: int = GOLD,
    choices: Sequence[str] | Sequence[tuple[str, ...]] = CHOICES,
    questions: Sequence[str] | None = None,
    normalization: Normalization = "sum",
    request: dict[str, Any] | None = None,
    source: str | None = None,
    **fields: Any,
) -> Path:
    """Write the results of a run whose predictions are given (None: set aside); return the folder.

    ``request`` is that of the manifest of the probe's build; ``fields`` are further ones of what
    is said of the model.
    """
    names = ids or [f"i{row}" for row in range(len(said))]
    asked = questions or [f"q {name}" for name in names]
    # The same choices in all rows, or those of each.
    shared = isinstance(choices[0], str)
    each = [tuple(choices)] * len(names) if shared else [tuple(own) for own in choices]
    items = ItemColumns.of(
        [
            Item(name, "mc_qa", question, shown, gold)
            for name, question, shown in zip(names, asked, each, strict=True)
        ]
    )
    nulls = pa.nulls(len(items))
    about = pa.table(
        {
            "cluster": pa.array(clusters or names),
            "distractor_family": pa.array(families or [None] * len(items), pa.string()),
            "template": pa.array(templates or [None] * len(items), pa.string()),
            "content": pa.array(contents or [None] * len(items), pa.string()),
            "hops": pa.array(hops or [None] * len(items), pa.int32()),
        }
        | dict.fromkeys(("distractor_hops", "pos", "concept"), nulls)
    )
    split = ProbeSplit(probe, "made", "test", items, about, bool(clusters), fingerprint(items))
    values = np.zeros((len(items), len(each[0])))
    for row, choice in enumerate(said):
        if choice is not None:
            values[row, choice] = 1.0
    scores = Scores(
        scores=values.ravel(),
        tokens=np.ones(values.size, np.int64),
        set_aside={row: "odd" for row, choice in enumerate(said) if choice is None},
        notes={},
        score_name="logit",
        sequences=0,
        sequence_tokens=0,
        parameters=0,
    )
    predictions = predictions_table(split, scores, normalization, 1e-4)
    metrics = measure(
        predictions,
        clustered=split.clustered,
        normalization=normalization,
        by_length=False,
        seed=0,
        tie_tolerance=1e-4,
    )
    folder.mkdir(parents=True)
    write_predictions(predictions, folder)
    write_results(
        results_of(
            metrics,
            probe={
                "name": probe,
                "source": source or f"probes/{probe}",
                "rows": len(items),
                "fingerprint": split.fingerprint,
                "request": request,
            },
            model={"id": model, **fields},
            scoring={"scorer": "multiple_choice", "score": "logit"},
        ),
        folder,
    )
    return folder


def reseal(folder: Path) -> None:
    """Write the checksums of what a folder holds now."""
    held = json.loads((folder / RESULTS).read_text())
    del held["checksums"]
    write_sealed(folder / RESULTS, json.dumps(held, indent=2), [PREDICTIONS])
