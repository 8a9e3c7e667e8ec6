"""Accuracies are logged to TensorBoard and Weights & Biases: their own files hold the numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evaluation
from evaluation import tracking
from evaluation.cli import main
from evaluation.studies.registry import STUDIES
from evaluation.tracking import Tracked, TrackingOptions, log_runs, metrics_of
from kbprobe.errors import KbprobeError, UsageError
from tests.evaluation import tiny_masked
from tests.evaluation.test_curve_study import SENTENCES, write_split

BLOCK, WHOLE, LAST = 1 << 15, 1, 4
SECRET = "0123456789abcdef" * 2 + "01234567"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    write_split(folder / "ages", "test", SENTENCES[""], range(12))
    for step in (10, 500):
        tiny_masked.write("bert-uncased", folder / "run" / f"checkpoint-{step}")
    return folder


@pytest.fixture(autouse=True)
def in_world(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    monkeypatch.setenv("KBPROBE_CACHE", str(world / "cache"))


def command(*words: Any, code: int = 0) -> None:
    with pytest.raises(SystemExit) as done:
        main([*map(str, words)])
    assert (done.value.code or 0) == code


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Read TensorBoard's event files in a folder back."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def test_what_is_logged_of_results_and_of_revisions(tmp_path: Path) -> None:
    both = ["run/checkpoint-10", "run/checkpoint-500"]
    summary = evaluation.study("zero_shot", "ages", both)
    track = STUDIES.get("zero_shot").track
    assert track is not None
    runs = track(summary)
    assert [(run.name, list(run.points)) for run in runs] == [
        ("run/checkpoint-10", [10]),
        ("run/checkpoint-500", [500]),
    ]
    found = summary.results[0].metrics
    point = runs[0].points[10]
    assert point["eval/ages_accuracy"] == found.accuracy.value
    assert point["eval/ages_accuracy_low"] == found.accuracy.low
    assert point["eval/ages_chance"] == found.chance
    series = evaluation.study("revisions", "ages", "run", revisions=("checkpoint-*",))
    track = STUDIES.get("revisions").track
    assert track is not None
    (run,) = track(series)
    assert list(run.points) == [10, 500]
    assert run.points[500]["eval/ages_became_right"] == 0.0
    run.add(10, metrics_of("ages", chance=0.25))
    assert run.points[10]["eval/ages_chance_2"] == 0.25, "of another probe of this name"


def test_what_is_missing_is_said_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    import accelerate.utils

    monkeypatch.setattr(accelerate.utils, "is_tensorboard_available", lambda: False)
    monkeypatch.setattr("evaluation.studies.run.execute_side_by_side", None)
    with pytest.raises(KbprobeError, match=r"--log-to tensorboard needs .*'\.\[tracking\]'"):
        evaluation.study("zero_shot", "ages", "run/checkpoint-10", log_to=("tensorboard",))
    with pytest.raises(UsageError, match=r"--log-to.* must be one of tensorboard, wandb"):
        evaluation.study("zero_shot", "ages", "run/checkpoint-10", log_to=("tensorbord",))
    with pytest.raises(UsageError, match="--log-to"):
        evaluation.study("curve", "ages", "run/checkpoint-10", log_to=("tensorboard",))


def test_tensorboard_reads_the_accuracies_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    words = ["ages", "--model", "run", "--revisions", "checkpoint-*", "-o", tmp_path / "out"]
    words += ["--log-to", "tensorboard", "--log-dir", tmp_path / "logs"]
    command("revisions", *words)
    assert f"Logged to tensorboard in {tmp_path / 'logs'}" in capsys.readouterr().err
    held = json.loads((tmp_path / "out" / "revisions.json").read_text())
    expected = [(row["step"], row["accuracy"]["value"]) for row in held["tables"]["runs"]]
    (folder,) = [path for path in (tmp_path / "logs").iterdir() if path.is_dir()]
    logged = scalars(folder)
    assert logged["eval/ages_accuracy"] == [(s, pytest.approx(value)) for s, value in expected]
    assert [step for step, _ in logged["eval/ages_became_wrong"]] == [500]
    command("revisions", *words)
    assert len(list((tmp_path / "logs").iterdir())) == 2, "another run, not the same points twice"
    assert scalars(folder) == logged
    assert "log" not in json.loads(next((tmp_path / "out").rglob("results.json")).read_text())
    (tmp_path / "file").write_text("")
    options = TrackingOptions(log_to=("tensorboard",), log_dir=tmp_path / "file")
    with pytest.raises(KbprobeError, match=r"name another folder with --log-dir"):
        log_runs([Tracked("m", {}, {0: {"a": 1.0}})], options)


@pytest.mark.slow
def test_wandb_keeps_them_offline_and_no_key_in_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    monkeypatch.setenv("WANDB_SILENT", "true")
    words = ["ages", "--model", "run", "--revisions", "checkpoint-*", "-o", tmp_path / "out"]
    command("revisions", *words, "--log-to", "wandb", "--log-dir", tmp_path / "logs")
    (kept,) = (tmp_path / "logs").rglob("*.wandb")
    values = wandb_history(kept)
    held = json.loads((tmp_path / "out" / "revisions.json").read_text())
    expected = [(row["step"], row["accuracy"]["value"]) for row in held["tables"]["runs"]]
    assert [(v["_step"], v["eval/ages_accuracy"]) for v in values] == [
        (step, pytest.approx(value)) for step, value in expected
    ]
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


def wandb_history(path: Path) -> list[dict[str, Any]]:
    """Read the metrics of an offline run back: its file is a log of LevelDB's form."""
    from wandb.proto import wandb_internal_pb2

    data, at, parts, found = path.read_bytes(), 7, b"", []
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:
            at += BLOCK - at % BLOCK
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (WHOLE, LAST):
            record = wandb_internal_pb2.Record.FromString(parts)
            parts = b""
            if items := record.history.item:
                names = (item.key or "/".join(item.nested_key) for item in items)
                values = (json.loads(item.value_json) for item in items)
                found.append(dict(zip(names, values, strict=True)))
    return found


def test_names_are_those_of_the_callback() -> None:
    assert tracking.logged_name("age comparison/no-language") == "age_comparison_no_language"
