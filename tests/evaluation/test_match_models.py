"""Choice groups that are matched on models that a user names."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import datasets
import pytest
from safetensors.torch import load_file, save_file

import builders
from evaluation.models.checkpoint import open_checkpoint
from kbprobe.checkpoint_files import tokenizer_files
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.manifest import read_manifest
from tests.evaluation import tiny_multiple_choice

NAME = "wordnet_antonymy"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    return tiny_multiple_choice.write(folder, "Bert", "Model", seed=1)


def made(folder: Path, **options: Any) -> list[dict[str, Any]]:
    builders.build(NAME, output=folder, audit=False, **options)
    return list(datasets.load_dataset(str(folder), split="test"))


@pytest.mark.slow
def test_a_build_is_matched_on_the_models_named(
    encoder: Path, tmp_path: Path, open_wordnet: Any
) -> None:
    wordnet = open_wordnet()
    rows = made(tmp_path / "one", wordnet=wordnet, match=str(encoder))
    assert {row["distractor_family"] for row in rows} == {"near", "random"}
    assert rows == made(tmp_path / "again", wordnet=wordnet, match=str(encoder))
    assert rows != made(tmp_path / "static", wordnet=wordnet)
    on = read_manifest(tmp_path / "one").matching
    assert on is not None
    digest = open_checkpoint(str(encoder)).weights_sha256
    assert [(one.name, one.sha256) for one in on.encoders] == [("tiny", digest)]


def test_a_model_that_is_none_is_refused_before_anything_is_written(
    tmp_path: Path, open_wordnet: Any
) -> None:
    wordnet = open_wordnet()
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"--match .*empty holds no checkpoint"):
        made(tmp_path / "out", wordnet=wordnet, match=str(tmp_path / "empty"))
    with pytest.raises(KbprobeError, match="--match simlarity: simlarity is neither a folder"):
        made(tmp_path / "out", wordnet=wordnet, match="simlarity")
    assert not (tmp_path / "out").exists()


def test_an_encoder_that_encodes_nothing_is_refused(
    encoder: Path, tmp_path: Path, open_wordnet: Any
) -> None:
    wordnet = open_wordnet()
    no_tokenizer, no_numbers = tmp_path / "no-tokenizer", tmp_path / "no-numbers"
    shutil.copytree(encoder, no_tokenizer)
    for path in tokenizer_files(no_tokenizer):
        path.unlink()
    shutil.copytree(encoder, no_numbers)
    weights = load_file(no_numbers / "model.safetensors")
    save_file({name: one * float("nan") for name, one in weights.items()},
              no_numbers / "model.safetensors", {"format": "pt"})  # fmt: skip
    for folder, problem in ((no_tokenizer, "no tokenizer in"), (no_numbers, "are not numbers")):
        with pytest.raises(UsageError, match=f"--match .*{problem}"):
            made(tmp_path / "out", wordnet=wordnet, match=f"{encoder},{folder}")
    assert not (tmp_path / "out").exists()


def test_what_has_no_near_rows_is_matched_on_nothing(tmp_path: Path, open_wordnet: Any) -> None:
    made(tmp_path / "far", wordnet=open_wordnet(), families=("random",))
    assert read_manifest(tmp_path / "far").matching is None
