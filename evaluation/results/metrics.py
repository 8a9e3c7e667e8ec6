"""Scores of a split's choices, predictions, and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.items.types import ProbeSplit
from evaluation.results import breakdown, intervals
from evaluation.results.breakdown import bools, cluster_codes
from evaluation.results.types import (
    FURTHER_COLUMNS,
    METRIC_OF,
    Estimate,
    Metrics,
    Normalization,
    predictions_schema,
)
from kbprobe.arrays import Bools, Floats, Ints, run_starts
from kbprobe.columns import arrow_type, plain, single_chunk, sparse_texts, to_numpy
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.manifest import Audit

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluation.results.types import Normalization
    from kbprobe.audit.recorded import BaselineFigure


@dataclass(frozen=True)
class Scores:
    """The scores of all items.

    Attributes:
        scores: one number per choice, all items' choices one after another; nan if set aside.
        tokens: the number of tokens that each score sums over.
        set_aside: the items that were not scored, and why.
        score_name: ``logit`` or ``log-likelihood``.
        sequences, sequence_tokens: the total number of sequences run, and of their tokens.
        fitting: what the learner reported, if the scores are a learner's
            (:class:`evaluation.results.analyses.fitting.Fitting`); otherwise empty.
        answers: what the model wrote, of each item in each order of its choices
            (:class:`evaluation.results.analyses.generated.Answer`); empty where it wrote nothing.
    """

    scores: Floats
    tokens: Ints
    set_aside: Mapping[int, str]
    notes: Mapping[str, int]
    score_name: str
    sequences: int
    sequence_tokens: int
    parameters: int
    fitting: Mapping[str, Any] = field(default_factory=dict)
    answers: Sequence[Sequence[Any]] = ()


def lengths(
    tokens: Ints | Sequence[int], texts: pa.Array | Sequence[str], normalization: Normalization
) -> Floats:
    """Return what each choice's score is divided by: shape [choices]."""
    import pyarrow.compute as pc

    if normalization in ("sum", "token"):
        return np.ones(len(texts)) if normalization == "sum" else np.asarray(tokens, np.float64)
    measured = pc.utf8_length(texts) if normalization == "char" else pc.binary_length(texts)
    return to_numpy(measured).astype(np.float64)


def compared(
    scores: Any,
    tokens: Ints | Sequence[int],
    texts: pa.Array | Sequence[str],
    normalization: Normalization,
) -> Floats:
    """Return the values by which choices are compared, scores over lengths: shape [choices].

    Raises:
        UsageError: a choice has no length.
    """
    divisors = lengths(tokens, texts, normalization)
    if not divisors.all():
        raise UsageError(
            f"{int((divisors == 0).sum())} choices have no length to divide their score by "
            f"(normalization {normalization}): compare sums instead, or correct the empty choices"
        )
    return np.asarray(scores) / divisors


def softmax(values: Floats) -> Floats:
    """Return each choice's share, along the last axis."""
    from scipy import special

    # If a model rules out all choices (minus infinity), their shares are equal, not undefined.
    possible = values.max(axis=-1, keepdims=True) > -np.inf
    shares: Floats = special.softmax(np.where(possible, values, 0.0), axis=-1)
    return shares


