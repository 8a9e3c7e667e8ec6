"""Inoculation: the runs, the best settings, gains and costs, and what is refused before."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import evaluation
from evaluation.items.types import Item
from evaluation.learners.finetune import kept
from evaluation.learners.finetune.training import finetune
from evaluation.results.types import Estimate
from evaluation.studies.inoculate import INOCULATE, tables
from evaluation.studies.inoculate.axes import InoculateOptions
from kbprobe.errors import UsageError
from tests.evaluation import jsonl_probe
from tests.evaluation import tiny_multiple_choice as tiny

torch.set_num_threads(1)

VEHICLES = ("a bus", "a truck")
OTHERS = ("a dog", "a cat", "a mouse", "a house", "a toy", "a piano")
SETTINGS = {
    "training": {"train_batch": 8},
    "sizes": (8, 16),
    "learning_rates": (1e-3, 4e-3),
    "seeds": 1,
}


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
    """Rows whose gold is never the vehicle: another task, which training on vehicles spoils."""
    return [
        Item(one.id, "mc_qa", "What is a toy?", one.choices, (one.answer + 1) % 3)
        for one in vehicles(name, count)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("inoculate")


@pytest.fixture(scope="module")
def tasks(folder):
    makers = {"vehicles": vehicles, "toys": toys, "cars": vehicles}
    return {
        name: jsonl_probe.write(
            folder / name,
            {
                s: make(f"{name}-{s}", n)
                for s, n in (("train", 20), ("validation", 12), ("test", 9))
            },
        )
        for name, make in makers.items()
    }


@pytest.fixture(scope="module")
def model(folder):
    return str(tiny.write(folder / "bert", "Bert"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def trainings(monkeypatch):
    """Count the epochs of each training."""
    epochs = []

    def counting(model, tokenizer, items, options, *arguments, course, **named):
        before = len(course.losses)
        report = finetune(model, tokenizer, items, options, *arguments, course=course, **named)
        steps = len(course.losses)
        epochs.append(options.epochs * (steps - before) // steps)
        return report

    monkeypatch.setattr(kept, "finetune", counting)
    return epochs


def inoculate(tasks, model, probes=("vehicles",), output=None, **options):
    return evaluation.study(
        "inoculate",
        [tasks[name] for name in probes],
        model,
        output=output,
        **{"original": tasks["toys"], **SETTINGS, **options},
    )


@pytest.mark.slow
def test_what_is_gained_and_what_it_costs(tasks, model, tmp_path, trainings):
    summary = inoculate(tasks, model, output=tmp_path / "out", epoch_counts=(1, 4))
    before, *points = map(lambda row: SimpleNamespace(**row), summary.tables["runs"])
    assert [point.size for point in points] == [8, 16]
    best = next(point for point in points if point.best)
    assert best.test.value > before.test.value
    assert best.gain.value == pytest.approx(100 * (best.test.value - before.test.value))
    assert best.cost.value == pytest.approx(100 * (before.original.value - best.original.value))
    assert best.cost.low <= best.cost.value <= best.cost.high
    # 2 sizes x 2 rates, 1 + 3 epochs each; then the best of each size again for the test split.
    assert trainings[:8] == [1, 3] * 4
    assert len(trainings) == 10
    for point in points:
        tried = summary.rows("tried", size=point.size)
        means = {(row["learning_rate"], row["epochs"]): row["mean"] for row in tried}
        assert len(means) == 4
        assert means[point.learning_rate, point.epochs] == max(means.values())
    written = json.loads((tmp_path / "out" / "inoculate.json").read_text())
    assert written["tables"] == json.loads(summary.model_dump_json())["tables"]
    assert any("instead of 5" in note for note in summary.notes)
    page = (tmp_path / "out" / "inoculate.html").read_text()
    assert "vehicles (test), " in page
    assert f"{100 * best.test.value:.1f}%" in page
    assert page.count("<svg") == 1


@pytest.mark.slow
def test_heat_maps_before_and_after(tasks, model, tmp_path):
    folder = tmp_path / "vehicles"
    shutil.copytree(tasks["vehicles"], folder)
    for path in folder.iterdir():
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for at, row in enumerate(rows):
            row |= {
                "hops": 1 + at % 2,
                "distractor_family": "sister",
                "distractor_hops": 1 + at % 3,
            }
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = inoculate(
        {**tasks, "vehicles": str(folder)},
        model,
        **{"sizes": (8,), "learning_rates": (4e-3,), "epoch_counts": (4,), "seeds": 2},
    )
    before, after = summary.tables["runs"]
    cells = [
        {(r["hops"], r["distractor_hops"]): r["accuracy"] for r in summary.rows("hops", when=when)}
        for when in ("before", "after")
    ]
    assert list(cells[0]) == list(cells[1])
    assert len(cells[0]) == 6
    assert sum(cell.n for cell in cells[0].values()) == 9
    for cell, accuracy in ((cells[0], before["test"]), (cells[1], after["test"])):
        rows = sum(one.n for one in cell.values())
        mean = sum(one.value * one.n for one in cell.values()) / rows
        assert mean == pytest.approx(accuracy.value)
    page = INOCULATE.files(summary)["inoculate.html"]
    for caption in ("Test accuracy before training", "after training on 8 rows, in points"):
        assert caption in page
    assert page.count(">k′ 3</th>") == 3


@pytest.mark.slow
def test_a_second_call_trains_nothing_and_says_the_same(tasks, model, tmp_path, trainings):
    first = inoculate(tasks, model, output=tmp_path / "out", epoch_counts=(1,))
    count = len(trainings)
    again = inoculate(tasks, model, output=tmp_path / "out", epoch_counts=(1,))
    assert len(trainings) == count
    assert again == first


@pytest.mark.slow
def test_several_probes_are_a_transfer_matrix(tasks, model):
    summary = inoculate(
        tasks,
        model,
        probes=("vehicles", "cars"),
        sizes=(16,),
        learning_rates=(4e-3,),
        epoch_counts=(4,),
        seeds=2,
    )
    cells = {(row["trained_on"], row["tested_on"]): row for row in summary.tables["transfer"]}
    assert set(cells) == {(a, b) for a in ("vehicles", "cars") for b in ("vehicles", "cars")}
    for best in summary.rows("runs", best=True):
        assert cells[best["probe"], best["probe"]]["accuracy"] == best["test"]
    assert "trained on / tested on" in INOCULATE.files(summary)["inoculate.html"]
    # The two ask the same, so that either teaches the other.
    assert cells["vehicles", "cars"]["gain"].value > 0


@pytest.mark.slow
def test_the_cost_on_several_tasks_is_the_mean_of_their_costs(tasks, model):
    options = {"sizes": (8,), "learning_rates": (4e-3,), "epoch_counts": (4,), "seeds": 2}
    alone = {
        name: inoculate(tasks, model, original=tasks[name], **options).tables["runs"]
        for name in ("toys", "cars")
    }
    both = inoculate(tasks, model, original=(tasks["toys"], tasks["cars"]), **options)
    before, after = both.tables["runs"]
    for row, number in ((before, 0), (after, 1)):
        parts = [rows[number]["original"] for rows in alone.values()]
        assert row["original"].value == pytest.approx(np.mean([part.value for part in parts]))
        assert row["original"].n == sum(part.n for part in parts)
    costs = [rows[1]["cost"] for rows in alone.values()]
    assert after["cost"].value == pytest.approx(np.mean([cost.value for cost in costs]))
    assert after["cost"].low <= after["cost"].value <= after["cost"].high
    assert after["test"] == alone["toys"][1]["test"]
    for name, rows in alone.items():
        own = both.rows("originals", task=tasks[name])
        assert [row["size"] for row in own] == [0, 8]
        assert [row["accuracy"] for row in own] == [row["original"] for row in rows]
        assert [row["cost"] for row in own] == [row["cost"] for row in rows]
    (tried,) = both.tables["tried"]
    assert tried["mean"] == pytest.approx((tried["probe_accuracy"] + tried["original"]) / 2)
    page = INOCULATE.files(both)["inoculate.html"]
    assert "Accuracy and cost on each original task" in page
    assert "Cost on the mean of 2 original tasks" in page


@pytest.mark.slow
def test_original_rows_are_added(tasks, model, trainings):
    options = {"sizes": (8,), "learning_rates": (4e-3,), "epoch_counts": (4,)}
    alone = inoculate(tasks, model, **options).tables["runs"][1]
    mixed = inoculate(tasks, model, add_original="x2", **options).tables["runs"][1]
    assert mixed["cost"].value < alone["cost"].value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"original": ()}, "name them with --original TASK"),
        ({"original": "no/such/task"}, "no file or folder"),
        ({"original": "{vehicles}"}, "is an original task"),
        ({"original": ("{toys}", "{toys}")}, "--original names a task twice"),
        (
            {"original": ("{toys}", "{cars}"), "add_original": "x1"},
            "--add-original adds rows of one task",
        ),
        ({"sizes": (8, 30)}, r"--sizes 30 asks for more rows .* \(20\): name --sizes 8,"),
        ({"sizes": (16, 8)}, "--sizes must be strictly increasing"),
        ({"learning_rates": (0.0,)}, "--learning-rates must be positive"),
        ({"add_original": "x2", "sizes": (16,)}, "needs 32 rows .* name --sizes up to 10"),
        ({"epochs": 3}, "sets epochs itself"),
    ],
)
def test_impossible_requests_are_refused_before_training(tasks, model, trainings, options, message):
    given = {
        name: value.format(**tasks) if isinstance(value, str) else value
        for name, value in options.items()
    }
    if isinstance(several := given.get("original"), tuple):
        given["original"] = tuple(one.format(**tasks) for one in several)
    with pytest.raises(UsageError, match=message):
        inoculate(tasks, model, **given)
    assert trainings == []


def test_a_model_without_a_trained_head_is_refused_with_the_command_that_trains_one(
    tasks, folder, trainings
):
    encoder = str(tiny.write(folder / "encoder", "Bert", "Model"))
    with pytest.raises(UsageError, match=r"no multiple-choice head.* --train 20 --keep-checkpoint"):
        inoculate(tasks, encoder)
    first = r"--train 20 --keep-checkpoint DIR1; then"
    with pytest.raises(UsageError, match=rf"give DIR2 .*{first} .* --model DIR1 .* DIR2"):
        inoculate(tasks, encoder, original=(tasks["toys"], tasks["cars"]))
    assert trainings == []


def test_an_original_task_that_cannot_be_read_is_refused(tasks, model, tmp_path, trainings):
    task = tmp_path / "task"
    task.mkdir()
    (task / "validation.jsonl").write_text('{"id": "a", "question": "What?"}\n')
    with pytest.raises(Exception, match="1 of 1 rows cannot be scored"):
        inoculate(tasks, model, original=str(task))
    assert trainings == []


def test_labels_of_the_original_task_may_come_in_any_order(tasks, model, tmp_path):
    rows = toys("shuffled", 6)
    for name, order in (("plain", "ABC"), ("shuffled", "CAB")):
        lines = [
            json.dumps(
                {
                    "id": one.id,
                    "question": one.question,
                    "choices": [
                        {"label": label, "text": text}
                        for label, text in zip(order, one.choices, strict=True)
                    ],
                    "answerKey": order[one.answer],
                }
            )
            for one in rows
        ]
        (tmp_path / name).mkdir()
        (tmp_path / name / "validation.jsonl").write_text("\n".join(lines))
    found = [
        evaluation.evaluate(str(tmp_path / name), model, split="validation").results.metrics
        for name in ("plain", "shuffled")
    ]
    assert found[0].accuracy == found[1].accuracy


def test_sizes_that_were_not_asked_for_may_be_left_out():
    assert "sizes" not in InoculateOptions.parse({}, "inoculate").model_fields_set


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-27.8, 27.8, "but 20 test rows do not exclude one of +27.8 points: more of them would"),
        (-9.0, -1.0, "There is no gain: the model lacks the knowledge"),
        (5.0, 30.0, "The gain is larger than the cost"),
    ],
)
def test_a_wide_interval_is_the_first_explanation_of_no_gain(
    low: float, high: float, verdict: str
) -> None:
    def estimate(value: float, low: float, high: float) -> Estimate:
        return Estimate(value=value, low=low, high=high, n=20, method="cluster bootstrap")

    best = {
        "gain": estimate((low + high) / 2, low, high),
        "cost": estimate(0.0, -1.0, 1.0),
        "test": estimate(0.5, 0.3, 0.7),
        "size": 100,
    }
    assert verdict in tables._verdict(best)
