"""What an evaluation does without: torch where scores are cached, a second look at a GGUF file."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from evaluation.models import architecture
from evaluation.models.architecture import NOTES
from evaluation.models.checkpoint import open_checkpoint
from evaluation.models.gguf_files import parsed_once
from evaluation.models.loading import choose_device, is_cpu
from kbprobe.files.cache import cache_dir
from tests.commands import imported_by

pytestmark = pytest.mark.usefixtures("in_world")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["bert", "gpt2"])
def test_an_evaluation_whose_scores_are_cached_imports_no_torch(model: str, tmp_path: Path) -> None:
    words = ("clozes" if model == "bert" else "questions", "-m", model, "--device", "cpu")
    first_time = imported_by("evaluation.cli", *words, "-o", tmp_path / "first")
    # Word frequencies are in the cache from then on.
    assert set(first_time) <= {"torch", "transformers", "requests", "huggingface_hub", "wordfreq"}
    assert imported_by("evaluation.cli", "report", tmp_path / "first") == []
    assert imported_by("evaluation.cli", *words, "-o", tmp_path / "second") == []
    first, second = (tmp_path / name / "predictions.parquet" for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
def test_random_answers_import_no_torch(tmp_path: Path) -> None:
    words = "questions", "-m", "none", "--scorer", "random", "-o"
    assert imported_by("evaluation.cli", *words, tmp_path / "first") == ["wordfreq"]
    assert imported_by("evaluation.cli", *words, tmp_path / "second") == []


def notes() -> list[Path]:
    return sorted((cache_dir() / NOTES).glob("*"))


def test_a_configuration_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_checkpoint("bert")
    assert len(notes()) == 1
    monkeypatch.setattr(architecture, "_named", None)
    again = open_checkpoint("bert")
    assert again.config is not None
    for name in ("head", "architecture", "capabilities", "encoder_decoder", "weights_sha256"):
        assert getattr(again, name) == getattr(first, name), name


def test_another_configuration_or_version_has_other_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    shutil.copytree("bert", folder)
    assert open_checkpoint(str(folder)).architecture == "BertForMaskedLM"
    config = json.loads((folder / "config.json").read_text())
    before = (folder / "config.json").stat()
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"]}))
    os.utime(folder / "config.json", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert open_checkpoint(str(folder)).architecture == "BertModel"
    assert len(notes()) == 2
    monkeypatch.setattr(architecture, "installed_version", lambda package: "another")
    open_checkpoint(str(folder))
    assert len(notes()) == 3
    open_checkpoint(str(folder), trust_remote_code=True)
    assert len(notes()) == 3, "code that a checkpoint brings may say otherwise another time"


def test_a_damaged_note_is_read_anew() -> None:
    wanted = open_checkpoint("gpt2")
    note = notes()[0]
    for text in ("{", "[]", note.read_text().replace("GPT2LMHeadModel", "GPT2Model")):
        note.write_text(text)
        assert open_checkpoint("gpt2").architecture == wanted.architecture
    assert wanted.architecture == "GPT2LMHeadModel"


def test_a_gguf_file_is_parsed_once(tmp_path: Path) -> None:
    import gguf

    path, own = tmp_path / "model.gguf", gguf.GGUFReader

    def write(name: str) -> None:
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_name(name)
        writer.add_tensor("x", np.zeros(4, dtype=np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    write("first")
    with parsed_once():
        first = gguf.GGUFReader(str(path))
        with parsed_once(last=True):
            assert gguf.GGUFReader(path) is first
    assert gguf.GGUFReader is own
    with parsed_once(last=True):
        assert gguf.GGUFReader(str(path)) is first
        path.unlink()
        write("other")
        assert gguf.GGUFReader(str(path)).get_field("general.name").contents() == "other"
    with parsed_once(last=True):
        assert gguf.GGUFReader(str(path)) is not first


def test_auto_is_the_cpu_without_asking_torch_only_where_there_is_no_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert is_cpu("cpu")
    assert not is_cpu("cuda:0")
    assert not is_cpu("auto") or choose_device("auto").type == "cpu"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not is_cpu("auto")
