"""WordNet probes in other languages, from samples of the Italian and Portuguese wordnets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders.engine.card import card_text
from builders.engine.pipeline import Built, build
from builders.engine.probe import find_probe
from builders.engine.render.template_file import languages
from builders.engine.request import Request
from builders.wordnet.options import HypernymyOptions
from builders.wordnet.synsets import shown_glosses
from kb_cache.fetching import fetch
from kb_cache.omw.load import load_in_language_once, load_parallel_once
from kbprobe.errors import UsageError
from kbprobe.format.items import plain
from tests.real_data import beside

SAMPLES = Path(__file__).resolve().parents[1] / "data" / "omw"
NAME = "wordnet_hypernymy"
PARALLEL = [
    f"wordnet_{relation}"
    for relation in ("definitions", "hypernymy", "hyponymy", "synonymy", "meronymy", "antonymy")
]

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def lexicons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache that holds the samples, for this module alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBPROBE_CACHE", str(tmp_path_factory.mktemp("cache")))
        for language, code in (("it", "ita"), ("pt", "por")):
            fetch("omw", source=SAMPLES / f"wn-data-{code}.tab.gz", name=language)
        yield


def made(**options: Any) -> Built:
    probe = find_probe(NAME)
    return build(Request(probe, probe.options.parse(options, NAME), audit=False))


def rows_of(done: Built) -> Rows:
    return [row for items in done.splits.values() for row in plain(items.table()).to_pylist()]


@pytest.fixture(scope="module")
def italian(lexicons: None) -> Built:
    return made(language="it", tier="full", pos=("noun",), max_hops=1)


@pytest.fixture(scope="module")
def parallel(lexicons: None) -> dict[str, Rows]:
    options = HypernymyOptions(
        language="en,it", parallel=True, tier="full", pos=("noun",), max_hops=1
    )
    return {
        code: rows_of(made(**each.model_dump(exclude_unset=True)))
        for code, each in options.builds.items()
    }


@pytest.mark.slow
def test_questions_and_choices_are_in_the_language(italian: Built) -> None:
    rows = rows_of(italian)
    assert len(rows) > 500
    known = italian.request.knowledge
    for row in rows[:50]:
        words = known.words(known.synset_id(row["choice_nodes"][row["answer"]]))
        assert row["choices"]["text"][row["answer"]].startswith(words[0])
    starts = {row["template"] for row in rows}
    assert {"kind-of", "category", "hypernym"} <= starts
    for row in rows:
        assert (
            "è" in row["question"]
            or "appartiene" in row["question"]
            or any(word in row["question"] for word in ("indica", "iperonimo", "può"))
        )
    assert italian.manifest["language"] == ["it"]
    assert [one["name"] for one in italian.manifest["knowledge_base"]["sources"]] == [
        "wordnet-3.0",
        "omw-it",
    ]


def test_an_example_is_the_context_where_it_holds_the_word(italian: Built) -> None:
    rows = rows_of(italian)
    shown = [row for row in rows if row["context"]]
    assert shown
    assert len(shown) < len(rows)
    for row in shown:
        assert row["surface_form"] in row["context"]
        assert row["question"].startswith(f'In "{row["context"]}", ')
    alone = [row for row in rows if not row["context"]]
    assert any("(sinonimi: " in row["question"] for row in alone)


def test_no_choice_is_true_of_another_sense_of_the_word(italian: Built) -> None:
    knowledge = italian.request.knowledge
    lemmas = knowledge.lemma_texts().to_pylist()
    synsets = knowledge.senses["synset"].to_pylist()
    meant: dict[str, set[int]] = {}
    for lemma, synset in zip(lemmas, synsets, strict=True):
        meant.setdefault(lemma.lower(), set()).add(synset)
    names = knowledge.synsets["name"].to_pylist()
    checked = 0
    for row in rows_of(italian)[:300]:
        senses = np.array(sorted(meant.get(row["surface_form"].lower(), ())), dtype=np.int64)
        if senses.size < 2:
            continue
        above = {names[at] for at in knowledge.isa.walk(senses).node.tolist()}
        wrong = set(row["choice_nodes"]) - {row["choice_nodes"][row["answer"]]}
        assert not wrong & above, row
        checked += 1
    assert checked > 10


def test_the_card_says_what_the_language_lacks(italian: Built) -> None:
    manifest = {**italian.manifest, "files": []}
    text = card_text(manifest, italian.request, italian.configs)
    assert "omw-it has words for" in text
    assert "the words alone stand for a choice" in text
    assert "pianta-etal-2002" in text
    assert "MultiWordNet (http://multiwordnet.fbk.eu/" in text


@pytest.mark.slow
def test_parallel_probes_ask_the_same_in_each_language(parallel: dict[str, Rows]) -> None:
    english, italian = parallel["en"], parallel["it"]
    assert len(english) > 300
    columns = ("id", "concept", "choice_nodes", "answer", "template", "distractor_family")
    for one, other in zip(english, italian, strict=True):
        assert [one[name] for name in columns] == [other[name] for name in columns]
        assert one["question"] != other["question"]
    assert not any(row["context"] for row in english + italian)


def test_several_languages_and_parallel_belong_together() -> None:
    with pytest.raises(UsageError, match="add --parallel"):
        HypernymyOptions.parse({"language": "en,it"}, NAME)
    with pytest.raises(UsageError, match="--language en,it,pt"):
        HypernymyOptions.parse({"language": "it", "parallel": True}, NAME)


def test_a_language_without_wordings_is_told_how_to_add_them(tmp_path: Path) -> None:
    probe = find_probe(NAME)
    options = probe.options.parse({"language": "fr"}, NAME)
    with pytest.raises(UsageError, match=r"in the language 'fr'. There are: en, it, pt, sq"):
        probe.template(options)
    with pytest.raises(UsageError, match=r"--template FILE; see docs/languages\.md"):
        probe.template(options)
    own = tmp_path / "own.yaml"
    own.write_text(
        f"probe: {NAME}\nabout: French.\nquestion:\n  - id: kind\n"
        "    text: '{{ word | quoted }} est une sorte de'\n    key_words: all\n"
        "choice: '{{ lemma }}'\narguments: [word]\n",
        encoding="utf-8",
    )
    assert probe.template(options, own).questions[0].id == "kind"


def test_a_language_that_was_not_fetched_names_the_place_of_its_file() -> None:
    probe = find_probe(NAME)
    options = probe.options.parse({"language": "fr"}, NAME)
    with pytest.raises(UsageError) as caught:
        probe.open(options)
    address = "https://raw.githubusercontent.com/omwn/omw-data/main/wns/fra/wn-data-fra.tab"
    fetch = "kb-cache fetch omw fr --from wn-data-fra.tab"
    assert f"Download {address}, then: {fetch}" in str(caught.value)


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize("code", ["ita", "por"])
def test_no_question_with_its_answer_is_in_two_splits(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word alone may stand for two senses that have the same hypernym."""
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path))
    language = {"ita": "it", "por": "pt"}[code]
    fetch("omw", source=beside("omw", f"wn-data-{code}.tab.gz"), name=language)
    load_in_language_once.cache_clear()
    done = made(language=language)
    load_in_language_once.cache_clear()
    home: dict[tuple[str, str], set[str]] = {}
    for split, items in done.splits.items():
        for row in plain(items.table()).to_pylist():
            shown = row["question"], row["choices"]["text"][row["answer"]]
            home.setdefault(shown, set()).add(split)
    assert len(home) > 8000
    assert max(map(len, home.values())) == 1


