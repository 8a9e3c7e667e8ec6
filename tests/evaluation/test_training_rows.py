"""What a run is fitted on: another probe's rows, rows mixed in, and each training once."""

import numpy as np
import pytest
import torch

import evaluation
from evaluation.items.types import Item
from evaluation.learners.base import FINETUNED
from evaluation.learners.finetune import kept
from evaluation.learners.finetune.training import finetune
from evaluation.runs.executor import execute
from evaluation.runs.spec import RunSpec
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files.cache import cache_dir
from tests.evaluation import jsonl_probe
from tests.evaluation import tiny_multiple_choice as tiny
from tests.evaluation.jsonl_probe import drawn

torch.set_num_threads(1)

OPTIONS = {"train": 12, "epochs": 1, "learning_rate": 1e-3, "facts": False}


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def probes(tmp_path):
    return {
        name: str(
            jsonl_probe.write(
                tmp_path / name,
                {
                    "train": drawn(f"{name}-train", 20, question),
                    "test": drawn(f"{name}-test", 10, question),
                },
            )
        )
        for name, question in (("one", "What is a dog?"), ("other", "Is it a toy?"))
    }


@pytest.fixture
def model(tmp_path):
    return str(tiny.write(tmp_path / "bert", "Bert"))


@pytest.fixture
def trainings(monkeypatch):
    """Count trainings: the number of rows of each."""
    counted = []

    def counting(model, tokenizer, items, *rest, **named):
        counted.append(len(items))
        return finetune(model, tokenizer, items, *rest, **named)

    monkeypatch.setattr(kept, "finetune", counting)
    return counted


def run(*specs):
    return [outcome.or_raise() for outcome in execute(specs)]


def scores(evaluated):
    return evaluated.predictions["scores"].to_pylist()


def test_it_is_fitted_on_another_probe(probes, model, trainings):
    own = RunSpec.parse(probes["one"], model, OPTIONS)
    across = own.vary(train_on=probes["other"])
    first, second = run(own, across)
    assert trainings == [12, 12]
    assert scores(first) != scores(second)
    assert second.results.model.finetuning["train_on"] == probes["other"]
    assert "train_on" not in first.results.model.finetuning
    (again,) = run(RunSpec.parse(probes["one"], model, {**OPTIONS, "train_on": probes["one"]}))
    assert scores(again) == scores(first)


def test_a_training_is_scored_on_several_probes_and_done_once(probes, model, trainings):
    own = RunSpec.parse(probes["one"], model, OPTIONS)
    across = RunSpec.parse(probes["other"], model, {**OPTIONS, "train_on": probes["one"]})
    together = run(own, across)
    assert trainings == [12]
    assert not list((cache_dir() / FINETUNED).glob("*"))
    alone = run(across.vary(cache=False))
    np.testing.assert_allclose(scores(alone[0]), scores(together[1]), atol=1e-6)


@pytest.mark.slow
def test_rows_are_mixed_in(probes, model, trainings):
    spec = RunSpec.parse(probes["one"], model, OPTIONS)
    plain, mixed, more = run(
        spec,
        spec.vary(mix_in=probes["other"], mix_rows=6),
        spec.vary(mix_in=probes["other"], mix_rows=7),
    )
    assert trainings == [12, 18, 19]
    assert len({str(scores(one)) for one in (plain, mixed, more)}) == 3
    assert mixed.results.model.finetuning["mix_rows"] == 6


def test_heads_are_fitted_on_mixed_rows_too(probes, model):
    spec = RunSpec.parse(probes["one"], model, {**OPTIONS, "learner": "frozen"})
    plain, mixed = run(spec, spec.vary(mix_in=probes["other"], mix_rows=20))
    assert scores(plain) != scores(mixed)


@pytest.mark.slow
def test_more_epochs_go_on_from_fewer(probes, model, trainings, monkeypatch):
    steps = []
    monkeypatch.setattr(
        "evaluation.learners.finetune.training.ChoiceTraining._update",
        lambda self: steps.append(self._optimizer.step()),
    )
    constant = {**OPTIONS, "training": {"schedule": "constant", "train_batch": 4}}
    specs = [
        RunSpec.parse(probes[name], model, {**constant, "epochs": n, "train_on": probes["one"]})
        for n in (1, 3)
        for name in ("one", "other")
    ]
    shared = run(*specs)
    assert len(steps) == 9
    assert trainings == [12, 12]
    assert not list((cache_dir() / FINETUNED).glob("*"))
    (alone,) = run(specs[2].vary(cache=False))
    assert len(steps) == 18
    np.testing.assert_allclose(scores(alone), scores(shared[2]), atol=1e-6)


def test_a_failed_run_leaves_its_training_for_the_next(probes, model, trainings, monkeypatch):
    spec = RunSpec.parse(probes["one"], model, OPTIONS)
    with monkeypatch.context() as patch:
        patch.setattr(
            "evaluation.scorers.multiple_choice.MultipleChoiceScorer.score",
            lambda *_: (_ for _ in ()).throw(KbprobeError("no more")),
        )
        (failed,) = execute([spec])
        assert str(failed.result) == "no more"
    assert list((cache_dir() / FINETUNED).glob("*/epochs-1"))
    run(spec)
    assert trainings == [12]
    assert not list((cache_dir() / FINETUNED).glob("*"))


def test_choices_alone_are_shown(probes, model):
    spec = RunSpec.parse(probes["one"], model, OPTIONS)
    whole, part = run(spec, spec.vary(inputs="choices"))
    assert set(part.predictions["question"].to_pylist()) == {""}
    assert part.predictions["id"].equals(whole.predictions["id"])
    assert part.results.scoring.options["inputs"] == "choices"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mix_in": "x"}, "--mix-in and --mix-rows go together"),
        ({"train": None, "epochs": None, "train_on": "x"}, "--train-on requires --train"),
        ({"mix_in": "{other}", "mix_rows": 21}, r"--mix-rows 21 asks for more rows .*other has"),
        ({"train_on": "{other}", "train": 21}, r"--train 21 asks for more rows .*other has"),
        ({"train_on": "nowhere/at/all"}, "no file or folder"),
        ({"mix_in": "{one}", "mix_rows": 2, "split": "train", "train_on": "{other}"}, "20 rows"),
        ({"train_on": "{one}", "split": "train"}, "tested on training rows"),
        ({"labels": "random", "inputs": "choices"}, "have neither arguments nor, with --inputs"),
    ],
)
def test_impossible_rows_are_refused(probes, model, options, message, trainings):
    given = {
        name: value.format(**probes) if isinstance(value, str) else value
        for name, value in {**OPTIONS, **options}.items()
        if value is not None
    }
    with pytest.raises(UsageError, match=message):
        evaluation.evaluate(probes["one"], model, **given)
    assert trainings == []


def test_choices_of_a_cloze_cannot_be_shown_alone(model, tmp_path):
    cloze = [Item("c", "mc_mlm", "A dog is [MASK] toy.", ("a", "the"), 0)]
    probe = str(jsonl_probe.write(tmp_path / "cloze", {"test": cloze}))
    with pytest.raises(UsageError, match="rows of the setup mc_mlm"):
        evaluation.evaluate(probe, model, inputs="choices")
