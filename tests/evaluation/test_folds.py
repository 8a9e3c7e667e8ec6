"""Cross-validation: a run evaluates one fold, and learns from the others."""

import pytest
import torch

import evaluation
from evaluation.items.folds import folds_of, open_rows, take_fold
from evaluation.runs import ready
from evaluation.runs.executor import execute
from evaluation.runs.spec import RunSpec
from kbprobe.errors import UsageError
from kbprobe.format.setups import ACCEPTABILITY, NLI
from tests.evaluation import folded_probe
from tests.evaluation import tiny_multiple_choice as tiny

torch.set_num_threads(1)


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def probe(tmp_path):
    return folded_probe.write(tmp_path / "probe")


def spec(probe, model="none", **options):
    return RunSpec.parse(probe, model, {"split": "all", **options})


def results(*specs):
    return [outcome.or_raise().results for outcome in execute(specs)]


def test_all_splits_are_read_as_one(probe):
    whole = open_rows(probe, "all")
    parts = [open_rows(probe, split) for split in ("train", "validation", "test")]
    assert whole.split == "all"
    assert whole.items == tuple(item for part in parts for item in part.items)
    assert len(whole.about) == len(whole.items) == 120
    assert whole.clustered


def test_folds_divide_the_rows_and_no_cluster_is_in_two(probe):
    whole = open_rows(probe, "all")
    clusters = set()
    for fold in range(folded_probe.FOLDS):
        inside, outside = take_fold(whole, fold), take_fold(whole, fold, other=True)
        assert {*inside.items} | {*outside.items} == {*whole.items}
        assert not {*inside.items} & {*outside.items}
        own, others = (set(part.about["cluster"].to_pylist()) for part in (inside, outside))
        assert not own & others
        assert not own & clusters
        clusters |= own


def test_a_run_learns_from_the_other_folds_alone(probe, monkeypatch):
    fitted = []
    training = ready.Training

    def noted(model, items, *rest):
        fitted.append(items)
        return training(model, items, *rest)

    monkeypatch.setattr(ready, "Training", noted)
    found = results(
        *(spec(probe, learner="majority", fold=fold, train=80 + fold) for fold in (0, 2))
    )
    whole = open_rows(probe, "all")
    for fold, items, result in zip((0, 2), fitted, found, strict=True):
        assert len(items) == 80 + fold
        assert {*items} <= {*take_fold(whole, fold, other=True).items}
        assert result.scoring.options["fold"] == fold
        assert result.probe.rows == len(take_fold(whole, fold).items)
        assert "train_overlap" not in result.scoring.notes
    assert found[0].scoring.key != found[1].scoring.key


def test_a_split_alone_has_folds_too(probe):
    (found,) = results(spec(probe, split="test", learner="majority", fold=1, train=20))
    assert found.probe.split == "test"
    assert found.probe.rows == len(take_fold(open_rows(probe, "test"), 1).items)


def test_clusters_in_several_folds_are_counted(tmp_path):
    probe = folded_probe.write(tmp_path / "leak", cluster="one and the same")
    (found,) = results(spec(probe, learner="majority", fold=1, train=20))
    assert found.scoring.notes["train_overlap"] == found.probe.rows


def test_rows_that_name_no_fold_are_divided_by_cluster(tmp_path):
    rows = open_rows(folded_probe.write(tmp_path / "none", fold=None), "all")
    sizes = folds_of(rows)
    assert sum(sizes.values()) == 120
    assert set(sizes) <= set(range(10))
    assert len(sizes) > 5
    for fold in sizes:
        held, others = take_fold(rows, fold), take_fold(rows, fold, other=True)
        assert not set(held.about["cluster"].to_pylist()) & set(others.about["cluster"].to_pylist())
        assert len(held.items) == sizes[fold] == 120 - len(others.items)


def test_folds_that_are_not_there_are_refused(probe, tmp_path):
    options = {"learner": "majority", "train": 20}
    with pytest.raises(UsageError, match=r"--fold 4: .* has no such fold. It has: 0, 1, 2, 3"):
        results(spec(probe, fold=4, **options))
    with pytest.raises(UsageError, match="--fold fits on the other folds: leave --train-on out"):
        spec(probe, fold=1, train_on=probe, **options)
    partly = folded_probe.write(tmp_path / "partly", fold=None)
    folded_probe.write(tmp_path / "whole")
    named = (tmp_path / "whole" / "test.jsonl").read_text()
    (tmp_path / "partly" / "test.jsonl").write_text(named)
    with pytest.raises(UsageError, match="80 of 120 rows have no fold"):
        results(spec(partly, fold=0, **options))
    alone = folded_probe.write(tmp_path / "alone", fold=3)
    with pytest.raises(UsageError, match=r"only one fold, 3: .* such as --split all"):
        results(spec(alone, fold=3, **options))
    with pytest.raises(UsageError, match="--train 91 asks for more rows"):
        results(spec(probe, learner="majority", train=91, fold=0))


def test_labels_are_learnt_from_rows_with_the_same_labels(probe, tmp_path):
    model = str(tiny.write(tmp_path / "bert", "Bert", "Model"))
    other = folded_probe.write(tmp_path / "nli", NLI)
    with pytest.raises(
        UsageError, match=f"setup nli, and .* of {ACCEPTABILITY}: the rows to fit on"
    ):
        evaluation.evaluate(probe, model, learner="pooled", train=20, train_on=other)
    with pytest.raises(UsageError, match="fit a classifier with --learner pooled"):
        evaluation.evaluate(probe, model, train=20)
