"""Taxonomy conjunction: truth of every row, disjoint splits, balance, and its options."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import builders
from builders.english.screen import whole_words
from builders.english.word_lists import word_groups
from builders.judged.model import judgements
from builders.taxonomy.blocks import BLOCK
from builders.taxonomy.crossing import ARGUABLE, FALSE, TOLERANCE, TRUE, listed_kinds
from builders.taxonomy.options import (
    CLEAN_HOPS,
    CONJUNCTION,
    FLAGS,
    RARE_ANSWER,
    RARE_WORD,
    TREES,
    TREES_OF_SPLITS,
)
from builders.taxonomy.questions import trees_of
from builders.taxonomy.words import Taxonomy
from kb_cache.conceptnet.load import load_conceptnet
from kb_cache.fetching import fetch
from kb_cache.frequency import zipf_frequencies
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import WordNet
from kbprobe.errors import UsageError
from kbprobe.format.dataset import data_folder

NAME = "taxonomy_conjunction"
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return load_wordnet()


@pytest.fixture(scope="module")
def taxonomy(wordnet: WordNet) -> Taxonomy:
    return Taxonomy(wordnet)


def rows_of(folder: Path) -> Rows:
    """All rows, each with its split, its two words, its gold and its distractors."""
    rows: Rows = []
    for path in sorted(data_folder(folder, "default").iterdir()):
        for row in pq.read_table(path).to_pylist():
            words = {one["name"]: one["value"] for one in row["arguments"]}
            texts = row["choices"]["text"]
            others = [text for at, text in enumerate(texts) if at != row["answer"]]
            found = {"gold": texts[row["answer"]], "others": others}
            rows.append({**row, **words, **found, "split": path.name.split("-")[0]})
    return rows


@pytest.fixture(scope="module")
def folder(built: Callable[[str, str], Path]) -> Path:
    return built(NAME, "default")


@pytest.fixture(scope="module")
def manifest(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def rows(folder: Path) -> Rows:
    return rows_of(folder)


@pytest.fixture(scope="module")
def level_rows(rows: Rows) -> Rows:
    return [row for row in rows if row["distractor_family"] != CONJUNCTION]


@pytest.fixture(scope="module")
def crossing_rows(rows: Rows) -> Rows:
    return [row for row in rows if row["distractor_family"] == CONJUNCTION]


@cache
def parents(wordnet: WordNet, relation: str) -> dict[str, set[str]]:
    names = wordnet.synsets["name"].to_pylist()
    source, target = (end.tolist() for end in wordnet.edges(relation))
    found: dict[str, set[str]] = defaultdict(set)
    for low, high in zip(source, target, strict=True):
        found[names[low]].add(names[high])
    return found


@cache
def senses(wordnet: WordNet) -> dict[str, set[str]]:
    """Lower-case lemma -> its noun synsets."""
    names = wordnet.synsets["name"].to_pylist()
    found: dict[str, set[str]] = defaultdict(set)
    lemmas, owners = (wordnet.senses[column].to_pylist() for column in ("lemma", "synset"))
    for lemma, owner in zip(lemmas, owners, strict=True):
        if ".n." in names[owner]:
            found[lemma].add(names[owner])
    return found


@cache
def ancestors(wordnet: WordNet, synset: str) -> frozenset[str]:
    """The synset and all above it, by hypernyms and instances."""
    found, waiting = {synset}, [synset]
    while waiting:
        low = waiting.pop()
        for relation in ("hypernym", "instance_hypernym"):
            new = parents(wordnet, relation).get(low, set()) - found
            found |= new
            waiting += new
    return frozenset(found)


def is_a(wordnet: WordNet, word: str, answer: str) -> bool:
    """Whether any sense of the word is under, or is, any sense of the answer."""
    wanted = senses(wordnet)[answer]
    return any(ancestors(wordnet, sense) & wanted for sense in senses(wordnet)[word])


# The whole build


@pytest.mark.slow
def test_a_default_build_is_large_enough(manifest: dict[str, Any]) -> None:
    counts = manifest["counts"]
    assert counts["rows"] >= 2_300
    assert counts["splits"]["train"] >= 950
    assert counts["splits"]["validation"] >= 150
    assert counts["splits"]["test"] >= 1_150


@pytest.mark.slow
def test_gold_is_true_of_both_words_and_distractors_of_neither(
    level_rows: Rows, wordnet: WordNet
) -> None:
    for row in level_rows:
        pair = (row["x"], row["y"])
        assert all(is_a(wordnet, word, row["gold"]) for word in pair), pair
        assert not any(is_a(wordnet, word, other) for word in pair for other in row["others"]), pair


@pytest.mark.slow
def test_distractors_are_neither_above_nor_below_the_gold(
    level_rows: Rows, wordnet: WordNet
) -> None:
    for row in level_rows:
        for other in row["others"]:
            assert not is_a(wordnet, row["gold"], other), row["id"]
            assert not is_a(wordnet, other, row["gold"]), row["id"]
        assert not is_a(wordnet, row["x"], row["y"])
        assert not is_a(wordnet, row["y"], row["x"])


@pytest.mark.slow
def test_facts_lead_from_both_words_to_the_gold(level_rows: Rows, wordnet: WordNet) -> None:
    misleading = {tuple(edge) for edge in word_groups("misleading_edges", "builders.taxonomy")}
    for row in level_rows:
        starts = [i for i, edge in enumerate(row["triples"]) if edge["relation"] == "sense"]
        assert [row["triples"][at]["subject"] for at in starts] == [row["x"], row["y"]]
        legs = row["triples"][: starts[1]], row["triples"][starts[1] :]
        assert len(legs[0]) == row["hops"] + 2
        for leg in legs:
            first, *middle, last = leg
            assert first["object"] in senses(wordnet)[first["subject"]]
            reached = first["object"]
            for edge in middle:
                assert edge["relation"] == "hypernym"
                assert edge["subject"] == reached
                assert edge["object"] in parents(wordnet, "hypernym")[reached]
                assert (edge["subject"], edge["object"]) not in misleading
                reached = edge["object"]
            assert (last["subject"], last["relation"], last["object"]) == (
                reached,
                "lemma",
                row["gold"],
            )
            assert reached in senses(wordnet)[row["gold"]]


@pytest.mark.slow
def test_splits_share_neither_words_nor_golds_nor_distractors(rows: Rows) -> None:
    for columns in (("x", "y"), ("gold",), ("gold", "others")):
        used: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            for column in columns:
                value = row[column]
                used[row["split"]].update([value] if isinstance(value, str) else value)
        assert len(used) == 3
        assert not any(one & other for one, other in combinations(used.values(), 2))
    trees = {
        "food": "test",
        "bird": "test",
        "vehicle": "validation",
        "building": "train",
        "athlete": "train",
    }
    for row in rows:
        assert trees.get(row["gold"], row["split"]) == row["split"]


@pytest.mark.slow
def test_caps_and_frequencies(level_rows: Rows) -> None:
    assert max(Counter(row["gold"] for row in level_rows).values()) <= 240
    words = Counter((word, row["gold"]) for row in level_rows for word in (row["x"], row["y"]))
    # A word stands in one block for each gold.
    assert max(words.values()) <= BLOCK - 1
    words = sorted({word for word, _ in words})
    assert zipf_frequencies(words).min() >= RARE_WORD
    answers = sorted({text for row in level_rows for text in row["choices"]["text"]})
    assert zipf_frequencies(answers).min() >= RARE_ANSWER
    asked = Counter(frozenset((row["x"], row["y"])) for row in level_rows)
    assert set(asked.values()) == {1}


@pytest.mark.slow
def test_every_answer_is_gold_in_a_third_of_the_rows_that_show_it(level_rows: Rows) -> None:
    groups: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for row in level_rows:
        groups[row["split"], *sorted(row["choices"]["text"])][row["gold"]] += 1
    for (_, *choices), golds in groups.items():
        assert len(set(golds.values())) == 1
        assert set(golds) == set(choices)


@pytest.mark.slow
def test_rows_of_the_family_level_have_a_distractor_at_the_golds_level(rows: Rows) -> None:
    shown: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for row in rows:
        families = (family for family in row["choice_families"] if family != "gold")
        shown[row["distractor_family"]].add(tuple(sorted(families)))
    assert shown == {
        "conjunction": {("conjunction", "conjunction")},
        "level": {("level", "level"), ("level", "random")},
        "mixed": {("level", "random"), ("random", "random")},
        "random": {("random", "random")},
    }


@pytest.mark.slow
def test_choices_of_a_word_recur_as_often_as_its_gold(level_rows: Rows) -> None:
    shown: dict[tuple[str, str], set[frozenset[str]]] = defaultdict(set)
    for row in level_rows:
        for word in (row["x"], row["y"]):
            shown[word, row["gold"]].add(frozenset(row["choices"]["text"]))
    assert all(len(choices) == 1 for choices in shown.values())


@pytest.mark.slow  # a build of its own
def test_full_holds_more_and_says_why(tmp_path: Path, rows: Rows, wordnet: WordNet) -> None:
    assert not any(row["flags"] for row in rows)
    builders.build(NAME, output=tmp_path / "full", tier="full", controls=False)
    full = rows_of(tmp_path / "full")
    assert len(full) > 1.5 * len(rows)
    flagged = Counter(flag for row in full for flag in row["flags"])
    assert set(flagged) == set(FLAGS)
    for row in full:
        if row["distractor_family"] == CONJUNCTION:
            continue
        pair = (row["x"], row["y"])
        assert all(is_a(wordnet, word, row["gold"]) for word in pair), pair
        assert not any(is_a(wordnet, word, other) for word in pair for other in row["others"]), pair
        assert ("far" in row["flags"]) or row["hops"] <= CLEAN_HOPS


@pytest.mark.slow
def test_choices_alone_do_not_answer_it(manifest: dict[str, Any]) -> None:
    report = manifest["audit"]
    assert report["flags"] == []
    assert report["scored_rows"] >= 500
    for name in ("choice-only model", "choice-only model, inverted", "most general choice"):
        assert report["baselines"][name]["all"]["accuracy"] == pytest.approx(1 / 3, abs=0.05)
    leaked = {name: count for name, count in report["leakage"].items() if "row" not in name}
    assert set(leaked.values()) == {0}


@pytest.mark.slow  # a build of its own
def test_the_papers_family_needs_no_reading(tmp_path: Path, wordnet: WordNet) -> None:
    """Its distractors lie below the gold, so that the most general choice is nearly always right.

    A row with distractors at the gold's level, in the same build, is still at chance.
    """
    folder = tmp_path / "both"
    builders.build(NAME, output=folder, families=("level", "paper"), audit=True)
    report = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["audit"]
    general = report["baselines"]["most general choice"]
    assert general["paper"]["accuracy"] > 0.9
    assert abs(general["level"]["accuracy"] - 1 / 3) < 0.06
    assert abs(general["random"]["accuracy"] - 1 / 3) < 0.06
    for row in rows_of(folder)[::50]:
        if row["distractor_family"] != "paper":
            continue
        pair = (row["x"], row["y"])
        fits = [[is_a(wordnet, word, other) for word in pair] for other in row["others"]]
        assert sorted(fits) == [[False, True], [True, False]], pair


# Kinds that cross


@pytest.mark.slow
def test_each_distractor_of_a_conjunction_is_true_of_one_word(
    crossing_rows: Rows, rows: Rows
) -> None:
    assert len(crossing_rows) >= len(rows) / 2
    truth = {(word, kind): said for _, word, kind, said in listed_kinds()}
    for row in crossing_rows:
        pair = (row["x"], row["y"])
        assert all(truth[word, row["gold"]] == TRUE for word in pair), pair
        fits = [[truth[word, other] for word in pair] for other in row["others"]]
        assert sorted(fits) == [[FALSE, TRUE], [TRUE, FALSE]], pair
        assert min(row["choice_hops"]) >= 1
        starts = {edge["subject"] for edge in row["triples"]}
        assert {*pair} <= starts


@pytest.mark.slow
def test_choices_of_conjunctions_are_many_and_each_is_gold_and_distractor(
    crossing_rows: Rows,
) -> None:
    shown = {frozenset(row["choices"]["text"]) for row in crossing_rows}
    assert len(shown) > 300
    golds = Counter(row["gold"] for row in crossing_rows)
    others = Counter(other for row in crossing_rows for other in row["others"])
    assert set(golds) == set(others)
    for kind, count in golds.items():
        if (both := count + others[kind]) > 100:
            assert count / both == pytest.approx(1 / 3, abs=TOLERANCE + 0.02), kind


@pytest.mark.slow
def test_one_word_is_not_enough(manifest: dict[str, Any]) -> None:
    oracles = manifest["audit"]["oracles"]
    assert set(oracles) == {"x alone", "y alone"}
    for oracle in oracles.values():
        assert oracle["families"][CONJUNCTION] == pytest.approx(0.5)
        assert oracle["families"]["all"] <= oracle["target"] + 0.001
        assert oracle["families"]["mixed"] == 1.0


def test_readers_decide_what_the_list_says_otherwise(taxonomy: Taxonomy) -> None:
    said = {(word, kind): truth for _, word, kind, truth in listed_kinds()}
    assert said["hawk", "predator"] == TRUE
    assert said["hawk", "swimmer"] == FALSE
    judged = judgements(NAME)
    assert judged["nicotine", "medicine"] == ("arguable", "arguable")
    for pair in judged.keys() & said.keys():
        if len({*judged[pair]}) > 1:
            assert said[pair] == ARGUABLE, pair
    # A word that contains a kind gives it away.
    assert said["houseboat", "boat"] == ARGUABLE
    texts = {text for line in listed_kinds() for text in line[1:3]}
    assert taxonomy.find(pa.array(sorted(texts))).min() >= 0


def test_every_listed_word_stands_in_one_tree() -> None:
    trees: dict[str, set[str]] = defaultdict(set)
    for tree, word, _, _ in listed_kinds():
        trees[word].add(tree)
    assert all(len(named) == 1 for named in trees.values())


# Words


@pytest.mark.slow
def test_names_vulgar_words_and_plurals_are_no_plain_nouns(taxonomy: Taxonomy) -> None:
    texts = taxonomy.words.to_pylist()
    plain = {text for text, kept in zip(texts, taxonomy.plain, strict=True) if kept}
    assert {"dog", "turkey", "bread", "glass", "hammer"} <= plain
    assert plain.isdisjoint({"macon", "collins", "goods", "dogs"})
    offensive = {text for text, out in zip(texts, taxonomy.offensive, strict=True) if out}
    assert {"slut", "cock", "nigger"} <= offensive
    assert offensive.isdisjoint({"dog", "snatch", "rooster"})
    words = np.arange(len(taxonomy))
    like_a_noun = taxonomy.counted_like_a_noun(words)
    counted = {text for text, kept in zip(texts, like_a_noun, strict=True) if kept}
    assert {"dog", "sheep", "bread", "radium"} <= counted
    assert counted.isdisjoint({"dobson", "kylie"})


def test_a_share_of_a_words_uses(taxonomy: Taxonomy) -> None:
    senses = taxonomy.senses
    total = np.bincount(senses.word, senses.share, minlength=len(taxonomy))
    assert total.max() <= 1 + 1e-9
    names = taxonomy.wordnet.synsets["name"].to_pylist()
    texts = taxonomy.words.to_pylist()
    of = {
        (texts[word], names[synset]): share
        for word, synset, share in zip(senses.word, senses.synset, senses.share, strict=True)
        if texts[word] in ("skunk", "router", "dog")
    }
    assert of["dog", "dog.n.01"] > 0.9
    assert of["skunk", "skunk.n.04"] > of["skunk", "rotter.n.01"]
    assert of["router", "router.n.01"] == 0  # a person, by no evidence


def test_trees_are_disjoint_and_the_nearest_root_wins(wordnet: WordNet) -> None:
    tree = trees_of(wordnet, [["entity.n.01"], ["animal.n.01"], ["dog.n.01"]])
    at = {name: tree[wordnet.synset_id(name)] for name in ("poodle.n.01", "cat.n.01", "rock.n.01")}
    assert at == {"poodle.n.01": 2, "cat.n.01": 1, "rock.n.01": 0}
    with pytest.raises(UsageError):
        trees_of(wordnet, [["no_such.n.01"]])


# Options


def test_every_tree_is_in_one_split_and_of_this_wordnet(wordnet: WordNet) -> None:
    named = [name for names in TREES_OF_SPLITS.values() for name in names]
    assert len(named) == len(set(named))
    assert set(named) <= set(TREES)
    assert {"animal", "food"} <= {*TREES_OF_SPLITS["validation"], *TREES_OF_SPLITS["test"]}
    assert all(wordnet.synset_id(name) >= 0 for names in TREES.values() for name in names)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"split_shares": (0.5, 0.25, 0.25)}, "no option --split-shares"),
        ({"families": ("easy",)}, "--families"),
        ({"stop_golds": ("nosuchword",)}, "--stop-golds: 'nosuchword'"),
        ({"min_zipf": 8.0}, "no question is left to ask"),
    ],
)
def test_impossible_options(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        builders.build(NAME, **chosen)


def test_a_tokenizer_must_keep_words_whole(tmp_path: Path) -> None:
    import tokenizers
    import transformers

    known = {"[UNK]": 0, "dog": 1, "animal": 2}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=model, unk_token="[UNK]")
    fast.save_pretrained(tmp_path)
    kept = whole_words(["dog", "cat", "animal"], str(tmp_path))
    assert kept.tolist() == [True, False, True]
    with pytest.raises(UsageError, match="--tokenizer: cannot load"):
        whole_words(["dog"], str(tmp_path / "none"))
    (tmp_path / "tokenizer.json").write_text("[" * 100_000)
    with pytest.raises(UsageError, match=r"cannot load .*tokenizer.json is nested too deeply"):
        whole_words(["dog"], str(tmp_path))


# ConceptNet


def test_conceptnet_says_what_words_are_and_what_one_cannot_deny(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wordnet: WordNet
) -> None:
    def line(start: str, end: str, weight: float) -> str:
        about = json.dumps({"dataset": "/d/conceptnet/4/en", "weight": weight})
        start, end = f"/c/en/{start}", f"/c/en/{end}"
        return "\t".join((f"/a/[/r/IsA/,{start}/,{end}/]", "/r/IsA", start, end, about))

    path = tmp_path / "edges.csv"
    edges = (("hammer", "toy", 4.0), ("knife", "toy", 1.0), ("hammer", "man best friend", 4.0))
    path.write_text("\n".join(line(*edge) for edge in edges) + "\n", encoding="utf-8")
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    fetch("conceptnet", source=path, name="edges")
    taxonomy = Taxonomy(wordnet, load_conceptnet("edges"))
    texts = taxonomy.words.to_pylist()
    hammer, knife, toy = (texts.index(word) for word in ("hammer", "knife", "toy"))
    start, end = taxonomy.stated(3.0)
    assert list(zip(start.tolist(), end.tolist(), strict=True)) == [(hammer, toy)]
    denied = set(taxonomy.cannot_deny(np.array([hammer, knife])).tolist())
    assert {word * len(taxonomy) + toy for word in (hammer, knife)} <= denied
    assert taxonomy.name == "wordnet-3.0+conceptnet-edges"
