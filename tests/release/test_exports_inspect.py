"""Inspect itself, on exports: what it shows a model, and how it scores what the model answers."""

import pyarrow.parquet as pq
import pytest

import evaluation
from evaluation.items.sources import open_probe
from kbprobe.format.manifest import read_manifest
from release.exports.exporting import export
from release.exports.flat import BLANK, write_flat_configs
from release.hub.registration import registration
from tests.evaluation import tiny_causal
from tests.release.exports_toy import CLOZES, ODD, rows, write_probe

inspect_ai = pytest.importorskip(
    "inspect_ai", reason="running an export needs Inspect: pip install inspect-ai"
)


def test_a_model_that_answers_as_another_predicts_gets_its_accuracy(
    built_probe, tmp_path, monkeypatch
):
    """Inspect asks for letters, so scores cannot be compared; what becomes of answers can."""
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ModelOutput,
        ModelUsage,
        get_model,
    )

    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    folder = built_probe("antonym_negation")
    checkpoint = tiny_causal.write("gpt2", tmp_path / "tiny")
    own = evaluation.evaluate(folder, checkpoint, device="cpu", dtype="float32")
    letters = {
        shown(item): "AB"[predicted]
        for item, predicted in zip(
            open_probe(str(folder)).items,
            own.predictions["prediction"].to_pylist(),
            strict=True,
        )
    }

    def answer(messages, tools, tool_choice, config):
        (letter,) = (one for text, one in letters.items() if messages[-1].text.endswith(text))
        said = ChatCompletionChoice(message=ChatMessageAssistant(content=f"ANSWER: {letter}"))
        # Without a usage tokens are counted with a vocabulary that is downloaded.
        return ModelOutput(model="mockllm", choices=[said], usage=ModelUsage())

    done = export(folder, "inspect", tmp_path / "out", configs=["default"])
    monkeypatch.chdir(done.folder)
    (log,) = inspect_ai.eval(
        f"task.py@{next(iter(done.tasks))}",
        model=get_model("mockllm/model", custom_outputs=answer),
        display="none",
        log_dir=str(tmp_path / "logs"),
    )
    assert log.status == "success"
    metrics = log.results.scores[0].metrics
    assert metrics["accuracy"].value == own.results.metrics.accuracy.value
    assert metrics["stderr"].params == {"cluster": "cluster"}


def shown(item):
    """A question as Inspect shows it: its text, an empty line, choices with letters."""
    lines = [f"{letter}) {text}" for letter, text in zip("ABCDE", item.choices, strict=False)]
    return "\n".join([item.question.replace("[MASK]", BLANK), "", *lines])


def test_the_registration_reads_every_row(tmp_path):
    from inspect_ai._eval.task.hf import HFTask, _record_to_sample_hf

    folder = write_probe(
        tmp_path / "probe",
        {"default": {"test": rows(ODD)}, "clozes": {"test": rows(CLOZES, "mc_mlm")}},
    )
    manifest = read_manifest(folder)
    flat = write_flat_configs(folder, manifest, tmp_path / "flat")
    registered = registration(manifest, flat, "default")["tasks"]
    assert [task["config"] for task in registered] == ["flat", "clozes-flat"]
    for one, written in zip(registered, flat, strict=True):
        task = HFTask.model_validate(one)
        items = open_probe(str(folder), config=written.source).items
        (file,) = written.files.files
        for row, item in zip(
            pq.read_table(tmp_path / "flat" / file.path).to_pylist(), items, strict=True
        ):
            sample = _record_to_sample_hf(row, task.field_spec)
            assert tuple(sample.choices) == item.choices
            assert sample.target == "ABCD"[item.answer]
            assert sample.input == (
                item.question.replace("[MASK]", BLANK) if item.setup == "mc_mlm" else item.question
            )
