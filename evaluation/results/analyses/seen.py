"""Accuracy on concepts and golds that occur in the training rows, and others (WordNetQA, note 5).

A model that was fitted on rows of a probe may answer others from what those rows say about a
concept, or prefer choices that were golds there. Accuracy is therefore reported separately for
rows that share a concept or gold with a training row, and for the rest.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pydantic import Field

from evaluation.results.analyses.base import Analysis, ResultFiles
from evaluation.results.breakdown import bools, cluster_codes
from evaluation.results.intervals import accuracy
from evaluation.results.parts import shares
from evaluation.results.types import Estimate, Model
from kbprobe.arrays import run_starts
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.document import Table

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "seen"


class Seen(Model):
    """Rows by whether the rows fitted on have the same concept, or the same gold."""

    concept: Estimate | None = Field(
        description="Accuracy on rows whose concept is that of a row fitted on; null if there are "
        "none."
    )
    other_concept: Estimate | None = Field(
        description="Accuracy on rows with another concept; null likewise, as below."
    )
    gold: Estimate | None = Field(
        description="Accuracy on rows whose gold is, by its text, that of a row fitted on."
    )
    other_gold: Estimate | None = Field(description="Accuracy on rows with another gold.")


def measure_seen(
    predictions: pa.Table, concepts: pa.Array, golds: Collection[str], seed: int
) -> Seen:
    """Measure a fitted model on rows that share a concept or gold with its training rows.

    Args:
        predictions: from :func:`evaluation.results.metrics.predictions_table`.
        concepts: the concepts of the training rows, null if unknown.
        golds: the texts of their golds.
        seed: the seed of the bootstrap.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    scored = predictions.filter(predictions["prediction"].is_valid())
    right, cluster = bools(scored["correct"]), cluster_codes(scored)
    starts = run_starts(to_numpy(pc.list_value_length(scored["choices"])))[:-1]
    chosen = pa.array(starts + to_numpy(scored["answer"]))
    asked = {
        "concept": (single_chunk(scored["concept"]), concepts.drop_null()),
        "gold": (
            single_chunk(scored["choices"]).flatten().take(chosen),
            pa.array(list(golds), pa.string()),
        ),
    }
    found: dict[str, Estimate | None] = {}
    for name, (values, known) in asked.items():
        seen = bools(pc.is_in(values, value_set=known))
        for part, rows in ((name, seen), (f"other_{name}", ~seen)):
            rows = rows & bools(values.is_valid())
            found[part] = accuracy(right[rows], cluster[rows], seed) if rows.any() else None
    return Seen(**found)


def _parts(files: ResultFiles, block: Seen) -> list[Table]:
    parts = (
        ("concept of a row fitted on", block.concept),
        ("another concept", block.other_concept),
        ("gold of a row fitted on", block.gold),
        ("another gold", block.other_gold),
    )
    rows = tuple((name, estimate) for name, estimate in parts if estimate is not None)
    caption = "Accuracy by what the rows fitted on have as well. The dashed line is chance."
    return [shares("rows", caption, rows, files.results.metrics.chance)]


ANALYSIS = Analysis(NAME, "Training", "Training: concepts and golds seen and unseen", _parts, Seen)