_ROUNDOFF = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Unit roundoff by dtype: half the gap between 1 and the next number."""

_LEAST_NOISE = 1e-4
"""How much batching may change a float32 score; the scorers are tested to stay within it."""

_LOGIT_SIZE = 16.0
"""Typical size of logits: even a log-likelihood near 0 is a difference of such numbers."""


def tie_tolerance(
    dtype: str, split: ProbeSplit, scores: Scores, normalization: Normalization
) -> float:
    """Return the largest difference between two compared scores that may be numerical noise.

    The precision of a score is about its size times the unit roundoff of the dtype. The size used
    is the median size of the scores, or 16 (the size of logits) if that is larger; the result is
    at least 1e-4. Measured with SmolLM2-135M and log-likelihoods of 81 nats: half precision changed
    the difference of two choices by 0.27 in bfloat16 and 0.039 in float16 (root mean square
    against float32), where the rule gives 0.32 and 0.040; a different batch size changed scores by
    up to 0.31, 0.077 and, in float32, 2.4e-5.

    Raises:
        UsageError: the dtype, in which the model was run, is not float32, float16 or bfloat16.
    """
    if dtype not in _ROUNDOFF:
        raise UsageError(f"no tie tolerance for dtype {dtype!r}: use one of {', '.join(_ROUNDOFF)}")
    _, kept = _kept_choices(split, scores.set_aside)
    finite = kept & np.isfinite(scores.scores)
    size = float(np.median(np.abs(scores.scores[finite]))) if finite.any() else 0.0
    noise = max(_LEAST_NOISE, _ROUNDOFF[dtype] * max(size, _LOGIT_SIZE))
    divisors = lengths(scores.tokens, split.items.texts, normalization)[finite]
    typical = float(np.median(divisors)) if divisors.size else 1.0
    # Two digits suffice, and do not depend on the batches.
    return float(f"{noise / max(typical, 1.0):.2g}")


def predictions_table(
    split: ProbeSplit, scores: Scores, normalization: Normalization, tie_tolerance: float
) -> pa.Table:
    """Return the choice with the best score in each item, and its margin: one row per item.

    A margin within the tolerance, which is in units of the compared scores, is a tie.

    Scores are compared as they are stored, in float32, so that everything can be recomputed from
    the file. Divided by length, they give lm-evaluation-harness's acc_norm and acc_bytes. A score
    of minus infinity means that the model rules the choice out.

    Raises:
        KbprobeError: a score is NaN or plus infinity.
        UsageError: a choice has no length to divide by.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kept, kept_choices = _kept_choices(split, scores.set_aside)
    items = split.items
    widths = np.diff(items.starts)
    texts = pa.ListArray.from_arrays(pa.array(items.starts, pa.int32()), items.texts)
    raw = scores.scores[kept_choices].astype(np.float32)
    tokens = scores.tokens[kept_choices]
    starts = run_starts(widths[kept])
    _refuse_non_numbers(raw, starts, items.ids.filter(pa.array(kept)))
    shown = texts.flatten()
    if scores.set_aside:
        shown = shown.filter(pa.array(kept_choices))
    values = compared(raw, tokens, shown, normalization)
    prediction, margin, probability = _judge(values, starts)
    answer = to_numpy(items.answers)
    offsets = pa.array(run_starts(np.where(kept, widths, 0)), pa.int32())

    def where_kept(values: Any) -> pa.Array:
        filled = np.zeros(kept.size, dtype=values.dtype)
        filled[kept] = values
        return pa.array(filled, mask=~kept)

    about = split.about
    columns = dict(zip(about.column_names, about.columns, strict=True)) | {
        "id": items.ids,
        "question": plain(items.questions),
        "choices": texts,
        "answer": answer,
        "setup": plain(items.setups),
        "scores": pa.ListArray.from_arrays(offsets, pa.array(raw)),
        "tokens": pa.ListArray.from_arrays(offsets, pa.array(tokens, pa.int32())),
        "prediction": where_kept(prediction),
        "correct": where_kept(prediction == answer[kept]),
        "margin": where_kept(margin),
        "probability": where_kept(probability),
        "tie": where_kept(margin <= tie_tolerance),
        "set_aside": sparse_texts(scores.set_aside, len(items)),
        "arguments": pa.nulls(len(items)) if split.arguments is None else split.arguments,
    }
    premises = plain(items.premises)
    columns["premise"] = pc.if_else(pc.equal(premises, ""), pa.scalar(None, pa.string()), premises)
    further = [
        (name, arrow_type(kind))
        for name, kind in FURTHER_COLUMNS.items()
        if name in columns and columns[name].null_count < len(items)
    ]
    return pa.table(columns, schema=pa.schema([*predictions_schema(), *further]))


