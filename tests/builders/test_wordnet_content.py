"""What WordNet questions are about: known synsets, and how contents relate to WordNet."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from builders.engine.pipeline import build, write
from builders.engine.probe import find_probe
from builders.engine.request import Request
from builders.wordnet.content import contents
from builders.wordnet.synsets import lemma_texts
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.format.items import COMMON, CONTENTS

KNOWN = {
    COMMON: "dog.n.01 wolf.n.01 apple.n.02 leopard.n.02 dandelion.n.01 bird.n.01 oak.n.02 "
    "sun.n.01 earth.n.01 genus.n.02 species.n.01 breed.n.01 city.n.01 spaniard.n.01 "
    "dutch_oven.n.01 waterloo.n.02 run.v.01 physicist.n.01 person.n.01 animal.n.01 comma.n.01",
    "taxon": "canis.n.01 rosaceae.n.01 grebe.n.01 white_oak.n.01 california_poppy.n.01 comma.n.02 "
    "staffordshire_bullterrier.n.01 carnivora.n.01",
    "person": "einstein.n.01 zeus.n.01 hamlet.n.02 handel.n.01",
    "place": "paris.n.01 nile.n.01 jupiter.n.01 eiffel_tower.n.01",
    "name": "waterloo.n.03 odyssey.n.02 crimean_war.n.01 mickey_mouse.n.01",
}


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return load_wordnet("3.0")


@pytest.mark.parametrize("content", CONTENTS)
def test_known_synsets(wordnet: WordNet, content: str) -> None:
    names = KNOWN[content].split()
    found = contents(wordnet)[[wordnet.synset_id(name) for name in names]]
    assert {name: CONTENTS[code] for name, code in zip(names, found, strict=True)} == (
        dict.fromkeys(names, content)
    )


def test_names_are_nouns_and_instances(wordnet: WordNet) -> None:
    found = np.array(CONTENTS)[contents(wordnet)]
    assert set(wordnet.pos_codes[found != COMMON].tolist()) == {POS.index("n")}
    instances = set(wordnet.edges("instance_hypernym")[0].tolist())
    named = np.flatnonzero(np.isin(found, ("person", "place", "name")))
    assert instances.issuperset(named.tolist())
    assert len(instances) - named.size < 20
    # Those that are left have a word in lower case: they are kinds of their own.
    lemmas, start = lemma_texts(wordnet).to_pylist(), wordnet.sense_start
    for synset in instances.difference(named.tolist()):
        own = lemmas[start[synset] : start[synset + 1]]
        assert any(word.isalpha() and word.islower() for word in own), own


@pytest.mark.slow
def test_rows_have_the_content_of_their_concept(wordnet: WordNet, tmp_path: Path) -> None:
    probe, folder = find_probe("wordnet_synonymy"), tmp_path / "synonymy"
    options = probe.options.parse({"pos": ("noun",), "limit": 400}, probe.name)
    write(build(Request(probe, options, audit=False)), folder)
    table = pq.read_table(folder / "data")
    at = {name: row for row, name in enumerate(wordnet.synsets["name"].to_pylist())}
    found = contents(wordnet)
    shown = table["content"].to_pylist()
    assert shown == [CONTENTS[found[at[name]]] for name in table["concept"].to_pylist()]
    assert len(set(shown)) > 2
    counts = json.loads((folder / "manifest.json").read_text())["counts"]
    assert counts["content"] == Counter(shown)
    assert counts["content"][COMMON] < 0.8 * counts["rows"]
    card = (folder / "README.md").read_text()
    assert "its headline accuracy is that of the others" in card
