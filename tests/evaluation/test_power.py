"""Power against textbook formulas, against simulations of the test itself, and by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from evaluation.cli import main
from evaluation.results.intervals import paired_test
from evaluation.results.pairs import (
    Spread,
    assumed_spread,
    clusters_needed,
    least_difference,
    observed_spread,
    power_of,
    row_correlation,
)
from evaluation.studies.base import StudyRequest, summarise_folders
from evaluation.studies.power import POWER, PairPower, PowerOptions
from evaluation.studies.table import StudyTables
from kbprobe.arrays import Bools, Ints
from kbprobe.errors import UsageError
from tests.evaluation.saved_runs import save_run
from tests.evaluation.test_curve_page import read

LEVEL = 0.05


def draw(
    generator: np.random.Generator, sizes: Ints, difference: float, discordant: float, alike: float
) -> tuple[Bools, Bools, Ints]:
    """Draw two models' answers; a share of clusters has the same answers in all its rows."""
    cluster = np.repeat(np.arange(sizes.size), sizes)
    shared = (generator.random(sizes.size) < alike)[cluster]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    uniform = generator.random(cluster.size)
    uniform = np.where(shared, uniform[starts][cluster], uniform)
    better, worse = (discordant + difference) / 2, (discordant - difference) / 2
    also_right = uniform < better
    right = (uniform >= better) & (uniform < better + worse)
    both = uniform > 0.8
    return right | both, also_right | both, cluster


def found_share(
    sizes: Ints, difference: float, discordant: float, alike: float, rounds: int
) -> float:
    """Return how often the test that `compare` uses finds a difference."""
    generator, found = np.random.default_rng(0), 0
    for _ in range(rounds):
        right, also_right, cluster = draw(generator, sizes, difference, discordant, alike)
        found += paired_test(right, also_right, cluster, 0).p_value <= LEVEL
    return found / rounds


def test_rows_as_clusters_are_connors_formula() -> None:
    for discordant, difference in ((0.2, 0.02), (0.5, 0.1), (0.05, 0.03)):
        expected = 1.959964 * math.sqrt(discordant)
        expected += 0.841621 * math.sqrt(discordant - difference**2)
        needed = clusters_needed(difference, Spread(discordant, 1.0), 0.8, LEVEL)
        assert needed == pytest.approx((expected / difference) ** 2, abs=1.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "difference", "discordant", "alike"),
    [((1,), 0.08, 0.3, 0.0), ((4,), 0.1, 0.3, 0.4), ((1, 2, 9), 0.12, 0.4, 0.3)],
)
def test_the_test_finds_the_difference_as_often_as_it_says(
    sizes: tuple[int, ...], difference: float, discordant: float, alike: float
) -> None:
    """With as many clusters as are needed for a power of 80%."""
    spread = assumed_spread(np.array(sizes), discordant, difference, alike)
    needed = clusters_needed(difference, spread, 0.8, LEVEL)
    drawn = np.resize(np.array(sizes), needed)
    # The standard error of 400 rounds is 2 points; resamples of few clusters vary too little.
    assert found_share(drawn, difference, discordant, alike, 400) == pytest.approx(0.8, abs=0.06)
    assert float(power_of(needed, difference, spread, LEVEL)) == pytest.approx(0.8, abs=0.01)


def test_what_is_assumed_of_models_is_measured_of_them() -> None:
    sizes = np.resize(np.array([1, 2, 9]), 30_000)
    right, also_right, cluster = draw(np.random.default_rng(1), sizes, 0.12, 0.4, 0.3)
    assumed = assumed_spread(sizes, 0.4, 0.12, 0.3)
    measured = observed_spread(right, also_right, cluster)
    assert measured.null_variance == pytest.approx(assumed.null_variance, rel=0.05)
    assert measured.unevenness == assumed.unevenness
    assert row_correlation(right, also_right, cluster) == pytest.approx(0.3, abs=0.03)
    assert row_correlation(right, also_right, np.arange(right.size)) is None


def test_the_least_difference_has_the_power() -> None:
    spread = Spread(0.3, 1.2)
    least = least_difference(500, spread, 0.8, LEVEL)
    assert least is not None
    assert float(power_of(500, least, spread, LEVEL)) == pytest.approx(0.8, abs=1e-6)
    assert clusters_needed(least, spread, 0.8, LEVEL) == pytest.approx(500, abs=1)
    assert least_difference(2, Spread(3.0, 1.0), 0.8, LEVEL) is None


