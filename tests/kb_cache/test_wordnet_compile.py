"""Compiling the miniature WordNet, whole, in part and damaged."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kb_cache.fetching import fetch
from kb_cache.snapshot import content_digest
from kb_cache.wordnet.compile import compile_wordnet
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.source import read_source
from kb_cache.wordnet.types import WordNet
from kbprobe.errors import MissingDependencyError, SourceError, UsageError, how_to_install


def compiled(path: Path) -> WordNet:
    return WordNet("mini", "0", "", "", **compile_wordnet(read_source(path)))


def name(wordnet: WordNet, row: int) -> str:
    return str(wordnet.synsets["name"][row].as_py())


def test_the_miniature_is_read(mini: Path) -> None:
    wordnet = compiled(mini)
    assert len(wordnet) == 68
    dog = wordnet.synset_id("dog.n.01")
    assert {name(wordnet, i) for i in wordnet.hypernyms.neighbours(dog)} == {
        "canine.n.01", "domestic_animal.n.01",
    }  # fmt: skip
    einstein = wordnet.synset_id("einstein.n.01")
    assert wordnet.hypernyms.neighbours(einstein).size == 0
    assert name(wordnet, wordnet.instance_hypernyms.neighbours(einstein)[0]) == "physicist.n.01"
    reached = {name(wordnet, i) for i in wordnet.isa.walk([einstein]).node}
    assert "entity.n.01" in reached
    rows = slice(wordnet.sense_start[dog], wordnet.sense_start[dog + 1])
    assert wordnet.senses["lemma"].to_pylist()[rows] == ["dog", "domestic_dog", "Canis_familiaris"]
    assert wordnet.lemma_texts().to_pylist()[rows][1] == "domestic dog"


def test_two_verbs_are_hypernyms_of_each_other(mini: Path) -> None:
    wordnet = compiled(mini)
    one, other = wordnet.synset_id("restrain.v.01"), wordnet.synset_id("inhibit.v.01")
    assert other in wordnet.hypernyms.neighbours(one)
    assert one in wordnet.hypernyms.neighbours(other)
    assert one not in wordnet.hypernyms.walk([one]).node


def test_antonyms_join_lemmas(mini: Path) -> None:
    wordnet = compiled(mini)
    keys = wordnet.senses["key"].to_pylist()
    pairs = {
        (keys[row["source_sense"]], keys[row["target_sense"]])
        for row in wordnet.pointers.to_pylist()
        if row["kind"] == "antonym"
    }
    assert ("good%3:00:01::", "bad%3:00:00::") in pairs
    assert all((target, source) in pairs for source, target in pairs)


def test_mentions_of_the_miniature(mini: Path) -> None:
    wordnet = compiled(mini)
    texts = wordnet.examples["text"].to_pylist()
    lemmas = wordnet.senses["lemma"].to_pylist()
    found = {
        (lemmas[row["sense"]], texts[row["example"]][row["start"] : row["end"]])
        for row in wordnet.mentions.to_pylist()
    }
    assert {("hunker_down", "hunkered down"), ("get_cracking", "Get cracking")} <= found
    assert {("bull's_eye", "bull's-eyes"), ("be", "is"), ("run", "ran")} <= found


def test_unknown_names_are_answered_with_a_suggestion(mini: Path) -> None:
    wordnet = compiled(mini)
    with pytest.raises(UsageError, match=r"Did you mean 'dog\.n\.01'"):
        wordnet.synset_id("dog.n.02")
    with pytest.raises(UsageError, match="Did you mean 'antonym'"):
        wordnet.edges("antonyms")


@pytest.mark.slow
def test_compiling_is_deterministic_across_processes(mini: Path, tmp_path: Path) -> None:
    """The order of Python's sets, in which NLTK keeps pointers, depends on the hash seed."""
    code = (
        "import sys; from pathlib import Path; from kb_cache.fetching import fetch; "
        f"fetch('wordnet', source={str(mini)!r}, name='mini', output=Path(sys.argv[1]))"
    )
    # This process has a random seed, unless somebody set it.
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, str(tmp_path / "there")]
    subprocess.run(command, check=True, env=env, timeout=120)
    fetch("wordnet", source=mini, name="mini", output=tmp_path / "here")
    here, there = (
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()}
        for name in ("here", "there")
    )
    assert here == there


