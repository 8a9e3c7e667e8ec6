"""Contamination: how much better a model is on a suite than on rows that it cannot have seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from evaluation.items.sources import UnknownSplit, open_probe
from evaluation.report import cells
from evaluation.results import intervals
from evaluation.results.breakdown import scored_rows
from evaluation.results.types import Estimate, Model
from evaluation.studies.base import Finished, StudyRequest
from kbprobe import document as doc
from kbprobe.errors import UsageError
from kbprobe.format.setups import SPLITS
from kbprobe.format.suite import members, suite_of


class FreshDifference(Model):
    """A model on a probe of the suite, and on rows of its sibling that the suite lacks."""

    probe: str = Field(description="The probe's name.")
    score: Estimate = Field(description="Score on the suite.")
    fresh: Estimate = Field(description="Score on the rows of clusters that the suite lacks.")
    fresh_rows: int = Field(description="How many rows these are.")
    fresh_clusters: int = Field(description="How many clusters.")


class Contamination(Model):
    """How much better a model is on the suite than on fresh rows."""

    suite: str = Field(description="The sibling suite.")
    difference: Estimate | None = Field(
        description="Score on the suite minus score on fresh rows, in points: mean over the "
        "probes; null where all are left out."
    )
    probes: list[FreshDifference] = Field(description="The probes that it is a mean over.")
    left_out: list[str] = Field(description="Probes with too few fresh clusters.")


def siblings(request: StudyRequest) -> list[str]:
    """Return the sibling of each probe.

    Raises:
        UsageError: the probes and their siblings are not from two builds of one suite.
    """
    if (given := request.options.fresh) is None:
        return []
    probes = request.named_probes()
    names = [Path(probe).name for probe in probes]
    own = {None if built is None else built[1] for built in map(suite_of, probes)}
    fresh = {Path(sibling).name: sibling for sibling in members(given)}
    other = suite_of(next(iter(fresh.values())))
    suite = own.pop()
    if own or suite is None or other is None or not {*names} <= fresh.keys():
        raise UsageError(
            f"--fresh {given}: name the folder of a suite as the probe, and here that of the same "
            "suite built with another seed (build-probe --suite NAME --seed N)"
        )
    if other[1].seed == suite.seed:
        raise UsageError(f"--fresh {given} has the seed of the suite: build it with another --seed")
    return [fresh[name] for name in names]


def measure_contamination(
    request: StudyRequest,
    probes: Sequence[str],
    runs: Sequence[Finished],
    fresh: Sequence[Finished],
) -> Contamination:
    """Compare the score on the suite with that on rows of clusters outside the suite.

    Without common clusters, the two are independent samples of the same distribution.
    """
    differences, left_out = [], []
    for probe, run, other in zip(probes, runs, fresh, strict=True):
        metrics, rows = run.results.metrics, other.predictions
        known = pa.chunked_array(_clusters(probe), pa.string())
        new = rows.filter(pc.invert(pc.is_in(rows["cluster"], value_set=known.combine_chunks())))
        new, right, cluster = scored_rows(new)
        clusters = len(pc.unique(new["cluster"]))
        if clusters < intervals.FEWEST:
            left_out.append(Path(probe).name)
            continue
        estimate = intervals.accuracy(right, cluster, request.defaults.run.seed)
        differences.append(
            FreshDifference(
                probe=Path(probe).name,
                score=intervals.corrected(metrics.accuracy, metrics.chance),
                fresh=intervals.corrected(estimate, other.results.metrics.chance),
                fresh_rows=len(new),
                fresh_clusters=clusters,
            )
        )
    suite = suite_of(siblings(request)[0])
    assert suite is not None
    share = 100 / max(len(differences), 1)
    parts = [(share, probe.score) for probe in differences] + [
        (-share, probe.fresh) for probe in differences
    ]
    return Contamination(
        suite=suite[1].title,
        difference=intervals.sum_of_independent(parts) if parts else None,
        probes=differences,
        left_out=left_out,
    )


def _clusters(probe: str) -> list[pa.Array]:
    """Return the clusters of all splits of a probe, since its files expose all of them."""
    clusters = []
    for split in SPLITS:
        try:
            about = open_probe(probe, split=split).about
        except UnknownSplit:
            continue
        clusters += about["cluster"].cast(pa.string()).chunks
    return clusters


def contamination_table(contamination: Contamination) -> doc.Table:
    """Return the scores of each probe, on the suite and on fresh rows."""
    return doc.Table.of(
        contamination.probes,
        {
            "probe": lambda probe: probe.probe,
            "score": lambda probe: cells.score(probe.score),
            "on fresh rows": lambda probe: cells.score(probe.fresh),
            "fresh rows": lambda probe: probe.fresh_rows,
            "in clusters": lambda probe: probe.fresh_clusters,
        },
        f"Scores on the suite, and on rows of {contamination.suite} that it does not hold",
    )
