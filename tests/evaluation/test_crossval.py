"""The study of cross-validation: its runs, its numbers, its page."""

from pathlib import Path
from statistics import mean, stdev

import datasets
import pytest
import torch

from evaluation.items.folds import open_rows
from evaluation.names import model_name
from evaluation.runs.executor import execute
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import StudyRequest, read_summary
from evaluation.studies.crossval import CROSSVAL
from evaluation.studies.run import run_study
from evaluation.studies.table import StudyTables
from kbprobe.errors import UsageError
from kbprobe.format.setups import ACCEPTABILITY, NLI, SETUPS
from tests.evaluation import folded_probe
from tests.evaluation import tiny_multiple_choice as tiny

torch.set_num_threads(1)

STRONG = {"epochs": 30, "learning_rate": 3e-3}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBPROBE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return str(tiny.write(tmp_path_factory.mktemp("models") / "bert", "Bert", "Model"))


def classifier(folder, setup):
    """Write a classifier that names its classes, in another order than the setup's."""
    ids = dict(enumerate(SETUPS[setup].labels[::-1]))
    named = {"id2label": ids, "label2id": {name: number for number, name in ids.items()}}
    return str(tiny.write(folder, "Bert", "ForSequenceClassification", **named))


def request(probes, models, output=None, **values):
    return StudyRequest.parse(CROSSVAL, probes, models, values, output)


