"""Tiers: what keeps a question out of clean, and that each question is asked once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.engine.drops import DropLog
from builders.engine.flags import Flags, left_out
from builders.engine.pipeline import build, write
from builders.engine.probe import find_probe
from builders.engine.request import Request
from builders.wordnet.glosses import Glosses
from builders.wordnet.truths import THINGS, true_by_definition
from kb_cache.wordnet.load import load_wordnet
from kbprobe.errors import UsageError

Row = dict[str, Any]
Rows = list[Row]
Built = Callable[..., tuple[Rows, dict[str, Any]]]

HYPONYMY = pytest.param("wordnet_hyponymy", marks=pytest.mark.slow)
PROBES = ("wordnet_hypernymy", HYPONYMY, "wordnet_definitions", "wordnet_synonymy")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    @cache
    def rows(name: str, **options: Any) -> tuple[Rows, dict[str, Any]]:
        probe = find_probe(name)
        folder = tmp_path_factory.mktemp(name) / "probe"
        pos = "noun" if name == "wordnet_hyponymy" else "verb"
        options = {"pos": (pos,), "train_rows": 0, **options}
        manifest = write(
            build(Request(probe, probe.options.parse(options, name), audit=False)), folder
        )
        files = sorted(Path(folder).glob("data/*"))
        return [row for path in files for row in pq.read_table(path).to_pylist()], manifest

    return rows


@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), max_size=6))
def test_flags_are_kept_counted_and_spelled_out(masks: list[list[bool]]) -> None:
    flags, names = Flags.none(5), [f"reason_{at}" for at in range(len(masks))]
    for name, mask in zip(names, masks, strict=True):
        flags = flags.mark(name, np.array(mask))
    wanted = [[name for name, mask in zip(names, masks, strict=True) if mask[i]] for i in range(5)]
    assert flags.column().array(slice(None)).to_pylist() == wanted
    assert flags.flagged.tolist() == [bool(some) for some in wanted]
    assert flags.counts() == {n: sum(mask) for n, mask in zip(names, masks, strict=True)}
    dropped = DropLog()
    assert flags.of_tier("full", dropped).all()
    assert not dropped
    kept = flags.of_tier("clean", dropped)
    assert kept.tolist() == [not some for some in wanted]
    assert {name: dropped[left_out(name)] for name in names} == flags.counts()
    assert flags.take(kept).counts() == dict.fromkeys(names, 0)


@pytest.mark.parametrize("name", PROBES)
def test_a_question_and_its_gold_are_asked_once(built: Built, name: str) -> None:
    for tier in ("clean", "full"):
        rows, _ = built(name, tier=tier)
        asked = [(row["question"], row["choice_nodes"][row["answer"]]) for row in rows]
        assert len(set(asked)) == len(asked) > 200


@pytest.mark.parametrize("name", ["wordnet_hypernymy", "wordnet_definitions"])
def test_contexts_of_one_concept_and_gold_share_their_choices(built: Built, name: str) -> None:
    shown: dict[tuple[str, str], set[frozenset[str]]] = defaultdict(set)
    rows, _ = built(name)
    for row in rows:
        gold = row["choice_nodes"][row["answer"]]
        shown[row["concept"], gold].add(frozenset(row["choice_nodes"]))
    assert len(rows) > len(shown)
    assert all(len(some) == 1 for some in shown.values())


@pytest.mark.parametrize("name", ["wordnet_hypernymy", HYPONYMY])
def test_clean_asks_the_unflagged_questions_of_full(built: Built, name: str) -> None:
    everything = {"cap_per_gold": 0, "choices": 3}
    if name == "wordnet_hyponymy":
        everything["golds_per_hop"] = 0
    clean, in_clean = built(name, **everything)
    full, in_full = built(name, tier="full", **everything)
    assert all(row["flags"] == [] for row in clean)
    flagged = [row for row in full if row["flags"]]
    assert 0.1 * len(full) < len(flagged) < len(full) or name == "wordnet_hyponymy"

    def pairs(rows: Rows) -> set[tuple[str, str]]:
        return {(row["context"], row["choice_nodes"][row["answer"]]) for row in rows}

    assert not pairs(clean) & pairs(flagged)
    declared = find_probe(name).flags
    assert {flag for row in full for flag in row["flags"]} <= declared.keys()
    counts = in_full["counts"]["flags"]
    assert counts == {flag: sum(flag in row["flags"] for row in full) for flag in counts}
    assert all(
        in_clean["counts"]["dropped"].get(left_out(flag), 0) >= counts[flag] for flag in counts
    )


def test_every_family_asks_again_and_only_in_full(built: Built) -> None:
    once, _ = built("wordnet_definitions", tier="full")
    again, _ = built("wordnet_definitions", tier="full", every_family=True, perturbations=2)
    assert len(again) > 1.5 * len(once)
    options = find_probe("wordnet_definitions").options
    with pytest.raises(UsageError, match=r"--every-family .* add --tier full"):
        options.parse({"every_family": True}, "wordnet_definitions")
    with pytest.raises(UsageError, match="add --every-family --tier full"):
        options.parse({"perturbations": 2}, "wordnet_definitions")


def test_a_question_is_asked_with_the_distractors_of_its_family_or_random_ones(
    built: Built,
) -> None:
    rows, _ = built("wordnet_hypernymy", tier="full")
    assert {row["distractor_family"] for row in rows} == {"sibling", "cousin", "random"}
    alone, _ = built("wordnet_hypernymy", tier="full", families=("sibling",))
    assert {row["distractor_family"] for row in alone} == {"sibling"}


def test_clean_choices_are_of_different_fields_unless_they_are_things(built: Built) -> None:
    wordnet = load_wordnet("3.0")
    files = dict(
        zip(
            wordnet.synsets["name"].to_pylist(), wordnet.synsets["lexname"].to_pylist(), strict=True
        )
    )
    things = {f"noun.{name}" for name in THINGS}
    rows, _ = built("wordnet_hypernymy", pos=("noun",))
    for row in rows:
        shown = [file for name in row["choice_nodes"] if (file := files[name]) not in things]
        assert len(set(shown)) == len(shown), row


def test_definitions_bear_out_edges_and_tell_of_truths_without_one() -> None:
    wordnet = load_wordnet("3.0")
    ids = {
        name: wordnet.synset_id(name)
        for name in (
            "dachshund.n.01", "dog.n.01", "organism.n.01", "point.n.01", "figure.n.06",
            "fasten.v.01", "attach.v.01", "garter.v.01",
        )
    }  # fmt: skip
    nodes = np.array(sorted(ids.values()))
    glosses = Glosses.of(wordnet, nodes)

    def bears_out(child: str, parent: str) -> bool:
        return bool(glosses.bear_out(np.array([ids[child]]), np.array([ids[parent]]))[0])

    assert bears_out("dachshund.n.01", "dog.n.01")
    assert not bears_out("dachshund.n.01", "organism.n.01")
    truths = true_by_definition(wordnet, glosses, nodes, nodes)
    assert ids["garter.v.01"] in truths.neighbours(ids["fasten.v.01"])
    assert ids["dog.n.01"] in truths.neighbours(ids["dachshund.n.01"])
