"""Consistency over probes: are questions about the same facts right together?

An edge of a taxonomy can be asked from either end, and a question in two languages. Two rows rest
on the same facts if their triples connect the same nodes, in either direction. If both are right no
more often than two unrelated questions of the same difficulty would be, right answers are not a
sign of knowledge. Pairs within a probe are measured with each of its results
(:mod:`evaluation.results.analyses.consistency`), and listed here too.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

import numpy as np
from pydantic import Field

from evaluation.report import cells
from evaluation.results.analyses.consistency import (
    FEWEST,
    KINDS,
    NAME,
    Consistency,
    PairKind,
    measure_pairs,
    verdict,
)
from evaluation.results.breakdown import bools, cluster_codes
from evaluation.results.types import Model
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.counting import group_by
from kbprobe import document as doc
from kbprobe.errors import UsageError
from kbprobe.format.dataset import read_rows
from kbprobe.format.manifest import read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG

Facts: TypeAlias = frozenset[frozenset[str]]
"""The facts that a row rests on: the nodes that each of its triples connects."""

OVER = "probes"
"""The kind of the pairs over two probes."""


class Pairs(PairKind):
    """A model on pairs of questions of one kind."""

    model: str = Field(description="The model, and what distinguishes it from others.")
    probes: list[str] = Field(description="The probe of both questions, or that of each.")
    differ: str = Field(description="What distinguishes the second question from the first.")


class ConsistencySummary(Model):
    """Pairs over two probes, then those within a probe, of each model."""

    pairs: list[Pairs] = Field(description="Each kind of pair.")


def _expand(request: StudyRequest) -> list[RunSpec]:
    for probe in request.named_probes():
        _facts(probe, request.defaults.run.config)
    return [request.spec(probe, model) for model in request.models for probe in request.probes]


@lru_cache(maxsize=32)
def _facts(probe: str, config: str | None) -> dict[str, Facts]:
    """Return the facts that each row rests on, by id.

    Raises:
        UsageError: the folder holds no built probe, or no such config.
        KbprobeError: a file is damaged.
    """
    folder = Path(probe)
    splits = read_manifest(folder).split_files(config or DEFAULT_CONFIG)
    return {
        name: frozenset(frozenset((one["subject"], one["object"])) for one in triples)
        for held in splits.values()
        for name, triples in zip(
            *(read_rows(folder, held)[column].to_pylist() for column in ("id", "triples")),
            strict=True,
        )
    }


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> ConsistencySummary:
    found = []
    for model, runs in group_by(finished, lambda run: run.asked.model).items():
        named = [(request.probe_folder(run.asked.probe), run) for run in runs]
        found += [
            Pairs(model=request.model_folder(model), probes=probes, differ=differ, **dict(measured))
            for probes, differ, measured in (*_over_probes(named), *_within_probes(named))
        ]
    if not found:
        raise UsageError(
            f"no two questions are about the same fact in {FEWEST} clusters or more: name two "
            "probes with facts in common, such as wordnet_hypernymy and wordnet_hyponymy, or "
            "larger ones"
        )
    return ConsistencySummary(pairs=found)


def _within_probes(
    runs: Sequence[tuple[str, Finished]],
) -> Iterator[tuple[list[str], str, PairKind]]:
    for probe, run in runs:
        block = run.results.analysis(NAME, Consistency)
        for one in block.kinds if block else ():
            yield [probe], KINDS[one.kind], one


def _over_probes(
    runs: Sequence[tuple[str, Finished]],
) -> Iterator[tuple[list[str], str, PairKind]]:
    """Yield the pairs of each two probes that share facts in enough clusters.

    A row is in one pair at most. Clusters are those of the first probe.
    """
    for (probe, one), (other, two) in combinations(runs, 2):
        places: defaultdict[Facts, deque[int]] = defaultdict(deque)
        for at, facts in _scored_facts(two):
            places[facts].append(at)
        pairs = [(at, places[facts].popleft()) for at, facts in _scored_facts(one) if places[facts]]
        first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        cluster = cluster_codes(one.predictions)[first]
        if np.unique(cluster).size >= FEWEST:
            right = bools(one.predictions["correct"])[first]
            also_right = bools(two.predictions["correct"])[second]
            measured = measure_pairs(OVER, right, also_right, cluster, one.asked.run.seed)
            yield [probe, other], "the same facts in the other probe", measured


def _scored_facts(run: Finished) -> list[tuple[int, Facts]]:
    """Return the scored rows that rest on facts: position and facts."""
    asked, rows = run.asked, run.predictions
    known = _facts(str(asked.probe), asked.run.config)
    scored = rows["prediction"].is_valid().to_pylist()
    return [
        (at, known[name])
        for at, (name, kept) in enumerate(zip(rows["id"].to_pylist(), scored, strict=True))
        if kept and known.get(name)
    ]


def _document(summary: ConsistencySummary) -> doc.Document:
    """Return the document of a summary."""
    by_model = group_by(summary.pairs, lambda one: one.model)
    sections = [
        doc.Section(
            model,
            [
                doc.Findings(
                    [
                        f"About the same facts in {' and '.join(one.probes)}, {verdict(one)}."
                        for one in pairs
                        if one.kind == OVER
                    ]
                ),
                doc.Table.of(
                    pairs,
                    {
                        "probes": lambda one: ", ".join(one.probes),
                        "the second question": lambda one: one.differ,
                        "pairs": lambda one: one.pairs,
                        "both right": lambda one: cells.share(one.both),
                        "if unrelated": lambda one: one.independent,
                        "gain in points": lambda one: cells.points(one.gain),
                        "most": lambda one: one.most,
                    },
                    "Pairs of related questions",
                    names=2,
                ),
            ],
        )
        for model, pairs in by_model.items()
    ]
    return doc.Document("Consistency", f"{', '.join(by_model)}", sections)


CONSISTENCY = Study(
    name="consistency",
    help="Measure whether questions about the same facts, in one probe or in two, are right "
    "together more often than unrelated ones.",
    expand=_expand,
    summarise=_summarise,
    document=_document,
)
"""The study."""
