"""How many questions there are, and how little of them can be answered without reading them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kbprobe.format.manifest import MOST_SIMILAR
from tests.commands import run_here

pytestmark = pytest.mark.slow  # default builds

ManifestOf = Callable[[str, str], dict[str, Any]]
PROBES = ["wordnet_definitions", "wordnet_hypernymy", "wordnet_hyponymy", "wordnet_synonymy"]
SMALLER = {"wordnet_meronymy": 600, "wordnet_antonymy": 400}
"""Probes of other relations than the taxonomy, and the fewest rows of their test splits."""


@pytest.mark.parametrize("name", PROBES)
def test_choices_alone_do_not_answer_a_default_build(manifest_of: ManifestOf, name: str) -> None:
    """Fitted on 3,000 rows of train, scored on test: overall and within each family."""
    report = manifest_of(name, "default")["audit"]
    assert report["scored_split"] == "test"
    assert report["scored_rows"] >= 1_500
    assert 800 <= report["fitted_rows"] <= 3_000
    for baseline in ("choice-only model", "choice-only model, inverted"):
        cells = report["baselines"][baseline]
        assert {"all", "random"} <= cells.keys()
        assert 0.15 <= cells["all"]["accuracy"] <= 0.25
        # The interval is narrow enough for this to say something.
        assert cells["all"]["high"] - cells["all"]["low"] < 0.06
        for family, cell in cells.items():
            assert cell["rows"] < 500 or cell["accuracy"] < 0.28, (baseline, family)


@pytest.mark.parametrize("name", PROBES)
def test_nothing_is_flagged_in_a_default_build(manifest_of: ManifestOf, name: str) -> None:
    report = manifest_of(name, "default")["audit"]
    assert report["flags"] == []
    assert report["leakage"]["clusters in train and elsewhere"] == 0
    assert report["leakage"]["questions in train and elsewhere"] == 0
    assert all(0.18 < share < 0.22 for share in report["positions"])


@pytest.mark.parametrize(("name", "least"), SMALLER.items())
def test_other_relations_are_held_to_the_same_bars(
    manifest_of: ManifestOf, name: str, least: int
) -> None:
    report = manifest_of(name, "default")["audit"]
    assert report["flags"] == []
    assert report["scored_split"] == "test"
    assert report["scored_rows"] >= least
    assert not report["leakage"]["clusters in train and elsewhere"]
    for baseline in report["baselines"].keys() - {MOST_SIMILAR}:
        cells = report["baselines"][baseline]
        assert 0.15 <= cells["all"]["accuracy"] <= 0.25, baseline


@pytest.mark.parametrize(
    ("name", "rows", "pairs", "cluster"),
    [
        ("wordnet_definitions", 20_000, 10_000, 2),
        ("wordnet_hypernymy", 8_000, 5_000, 1.5),
        ("wordnet_hyponymy", 8_000, 4_500, 4),
        ("wordnet_synonymy", 33_000, 12_000, 1.5),
        ("wordnet_meronymy", 1_100, 500, 2),
    ],
)
def test_default_builds_are_large_and_near(
    manifest_of: ManifestOf, name: str, rows: int, pairs: int, cluster: float
) -> None:
    counts = manifest_of(name, "default")["counts"]
    assert counts["rows"] >= rows
    assert counts["question_answer_pairs"] >= pairs
    assert counts["mean_cluster"] >= cluster
    assert counts["rows"] == sum(counts["splits"].values())
    cells = counts["cells"].values()
    random = sum(families.get("random", 0) for families in cells)
    assert 0.1 < random / counts["rows"] <= 0.21
    assert counts["filled_choices"] == 0 or name == "wordnet_definitions"


def test_no_gold_of_a_default_build_exceeds_its_cap(
    built: Callable[..., Any], manifest_of: ManifestOf
) -> None:
    """At most 40 questions a gold and split, whatever the families that each is asked with."""
    import pyarrow.parquet as pq

    assert manifest_of("wordnet_hypernymy", "default")["request"]["options"]["cap_per_gold"] == 40
    for path in (built("wordnet_hypernymy", "default") / "data").glob("*.parquet"):
        rows = pq.read_table(path, columns=["question", "choice_nodes", "answer"]).to_pylist()
        asked: dict[str, set[str]] = {}
        for row in rows:
            gold = row["choice_nodes"][row["answer"]]
            asked.setdefault(gold, set()).add(row["question"])
        assert max(map(len, asked.values())) <= 40


PUBLISHED = [
    ("wordnet_hypernymy", 19_705),
    ("wordnet_hyponymy", 6_697),
    ("wordnet_synonymy", 28_254),
    ("wordnet_definitions", 31_380),
]


@pytest.mark.parametrize(("name", "unique"), PUBLISHED)
def test_unlimited_uniform_builds_reach_the_published_number_of_questions(
    manifest_of: ManifestOf, name: str, unique: int
) -> None:
    """Richardson & Sabharwal (TACL 2020), table 3: unique (question, answer) pairs."""
    counts = manifest_of(name, "published")["counts"]
    assert counts["question_answer_pairs"] >= unique
    assert counts["rows"] > counts["question_answer_pairs"]


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize("name", ["wordnet_hyponymy", "wordnet_meronymy", "object_comparison"])
def test_adversaries_are_at_chance_on_default_builds(built: Callable[..., Any], name: str) -> None:
    """Some probes: each takes half a minute."""
    done = run_here("release.cli", "check", built(name, "default"), "--deep")
    assert done.returncode == 0, done.stdout
