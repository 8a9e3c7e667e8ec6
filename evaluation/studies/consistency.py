"""Measure how often questions on one fact are right together.

Listed under: Commands to compare results.

Two rows rest on the same facts if their triples connect the same nodes, in either direction: an
edge of a taxonomy asked from either end, or a question in two languages. If both are right no more
often than two unrelated questions of the same difficulty would be, right answers are not a sign of
knowledge.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

import numpy as np
import pyarrow.compute as pc

from evaluation.items.built import manifest_of_build, rows_of_build
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
    manifest = manifest_of_build(probe, "consistency pairs rows by their triples")
    return {
        row["id"]: frozenset(
            frozenset((triple["subject"], triple["object"])) for triple in row["triples"]
        )
        for row in rows_of_build(probe, manifest, ["id", "triples"], config)
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
        for pairs in block.kinds if block else ():
            yield [probe], KINDS[pairs.kind], pairs


def _over_probes(
    runs: Sequence[tuple[str, Finished]], too_few: dict[str, int]
) -> Iterator[tuple[list[str], str, PairKind]]:
    """Yield the pairs of each two probes that share facts in enough clusters.

    A row is in one pair at most. Clusters are those of the first probe. Probes with too few are
    added to ``too_few``.
    """
    for (probe, run), (other, other_run) in combinations(runs, 2):
        places: defaultdict[Facts, deque[int]] = defaultdict(deque)
        for row, facts in _scored_facts(other_run):
            places[facts].append(row)
        pairs = [
            (row, places[facts].popleft()) for row, facts in _scored_facts(run) if places[facts]
        ]
        first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        asked, also_asked = run.predictions["question"], other_run.predictions["question"]
        other_words = bools(pc.not_equal(asked.take(first), also_asked.take(second)))
        first, second = first[other_words], second[other_words]
        cluster = cluster_codes(run.predictions)[first]
        if (clusters := np.unique(cluster).size) < FEWEST:
            if clusters or len(runs) == 2:
                too_few[f"{probe} and {other}"] = clusters
        else:
            right = bools(run.predictions["correct"])[first]
            also_right = bools(other_run.predictions["correct"])[second]
            measured = measure_pairs(OVER, right, also_right, cluster, run.asked.run.seed)
            yield [probe, other], "the same facts in the other probe", measured


def _scored_facts(run: Finished) -> list[tuple[int, Facts]]:
    """Return the scored rows that rest on facts: position and facts."""
    asked, rows = run.asked, run.predictions
    known = _facts(str(asked.probe), asked.run.config)
    scored = rows["prediction"].is_valid().to_pylist()
    return [
        (row, known[name])
        for row, (name, kept) in enumerate(zip(rows["id"].to_pylist(), scored, strict=True))
        if kept and known.get(name)
    ]


CONSISTENCY = Study(
    name=__name__,
    help=__doc__,
    expand=_expand,
    summarise=_summarise,
)
"""The study."""
