"""Probes evaluated by transformers' Trainer while it trains: what is logged, and what is not."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from datasets import Dataset, DatasetDict

import evaluation
import kbprobe
from evaluation.models.handle import leaving_no_trace
from kbprobe.errors import UsageError
from tests.evaluation import tiny_causal, tiny_masked

ADJECTIVES = ["older", "younger", "larger", "smaller", "never", "always", "rarely", "often"]
NOUNS = ["dog", "cat", "mouse", "robin", "penguin", "car", "bus", "truck", "piano", "house"]
ROWS = 48


def probe_in_memory() -> DatasetDict:
    """Clozes in clusters of two whose answers are words of the tiny models' texts."""
    rows = []
    for n in range(ROWS):
        first, second = NOUNS[n % 10], NOUNS[(n * 7 + n // 10 + 1) % 10]
        texts = [ADJECTIVES[(n + step) % 8] for step in range(3)]
        rows.append(
            {
                "id": f"row-{n}",
                "question": f"A {first} is [MASK] than a {second}.",
                "choices": {"text": texts, "label": ["A", "B", "C"]},
                "answerKey": "ABC"[n % 3],
                "setup": "mc_mlm",
                "cluster": f"cluster-{n // 2}",
            }
        )
    return DatasetDict(test=Dataset.from_list(rows))


class Recorder(transformers.TrainerCallback):
    """A reporter: keeps what it is given to log."""

    def __init__(self) -> None:
        self.logged: list[tuple[int, dict[str, float]]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self.logged.append((state.global_step, dict(logs)))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    tiny_masked.write("bert-uncased", folder / "masked")
    tiny_causal.write("gpt2", folder / "causal")
    tiny_causal.write("llama", folder / "llama")
    return folder


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    torch.set_num_threads(1)


def trainer_of(
    checkpoint: Path, output: Path, reporter: Recorder | None = None, **arguments: Any
) -> transformers.Trainer:
    """A Trainer of 12 steps with dropout and shuffled rows, seeded."""
    transformers.set_seed(7)
    if "masked" in checkpoint.name:
        model, tokenizer = tiny_masked.load(checkpoint)
    else:
        model, tokenizer = tiny_causal.load("gpt2", checkpoint)
    texts = [f"A {a} is {b} than a house." for a in NOUNS for b in ADJECTIVES]
    rows = []
    for text in texts[:64]:
        ids = tokenizer(text)["input_ids"][:12]
        rows.append({"input_ids": ids, "attention_mask": [1] * len(ids), "labels": ids})
    width = min(len(row["input_ids"]) for row in rows)
    rows = [{name: values[:width] for name, values in row.items()} for row in rows]
    given = {
        "max_steps": 12,
        "per_device_train_batch_size": 4,
        "learning_rate": 1e-2,
        "logging_steps": 3,
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        **arguments,
    }
    return transformers.Trainer(
        model,
        transformers.TrainingArguments(str(output), **given),
        train_dataset=rows,  # type: ignore[arg-type]
        eval_dataset=rows[:8],  # type: ignore[arg-type]
        data_collator=transformers.default_data_collator,
        processing_class=tokenizer,
        callbacks=None if reporter is None else [reporter],
    )


def logged_by(trainer: transformers.Trainer, key: str) -> dict[int, float]:
    """Return what the Trainer's own history has of a key, by step."""
    return {entry["step"]: entry[key] for entry in trainer.state.log_history if key in entry}


KEY = "eval_things_accuracy"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["masked", "causal"])
def test_training_is_the_same_bit_for_bit(world: Path, tmp_path: Path, name: str) -> None:
    weights, losses, drawn = [], [], []
    for with_probe in (False, True):
        trainer = trainer_of(world / name, tmp_path / str(with_probe))
        if with_probe:
            trainer.add_callback(
                kbprobe.ProbeCallback(trainer, {"things": probe_in_memory()}, every=2)
            )
        trainer.train()
        weights.append({k: v.clone() for k, v in trainer.model.state_dict().items()})
        losses.append(logged_by(trainer, "loss"))
        drawn.append((torch.rand(1).item(), np.random.get_state()[1].tolist(), random.random()))  # noqa: NPY002
        assert trainer.model.training
    assert list(logged_by(trainer, KEY)) == [0, 2, 4, 6, 8, 10, 12]
    assert list(losses[0]) == [3, 6, 9, 12], "steps 6 and 12 log the loss and the probe"
    assert losses[0] == losses[1]
    assert drawn[0] == drawn[1]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


@pytest.mark.parametrize(
    "name",
    ["causal", *(pytest.param(name, marks=pytest.mark.slow) for name in ("masked", "llama"))],
)
def test_the_accuracy_is_that_of_the_saved_checkpoint(
    world: Path, tmp_path: Path, name: str
) -> None:
    reporter = Recorder()
    trainer = trainer_of(world / name, tmp_path, reporter, save_strategy="steps", save_steps=6)
    trainer.add_callback(kbprobe.ProbeCallback(trainer, {"things": probe_in_memory()}, every=6))
    trainer.train()
    history = logged_by(trainer, KEY)
    models = {0: world / name, **{step: tmp_path / f"checkpoint-{step}" for step in (6, 12)}}
    for step, model in models.items():
        done = evaluation.evaluate(
            probe_in_memory(), model, device="cpu", dtype="float32", limit=500, facts=False
        )
        assert done.results.metrics.accuracy.value == pytest.approx(history[step], abs=1e-12)
    assert {step: logs[KEY] for step, logs in reporter.logged if KEY in logs} == history
    assert all(logs["eval_probes_runtime"] > 0 for _, logs in reporter.logged if KEY in logs)


@pytest.mark.slow
def test_accuracies_are_among_the_metrics_of_an_evaluation(world: Path, tmp_path: Path) -> None:
    trainer = trainer_of(
        world / "masked",
        tmp_path,
        eval_strategy="steps",
        eval_steps=4,
        save_strategy="steps",
        save_steps=4,
        load_best_model_at_end=True,
        metric_for_best_model=KEY,
    )
    trainer.add_callback(
        kbprobe.ProbeCallback(
            trainer, {"things": probe_in_memory()}, every="evaluate", at_start=False
        )
    )
    trainer.train()
    history = logged_by(trainer, KEY)
    assert list(history) == [4, 8, 12]
    assert trainer.state.best_metric == max(history.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("every", "steps"), [(5, [5, 10, 12]), ("epoch", [8, 12]), ("save", [6, 12])]
)
def test_when_probes_are_evaluated(
    world: Path, tmp_path: Path, every: Any, steps: list[int]
) -> None:
    trainer = trainer_of(
        world / "masked",
        tmp_path,
        per_device_train_batch_size=8,
        save_strategy="steps",
        save_steps=6,
    )
    probe = {"things": probe_in_memory()}
    trainer.add_callback(kbprobe.ProbeCallback(trainer, probe, every=every, at_start=False))
    trainer.train()
    assert list(logged_by(trainer, KEY)) == steps


@pytest.mark.slow
def test_resumed_training_is_not_evaluated_at_its_start(world: Path, tmp_path: Path) -> None:
    for more in ({"max_steps": 6}, {}):
        trainer = trainer_of(
            world / "masked", tmp_path, save_strategy="steps", save_steps=6, **more
        )
        trainer.add_callback(kbprobe.ProbeCallback(trainer, {"things": probe_in_memory()}, every=6))
        trainer.train(resume_from_checkpoint=None if more else str(tmp_path / "checkpoint-6"))
    assert list(logged_by(trainer, KEY)) == [0, 6, 12]


@pytest.mark.slow
def test_autocast_is_kept_and_does_not_disable_shortcuts(world: Path, tmp_path: Path) -> None:
    for name in ("masked", "causal"):
        trainer = trainer_of(world / name, tmp_path / name, bf16=True)
        callback = kbprobe.ProbeCallback(trainer, {"things": probe_in_memory()}, every=6)
        trainer.add_callback(callback)
        trainer.train()
        assert list(logged_by(trainer, KEY)) == [0, 6, 12]
        (evaluation_of_it,) = callback._opened[1].values()
        assert evaluation_of_it.run.model.dtype_name == "bfloat16"
        assert not evaluation_of_it._encoded.notes, "no plain_forward, nothing unpacked"
        assert "_original_forward" in vars(trainer.model)
        assert trainer.model.forward != trainer.model._original_forward


def test_every_part_gets_its_own_mode_back(world: Path) -> None:
    model, _ = tiny_masked.load(world / "masked")
    model.train()
    frozen = model.base_model.embeddings
    frozen.eval()
    before = [part.training for part in model.modules()]
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    with leaving_no_trace(model):
        assert not any(part.training for part in model.modules())
        torch.rand(3)
    assert torch.equal(torch.rand(3), expected)
    assert [part.training for part in model.modules()] == before
    assert not frozen.training
    assert model.training


@pytest.mark.slow
def test_a_diverged_model_is_warned_about_and_goes_on(world: Path, tmp_path: Path) -> None:
    trainer = trainer_of(world / "causal", tmp_path)

    class Diverge(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == 6:
                with torch.no_grad():
                    kwargs["model"].lm_head.weight.fill_(float("nan"))

    trainer.add_callback(Diverge())
    trainer.add_callback(kbprobe.ProbeCallback(trainer, {"things": probe_in_memory()}, every=6))
    with pytest.warns(UserWarning, match="step 6: things: "):
        trainer.train()
    assert trainer.state.global_step == 12
    assert list(logged_by(trainer, KEY)) == [0]


def test_wrong_requests_are_refused_before_training(world: Path, tmp_path: Path) -> None:
    trainer = trainer_of(world / "masked", tmp_path)
    probe = probe_in_memory()
    for wrong, said in (
        ({"every": 0}, "every=0: give a number of steps"),
        ({"every": "steps"}, "or one of epoch, evaluate, save"),
        ({"limits": 3}, "ProbeCallback has no option --limits"),
    ):
        with pytest.raises(UsageError, match=re.escape(said)):
            kbprobe.ProbeCallback(trainer, probe, **wrong)  # type: ignore[arg-type]
    for wrong, said in (
        ({"train": 10}, "leave train out"),
        ({"dtype": "bfloat16"}, "leave dtype out"),
        ({"scorer": "causal_lm"}, "does not score a BertForMaskedLM"),
        ({"split": "tets"}, "tets"),
    ):
        callback = kbprobe.ProbeCallback(trainer, probe, **wrong)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=said):
            callback.on_train_begin(
                trainer.args, trainer.state, trainer.control, model=trainer.model
            )
    with pytest.raises(UsageError, match="Give them by different names"):
        kbprobe.ProbeCallback(trainer, [probe, probe]).on_train_begin(
            trainer.args, trainer.state, trainer.control, model=trainer.model
        )
    trainer.processing_class = None
    with pytest.raises(UsageError, match="processing_class"):
        kbprobe.ProbeCallback(trainer, probe)


@pytest.mark.slow
def test_the_guide_works_as_written(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    shutil.copytree(world / "causal", "checkpoints/base")
    Path("train.txt").write_text("A dog is larger than a mouse.\nA house is older.\n" * 8)
    page = (Path(__file__).resolve().parents[2] / "docs" / "callback.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    defined: dict[str, Any] = {}
    # Fewer steps, the same number of evaluations.
    shorter = block.replace("max_steps=1000", "max_steps=8, use_cpu=True, disable_tqdm=True")
    exec(shorter.replace("every=250", "every=2"), defined)
    assert list(defined["curve"]) == [0, 2, 4, 6, 8]
    assert all(0 < accuracy < 1 for accuracy in defined["curve"].values())


SCRIPT = """
import sys
from pathlib import Path
import kbprobe
from tests.evaluation import test_callback as shared

trainer = shared.trainer_of(
    Path(sys.argv[1]), Path(sys.argv[2]), eval_strategy="steps", eval_steps=4,
    save_strategy="steps", save_steps=4, load_best_model_at_end=True,
    metric_for_best_model=shared.KEY, ddp_backend="gloo",
)
probe = {"things": shared.probe_in_memory()}
trainer.add_callback(kbprobe.ProbeCallback(trainer, probe, every="evaluate"))
trainer.train()
found = (list(shared.logged_by(trainer, shared.KEY)), trainer.state.best_metric)
Path(sys.argv[2], f"rank-{trainer.args.process_index}").write_text(repr(found))
"""


@pytest.mark.slow
@pytest.mark.posix
def test_the_main_process_evaluates_and_all_know_the_best(world: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc_per_node", "2", str(script), str(world / "masked"), str(tmp_path)),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    main, other = (eval((tmp_path / f"rank-{rank}").read_text()) for rank in (0, 1))
    assert main[0] == [0, 4, 8, 12]
    assert other[0] == [], "only the main process logs"
    assert main[1] == other[1] > 0
