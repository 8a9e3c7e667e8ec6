"""The embedded snapshot holds what NLTK reads from the source, synset by synset.

NLTK's own loading path is used here, not the reader of ``kb_cache.wordnet.compile``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from kb_cache.snapshot import content_digest, read_info
from kb_cache.store import find
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.source import read_source
from kb_cache.wordnet.types import POINTERS, WordNet


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return load_wordnet("3.0")


pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module")
def reader(wordnet_zip: Path) -> Iterator[Any]:
    import nltk
    from nltk.corpus import LazyCorpusLoader
    from nltk.corpus.reader import WordNetCorpusReader

    saved = list(nltk.data.path)
    nltk.data.path[:] = [str(wordnet_zip.parents[1])]
    yield LazyCorpusLoader("wordnet", WordNetCorpusReader, None)
    nltk.data.path[:] = saved


@pytest.fixture(scope="module")
def synsets(reader: Any) -> list[Any]:
    """NLTK's synsets in the order of our rows."""
    return [synset for pos in "nvar" for synset in reader.all_synsets(pos)]


def ids(synsets: list[Any]) -> dict[str, int]:
    return {synset.name(): i for i, synset in enumerate(synsets)}


def test_synsets_are_the_same(wordnet: WordNet, synsets: list[Any]) -> None:
    assert len(wordnet) == len(synsets) == 117_659
    ours = wordnet.synsets
    assert ours["name"].to_pylist() == [s.name() for s in synsets]
    assert ours["pos"].to_pylist() == [s.pos() for s in synsets]
    assert ours["offset"].to_pylist() == [s.offset() for s in synsets]
    assert ours["lexname"].to_pylist() == [s.lexname() for s in synsets]
    assert ours["gloss"].to_pylist() == [s.definition() for s in synsets]


def test_examples_are_the_same_and_in_order(wordnet: WordNet, synsets: list[Any]) -> None:
    expected = [(i, text) for i, s in enumerate(synsets) for text in s.examples()]
    ours = zip(*(wordnet.examples[c].to_pylist() for c in ("synset", "text")), strict=True)
    assert list(ours) == expected


def test_lemmas_are_the_same_and_in_order(wordnet: WordNet, synsets: list[Any]) -> None:
    expected = [(i, x.name(), x.key()) for i, s in enumerate(synsets) for x in s.lemmas()]
    ours = zip(*(wordnet.senses[c].to_pylist() for c in ("synset", "lemma", "key")), strict=True)
    assert list(ours) == expected
    markers = [x.syntactic_marker() or "" for s in synsets for x in s.lemmas()]
    assert wordnet.senses["syntactic_marker"].to_pylist() == markers


def test_counts_are_the_same(wordnet: WordNet, synsets: list[Any], wordnet_zip: Path) -> None:
    # Lemma.count() searches the file anew for each lemma (a minute for all): every tenth.
    lemmas = [x for s in synsets for x in s.lemmas()]
    ours = wordnet.senses["count"].to_pylist()
    assert [ours[i] for i in range(0, len(lemmas), 10)] == [x.count() for x in lemmas[::10]]
    # Two lemmas of a synset that differ in case alone ("A", "a") share a key, so count keys.
    counted = {key for key, n in zip(wordnet.senses["key"].to_pylist(), ours, strict=True) if n}
    assert len(counted) == len(read_source(wordnet_zip).files["cntlist.rev"].splitlines())


def test_sense_numbers_name_the_same_synsets(wordnet: WordNet, reader: Any) -> None:
    names = wordnet.synsets["name"]
    for name in ("big.a.01", "domestic_dog.n.01", "nice.s.01", "huge.s.01", "u.s..n.01"):
        assert names[wordnet.synset_id(name)].as_py() == reader.synset(name).name()


@pytest.mark.parametrize(
    ("kind", "method"),
    [("hypernym", "hypernyms"), ("instance_hypernym", "instance_hypernyms"),
     ("hyponym", "hyponyms"), ("part_meronym", "part_meronyms"), ("similar_to", "similar_tos"),
     ("verb_group", "verb_groups"), ("entailment", "entailments"), ("attribute", "attributes")],
)  # fmt: skip
def test_edges_between_synsets_are_the_same(
    wordnet: WordNet, synsets: list[Any], kind: str, method: str
) -> None:
    row = ids(synsets)
    expected = {(i, row[t.name()]) for i, s in enumerate(synsets) for t in getattr(s, method)()}
    source, target = wordnet.edges(kind)
    ours = list(zip(source.tolist(), target.tolist(), strict=True))
    semantic = [s == -1 for s in _senses_of(wordnet, kind)]
    assert {edge for edge, whole in zip(ours, semantic, strict=True) if whole} == expected
    assert len(set(ours)) == len(ours) or not all(semantic)


