"""A run's scores, computed or found in the cache, and what they amount to."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from evaluation.items.types import ProbeSplit, choice_starts
from evaluation.progress import Progress, silent
from evaluation.results.metrics import baselines_of, measure, predictions_table, tie_tolerance
from evaluation.results.scores import Scores
from evaluation.results.types import ModelInfo, Normalization, ProbeInfo, Results, Scoring, Timings
from evaluation.runs.run import Run
from evaluation.runs.score_cache import ScoreCache
from evaluation.runs.scoring import Effort, score_items
from evaluation.scorers.base import ReadyScorer
from evaluation.workers import ALONE, Workers
from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_VERSIONS = ("torch", "transformers", "tokenizers", "numpy", "pyarrow")


@dataclass(frozen=True)
class Evaluation:
    """A model on a probe: the numbers, and a row for each item.

    ``facts`` is the same of the single facts that the rows rest on; None where none were asked.
    """

    results: Results
    predictions: pa.Table
    facts: Evaluation | None = None

    def to_pandas(self) -> pd.DataFrame:
        """Return the predictions as a data frame, a row per item."""
        frame: pd.DataFrame = self.predictions.to_pandas()
        return frame


def is_of(results: Results, run: Run) -> bool:
    """Tell whether results are those that a run would lead to."""
    return (
        results.scoring.key == run.key
        and results.seed == run.spec.run.seed
        and results.metrics.normalization == run.normalization
    )


def evaluate_run(
    run: Run,
    ready: Callable[[Run], ReadyScorer],
    workers: Workers = ALONE,
    progress: Progress = silent,
) -> Evaluation:
    """Score a run's rows, or find their scores in the cache, and measure the predictions.

    Args:
        run: the run.
        ready: gives its scorer; called if anything is to be scored
            (:func:`evaluation.runs.run.ready_scorers`).
        workers: the processes that share the work.
        progress: told of every batch.

    Raises:
        UsageError: rows that this scorer cannot take, or a head that is not trained.
        KbprobeError: the model cannot be loaded or run.
    """
    model, options = run.model, run.spec.run
    began, loading, training = time.perf_counter(), model.seconds, model.training_seconds
    with _cache(run, workers) as cache:
        scores, effort = cache.read(choice_starts(run.rows.items)), Effort()
        if scores is None or run.must_fit:
            scorer, parameters = ready(run)
            scores, effort = score_items(
                run.rows.items, scorer, cache, model.batch_tokens, parameters, workers, progress
            )
    normalization = cast(Normalization, run.normalization)
    tolerance = tie_tolerance(model.dtype_name, run.rows, scores, normalization)
    predictions = predictions_table(run.rows, scores, normalization, tolerance)
    metrics = measure(
        predictions,
        clustered=run.rows.clustered,
        normalization=normalization,
        by_length=scores.score_name == "log-likelihood" and run.all_questions,
        seed=options.seed,
        tie_tolerance=tolerance,
        # The audit is of the test split.
        baselines=baselines_of(run.rows.manifest) if run.rows.split == "test" else None,
    )
    timings = Timings(
        load=model.seconds - loading,
        train=model.training_seconds - training,
        encode=effort.encode,
        score=effort.score,
        total=time.perf_counter() - began,
        sequences=scores.sequences,
        tokens=scores.sequence_tokens,
        scored_sequences=effort.sequences,
        rows_per_second=effort.rows / effort.score if effort.rows else None,
    )
    results = Results(
        probe=_probe_info(run.rows),
        model=_model_info(run, scores),
        scoring=_scoring(run, scores, effort),
        metrics=metrics,
        seed=options.seed,
        timings=timings,
        versions={
            "kbprobe": kbprobe_version(),
            "python": platform.python_version(),
            **{name: version(name) for name in _VERSIONS},
        },
    )
    return Evaluation(results, predictions)


@contextmanager
def _cache(run: Run, workers: Workers) -> Iterator[ScoreCache]:
    """Open the entry of a run's scores; without ``--cache`` one that is gone at the end."""
    if run.spec.run.cache:
        yield ScoreCache(run.content)
        return
    if workers.count > 1:
        raise UsageError("--no-cache needs a single process: several share scores in the cache")
    with TemporaryDirectory(prefix="kbprobe-") as folder:
        yield ScoreCache(run.content, Path(folder))


def _probe_info(rows: ProbeSplit) -> ProbeInfo:
    manifest = rows.manifest or {}
    return ProbeInfo(
        name=rows.name,
        source=rows.source,
        split=rows.split,
        rows=len(rows.items),
        fingerprint=rows.fingerprint,
        request=manifest.get("request"),
        kbprobe_version=manifest.get("kbprobe_version"),
    )


def _model_info(run: Run, scores: Scores) -> ModelInfo:
    checkpoint = run.model.checkpoint
    return ModelInfo(
        id=checkpoint.id,
        revision=checkpoint.revision,
        architecture=checkpoint.architecture,
        parameters=scores.parameters,
        weights_sha256=checkpoint.weights_sha256,
        tokenizer_sha256=checkpoint.tokenizer_sha256,
        dtype=run.model.dtype_name,
        device=run.model.device.type,
        finetuning=_learnt(run) or None,
    )


def _scoring(run: Run, scores: Scores, effort: Effort) -> Scoring:
    notes = dict(scores.notes)
    if run.overlap:
        notes["train_overlap"] = run.overlap
    if effort.halvings:
        notes["halved_batches"] = effort.halvings
    return Scoring(
        scorer=run.scorer.name,
        version=run.scorer.version,
        score=scores.score_name,
        options={
            **run.scorer_options.model_dump(mode="json"),
            **_learnt(run),
            "batch_tokens": run.model.batch_tokens,
            "model_args": run.spec.run.model_args,
            "limit": run.spec.run.limit,
        },
        notes=notes,
        key=run.key,
    )


def _learnt(run: Run) -> dict[str, Any]:
    """Say how a learner was fitted; empty where none was."""
    if run.learner is None or run.learner_options is None:
        return {}
    options = run.learner_options.model_dump(mode="json")
    return {"learner": run.learner.name, "train": run.spec.run.train, **options}
