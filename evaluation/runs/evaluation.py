"""A run's scores, computed or found in the cache, and the resulting numbers."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from evaluation.content import installed_version
from evaluation.items.types import choice_starts
from evaluation.items.wordings import wordings
from evaluation.options import RECORDED, TRAINING, RunOptions, digest_name
from evaluation.results.analyses import (
    answers,
    consistency,
    fitting,
    generated,
    labels,
    seen,
    several,
    vocabulary,
)
from evaluation.results.breakdown import headline_rows
from evaluation.results.metrics import (
    Scores,
    measure,
    of_audit,
    predictions_table,
    tie_tolerance,
)
from evaluation.results.similarity import EncoderScores, measure_similarity, with_similarity
from evaluation.results.types import (
    FEW_WORDS,
    LEAST_WORDS,
    METRIC_OF,
    AdapterInfo,
    Metrics,
    ModelInfo,
    Normalization,
    ProbeInfo,
    Results,
    Scoring,
    Timings,
)
from evaluation.runs.ready import ReadyScorers
from evaluation.runs.run import Run
from evaluation.runs.score_cache import ScoreCache
from evaluation.runs.scoring import Effort, score_items
from evaluation.scorers.base import ReadyScorer
from evaluation.workers import QUIET, Session
from kbprobe.cli import kbprobe_version
from kbprobe.columns import single_chunk
from kbprobe.format.dataset import BASELINES
from kbprobe.format.manifest import EncoderDigest

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from kbprobe.audit.recorded import BaselineFigure

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


def evaluate_run(
    run: Run,
    ready: Callable[[Run], ReadyScorer],
    session: Session = QUIET,
    entries: Path | None = None,
) -> Evaluation:
    """Score a run's rows, or find their scores in the cache, and measure the predictions.

    ``ready`` gives its scorer, and is called if anything is to be scored
    (:class:`evaluation.runs.ready.ReadyScorers`). ``entries`` is the folder of all scores; None:
    that of kbprobe's cache.

    Raises:
        UsageError: rows that this scorer cannot take, or a head that is not trained.
        KbprobeError: the model cannot be loaded or run.
    """
    model, options = run.model, run.spec.run
    began, training = time.perf_counter(), model.training_seconds
    cache = ScoreCache(run.content, entries)
    scores, effort = cache.read(choice_starts(run.rows.items)), Effort()
    if scores is None or run.must_fit:
        scorer, parameters = ready(run)
        scores, effort = score_items(
            run.items, scorer, cache, model.batch_tokens, parameters, session
        )
    normalization = cast(Normalization, run.normalization)
    # Counts of answers are compared exactly: no arithmetic of the model is in them.
    tolerance = 0.0
    if not generated.are_counts(scores.answers):
        tolerance = tie_tolerance(model.dtype_name, run.rows, scores, normalization)
    predictions = predictions_table(run.rows, scores, normalization, tolerance)
    if (corpus := run.texts.get("unigrams")) is not None:
        predictions = answers.with_frequencies(predictions, corpus.inverse_frequencies())
    # The audit is of the test split, and of its true answers.
    manifest = run.rows.manifest
    audited = run.rows.split == "test" and options.labels == "gold"
    audit = manifest.audit if audited and manifest else None
    recorded = _recorded_baselines(run) if audited else ()
    metrics = measure(
        predictions,
        clustered=run.rows.clustered,
        normalization=normalization,
        by_length=scores.score_name == "log-likelihood" and run.all_questions,
        seed=options.seed,
        tie_tolerance=tolerance,
    ).model_copy(update=of_audit(audit, recorded))
    if labels.setup_of(predictions) is None:
        encoder = _encoder_scores(run, session, entries)
        others = [*METRIC_OF] if len(metrics.accuracies) > 1 else []
        similarity = measure_similarity(run.rows, predictions, options.seed, encoder, others)
        metrics = with_similarity(metrics, similarity)
    timings = Timings(
        load=model.loading_seconds(),
        train=model.training_seconds - training,
        encode=effort.encode,
        score=effort.score,
        total=time.perf_counter() - began,
        sequences=scores.sequences,
        tokens=scores.sequence_tokens,
        scored_sequences=effort.sequences,
        rows_per_second=effort.rows / (effort.encode + effort.score) if effort.rows else None,
    )
    results = _results(run, scores, effort.halvings, metrics, timings)
    if (setup := labels.setup_of(predictions)) is not None:
        asked, wording = None, run.scorer.wording
        if wording is not None and setup not in run.scorer.setups:
            asked = wordings()[setup], wording
        block = labels.measure_labels(predictions, setup, options.seed, asked)
        results = results.with_analysis(labels.NAME, block)
        known = () if run.learner is None else vocabulary.words_of(run.fitted_items)
        shared = vocabulary.measure_vocabulary([(predictions, known)])
        if shared is not None:
            results = results.with_analysis(vocabulary.NAME, shared)
    if scores.answers:
        written = generated.measure_generated(predictions, scores.answers, options.seed)
        results = results.with_analysis(generated.NAME, written)
        predictions = generated.with_answers(predictions, scores.answers)
    if scores.fitting:
        fitted = fitting.Fitting(**scores.fitting, seen=run.seen)
        results = results.with_analysis(fitting.NAME, fitted)
    if (pairs := consistency.measure_consistency(predictions, options.seed)) is not None:
        results = results.with_analysis(consistency.NAME, pairs)
    if not (scores.answers or results.scoring.options.get("letters")):
        pooled = several.measure_several(predictions, normalization, options.seed)
        if pooled is not None and labels.setup_of(predictions) is None:
            results = results.with_analysis(several.NAME, pooled)
    if (trained := _seen(run, headline_rows(predictions))) is not None:
        results = results.with_analysis(seen.NAME, trained)
    return Evaluation(results, predictions)


def _encoder_scores(run: Run, session: Session, entries: Path | None) -> EncoderScores | None:
    """Return the similarities by the run's encoder, found in the cache or computed; None if none.

    Raises:
        UsageError: the encoder cannot be read as a model of whole texts.
        KbprobeError: it cannot be loaded or run.
    """
    own = run.of_encoder
    if own is None or run.encoder is None:
        return None
    cache, checkpoint = ScoreCache(own.content, entries), run.encoder.checkpoint
    scores = cache.read(choice_starts(own.rows.items))
    if scores is None:
        with ReadyScorers(session) as scorers:
            scorer, parameters = scorers.get(own)
            batch_tokens, shown = run.encoder.batch_tokens, session.prefixed(lambda: "similarity: ")
            scores, _ = score_items(own.items, scorer, cache, batch_tokens, parameters, shown)
    digest = EncoderDigest(name=checkpoint.id, sha256=checkpoint.weights_sha256)
    return EncoderScores(digest, scores.scores)


def _recorded_baselines(run: Run) -> Sequence[BaselineFigure]:
    """Return the baselines that were recorded in the probe's folder on the split evaluated.

    Raises:
        UsageError: the file that records them cannot be read.
    """
    rows, folder = run.rows, Path(run.rows.source)
    if rows.manifest is None or not (folder / BASELINES).is_file():
        return ()
    from kbprobe.audit.recorded import read_baselines

    figures = read_baselines(folder)
    if figures is None or figures.split != rows.split or not figures.is_of(rows.manifest):
        return ()
    return figures.figures


def _seen(run: Run, predictions: pa.Table) -> seen.Seen | None:
    """Measure rows by whether they share what was learnt from; None if that is not known.

    That are the rows fitted on, for rows with choices of their own and true answers, and the texts
    of ``--seen``.
    """
    import pyarrow as pa

    found = None
    if run.learner is not None and run.train is not None and run.spec.run.labels == "gold":
        rows = run.drawn[: run.spec.run.train]
        concepts = single_chunk(run.train.about["concept"]).take(pa.array(rows, pa.int64()))
        items = run.train.items.take(rows)
        golds = {item.choices[item.answer] for item in items}
        if labels.setup_of(predictions) is None:
            found = seen.measure_seen(predictions, concepts, golds, run.spec.run.seed)
    if (texts := run.texts.get("seen")) is not None:
        words = seen.concept_words(predictions)
        known = texts.phrases({*words.drop_null().to_pylist()})
        return seen.with_words(found or seen.Seen(), predictions, words, known, run.spec.run.seed)
    return found


def _settings(run: Run) -> dict[str, Any]:
    """Return the options that a run's scores depend on, with those of its scorer and learner."""
    options = run.spec.run
    return {
        **run.scorer_options.model_dump(mode="json"),
        **run.scorer.content(run.scorer_options),
        **_learning(run),
        "batch_tokens": run.model.batch_tokens,
        "model_args": options.model_args,
        "limit": options.limit,
        **_recorded(options, {*RECORDED} - TRAINING),
        **{digest_name(name): sha256 for name, sha256 in _hashes(run).items()},
    }


