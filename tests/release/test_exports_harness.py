"""lm-evaluation-harness itself, on exports: the rows it asks, and the accuracy it comes to."""

import json

import numpy as np
import pytest

import evaluation
from evaluation.items.sources import open_probe
from evaluation.scorers.causal.prompts import Prompt
from kbprobe.errors import how_to_install
from release.exports.exporting import export
from tests.evaluation import tiny_causal
from tests.release.exports_toy import CLOZES, ODD, rows, write_probe

lm_eval = pytest.importorskip(
    "lm_eval", reason=f"running an export needs lm-evaluation-harness: {how_to_install('peers')}"
)


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")


def tiny_checkpoint(folder):
    """A tiny seeded Llama that reads questions as long as these: its positions are rotary."""
    tiny_causal.write("llama", folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["max_position_embeddings"] = 2048
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def tasks_of(folder, monkeypatch):
    """Load an export as ``--include_path .`` does: its tasks, and its groups."""
    from lm_eval.tasks import TaskManager

    monkeypatch.chdir(folder)
    return TaskManager(include_path=".", include_defaults=False)


def asked(task, doc):
    """What the harness would have a model read, for a row."""
    context = task.fewshot_context(doc, num_fewshot=0)
    return [request.args for request in task.construct_requests(doc=doc, ctx=context)]


def test_the_harness_reads_odd_texts_to_the_letter(tmp_path, monkeypatch):
    folder = write_probe(
        tmp_path / "probe",
        {"default": {"test": rows(ODD)}, "clozes": {"test": rows(CLOZES, "mc_mlm")}},
    )
    done = export(folder, "lm-eval", tmp_path / "out")
    loaded = tasks_of(done.folder, monkeypatch).load(list(done.tasks))["tasks"]
    for name, config in done.tasks.items():
        task = loaded[name]
        items = open_probe(str(folder), config=config).items
        docs = list(task.test_docs())
        assert [doc["id"] for doc in docs] == [item.id for item in items]
        assert [task.doc_to_target(doc) for doc in docs] == [item.answer for item in items]
        for doc, item in zip(docs, items, strict=True):
            (rendered,) = Prompt().render(item)
            expected = [(rendered.context, one) for one in rendered.continuations]
            assert asked(task, doc) == expected


@pytest.mark.parametrize("probe", ["wordnet_hypernymy", "antonym_negation"])
def test_the_harness_comes_to_the_same_accuracy(built_probe, probe, tmp_path, monkeypatch):
    from lm_eval.models.huggingface import HFLM

    folder = built_probe(probe)
    checkpoint = tiny_checkpoint(tmp_path / "tiny")
    done = export(folder, "lm-eval", tmp_path / "out")
    manager = tasks_of(done.folder, monkeypatch)
    model = HFLM(pretrained=str(checkpoint), device="cpu", dtype="float32", batch_size=16)
    ran = lm_eval.simple_evaluate(
        model, tasks=list(done.tasks), task_manager=manager, bootstrap_iters=0, log_samples=True
    )
    for name, config in done.tasks.items():
        own = evaluation.evaluate(
            folder, checkpoint, config=config, device="cpu", dtype="float32", cache=False
        )
        theirs = ran["results"][name]
        accuracies = own.results.metrics.accuracies
        named = {
            metric: theirs[f"{metric},none"] for metric in accuracies if metric != "acc_tokens"
        }
        assert named == {metric: accuracies[metric].value for metric in named}
        assert theirs["sample_len"] == own.predictions.num_rows
        predicted = dict(
            zip(
                own.predictions["id"].to_pylist(),
                own.predictions["prediction"].to_pylist(),
                strict=True,
            )
        )
        by_length = own.results.metrics.normalization == "char"
        for sample in ran["samples"][name]:
            scores = np.array([score for score, _ in sample["filtered_resps"]])
            if by_length:
                scores = scores / [len(text) for text in sample["doc"]["choices"]["text"]]
            assert predicted[sample["doc"]["id"]] == int(np.argmax(scores))


def test_the_harness_knows_the_group_and_its_examples(built_probe, tmp_path, monkeypatch):
    done = export(built_probe("antonym_negation"), "lm-eval", tmp_path / "out")
    manager = tasks_of(done.folder, monkeypatch)
    (command,) = done.commands
    group = command.split()[-1]
    loaded = manager.load(group)
    assert set(loaded["tasks"]) == set(done.tasks)
    task = loaded["tasks"]["kbprobe_antonym_negation"]
    asked_now = {doc["cluster"] for doc in task.test_docs()}
    assert task.config.fewshot_split == "validation"
    assert not asked_now & {doc["cluster"] for doc in task.fewshot_docs()}
