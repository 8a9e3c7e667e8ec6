"""The deep audit: each adversary finds the leak that was planted for it, and none without one."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import builders
import release
from kb_cache.frequency import zipf_frequencies
from kb_cache.vectors.texts import cosines_of_means
from kb_cache.vectors.types import WordVectors
from kb_cache.wordnet.load import load_wordnet
from kbprobe.arrays import Floats
from kbprobe.audit.adversaries import DeepRows, elimination, likeness, meaning, read, tuned
from kbprobe.audit.learners import _folds
from kbprobe.audit.verdicts import Shortcut
from kbprobe.errors import UsageError
from kbprobe.format.dataset import CARD
from kbprobe.format.manifest import read_manifest, write_manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from release.checks.checking import check
from release.checks.deep import DeepAudit, audit, cues_of, outcomes, write_outcomes
from release.cli import main
from tests.evaluation.real_models import minilm
from tests.release.planted import Row, plant, word

pytestmark = pytest.mark.needs("sklearn")

Leak = Callable[[Row, int, random.Random], None]


def longer_golds(row: Row, number: int, generator: random.Random) -> None:
    row["gold"] += word(generator)[:3]


def frequent_golds(row: Row, number: int, generator: random.Random) -> None:
    # Of each list equally often: golds recur no more than distractors do.
    row["gold"] = generator.choice(COMMON[:100])
    row["distractors"] = generator.sample(RARE[:290], len(row["distractors"]))


def deeper_golds(row: Row, number: int, generator: random.Random) -> None:
    row["nodes"] = {text: generator.choice(SHALLOW) for text in row["distractors"]}
    row["nodes"][row["gold"]] = generator.choice(DEEP)


def golds_of_a_topic(row: Row, number: int, generator: random.Random) -> None:
    """Two choices are of each topic: no choice is the odd one out."""
    one, other = "abcdefghi", "qrstuvwxy"
    row["gold"] = word(generator, one)
    row["distractors"] = [word(generator, letters) for letters in (one, other, other)]
    row["position"] = generator.randrange(4)


def negations(row: Row, number: int, generator: random.Random) -> None:
    answers = ["not", "really"]
    generator.shuffle(answers)
    row["gold"], row["distractors"] = answers[0], answers[1:]
    row["position"] = generator.randrange(2)
    row["arguments"] = {"x": word(generator), "y": word(generator)}


def unbalanced_answers(row: Row, number: int, generator: random.Random) -> None:
    """ "not" is the answer to two questions in three, whatever they ask."""
    negations(row, number, generator)
    gold, other = ("not", "really") if generator.random() < 2 / 3 else ("really", "not")
    row["gold"], row["distractors"] = gold, [other]


def unbalanced_labels(row: Row, number: int, generator: random.Random) -> None:
    unbalanced_answers(row, number, generator)
    row["setup"] = "nli"


def prefixed_arguments(row: Row, number: int, generator: random.Random) -> None:
    negations(row, number, generator)
    if row["gold"] == "not" and generator.random() < 0.8:
        row["arguments"]["y"] = f"un{row['arguments']['y'][:4]}"


def frequent_arguments(row: Row, number: int, generator: random.Random) -> None:
    negations(row, number, generator)
    row["arguments"]["x"] = generator.choice(COMMON if row["gold"] == "not" else RARE)


def recurring_golds(row: Row, number: int, generator: random.Random) -> None:
    first = row["rows"][number - number % 3]
    row["question"] = first["question"]
    row["gold"] = first["gold"]


def recurring_distractors(row: Row, number: int, generator: random.Random) -> None:
    first = row["rows"][number - number % 4]
    row["cluster"] = first["cluster"]
    row["distractors"] = first["distractors"]
    row["position"] = generator.randrange(len(row["distractors"]) + 1)


def shared_distractors(row: Row, number: int, generator: random.Random) -> None:
    others = row["rows"][number - 5 : number] or [row]
    row["distractors"] = [generator.choice(others)["distractors"][at] for at in (0, 1)]
    row["position"] = generator.randrange(3)


def favoured_golds(row: Row, number: int, generator: random.Random) -> None:
    """Words of their own in each split: some are right wherever they stand, others never."""
    pools = row["rows"][0].setdefault(
        "pools", [[word(generator) for _ in "abc" * 40] for _ in "ab"]
    )
    row["gold"] = generator.choice(pools[0][::3])
    row["distractors"] = generator.sample(pools[1], 3)
    row["position"] = generator.randrange(4)


def choice_groups(row: Row, number: int, generator: random.Random) -> None:
    """Four rows of different clusters show the same choices, each of them gold once."""
    first = row["rows"][number - number % 4]
    texts = first.setdefault("texts", [word(generator) for _ in range(4)])
    row["cluster"] = f"{number}"
    row["gold"] = texts[number % 4]
    row["distractors"] = [text for text in texts if text != row["gold"]]
    row["position"] = generator.randrange(4)


def first_positions(row: Row, number: int, generator: random.Random) -> None:
    row["position"] *= generator.random() < 0.7


def cyclic_positions(row: Row, number: int, generator: random.Random) -> None:
    row["position"] = number % 3


def numbered_ids(row: Row, number: int, generator: random.Random) -> None:
    row["id"] = f"{int(row['id'], 16) // 4 * 4 + row['position']:016x}"


def moving_positions(row: Row, number: int, generator: random.Random) -> None:
    if number and generator.random() < 0.8:
        row["position"] = (row["rows"][number - 1]["position"] + 1) % 3


LEAKS: list[tuple[Leak, str]] = [
    (longer_golds, "surface"),
    (frequent_golds, "surface"),
    (deeper_golds, "surface"),
    (golds_of_a_topic, "meaning"),
    (prefixed_arguments, "argument:y"),
    (frequent_arguments, "argument:x"),
    (shared_distractors, "recurrence:split"),
    (favoured_golds, "elimination:choices:most"),
    (first_positions, "order:position"),
    (cyclic_positions, "order:number"),
    (numbered_ids, "order:id"),
    (moving_positions, "order:previous"),
]
QUICK = {longer_golds, first_positions}
WORDNET = load_wordnet("3.0")
_NOUNS = np.flatnonzero(WORDNET.pos_codes == 0)
_NAMES = WORDNET.synsets["name"].to_pylist()
_DEPTHS = WORDNET.isa.depths()[_NOUNS]
SHALLOW = [_NAMES[noun] for noun in _NOUNS[_DEPTHS < 5]]
DEEP = [_NAMES[noun] for noun in _NOUNS[_DEPTHS > 8]]
_LEMMAS = sorted({lemma for lemma in WORDNET.lemma_texts().to_pylist() if len(lemma) == 6})
_ZIPF = zipf_frequencies(_LEMMAS)
COMMON = [_LEMMAS[at] for at in np.flatnonzero(_ZIPF > 4.2)]
RARE = [_LEMMAS[at] for at in np.flatnonzero((_ZIPF > 1) & (_ZIPF < 2))]


def rows_of(probe: Path) -> DeepRows:
    manifest = read_manifest(probe)
    rows = read(probe, manifest, DEFAULT_CONFIG, seed=0, cues=cues_of(manifest))
    assert rows is not None
    return rows


def with_vectors(rows: DeepRows, words: list[str], matrix: Floats) -> DeepRows:
    """The same rows, with the similarity of these word vectors."""
    vectors = WordVectors("toy", "1", "0", "PDDL-1.0", words=pa.array(words), matrix=matrix)

    def cosines(left: Sequence[str], right: Sequence[str]) -> Floats:
        return cosines_of_means(left, right, vectors).scores

    return replace(rows, cues=rows.cues._replace(cosines={"words": cosines}))


def exceeding(done: DeepAudit) -> set[str]:
    return {one.adversary for one in done.outcomes if one.verdict == "high"}


# Those of the kinds that a build may well have for everyone, and all in the slow part.
@pytest.mark.parametrize(
    ("leak", "adversary"),
    [
        pytest.param(*case, id=case[0].__name__, marks=() if case[0] in QUICK else pytest.mark.slow)
        for case in LEAKS
    ],
)
def test_a_planted_leak_is_found(leak: Leak, adversary: str, tmp_path: Path) -> None:
    done = audit(plant(tmp_path, leak))
    found = exceeding(done)
    assert adversary in found
    kind = adversary.partition(":")[0]
    # Lengths, words and topics are in the n-grams too, and what one argument tells no other does.
    # Words that are always golds, or never, are known from other rows.
    allowed = {kind, "surface", "meaning", "elimination"}
    assert {name.partition(":")[0] for name in found} <= allowed
    assert kind != "argument" or found == {adversary}
    (one,) = [one for one in done.findings() if one.what.startswith(f"{adversary}:")]
    assert one.verdict == "failed"
    assert one.remedy


@pytest.mark.slow
@pytest.mark.parametrize("leak", [None, negations], ids=["own choices", "constant choices"])
def test_without_a_leak_none_is_found(leak: Leak | None, tmp_path: Path) -> None:
    done = audit(plant(tmp_path, leak))
    assert done.passed, exceeding(done)
    names = {one.adversary for one in done.outcomes}
    assert ("argument:x" in names) == (leak is negations)
    assert {one.accuracy.n for one in done.outcomes} == {1000}
    assert [one.verdict for one in done.findings()] == ["ok"]


@pytest.mark.slow
def test_labels_that_are_unbalanced_by_nature_are_held_against_the_commonest(
    tmp_path: Path,
) -> None:
    assert "surface" in exceeding(audit(plant(tmp_path / "own", unbalanced_answers)))
    done = audit(plant(tmp_path / "nli", unbalanced_labels))
    assert done.passed, exceeding(done)
    found = {one.adversary: one for one in done.outcomes}
    assert 0.6 < found["surface"].chance <= found["surface"].accuracy.value + 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("leak", "adversary"),
    [
        (recurring_golds, "recurrence:question:most"),
        (recurring_distractors, "recurrence:cluster:least"),
        (choice_groups, "elimination:clusters:least"),
    ],
)
def test_what_balanced_rows_tell_of_each_other_is_reported(
    leak: Leak, adversary: str, tmp_path: Path
) -> None:
    (found,) = [one for one in audit(plant(tmp_path, leak)).outcomes if one.adversary == adversary]
    assert found.accuracy.low > found.chance + 0.2
    assert (found.verdict, found.remedy) == ("reported", "")


@pytest.mark.slow
def test_what_is_right_elsewhere_tells_nothing_of_choice_groups(tmp_path: Path) -> None:
    done = audit(plant(tmp_path, choice_groups))
    assert done.passed, exceeding(done)
    found = {one.adversary: one for one in done.outcomes}
    for how in ("least", "most"):
        assert found[f"elimination:choices:{how}"].accuracy.value == 0.25


@pytest.mark.slow
def test_elimination_is_that_of_a_loop(tmp_path: Path) -> None:
    def from_few_words(row: Row, number: int, generator: random.Random) -> None:
        row["gold"], *row["distractors"] = generator.sample(RARE[:9], 1 + len(row["distractors"]))

    probe = plant(tmp_path, from_few_words)
    rows = rows_of(probe)
    rows = replace(rows, sample=rows.sample._replace(scored=rows.scored[:200]))
    shown = [[code for code in row if code >= 0] for row in rows.choices[rows.scored].tolist()]
    golds = rows.gold[rows.scored].tolist()
    mean = 1 / np.mean([len(row) for row in shown])
    # A choice less is filled up by -1.
    ordered = [tuple(sorted(row)) for row in rows.choices[rows.scored].tolist()]
    sets = np.array([sorted(set(ordered)).index(row) for row in ordered])
    assert np.unique(sets).size > 50
    found = {guesses.name: guesses for guesses in elimination(rows)}
    for name, group in (("clusters", rows.cluster[rows.scored]), ("choices", sets)):
        fold = _folds(group)
        assert all(np.unique(fold[group == one]).size == 1 for one in group)
        assert np.bincount(fold).size == 5
        most, least = found[f"elimination:{name}:most"], found[f"elimination:{name}:least"]
        assert most.judged == least.judged == (name == "choices")
        for at, row in enumerate(shown):
            for code in row:
                times = [
                    other
                    for other in range(len(shown))
                    if fold[other] != fold[at] and code in shown[other]
                ]
                right = sum(golds[other] == code for other in times)
                column = rows.choices[rows.scored[at]].tolist().index(code)
                rate = (right + mean) / (len(times) + 1)
                assert most.scores[at, column] == pytest.approx(rate)
                assert least.scores[at, column] == pytest.approx(-rate)


def own_words(row: Row, number: int, generator: random.Random) -> None:
    row["question"] = word(generator)


@pytest.mark.slow
def test_likeness_is_that_of_a_loop(tmp_path: Path) -> None:
    probe = plant(tmp_path, own_words)
    rows = rows_of(probe)
    texts_of_choices = rows.texts.to_pylist()
    asked = [
        text.strip("\x1f") for text in rows.questions.take(rows.question[rows.scored]).to_pylist()
    ]
    words = [*texts_of_choices, *asked]
    matrix = np.random.default_rng(0).normal(size=(len(words), 4)).astype(np.float32)
    similar, central = likeness(with_vectors(rows, words, matrix))
    assert (similar.name, central.name) == ("similar:words", "central:words")
    assert (similar.judged, central.judged) == (False, True)
    assert not similar.trained
    unit = dict(zip(words, matrix / np.linalg.norm(matrix, axis=1, keepdims=True), strict=True))
    for at, codes in enumerate(rows.choices[rows.scored].tolist()):
        texts = [texts_of_choices[code] if code >= 0 else "" for code in codes]
        for column, text in enumerate(texts):
            if not text:
                assert similar.scores[at, column] == central.scores[at, column] == -np.inf
                continue
            others = [unit[other] for other in texts if other not in ("", text)]
            to_question = unit[text] @ unit[asked[at]]
            assert similar.scores[at, column] == pytest.approx(to_question, abs=1e-6)
            to_others = sum(unit[text] @ other for other in others)
            assert central.scores[at, column] == pytest.approx(to_others, abs=1e-6)


def test_golds_in_the_middle_are_found_and_golds_like_the_question_reported(
    tmp_path: Path,
) -> None:
    """The gold has the vector of the question, and that of a distractor more than others do."""
    probe = plant(tmp_path, own_words)
    rows = rows_of(probe)
    texts = rows.texts.to_pylist()
    place = {texts[code]: 0 for code in rows.gold}
    for row in range(rows.answer.size):
        others = [code for code in rows.choices[row] if code >= 0 and code != rows.gold[row]]
        place |= {texts[code]: 1 + at for at, code in enumerate(others)}
    place |= {question.strip("\x1f"): 0 for question in rows.questions.to_pylist()}
    # Unit vectors of three directions, and their sum.
    directions = np.vstack([np.ones(3), np.eye(3)]).astype(np.float32)
    matrix = directions[list(place.values())]
    rows = with_vectors(rows, list(place), matrix)
    found = {
        one.adversary: one
        for guesses in likeness(rows)
        for one in outcomes(DEFAULT_CONFIG, guesses, rows, 1)
    }
    assert found["similar:words"].accuracy.value == found["central:words"].accuracy.value == 1
    assert found["similar:words"].verdict == "reported"
    assert found["central:words"].verdict == "high"


@pytest.mark.slow
def test_without_word_vectors_likeness_has_nothing_to_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str | None) -> None:
        raise UsageError("there are no word vectors in the cache")

    monkeypatch.setattr("release.checks.deep.load_vectors", missing)
    assert list(likeness(rows_of(plant(tmp_path)))) == []


@pytest.mark.slow
def test_an_adversary_is_judged_in_each_family(tmp_path: Path) -> None:
    rows = rows_of(plant(tmp_path))
    family = np.where(np.arange(rows.answer.size) % 10 == 0, 1, 0)
    rows = replace(rows, family=family, family_names=("random", "sibling"))
    near = (family == 1)[rows.scored][:, None]
    scores = np.where(near, rows.is_gold[rows.scored], 0.0)
    every, sibling = outcomes(DEFAULT_CONFIG, Shortcut("surface", scores), rows, 1)
    assert every.accuracy.n == 1000
    assert (sibling.adversary, sibling.accuracy.n) == ("surface, sibling rows", 100)
    assert (sibling.accuracy.value, sibling.verdict) == (1, "high")
    assert sibling.remedy


@pytest.mark.slow
def test_the_same_probe_has_the_same_figures(tmp_path: Path) -> None:
    folder = plant(tmp_path, golds_of_a_topic)
    assert audit(folder) == release.audit(folder)


@pytest.mark.slow
def test_an_encoder_finds_topics(tmp_path: Path) -> None:
    folder = minilm()

    def animal_golds(row: Row, number: int, generator: random.Random) -> None:
        animals, tools = ANIMALS[number % 2 :: 2], TOOLS[number % 2 :: 2]
        row["gold"], other = generator.sample(animals, 2)
        row["distractors"] = [other, *generator.sample(tools, 2)]
        row["position"] = generator.randrange(4)

    probe = plant(tmp_path, animal_golds)
    rows = rows_of(probe)
    sample = rows.sample._replace(train=rows.train[:160], scored=rows.scored[:160])
    rows = replace(rows, sample=sample, cues=rows.cues._replace(encoder=str(folder)))
    for shortcut in (meaning(rows), tuned(rows)):
        assert next(outcomes(DEFAULT_CONFIG, shortcut, rows, 1)).verdict == "high"


ANIMALS = [
    "dog",
    "cat",
    "horse",
    "cow",
    "sheep",
    "goat",
    "pig",
    "duck",
    "goose",
    "wolf",
    "fox",
    "bear",
]
TOOLS = [
    "hammer",
    "saw",
    "drill",
    "axe",
    "spade",
    "rake",
    "pliers",
    "wrench",
    "chisel",
    "file",
    "lathe",
    "vise",
]


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "test"])
def test_splits_without_answers_are_named(split: str, tmp_path: Path) -> None:
    folder = plant(tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"] = [entry for entry in manifest["files"] if entry["split"] != split]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    done = audit(folder)
    assert done.unscored == (("default",) if split == "test" else ())
    assert done.untrained == (("default",) if split == "train" else ())
    (finding, *_) = done.findings()
    assert finding.verdict == "warning"
    assert split in finding.what


@pytest.mark.slow
def test_the_command_adds_adversaries_to_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grouped, published = tmp_path / "grouped", tmp_path / "published"
    options: dict[str, Any] = {"max_hops": 1, "limit": 1500, "controls": False}
    builders.build("wordnet_hypernymy", output=grouped, audit=True, **options)
    options |= {"tier": "full", "families": ["paper"], "sampling": "uniform"}
    builders.build("wordnet_hypernymy", output=published, audit=True, **options)
    for folder, deep, code in ((grouped, [], 0), (grouped, ["--deep"], 0), (published, [], 1)):
        with pytest.raises(SystemExit) as stopped:
            main(["check", str(folder), *deep])
        shown = capsys.readouterr()
        assert stopped.value.code == code, shown
        assert ("recurrence:question:most" in shown.out) == bool(deep)
        assert ("NOT ready" in shown.out) == bool(code)
    assert "elimination:choices:most" in exceeding(audit(published))
    with pytest.raises(SystemExit) as stopped:
        main(["check", str(grouped), "--deep", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["passed"]
    (form,) = [one for one in found["deep"]["outcomes"] if one["adversary"] == "surface"]
    assert 0 < form["low"] <= form["accuracy"] <= form["high"] < 0.4
    assert form["verdict"] == "ok"


@pytest.mark.slow
def test_damaged_files_are_not_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = plant(tmp_path)
    (folder / "data" / "test.parquet").write_bytes(b"")
    with pytest.raises(SystemExit):
        main(["check", str(folder), "--deep"])
    assert "undamaged files" in capsys.readouterr().out


@pytest.mark.slow
def test_figures_are_written_into_card_and_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], open_wordnet: Callable[[], str]
) -> None:
    folder = tmp_path / "once"
    builders.build("wordnet_synonymy", output=folder, audit=True, wordnet=open_wordnet(), limit=900)
    old, before = read_manifest(folder), (folder / CARD).read_text(encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["check", str(folder), "--deep", "--json", "--into-card"])
    found = json.loads(capsys.readouterr().out)["deep"]["outcomes"]
    new, card = read_manifest(folder), (folder / CARD).read_text(encoding="utf-8")
    assert new.adversaries is not None
    assert new.model_copy(update={"adversaries": None}) == old
    recorded = new.content["adversaries"]
    assert recorded["outcomes"] == found
    section = card[card.index("## Adversaries") : card.index("## Screen")]
    assert card.replace(section, "") == before
    assert recorded["summary"].casefold() in section.casefold()
    for one in found:
        row = f"| {one['adversary']} | default | {one['accuracy']:.1%} | {one['low']:.1%} |"
        assert row in section
    with pytest.raises(SystemExit) as stopped:
        main(["check", str(folder)])
    shown = " ".join(capsys.readouterr().out.split())
    assert f"adversaries on record {recorded['summary']}" in shown
    assert stopped.value.code == 0, shown
    # Of other rows they say nothing.
    files = [{**entry, "rows_sha256": "0" * 64} for entry in old.content["files"]]
    write_manifest(folder, {**old.content, "files": files, "adversaries": recorded})
    with pytest.raises(SystemExit) as stopped:
        main(["check", str(folder)])
    assert stopped.value.code == 1
    assert "it is of other rows" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_an_adversary_that_exceeds_is_a_warning_on_record(tmp_path: Path) -> None:
    folder = plant(tmp_path / "leaky", longer_golds)
    done = audit(folder)
    (folder / CARD).write_text("---\na: 1\n---\n\n# leaky\n", encoding="utf-8")
    write_outcomes(folder, done)
    assert not done.passed
    (one,) = [one for one in check(folder).findings if one.name == "adversaries on record"]
    assert one.verdict == "warning"
    assert re.match(r"\d+ of \d+ adversaries exceeds? chance by more than 5 points", one.what)


def test_nothing_is_written_without_the_deep_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["check", str(tmp_path), "--into-card"])
    assert stopped.value.code == 2
    assert "--into-card needs --deep" in capsys.readouterr().err
