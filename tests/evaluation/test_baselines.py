"""The study of baselines: what applies is run, summarised with intervals, and shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import evaluation
from evaluation.cli import main
from evaluation.items.types import Item
from evaluation.names import model_name
from kb_cache.fetching import fetch
from kbprobe.errors import UsageError
from kbprobe.format.setups import ACCEPTABILITY
from tests.evaluation import jsonl_probe, labelled_probe, tiny_multiple_choice
from tests.evaluation.test_curve_page import read

SAMPLE = Path(__file__).parents[1] / "data" / "glove.sample.50d.txt"
KINDS = {"animal": ("dog", "cat", "mouse"), "vehicle": ("car", "bus", "truck", "bicycle")}
NAMES = (
    *("random", "vec_similarity", "vec_similarity_published", "majority"),
    *("choice_only", "choice_to_choice", "question_to_choice", "esim"),
)
QUICK = {
    "epochs": 8,
    "training": {"hidden_units": 12},
    "learning_rate": 1e-2,
    "seeds": 2,
    "device": "cpu",
}


@pytest.fixture(scope="module", autouse=True)
def vectors(tmp_path_factory):
    """The sample of GloVe in a cache of this module's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBPROBE_CACHE", str(tmp_path_factory.mktemp("vectors")))
        fetch("vectors", source=SAMPLE, name="sample")
        yield


def rows(count, split):
    """Rows whose gold is of the kind asked for, which is each kind as often."""
    random = np.random.default_rng(len(split))
    made = []
    for number in range(count):
        kind = list(KINDS)[number % 2]
        other = list(KINDS)[1 - number % 2]
        shown = [str(word) for word in random.choice(KINDS[other], size=2, replace=False)]
        answer = int(random.integers(3))
        shown.insert(answer, str(random.choice(KINDS[kind])))
        question = f"What is a kind of {kind}?"
        made.append(Item(f"{split}-{number}", "mc_qa", question, tuple(shown), answer))
    return made


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    """The rows as published files."""
    splits = {"train": rows(100, "train"), "test": rows(60, "test")}
    return jsonl_probe.write(tmp_path_factory.mktemp("rows") / "kinds", splits)


@pytest.fixture(scope="module")
def done(probe, tmp_path_factory):
    """The folder of the whole study, and its summary."""
    folder = tmp_path_factory.mktemp("study")
    return folder, evaluation.study("baselines", probe, output=folder, **QUICK)


@pytest.mark.slow
def test_all_that_apply_are_run(done):
    _, summary = done
    rows = {row["baseline"]: row for row in summary.tables["runs"]}
    assert list(rows) == list(NAMES)
    [about] = summary.tables["probes"]
    chance = about["chance"]
    assert (about["rows"], about["train_rows"], chance) == (60, 100, pytest.approx(1 / 3))
    for name, row in rows.items():
        accuracy = row["accuracy"]
        assert len(row["draws"]) == (1 if name.startswith("vec_similarity") else 2)
        assert accuracy.value == pytest.approx(np.mean(row["draws"]))
        assert accuracy.low <= accuracy.value <= accuracy.high
        assert row["over_chance"].value == pytest.approx(100 * (accuracy.value - chance))
        trained = name != "random" and not name.startswith("vec_similarity")
        assert row["train_rows"] == (100 if trained else None)
    assert rows["question_to_choice"]["accuracy"].low > chance + 0.2
    # The odd choice out is the answer in all rows, and no choice by itself is.
    alone = rows["choice_only"]["accuracy"].value
    assert rows["choice_to_choice"]["accuracy"].value > alone
    assert any("fewer than the 3,000 requested" in note for note in summary.notes)


@pytest.mark.slow
def test_the_files_say_the_same(done):
    folder, summary = done
    written = json.loads((folder / "baselines.json").read_text())
    assert written["tables"] == json.loads(summary.model_dump_json())["tables"]
    page = (folder / "baselines.html").read_text()
    reader = read(page)
    assert reader.tags["script"] == 0
    assert reader.tags["svg"] == 1
    assert max(reader.ids.values()) == 1
    for name in NAMES:
        assert name in page


@pytest.mark.slow
def test_finished_runs_are_found_again(done, probe, monkeypatch):
    folder, summary = done
    monkeypatch.setattr("evaluation.learners.words.fitting.train", None)
    assert evaluation.study("baselines", probe, output=folder, **QUICK) == summary


