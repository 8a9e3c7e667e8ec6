"""Reading GCIDE from folders, archives and files, and what compiling drops."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from kb_cache.gcide.compile import compile_gcide
from kb_cache.gcide.source import read_json, read_source
from kbprobe.errors import SourceError

DATA = Path(__file__).parent / "data"
JSON = DATA / "gcide-mini-json"


def test_what_is_dropped_is_counted() -> None:
    _, report = compile_gcide(read_source(JSON))
    assert report.definitions == {
        "cross-reference only": 1,
        "illegible in the source": 1,
        "form of another word": 1,
    }
    assert report.read == 11
    assert "8 of 11 definitions kept." in report.notes()


def test_quotations_of_phrases_are_not_the_last_senses() -> None:
    _, report = compile_gcide(read_source(JSON))
    assert report.contexts == {"quotations of phrases": 2}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "words_A.json is not JSON"),
        (b"[]", "not a JSON object of words"),
        (b'{"dab": {"entry": "dab"}}', "the entry of 'dab' is not as expected: KeyError"),
        (b'{"dab": {"entry": "dab", "pos": [{"part_of_speech": "n."}]}}', "KeyError"),
        (b'{"dab": {"entry": 1, "pos": [{}]}}', "TypeError"),
        (b'{"dab": []}', "TypeError"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_json_of_another_shape_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        list(read_json("words_A.json", content))


@pytest.mark.parametrize("tail", ["Milton.", "Shak.", "Mrs. Browning"])
def test_a_verse_cut_at_its_author_is_left_out(tail: str) -> None:
    block = {
        "part_of_speech": "n.",
        "definitions": [
            {"text": "A pad.", "examples": [f"The dabs, they fill {tail}", f"A dab by {tail}"]}
        ],
    }
    content = json.dumps({"dab": {"entry": "dab", "pos": [block]}}).encode()
    (entry,) = read_json("words_D.json", content)
    assert entry.senses[0].quotations == [f"A dab by {tail}"]
    assert entry.lost == {"cut short": 1}


def test_folders_archives_and_single_files(tmp_path: Path) -> None:
    tree = tmp_path / "gcide-0.53"
    shutil.copytree(JSON, tree)
    (tree / "README").write_bytes(b"not read")
    with tarfile.open(tmp_path / "gcide-0.53.tar.xz", "w:xz") as archive:
        archive.add(tree, "gcide-0.53")
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.write(JSON / "words_D.json", "dictionary/data/en/words_D.json")
    whole = read_source(tree)
    assert whole.version == "0.53"
    assert list(whole.files) == ["words_D.json"]
    for path in (tmp_path / "gcide-0.53.tar.xz", tree / "words_D.json"):
        assert (read_source(path).sha256, read_source(path).version) == (whole.sha256, "0.53")
    wheel_source = read_source(tmp_path / "a.whl")
    assert (wheel_source.version, wheel_source.sha256) == (None, whole.sha256)


def test_what_is_not_gcide_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        read_source(tmp_path / "nothing")
    with pytest.raises(SourceError, match=r"is not GCIDE.*words_A\.json"):
        read_source(tmp_path)
    (tmp_path / "page.html").write_text("<html>")
    with pytest.raises(SourceError, match="neither a folder nor an archive"):
        read_source(tmp_path / "page.html")


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
def test_a_daemonic_process_compiles_without_children() -> None:
    """Workers of a pool are daemonic: they may not have children."""

    def compile_there() -> None:
        compile_gcide(read_source(JSON))

    worker = multiprocessing.get_context("fork").Process(target=compile_there, daemon=True)
    worker.start()
    worker.join()
    assert worker.exitcode == 0
