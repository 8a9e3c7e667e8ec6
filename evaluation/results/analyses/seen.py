"""Accuracy on concepts and golds that occur in what was learnt from, and on others.

A model that was fitted on rows of a probe may answer others from what those rows say about a
concept, or prefer choices that were golds there. Accuracy is therefore reported separately for
rows that share a concept or gold with a row fitted on, and for the rest. WordNetQA (note 5) asks
another question: whether a model knows concepts better that its own task's training set mentions.
For this, the texts of that set have to be given (``--seen``).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
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

_SYNSET = re.compile(r"(.+?)\.[nvasr]\.\d\d(\..*)?")
"""The name of a synset or sense, such as ``sea_dog.n.01``."""


class Seen(Model):
    """Rows by whether rows fitted on have the same concept or gold, or texts name the concept."""

    concept: Estimate | None = Field(
        None,
        description="Accuracy on rows whose concept is that of a row fitted on; null if there are "
        "none.",
    )
    other_concept: Estimate | None = Field(
        None,
        description="Accuracy on rows with another concept; null likewise, as below.",
    )
    gold: Estimate | None = Field(
        None, description="Accuracy on rows whose gold is, by its text, that of a row fitted on."
    )
    other_gold: Estimate | None = Field(None, description="Accuracy on rows with another gold.")
    in_texts: Estimate | None = Field(
        None,
        description="Accuracy on rows whose concept occurs in the texts of --seen: the word asked "
        "about, or else the concept's name, as whole words, whatever their case.",
    )
    not_in_texts: Estimate | None = Field(
        None, description="Accuracy on rows whose concept does not."
    )


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

    starts = run_starts(to_numpy(pc.list_value_length(predictions["choices"])))[:-1]
    chosen = pa.array(starts + to_numpy(predictions["answer"]))
    texts = single_chunk(predictions["choices"]).flatten().take(chosen)
    return Seen(
        **_split(
            predictions, single_chunk(predictions["concept"]), concepts.drop_null(), seed, "concept"
        ),
        **_split(predictions, texts, pa.array(list(golds), pa.string()), seed, "gold"),
    )


def concept_words(predictions: pa.Table) -> pa.Array:
    """Return the words for each row's concept, null if it names none.

    These are the word asked about, or else the concept's name, for a synset its first lemma.
    """
    import pyarrow as pa

    names = predictions["concept"].to_pylist()
    known = "surface_form" in predictions.column_names
    words = predictions["surface_form"].to_pylist() if known else [None] * len(names)
    return pa.array(
        [word or (name and _lemma(name)) for word, name in zip(words, names, strict=True)],
        pa.string(),
    )


def _lemma(concept: str) -> str:
    synset = _SYNSET.fullmatch(concept)
    return concept if synset is None else synset[1].replace("_", " ")


def with_words(
    seen: Seen, predictions: pa.Table, words: pa.Array, known: Collection[str], seed: int
) -> Seen:
    """Add accuracy on rows of which a text names the concept, and on others.

    Args:
        seen: what is measured already.
        predictions: from :func:`evaluation.results.metrics.predictions_table`.
        words: from :func:`concept_words`.
        known: those that the texts name.
        seed: the seed of the bootstrap.
    """
    import pyarrow as pa

    known = pa.array(sorted(known), pa.string())
    own = _split(predictions, words, known, seed, "in_texts", "not_in_texts")
    return seen.model_copy(update=own)


def _split(
    predictions: pa.Table, values: pa.Array, known: pa.Array, seed: int, name: str, other: str = ""
) -> dict[str, Estimate | None]:
    """Return accuracy on scored rows whose value is known, and on those with another value."""
    import pyarrow.compute as pc

    right, cluster = bools(predictions["correct"]), cluster_codes(predictions)
    usable = bools(pc.and_(predictions["prediction"].is_valid(), values.is_valid()))
    shared = bools(pc.is_in(values, value_set=known))
    return {
        part: accuracy(right[rows], cluster[rows], seed) if rows.any() else None
        for part, rows in (
            (name, usable & shared),
            (other or f"other_{name}", usable & ~shared),
        )
    }


def _parts(files: ResultFiles, block: Seen) -> list[Table]:
    chance = files.results.metrics.chance
    fitted = (
        ("concept of a row fitted on", block.concept),
        ("another concept", block.other_concept),
        ("gold of a row fitted on", block.gold),
        ("another gold", block.other_gold),
    )
    texts = (
        ("concept that occurs in the texts", block.in_texts),
        ("concept that does not", block.not_in_texts),
    )
    name = files.results.scoring.options.get(NAME)
    tables = []
    for parts, what in (
        (fitted, "what the rows fitted on have as well"),
        (texts, f"whether the concept occurs in the texts of --seen ({Path(name or '').name})"),
    ):
        rows = tuple((name, estimate) for name, estimate in parts if estimate is not None)
        if rows:
            caption = f"Accuracy by {what}. The dashed line is chance."
            tables.append(shares("rows", caption, rows, chance))
    return tables


ANALYSIS = Analysis(NAME, "Training", "Training: concepts and golds seen and unseen", _parts, Seen)
