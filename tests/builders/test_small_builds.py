"""Builds too small for a test split, and knowledge bases too small for any question."""

from __future__ import annotations

import json
import re
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import rich.console
import yaml

import builders
from builders.engine import summary
from builders.engine.pipeline import Built, build, write
from builders.engine.probe import find_probe
from builders.engine.request import Request
from kb_cache.fetching import fetch
from kbprobe.audit.report import missing_baselines
from kbprobe.errors import UsageError
from kbprobe.format.manifest import Audit, read_manifest
from release.checks.cards import _findings
from tests.real_data import MINIATURE

pytestmark = pytest.mark.usefixtures("miniature")

NINE_EDGES = """
IsA dog animal 9.0
IsA cat animal 4.0
IsA animal organism 2.0
HasProperty snow white 5.0
HasProperty snow cold 6.0
NotHasProperty snow cold 1.0
AtLocation dog kennel 2.0
CapableOf dog bark 4.0
UsedFor knife cut 3.0
"""


def small(name: str, limit: int) -> Built:
    probe = find_probe(name)
    more = {"wordnet": MINIATURE} if "wordnet" in probe.options.model_fields else {}
    return build(Request(probe, probe.options.parse({"limit": limit, **more}, name)))


@pytest.mark.slow
@pytest.mark.parametrize("option", ["limit", "train_rows"])
def test_too_few_rows_for_any_group_are_refused_with_the_smallest_number(option: str) -> None:
    name = "wordnet_hypernymy"
    with pytest.raises(UsageError, match=r"--\w+(-rows)? 1: .* give at least (\d+)") as refusal:
        builders.build(name, wordnet=MINIATURE, **{option: 1})
    least = int(str(refusal.value).split()[-1])
    built = builders.build(name, wordnet=MINIATURE, **{option: least})
    limited = built["train"] if option == "train_rows" else chain(*built.values())
    assert any(True for _ in limited)


def shown(manifest: dict[str, Any], built: Built, folder: Path) -> str:
    output = StringIO()
    with pytest.MonkeyPatch.context() as patch:
        console = rich.console.Console(file=output, width=300)
        patch.setattr(summary, "Console", lambda **_: console)
        summary.show(manifest, built, folder)
    return output.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("object_comparison", 10),
        ("multihop_comparison", 10),
        ("age_comparison", 2),
        ("antonym_negation", 2),
    ],
)
def test_a_build_in_one_split_has_a_card_that_says_so(
    name: str, limit: int, tmp_path: Path
) -> None:
    folder = tmp_path / name
    built = small(name, limit)
    write(built, folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (split,) = [split for split, rows in manifest["counts"]["splits"].items() if rows]
    assert manifest["audit"]["baselines"] == {}
    assert manifest["audit"]["scored_split"] == split

    card = (folder / "README.md").read_text(encoding="utf-8")
    reason = missing_baselines(manifest["audit"])
    rows = manifest["counts"]["rows"]
    assert {
        "train": f"all {rows} rows are in the train split",
        "validation": f"the train split has no rows (validation has {rows})",
        "test": f"the train split has no rows (test has {rows})",
    }[split] in reason
    assert card.count(reason) == 2, "among the limits, and in place of the audit's table"
    assert "Shortcuts are right in" not in card
    header = yaml.safe_load(card.split("---\n")[1])
    for config in header["configs"]:
        assert [file["split"] for file in config["data_files"]] == [split]
    row = built.splits[split].table(0, 1).to_pylist()[0]
    assert row["id"] in card, "the row shown is one of the split that there is"

    text = shown(manifest, built, folder)
    assert reason in text
    assert "Shortcuts are right in" not in text

    (finding,) = _findings("default", Audit.model_validate(manifest["audit"]))
    assert finding.verdict == "failed"
    assert "no baseline" in finding.what


def test_fewer_rows_than_were_asked_for_are_told_with_the_reason(tmp_path: Path) -> None:
    name, values = "wordnet_hypernymy", {"wordnet": MINIATURE}
    asked = {"test_rows": 5000, "validation_rows": 5}
    probe = find_probe(name)
    built = build(Request(probe, probe.options.parse({**values, **asked}, name)))
    write(built, tmp_path / name)
    counts = read_manifest(tmp_path / name).counts
    assert [*counts.fewer] == ["test_rows"], "validation was cut"
    short = counts.fewer["test_rows"]
    assert (short.asked, short.rows) == (5000, counts.splits["test"])
    assert re.match(r"left out: .+ \([\d,]+\); ", short.reason)
    assert "beyond" not in short.reason
    sentence = f"--test-rows 5000 gives {short.rows:,} rows, all that there are ({short.reason})"
    manifest = json.loads((tmp_path / name / "manifest.json").read_text(encoding="utf-8"))
    assert sentence in shown(manifest, built, tmp_path / name)
    assert f"{sentence}." in (tmp_path / name / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("object_comparison", {"for_training": True}),
        ("object_comparison", {"for_training": True, "limit": 500}),
        ("object_comparison", {"train_rows": 1000, "limit": 100_000}),
        ("multihop_comparison", {"for_training": True, "choices": 5}),
    ],
)
def test_rows_that_an_option_leaves_out_are_not_all_that_there_are(
    name: str, given: dict[str, Any]
) -> None:
    probe = find_probe(name)
    built = build(Request(probe, probe.options.parse(given, name), audit=False))
    assert "fewer" not in built.manifest["counts"]