def _hashes(run: Run) -> dict[str, str]:
    """Return the hash of what each option names that names what only results depend on."""
    own = {name: texts.sha256 for name, texts in run.texts.items()}
    if run.encoder is not None:
        own["similarity"] = run.encoder.checkpoint.weights_sha256
    return own


def _recorded(options: RunOptions, names: set[str]) -> dict[str, Any]:
    """Return the options that differ from their defaults."""
    return options.model_dump(include=names, exclude_defaults=True)


def _learning(run: Run) -> dict[str, Any]:
    """Return what was learnt first, and how; empty if nothing was."""
    if run.learner is None or run.learner_options is None:
        return {}
    options = run.spec.run
    learnt: dict[str, Any] = {
        "learner": run.learner.name,
        "train": options.train,
        "train_seed": run.train_seed,
    }
    learnt |= _recorded(options, {*RECORDED} & TRAINING)
    learnt |= run.learner_options.model_dump(mode="json")
    learnt |= run.learner.content(run.learner_options)
    return learnt


def installed_versions() -> dict[str, str]:
    """Return the versions of kbprobe, Python and the packages that matter."""
    own = {"kbprobe": kbprobe_version(), "python": platform.python_version()}
    return {**own, **{name: installed_version(name) for name in _VERSIONS}}