@pytest.mark.slow  # a build of its own
@pytest.mark.parametrize("language", ["it", "pt"])
def test_hyponymy_is_asked_in_the_language(language: str) -> None:
    probe = find_probe("wordnet_hyponymy")
    options = probe.options.parse({"language": language, "tier": "full"}, probe.name)
    done = build(Request(probe, options, audit=False))
    rows = rows_of(done)
    assert len(rows) > 300
    known = done.request.knowledge
    for row in rows[:50]:
        words = known.words(known.synset_id(row["concept"]))
        assert row["surface_form"].lower() in {word.lower() for word in words}


def built(name: str, **options: Any) -> Built:
    probe = find_probe(name)
    parsed = probe.options.parse({"tier": "full", **options}, name)
    return build(Request(probe, parsed, audit=False))


def words_of(knowledge: Any, name: str) -> set[str]:
    return {word.lower() for word in knowledge.words(knowledge.synset_id(name))}


@pytest.fixture
def samples_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builders.wordnet.source.FEWEST", 20)


@pytest.mark.parametrize("language", ["it", pytest.param("pt", marks=pytest.mark.slow)])
def test_synonymy_asks_for_the_other_words_of_a_synset(language: str) -> None:
    done = built("wordnet_synonymy", language=language)
    rows = rows_of(done)
    assert len(rows) > 150
    known = done.request.knowledge
    between = {"it": " o ", "pt": " ou "}[language]
    for row in rows:
        synset = known.synset_id(row["concept"])
        asked, *others = known.words(synset)
        assert row["surface_form"] == asked
        assert row["choices"]["text"][row["answer"]] == between.join(others[:2])
        meant = words_of(known, row["concept"])
        for at, node in enumerate(row["choice_nodes"]):
            assert at == row["answer"] or not meant & words_of(known, node), row