def test_compiling_leaves_nltk_as_it_was(mini: Path) -> None:
    import nltk

    before = list(nltk.data.path), list(warnings.filters)
    compiled(mini)
    assert (list(nltk.data.path), list(warnings.filters)) == before


def zipped(mini: Path, target: Path, prefix: str) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for file in mini.iterdir():
            archive.write(file, prefix + file.name)
    return target


def tarred(mini: Path, target: Path, prefix: str) -> Path:
    with tarfile.open(target, "w:gz") as archive:
        for file in mini.iterdir():
            archive.add(file, prefix + file.name)
    return target


@pytest.mark.parametrize("pack", [zipped, tarred])
@pytest.mark.parametrize("prefix", ["", "wordnet/", "dict/", "./dict/", "package/dict/"])
def test_archives_are_read_like_folders(
    mini: Path, tmp_path: Path, pack: Callable[[Path, Path, str], Path], prefix: str
) -> None:
    archive = pack(mini, tmp_path / "archive", prefix)
    assert read_source(archive).files == read_source(mini).files


def test_folders_above_the_files_will_do(mini: Path, tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    mini.rename(above / "dict")
    assert read_source(above).version == "3.0"


def test_hostile_members_go_nowhere(mini: Path, tmp_path: Path) -> None:
    archive = zipped(mini, tmp_path / "archive.zip", "")
    with zipfile.ZipFile(archive, "a") as writer:
        writer.writestr("../../evil", b"x")
        writer.writestr("../../data.noun.py", b"x")
    before = sorted(tmp_path.rglob("*"))
    assert set(read_source(archive).sha256) == set(read_source(mini).sha256)
    assert sorted(tmp_path.rglob("*")) == before


def test_optional_files_are_replaced_and_noted(mini: Path) -> None:
    whole = compiled(mini)
    for file in ("lexnames", "cntlist.rev", "noun.exc", "verb.exc", "adj.exc", "adv.exc"):
        (mini / file).unlink()
    source = read_source(mini)
    assert len(source.notes) == 6
    part = compiled(mini)
    for column in ("name", "lexname", "gloss"):
        assert part.synsets[column].equals(whole.synsets[column])
    assert part.senses.equals(whole.senses)
    (mini / "index.sense").unlink()
    assert set(compiled(mini).senses["count"].to_pylist()) == {0}


def test_the_licence_is_found_in_the_data_files(mini: Path) -> None:
    (mini / "LICENSE.txt").unlink()
    source = read_source(mini)
    assert source.version == "3.0"
    assert source.licence.startswith(b"This software and database is being provided")
    assert source.licence.rstrip().endswith(b"agrees to preserve same.")


@pytest.mark.parametrize("missing", ["data.noun", "index.verb"])
def test_a_missing_file_is_named(mini: Path, missing: str) -> None:
    (mini / missing).unlink()
    with pytest.raises(SourceError, match=f"{missing} missing"):
        read_source(mini)


def test_what_is_no_wordnet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        read_source(tmp_path / "nowhere")
    with pytest.raises(SourceError, match="not a WordNet database"):
        read_source(tmp_path)
    text = tmp_path / "text"
    text.write_text("hello")
    with pytest.raises(SourceError, match="neither a folder nor"):
        read_source(text)
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    text.write_bytes(empty.getvalue())
    with pytest.raises(SourceError, match="not a WordNet database"):
        read_source(text)


def replace_line(file: Path, number: int, change: Callable[[bytes], bytes]) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    lines[number - 1] = change(lines[number - 1])
    file.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    ("file", "number", "change", "message"),
    [
        ("data.noun", 31, lambda x: x.replace(b"000", b"00", 1), "data.noun, line 31: starts with"),
        ("data.noun", 30, lambda x: x.replace(b"|", b" "), "data.noun, line 30"),
        ("data.noun", 30, lambda x: x.replace(b"~", b"?"), "data.noun, line 30: the pointer '[?]"),
        (
            "data.noun",
            30,
            lambda x: x.replace(b"01 entity 0", b"09 entity 0"),
            "data.noun, line 30",
        ),
        ("data.noun", 30, lambda x: x.replace(b"~ 00001", b"~ 09001"), "leads to no synset"),
        ("data.verb", 33, lambda x: x.replace(b"0", b"\xff", 1), "data.verb, line 33"),
        ("index.noun", 31, lambda x: x[:8] + b"\n", "index.noun, line 31"),
        ("index.noun", 31, lambda x: x.replace(b" n 1", b" n 0"), "index.noun, line 31"),
        ("lexnames", 3, lambda x: b"junk\n", "lexnames, line 3"),
        ("cntlist.rev", 2, lambda x: b"junk\n", "cntlist.rev, line 2"),
        ("noun.exc", 1, lambda x: b"\n", "noun.exc, line 1"),
    ],
)
def test_a_malformed_line_is_named(
    mini: Path, file: str, number: int, change: Callable[[bytes], bytes], message: str
) -> None:
    before = (mini / file).read_bytes()
    replace_line(mini / file, number, change)
    assert (mini / file).read_bytes() != before
    with pytest.raises(SourceError, match=message):
        compiled(mini)


