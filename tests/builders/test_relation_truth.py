"""Every row of the graph probes over WordNet is true, by what NLTK's own objects say.

Nothing here looks at the graphs that the builders walked: names are looked up in NLTK, and every
row of a full build is checked.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import builders
from builders.engine.probe import find_probe
from tests.builders.test_truth import wordnet_of_nltk
from tests.real_data import MINIATURE

KINDS = ("part", "member", "substance")

SMALL_AND_WHOLE = pytest.mark.parametrize(
    ("name", "wordnet"),
    [
        pytest.param(name, wordnet, marks=() if wordnet == MINIATURE else pytest.mark.slow)
        for name in ("wordnet_meronymy", "wordnet_antonymy")
        for wordnet in (MINIATURE, "3.0")
    ],
)


@pytest.fixture(scope="module")
def reader() -> Iterator[Any]:
    with wordnet_of_nltk() as found:
        yield found
    # Millions of objects: each collection of garbage in the tests that follow would look at them.
    above.cache_clear()
    parts_of.cache_clear()


@pytest.fixture(scope="module")
def synset(reader: Any) -> Any:
    return lru_cache(maxsize=None)(reader.synset)


@pytest.fixture(scope="module")
def full(miniature: str) -> Callable[..., list[dict[str, Any]]]:
    @cache
    def rows(name: str, wordnet: str = "3.0") -> list[dict[str, Any]]:
        made = builders.build(name, wordnet=wordnet, tier="full", audit=False)
        return [row for split in made.values() for row in split.to_list()]

    return rows


def reached(start: Any, step: Callable[[Any], Iterable[Any]]) -> set[Any]:
    """What is reached from a synset in any number of steps, itself included."""
    found, frontier = {start}, [start]
    while frontier:
        frontier = [node for one in frontier for node in step(one) if node not in found]
        found.update(frontier)
    return found


@cache
def above(synset: Any) -> frozenset[Any]:
    return frozenset(reached(synset, lambda one: one.hypernyms() + one.instance_hypernyms()))


@cache
def parts_of(synset: Any) -> frozenset[Any]:
    """All parts, members and substances of a synset, of what it is, and of these in turn."""
    direct = lambda one: [x for kind in KINDS for x in getattr(one, f"{kind}_meronyms")()]  # noqa: E731
    return frozenset(part for one in above(synset) for part in reached(one, direct) - {one})


def lemmas(synset: Any) -> set[str]:
    return {name.lower() for name in synset.lemma_names()}


def choices(row: dict[str, Any], synset: Any) -> tuple[Any, Any, list[Any]]:
    """The concept, the gold and the distractors of a row."""
    nodes = [synset(name) for name in row["choice_nodes"]]
    gold = nodes.pop(row["answer"])
    return synset(row["concept"]), gold, nodes


@pytest.mark.real_data
def test_golds_are_parts_and_distractors_are_not(full: Any, synset: Any) -> None:
    rows = full("wordnet_meronymy")
    assert len(rows) > 1200
    assert {row["relation"] for row in rows} == set(KINDS)
    for row in rows:
        concept, gold, others = choices(row, synset)
        assert gold in getattr(concept, f"{row['relation']}_meronyms")(), row
        true = parts_of(concept)
        for other in others:
            assert other not in true, row
            wholes = [getattr(concept, f"{kind}_holonyms")() for kind in KINDS]
            assert all(other not in some for some in wholes), row
            assert not lemmas(other) & lemmas(gold), row
        texts = {part.name() for part in true}
        assert not texts & {other.name() for other in others}


@pytest.mark.real_data
def test_golds_are_antonyms_and_distractors_are_not(full: Any, synset: Any) -> None:
    rows = full("wordnet_antonymy")
    assert len(rows) > 500
    for row in rows:
        concept, gold, others = choices(row, synset)
        word = concept.lemmas()[0]
        assert row["arguments"][0]["value"] == word.name().replace("_", " "), row
        assert gold.lemmas()[0] in word.antonyms(), row
        assert row["choices"]["text"][row["answer"]] == gold.lemma_names()[0].replace("_", " ")
        opposed = {one.synset() for lemma in concept.lemmas() for one in lemma.antonyms()}
        opposed |= {near for one in opposed for near in one.similar_tos()}
        for other in others:
            assert other not in opposed, row
            assert other.pos().replace("s", "a") == gold.pos().replace("s", "a"), row
            assert not lemmas(other) & (lemmas(concept) | lemmas(gold)), row


@pytest.mark.real_data
def test_no_distractor_shares_a_parent_or_a_noun_with_the_opposite(full: Any, synset: Any) -> None:
    """What stands beside the opposite may mean nearly the same."""
    families = Counter(row["distractor_family"] for row in full("wordnet_antonymy"))
    assert set(families) == {"near", "random"}
    assert families["random"] < 0.25 * families.total()
    for row in full("wordnet_antonymy"):
        _, gold, others = choices(row, synset)
        parents = gold.hypernyms() + gold.attributes()
        # One that has several parents stands beside its main one.
        for other in others if len(parents) == 1 else ():
            if len(own := other.hypernyms() + other.attributes()) == 1:
                assert own != parents, row


@pytest.mark.slow
@SMALL_AND_WHOLE
def test_whoever_sees_the_choices_alone_is_right_by_chance(
    name: str, wordnet: str, full: Any
) -> None:
    """Each choice is the gold as often as each other one, and no question is repeated."""
    together: dict[tuple[str, ...], Counter[str]] = {}
    asked: Counter[tuple[str, ...]] = Counter()
    for row in full(name, wordnet):
        nodes = tuple(sorted(row["choice_nodes"]))
        gold = row["choice_nodes"][row["answer"]]
        together.setdefault(nodes, Counter())[gold] += 1
        asked[row["question"], gold, *nodes] += 1
    for nodes, golds in together.items():
        assert set(golds) == set(nodes)
        assert len(set(golds.values())) == 1
    assert max(asked.values()) == 1


@SMALL_AND_WHOLE
def test_words_of_a_row_do_not_look_alike(name: str, wordnet: str, full: Any) -> None:
    for row in full(name, wordnet):
        word = row["arguments"][0]["value"].lower()
        gold = row["choices"]["text"][row["answer"]].lower().split(" (or ")[0]
        assert word not in gold, row
        assert len(gold) == 1 or gold not in word, row
        assert len({text.lower() for text in row["choices"]["text"]}) == len(row["choices"]["text"])


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "least"), [("wordnet_meronymy", 1000), ("wordnet_antonymy", 500)])
def test_clean_holds_what_no_flag_names(
    name: str, least: int, full: Any, built: Callable[..., Path], reader: Any, synset: Any
) -> None:
    known = set(find_probe(name).flags)
    flagged = {row["id"] for row in full(name) if row["flags"]}
    assert {flag for row in full(name) for flag in row["flags"]} <= known
    files = (built(name, "default") / "data").iterdir()
    clean = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert len(clean) > least
    assert not any(row["flags"] for row in clean)
    assert len(flagged) > 300
    for row in clean:
        _, gold, _ = choices(row, synset)
        shown = gold.lemma_names()[: 3 if name == "wordnet_meronymy" else 1]
        part_of_speech = gold.pos().replace("s", "a")
        senses = [reader.synsets(lemma, part_of_speech).index(gold) for lemma in shown]
        assert min(senses) <= (0 if name == "wordnet_meronymy" else 1), row


@pytest.mark.real_data
def test_distractors_are_no_parts_of_what_is_like_the_concept(full: Any, synset: Any) -> None:
    """A turret is a part of a castle: it may be one of a building."""

    def parts(whole: Any) -> set[Any]:
        return {part for kind in KINDS for part in getattr(whole, f"{kind}_meronyms")()}

    @cache
    def beside(gold: Any) -> set[Any]:
        wholes = [whole for kind in KINDS for whole in getattr(gold, f"{kind}_holonyms")()]
        return set().union(*(parts(whole) for whole in wholes if len(parts(whole)) <= 100))

    @cache
    def is_narrow(above: Any) -> bool:
        return len(reached(above, lambda synset: synset.hyponyms())) < 1000

    @cache
    def parts_of_sisters(concept: Any) -> set[Any]:
        above = concept.hypernyms()
        if concept.instance_hypernyms() or not all(map(is_narrow, above)):
            return set()
        return set().union(*(parts(sister) for kind in above for sister in kind.hyponyms()))

    for row in full("wordnet_meronymy"):
        concept, gold, others = choices(row, synset)
        assert beside(gold).isdisjoint(others), row
        assert parts_of_sisters(concept).isdisjoint(others), row


@pytest.mark.parametrize("name", ["wordnet_meronymy", "wordnet_antonymy"])
def test_the_proof_stays_small(name: str) -> None:
    """A graph probe is at most forty lines of Python, its options included, and a template."""
    declared = find_probe(name)
    parts = (declared.plan, declared.options)
    assert sum(len(inspect.getsource(part).splitlines()) for part in parts) <= 40
