"""Results as a run would leave them, around metrics that a test made."""

from __future__ import annotations

from typing import Any

from evaluation.results.types import Metrics, ModelInfo, ProbeInfo, Results, Scoring, Timings

_PROBE: dict[str, Any] = {
    "name": "made",
    "source": "here",
    "split": "test",
    "rows": 2,
    "fingerprint": "f",
    "request": {"seed": 0},
    "kbprobe_version": "0.1.0",
}
_MODEL: dict[str, Any] = {
    "id": "some/model",
    "revision": None,
    "architecture": "LlamaForCausalLM",
    "parameters": 7,
    "weights_sha256": "a" * 64,
    "tokenizer_sha256": "b" * 64,
    "dtype": "float32",
    "device": "cpu",
    "finetuning": None,
}
_SCORING: dict[str, Any] = {
    "scorer": "causal_lm",
    "version": 1,
    "score": "log-likelihood",
    "options": {},
    "notes": {},
    "key": "c" * 64,
}


def results_of(
    metrics: Metrics,
    *,
    probe: dict[str, Any] | None = None,
    model: dict[str, Any] | None = None,
    scoring: dict[str, Any] | None = None,
) -> Results:
    """Return whole results; the dictionaries say what is to differ from the sample."""
    return Results(
        probe=ProbeInfo(**_PROBE | {"clusters": getattr(metrics, "clusters", 2)} | (probe or {})),
        model=ModelInfo(**_MODEL | (model or {})),
        scoring=Scoring(**_SCORING | (scoring or {})),
        metrics=metrics,
        seed=0,
        timings=Timings(
            load=1.0,
            train=0.0,
            encode=1.0,
            score=1.0,
            total=3.0,
            sequences=1,
            tokens=1,
            scored_sequences=0,
            rows_per_second=None,
        ),
        versions={"kbprobe": "0.1.0"},
    )
