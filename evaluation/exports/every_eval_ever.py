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

from evaluation.exports.reading import Exported
from evaluation.models.capabilities import ENDPOINT
from evaluation.results.types import METRIC_OF, read_predictions
from evaluation.results.words import headline_remark
from kbprobe.files import file_sha256, write_file

SCHEMA = "0.3.0"
_LOADED_HERE = {"deployment_type": "self_deployed", "model_availability": "open_weights"}
_KEPT = ("cluster", "concept", "hops", "distractor_family", "distractor_hops", "pos", "template")
"""Columns of the predictions that a row's metadata keeps."""


def write_run(
    one: Exported, folder: Path, *, organization: str, relationship: str, now: int
) -> list[Path]:
    """Write the two files of a run.

    Args:
        one: its results.
        folder: where to; the files lie below ``data/TASK/DEVELOPER/MODEL/``.
        organization: who evaluated.
        relationship: of the evaluator to the model, as the schema has it (``third_party`` ...).
        now: the time of the export, in seconds since 1970.

    Returns:
        The file of the run, and the file of its rows.
    """
    results = one.results
    # The same name for the same run; the schema takes names of version 4 alone.
    key = f"{results.probe.fingerprint} {results.scoring.key} {results.model.id}"
    name = str(uuid.UUID(bytes=hashlib.sha256(key.encode()).digest()[:16], version=4))
    developer, _, model = results.model.id.strip("/").rpartition("/")
    place = Path("data", one.task, Path(developer).name or "unknown", model)
    evaluation = f"{one.task}/{results.model.id}/{now}"
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(one, evaluation))
    (folder / place).mkdir(parents=True, exist_ok=True)
    rows = folder / place / f"{name}_samples.jsonl"
    write_file(rows, lines)
    about = _run(one, evaluation, organization, relationship, now)
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


def _result_id(one: Exported) -> str:
    return f"{one.task}/{METRIC_OF[one.results.metrics.normalization]}"


def _run(
    one: Exported, evaluation: str, organization: str, relationship: str, now: int
) -> dict[str, Any]:
    results = one.results
    metrics, model, scoring, probe = results.metrics, results.model, results.scoring, results.probe
    accuracy, served = metrics.accuracy, model.device == ENDPOINT.name
    metric = METRIC_OF[metrics.normalization]
    measured, sample = "Share of rows whose right choice scored best.", {}
    if probe.split_rows is not None:
        measured += f" Measured on {probe.rows:,} of the {probe.split_rows:,} rows (--limit)."
        sample = {"rows_of_split": str(probe.split_rows)}
    if (remark := headline_remark(metrics)) is not None:
        measured += f" The {remark}."
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
        "evaluation_results": [
            {
                "evaluation_result_id": _result_id(one),
                "evaluation_name": one.task,
                "source_data": {
                    "dataset_name": probe.name,
                    "source_type": "other",
                    "additional_details": {
                        "source": probe.source,
                        "split": probe.split,
                        "rows": str(probe.rows),
                        **sample,
                        "rows_sha256": probe.fingerprint,
                        "built_by": f"kbprobe {probe.kbprobe_version or 'unknown'}",
                    },
                },
                "metric_config": {
                    "evaluation_description": measured,
                    "metric_id": "accuracy",
                    "metric_name": metric,
                    "metric_kind": "accuracy",
                    "metric_unit": "proportion",
                    "lower_is_better": False,
                    "score_type": "continuous",
                    "min_score": 0,
                    "max_score": 1,
                    "additional_details": {"chance": f"{metrics.chance:.6f}"},
                },
                "score_details": {
                    "score": accuracy.value,
                    "details": {"rows_set_aside": str(metrics.items - metrics.scored)},
                    "uncertainty": {
                        "confidence_interval": {
                            "lower": accuracy.low,
                            "upper": accuracy.high,
                            "confidence_level": 0.95,
                            "method": accuracy.method,
                        },
                        "num_samples": metrics.accuracy.n,
                    },
                },
            }
        ],
    }


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
                **{key: str(row[key]) for key in _KEPT if row[key] is not None},
            },
        }
