"""Finished runs of the study of learning curves, with answers that a test decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.items.types import Item, ItemColumns, ProbeSplit, fingerprint
from evaluation.results.analyses import fitting
from evaluation.results.analyses.fitting import Fitting
from evaluation.results.metrics import Scores, measure, predictions_table
from evaluation.runs.evaluation import Evaluation
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.curve import CURVE
from evaluation.studies.curve.numbers import ModelCurves, curves_in, summarise
from evaluation.studies.table import StudyTables
from kbprobe.arrays import Bools
from tests.evaluation.sample_results import results_of

ROWS, IN_CLUSTER = 120, 3
BASELINES = {"the longest choice": 0.55, "majority <b>&": 0.58}


@cache
def _split(probe: str, rows: int) -> ProbeSplit:
    items = ItemColumns.of(
        [Item(f"{probe}-{row}", "mc_mlm", f"{row} [MASK]", ("yes", "no"), 0) for row in range(rows)]
    )
    nulls = pa.nulls(rows)
    about = pa.table(
        {
            "cluster": [f"c{row // IN_CLUSTER}" for row in range(rows)],
            "distractor_family": pa.nulls(rows, pa.string()),
        }
        | dict.fromkeys(("hops", "distractor_hops", "pos", "template", "concept"), nulls)
    )
    return ProbeSplit(probe, probe, "test", items, about, True, fingerprint(items))


def finished_run(
    right: Bools,
    *,
    probe: str = "ages",
    model: str = "bert",
    reported: Fitting | None = None,
    baselines: dict[str, float] | None = None,
    **options: Any,
) -> Finished:
    """Return a finished run that gets just these rows right; ``options`` are those of the run."""
    split = _split(probe, right.size)
    values = np.stack([right, ~right], axis=1).astype(np.float64).ravel()
    scores = Scores(values, np.ones(values.size, np.int64), {}, {}, "logit", 1, 1, 7)
    predictions = predictions_table(split, scores, "sum", 1e-4)
    metrics = measure(
        predictions,
        clustered=True,
        normalization="sum",
        by_length=False,
        seed=0,
        tie_tolerance=1e-4,
    ).model_copy(update={"baselines": BASELINES if baselines is None else baselines})
    name = probe if options.get("config") is None else f"{probe}/{options['config']}"
    about = {"name": name, "rows": right.size, "fingerprint": split.fingerprint}
    results = results_of(metrics, probe=about, model={"id": model})
    if reported is not None:
        results = results.with_analysis(fitting.NAME, reported)
    spec = RunSpec.parse(probe, model, {"facts": False, **options})
    return Finished(Evaluation(results, predictions), spec, Path("somewhere"))


def answers(share: float, rows: int = ROWS, seed: int = 0) -> Bools:
    """Return which rows are right: exactly this share, in an order that the seed decides."""
    right = np.arange(rows) < round(share * rows)
    return np.random.default_rng(seed).permutation(right)


def curve_runs(
    share: Callable[[str, int, int], float],
    *,
    sizes: Iterable[int] = (62, 125, 250, 500, 1000, 2000, 4000),
    draws: int = 3,
    learner: str = "linear",
    renderings: Iterable[str] = ("probe",),
    zero_shot: float | None = 0.6,
    block_bits: float | None = None,
    rows: int = ROWS,
    **options: Any,
) -> list[Finished]:
    """Return the runs of a learner.

    ``share`` is the accuracy by rendering, size and draw, ``block_bits`` the bits of each row's
    answer in the following block.
    """
    sizes, runs = list(sizes), []
    if zero_shot is not None:
        runs.append(finished_run(answers(zero_shot, rows), **options))
    for rendering in renderings:
        varied: dict[str, Any] = {}
        if rendering == "random_labels":
            varied = {"labels": "random"}
        elif rendering != "probe":
            varied = {"config": rendering}
        for size, following in zip(sizes, [*sizes[1:], None], strict=True):
            for draw in range(draws):
                reported = None
                if block_bits is not None:
                    ahead = 0 if following is None else following - size
                    reported = Fitting(
                        train_loss=0.5,
                        next_rows=ahead,
                        next_bits=ahead * block_bits if ahead else None,
                        seen=0.25 if varied.get("labels") else None,
                    )
                runs.append(
                    finished_run(
                        answers(share(rendering, size, draw), rows, seed=size + draw),
                        reported=reported,
                        learner=learner,
                        train=size,
                        train_seed=draw,
                        **varied,
                        **options,
                    )
                )
    return runs


def summary_of(runs: list[Finished], **options: Any) -> StudyTables:
    """Summarise runs as the study does."""
    request = StudyRequest.parse(CURVE, ["ages"], ["bert"], options)
    return summarise(request, runs)


def curves_of(runs: list[Finished]) -> list[ModelCurves]:
    """Return the curves of each model on each probe."""
    return curves_in(summary_of(runs))