def test_a_split_without_rows_is_told(tmp_path: Path) -> None:
    for shares, told in ("0.3,0.2,0.5", True), ("0.5,0,0.5", False):
        probe, folder = find_probe("object_comparison"), tmp_path / shares
        given = {"split_shares": shares, "limit": 2}
        built = build(Request(probe, probe.options.parse(given, probe.name), audit=False))
        manifest = write(built, folder)
        assert manifest["counts"]["splits"]["validation"] == 0
        for text in (shown(manifest, built, folder), (folder / "README.md").read_text()):
            assert ("validation has no rows" in text) == told


def line(relation: str, start: str, end: str, weight: str) -> str:
    ends = f"/r/{relation}", f"/c/en/{start}", f"/c/en/{end}"
    about = json.dumps({"license": "cc:by-sa/4.0", "weight": float(weight)})
    return "\t".join((f"/a/[{',/'.join(ends)}]", *ends, about)) + "\n"


@pytest.fixture(scope="module")
def nine_edges(session_cache: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the name of a ConceptNet of nine edges."""
    path = tmp_path_factory.mktemp("conceptnet") / "nine.csv"
    lines = [line(*words.split()) for words in NINE_EDGES.strip().splitlines()]
    path.write_text("".join(lines), encoding="utf-8")
    fetch("conceptnet", source=path, name="nine-edges")
    return "nine-edges"


@pytest.mark.slow
@pytest.mark.parametrize("relations", [("IsA", "HasProperty", "UsedFor"), ("IsA",), ("MadeOf",)])
@pytest.mark.parametrize("name", ["property_conjunction", "property_conjunction_but_not"])
def test_nine_edges_leave_no_question_about_properties(
    nine_edges: str, name: str, relations: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError, match=r"no question is left .*use a larger ConceptNet"):
        builders.build(name, conceptnet=nine_edges, relations=relations)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["body_part", "dish", "diet", "placed", "deed", "quality"])
def test_nine_edges_leave_no_candidate(nine_edges: str, family: str) -> None:
    with pytest.raises(UsageError, match="no candidate is left"):
        builders.build("always_never", conceptnet=nine_edges, families=(family,))


def test_words_without_neighbours_are_asked_with_random_distractors() -> None:
    """Random distractors are limited only if there are others: adverbs have no siblings."""
    options = {"pos": ("adverb",), "families": ("sibling", "random"), "train_rows": 0}
    counts = builders.build("wordnet_synonymy", audit=False, **options)
    families = {family for rows in counts.values() for family in rows["distractor_family"]}
    assert families == {"random"}
    assert sum(map(len, counts.values())) > 400


@pytest.mark.slow
def test_of_a_few_rows_no_verdict_is_given(tmp_path: Path) -> None:
    built = small("wordnet_definitions", 100)
    write(built, tmp_path / "few")
    manifest = json.loads((tmp_path / "few" / "manifest.json").read_text(encoding="utf-8"))
    scored = manifest["audit"]["scored_rows"]
    said = f"Too few rows were scored ({scored}, fewer than 100) to tell"
    text = shown(manifest, built, tmp_path / "few")
    assert said in text
    assert re.search(r"choice-only model .* few rows", text)
    card = (tmp_path / "few" / "README.md").read_text(encoding="utf-8")
    assert said in card
    assert "Shortcuts are right in" not in text + card
