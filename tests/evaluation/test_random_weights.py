"""Random weights: drawn from a seed alone, as the architecture says, and told apart everywhere."""

from __future__ import annotations

import gc
import json
import shutil
import weakref

import pytest
import torch
import transformers

from evaluation.items.types import Item
from evaluation.models.capabilities import ENCODER, MASKED_LM, MULTIPLE_CHOICE
from evaluation.models.checkpoint import open_checkpoint
from evaluation.models.handle import ModelHandle
from evaluation.models.loading import load_for_training, load_model
from evaluation.options import ModelOptions
from evaluation.results.summary import cautions
from evaluation.results.types import read_results
from evaluation.runs import executor
from evaluation.runs.executor import execute
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Study, StudyRequest
from kbprobe.errors import UsageError
from tests.evaluation import jsonl_probe, tiny_masked

CPU = torch.device("cpu")
ROWS = [
    Item(
        f"row-{number}",
        "mc_mlm",
        f"A {word} is a kind of [MASK].",
        ("animal", "vehicle", "house"),
        number % 3,
    )
    for number, word in enumerate(("dog", "cat", "mouse", "robin", "penguin", "car"))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("random")


@pytest.fixture(scope="module")
def bert(folder):
    return tiny_masked.write("bert-uncased", folder / "bert")


@pytest.fixture(scope="module")
def probe(folder):
    return jsonl_probe.write(folder / "probe", {"test": ROWS})


pytestmark = pytest.mark.usefixtures("own_cache")


def drawn(bert, seed, dtype=torch.float32, head=MASKED_LM):
    return load_model(open_checkpoint(str(bert), random_weights=seed), CPU, dtype, head)


def bytes_of(model):
    return b"".join(value.numpy().tobytes() for value in model.state_dict().values())


def test_a_seed_decides_the_weights_and_nothing_else_does(bert):
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = bytes_of(drawn(bert, 0))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert bytes_of(drawn(bert, 0)) == first
    assert bytes_of(drawn(bert, 1)) != first
    assert bytes_of(load_model(open_checkpoint(str(bert)), CPU, torch.float32)) != first


def test_they_are_those_of_transformers_own_initialisation(bert):
    torch.manual_seed(5)
    config = transformers.AutoConfig.from_pretrained(bert)
    expected = transformers.AutoModelForMaskedLM.from_config(config)
    assert bytes_of(drawn(bert, 5)) == bytes_of(expected)
    encoder = drawn(bert, 5)
    assert float(encoder.get_input_embeddings().weight[1:].detach().std()) == pytest.approx(
        0.4, rel=0.05
    )
    assert not encoder.bert.encoder.layer[0].output.dense.bias.any()


def test_another_dtype_rounds_the_same_weights(bert):
    exact, rounded = drawn(bert, 0), drawn(bert, 0, torch.bfloat16)
    for name, weight in exact.state_dict().items():
        assert torch.equal(rounded.state_dict()[name], weight.to(torch.bfloat16))


def test_tied_weights_stay_tied_and_the_pooler_is_there(bert):
    model = drawn(bert, 0)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert drawn(bert, 0, head=ENCODER).pooler is not None
    # Loaded from the checkpoint, which has none, it would be noise.
    assert load_model(open_checkpoint(str(bert)), CPU, torch.float32, ENCODER).pooler is None


def test_no_weights_need_be_there_and_no_head_is_missing(bert, tmp_path):
    shutil.copytree(bert, tmp_path / "bare", ignore=shutil.ignore_patterns("*.safetensors"))
    assert bytes_of(drawn(tmp_path / "bare", 3)) == bytes_of(drawn(bert, 3))
    assert not drawn(bert, 3, head=MULTIPLE_CHOICE).training
    _, fresh = load_for_training(open_checkpoint(str(bert), random_weights=3), CPU, MULTIPLE_CHOICE)
    assert fresh == []


def test_their_identity_follows_configuration_and_seed(bert, tmp_path):
    def identity(folder, seed=None):
        return open_checkpoint(str(folder), random_weights=seed).weights_sha256

    assert len({identity(bert), identity(bert, 0), identity(bert, 1)}) == 3
    shutil.copytree(bert, tmp_path / "moved")
    assert identity(tmp_path / "moved", 0) == identity(bert, 0)
    config = json.loads((tmp_path / "moved" / "config.json").read_text())
    config["initializer_range"] = 0.1
    (tmp_path / "moved" / "config.json").write_text(json.dumps(config))
    assert identity(tmp_path / "moved", 0) != identity(bert, 0)


def test_a_gguf_file_is_refused(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(UsageError, match=r"--random-weights .*GGUF file\. Name the folder or Hub"):
        open_checkpoint(str(tmp_path / "model.gguf"), random_weights=0)


def test_model_args_that_an_architecture_does_not_take_are_named(bert):
    found = open_checkpoint(str(bert), random_weights=0, model_args={"nonsense": 1})
    with pytest.raises(UsageError, match=r"--model-args: .* nonsense"):
        load_model(found, CPU, torch.float32)


@pytest.mark.slow
def test_runs_that_differ_in_them_alone_have_scores_of_their_own(bert, probe, tmp_path):
    study = Study("some", "", lambda _: [], lambda *_: None, lambda _: None)
    request = StudyRequest.parse(study, [probe], [bert], {"dtype": "float32"}, tmp_path / "out")
    changes = ({}, {"random_weights": 0}, {"random_weights": 1})
    specs = [request.spec(probe, str(bert), **change) for change in changes]
    assert len({spec.folder for spec in specs}) == 3
    found = [outcome.or_raise() for outcome in execute(specs)]
    assert [one.results.model.random_weights for one in found] == [None, 0, 1]
    assert len({one.results.scoring.key for one in found}) == 3
    assert len({str(one.predictions["scores"].to_pylist()) for one in found}) == 3
    assert "weights drawn at random (seed 1) instead" in " ".join(cautions(found[2].results))
    again = read_results(specs[2].folder)
    assert again == found[2].results
    # Found again by its key, and not mixed up with the checkpoint's own.
    outcomes = list(execute(specs))
    assert all(outcome.found for outcome in outcomes)


@pytest.mark.slow
def test_one_model_after_the_other_is_in_memory(bert, probe, monkeypatch):
    alive, together = [], []

    class Watched(ModelHandle):
        def load(self, head):
            gc.collect()
            together.append(sum(model() is not None for model in alive))
            loaded = super().load(head)
            alive.append(weakref.ref(loaded[0]))
            return loaded

    monkeypatch.setattr(executor, "ModelHandle", Watched)
    specs = [RunSpec.parse(probe, str(bert), {"random_weights": seed}) for seed in range(3)]
    for outcome in execute(specs):
        outcome.or_raise()
    assert together == [0, 0, 0]


def test_a_series_of_revisions_goes_to_folders_of_its_own(bert, tmp_path):
    study = Study("some", "", lambda _: [], lambda *_: None, lambda _: None)
    request = StudyRequest.parse(study, ["p"], [bert], {}, tmp_path)
    folders = [
        request.spec("p", str(bert), revision=revision).folder
        for revision in ("step1", "step2", "runs/step1", "../step1")
    ]
    assert len(set(folders)) == 4
    assert {folder.parent for folder in folders} == {tmp_path / "p" / "bert"}


def test_options_of_a_model_refuse_a_seed_below_zero():
    with pytest.raises(UsageError, match=r"random.weights"):
        ModelOptions.parse({"random_weights": -1}, "evaluate")