def measure(
    predictions: pa.Table,
    *,
    clustered: bool,
    normalization: Normalization,
    by_length: bool,
    seed: int,
    tie_tolerance: float,
) -> Metrics:
    """Compute all metrics of a run from its predictions; :func:`of_audit` returns the others.

    Args:
        predictions: from :func:`predictions_table`.
        clustered: whether the column ``cluster`` says more than the id.
        normalization: the normalization that predictions were made with.
        by_length: whether scores are log-likelihoods of the choices' texts, so that accuracies
            with scores divided by length are meaningful.
        seed: the seed of the bootstrap.
        tie_tolerance: the tolerance that ties were found with.

    Raises:
        UsageError: no item was scored; or a choice has no length to divide by.
    """
    import pyarrow.compute as pc

    reasons = predictions["set_aside"].drop_null().to_pylist()
    # A reason is the kind that is counted, a colon, and details of the item.
    aside = Counter(reason.split(": ", 1)[0] for reason in reasons)
    items, all_scored = predictions.num_rows, breakdown.drop_unscored(predictions)
    if all_scored.num_rows == 0:
        raise UsageError(_nothing_scored(items, aside))
    predictions = breakdown.headline_rows(predictions)
    scored = breakdown.drop_unscored(predictions)
    right, tie = bools(scored["correct"]), bools(scored["tie"])
    cluster = cluster_codes(scored)
    complete = _wholly_scored(predictions, scored)
    widths = to_numpy(pc.list_value_length(scored["scores"]))
    strict = difference = strict_chance = None
    if clustered and complete.any():
        strict, difference = intervals.strict_accuracy(right, cluster, complete, seed)
        strict_chance = breakdown.strict_chance(widths[complete], cluster[complete])
    near, random = _near_and_random(scored, right, cluster, seed)
    accuracy = intervals.accuracy(right, cluster, seed)
    bins = breakdown.calibration(to_numpy(scored["probability"]).astype(np.float64), right)
    return Metrics(
        items=items,
        scored=all_scored.num_rows,
        set_aside=dict(sorted(aside.items())),
        normalization=normalization,
        accuracy=accuracy,
        near_accuracy=near,
        random_accuracy=random,
        accuracies={
            METRIC_OF[name]: accuracy
            if name == normalization
            else intervals.accuracy(right_by(scored, name), cluster, seed)
            for name in (METRIC_OF if by_length else (normalization,))
        },
        chance=float(np.mean(1.0 / widths)),
        clusters=int(np.unique(cluster).size),
        strict_accuracy=strict,
        strict_difference=difference,
        strict_chance=strict_chance,
        cluster_sizes=breakdown.cluster_sizes(right[complete], cluster[complete])
        if clustered
        else [],
        table=breakdown.table(scored, right, cluster),
        by_template=breakdown.groups(scored, "template", right, cluster),
        by_pos=breakdown.groups(scored, "pos", right, cluster),
        by_content=breakdown.groups(
            all_scored, "content", bools(all_scored["correct"]), cluster_codes(all_scored)
        ),
        ties=int(tie.sum()),
        ties_wrong=float((right & ~tie).mean()),
        tie_tolerance=tie_tolerance,
        calibration=bins,
        calibration_error=sum(bin.n * abs(bin.confidence - bin.accuracy) for bin in bins)
        / scored.num_rows,
        brier=_brier(scored, normalization),
        baselines={},
    )


def of_audit(audit: Audit | None, recorded: Sequence[BaselineFigure] = ()) -> dict[str, Any]:
    """Return the metrics that a built probe's audit holds, if it has one, by their names.

    Baselines that saw no row are left out. Those recorded with the probe are added.
    """
    every = {name: families["all"] for name, families in audit.baselines.items()} if audit else {}
    cells = {name: cell for name, cell in every.items() if cell.n}
    measured = {figure.label: figure for figure in recorded}
    return {
        "baselines": {
            **{name: cell.value for name, cell in cells.items()},
            **{name: figure.accuracy for name, figure in measured.items()},
        },
        "baseline_intervals": {
            name: (cell.low, cell.high) for name, cell in (cells | measured).items()
        },
        "oracles": {oracle.knows: oracle.families for oracle in audit.oracles.values()}
        if audit
        else {},
    }


def _near_and_random(
    scored: pa.Table, right: Bools, cluster: Ints, seed: int
) -> tuple[Estimate, Estimate] | tuple[None, None]:
    """Estimate the accuracy with near and with random distractors; None unless there are both."""
    rows = breakdown.near_and_random(scored)
    if not all(some.any() for some in rows):
        return None, None
    near, far = (intervals.accuracy(right[some], cluster[some], seed) for some in rows)
    return near, far


