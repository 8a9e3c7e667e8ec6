"""Tables derived from a snapshot: kept, checked, and computed again where damaged."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import builders
import kb_cache.derived
from kb_cache.derived import _leaves, derived, shipped_path
from kb_cache.graph import Graph
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Floats
from tests.kb_cache.conftest import RunCli

_computed: list[str] = []


class Mixed(NamedTuple):
    """One of each kind of value."""

    graph: Graph
    texts: pa.Array
    marked: Bools
    matrix: Floats


def mixed(wordnet: WordNet) -> Mixed:
    """Return some values, and note that they were computed."""
    _computed.append(wordnet.digest)
    graph = Graph.from_edges(4, [0, 2, 2], [1, 3, 0])
    return Mixed(graph, pa.array(["a", "", "ü"]), np.array([True, False]), np.eye(3)[:2])


@pytest.fixture
def path(cache: Path) -> Path:
    """The file in which the rule's values are kept."""
    _computed.clear()
    return cache / "derived" / "wordnet-3.0" / f"{__name__}.mixed.arrow"


def check(found: Mixed, times: int) -> None:
    """Compare values with what the rule returns, and how often it was asked."""
    assert len(_computed) == times
    assert found.graph.neighbours(2).tolist() == [0, 3]
    assert found.texts.to_pylist() == ["a", "", "ü"]
    assert found.marked.dtype == np.bool_
    assert found.marked.tolist() == [True, False]
    assert found.matrix.tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match="read-only"):
        found.matrix[0] = 2


def test_computed_once_and_kept(path: Path) -> None:
    for _ in range(3):  # a decorated rule each, as in processes of their own
        table = derived(mixed)
        wordnet = load_wordnet("3.0")
        assert table(wordnet) is table(wordnet)
        check(table(wordnet), times=1)
    assert path.is_file()
    assert not [*path.parent.glob(".*")]


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flipped(content: bytes) -> bytes:
    return content[:-300] + bytes([content[-300] ^ 1]) + content[-299:]


@pytest.mark.parametrize("damage", [_cut, _flipped, lambda _: b""], ids=["cut", "flipped", "empty"])
def test_damaged_files_are_computed_again(path: Path, damage: Callable[[bytes], bytes]) -> None:
    derived(mixed)(load_wordnet("3.0"))
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    check(derived(mixed)(load_wordnet("3.0")), times=2)
    assert path.read_bytes() == whole


def test_other_code_computes_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    derived(mixed)(load_wordnet("3.0"))
    with monkeypatch.context() as patch:
        patch.setattr(kb_cache.derived, "_fingerprint", lambda _: "other code")
        for _ in range(2):
            check(derived(mixed)(load_wordnet("3.0")), times=2)
    check(derived(mixed)(load_wordnet("3.0")), times=3)


SHIPPED = sorted(Path(builders.__file__).parent.glob("*/data/wordnet-3.0/*.arrow"))


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_tables_are_what_the_rules_return(
    path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _, name = path.stem.partition(".")
    rule = getattr(importlib.import_module(f"builders.{path.parts[-4]}.{module}"), name)
    wordnet = load_wordnet()
    again = "its module or its result changed: run python .ci/compile.py"
    assert shipped_path(rule, wordnet) == path
    with monkeypatch.context() as patched:
        patched.setattr(kb_cache.derived, "_fingerprint", lambda package: pytest.fail(again))
        shipped = [*_leaves(rule(wordnet))]
    for found, expected in zip(shipped, _leaves(inspect.unwrap(rule)(wordnet)), strict=True):
        # Logarithms differ in their last bit between processors.
        rtol = 1e-12 if found.dtype.kind == "f" else 0
        np.testing.assert_allclose(found, expected, rtol, err_msg=again)


def test_shipped_tables_without_source_are_computed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kb_cache.derived, "shipped_path", lambda *_: Path(__file__))
    monkeypatch.setattr(inspect, "getfile", lambda _: str(tmp_path / "gone.py"))
    check(derived(mixed)(load_wordnet("3.0")), times=1)


def test_nothing_is_kept_of_what_no_snapshot_holds(path: Path) -> None:
    wordnet = load_wordnet("3.0")
    for times, changed in enumerate([replace(wordnet), replace(wordnet, language="de")], 1):
        assert derived(mixed)(changed).texts.to_pylist() == ["a", "", "ü"]
        assert len(_computed) == times
    assert not path.parent.exists()


def test_a_cache_that_cannot_be_written_costs_time_alone(path: Path) -> None:
    path.parent.parent.mkdir(parents=True)
    path.parent.write_text("a file where the folder should be")
    for times in (1, 2):
        check(derived(mixed)(load_wordnet("3.0")), times=times)


def test_clear_removes_derived_tables(path: Path, run_cli: RunCli) -> None:
    derived(mixed)(load_wordnet("3.0"))
    done = run_cli("clear", "--all", "--yes")
    assert done.returncode == 0
    assert "derived tables: removed" in done.stdout
    assert not path.exists()
