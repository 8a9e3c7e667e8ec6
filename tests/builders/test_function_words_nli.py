"""NLI over function words: negation, swaps, patterns, and the rows and labels of a build."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.engine.plan import Plan
from builders.function_words.nli.clauses import PACKAGE, Sentence, clause_at, clauses
from builders.function_words.nli.edits import Edit, negated, rewritten
from builders.function_words.nli.lexicon import WordKinds, lexicon
from builders.function_words.nli.options import NliOptions
from builders.function_words.nli.pairs import (
    BOTH,
    KEPT,
    KINDS,
    NEGATED,
    SWAPPED,
    PairSource,
    Places,
    TextPair,
    forms,
    patterns,
    rewordings,
    swaps,
    swaps_and_denials,
)
from builders.function_words.nli.prepositions import (
    frames,
    preposition_places,
    prepositions,
    spatial_places,
)
from builders.function_words.nli.probes import (
    CorpusAndWordNet,
    choose,
    fw_comparatives,
    fw_negation,
)
from builders.function_words.nli.quantities import comparative_places, quantity_places
from kb_cache.corpora.rows import RawDocument, RawPair, RawText, corpus_of, words_in
from kb_cache.corpora.types import Corpus
from kb_cache.wordnet.load import load_wordnet
from kbprobe.errors import UsageError
from kbprobe.format.negation import PATTERNS
from kbprobe.format.setups import SPLITS
from kbprobe.rng import RandomGenerator


@pytest.fixture(scope="module")
def known() -> WordKinds:
    return lexicon(load_wordnet("3.0"))


def raw(words: str) -> RawText:
    """Return the text of words with tags: "The/DT dog/NN 's/VBZ old/JJ ./."."""
    pairs = [word.rpartition("/") for word in words.split()]
    text = ""
    for word, _, _ in pairs:
        glued = word in (".", ",", "n't") or word[0] in "'’"
        text += word if glued or not text else f" {word}"
    return words_in(text, [word for word, _, _ in pairs], xpos=[tag for _, _, tag in pairs])


def sentence(words: str) -> Sentence:
    made = raw(words)
    starts, ends = list(made.starts), list(made.ends)
    shown = [made.text[start:end] for start, end in zip(starts, ends, strict=True)]
    return Sentence(made.text, starts, ends, shown, [str(tag) for tag in made.xpos])


def denied(words: str) -> str | None:
    """Return the denial of a sentence that is one clause; None where it is refused."""
    made = sentence(words)
    clause = clause_at(made, 0, len(made) - 1)
    denial = None if clause is None else negated(clause)
    return None if denial is None or denial.flags else rewritten(made, denial.edits)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("The/DT dog/NN is/VBZ old/JJ ./.", "The dog is not old."),
        ("They/PRP 're/VBP in/IN town/NN ./.", "They're not in town."),
        ("It/PRP 's/VBZ an/DT old/JJ car/NN ./.", "It's not an old car."),
        ("The/DT dogs/NNS can/MD see/VB it/PRP ./.", "The dogs cannot see it."),
        ("We/PRP 'll/MD see/VB the/DT dog/NN ./.", "We will not see the dog."),
        ("Rome/NNP has/VBZ a/DT larger/JJR river/NN ./.", "Rome does not have a larger river."),
        ("Rome/NNP has/VBZ seen/VBN the/DT dog/NN ./.", "Rome has not seen the dog."),
        ("They/PRP bought/VBD the/DT house/NN ./.", "They did not buy the house."),
        ("Dogs/NNS chase/VBP the/DT cats/NNS ./.", "Dogs do not chase the cats."),
        ("There/EX was/VBD a/DT dog/NN ./.", "There was not a dog."),
        ("Jo/NNP and/CC Al/NNP were/VBD in/IN town/NN ./.", "Jo and Al were not in town."),
    ],
)
def test_a_clause_is_denied_at_its_verb(words: str, expected: str) -> None:
    assert denied(words) == expected


@pytest.mark.parametrize(
    "words",
    [
        "The/DT dog/NN is/VBZ n't/RB old/JJ ./.",
        "Nobody/NN was/VBD in/IN town/NN ./.",
        "They/PRP ever/RB saw/VBD it/PRP ./.",
        "They/PRP saw/VBD some/DT dogs/NNS ./.",
        "All/DT dogs/NNS are/VBP in/IN town/NN ./.",
        "The/DT dog/NN quickly/RB saw/VBD it/PRP ./.",
        "It/PRP 's/VBZ seen/VBN the/DT dog/NN ./.",
        "They/PRP saw/VBD it/PRP and/CC ran/VBD ./.",
        "Dogs/NNS sees/VBZ the/DT cat/NN ./.",
        "See/VB the/DT old/JJ dog/NN ./.",
        "What/WP the/DT dog/NN saw/VBD ./.",
        "They/PRP must/MD see/VB the/DT dog/NN ./.",
        "They/PRP can/MD help/VB see/VB it/PRP ./.",
        "The/DT dogs/NNS lay/VBP here/RB and/CC napped/VBN there/RB ./.",
    ],
)
def test_what_is_in_doubt_is_not_denied(words: str) -> None:
    assert denied(words) is None


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("All/DT dogs/NNS are/VBP in/IN town/NN ./.", "scope"),
        ("They/PRP must/MD see/VB the/DT dog/NN ./.", "modal"),
    ],
)
def test_what_is_doubtful_in_meaning_is_flagged(words: str, flag: str) -> None:
    made = sentence(words)
    clause = clause_at(made, 0, len(made) - 1)
    assert clause is not None
    denial = negated(clause)
    assert denial is not None
    assert denial.flags == (flag,)
    assert " not " in rewritten(made, denial.edits)


SUBJECTS = st.sampled_from(
    [("He", "PRP", 1), ("They", "PRP", 2), ("The dog", "DT NN", 1), ("Old dogs", "JJ NNS", 2)]
)
VERBS = st.sampled_from(
    [("see", "sees", "saw"), ("have", "has", "had"), ("chase", "chases", "chased")]
)
OBJECTS = st.sampled_from([("it here", "PRP RB"), ("the car", "DT NN"), ("red cars", "JJ NNS")])


@given(SUBJECTS, VERBS, OBJECTS, st.booleans())
def test_denial_keeps_tense_number_and_all_other_words(
    subject: tuple[str, str, int],
    verb: tuple[str, str, str],
    object_: tuple[str, str],
    past: bool,
) -> None:
    form = verb[2] if past else verb[subject[2] % 2]
    tag = "VBD" if past else ("VBZ" if subject[2] == 1 else "VBP")
    words = f"{subject[0]} {form} {object_[0]} .".split()
    tags = f"{subject[1]} {tag} {object_[1]} .".split()
    found = denied(" ".join(f"{one}/{other}" for one, other in zip(words, tags, strict=True)))
    auxiliary = "did" if past else {1: "does", 2: "do"}[subject[2]]
    assert found == f"{subject[0]} {auxiliary} not {verb[0]} {object_[0]}."


WORDS = st.lists(
    st.sampled_from(["a", "an", "dog", "Cat", ",", "'s", "big"]), min_size=2, max_size=9
)


@given(WORDS, st.data())
def test_edits_change_nothing_else(words: list[str], data: st.DataObject) -> None:
    made = sentence(" ".join(f"{word}/X" for word in [*words, "."]))
    assert rewritten(made, [])[1:] == made.text[1:]
    at = data.draw(st.integers(0, len(words) - 1))
    if words[at - 1] in ("a", "an") and at:
        return  # its article may change
    changed = rewritten(made, [Edit(at, at + 1, "grey")])
    before, behind = made.text[: made.start[at]], made.text[made.end[at] :]
    assert changed.lower().replace(" ", "") == f"{before}grey{behind}".lower().replace(" ", "")


def test_articles_suit_what_is_put_behind_them() -> None:
    made = sentence("It/PRP is/VBZ an/DT old/JJ car/NN ./.")
    assert rewritten(made, [Edit(3, 4, "new")]) == "It is a new car."
    made = sentence("A/DT big/JJ car/NN ran/VBD ./.")
    assert rewritten(made, [Edit(1, 2, "old")]) == "An old car ran."


def test_clauses_end_where_lists_do_not() -> None:
    made = sentence(
        "In/IN town/NN ,/, the/DT dog/NN saw/VBD a/DT cat/NN ,/, and/CC it/PRP ran/VBD "
        "home/RB then/RB ./."
    )
    found = [rewritten(made, [], one.first, one.last) for one in clauses(made)]
    assert found == ["The dog saw a cat.", "It ran home then."]
    made = sentence(
        "The/DT dog/NN saw/VBD a/DT cat/NN ,/, a/DT cow/NN ,/, and/CC we/PRP saw/VBD it/PRP ./."
    )
    assert "The dog saw a cat." not in [
        rewritten(made, [], one.first, one.last) for one in clauses(made)
    ]


def test_what_is_not_denied_at_its_verb_is_denied_as_a_whole(known: WordKinds) -> None:
    words = "The/DT road/NN was/VBD just/RB longer/JJR than/IN the/DT river/NN"
    assert made_of(f"{words} ./.", comparative_places, known) == {
        "swapped": ["The road was just shorter than the river."],
        "negated": ["It is not true that the road was just longer than the river."],
        "swapped and negated": ["It is not true that the road was just shorter than the river."],
    }
    denied = words.replace("just", "hardly")
    assert set(made_of(f"{denied} ./.", comparative_places, known)) == {SWAPPED}


def test_the_sentence_before_is_shown_with_the_premise(known: WordKinds) -> None:
    made = sentence("The/DT road/NN was/VBD longer/JJR than/IN the/DT river/NN ./.")
    before = "They saw both."
    pairs = list(swaps_and_denials(comparative_places, PairSource(made, made, before), known))
    assert {pair.premise for pair in pairs} == {f"{before} {made.text}"}
    assert {pair.hypothesis for pair in pairs if pair.kind == KEPT} == {made.text}


def made_of(words: str, places: Places, known: WordKinds) -> dict[str, list[str]]:
    """Return what is made of a sentence: kind -> hypotheses."""
    made = sentence(words)
    found: dict[str, list[str]] = {}
    for pair in swaps_and_denials(places, PairSource(made, made), known):
        assert pair.premise == made.text
        assert pair.hypothesis != made.text
        found.setdefault(pair.kind, []).append(pair.hypothesis)
    return found


@pytest.mark.parametrize(
    ("places", "words", "swapped", "negated"),
    [
        (
            comparative_places,
            "The/DT river/NN is/VBZ longer/JJR than/IN the/DT road/NN ./.",
            "The river is shorter than the road.",
            "The river is not longer than the road.",
        ),
        (
            comparative_places,
            "More/JJR than/IN here/RB ,/, they/PRP saw/VBD more/JJR dogs/NNS ./.",
            "They saw fewer dogs.",
            "They did not see more dogs.",
        ),
        (
            comparative_places,
            "It/PRP took/VBD more/JJR than/IN ten/CD years/NNS ./.",
            "It took less than ten years.",
            "It did not take more than ten years.",
        ),
        (
            quantity_places,
            "All/PDT the/DT dogs/NNS were/VBD in/IN town/NN ./.",
            "Some of the dogs were in town.",
            "Not all the dogs were in town.",
        ),
        (
            quantity_places,
            "Rome/NNP has/VBZ three/CD old/JJ rivers/NNS ./.",
            "Rome has five old rivers.",
            "Rome does not have three old rivers.",
        ),
        (
            spatial_places,
            "The/DT dog/NN sat/VBD in/IN front/NN of/IN the/DT house/NN ./.",
            "The dog sat behind the house.",
            "The dog did not sit in front of the house.",
        ),
        (
            spatial_places,
            "He/PRP raised/VBD his/PRP$ left/JJ arm/NN ./.",
            "He raised his right arm.",
            "He did not raise his left arm.",
        ),
    ],
)
def test_words_are_swapped_and_clauses_denied(
    places: Places, words: str, swapped: str, negated: str, known: WordKinds
) -> None:
    found = made_of(words, places, known)
    assert swapped in found[SWAPPED]
    assert negated in found[NEGATED]


@pytest.mark.parametrize(
    ("places", "words"),
    [
        (comparative_places, "They/PRP saw/VBD no/DT more/JJR dogs/NNS ./."),
        (comparative_places, "It/PRP is/VBZ more/RBR or/CC less/RBR old/JJ ./."),
        (comparative_places, "They/PRP left/VBD later/RBR ./."),
        (quantity_places, "They/PRP left/VBD on/IN May/NNP 12/CD ./."),
        (quantity_places, "It/PRP took/VBD two/CD to/TO three/CD years/NNS ./."),
        (quantity_places, "After/IN all/DT the/DT dogs/NNS left/VBD ./."),
        (quantity_places, "He/PRP sees/VBZ it/PRP at/IN ten/CD o'clock/RB ./."),
        (quantity_places, "It/PRP fell/VBD ten/CD percent/NNS there/RB ./."),
        (spatial_places, "The/DT dog/NN left/VBD the/DT house/NN ./."),
        (spatial_places, "You/PRP are/VBP right/JJ now/RB ./."),
        (spatial_places, "He/PRP came/VBD from/IN North/NNP Korea/NNP ./."),
        (spatial_places, "Over/IN six/CD dogs/NNS ran/VBD home/RB ./."),
        (preposition_places, "He/PRP looked/VBD after/IN the/DT house/NN ./."),
        (preposition_places, "He/PRP gave/VBD up/RP the/DT house/NN ./."),
        (preposition_places, "In/IN fact/NN the/DT dog/NN sat/VBD ./."),
        (preposition_places, "It/PRP was/VBD seen/VBN by/IN the/DT car/NN ./."),
        (preposition_places, "It/PRP is/VBZ based/VBN on/IN the/DT car/NN ./."),
    ],
)
def test_what_stands_in_no_frame_is_left_alone(
    places: Places, words: str, known: WordKinds
) -> None:
    assert made_of(words, places, known) == {}


def test_prepositions_are_those_of_the_paper_and_of_one_frame(known: WordKinds) -> None:
    assert len(prepositions()) == 41
    shown = {word for frame in frames() for word in frame.by}
    assert prepositions() - shown == {"nearby"}
    assert shown <= prepositions()
    made = sentence("The/DT dog/NN sat/VBD under/IN the/DT car/NN ./.")
    found = list(swaps(preposition_places, PairSource(made, made), known))
    assert {pair.kind for pair in found} == {SWAPPED}
    assert "The dog sat on top of the car." in {pair.hypothesis for pair in found}
    assert {pair.new for pair in found} <= prepositions() - {"under"}


CLAUSE = "the/DT house/NN was/VBD beautiful/JJ"


@pytest.mark.slow
def test_a_clause_of_a_sentence_has_all_sixteen_patterns(known: WordKinds) -> None:
    made = sentence(f"In/IN 1990/CD ,/, {CLAUSE} ./.")
    found = {pair.kind: pair for pair in patterns(PairSource(made, made), known)}
    assert set(found) == set(PATTERNS)
    assert len(PATTERNS) == 16
    stated = {"none": "was beautiful", "not": "was not beautiful", "antonym": "was ugly"}
    stated["both"] = "was not ugly"
    for one, two in product(stated, repeat=2):
        pair = found[f"{one}, {two}"]
        assert pair.premise == f"In 1990, the house {stated[one]}."
        assert pair.hypothesis == f"The house {stated[two]}."


@pytest.mark.slow
def test_a_clause_that_is_the_sentence_has_those_that_differ(known: WordKinds) -> None:
    made = sentence(f"{CLAUSE.replace('the/', 'The/')} ./.")
    found = list(patterns(PairSource(made, made), known))
    assert len(found) == 12
    assert all(pair.premise != pair.hypothesis for pair in found)


@pytest.mark.slow
def test_pairs_with_an_antonym_have_all_sixteen_patterns(known: WordKinds) -> None:
    premise = sentence("The/DT house/NN was/VBD beautiful/JJ ./.")
    other = sentence("The/DT old/JJ place/NN is/VBZ ugly/JJ ./.")
    found = list(patterns(PairSource(premise, other), known))
    assert {pair.kind for pair in found} == set(PATTERNS)
    assert len({(pair.premise, pair.hypothesis) for pair in found}) == 16


def pair_of(kind: str, old: str, new: str, at: int) -> TextPair:
    return TextPair(kind, old, new, f"premise {at}", f"{kind} {old} {new} {at}")


WAYS = st.lists(
    st.lists(
        st.tuples(st.sampled_from("xyz"), st.sampled_from("ab"), st.sampled_from("cd")),
        min_size=1,
        max_size=4,
        unique=True,
    ),
    min_size=1,
    max_size=20,
)


@given(WAYS, st.integers(1, 3), st.integers(0, 4))
def test_choices_keep_the_caps_and_do_not_depend_on_the_order(
    ways: Sequence[Sequence[tuple[str, str, str]]], most: int, cap: int
) -> None:
    pairs = [[pair_of(*way, at) for way in given] for at, given in enumerate(ways)]
    rng = RandomGenerator.of(3)
    chosen = choose(pairs, most, cap, 0, rng)
    assert len({pair for _, pair in chosen}) == len(chosen)
    assert max(Counter(at for at, _ in chosen).values(), default=0) <= most
    for word in ("old", "new"):
        counts = Counter(getattr(pair, word) for _, pair in chosen)
        assert not cap or max(counts.values(), default=0) <= cap
    again = choose(pairs[::-1], most, cap, 0, rng)
    assert {pair for _, pair in again} == {pair for _, pair in chosen}


def test_kinds_come_up_equally_often() -> None:
    pairs = [[pair_of(kind, "a", "b", at) for kind in "xyz"] for at in range(30)]
    kinds = Counter(pair.kind for _, pair in choose(pairs, 1, 0, 0, RandomGenerator.of(0)))
    assert set(kinds.values()) == {10}


def test_few_rows_are_of_the_sentences_that_allow_most_kinds() -> None:
    pairs = [[pair_of(kind, "a", "b", at) for kind in "xyz"[: at % 3 + 1]] for at in range(30)]
    chosen = choose(pairs, 3, 0, 16, RandomGenerator.of(0))
    assert Counter(at for at, _ in chosen) == dict.fromkeys({at for at, _ in chosen}, 3)
    assert len(chosen) == 15


NOUNS = ("river", "road", "house", "dog", "car", "town", "bridge", "garden", "boat", "tree")


def toy_sentences(document: int) -> list[str]:
    one, *others = NOUNS[document:] + NOUNS[:document]
    return [
        f"The/DT old/JJ {one}/NN is/VBZ larger/JJR than/IN the/DT {other}/NN ./."
        for other in others[:4]
    ]


@pytest.fixture(scope="module")
def toy() -> Corpus:
    documents = [
        RawDocument(f"d{at}", [[raw(words) for words in toy_sentences(at)]])
        for at in range(len(NOUNS))
    ]
    pairs = [
        RawPair(
            f"p{at}",
            raw("The/DT big/JJ town/NN has/VBZ many/JJ more/JJR rivers/NNS ./."),
            raw(f"The/DT town/NN has/VBZ more/JJR {noun}s/NNS ./."),
        )
        for at, noun in enumerate(NOUNS[:4])
    ]
    return corpus_of(documents, pairs, name="toy")


def planned(corpus: Corpus, seed: int = 0, **options: Any) -> Plan:
    texts = CorpusAndWordNet(corpus, load_wordnet("3.0"))
    return fw_comparatives(texts, NliOptions(**options), RandomGenerator.of(seed))


def shown(plan: Plan) -> list[tuple[str, str]]:
    columns = plan.questions.columns
    return list(zip(columns["premise"].to_pylist(), columns["hypothesis"].to_pylist(), strict=True))


def test_rows_are_split_by_document_and_folded_by_sentence(toy: Corpus) -> None:
    plan = planned(toy)
    assert not plan.known.any()
    assert set(plan.split.tolist()) == set(range(len(SPLITS)))
    assert plan.fold is not None
    for codes, of in ((plan.concept.codes, plan.split), (plan.cluster.codes, plan.fold)):
        assert all(len(set(of[codes == code].tolist())) == 1 for code in set(codes.tolist()))
    texts = shown(plan)
    assert len(set(texts)) == len(texts)
    assert all(premise != hypothesis for premise, hypothesis in texts)
    known = set(toy.sentences.text.to_pylist())
    kinds = [KINDS[code - 1] for code in plan.family.codes.tolist()]
    in_corpus = {kind for kind, (_, text) in zip(kinds, texts, strict=True) if text in known}
    assert in_corpus == {KEPT}
    # Pairs with one premise are of one document.
    of_pairs = [at for at, (premise, _) in enumerate(texts) if premise.startswith("The big town")]
    assert len(of_pairs) == 12
    assert len(set(plan.split[of_pairs].tolist())) == 1


def test_doubtful_rows_are_of_the_full_tier(toy: Corpus) -> None:
    doubtful = raw("All/DT dogs/NNS are/VBP larger/JJR than/IN the/DT cat/NN ./.")
    corpus = corpus_of([RawDocument("d", [[doubtful]])], name="doubtful")
    clean, full = (planned(corpus, tier=tier, per_sentence=3) for tier in ("clean", "full"))
    assert [hypothesis for _, hypothesis in shown(clean)] == ["All dogs are smaller than the cat."]
    assert len(full) == 3
    assert full.flags is not None
    assert full.flags.counts()["scope"] == 2
    assert clean.dropped["flagged scope, see --tier full"] == 2


def test_caps_and_numbers_of_rows_are_kept(toy: Corpus) -> None:
    plan = planned(toy, cap_per_word=5)
    assert len(plan) == 10  # of "larger", and of the "more" of the pairs
    clusters = np.bincount(planned(toy, per_sentence=3).cluster.codes)
    assert clusters.max() == 3


@pytest.mark.slow
def test_a_corpus_with_nothing_to_change_says_so(toy: Corpus) -> None:
    texts = CorpusAndWordNet(toy, load_wordnet("3.0"))
    with pytest.raises(UsageError, match=r"fw_negation: no pair can be made.*--corpus"):
        fw_negation(texts, NliOptions(max_tokens=6), RandomGenerator.of(0))


def test_pairs_without_tags_are_counted(toy: Corpus) -> None:
    bare = RawPair("p", RawText("Dogs are bigger."), RawText("Cats are bigger."))
    documents = [RawDocument("d", [[raw(words) for words in toy_sentences(0)]])]
    plan = planned(corpus_of(documents, [bare], name="bare"))
    assert plan.dropped["pairs: no part-of-speech tags"] == 1


def run(*words: str, cache: Path) -> str:
    env = {**os.environ, "KBPROBE_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-m", *words], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_votes_become_a_labelled_probe(tmp_path: Path) -> None:
    """Corpus -> candidates -> sheets -> votes -> labels -> labelled probe, by the commands."""
    text = tmp_path / "toy"
    text.mkdir()
    for at in range(len(NOUNS)):
        lines = [words.replace("/", "_") for words in toy_sentences(at)]
        (text / f"d{at}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    credits = ("--licence", "CC0-1.0", "--attribution", "nobody")
    run("kb_cache.cli", "fetch", "corpus", "--from", str(text), *credits, cache=tmp_path)
    asked = ("builders.cli", "fw_comparatives", "--corpus", "toy")
    folder, sheets = tmp_path / "candidates", tmp_path / "sheets"
    run(*asked, "-o", str(folder), cache=tmp_path)
    run(
        "release.cli",
        "annotate",
        "export",
        str(folder),
        "-o",
        str(sheets),
        "--n",
        "0",
        cache=tmp_path,
    )
    filled = []
    for sheet in sorted((sheets / "sheets").glob("*.csv")):
        with sheet.open(encoding="utf-8", newline="") as given:
            rows = list(csv.DictReader(given))
        for row in rows:
            row["answer"] = "1" if " not " in row["hypothesis"] else "3"
            row["annotator"] = row["annotator"] or sheet.stem
        filled.append(sheet)
        with sheet.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    assert filled
    labels = tmp_path / "labels.jsonl"
    said = ("--votes", *map(str, filled), "--key", str(sheets / "key.json"), "--min-votes", "1")
    importing = ("release.cli", "annotate", "import", str(folder), *said)
    run(*importing, "--labels", str(labels), "-o", str(tmp_path / "gold"), cache=tmp_path)
    labelled = tmp_path / "labelled"
    run(*asked, "--labels", str(labels), "-o", str(labelled), cache=tmp_path)
    import pyarrow.parquet as pq

    rows = [
        row for path in labelled.glob("data/*.parquet") for row in pq.read_table(path).to_pylist()
    ]
    assert rows
    names = {row["choices"]["text"][row["answer"]] for row in rows}
    assert names == {"contradiction", "neutral"}
    for row in rows:
        expected = "contradiction" if " not " in row["hypothesis"] else "neutral"
        assert row["choices"]["text"][row["answer"]] == expected


def test_reworded_hypotheses_are_asked_in_four_forms(known: WordKinds) -> None:
    made = sentence("Foreign/JJ steel/NN was/VBD also/RB much/RB cheaper/JJR ./.")
    reworded = forms("Domestic steel {was|was not} [more|less] expensive.")
    found = list(swaps_and_denials(comparative_places, PairSource(made, made, "", reworded), known))
    assert [(pair.kind, pair.old, pair.new) for pair in found[:4]] == [
        (KEPT, "more", "more"),
        (NEGATED, "more", "more"),
        (SWAPPED, "less", "less"),
        (BOTH, "less", "less"),
    ]
    assert found[3].hypothesis == "Domestic steel was not less expensive."
    assert {pair.premise for pair in found} == {made.text}


@pytest.mark.parametrize("probe", ["comparatives", "quantification", "spatial", "negation"])
def test_rewordings_name_one_word_and_one_verb(probe: str) -> None:
    shipped = rewordings(f"fw_{probe}", PACKAGE)
    assert len(shipped) >= 30
    for premise, four in shipped.items():
        assert len({form.text for form in four}) == 4
        assert premise not in {form.text for form in four}
        assert not any(mark in form.text for form in four for mark in "[]{}|")
