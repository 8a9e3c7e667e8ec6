"""Tiers: what keeps a question out of clean, and that each question is asked once."""

from __future__ import annotations

from collections import Counter
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
from builders.engine.pipeline import build, write
from builders.engine.plan import Flags, left_out
from builders.engine.probe import find_probe
from builders.engine.request import Request
from builders.wordnet.features import Glosses
from kb_cache.wordnet.load import load_wordnet
from kbprobe.errors import UsageError
from kbprobe.format.items import plain
from kbprobe.format.setups import SPLITS

Row = dict[str, Any]
Rows = list[Row]
Built = Callable[..., tuple[Rows, dict[str, Any]]]

HYPERNYMY = pytest.param("wordnet_hypernymy", marks=pytest.mark.slow)  # of the whole WordNet
PROBES = (HYPERNYMY, "wordnet_hyponymy", "wordnet_definitions", "wordnet_synonymy")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, open_wordnet: Callable[[], str]) -> Built:
    @cache
    def rows(name: str, **options: Any) -> tuple[Rows, dict[str, Any]]:
        probe = find_probe(name)
        folder = tmp_path_factory.mktemp(name) / "probe"
        pos = "noun" if name == "wordnet_hyponymy" else "verb"
        options = {"pos": (pos,), "train_rows": 0, **options}
        if name != "wordnet_hypernymy":
            options["wordnet"] = open_wordnet()
        manifest = write(
            build(Request(probe, probe.options.parse(options, name), audit=False)), folder
        )
        files = sorted(Path(folder).glob("data/*"))
        read = [
            {**row, "split": path.name.split("-")[0]}
            for path in files
            for row in pq.read_table(path).to_pylist()
        ]
        return read, manifest

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


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBES)
def test_once_asks_a_question_and_its_gold_once(built: Built, name: str) -> None:
    rows, _ = built(name, once=True)
    asked = [(row["question"], row["choice_nodes"][row["answer"]]) for row in rows]
    assert len(set(asked)) == len(asked) > 200


@pytest.mark.slow
@pytest.mark.parametrize("name", [HYPERNYMY, "wordnet_definitions"])
def test_by_default_every_family_asks_a_question_so_many_times_at_most(
    built: Built, name: str
) -> None:
    near = {"near"}
    near |= {"same_word"} if name == "wordnet_definitions" else set()
    for most in (1, 4):
        rows, _ = built(name) if most == 4 else built(name, perturbations=most)
        assert {row["distractor_family"] for row in rows} == {*near, "random"}
        asked = Counter(
            (row["question"], row["choice_nodes"][row["answer"]], row["distractor_family"])
            for row in rows
            if row["distractor_family"] in near
        )
        assert max(asked.values()) == most


@pytest.mark.slow
def test_random_rows_are_no_more_than_their_share(built: Built) -> None:
    for share, options in {0.1: {"random_share": 0.1}, 0.2: {}}.items():
        rows, _ = built("wordnet_definitions", **options)
        for split in ("train", "validation", "test"):
            some = [row["distractor_family"] for row in rows if row["split"] == split]
            assert 0 < some.count("random") <= share * len(some)


@pytest.mark.slow
def test_a_family_alone_asks_with_its_own_distractors(built: Built) -> None:
    alone, _ = built("wordnet_definitions", families=("cousin",))
    assert {row["distractor_family"] for row in alone} == {"cousin"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [HYPERNYMY, "wordnet_hyponymy"])
def test_clean_asks_the_unflagged_questions_of_full(built: Built, name: str) -> None:
    clean, in_clean = built(name)
    full, in_full = built(name, tier="full")
    assert all(row["flags"] == [] for row in clean)
    flagged = [row for row in full if row["flags"]]
    assert 0.1 * len(full) < len(flagged) < len(full)

    def pairs(rows: Rows) -> set[tuple[str, str]]:
        return {(row["context"], row["choice_nodes"][row["answer"]]) for row in rows}

    assert not pairs(clean) & pairs(flagged)
    declared = find_probe(name).flags
    assert {flag for row in full for flag in row["flags"]} <= declared.keys()
    counts = in_full["counts"]["flags"]
    assert counts == {flag: sum(flag in row["flags"] for row in full) for flag in counts}
    dropped = in_clean["counts"]["dropped"]
    for flag in counts:
        marked = [row for row in flagged if flag in row["flags"]]
        assert dropped.get(left_out(flag), 0) >= len(pairs(marked))


def test_definitions_bear_out_edges() -> None:
    wordnet = load_wordnet("3.0")
    ids = {
        name: wordnet.synset_id(name) for name in ("dachshund.n.01", "dog.n.01", "organism.n.01")
    }
    nodes = np.array(sorted(ids.values()))
    glosses = Glosses.of(wordnet, nodes)

    def bears_out(child: str, parent: str) -> bool:
        return bool(glosses.bear_out(np.array([ids[child]]), np.array([ids[parent]]))[0])

    assert bears_out("dachshund.n.01", "dog.n.01")
    assert not bears_out("dachshund.n.01", "organism.n.01")


def in_memory(name: str, **given: Any) -> tuple[dict[str, Rows], dict[str, Any]]:
    """Build with the whole WordNet; return the rows of each split, and the counts."""
    probe = find_probe(name)
    done = build(Request(probe, probe.options.parse(given, name), audit=False))
    rows = {split: plain(items.table()).to_pylist() for split, items in done.splits.items()}
    return rows, done.manifest["counts"]


@pytest.mark.slow
def test_pairs_of_train_are_not_asked_in_the_other_order_later() -> None:
    splits, counts = in_memory("wordnet_antonymy", for_training=True)
    pairs = {
        name: {(row["concept"], row["choice_nodes"][row["answer"]]) for row in rows}
        for name, rows in splits.items()
    }
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        assert not {pair[::-1] for pair in pairs[one]} & pairs[other]
    assert counts["dropped"]["the pair is in a later split in the other order"] > 0


def test_a_split_for_training_is_not_of_the_full_tier_alone() -> None:
    with pytest.raises(UsageError, match=r"--for-training .* leave out --tier full"):
        find_probe("wordnet_hypernymy").options.parse(
            {"for_training": True, "tier": "full"}, "wordnet_hypernymy"
        )


@pytest.mark.slow
def test_every_split_for_training_is_balanced_by_itself() -> None:
    given = {"for_training": True, "hops": "balanced", "max_hops": 5}
    splits, counts = in_memory("wordnet_hypernymy", **given)
    assert all({row["hops"] for row in splits[name]} >= {1, 2, 3} for name in SPLITS)
    reason = counts["fewer"]["train_rows"]["reason"]
    assert "--hops balanced" in reason
    assert "--tier full" not in reason, "these are in train"
