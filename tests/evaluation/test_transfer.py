"""Transfer between probes: the matrix, what is trained how often, and what is refused before."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import evaluation
from evaluation.items.types import Item
from evaluation.learners.finetune import kept
from evaluation.learners.finetune.training import finetune
from evaluation.studies.table import StudyTables
from evaluation.studies.transfer import TRANSFER
from kbprobe.errors import KbprobeError, UsageError
from tests.evaluation import jsonl_probe
from tests.evaluation import tiny_multiple_choice as tiny
from tests.evaluation.test_curve_page import read

torch.set_num_threads(1)

VEHICLES = ("a bus", "a truck")
OTHERS = ("a dog", "a cat", "a mouse", "a house", "a toy", "a piano")
SETTINGS = {
    "learner": "full",
    "train": 16,
    "seeds": 2,
    "training": {"train_batch": 8},
    "learning_rate": 4e-3,
    "epochs": 4,
}


def render(summary: StudyTables) -> str:
    """Return the page of a summary."""
    return TRANSFER.files(summary)["transfer.html"]


def cell(summary, trained_on, tested_on):
    """Return the row of a pair of probes."""
    (row,) = summary.rows("runs", trained_on=trained_on, tested_on=tested_on)
    return SimpleNamespace(**row)


def vehicles(name, count):
    """Rows whose gold is the vehicle."""
    random = np.random.default_rng(sum(map(ord, name)))
    rows = []
    for number in range(count):
        shown = list(random.choice(OTHERS, 2, replace=False))
        answer = int(random.integers(3))
        shown.insert(answer, VEHICLES[number % 2])
        question = f"What is a vehicle? {'Really. ' * (number % 3)}"
        rows.append(Item(f"{name}-{number}", "mc_qa", question, tuple(map(str, shown)), answer))
    return rows


def toys(name, count):
    """Rows whose gold is never the vehicle: what is learnt of vehicles is wrong here."""
    return [
        Item(one.id, "mc_qa", "What is a toy?", one.choices, (one.answer + 1) % 3)
        for one in vehicles(name, count)
    ]


def give_concepts(folder, split, names):
    """Give the rows of a split, in turn, these concepts."""
    path = Path(folder) / f"{split}.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for number, row in enumerate(rows):
        row["concept"] = row["cluster"] = names[number % len(names)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("transfer")


@pytest.fixture(scope="module")
def probes(folder):
    makers = {"vehicles": vehicles, "cars": vehicles, "toys": toys}
    made = {
        name: jsonl_probe.write(
            folder / name, {s: make(f"{name}-{s}", n) for s, n in (("train", 20), ("test", 12))}
        )
        for name, make in makers.items()
    }
    return list(made.values())


@pytest.fixture(scope="module")
def model(folder):
    return str(tiny.write(folder / "bert", "Bert"))


@pytest.fixture(scope="module")
def encoder(folder):
    return str(tiny.write(folder / "encoder", "Bert", "Model"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def trainings(monkeypatch):
    """Count trainings."""
    done = []

    def counting(*arguments, **named):
        done.append(1)
        return finetune(*arguments, **named)

    monkeypatch.setattr(kept, "finetune", counting)
    return done


def transfer(probes, model, output=None, **options):
    return evaluation.study("transfer", probes, model, output=output, **{**SETTINGS, **options})


@pytest.mark.slow
def test_each_training_is_done_once_and_evaluated_on_all(probes, model, tmp_path, trainings):
    summary = transfer(probes, model, output=tmp_path / "out")
    assert len(trainings) == 3 * 2, "probes x seeds"
    names = ["vehicles", "cars", "toys"]
    pairs = [(row["trained_on"], row["tested_on"]) for row in summary.tables["runs"]]
    assert pairs == [(a, b) for a in names for b in names]
    for tested in summary.tables["probes"]:
        assert tested["reference"] is not None
        for trained in names:
            own = cell(summary, trained, tested["probe"])
            gain = 100 * (own.accuracy.value - tested["reference"].value)
            assert own.difference.value == pytest.approx(gain)
            assert own.accuracy.low <= own.accuracy.value <= own.accuracy.high
    # Vehicles and cars ask the same, so that either teaches the other; toys ask for the opposite.
    on_vehicles = {trained: cell(summary, trained, "vehicles").accuracy.value for trained in names}
    assert on_vehicles["cars"] > 0.5 > on_vehicles["toys"]
    written = json.loads((tmp_path / "out" / "transfer.json").read_text())
    assert written["tables"] == json.loads(summary.model_dump_json())["tables"]
    page = (tmp_path / "out" / "transfer.html").read_text()
    assert read(page).tags["script"] == 0
    assert page.count("marked") > 6, "the diagonals of both heat maps are outlined"
    again = transfer(probes, model, output=tmp_path / "out")
    assert again == summary
    assert len(trainings) == 6, "nothing is trained again"


@pytest.mark.slow
def test_the_mean_of_the_seeds_is_that_of_single_runs(probes, model):
    own = cell(transfer(probes[:2], model), "cars", "vehicles")
    alone = [
        evaluation.evaluate(
            probes[0],
            model,
            train_on=probes[1],
            train_seed=seed,
            **{name: value for name, value in SETTINGS.items() if name != "seeds"},
        ).results.metrics.accuracy.value
        for seed in range(2)
    ]
    assert own.accuracy.value == pytest.approx(np.mean(alone))


def test_heads_on_a_frozen_encoder_are_compared_with_chance(probes, encoder):
    summary = evaluation.study(
        "transfer", probes[:2], encoder, learner="frozen", train=16, seeds=1, epochs=4
    )
    for tested in summary.tables["probes"]:
        assert tested["reference"] is None
        own = cell(summary, "vehicles", tested["probe"])
        gain = 100 * (own.accuracy.value - tested["chance"])
        assert own.difference.value == pytest.approx(gain)
    assert any("cannot be evaluated before training" in note for note in summary.notes)
    assert any("done once" in note for note in summary.notes)
    assert "Difference from chance" in render(summary)


def test_concepts_that_were_trained_on_are_told(folder, encoder):
    rows = {"train": vehicles("known-train", 20), "test": vehicles("known-test", 12)}
    first = jsonl_probe.write(folder / "first", rows)
    second = jsonl_probe.write(
        folder / "second",
        {split: vehicles(f"second-{split}", len(held)) for split, held in rows.items()},
    )
    give_concepts(first, "train", ["dog", "cat"])
    give_concepts(first, "test", ["bus", "car"])
    give_concepts(second, "train", ["tree", "rose"])
    give_concepts(second, "test", ["dog", "moon", "sun"])
    summary = evaluation.study(
        "transfer", [first, second], encoder, learner="frozen", train=16, seeds=2, epochs=1
    )
    assert cell(summary, "first", "second").train_overlap == 4
    shares = [row["seen"] for row in summary.tables["runs"]]
    assert shares == [0.0, pytest.approx(1 / 3), 0.0, 0.0]
    assert any("33.3% of second (first)" in note for note in summary.notes)
    assert "Share of the questions evaluated whose concept" in render(summary)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": None, "learner": None}, "give their number with --train N"),
        ({"train": 21}, r"--train 21 asks for more rows than the train split of .*vehicles .*20"),
        ({"split": "train"}, "leave --split out"),
        ({"split": "dev"}, "has no split 'dev'"),
        ({"train_on": "x"}, "sets train_on itself"),
        ({"vocabulary": 3}, "no option"),
    ],
)
def test_impossible_requests_are_refused_before_training(
    probes, model, trainings, options, message
):
    with pytest.raises(UsageError, match=message):
        transfer(probes, model, **options)
    assert trainings == []


def test_probes_that_do_not_go_together_are_refused(probes, model, folder, tmp_path, trainings):
    with pytest.raises(UsageError, match="two probes or more"):
        transfer([probes[0], probes[0]], model)
    alone = jsonl_probe.write(folder / "alone", {"test": vehicles("alone", 4)})
    with pytest.raises(UsageError, match="train split of each probe"):
        transfer([probes[0], alone], model)
    again = jsonl_probe.write(
        tmp_path / "vehicles", {s: vehicles(f"other-{s}", 20) for s in ("train", "test")}
    )
    with pytest.raises(UsageError, match="several of the probes are called vehicles"):
        transfer([probes[0], again], model)
    labels = tmp_path / "labels"
    labels.mkdir()
    for split in ("train", "test"):
        lines = [
            {
                "id": f"{split}{number}",
                "setup": "nli",
                "premise": "A dog runs.",
                "hypothesis": "An animal runs.",
                "question": "A dog runs. An animal runs.",
                "choices": {
                    "text": ["entailment", "neutral", "contradiction"],
                    "label": ["A", "B", "C"],
                },
                "answer": 0,
                "answerKey": "A",
            }
            for number in range(20)
        ]
        (labels / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    with pytest.raises((UsageError, KbprobeError), match="setup nli"):
        transfer([probes[0], str(labels)], model)
    assert trainings == []
