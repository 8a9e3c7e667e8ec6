"""Silver labels: what a classifier predicts, as a labels file."""

import logging
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

import evaluation
from evaluation.silver import silver_command, silver_labels
from kbprobe.errors import UsageError
from kbprobe.format.labels import read_labels
from kbprobe.format.setups import NLI, SETUPS
from tests.evaluation import labelled_probe
from tests.evaluation import tiny_multiple_choice as tiny

logging.getLogger("transformers").setLevel(logging.ERROR)


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labelled_probe.write(tmp_path_factory.mktemp("probes") / "nli", NLI, pairs=6)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = dict(enumerate(SETUPS[NLI].labels[::-1]))
    ids = {"id2label": names, "label2id": {name: at for at, name in names.items()}}
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny.write(folder, "Bert", "ForSequenceClassification", **ids)
    return folder


def test_labels_are_the_predictions_of_all_splits(probe: Path, model: Path) -> None:
    lines = {line["id"]: line for line in silver_labels(probe, str(model))}
    for split in ("train", "test"):
        found = evaluation.evaluate(probe, model, split=split, scorer="classifier", cache=False)
        predictions = found.to_pandas()
        for row, prediction in zip(predictions.id, predictions.prediction, strict=True):
            assert lines[row]["answer"] == prediction
            assert lines[row]["label"] == SETUPS[NLI].labels[prediction]
    assert len(lines) == 24
    assert {line["rule"] for line in lines.values()} == {f"silver:{model}"}


def test_the_command_writes_a_labels_file(probe: Path, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "silver.jsonl"
    words = [str(probe), "-m", str(model), "-o", str(path), "--device", "cpu"]
    # click keeps what asks for help at a command's first use.
    invoke = partial(CliRunner().invoke, silver_command, words, catch_exceptions=False)
    assert invoke().exit_code == 0
    assert len(read_labels(path)) == 24
    with pytest.raises(UsageError, match="--overwrite"):
        invoke()
