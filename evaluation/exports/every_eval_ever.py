"""Every Eval Ever: a JSON file of a run and a line of JSON for each row, in its schema 0.3.0.

The schemas are those of the package ``every_eval_ever``. Rows that were set aside are not written:
the schema has no place for a row without an answer.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.exports.reading import Exported, kept_columns
from evaluation.models.capabilities import ENDPOINT
from evaluation.results.types import METRIC_OF, Estimate, Results, read_predictions
from evaluation.results.words import headline_remark, selection
from evaluation.studies.scorecard import (
    OVERALL_MEANS,
    ModelCard,
    Scorecard,
    card_name,
)
from kbprobe.files import file_sha256, write_file

SCHEMA = "0.3.0"
_LOADED_HERE = {"deployment_type": "self_deployed", "model_availability": "open_weights"}


def write_run(
    one: Exported, folder: Path, *, organization: str, relationship: str, now: int
) -> list[Path]:
    """Write the two files of a run.

    Args:
        one: its results.
        folder: the folder to write to; the files are in ``data/TASK/DEVELOPER/MODEL/``.
        organization: the evaluator.
        relationship: of the evaluator to the model, as the schema has it (``third_party`` ...).
        now: the time of the export, in seconds since 1970.

    Returns:
        The file of the run, and the file of its rows.
    """
    results = one.results
    name = _name(results.probe.fingerprint, results.scoring.key, results.model.id)
    place = _place(one.task, results.model.id)
    evaluation = f"{one.task}/{results.model.id}/{now}"
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(one, evaluation))
    (folder / place).mkdir(parents=True, exist_ok=True)
    rows = folder / place / f"{name}_samples.jsonl"
    write_file(rows, lines)
    about = _about(one.results, evaluation, organization, relationship, now)
    about["evaluation_results"] = [_accuracy(one)]
    about["detailed_evaluation_results"] = {
        "format": "jsonl",
        "file_path": (place / rows.name).as_posix(),
        "hash_algorithm": "sha256",
        "checksum": file_sha256(rows),
        "total_rows": results.metrics.scored,
    }
    run = folder / place / f"{name}.json"
    write_file(run, json.dumps(about, indent=2, ensure_ascii=False) + "\n")
    return [run, rows]


def write_card(
    card: Scorecard,
    model: ModelCard,
    first: Results,
    folder: Path,
    *,
    organization: str,
    relationship: str,
    now: int,
) -> Path:
    """Write the means of a model on a score card; return the file.

    ``first`` are its results on one of the probes, which say what was evaluated; other arguments
    are as of :func:`write_run`.
    """
    suite, name = card_name(card), first.model.id
    place = folder / _place(suite, name)
    about = _about(first, f"{suite}/{name}/{now}", organization, relationship, now)
    about["evaluation_results"] = [
        _mean(card, model, suite, which, estimate)
        for which in OVERALL_MEANS
        if (estimate := getattr(model.overall, which)) is not None
    ]
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{_name(card.rows_sha256, first.scoring.key, name)}.json"
    write_file(path, json.dumps(about, indent=2, ensure_ascii=False) + "\n")
    return path


def _name(*key: str) -> str:
    # The same name for the same run; the schema only accepts names of version 4.
    return str(uuid.UUID(bytes=hashlib.sha256(" ".join(key).encode()).digest()[:16], version=4))


def _place(task: str, model: str) -> Path:
    developer, _, name = model.strip("/").rpartition("/")
    return Path("data", task, Path(developer).name or "unknown", name)


def _mean(
    card: Scorecard, model: ModelCard, suite: str, name: str, estimate: Estimate
) -> dict[str, Any]:
    """Return a mean over the probes of a score card."""
    probes = model.probes
    return _result(
        f"{suite}/{name}",
        suite,
        suite,
        {
            "probes": ", ".join(one.probe for one in probes),
            "rows": str(sum(one.rows for one in probes)),
            "rows_sha256": card.rows_sha256,
            "standard": str(card.standard).lower(),
        },
        f"Mean over the probes of (x - chance) / (1 - chance), where x is {OVERALL_MEANS[name]}.",
        (f"kbprobe.{name}", name),
        -1,
        estimate,
    )


def _result(
    result_id: str,
    evaluation: str,
    dataset: str,
    source: dict[str, str],
    described: str,
    metric: tuple[str, str],
    lowest: int,
    estimate: Estimate,
    metric_details: dict[str, str] | None = None,
    score_details: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return a number in the schema's form; ``metric`` is its id and name."""
    return {
        "evaluation_result_id": result_id,
        "evaluation_name": evaluation,
        "source_data": {
            "dataset_name": dataset,
            "source_type": "other",
            "additional_details": source,
        },
        "metric_config": {
            "evaluation_description": described,
            "metric_id": metric[0],
            "metric_name": metric[1],
            "metric_kind": "accuracy",
            "metric_unit": "proportion",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": lowest,
            "max_score": 1,
            **({"additional_details": metric_details} if metric_details else {}),
        },
        "score_details": {
            "score": estimate.value,
            **({"details": score_details} if score_details else {}),
            "uncertainty": {
                "confidence_interval": {
                    "lower": estimate.low,
                    "upper": estimate.high,
                    "confidence_level": 0.95,
                    "method": estimate.method,
                },
                "num_samples": estimate.n,
            },
        },
    }


