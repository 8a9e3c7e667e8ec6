"""Measure how often questions on one fact are right together.

Listed under: Commands to compare results.

An edge of a taxonomy can be asked from either end, and a question in two languages. Two rows rest
on the same facts if their triples connect the same nodes, in either direction. If both are right no
more often than two unrelated questions of the same difficulty would be, right answers are not a
sign of knowledge. Pairs within a probe are measured with each of its results
(:mod:`evaluation.results.analyses.consistency`), and listed here too.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow.compute as pc

from evaluation.models.checkpoint import NO_MODEL
from evaluation.report import cells
from evaluation.results.analyses.consistency import (
    FEWEST,
    KINDS,
    NAME,
    OVER,
    Consistency,
    PairKind,
    measure_pairs,
    verdict,
)
from evaluation.results.breakdown import bools, cluster_codes
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.counting import group_by
from evaluation.studies.table import DataTable, Section, StudyTables, fields, summary_of
from kbprobe.errors import UsageError
from kbprobe.format.dataset import read_rows
from kbprobe.format.manifest import holds_manifest, read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG

Facts: TypeAlias = frozenset[frozenset[str]]
"""The facts that a row rests on: the nodes that each of its triples connects."""


_PAIRS = fields(
    {
        "probes": "The probe of both questions, or that of each.",
        "differ": "What distinguishes the second question from the first.",
        **{name: str(field.description) for name, field in PairKind.model_fields.items()},
    },
    {
        "differ": "the second question",
        "both": "both right",
        "independent": "if unrelated",
        "most": "at most",
    },
    hidden=("kind",),
    show={"gain": cells.points},
)


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
    if not holds_manifest(folder):
        raise UsageError(
            f"consistency pairs rows by their triples, which only folders written by build-probe "
            f"have, and {probe} is none"
        )
    splits = read_manifest(folder).split_files(config or DEFAULT_CONFIG)
    return {
        row["id"]: frozenset(frozenset((one["subject"], one["object"])) for one in row["triples"])
        for held in splits.values()
        for row in read_rows(folder, held).select(["id", "triples"]).to_pylist()
    }


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> StudyTables:
    too_few: dict[str, int] = {}
    sections = []
    for model, runs in group_by(finished, lambda run: run.asked.model).items():
        label = request.model_folder(model)
        if model == NO_MODEL:
            label = runs[0].results.scoring.scorer
        named = [(request.probe_folder(run.asked.probe), run) for run in runs]
        measured = [*_over_probes(named, too_few), *_within_probes(named)]
        rows = [
            {"probes": ", ".join(probes), "differ": differ, **dict(pairs)}
            for probes, differ, pairs in measured
        ]
        table = DataTable("pairs", rows, _PAIRS)
        sentences = [
            f"In pairs of questions about the same facts in {' and '.join(probes)}, "
            f"{verdict(pairs)}."
            for probes, _, pairs in measured
            if pairs.kind == OVER
        ]
        shown = table.shown("Pairs of related questions", names=2)
        sections.append(Section({"model": label}, [table], [shown], sentences))
    if not any(section.tables[0].records for section in sections):
        raise UsageError(_few(too_few))
    if too_few:
        sections = [replace(section, notes=[f"{_few(too_few)}."]) for section in sections]
    return summary_of("consistency", "Consistency", sections, "models")


def _few(too_few: Mapping[str, int]) -> str:
    """Say which probes have too few facts in common, and what helps."""
    over = [f"{names} have questions about the same facts in {n}" for names, n in too_few.items()]
    return (
        f"{' clusters, '.join(over) or 'no pairs of questions occur in enough'} clusters, where "
        f"{FEWEST} are needed: evaluate larger probes, all rows (no --limit) or all splits "
        "(--split all)"
    )


def _within_probes(
    runs: Sequence[tuple[str, Finished]],
) -> Iterator[tuple[list[str], str, PairKind]]:
    for probe, run in runs:
        block = run.results.analysis(NAME, Consistency)
        for one in block.kinds if block else ():
            yield [probe], KINDS[one.kind], one


def _over_probes(
    runs: Sequence[tuple[str, Finished]], too_few: dict[str, int]
) -> Iterator[tuple[list[str], str, PairKind]]:
    """Yield the pairs of each two probes that share facts in enough clusters.

    A row is in one pair at most. Clusters are those of the first probe. Probes with too few are
    added to ``too_few``.
    """
    for (probe, one), (other, two) in combinations(runs, 2):
        places: defaultdict[Facts, deque[int]] = defaultdict(deque)
        for at, facts in _scored_facts(two):
            places[facts].append(at)
        pairs = [(at, places[facts].popleft()) for at, facts in _scored_facts(one) if places[facts]]
        first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        asked, also_asked = one.predictions["question"], two.predictions["question"]
        other_words = bools(pc.not_equal(asked.take(first), also_asked.take(second)))
        first, second = first[other_words], second[other_words]
        cluster = cluster_codes(one.predictions)[first]
        if (clusters := np.unique(cluster).size) < FEWEST:
            if clusters or len(runs) == 2:
                too_few[f"{probe} and {other}"] = clusters
        else:
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


CONSISTENCY = Study(
    name="consistency",
    help="Measure whether questions about the same facts, in one probe or in two, are right "
    "together more often than unrelated ones.",
    expand=_expand,
    summarise=_summarise,
)
"""The study."""
