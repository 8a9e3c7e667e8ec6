"""The tutorial on adding a probe: its two files are written as the page shows them, and built."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import builders
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
    with pytest.raises(UsageError, match="no function 'entailment' that is decorated"):
        registry.find_probe(f"{tutorial / 'entailment.py'}:entailment")
    with pytest.raises(UsageError, match="is not a Python file"):
        registry.find_probe(f"{tutorial / 'missing.py'}:{NAME}")
    (tutorial / "broken.py").write_text("import no_such_module\n")
    with pytest.raises(KbprobeError, match="no_such_module"):
        registry.find_probe(f"{tutorial / 'broken.py'}:x")


def test_the_table_says_what_the_probes_say() -> None:
    from builders.engine.registry import PROBES

    assert list(PROBES) == sorted(PROBES)
    for name, entry in PROBES.items():
        probe = registry.find_probe(name)
        assert (probe.summary, probe.options) == (entry.summary, entry.options), name
