"""Blocks of the taxonomy: who stays together, and what the splits of all probes share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from builders.engine.options import RANDOM
from builders.wordnet.neighbourhoods import (
    LARGEST_BLOCK,
    PARTS,
    blocks,
    main_parents,
    territory,
)
from builders.wordnet.synsets import MERONYMS
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import WordNet
from kbprobe.columns import to_numpy

Built = Callable[[str, str], Path]
SHARES = (0.26, 0.12, 0.62)
SPLITS = ("train", "validation", "test")
PROBES = ("wordnet_hypernymy", "wordnet_hyponymy", "wordnet_definitions", "wordnet_synonymy")


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return load_wordnet("3.0")


def test_every_synset_is_in_a_block_with_its_siblings(wordnet: WordNet) -> None:
    block, weight, tops = blocks(wordnet)
    assert block.shape == (len(wordnet),)
    assert set(block.tolist()) == set(range(weight.size))
    assert 0 < tops < weight.size
    split = territory(wordnet, SHARES, 0).split
    first: dict[int, int] = {}
    for node, parent in enumerate(main_parents(wordnet).tolist()):
        if parent < 0:
            continue
        sibling = first.setdefault(parent, node)
        # The tops of one taxonomy may be in several blocks, one for each lexicographer file.
        assert block[node] == block[sibling] or max(block[node], block[sibling]) < tops
        assert split[node] == split[sibling]


def test_a_block_is_a_small_subtree_or_a_top(wordnet: WordNet) -> None:
    block, weight, tops = blocks(wordnet)
    asked = [to_numpy(wordnet.examples["synset"])]
    asked += [wordnet.edges(name)[0] for name in MERONYMS]
    single = 1.0 + np.bincount(np.concatenate(asked), minlength=len(wordnet))
    assert weight == pytest.approx(np.bincount(block, single))
    nouns = np.isin(wordnet.pos_codes, [0, 1])
    assert (weight[np.unique(block[nouns & (block >= tops)])] <= LARGEST_BLOCK * weight.sum()).all()


def test_opposites_of_modifiers_are_in_one_block(wordnet: WordNet) -> None:
    block, _, tops = blocks(wordnet)
    source, target = wordnet.edges("antonym")
    modifier = wordnet.pos_codes > 1
    both = modifier[source] & modifier[target] & (block[source] >= tops) & (block[target] >= tops)
    assert both.sum() > 3000
    assert (block[source[both]] == block[target[both]]).all()


@pytest.mark.parametrize(
    "shares", [SHARES, (0.1, 0.2, 0.7), (0.0, 0.4, 0.6), (0.5, 0.5, 0.0), (1.0, 0.0, 0.0)]
)
def test_splits_have_their_shares_of_whole_blocks(
    wordnet: WordNet, shares: tuple[float, float, float]
) -> None:
    block, weight, tops = blocks(wordnet)
    places = territory(wordnet, shares, 0)
    for numbers in (places.split, places.part):
        assert np.unique(np.stack([block, numbers]), axis=1).shape[1] == weight.size
    of_block = np.zeros(weight.size, dtype=np.int64)
    of_block[block] = places.split
    last = max(at for at in range(3) if shares[at])
    assert (of_block[:tops] == last).all()
    found = np.bincount(of_block, weight, 3) / weight.sum()
    # No block but the last of a split may exceed its share; the tops may exceed the last one's.
    room = weight[:tops].sum() / weight.sum() + LARGEST_BLOCK
    assert (np.abs(found - shares) <= room).all()
    assert all(share > 0 or part == 0 for part, share in zip(found, shares, strict=True))
    assert set(places.part.tolist()) == set(range(PARTS))


def test_the_seed_alone_decides(wordnet: WordNet) -> None:
    one, other = (territory(wordnet, SHARES, seed) for seed in (0, 1))
    assert (one.split != other.split).any()
    territory.cache_clear()
    again = territory(wordnet, SHARES, 0)
    assert (one.split == again.split).all()
    assert (one.part == again.part).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBES)
def test_all_probes_of_a_seed_ask_a_synset_in_the_same_split(
    built: Built, miniature: str, name: str
) -> None:
    """So that no gold or distractor of test is one of train, in any of them."""
    wordnet = load_wordnet(miniature)
    split = territory(wordnet, SHARES, 0).split
    rows = 0
    for number, of in enumerate(SPLITS):
        [path] = (built(name, "miniature") / "data").glob(f"{of}-*.parquet")
        table = pq.read_table(path, columns=["concept", "choice_nodes"])
        rows += len(table)
        for row in table.to_pylist():
            nodes = [wordnet.synset_id(node) for node in (row["concept"], *row["choice_nodes"])]
            assert (split[nodes] == number).all(), row
    assert rows > 500


@pytest.mark.slow
def test_choices_of_a_row_are_of_one_part(
    wordnet: WordNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked of enough questions, all eight parts stay apart."""
    from builders.engine import rows
    from builders.engine.pipeline import build
    from builders.engine.probe import find_probe
    from builders.engine.request import Request
    from kbprobe.format.items import plain

    monkeypatch.setattr(rows, "LINES_OF_PART", 2000)
    probe = find_probe("wordnet_synonymy")
    given = {"train_rows": 0, "families": (RANDOM,), "match": "none"}
    options = probe.options.parse(given, probe.name)
    done = build(Request(probe, options, audit=False))
    part = dict(
        zip(
            wordnet.synsets["name"].to_pylist(),
            territory(wordnet, SHARES, 0).part.tolist(),
            strict=True,
        )
    )
    met = set()
    for items in done.splits.values():
        for nodes in plain(items.table())["choice_nodes"].to_pylist():
            parts = {part[node] for node in nodes}
            assert len(parts) == 1, nodes
            met |= parts
    assert met == set(range(PARTS))
