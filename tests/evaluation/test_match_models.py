"""Choice groups that are matched on models that a user names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import pytest

import builders
from evaluation.models.checkpoint import open_checkpoint
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