@pytest.mark.slow  # a build of its own
def test_definitions_are_those_of_the_language(samples_are_enough: None) -> None:
    done = built("wordnet_definitions", language="it", choices=3)
    rows = rows_of(done)
    assert len(rows) > 30
    known = done.request.knowledge
    definitions = shown_glosses(known).to_pylist()
    for row in rows:
        shown = [definitions[known.synset_id(node)] for node in row["choice_nodes"]]
        assert all(shown)
        assert row["choices"]["text"] == shown
        assert row["choice_nodes"][row["answer"]] == row["concept"]


@pytest.mark.parametrize(
    ("name", "language", "message"),
    [
        ("wordnet_definitions", "pt", r"0 of 117,659 synsets with words and a definition"),
        ("wordnet_antonymy", "it", r"it: it has 6 of 7,341 pairs of synsets with a word for both"),
    ],
)
def test_a_lexicon_that_is_too_small_is_refused_with_counts(
    name: str, language: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        built(name, language=language)


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache of Italian words whose synsets are opposites, or parts of one another."""
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    fetch("omw", source=SAMPLES / "wn-data-ita-pairs.tab.gz", name="it")
    loaded = load_in_language_once, load_parallel_once
    for cache in loaded:
        cache.cache_clear()
    yield
    for cache in loaded:
        cache.cache_clear()


@pytest.mark.slow  # all parts of WordNet
@pytest.mark.parametrize("name", ["wordnet_meronymy", "wordnet_antonymy"])
def test_edges_are_asked_alike_in_each_language(name: str, pairs: None) -> None:
    english, italian = (built(name, language=codes, parallel=True) for codes in ("en,it", "it,en"))
    knowledge = italian.request.knowledge
    kinds = {
        "wordnet_meronymy": ("part_meronym", "member_meronym", "substance_meronym"),
        "wordnet_antonymy": ("antonym",),
    }
    edges = knowledge.structure.graph(*kinds[name])
    rows = rows_of(italian)
    assert len(rows) > 50
    columns = ("id", "concept", "choice_nodes", "answer", "template", "distractor_family")
    for row, other in zip(rows, rows_of(english), strict=True):
        assert [row[name] for name in columns] == [other[name] for name in columns]
        concept = knowledge.synset_id(row["concept"])
        meant = words_of(knowledge, row["concept"])
        for at, node in enumerate(row["choice_nodes"]):
            true = knowledge.synset_id(node) in edges.neighbours(concept)
            assert true == (at == row["answer"]), row
            assert true or not meant & words_of(knowledge, node), row
        words = knowledge.words(knowledge.synset_id(row["choice_nodes"][row["answer"]]))
        assert row["choices"]["text"][row["answer"]].startswith(words[0])


@pytest.mark.parametrize("name", PARALLEL)
def test_languages_share_the_ids_of_their_wordings(name: str) -> None:
    probe = find_probe(name)
    ids = {}
    for language in languages(name):
        options = probe.options.parse({"language": f"{language},xx", "parallel": True}, name)
        ids[language] = [wording.id for wording in probe.template(options).questions]
    assert {"en", "it", "pt"} <= ids.keys()
    assert all(these == ids["en"] for these in ids.values())
