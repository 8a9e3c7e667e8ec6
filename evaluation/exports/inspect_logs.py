"""Logs of Inspect: a JSON file of each run of written answers, which its viewer shows as chats.

The format is that of ``inspect_ai.log.EvalLog``, version 2. A sample is a question in one order of
its choices; the orders of a question are its epochs. Answers that name no choice are scored as
Inspect's NOANSWER, which counts as wrong.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evaluation.exports.reading import Exported, kept_columns
from evaluation.items.orders import LETTERS
from evaluation.results.analyses.generated import COLUMNS, UNREAD, generated_of
from evaluation.results.types import RESULTS, read_predictions
from kbprobe.files import write_file

_SCORER = "choice"
_RIGHT, _WRONG, _NO_ANSWER = "C", "I", "N"


def write_log(one: Exported, folder: Path) -> Path:
    """Write the log of a run in which answers were written into a folder; return the file."""
    results = one.results
    block = generated_of(results)
    assert block is not None
    predictions = read_predictions(one.folder)
    samples = list(_samples(predictions.to_pylist(), results.model.id))
    written = datetime.fromtimestamp(int((one.folder / RESULTS).stat().st_mtime), UTC)
    began = (written - timedelta(seconds=round(results.timings.total))).isoformat()
    created, epochs = written.isoformat(), max(sample["epoch"] for sample in samples)
    key = hashlib.sha256(f"{results.probe.fingerprint} {results.scoring.key}".encode()).hexdigest()
    right = sum(sample["scores"][_SCORER]["value"] == _RIGHT for sample in samples)
    options = results.scoring.options
    log = {
        "version": 2,
        "status": "success",
        "eval": {
            "run_id": key[:22],
            "eval_id": key[22:44],
            "task_id": key[42:64],
            "created": created,
            "task": one.task,
            "dataset": {
                "name": results.probe.name,
                "location": results.probe.source,
                "samples": results.probe.rows,
                "shuffled": False,
            },
            "model": results.model.id,
            "model_generate_config": {"temperature": 0, "max_tokens": options.get("max_tokens")},
            "config": {"epochs": epochs, "epochs_reducer": ["mean"]},
            "packages": {"kbprobe": results.versions.get("kbprobe", "unknown")},
            "metadata": {
                "probe": results.probe.model_dump(mode="json"),
                "scoring": results.scoring.model_dump(mode="json"),
                "accuracy": results.metrics.accuracy.model_dump(mode="json"),
                "chance": results.metrics.chance,
                "written": block.model_dump(mode="json"),
            },
            "scorers": [{"name": _SCORER}],
        },
        "plan": {"name": "plan", "steps": [{"solver": "generate"}]},
        "results": {
            "total_samples": len(samples),
            "completed_samples": len(samples),
            "scores": [
                {
                    "name": _SCORER,
                    "scorer": _SCORER,
                    "reducer": "mean",
                    "metrics": {
                        "accuracy": {"name": "accuracy", "value": right / max(1, len(samples))}
                    },
                }
            ],
        },
        "stats": {"started_at": began, "completed_at": created},
        "samples": samples,
    }
    folder.mkdir(parents=True, exist_ok=True)
    # Inspect takes files for logs whose names begin with the time.
    stamp = created.replace(":", "-")
    path = folder / f"{stamp}_{one.task.replace('_', '-')}_{key[:22]}.json"
    write_file(path, json.dumps(log, ensure_ascii=False, indent=1) + "\n")
    return path


def _samples(rows: list[dict[str, Any]], model: str) -> Iterator[dict[str, Any]]:
    for row in rows:
        columns = (row[name] for name in COLUMNS)
        for epoch, answer in enumerate(zip(*columns, strict=True), start=1):
            yield _sample(row, epoch, answer, model)


def _sample(
    row: dict[str, Any], epoch: int, answer: tuple[str, str, str, int], model: str
) -> dict[str, Any]:
    order, prompt, text, choice = answer
    places = [LETTERS.index(letter) for letter in order]
    letter_of = {shown: LETTERS[place] for place, shown in enumerate(places)}
    messages = json.loads(prompt)
    said = {"role": "assistant", "content": text, "source": "generate", "model": model}
    value = _RIGHT if choice == row["answer"] else _NO_ANSWER if choice == UNREAD else _WRONG
    read = "it names no choice, or several" if choice == UNREAD else row["choices"][choice]
    return {
        "id": row["id"],
        "epoch": epoch,
        "input": messages,
        "choices": [row["choices"][shown] for shown in places],
        "target": letter_of[row["answer"]],
        "messages": [*messages, said],
        "output": {
            "model": model,
            "choices": [{"message": said, "stop_reason": "unknown"}],
            "completion": text,
        },
        "scores": {
            _SCORER: {
                "value": value,
                "answer": letter_of.get(choice),
                "explanation": f"{read} (right: {row['choices'][row['answer']]})",
            }
        },
        "metadata": kept_columns(row),
    }
