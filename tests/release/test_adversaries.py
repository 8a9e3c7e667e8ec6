"""The deep audit: each adversary finds the leak that was planted for it, and none without one."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import builders
import release
from kb_cache.frequency import zipf_frequencies
from kb_cache.wordnet.load import load_wordnet
from kbprobe.format.dataset import CARD
from kbprobe.format.manifest import read_manifest, write_manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from release.adversaries.auditing import DeepAudit, audit, write_outcomes
from release.adversaries.encoder import tuned
from release.adversaries.meaning import meaning
from release.adversaries.reading import read
from release.adversaries.types import clustered_mean, outcome
from release.checks.checking import check
from release.cli import main
from tests.evaluation.real_models import minilm
from tests.release.planted import Row, plant, word

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
    (recurring_golds, "recurrence:question:most"),
    (recurring_distractors, "recurrence:cluster:least"),
    (shared_distractors, "recurrence:split"),
    (first_positions, "order:position"),
    (cyclic_positions, "order:number"),
    (numbered_ids, "order:id"),
    (moving_positions, "order:previous"),
]
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


def exceeding(done: DeepAudit) -> set[str]:
    return {one.adversary for one in done.outcomes if one.verdict == "exceeds"}


@pytest.mark.parametrize(("leak", "adversary"), LEAKS, ids=[leak.__name__ for leak, _ in LEAKS])
def test_a_planted_leak_is_found(leak: Leak, adversary: str, tmp_path: Path) -> None:
    done = audit(plant(tmp_path, leak))
    found = exceeding(done)
    assert adversary in found
    kind = adversary.partition(":")[0]
    # Lengths, words and topics are in the n-grams too, and what one argument tells no other does.
    assert {name.partition(":")[0] for name in found} <= {kind, "surface", "meaning"}
    assert kind != "argument" or found == {adversary}
    (one,) = [one for one in done.findings() if one.what.startswith(f"{adversary}:")]
    assert one.verdict == "failed"
    assert one.remedy


@pytest.mark.parametrize("leak", [None, negations], ids=["own choices", "constant choices"])
def test_without_a_leak_none_is_found(leak: Leak | None, tmp_path: Path) -> None:
    done = audit(plant(tmp_path, leak))
    assert done.passed, exceeding(done)
    names = {one.adversary for one in done.outcomes}
    assert ("argument:x" in names) == (leak is negations)
    assert {one.rows for one in done.outcomes} == {1000}
    assert [one.verdict for one in done.findings()] == ["ok"]


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
    rows = read(probe, read_manifest(probe), DEFAULT_CONFIG, seed=0)
    assert rows is not None
    rows = replace(rows, train=rows.train[:160], scored=rows.scored[:160])
    for guesses in (meaning(rows, str(folder)), tuned(rows, str(folder))):
        assert outcome(DEFAULT_CONFIG, guesses, rows, "").verdict == "exceeds"


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


def test_the_interval_is_wide_where_clusters_agree() -> None:
    values = np.repeat([1.0, 0.0], 50)
    together = np.arange(100) // 10
    _, alone = clustered_mean(values, np.arange(100))
    _, clustered = clustered_mean(values, together)
    assert alone == pytest.approx(1.96 * 0.05, rel=0.03)
    assert clustered > 3 * alone


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


def test_the_command_adds_adversaries_to_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    several, once = tmp_path / "several", tmp_path / "once"
    options: dict[str, Any] = {"max_hops": 1, "limit": 1500, "controls": False}
    one = {**options, "families": ["random"]}
    builders.build("wordnet_hypernymy", output=once, audit=True, **one)
    # A question asked once for each family of distractors is the only one to keep its gold.
    options |= {"tier": "full", "every_family": True}
    builders.build("wordnet_hypernymy", output=several, audit=True, **options)
    for folder, deep, code in ((several, [], 0), (several, ["--deep"], 1)):
        with pytest.raises(SystemExit) as stopped:
            main(["check", str(folder), *deep])
        shown = capsys.readouterr()
        assert stopped.value.code == code, shown
        assert ("recurrence:question:most" in shown.out) == bool(deep)
        assert ("NOT ready" in shown.out) == bool(code)
    with pytest.raises(SystemExit) as stopped:
        main(["check", str(once), "--deep", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["passed"]
    (form,) = [one for one in found["deep"]["outcomes"] if one["adversary"] == "surface"]
    assert 0 < form["low"] < form["accuracy"] < form["high"] < 0.4
    assert form["verdict"] == "ok"


def test_damaged_files_are_not_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = plant(tmp_path)
    (folder / "data" / "test.parquet").write_bytes(b"")
    with pytest.raises(SystemExit):
        main(["check", str(folder), "--deep"])
    assert "undamaged files" in capsys.readouterr().out


def test_figures_are_written_into_card_and_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "once"
    builders.build("wordnet_synonymy", output=folder, audit=True, pos=["verb"], limit=900)
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
