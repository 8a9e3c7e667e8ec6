"""A training that is interrupted goes on from its last saved step, to exactly the same weights."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from evaluation.learners.base import FINETUNED
from evaluation.learners.finetune import kept
from evaluation.learners.finetune.kept import Unfinished
from evaluation.learners.finetune.training import Course
from evaluation.runs.executor import execute
from evaluation.runs.spec import RunSpec
from evaluation.workers import Session
from kbprobe.files.cache import cache_dir
from tests.evaluation import jsonl_probe
from tests.evaluation import tiny_multiple_choice as tiny
from tests.evaluation.jsonl_probe import drawn

torch.set_num_threads(1)
OPTIONS = {
    "train": 24,
    "epochs": 3,
    "training": {"train_batch": 4},
    "learning_rate": 1e-3,
    "facts": False,
}
STEPS = 18


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    jsonl_probe.write(folder / "probe", {"train": drawn("train", 30), "test": drawn("test", 10)})
    tiny.write(folder / "bert", "Bert")
    return folder


@pytest.fixture(autouse=True)
def saved_each_step(tmp_path, monkeypatch):
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept, "SECONDS", 0.0)
    monkeypatch.setattr(kept, "TIMES_ITS_COST", 0.0)


def run(world, kept, stop_after=None, **changes):
    """Train and score; with ``stop_after``, be interrupted at that step. Return the steps taken."""
    steps = []

    def progress(what, done, _total):
        if what == "fine-tuning":
            steps.append(done)
            if done == stop_after:
                raise KeyboardInterrupt

    values = {**OPTIONS, "keep_checkpoint": str(kept), **changes}
    spec = RunSpec.parse(str(world / "probe"), str(world / "bert"), values)
    [outcome] = execute([spec], Session(progress=progress))
    return steps, outcome.or_raise()


def weights(folder):
    return {name: value.numpy().tobytes() for name, value in load_file(folder / WEIGHTS).items()}


WEIGHTS = "model.safetensors"


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["slanted", "constant"])
def test_it_ends_with_the_same_weights(world, tmp_path, schedule, monkeypatch):
    kept = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        run(world, kept, stop_after=5, training={"train_batch": 4, "schedule": schedule})
    with pytest.raises(KeyboardInterrupt):
        run(world, kept, stop_after=11, training={"train_batch": 4, "schedule": schedule})
    steps, resumed = run(world, kept, training={"train_batch": 4, "schedule": schedule})
    assert steps == list(range(11, STEPS + 1)), "the step that was not saved is done again"
    assert not list((cache_dir() / FINETUNED).glob("*"))
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "other"))
    steps, whole = run(world, tmp_path / "whole", training={"train_batch": 4, "schedule": schedule})
    assert len(steps) == STEPS
    assert weights(kept) == weights(tmp_path / "whole")
    assert resumed.predictions.equals(whole.predictions)


@pytest.mark.slow
@pytest.mark.posix
def test_it_is_killed_while_it_saves(world, tmp_path):
    code = """
        import sys, torch
        from tests.evaluation import test_unfinished_training as tests
        torch.set_num_threads(1)
        tests.kept.SECONDS = tests.kept.TIMES_ITS_COST = 0
        tests.run(tests.Path(sys.argv[1]), tests.Path(sys.argv[2]))
    """
    kept = tmp_path / "kept"
    words = [sys.executable, "-c", textwrap.dedent(code), str(world), str(kept)]
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    running = subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL)
    while not list((cache_dir() / FINETUNED).glob("*/*-unfinished.pt")):
        assert running.poll() is None
        time.sleep(0.01)
    running.kill()
    running.wait()
    steps, _ = run(world, kept)
    assert 0 < len(steps) < STEPS
    assert not list((cache_dir() / FINETUNED).glob("*"))


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "bit", "empty"])
def test_what_cannot_be_read_is_trained_again(world, tmp_path, damage):
    kept = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        run(world, kept, stop_after=5)
    [state] = (cache_dir() / FINETUNED).glob("*/*-unfinished.pt")
    content = bytearray(state.read_bytes())
    if damage == "bit":
        content[len(content) // 2] ^= 1
    state.write_bytes({"cut": content[: len(content) // 2], "empty": b""}.get(damage, content))
    steps, _ = run(world, kept)
    assert len(steps) == STEPS


@pytest.mark.slow
def test_another_environment_starts_anew(world, tmp_path):
    kept = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        run(world, kept, stop_after=5)
    torch.set_num_threads(2)
    try:
        steps, _ = run(world, kept)
    finally:
        torch.set_num_threads(1)
    assert len(steps) == STEPS, "sums of another number of threads are others"


def test_saving_takes_a_twentieth_of_the_time(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "SECONDS", 60.0)
    monkeypatch.setattr(kept, "TIMES_ITS_COST", 20)
    now, spent = [0.0], []

    def save(*_):
        now[0] += 12
        spent.append(12)
        (tmp_path / "aside").touch()

    monkeypatch.setattr(kept.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(kept.torch, "save", lambda content, path: (path.touch(), save()))
    state = Unfinished(tmp_path / "state.pt")
    for _ in range(5000):
        now[0] += 1
        state.after_step(lambda: Course(weights={"w": torch.zeros(10)}))
    assert len(spent) > 15
    assert sum(spent) / now[0] < 0.055


def test_a_full_disk_costs_the_resumption_alone(world, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept.torch, "save", full)
    steps, _ = run(world, tmp_path / "kept")
    assert len(steps) == STEPS


@pytest.mark.slow
@pytest.mark.parametrize("results", [False, True], ids=["scored", "results written"])
def test_what_was_trained_for_a_run_that_was_scored_goes_with_the_next(
    world, tmp_path, monkeypatch, results
):
    """The process ended after scoring, and before it removed what it had trained."""
    values = {**OPTIONS, "epochs": 1}
    folder = tmp_path / "results" if results else None
    spec = RunSpec.parse(str(world / "probe"), str(world / "bert"), values, folder=folder)
    with monkeypatch.context() as killed:
        killed.setattr("evaluation.learners.kept.TrainedOnce.discard", lambda _self: None)
        [outcome] = execute([spec])
        outcome.or_raise()
    left = cache_dir() / FINETUNED
    assert any(left.iterdir())
    [outcome] = execute([spec])
    outcome.or_raise()
    assert not any(left.iterdir())
