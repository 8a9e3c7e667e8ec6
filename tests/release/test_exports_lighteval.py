"""lighteval itself, on exports: its documents, and the accuracy it comes to."""

import pytest

import evaluation
from evaluation.items.sources import open_probe
from evaluation.scorers.causal.prompts import Prompt
from release.exports.exporting import export
from tests.evaluation import tiny_causal
from tests.release.exports_toy import CLOZES, ODD, rows, write_probe

pytest.importorskip("lighteval", reason="running an export needs lighteval: pip install lighteval")


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")


def tasks_of(folder):
    from lighteval.tasks.lighteval_task import LightevalTask
    from lighteval.tasks.registry import Registry

    module = Registry.create_custom_tasks_module(folder / "task.py")
    return [LightevalTask(config) for config in module.TASKS_TABLE]


def test_lighteval_reads_odd_texts_to_the_letter(tmp_path):
    folder = write_probe(
        tmp_path / "probe",
        {"default": {"test": rows(ODD)}, "clozes": {"test": rows(CLOZES, "mc_mlm")}},
    )
    done = export(folder, "lighteval", tmp_path / "out")
    for task in tasks_of(done.folder):
        items = open_probe(str(folder), config=done.tasks[task.name]).items
        for doc, item in zip(task.eval_docs(), items, strict=True):
            (rendered,) = Prompt().render(item)
            assert (doc.query, tuple(doc.choices)) == rendered
            assert doc.gold_index == item.answer


def test_lighteval_comes_to_the_same_accuracy(built_probe, tmp_path):
    from lighteval.models.transformers.transformers_model import (
        TransformersModel,
        TransformersModelConfig,
    )

    folder = built_probe("antonym_negation")
    checkpoint = tiny_causal.write("llama", tmp_path / "tiny")
    done = export(folder, "lighteval", tmp_path / "out", configs=["default"])
    (task,) = tasks_of(done.folder)
    model = TransformersModel(
        TransformersModelConfig(
            model_name=str(checkpoint), dtype="float32", batch_size=16, device="cpu"
        )
    )
    docs = task.get_docs()
    (metric,) = task.metrics
    scores = [
        metric.compute_sample(doc=doc, model_response=response)["acc"]
        for doc, response in zip(docs, model.loglikelihood(docs), strict=True)
    ]
    own = evaluation.evaluate(folder, checkpoint, device="cpu", dtype="float32")
    assert metric.corpus_level_fn(scores) == own.results.metrics.accuracies["acc"].value