def test_a_lemma_that_the_index_lacks_is_named(mini: Path) -> None:
    lines = (mini / "index.noun").read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(b"domestic_dog ")]
    (mini / "index.noun").write_bytes(b"".join(kept))
    with pytest.raises(SourceError, match=r"index\.noun does not list domestic_dog"):
        compiled(mini)


def test_converted_line_ends_are_explained(mini: Path) -> None:
    data = (mini / "data.noun").read_bytes().replace(b"\n", b"\r\n")
    (mini / "data.noun").write_bytes(data)
    with pytest.raises(SourceError, match="line ends were converted"):
        compiled(mini)


def test_fetch_and_load(cache: Path, mini: Path) -> None:
    entry = fetch("wordnet", source=mini, name="mini")
    assert entry.name == "wordnet-mini"
    assert entry.folder.parent.parent == cache
    wordnet = load_wordnet("mini")
    assert wordnet.version == "3.0"
    assert wordnet.digest == content_digest(compile_wordnet(read_source(mini)))
    assert load_wordnet("wordnet-mini").digest == wordnet.digest


@pytest.mark.parametrize("package", ["nltk", "lemminflect"])
def test_a_missing_package_is_named(
    cache: Path, mini: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingDependencyError, match=rf"'{package}'.*{re.escape(how_to_install('wordnet'))}"
    ):
        fetch("wordnet", source=mini, name="mini")


def test_the_embedded_name_cannot_be_taken(cache: Path, mini: Path) -> None:
    with pytest.raises(UsageError, match="comes with kbprobe"):
        fetch("wordnet", source=mini)


def test_a_version_that_is_not_stated_must_be_given(cache: Path, mini: Path) -> None:
    for file in mini.iterdir():
        file.write_bytes(file.read_bytes().replace(b"WordNet 3.0 C", b"WordNet x.x C"))
    with pytest.raises(UsageError, match="--name"):
        fetch("wordnet", source=mini)
    fetch("wordnet", source=mini, name="x")
    assert load_wordnet("x").version == "x"


def test_unknown_wordnets_are_answered_with_what_there_is(cache: Path) -> None:
    with pytest.raises(UsageError, match=r"Did you mean '3\.0'\? There are: wordnet-3\.0"):
        load_wordnet("3.9")


def test_a_folder_with_other_things_in_it_is_not_replaced(mini: Path, tmp_path: Path) -> None:
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "thesis.tex").touch()
    with pytest.raises(UsageError, match="not empty"):
        fetch("wordnet", source=mini, name="mini", output=precious)
    assert (precious / "thesis.tex").exists()