def _result_id(one: Exported) -> str:
    return f"{one.task}/{METRIC_OF[one.results.metrics.normalization]}"


def _about(
    results: Results, evaluation: str, organization: str, relationship: str, now: int
) -> dict[str, Any]:
    """Return who evaluated what with what."""
    model, scoring = results.model, results.scoring
    served = model.device == ENDPOINT.name
    return {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation,
        "retrieved_timestamp": str(now),
        "source_metadata": {
            "source_name": "kbprobe",
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": relationship,
        },
        "eval_library": {
            "name": "kbprobe",
            "version": results.versions.get("kbprobe", "unknown"),
            "additional_details": {
                "scorer": scoring.scorer,
                "score": scoring.score,
                "scorer_version": str(scoring.version),
                "seed": str(results.seed),
            },
        },
        "model_info": {
            "name": model.id,
            "id": model.id,
            "inference_engine": {
                "name": model.architecture if served else "transformers",
                "version": "unknown" if served else results.versions.get("transformers", "unknown"),
            },
            "additional_details": {
                **({} if served else _LOADED_HERE),
                "architecture": model.architecture,
                **({"parameters": str(model.parameters)} if model.parameters else {}),
                "dtype": model.dtype,
                "weights_sha256": model.weights_sha256,
                **({"revision": model.revision} if model.revision else {}),
                **({"finetuning": json.dumps(model.finetuning)} if model.finetuning else {}),
            },
        },
    }


def _accuracy(one: Exported) -> dict[str, Any]:
    """Return the accuracy of a run."""
    metrics, probe = one.results.metrics, one.results.probe
    measured, sample = "Share of rows whose right choice scored best.", {}
    if probe.split_rows is not None:
        measured += f" Measured on {probe.rows:,} of the {probe.split_rows:,} rows "
        measured += f"({selection(one.results)})."
        sample = {"rows_of_split": str(probe.split_rows)}
    if (remark := headline_remark(metrics)) is not None:
        measured += f" The {remark}."
    return _result(
        _result_id(one),
        one.task,
        probe.name,
        {
            "source": probe.source,
            "split": probe.split,
            "rows": str(probe.rows),
            **sample,
            "rows_sha256": probe.fingerprint,
            "built_by": f"kbprobe {probe.kbprobe_version or 'unknown'}",
        },
        measured,
        ("accuracy", METRIC_OF[metrics.normalization]),
        0,
        metrics.accuracy,
        {"chance": f"{metrics.chance:.6f}"},
        {"rows_set_aside": str(metrics.items - metrics.scored)},
    )


def _rows(one: Exported, evaluation: str) -> Iterator[dict[str, Any]]:
    for row in read_predictions(one.folder).to_pylist():
        if row["prediction"] is None:
            continue
        question, choices = row["question"], list(row["choices"])
        gold, said = choices[row["answer"]], choices[row["prediction"]]
        yield {
            "schema_version": SCHEMA,
            "evaluation_id": evaluation,
            "evaluation_result_id": _result_id(one),
            "model_id": one.results.model.id,
            "evaluation_name": one.task,
            "sample_id": row["id"],
            "sample_hash": hashlib.sha256(f"{question}{gold}".encode()).hexdigest(),
            "interaction_type": "single_turn",
            "input": {"raw": question, "reference": [gold], "choices": choices},
            "output": {"raw": [said]},
            "messages": None,
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": said,
                    "extraction_method": "choice with the best score",
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": float(row["correct"]), "is_correct": row["correct"]},
            "metadata": {
                "setup": row["setup"],
                "scores": json.dumps(row["scores"]),
                **{name: str(value) for name, value in kept_columns(row).items()},
            },
        }
