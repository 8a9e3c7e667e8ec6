"""Function words: swaps, natural sentences, balanced choices, and the pairs of a build."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from builders.engine.pipeline import Built
from builders.engine.probe import find_probe
from builders.engine.request import Request
from builders.engine.splits import FOLDS
from builders.english.inflection import with_article
from builders.function_words import probes
from builders.function_words.balance import (
    WHOLE,
    SearchEffort,
    TextChange,
    Tolerance,
    choose_balanced,
)
from builders.function_words.candidates import (
    NO_FRAME,
    Swap,
    changed_texts,
    shown_places,
    with_case_of,
)
from builders.function_words.probes import FEW_WORDS, Finder
from builders.function_words.sentence_ends import Words, wrong_distances
from builders.function_words.swaps import (
    WH_WORDS,
    coordination_swaps,
    definiteness_swaps,
    wh_swaps,
)
from builders.function_words.tokens import TaggedTexts, unnatural
from kb_cache.corpora.load import load_corpora
from kb_cache.corpora.rows import RawDocument, RawText, corpus_of, words_in
from kbprobe.errors import UsageError
from kbprobe.format.items import plain
from kbprobe.format.setups import MASK, QUESTION
from kbprobe.rng import RandomGenerator
from tests.commands import run_here

FORMS = st.sampled_from(["who", "Who", "WHO", "the", "A", "I", "n't", "dog", "Dogs", ",", "“", "."])
GAPS = st.sampled_from(["", " ", "  ", " (", "\N{EN DASH}"])


def tagged_of(*texts: RawText) -> TaggedTexts:
    return TaggedTexts.of(corpus_of([RawDocument("d", [list(texts)])]).sentences, "given")


def tagged_words(*sentences: tuple[str, str]) -> TaggedTexts:
    """Tag sentences written as their text, and as words with tags ("Who/WP cares/VBZ ?/.")."""
    raw = []
    for text, words in sentences:
        pairs = [word.rpartition("/") for word in words.split()]
        tags = [tag for _, _, tag in pairs]
        raw.append(words_in(text, [word for word, _, _ in pairs], xpos=tags))
    return tagged_of(*raw)


@st.composite
def texts(draw: st.DrawFn) -> RawText:
    parts = draw(st.lists(st.tuples(GAPS, FORMS), min_size=1, max_size=8))
    text, starts, ends = "", [], []
    for gap, form in parts:
        text += gap
        starts.append(len(text))
        text += form
        ends.append(len(text))
    return RawText(text, starts, ends, xpos=["NN"] * len(starts))


@given(texts(), st.data())
def test_a_swap_changes_nothing_but_the_words(raw: RawText, data: st.DataObject) -> None:
    tagged = tagged_of(raw)
    places = data.draw(
        st.lists(st.integers(0, len(raw.starts) - 1), min_size=1, unique=True).map(sorted)
    )
    words = [data.draw(st.sampled_from(["what", "an", "whichever"])) for _ in places]
    (changed,) = changed_texts(tagged, [raw.text], [Swap(tuple(places), tuple(words), "any")])
    expected, done = "", 0
    for place, word in zip(places, words, strict=True):
        first, last = raw.starts[place], raw.ends[place]
        shown = with_case_of(word, raw.text[first:last])
        assert shown.lower() == word
        expected += raw.text[done:first] + shown
        done = last
    assert changed == expected + raw.text[done:]
    assert changed.lower() != raw.text.lower()
    shown = shown_places(tagged, [places], [words])
    if len(places) == 1:
        assert shown.windows[0] in changed
        assert shown.words[0] in shown.windows[0]


@pytest.mark.parametrize(
    ("word", "model", "shown"),
    [
        ("when", "who", "when"),
        ("when", "Who", "When"),
        ("when", "WHO", "WHEN"),
        ("the", "A", "The"),
        ("an", "The", "An"),
    ],
)
def test_a_replacement_takes_over_the_case(word: str, model: str, shown: str) -> None:
    assert with_case_of(word, model) == shown


def test_neighbours_are_those_of_the_same_text() -> None:
    tagged = tagged_words(("See who runs.", "See/VB who/WP runs/VBZ ./."), ("Who?", "Who/WP ?/."))
    who = tagged.is_word("who")
    assert np.flatnonzero(who).tolist() == [1, 4]
    assert np.flatnonzero(tagged.near(who, 1)).tolist() == [0]
    assert np.flatnonzero(tagged.near(who, -1)).tolist() == [2, 5]
    assert not tagged.near(who, 99).any()
    assert tagged.words_at(np.array([1, 4]), -1) == ["see", ""]
    assert tagged.has_tag("VB*").tolist() == [True, False, True, False, False, False]


def test_a_corpus_without_tags_is_refused() -> None:
    with pytest.raises(UsageError, match=r"given has no part-of-speech tags.*--corpus"):
        tagged_of(words_in("See it.", ["See", "it", "."]))


SENTENCE = ("The dog sees it.", "The/DT dog/NN sees/VBZ it/PRP ./.")


@pytest.mark.parametrize(
    ("text", "words", "reason"),
    [
        ("Dogs bark.", "Dogs/NNS bark/VBP ./.", "tokens"),
        ("the dog sees it.", "the/DT dog/NN sees/VBZ it/PRP ./.", "begin or end"),
        ("The dog sees it now", "The/DT dog/NN sees/VBZ it/PRP now/RB", "begin or end"),
        ("The dog sees a@b.c.", "The/DT dog/NN sees/VBZ a@b.c/NN ./.", "address"),
        ('The dog" sees it.', "The/DT dog/NN \"/'' sees/VBZ it/PRP ./.", "unbalanced"),
        ("THE DOG SEES IT.", "THE/DT DOG/NN SEES/VBZ IT/PRP ./.", "capitals"),
        ("The dog in the house.", "The/DT dog/NN in/IN the/DT house/NN ./.", "finite"),
        ("The dog uh sees it.", "The/DT dog/NN uh/UH sees/VBZ it/PRP ./.", "speech"),
        ("Doctor: So it sees us.", "Doctor/NN :/: So/RB it/PRP sees/VBZ us/PRP ./.", "speaker"),
    ],
)
def test_what_is_no_sentence_is_told(text: str, words: str, reason: str) -> None:
    found = unnatural(tagged_words(SENTENCE, (text, words)), 5, 40)
    assert not any(wrong[0] for wrong in found.values())
    assert any(reason in name for name, wrong in found.items() if wrong[1])


SHORT = SearchEffort(rounds=20)
FEATURE = st.tuples(st.sampled_from(["word", "behind"]), st.sampled_from(["a", "b", "c"]))
CHANGES = st.lists(
    st.builds(
        TextChange,
        st.integers(0, 20),
        st.integers(0, 2),
        st.lists(FEATURE, max_size=3),
        st.lists(FEATURE, max_size=3),
    ),
    max_size=40,
)


@given(CHANGES)
def test_chosen_changes_are_balanced(changes: Sequence[TextChange]) -> None:
    tolerance = {"word": Tolerance(2, 1), "behind": Tolerance(1, 1)}
    chosen = choose_balanced(changes, tolerance, RandomGenerator.of(0), SHORT)
    groups = [changes[at].group for at in chosen]
    assert len(set(groups)) == len(groups)
    balance: Counter[tuple[int, tuple[str, str]]] = Counter()
    for at in chosen:
        for part in (changes[at].part, WHOLE):
            balance.update((part, feature) for feature in changes[at].original)
            balance.subtract((part, feature) for feature in changes[at].changed)
    for (part, (kind, _)), by in balance.items():
        assert abs(by) <= (tolerance[kind].whole if part == WHOLE else tolerance[kind].part)


def test_opposite_changes_are_all_chosen() -> None:
    one, other = [("word", "who")], [("word", "when")]
    changes = [TextChange(at, 0, *((one, other) if at % 2 else (other, one))) for at in range(40)]
    tolerance = {"word": Tolerance(1, 1)}
    assert len(choose_balanced(changes, tolerance, RandomGenerator.of(0))) == 40
    lopsided = [change for change in changes if change.original == one]
    assert len(choose_balanced(lopsided, tolerance, RandomGenerator.of(0))) == 1


def swaps_of(find: Finder, *sentences: tuple[str, str]) -> list[tuple[str, str, str]]:
    """Return (frame, word, what it is changed to) of each unflagged swap."""
    tagged = tagged_words(*sentences)
    found = find(tagged, np.ones(len(sentences), dtype=np.bool_))
    return [
        (swap.frame, tagged.words[tagged.code[token]], word)
        for swap in found
        if not swap.flags
        for token, word in zip(swap.tokens, swap.words, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "words", "frame", "word", "fits"),
    [
        (
            "People who live here know it.",
            "People/NNS who/WP live/VBP here/RB know/VBP it/PRP ./.",
            "subject",
            "who",
            set[str](),
        ),
        (
            "I know how old she is.",
            "I/PRP know/VBP how/WRB old/JJ she/PRP is/VBZ ./.",
            "degree",
            "how",
            {"what"},
        ),
        (
            "When he left, she cried.",
            "When/WRB he/PRP left/VBD ,/, she/PRP cried/VBD ./.",
            "clause",
            "when",
            {"where"},
        ),
        (
            "I know what they need.",
            "I/PRP know/VBP what/WP they/PRP need/VBP ./.",
            "object",
            "what",
            {"who"},
        ),
    ],
)
def test_a_wh_word_is_swapped_for_those_that_its_frame_rules_out(
    text: str, words: str, frame: str, word: str, fits: set[str]
) -> None:
    found = swaps_of(wh_swaps, (text, words))
    assert {others for _, _, others in found} == set(WH_WORDS) - {word} - fits
    assert {(frame, word)} == {(name, changed) for name, changed, _ in found}


def test_a_wh_word_that_others_can_replace_is_flagged() -> None:
    tagged = tagged_words(("I know when he came.", "I/PRP know/VBP when/WRB he/PRP came/VBD ./."))
    (swap,) = wh_swaps(tagged, np.array([True]))
    assert swap.flags == (NO_FRAME,)
    assert swap.decisive < 0
    assert list(wh_swaps(tagged, np.array([False]))) == []


ARTICLES = st.lists(
    st.tuples(
        st.sampled_from(["the", "a"]),
        st.sampled_from(["hour", "dog", "apple", "university", "dogs", "lot", "old man"]),
    ),
    min_size=2,
    max_size=5,
)


@pytest.mark.slow
@given(ARTICLES)
def test_all_articles_are_exchanged_and_agree(phrases: list[tuple[str, str]]) -> None:
    words: list[str] = []
    for article, noun in phrases:
        shown = article if article == "the" else with_article(noun).split()[0]
        words += ["saw/VBD", f"{shown}/DT"]
        words += [f"{word}/{'NNS' if word == 'dogs' else 'NN'}" for word in noun.split()]
    words.append("./.")
    text = " ".join(word.rpartition("/")[0] for word in words)
    tagged = tagged_words((text, " ".join(words)))
    swaps = list(definiteness_swaps(tagged, np.array([True])))
    counts = Counter(article for article, _ in phrases)
    assert len(swaps) == (max(counts.values()) >= 2)
    for swap in swaps:
        assert len(swap.tokens) == len(phrases)
        for word, (article, noun) in zip(swap.words, phrases, strict=True):
            expected = "the" if article == "a" else with_article(noun).split()[0]
            assert word == expected
        decides = any(one == ("the", "dogs") or one == ("a", "lot") for one in phrases)
        assert (swap.decisive >= 0) == decides == (not swap.flags)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("We/PRP saw/VBD cats/NNS and/CC dogs/NNS ./.", {("nouns", "and", "but")}),
        ("Cats/NNS sleep/VBP and/CC dogs/NNS bark/VBP ./.", set()),
        (
            "We/PRP like/VBP both/DT cats/NNS and/CC dogs/NNS ./.",
            {("pair", "and", "or"), ("pair", "and", "but")},
        ),
        (
            "He/PRP wants/VBZ either/DT tea/NN or/CC milk/NN ./.",
            {("pair", "or", "and"), ("pair", "or", "but")},
        ),
        (
            "It/PRP was/VBD nothing/NN but/CC trouble/NN ./.",
            {("exception", "but", "and"), ("exception", "but", "or")},
        ),
        (
            "He/PRP lives/VBZ here/RB or/CC something/NN ./.",
            {("expression", "or", "and"), ("expression", "or", "but")},
        ),
        ("He/PRP knocked/VBD but/CC she/PRP slept/VBD ./.", {("contrast", "but", "or")}),
        ("It/PRP is/VBZ not/RB tea/NN or/CC milk/NN ./.", set()),
    ],
)
def test_conjunctions_are_exchanged_where_one_alone_fits(
    words: str, found: set[tuple[str, str, str]]
) -> None:
    text = " ".join(word.rpartition("/")[0] for word in words.split())
    assert set(swaps_of(coordination_swaps, (text, words))) == found


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 2**40))
def test_a_wrong_end_is_neither_the_right_one_nor_outside(left: int, right: int, key: int) -> None:
    (by,), (found,) = wrong_distances(
        np.array([left]), np.array([right]), np.array([key]), 2.0, RandomGenerator.of(0)
    )
    assert not found or (by != 0 and -left < by < right)
    assert found or left == right == 1


def test_wrong_ends_are_normal_around_the_right_one() -> None:
    size = np.full(20_000, 40)
    drawn, found = wrong_distances(size, size, np.arange(size.size), 2.0, RandomGenerator.of(0))
    assert found.all()
    assert abs(float(drawn.mean())) < 0.06
    # Rounded, and 0 is drawn again: the shares are those of a normal distribution without it.
    share = Counter(np.abs(drawn).tolist())
    inside = {by: 2 * (ndtr((by + 0.5) / 2) - ndtr((by - 0.5) / 2)) for by in range(1, 8)}
    for by, expected in inside.items():
        assert share[by] / size.size == pytest.approx(
            expected / (1 - (2 * ndtr(0.25) - 1)), abs=0.012
        )


def test_words_lose_case_and_punctuation() -> None:
    tagged = tagged_words(("“Don't,” he said.", "“/`` Do/VBP n't/RB ,/, ”/'' he/PRP said/VBD ./."))
    words, tags = Words.of(tagged).of_sentence(0)
    assert (words, tags) == (["don't", "he", "said"], ["VBP", "PRP", "VBD"])


NAMES = ("fw_wh_words", "fw_definiteness", "fw_coordination", "fw_eos")


@pytest.fixture(scope="module")
def make(build_soon: Callable[[Request], Built]) -> Callable[..., Built]:
    """Return a function that builds a probe, with a short search; the same build once."""

    @cache
    def made(name: str, seed: int = 0, **options: Any) -> Built:
        probe = find_probe(name)
        return build_soon(Request(probe, probe.options.parse(options, name), seed, audit=False))

    return made


@pytest.fixture(scope="module")
def builds(make: Callable[..., Built]) -> dict[str, Built]:
    return {name: make(name) for name in NAMES}


def rows_of(done: Built, config: str = "default") -> list[dict[str, Any]]:
    splits = done.configs[config]
    return [
        {**row, "split": name}
        for name, items in splits.items()
        for row in plain(items.table()).to_pylist()
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_pairs_share_cluster_split_and_fold(builds: dict[str, Built], name: str) -> None:
    rows = rows_of(builds[name])
    known = set(load_corpora().sentences.text.to_pylist())
    pairs: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        pairs.setdefault(row["cluster"], []).append(row)
    texts = set()
    for pair in pairs.values():
        changed, original = sorted(pair, key=lambda row: row["answer"])
        assert (changed["answer"], original["answer"]) == (0, 1)
        for column in ("split", "fold", "concept", "triples", "relation"):
            assert changed[column] == original[column]
        assert changed["question"] != original["question"]
        assert changed["question"] not in known
        assert name == "fw_eos" or original["question"] in known
        texts.add((original["question"], changed["question"]))
        assert 0 <= original["fold"] < FOLDS
    assert len(texts) == len(pairs) >= 100
    split = {row["concept"]: row["split"] for row in rows}
    assert all(split[row["concept"]] == row["split"] for row in rows)
    assert {row["fold"] for row in rows} == set(range(FOLDS))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_minimal_pairs_and_clozes_ask_the_same_rows(builds: dict[str, Built], name: str) -> None:
    rows = {row["id"]: row for row in rows_of(builds[name])}
    texts = {row["cluster"]: {} for row in rows.values()}
    for row in rows.values():
        texts[row["cluster"]][row["answer"]] = row["question"]
    pairs = rows_of(builds[name], "minimal_pairs")
    assert {row["cluster"] for row in pairs} == texts.keys()
    for row in pairs:
        assert row["setup"] == QUESTION
        assert rows[row["id"]]["answer"] == 1
        wrong, right = texts[row["cluster"]][0], texts[row["cluster"]][1]
        assert row["choices"]["text"][row["answer"]] == right
        assert row["choices"]["text"][1 - row["answer"]] == wrong
    if name == "fw_eos":
        assert "cloze" not in builds[name].configs
        return
    for row in rows_of(builds[name], "cloze"):
        gold = row["choices"]["text"][row["answer"]]
        assert row["question"].replace(MASK, gold) == texts[row["cluster"]][1]
        other = row["choices"]["text"][1 - row["answer"]]
        # Of several words that were changed, one is asked for.
        alone = " | " not in rows[row["id"]]["arguments"][0]["value"]
        if alone:
            assert row["question"].replace(MASK, other) == texts[row["cluster"]][0]


@pytest.mark.slow
def test_words_are_originals_as_often_as_replacements(builds: dict[str, Built]) -> None:
    for name in NAMES[:3]:
        shown: dict[str, Counter[str]] = {"1": Counter(), "0": Counter()}
        for row in rows_of(builds[name]):
            words = row["arguments"][0]["value"].lower().split(" | ")
            shown[str(row["answer"])].update(words)
        for word in shown["1"] | shown["0"]:
            # Twice the tolerance, since "The" and "the" are balanced by themselves.
            assert abs(shown["1"][word] - shown["0"][word]) <= 2 * FEW_WORDS["word"].whole


@pytest.mark.parametrize("name", ["fw_definiteness", "fw_coordination"])
@pytest.mark.slow
def test_the_extract_gives_over_four_hundred_rows(
    manifest_of: Callable[[str, str], dict[str, Any]], name: str
) -> None:
    assert manifest_of(name, "default")["counts"]["rows"] > 400


@pytest.mark.slow
def test_the_full_tier_holds_flagged_rows(
    builds: dict[str, Built], make: Callable[..., Built]
) -> None:
    rows = rows_of(make("fw_coordination", tier="full", max_pairs=300))
    assert len(rows) == 600
    assert {flag for row in rows for flag in row["flags"]} == {NO_FRAME}
    left_out = builds["fw_coordination"].manifest["counts"]["dropped"]
    assert left_out["flagged no_frame, see --tier full"] > 1_000


@pytest.mark.slow
def test_labels_keep_what_people_confirm(
    builds: dict[str, Built], make: Callable[..., Built], tmp_path: Path
) -> None:
    rows = rows_of(builds["fw_eos"])
    clusters = sorted({row["cluster"] for row in rows})
    doubted, unseen = clusters[0], clusters[1]
    votes = tmp_path / "votes.csv"
    with votes.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "annotator", "vote"])
        for row in rows:
            if row["cluster"] == unseen:
                continue
            said = "acceptable" if row["cluster"] == doubted or row["answer"] else "unacceptable"
            writer.writerows([row["id"], who, said] for who in ("a", "b"))
            writer.writerow([row["id"], "c", "unacceptable"])
    labelled = make("fw_eos", labels=(str(votes),))
    kept = rows_of(labelled)
    assert {row["id"] for row in kept} == {
        row["id"]
        for row in rows
        if row["cluster"] != unseen and not (row["cluster"] == doubted and row["answer"] == 0)
    }
    assert all(row in rows for row in kept)
    pairs = rows_of(labelled, "minimal_pairs")
    assert {row["cluster"] for row in pairs} == set(clusters) - {doubted, unseen}
    assert labelled.manifest["annotation"]["annotator_kind"] == "human"
    assert builds["fw_eos"].manifest["annotation"]["kind"] == "intended"
    dropped = labelled.manifest["counts"]["dropped"]
    assert dropped["labels: the votes contradict the intended label"] == 1
    assert dropped["labels: candidates not judged"] == 2
    digest = builds["fw_eos"].manifest["knowledge_base"]["digest"]
    assert labelled.manifest["knowledge_base"]["digest"] != digest


@pytest.mark.needs("spacy")
@pytest.mark.slow
def test_the_commands_build_and_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a corpus of the user's own: fetched, built, checked, each as a command."""
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(probes, "LONGER", SHORT)
    names = ["Ann", "Bob", "Cid", "Dan", "Eve", "Fay", "Gus", "Hal", "Ida", "Jim", "Kim", "Liz"]
    lines = []
    for at, name in enumerate(names * 5):
        lines += [
            f"{name}_NNP saw_VBD cats_NNS or_CC dogs{at}_NNS ._.",
            f"{name}_NNP knocked{at}_VBD but_CC {names[at % 7]}_NNP slept_VBD in_IN ._.",
            "",
        ]
    folder = tmp_path / "given"
    folder.mkdir()
    for at in range(12):
        (folder / f"doc{at}.txt").write_text("\n".join(lines[15 * at : 15 * at + 15]) + "\n")

    def run(module: str, *arguments: str) -> str:
        done = run_here(module, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    terms = ("--licence", "CC0-1.0", "--name", "given")
    run("kb_cache.cli", "fetch", "corpus", "--from", str(folder), *terms)
    probe = str(tmp_path / "probe")
    said = run("builders.cli", "fw_coordination", "--corpus", "given", "-o", probe)
    assert "fw_coordination:" in said
    assert "intended labels" in (tmp_path / "probe" / "README.md").read_text().lower()
    said = run("builders.cli", "--from-manifest", f"{probe}/manifest.json")
    assert "the same" in said
