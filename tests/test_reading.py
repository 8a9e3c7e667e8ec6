"""Files of users are read within limits, and nothing but regular files is opened."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.engine.recipe import read_recipe
from builders.engine.render.template_file import read_nodes
from evaluation.items.own_schema import read_parquet
from evaluation.items.rows import read_json
from evaluation.items.text_files import TextFiles
from evaluation.results.types import PREDICTIONS, read_predictions
from kb_cache.fetching import fetch
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.reading import open_file, read_bytes, read_text
from release.annotation.votes import read_votes
from release.cli import read_token

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("kbprobe", "kb_cache", "builders", "evaluation", "release")
OWN = "files that come with kbprobe"
WRITTEN = "files that this process has just written, or writes"
CACHE = "the cache's own files"
ALLOWED = {
    "builders/comparisons/objects.py": OWN,
    "builders/engine/card.py": OWN,
    "builders/engine/listing.py": OWN,
    "builders/engine/registry.py": OWN,
    "builders/english/word_lists.py": OWN,
    "builders/function_words/nli/pairs.py": OWN,
    "builders/judged/model.py": OWN,
    "builders/labels/verdicts.py": OWN,
    "evaluation/executors/ray.py": WRITTEN,
    "evaluation/frozen/store.py": WRITTEN,
    "evaluation/items/wordings.py": OWN,
    "evaluation/learners/kept.py": CACHE,
    "evaluation/report/suite/page.py": OWN,
    "evaluation/runs/in_memory.py": WRITTEN,
    "evaluation/studies/registry.py": OWN,
    "kb_cache/array_files.py": f"{OWN}, and {CACHE}",
    "kb_cache/corpora/kind.py": OWN,
    "kb_cache/corpora/tagged.py": OWN,
    "kb_cache/derived.py": OWN,
    "kb_cache/gcide/text.py": OWN,
    "kb_cache/omw/kind.py": OWN,
    "kb_cache/download.py": WRITTEN,
    "kb_cache/store.py": CACHE,
    "kb_cache/vectors/kind.py": WRITTEN,
    "kb_cache/wikidata/sparql/answers.py": CACHE,
    "kb_cache/wikidata/sparql/endpoint.py": CACHE,
    "kbprobe/cli.py": "the null device",
    "kbprobe/files/__init__.py": WRITTEN,
    "kbprobe/files/locks.py": "locks, and what the system says of processes",
    "kbprobe/forks.py": "what the system says of its memory",
    "builders/engine/draw/likeness.py": OWN,
    "kbprobe/files/targets.py": "locks",
    "kbprobe/format/licences.py": OWN,
    "kbprobe/format/shards.py": WRITTEN,
    "kbprobe/format/sheets.py": OWN,
    "kbprobe/reading.py": "the reader itself",
    "release/annotation/gold.py": OWN,
    "release/annotation/round_trip.py": OWN,
    "release/exports/targets/jsonl_arc.py": WRITTEN,
}
"""The modules that open files in another way than with `kbprobe.reading`, and which files."""
OPENING = ("read_bytes", "read_text", "open")
NOT_PATHS = ("archive", "found", "opener", "tarfile")
"""What ``open`` is called on besides paths."""


def opens_files(path: Path) -> bool:
    """Return whether a module opens files itself."""
    text = path.read_text("utf-8")
    if not any(f"{name}(" in text for name in OPENING):
        return False
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "open":
            return True
        if isinstance(node.func, ast.Attribute) and node.func.attr in OPENING:
            on = ast.unparse(node.func.value)
            if on not in NOT_PATHS and not on.endswith(".probe"):
                return True
    return False


def test_files_of_users_are_opened_in_one_place() -> None:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    found = {path.relative_to(ROOT).as_posix() for path in paths if opens_files(path)}
    assert found - ALLOWED.keys() == set(), "use kbprobe.reading, or say here why not"


READERS: dict[str, Callable[[Path], object]] = {
    "template": lambda path: read_nodes(path, str(path), "a template"),
    "recipe": lambda path: read_recipe(path, None, {}),
    "rows": read_json,
    "votes": lambda path: _refused(read_votes([path])[1]),
    "token": read_token,
    "bytes": lambda path: read_bytes(path, 100),
    "text": read_text,
    "texts": lambda path: TextFiles("--seen", str(path)).sha256,
    **{
        kind: lambda path, kind=kind: fetch(kind, source=path, name="x")
        for kind in ("wordnet", "gcide", "conceptnet", "vectors", "corpus")
    },
}


def _refused(problems: list[str]) -> None:
    raise UsageError("; ".join(problems))


@pytest.mark.posix
@pytest.mark.parametrize("name", READERS)
def test_pipes_and_devices_are_refused_by_name(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for file in (tmp_path / "pipe", tmp_path / "zero"):
        with pytest.raises(KbprobeError, match=f"{file}.*it is not a plain file"):
            READERS[name](file)


@pytest.mark.posix
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("rows.parquet", lambda path: read_parquet([path])),
        (PREDICTIONS, lambda path: read_predictions(path.parent)),
        ("words.parquet", lambda path: fetch("vectors", source=path.parent, name="x")),
        ("matrix.npy", lambda path: fetch("vectors", source=path.parent, name="x")),
    ],
)
def test_pipes_are_refused_before_a_library_opens_them(
    name: str, read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "folder"
    folder.mkdir()
    pq.write_table(pa.table({"word": ["a"]}), folder / "words.parquet")
    np.save(folder / "matrix.npy", np.ones((1, 2), np.float32))
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(KbprobeError, match="it is not a plain file"):
        read(folder / name)


@pytest.mark.posix
@pytest.mark.parametrize("name", ["template", "recipe", "token", "bytes", "text"])
def test_files_without_an_end_are_refused_by_name(tmp_path: Path, name: str) -> None:
    file = tmp_path / "sparse"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(KbprobeError, match=f"{file}.*(more than|larger than)"):
        READERS[name](file)


def test_what_is_not_text_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes(b"a\r\nb\rc\n")
    assert read_text(file) == "a\nb\nc\n"
    file.write_bytes(b"one\ntwo\xff\n")
    with pytest.raises(UsageError, match=r"text is not UTF-8 text \(line 2, byte 8\)"):
        read_text(file)
    with pytest.raises(OSError, match="not a plain file"):
        open_file(tmp_path)
