"""What a run leaves behind is read back as it was, or refused with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.results.types import (
    PREDICTIONS,
    RESULTS,
    Estimate,
    Metrics,
    Results,
    predictions_schema,
    read_predictions,
    read_results,
    write_predictions,
    write_results,
)
from kbprobe.errors import UsageError
from tests.evaluation.sample_results import results_of

HALF = Estimate(value=0.5, low=0.1, high=0.9, n=2, method="wilson")


@pytest.fixture
def results() -> Results:
    metrics = Metrics(
        items=2,
        scored=2,
        set_aside={},
        normalization="sum",
        accuracy=HALF,
        accuracies={"acc": HALF},
        chance=0.5,
        clusters=2,
        strict_accuracy=None,
        strict_difference=None,
        cluster_sizes=[],
        table=[],
        by_template=[],
        by_pos=[],
        by_content=[],
        ties=0,
        ties_wrong=0.5,
        tie_tolerance=1e-4,
        calibration=[],
        calibration_error=0.1,
        brier=0.5,
        baselines={},
    )
    return results_of(metrics, model={"id": "modèle"}, scoring={"key": "k"})


@pytest.fixture
def predictions() -> pa.Table:
    scored = {
        "id": "a",
        "question": "q",
        "choices": ["x", "y"],
        "answer": 0,
        "setup": "mc_qa",
        "scores": [float("-inf"), 1.5],
        "tokens": [1, 2],
        "prediction": 1,
        "correct": False,
        "margin": float("inf"),
        "probability": 1.0,
        "tie": False,
        "set_aside": None,
        "cluster": "c",
        "concept": None,
        "hops": None,
        "distractor_family": None,
        "distractor_hops": 2,
        "pos": "noun",
        "template": "t",
    }
    aside = dict.fromkeys(scored) | {"id": "b", "choices": ["x"], "scores": [], "tokens": []}
    return pa.Table.from_pylist([scored, aside], schema=predictions_schema())


def test_results_come_back_as_they_were(tmp_path: Path, results: Results) -> None:
    write_results(results, tmp_path)
    assert read_results(tmp_path) == results
    assert [path.name for path in tmp_path.iterdir()] == [RESULTS]


def test_predictions_come_back_as_they_were(tmp_path: Path, predictions: pa.Table) -> None:
    write_predictions(predictions, tmp_path)
    first = (tmp_path / PREDICTIONS).read_bytes()
    read = read_predictions(tmp_path)
    assert read.equals(predictions)
    assert read.schema.equals(predictions_schema())
    write_predictions(read, tmp_path)
    assert (tmp_path / PREDICTIONS).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [PREDICTIONS]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, predictions: pa.Table) -> None:
    write_predictions(predictions, tmp_path)
    before = (tmp_path / PREDICTIONS).read_bytes()
    with pytest.raises(AttributeError):
        write_predictions(None, tmp_path)
    assert (tmp_path / PREDICTIONS).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [PREDICTIONS]


def test_no_results(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no results.*evaluate-probe"):
        read_results(tmp_path)
    with pytest.raises(UsageError, match=r"holds no predictions\.parquet"):
        read_predictions(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema_version": "1.0"}', "\xff"])
def test_damaged_results(tmp_path: Path, text: str) -> None:
    (tmp_path / RESULTS).write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=r"results\.json.*Evaluate again"):
        read_results(tmp_path)


@pytest.mark.parametrize("version", ["1.5", "9.1"])
def test_results_of_another_schema(tmp_path: Path, results: Results, version: str) -> None:
    held = json.loads(results.model_dump_json()) | {"schema_version": version, "more": 1}
    (tmp_path / RESULTS).write_text(json.dumps(held))
    with pytest.raises(UsageError, match=rf"schema version {version}.*reads 1\.6\. Evaluate again"):
        read_results(tmp_path)


def test_damaged_predictions(tmp_path: Path, predictions: pa.Table) -> None:
    path = tmp_path / PREDICTIONS
    path.write_bytes(b"PAR1 no more")
    with pytest.raises(UsageError, match=r"cannot be read.*Evaluate again"):
        read_predictions(tmp_path)
    pq.write_table(predictions.drop_columns(["correct"]), path)
    with pytest.raises(UsageError, match="correct"):
        read_predictions(tmp_path)