def pair_of(summary: StudyTables) -> PairPower:
    (row,) = summary.tables["pairs"]
    return PairPower(**{name: row[name] for name in PairPower.model_fields})


def test_of_results(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    sizes = np.full(200, 2)
    right, also_right, cluster = draw(generator, sizes, 0.1, 0.3, 0.2)
    names = [f"c{number}" for number in cluster]
    folders = [
        save_run(tmp_path / model, model, np.where(held, 0, 1).tolist(), names)
        for model, held in (("one", right), ("two", also_right))
    ]
    options = PowerOptions(difference=5.0)
    output = tmp_path / "out"
    summary: StudyTables = summarise_folders(
        StudyRequest(POWER, options=options, output=output), folders
    )
    pair, (probe,) = pair_of(summary), summary.tables["probes"]
    assert (probe["rows"], probe["clusters"]) == (400, 200)
    assert (pair.first, pair.second) == ("one", "two")
    assert pair.difference == pytest.approx(100 * (also_right.mean() - right.mean()))
    assert pair.agreement == pytest.approx((right == also_right).mean())
    spread = observed_spread(right, also_right, cluster)
    assert pair.clusters_needed == clusters_needed(0.05, spread, 0.8, LEVEL)
    assert pair.rows_needed == 2 * pair.clusters_needed
    assert pair.power < 0.8 < float(power_of(pair.clusters_needed, 0.05, spread, LEVEL)) + 1e-9
    written = json.loads((output / "power.json").read_text())
    assert written["tables"] == summary.tables
    page = (output / "power.html").read_text()
    assert read(page).tags["script"] == 0
    assert f"{pair.clusters_needed:,} clusters" in page


def test_two_models_that_get_the_same_rows_right_show_no_power(tmp_path: Path) -> None:
    right, names = [0, 1] * 20, [f"c{number}" for number in range(40)]
    folders = [save_run(tmp_path / model, model, right, names) for model in ("one", "two")]
    with pytest.raises(UsageError, match="one and two get the same 40 rows right"):
        summarise_folders(
            StudyRequest(POWER, options=PowerOptions(), output=tmp_path / "out"), folders
        )


def test_of_a_probe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probe = tmp_path / "probe.jsonl"
    rows = [
        {
            "id": f"i{row}",
            "question": f"q{row}",
            "choices": {"text": ["a", "b"], "label": ["A", "B"]},
            "answer": 0,
            "answerKey": "A",
            "setup": "mc_qa",
            "cluster": f"c{row // 2}",
        }
        for row in range(40)
    ]
    probe.write_text("\n".join(map(json.dumps, rows)))
    words = ["power", str(probe), "--difference", "10", "--accuracy", "0.6", "--agreement", "0.7"]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--correlation", "0.2", "--json"])
    assert ended.value.code == 0
    pair = pair_of(StudyTables.model_validate_json(capsys.readouterr().out))
    spread = assumed_spread(np.full(20, 2), 0.3, 0.1, 0.2)
    # A cluster's two rows: (0.3 - 0.01) / 2 * (1 + 0.2), and 0.01 about 0.
    assert spread.null_variance == pytest.approx(0.184)
    assert pair.clusters_needed == clusters_needed(0.1, spread, 0.8, LEVEL)
    with pytest.raises(SystemExit) as ended:
        main([*words[:-1], "0.95"])
    assert ended.value.code == 2
    assert "give an --agreement between" in capsys.readouterr().err


def test_assumptions_that_cannot_be(tmp_path: Path) -> None:
    save_run(tmp_path / "lone", "lone", [0, 1])
    with pytest.raises(UsageError, match="the only results on made"):
        summarise_folders(StudyRequest(POWER, options=PowerOptions()), [tmp_path / "lone"])
    probe = tmp_path / "p.jsonl"
    probe.write_text(
        json.dumps(
            {
                "id": "i",
                "question": "q",
                "choices": {"text": ["a", "b"], "label": ["A", "B"]},
                "answer": 0,
                "answerKey": "A",
                "setup": "mc_qa",
            }
        )
    )
    with pytest.raises(UsageError, match=r"lower --accuracy, at most 0\.98"):
        summarise_folders(StudyRequest(POWER, options=PowerOptions(accuracy=0.99)), [probe])