@pytest.fixture(scope="module")
def done(bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("crossval")
    probes = [folded_probe.write(folder / setup, setup) for setup in (ACCEPTABILITY, NLI)]
    options = {"seeds": 2, "random_init": 2, **STRONG}
    asked = request(probes, [bert], folder / "out", **options)
    return asked, run_study(asked), folder / "out"


@pytest.mark.slow
def test_every_row_is_evaluated_once_in_each_repetition(done):
    asked, summary, _ = done
    for probe, about in zip(asked.probes, summary.tables["probes"], strict=True):
        rows = open_rows(probe, "all")
        assert about["rows"] == len(rows.items) == 120
        assert sum(about["folds"].values()) == 120
        assert about["train"] == 120 - max(about["folds"].values())
        own = summary.rows("runs", probe=about["probe"])
        assert [(row["kind"], len(row["repetitions"])) for row in own] == [
            ("majority", 1),
            ("random", 2),
            ("learner", 2),
        ]
        for accuracy in (row["accuracy"] for row in own):
            assert accuracy.n == 120
            assert accuracy.low <= accuracy.value <= accuracy.high


@pytest.mark.slow
def test_numbers_are_those_of_the_runs(done):
    asked, summary, _ = done
    one = summary.tables["probes"][0]
    (row,) = summary.rows("runs", probe=one["probe"], kind="learner")
    runs = {
        (fold, seed): RunSpec.parse(
            asked.probes[0],
            asked.models[0],
            {
                **STRONG,
                **{"split": "all", "fold": fold, "learner": "pooled"},
                **{"train": one["train"], "train_seed": seed},
            },
        )
        for fold in one["folds"]
        for seed in (0, 1)
    }
    found = [outcome.or_raise() for outcome in execute(list(runs.values()))]
    accuracy = {
        key: done.results.metrics.accuracy.value for key, done in zip(runs, found, strict=True)
    }
    folds = [mean(accuracy[fold, seed] for seed in (0, 1)) for fold in one["folds"]]
    assert row["folds"] == pytest.approx(folds)
    assert row["fold_mean"] == pytest.approx(mean(folds))
    assert row["fold_sd"] == pytest.approx(stdev(folds))
    pooled = [
        sum(accuracy[fold, seed] * size for fold, size in one["folds"].items()) / one["rows"]
        for seed in (0, 1)
    ]
    assert row["repetitions"] == pytest.approx(pooled)
    assert row["accuracy"].value == pytest.approx(mean(pooled))
    assert row["accuracy"].value > 0.9, "one word decides"


@pytest.mark.slow
def test_what_is_finished_is_found_again(done, monkeypatch):
    asked, summary, _ = done
    monkeypatch.setattr("evaluation.models.handle.ModelHandle.load", None)
    assert run_study(asked) == summary


@pytest.mark.slow
def test_the_page_and_the_table_show_all_rows(done, capsys):
    _, summary, output = done
    page = (output / "crossval.html").read_text(encoding="utf-8")
    written = read_summary(output, "crossval", StudyTables, "2.0", "")
    assert written.rows("runs", kind="majority") == summary.rows("runs", kind="majority")
    CROSSVAL.display(summary)
    printed = capsys.readouterr().out
    for text in ("majority label", "2 random encoders, pooled", "bert, pooled"):
        assert text in page
        assert text in printed
    assert "fitted on 90 rows of the other folds" in printed
    assert "cannot be evaluated without training" in printed


@pytest.mark.slow
@pytest.mark.parametrize("setup", [ACCEPTABILITY, NLI])
def test_a_classifier_is_asked_as_it_is_where_its_classes_are_known(setup, tmp_path):
    probe = folded_probe.write(tmp_path / "probe", setup)
    named = classifier(tmp_path / "named", setup)
    nameless = str(tiny.write(tmp_path / "nameless", "Bert", "ForSequenceClassification"))
    summary = run_study(request([probe], [named, nameless], epochs=1))
    rows = summary.tables["runs"]
    kinds = [(row["kind"], row["model"]) for row in rows if row["kind"] != "majority"]
    assert kinds == [("zero_shot", named), ("learner", named), ("learner", nameless)]
    assert summary.notes == [
        f"{model_name(nameless)} cannot be evaluated without training: it does not score these "
        "labels."
    ]


def test_majority_is_of_the_rows_fitted_on(tmp_path):
    # Whichever label is the most frequent elsewhere is rarer in the fold.
    probe = folded_probe.write(tmp_path / "probe")
    summary = run_study(request([probe], []))
    (row,) = summary.tables["runs"]
    assert row["kind"] == "majority"
    assert row["accuracy"].value == pytest.approx(0.5, abs=0.05)


@pytest.mark.slow
def test_a_dataset_in_memory_is_divided_as_its_files_are(tmp_path):
    probe = folded_probe.write(tmp_path / "probe")
    files = {path.stem: str(path) for path in sorted(Path(probe).iterdir())}
    held = datasets.load_dataset("json", data_files=files, cache_dir=str(tmp_path / "datasets"))
    one = run_study(request([held, held], [])).tables
    other = run_study(request([probe, probe], [])).tables
    assert one["probes"][0]["folds"] == other["probes"][0]["folds"]
    assert one["runs"][0]["accuracy"] == other["runs"][0]["accuracy"]


def test_clusters_in_several_folds_are_said(tmp_path):
    probe = folded_probe.write(tmp_path / "leak", cluster="the same")
    summary = run_study(request([probe], []))
    assert "Clusters are in several folds" in summary.notes[0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"train": 91}, r"--train 91 asks for more rows .* Use --train 90 or less"),
        ({"learners": ("full",)}, "setup acceptability, and full is fitted only on mc_mlm, mc_qa"),
        (
            {"learners": ("full_labels",), "random_init": 2},
            "--random-init is for learners",
        ),
        ({"pooling": "first"}, "--pooling is for .* which none of these runs uses"),
        (
            {"training": {"dropout": 0.1}},
            "--training dropout is for networks .* which none of these runs",
        ),
        ({"learners": ("majority",)}, "--learners majority reads no model.* leave it out"),
        ({"fold": 1}, "the study crossval sets fold itself"),
        ({"learners": ("poled",)}, "Did you mean 'pooled'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_fitted(
    values, message, bert, tmp_path, monkeypatch
):
    probe = folded_probe.write(tmp_path / "probe")
    monkeypatch.setattr("evaluation.runs.executor.execute", None)
    with pytest.raises(UsageError, match=message):
        run_study(request([probe], [bert], **values))
