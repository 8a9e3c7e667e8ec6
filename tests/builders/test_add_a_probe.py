"""The tutorial on adding a probe: its two files are written as the page shows them, and built."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import builders
from builders.cli import main
from builders.engine import probe as registry
from kb_cache.wordnet.load import load_wordnet
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.manifest import read_manifest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "add-a-probe.md").read_text("utf-8")
NAME = "wordnet_entailment"


@pytest.fixture
def tutorial(tmp_path: Path) -> Iterator[Path]:
    """The folder of the tutorial's files."""
    files = {"python": "entailment.py", "yaml": f"{NAME}.yaml"}
    for language, name in files.items():
        block = re.search(rf"```{language}\n(.*?)```", PAGE, re.S)
        assert block, language
        (tmp_path / name).write_text(block[1], encoding="utf-8")
    yield tmp_path
    registry._registered.pop(NAME, None)
    sys.modules.pop("entailment", None)


@pytest.mark.slow
def test_the_tutorials_probe_is_built_and_sound(tutorial: Path) -> None:
    name = f"{tutorial / 'entailment.py'}:{NAME}"
    folder = tutorial / "built"
    built = builders.build(name, output=folder, audit=True, cap_per_gold=10)
    rows = [row for split in built.values() for row in split]
    assert len(rows) > 200
    assert {row["relation"] for row in rows} == {"entailment"}
    assert {row["pos"] for row in rows} == {"verb"}
    wordnet = load_wordnet("3.0")
    known = set(zip(*(ends.tolist() for ends in wordnet.edges("entailment")), strict=True))
    for row in rows:
        ids = [wordnet.synset_id(name) for name in row["choice_nodes"]]
        concept, gold = wordnet.synset_id(row["concept"]), ids[row["answer"]]
        assert [other for other in ids if (concept, other) in known] == [gold], row
    manifest = read_manifest(folder)
    assert manifest.probe == NAME
    assert manifest.audit is not None
    assert manifest.audit.flags == ()


def test_what_is_no_probe_in_a_file_is_refused(tutorial: Path) -> None:
    named = r"no function 'entailment' that is decorated.*There are: .*entailment.py:wordnet_entail"
    with pytest.raises(UsageError, match=named):
        registry.find_probe(f"{tutorial / 'entailment.py'}:entailment")
    with pytest.raises(UsageError, match="is not a Python file"):
        registry.find_probe(f"{tutorial / 'missing.py'}:{NAME}")
    (tutorial / "broken.py").write_text("import no_such_module\n")
    with pytest.raises(KbprobeError, match="no_such_module"):
        registry.find_probe(f"{tutorial / 'broken.py'}:x")


def test_the_only_probe_of_a_file_needs_no_name(tutorial: Path) -> None:
    path = tutorial / "entailment.py"
    assert registry.find_probe(str(path)) is registry.find_probe(f"{path}:{NAME}")
    (tutorial / "none.py").write_text("x = 1\n")
    with pytest.raises(UsageError, match=r"no function that is decorated.*There are: none"):
        registry.find_probe(str(tutorial / "none.py"))
    more = path.read_text().replace(NAME, "first_of_two")
    (tutorial / "two.py").write_text(more + more.replace("first_of_two", "second_of_two"))
    try:
        with pytest.raises(UsageError, match=r"several probes.*two.py:first_of.*two.py:sec"):
            registry.find_probe(str(tutorial / "two.py"))
    finally:
        for name in ("first_of_two", "second_of_two"):
            registry._registered.pop(name, None)


def test_an_error_in_a_users_file_names_its_line(
    tutorial: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tutorial / "entailment.py"
    text = path.read_text().replace("asked_edges(wordnet, ", "asked_edges(no_such_name, ")
    path.write_text(text)
    line = next(at for at, one in enumerate(text.splitlines(), 1) if "no_such_name" in one)
    with pytest.raises(SystemExit):
        main([str(path), "-o", str(tutorial / "built")])
    said = capsys.readouterr().err
    assert f"NameError: name 'no_such_name' is not defined. It was raised by {path}, line " in said
    assert f"line {line}," in said
    assert "a fault of kbprobe" not in said
    for wrong in ("x = no_such_name", "x = ("):
        (tutorial / "broken.py").write_text(f"import os\n{wrong}\n")
        with pytest.raises(KbprobeError, match=r"cannot be imported: .*broken\.py, line 2\)"):
            registry.find_probe(str(tutorial / "broken.py"))


def test_an_unknown_part_of_speech_is_refused_with_those_there_are(tutorial: Path) -> None:
    path = tutorial / "entailment.py"
    field = 'pos: tuple[Literal["verb"], ...] = Field(("verb",)'
    path.write_text(path.read_text().replace(field, 'pos: tuple[str, ...] = Field(("adj",)'))
    with pytest.raises(UsageError, match=r"no part of speech 'adj'.*There are: noun, verb, adj"):
        builders.build(str(path), audit=False)


def test_the_table_says_what_the_probes_say() -> None:
    from builders.engine.registry import PROBES

    assert list(PROBES) == sorted(PROBES)
    for name, entry in PROBES.items():
        probe = registry.find_probe(name)
        assert (probe.summary, probe.options) == (entry.summary, entry.options), name


def test_a_probe_of_kbprobe_may_be_one_module(
    tutorial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the place that the page names: a file of ``builders``, without a package of its own."""
    from builders.engine.registry import ProbeEntry

    monkeypatch.setattr(builders, "__path__", [*builders.__path__, str(tutorial)])
    entry = ProbeEntry("From WordNet", "entailment", "EntailmentOptions", "")
    try:
        assert entry.options.__name__ == "EntailmentOptions"
    finally:
        sys.modules.pop("builders.entailment", None)