def _results(
    run: Run, scores: Scores, halvings: int, metrics: Metrics, timings: Timings
) -> Results:
    """Return the results: what was scored, with what, and all numbers."""
    notes = {**run.rows.notes, **scores.notes}
    if run.overlap:
        notes["train_overlap"] = run.overlap
    if halvings:
        notes["halved_batches"] = halvings
    if (corpus := run.texts.get("unigrams")) is not None:
        words = corpus.word_count()
        notes |= {FEW_WORDS: words} if words < LEAST_WORDS else {}
    probe, model, scoring = described(run)
    return Results(
        probe=probe,
        model=model.model_copy(update={"parameters": scores.parameters}),
        scoring=scoring.model_copy(update={"score": scores.score_name, "notes": notes}),
        metrics=metrics,
        seed=run.spec.run.seed,
        timings=timings,
        versions=installed_versions(),
    )


def described(run: Run) -> tuple[ProbeInfo, ModelInfo, Scoring]:
    """Return what is scored, with what and how, without what only the scores tell."""
    model, manifest = run.model, run.rows.manifest
    whole, checkpoint = run.rows.drawn_from, model.checkpoint
    adapter = None
    if checkpoint.adapter is not None and checkpoint.base is not None:
        adapter = AdapterInfo(
            sha256=checkpoint.adapter.sha256,
            base=checkpoint.base.id,
            base_revision=checkpoint.base.revision,
            base_weights_sha256=checkpoint.base.weights_sha256,
        )
    return (
        ProbeInfo(
            name=run.rows.name,
            source=run.rows.source,
            split=run.rows.split,
            rows=len(run.rows.items),
            clusters=run.rows.clusters,
            split_rows=None if whole is None else whole[0],
            split_clusters=None if whole is None else whole[1],
            fingerprint=run.rows.fingerprint,
            request=manifest and manifest.content["request"],
            kbprobe_version=manifest and manifest.kbprobe_version,
            matched_on=list(manifest.matching.encoders) if manifest and manifest.matching else [],
            annotator_kind=manifest.annotation.annotator_kind
            if manifest and manifest.annotation
            else None,
        ),
        ModelInfo(
            id=checkpoint.id,
            revision=checkpoint.revision,
            architecture=checkpoint.architecture,
            parameters=0,
            weights_sha256=checkpoint.weights_sha256,
            tokenizer_sha256=checkpoint.tokenizer_sha256,
            dtype=model.dtype_name,
            device=model.device_name,
            random_weights=checkpoint.random_weights,
            adapter=adapter,
            finetuning=_learning(run) or None,
        ),
        Scoring(
            scorer=run.scorer.name,
            version=run.scorer.version,
            score="",
            options=_settings(run),
            notes={},
            key=run.key,
        ),
    )