@pytest.mark.parametrize(
    ("kind", "method"),
    [("antonym", "antonyms"), ("derivation", "derivationally_related_forms"),
     ("pertainym", "pertainyms")],
)  # fmt: skip
def test_edges_between_lemmas_are_the_same(
    wordnet: WordNet, synsets: list[Any], kind: str, method: str
) -> None:
    expected = Counter(
        (x.key(), target)
        for s in synsets
        for x in s.lemmas()
        # By key: NLTK's lemmas are equal if their names are, whatever the synset.
        for target in {t.key() for t in getattr(x, method)()}
    )
    keys = wordnet.senses["key"].to_pylist()
    rows = wordnet.pointers.filter(pc.equal(wordnet.pointers["kind"], kind)).to_pylist()
    ours = Counter((keys[r["source_sense"]], keys[r["target_sense"]]) for r in rows)
    assert ours == expected
    owner = wordnet.senses["synset"].to_pylist()
    assert all(owner[r["source_sense"]] == r["source"] for r in rows)
    assert all(owner[r["target_sense"]] == r["target"] for r in rows)


def test_every_pointer_of_the_source_is_there(wordnet: WordNet, wordnet_zip: Path) -> None:
    """Counted straight from the data files, without NLTK."""
    expected: Counter[str] = Counter()
    for name, content in read_source(wordnet_zip).files.items():
        if not name.startswith("data."):
            continue
        for line in content.decode().splitlines():
            if line.startswith("  "):
                continue
            fields = line.split("|")[0].split()
            at = 4 + 2 * int(fields[3], 16)
            end = at + 1 + 4 * int(fields[at])
            pointers = {tuple(fields[i : i + 4]) for i in range(at + 1, end, 4)}
            expected.update(POINTERS[symbol] for symbol, *_ in pointers)
    assert Counter(wordnet.pointers["kind"].to_pylist()) == expected


def test_frames_are_the_same(wordnet: WordNet, synsets: list[Any]) -> None:
    shared: dict[int, list[int]] = {}
    special: dict[int, list[int]] = {}
    for row in wordnet.frames.to_pylist():
        if row["sense"] == -1:
            shared.setdefault(row["synset"], []).append(row["frame"])
        else:
            special.setdefault(row["sense"], []).append(row["frame"])
    sense = 0
    for i, synset in enumerate(synsets):
        assert shared.get(i, []) == synset.frame_ids()
        for lemma in synset.lemmas():
            ours = sorted(shared.get(i, []) + special.get(sense, []))
            assert ours == sorted(lemma.frame_ids())
            sense += 1


def test_mentions_lie_within_their_examples(wordnet: WordNet) -> None:
    texts = wordnet.examples["text"].to_pylist()
    example_synset = wordnet.examples["synset"].to_pylist()
    sense_synset = wordnet.senses["synset"].to_pylist()
    pairs = []
    for row in wordnet.mentions.to_pylist():
        text = texts[row["example"]]
        assert 0 <= row["start"] < row["end"] <= len(text)
        assert example_synset[row["example"]] == sense_synset[row["sense"]]
        pairs.append((row["example"], row["sense"]))
    assert pairs == sorted(set(pairs))


def test_most_examples_mention_a_lemma(wordnet: WordNet) -> None:
    mentioned = set(wordnet.mentions["example"].to_pylist())
    pos = [wordnet.synsets["pos"][s].as_py() for s in wordnet.examples["synset"].to_pylist()]
    for kind, least in (("n", 0.99), ("v", 0.975), ("a", 0.99), ("s", 0.97), ("r", 0.99)):
        rows = [i for i, p in enumerate(pos) if p == kind]
        assert sum(i in mentioned for i in rows) / len(rows) >= least


def test_compiling_the_source_again_gives_the_embedded_digest(
    wordnet: WordNet, wordnet_zip: Path
) -> None:
    from kb_cache.base import versions_of
    from kb_cache.wordnet.compile import compile_wordnet

    info = read_info(find("wordnet-3.0").folder)
    here = versions_of("nltk", "lemminflect")
    if here != dict(info.created_by):
        pytest.skip(f"the snapshot was made with {dict(info.created_by)}; here is {here}")
    assert content_digest(compile_wordnet(read_source(wordnet_zip))) == wordnet.digest


def _senses_of(wordnet: WordNet, kind: str) -> list[int]:
    rows = wordnet.pointers.filter(pc.equal(wordnet.pointers["kind"], kind))
    return [int(s) for s in rows["source_sense"].to_pylist()]
