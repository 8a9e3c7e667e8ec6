"""The screen for offensive content: what it marks, and that no row of a build shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.engine.draw.families import NEVER_DRAWN, DrawRequest, Family, Pool, Truth, perturb
from builders.engine.pipeline import build, write
from builders.engine.probe import find_probe
from builders.engine.request import Request
from builders.english.screen import (
    OFFENSIVE,
    RUDE_DOMAINS,
    in_usage_domains,
    offensive_senses,
    offensive_synsets,
    offensive_texts,
    offensive_words,
)
from builders.english.word_lists import word_list
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import WordNet
from kbprobe.format.dataset import CARD
from kbprobe.format.items import plain
from kbprobe.rng import RandomGenerator


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return load_wordnet("3.0")


def names(wordnet: WordNet, marked: Any) -> set[str]:
    return set(wordnet.synsets["name"].take(pa.array(np.flatnonzero(marked))).to_pylist())


@pytest.mark.parametrize(
    "text",
    [
        "What the FUCK",
        "a shit-faced fool",
        "blow job",
        "a blow-job",
        "(ethnic slur) a person from somewhere",
        "offensive and insulting term for any Black African",
        "whoremongers",
    ],
)
def test_offensive_texts(text: str) -> None:
    assert offensive_texts(pa.array([text])).all()


@pytest.mark.parametrize(
    "text",
    [
        "the cock crowed at dawn",
        "shittah wood, shiitake and niggardly peacocks in Scunthorpe",
        "an offensive or indecent word or phrase",
        "a military offensive; terms for peace",
        "a spick-and-span kitchen",
        "doo-wop in a honky-tonk",
        "vaginal cancer, rape, and the rights of homosexuals",
        "",
    ],
)
def test_innocent_texts(text: str) -> None:
    assert not offensive_texts(pa.array([text])).any()


def test_a_word_alone_is_judged_by_its_coarsest_sense() -> None:
    words = ["cock", "Pussy", "rooster", "pussy willow", "redskin", "gay", "snatch"]
    assert offensive_words(words).tolist() == [True, True, False, False, True, False, False]


@given(st.sampled_from(sorted(word_list("offensive"))), st.sampled_from([" ", "-", "_"]))
def test_every_entry_is_found_however_it_is_written(entry: str, joint: str) -> None:
    text = f"Such a {entry.removesuffix('*').replace('-', joint)}!".upper()
    assert offensive_texts(pa.array([text])).all()


def test_senses_are_told_apart(wordnet: WordNet) -> None:
    out = names(wordnet, offensive_synsets(wordnet))
    assert names(wordnet, in_usage_domains(wordnet, RUDE_DOMAINS)) <= out
    assert {"cock.n.01", "cunt.n.02", "shit.n.04", "ass.n.02", "bitch.n.01", "icky.s.01"} <= out
    innocent = {"cock.n.04", "ass.n.03", "kitty.n.04", "chink.n.03", "fairy.n.01", "dump.n.02"}
    assert innocent <= names(wordnet, np.ones(len(wordnet), dtype=np.bool_))
    assert not innocent & out
    assert not {"black_walnut.n.01", "homosexual.n.01", "rape.n.03", "vagina.n.01"} & out
    # A screen, not a purge.
    assert offensive_synsets(wordnet).sum() < 200


def test_a_lemma_alone_spoils_no_other_lemma_of_its_synset(wordnet: WordNet) -> None:
    assert "annoyed.s.01" in names(wordnet, offensive_synsets(wordnet))
    assert "annoyed.s.01" not in names(wordnet, offensive_senses(wordnet))


def test_nodes_that_are_never_drawn() -> None:
    gold = np.arange(0, 20, dtype=np.int64)
    kinds = np.zeros(60, dtype=np.int64)
    kinds[20:40] = NEVER_DRAWN
    nodes = np.arange(60, dtype=np.int64)
    pool = Pool.from_pairs(1, np.zeros(60, dtype=np.int64), nodes)
    nothing = np.empty(0, dtype=np.int64)
    parts = perturb(
        DrawRequest(gold, gold, kinds[gold]),
        [Family("near", 0, np.zeros_like(gold), pool=pool), Family("random", 0, gold)],
        Truth(60, nothing, nothing),
        kinds,
        distractors=3,
        max_fill=0,
        repeats=1,
        rng=RandomGenerator.of(0, "draw"),
    )
    drawn = np.concatenate([part.nodes.ravel() for part in parts])
    assert drawn.size
    assert not ((drawn >= 20) & (drawn < 40)).any()


def texts_of(rows: list[dict[str, Any]]) -> pa.Array:
    return pa.array([" | ".join([row["question"], *row["choices"]["text"]]) for row in rows])


WHOLE = ("definitions", "hypernymy", "hyponymy", "meronymy", "synonymy")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *[pytest.param(f"wordnet_{name}", "default", marks=pytest.mark.slow) for name in WHOLE],
        pytest.param("wordnet_hypernymy", "published", marks=pytest.mark.slow),
        pytest.param("wordnet_synonymy", "adjectives", marks=pytest.mark.slow),
    ],
)
def test_no_row_of_a_wordnet_probe_is_offensive(
    name: str,
    kind: str,
    built: Callable[[str, str], Path],
    manifest_of: Callable[[str, str], dict[str, Any]],
    wordnet: WordNet,
) -> None:
    columns = ["concept", "question", "choices", "choice_nodes"]
    rows = pq.read_table(built(name, kind) / "data", columns=columns).to_pylist()
    nodes = {node for row in rows for node in (row["concept"], *row["choice_nodes"])}
    assert not nodes & names(wordnet, offensive_synsets(wordnet))
    assert not offensive_texts(texts_of(rows)).any()
    manifest = manifest_of(name, kind)
    assert manifest["screen"] == {"on": True, "rows": 0}
    assert manifest["counts"]["dropped"][OFFENSIVE] > 0


@pytest.mark.slow
def test_without_the_screen(tmp_path: Path, wordnet: WordNet) -> None:
    """The manifest counts what it would have kept out, and the card says that nothing was."""
    probe = find_probe("wordnet_synonymy")
    options = {"train_rows": 0, "controls": False}
    done = {
        on: build(Request(probe, probe.options.parse({**options, "screen": on}, ""), audit=False))
        for on in (True, False)
    }
    rows = [row for some in done[False].splits.values() for row in plain(some.table()).to_pylist()]
    shown = offensive_texts(texts_of(rows)).sum()
    assert done[False].manifest["screen"] == {"on": False, "rows": shown}
    assert shown > 100
    counts = {on: one.manifest["counts"]["rows"] for on, one in done.items()}
    assert 0 < counts[False] - counts[True] < 0.05 * counts[False]
    for on, one in done.items():
        write(one, tmp_path / str(on))
        card = (tmp_path / str(on) / CARD).read_text(encoding="utf-8")
        assert ("not screened" in card) != on
        assert ("glin-profanity 4.1.0" in card) == on
        assert ("build-probe wordnet_synonymy --no-screen" in card) != on