def _judge(values: Floats, starts: Ints) -> tuple[Ints, Floats, Floats]:
    """Compare the values of each question: ``values[starts[i] : starts[i + 1]]``.

    Returns:
        The prediction (the first of equals), its margin (infinite for a single choice) and its
        softmax share, each of shape [questions].
    """
    widths = np.diff(starts)
    prediction = np.zeros(widths.size, dtype=np.int64)
    margin = np.full(widths.size, np.inf)
    probability = np.ones(widths.size)
    for width in np.unique(widths[widths > 1]):
        rows = np.flatnonzero(widths == width)
        grid = values[starts[rows][:, None] + np.arange(width)]
        second, best = np.partition(grid, -2, axis=1)[:, -2:].T
        prediction[rows] = grid.argmax(axis=1)
        # Equal scores may be minus infinity, if all choices are ruled out.
        margin[rows] = np.subtract(best, second, out=np.zeros(rows.size), where=best != second)
        probability[rows] = softmax(grid).max(axis=1)
    return prediction, margin, probability


def compared_values(scored: pa.Table, normalization: Normalization) -> tuple[Floats, Ints, Ints]:
    """Return the compared values of scored rows' choices, where each row starts, and the golds."""
    import pyarrow.compute as pc

    raw, tokens = (to_numpy(single_chunk(scored[n]).flatten()) for n in ("scores", "tokens"))
    texts = single_chunk(scored["choices"]).flatten()
    starts = run_starts(to_numpy(pc.list_value_length(scored["scores"])))
    return compared(raw, tokens, texts, normalization), starts, to_numpy(scored["answer"])


def right_by(scored: pa.Table, normalization: Normalization) -> Bools:
    """Return whether each scored item is right if its scores are normalized in this way."""
    values, starts, answer = compared_values(scored, normalization)
    prediction, _, _ = _judge(values, starts)
    return np.asarray(prediction == answer)


def _brier(scored: pa.Table, normalization: Normalization) -> float:
    """Return the mean squared distance of shares from the right answer (Brier 1950)."""
    values, starts, answer = compared_values(scored, normalization)
    widths, total = np.diff(starts), 0.0
    for width in np.unique(widths):
        rows = np.flatnonzero(widths == width)
        shares = softmax(values[starts[rows][:, None] + np.arange(width)])
        shares[np.arange(rows.size), answer[rows]] -= 1.0
        total += float((shares**2).sum())
    return total / int(scored.num_rows)


def _kept_choices(split: ProbeSplit, set_aside: Mapping[int, str]) -> tuple[Bools, Bools]:
    """Return which items are scored, shape [items], and which choices, shape [choices]."""
    kept = np.ones(len(split.items), dtype=np.bool_)
    kept[list(set_aside)] = False
    return kept, np.repeat(kept, np.diff(split.items.starts))


def _refuse_non_numbers(raw: Any, starts: Ints, ids: pa.Array) -> None:
    bad = np.flatnonzero(np.isnan(raw) | (raw == np.inf))
    if bad.size == 0:
        return
    rows = np.searchsorted(starts, bad, side="right") - 1
    raise KbprobeError(
        f"{raw[bad[0]]} was given as the score of choice {bad[0] - starts[rows[0]] + 1} of "
        f"item {ids[int(rows[0])]} ({np.unique(rows).size} items in all): no choice can be picked. "
        "If a model gave it, use --dtype float32 (float16 overflows), or look for damaged weights."
    )


def _wholly_scored(predictions: pa.Table, scored: pa.Table) -> Bools:
    """Return whether all items of each scored item's cluster are scored."""
    import pyarrow.compute as pc

    left_out = predictions.filter(predictions["prediction"].is_null())["cluster"]
    return ~bools(pc.is_in(scored["cluster"], value_set=single_chunk(left_out)))


def _nothing_scored(items: int, aside: Mapping[str, int]) -> str:
    if not items:
        return "there are no items to measure: the split is empty"
    reasons = "; ".join(f"{reason}: {count}" for reason, count in sorted(aside.items()))
    return (
        f"all {items} items were set aside, so there is nothing to measure ({reasons}). "
        "Score them in another way (--multi-piece pll for a masked LM; --answers text, "
        "--max-tokens or --prompt for a chat model) or with another model."
    )