def test_a_probe_that_is_named_twice_counts_once(probe):
    summary = evaluation.study("baselines", [probe, probe], baselines=("random",), seeds=2)
    [row] = summary.tables["runs"]
    assert len(row["draws"]) == 2


@pytest.mark.slow
def test_a_model_is_fitted_on_choices_alone_and_results_are_put_beside(probe, tmp_path):
    model = tiny_multiple_choice.write(tmp_path / "model", "Bert")
    evaluation.evaluate(probe, "none", scorer="random", guess_seed=9, output=tmp_path / "guesses")
    summary = evaluation.study(
        "baselines",
        probe,
        str(model),
        baselines=("random",),
        seeds=2,
        rows=12,
        epochs=1,
        device="cpu",
        beside=(str(tmp_path / "guesses"),),
    )
    first, alone, beside = summary.tables["runs"]
    assert (first["baseline"], first["beside"]) == ("random", None)
    assert alone["baseline"] == f"{model_name(str(model))}, choices alone"
    assert (alone["train_rows"], len(alone["draws"])) == (12, 2)
    assert alone["reads"] == "each choice alone"
    assert (beside["baseline"], beside["beside"]) == ("random", str(tmp_path / "guesses"))
    assert beside["draws"][0] not in first["draws"]


@pytest.mark.slow
def test_labels_have_fewer_baselines(tmp_path):
    folder = labelled_probe.write(tmp_path / "labels", ACCEPTABILITY)
    summary = evaluation.study("baselines", folder, rows=60, seeds=2, device="cpu")
    assert [row["baseline"] for row in summary.tables["runs"]] == ["random", "majority"]
    assert summary.tables["left_out"] == []


def test_a_single_file_has_nothing_to_train_on(probe, tmp_path, capsys):
    file = tmp_path / "published.jsonl"
    file.write_text((Path(probe) / "test.jsonl").read_text())
    with pytest.raises(SystemExit) as stopped:
        main(["baselines", str(file), "-o", str(tmp_path / "out"), "--json"])
    assert stopped.value.code == 0
    summary = json.loads(capsys.readouterr().out)
    assert [row["baseline"] for row in summary["tables"]["runs"]] == list(NAMES[:3])
    [note] = summary["sections"][0]["notes"]
    assert note.startswith("Not run: majority, choice_only")
    assert "no train split" in note
    with pytest.raises(UsageError, match=r"majority cannot be used with .*: there is no train"):
        evaluation.study("baselines", file, baselines=("majority",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baselines": ("majoritty",)}, "Did you mean 'majority'"),
        ({"baselines": ("mlm_baseline",)}, "does not take rows of mc_qa"),
        ({"train": 5}, "sets train itself"),
        ({"baselines": ("random",), "epochs": 3}, "--epochs is for .*: leave it out"),
        ({"record": True, "limit": 5}, "leave --limit 5 out"),
        ({"record": True}, "holds no built probe"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_runs(options, message, probe, monkeypatch):
    monkeypatch.setattr("evaluation.studies.run.execute_side_by_side", None)
    with pytest.raises(UsageError, match=message):
        evaluation.study("baselines", probe, **options)


def test_missing_vectors_are_named_with_the_command_that_gets_them(probe, tmp_path, monkeypatch):
    monkeypatch.setattr("evaluation.studies.run.execute_side_by_side", None)
    with pytest.raises(UsageError, match=r"no snapshot 'acme'.*kb-cache fetch vectors") as error:
        evaluation.study("baselines", probe, vectors="acme")
    assert "--baselines random,majority" in str(error.value)


def test_results_on_other_rows_are_not_put_beside(probe, tmp_path, monkeypatch):
    other = [replace(item, id=f"other-{item.id}") for item in rows(10, "test")]
    elsewhere = jsonl_probe.write(tmp_path / "other", {"test": other})
    evaluation.evaluate(elsewhere, "none", scorer="random", output=tmp_path / "guesses")
    beside = (str(tmp_path / "guesses"),)
    monkeypatch.setattr("evaluation.studies.run.execute_side_by_side", None)
    with pytest.raises(UsageError, match=r"--beside .*guesses: it holds results on 10 rows"):
        evaluation.study("baselines", probe, baselines=("random",), beside=beside)
