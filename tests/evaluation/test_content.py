"""What questions are about: its breakdown, and which rows the headline leaves out."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from evaluation.report.page import render
from evaluation.results.breakdown import headline_rows
from evaluation.results.pairs import read_pair
from evaluation.results.summary import cautions
from evaluation.results.types import Results
from evaluation.studies.base import finished_in
from evaluation.studies.counting import count_clusters
from evaluation.studies.pairing import pair_rows
from kbprobe.format.items import COMMON
from tests.evaluation.saved_runs import save_run

CONTENTS = [COMMON] * 6 + ["taxon", "person", "person", "place"]
CLUSTERS = ["a", "a", "b", "b", "c", "c", "d", "e", "e", "f"]
FAMILIES = ["random", "sister"] * 5
SAID = [0, 1, 0, 0, 1, 0, 1, 1, 0, 1]


def saved(
    folder: Path, said: list[int | None], contents: list[str | None] | None
) -> tuple[Results, pa.Table]:
    save_run(folder, folder.name, said, CLUSTERS, families=FAMILIES, contents=contents)
    return read_pair(folder)


def test_the_headline_leaves_names_out(tmp_path: Path) -> None:
    results, predictions = saved(tmp_path / "names", [*SAID], [*CONTENTS])
    common, _ = saved(tmp_path / "without", [*SAID[:6], None, None, None, None], None)
    metrics, other = results.metrics, common.metrics
    assert (metrics.items, metrics.scored, metrics.accuracy.n) == (10, 10, 6)
    # As if the other rows had not been there.
    for name in ("accuracy", "near_accuracy", "random_accuracy", "strict_accuracy", "table"):
        assert getattr(metrics, name) == getattr(other, name), name
    assert (metrics.clusters, metrics.brier, metrics.ties) == (3, other.brier, other.ties)
    shares = {one.name: (one.accuracy.value, one.accuracy.n) for one in metrics.by_content}
    assert shares == {
        COMMON: (pytest.approx(4 / 6), 6),
        "taxon": (0.0, 1),
        "person": (0.5, 2),
        "place": (0.0, 1),
    }
    assert predictions["content"].to_pylist() == CONTENTS
    said = "accuracy is of the 6 rows about common words: the 4 about taxa"
    assert any(line.startswith(said) for line in cautions(results))
    page = render(results, predictions)
    assert f"A{said[1:]}" in page
    assert "picks the right choice for 4 of 6 scored questions" in page
    assert "<h3>Content</h3>" in page


@pytest.mark.parametrize(
    "contents",
    [
        None,
        [COMMON] * 8 + ["taxon", "place"],
        ["person"] * 10,
        [COMMON, *["name"] * 9],
    ],
    ids=["older rows", "a fifth", "names alone", "nothing common was scored"],
)
def test_the_headline_is_of_all_rows_where_names_are_few_or_all(
    tmp_path: Path, contents: list[str | None] | None
) -> None:
    aside = contents is not None and contents[:2] == [COMMON, "name"]
    said = [None if aside else SAID[0], *SAID[1:]]
    results, predictions = saved(tmp_path / "run", said, contents)
    assert results.metrics.accuracy.n == results.metrics.scored == 10 - aside
    assert headline_rows(predictions) is predictions
    assert not any("common words" in line for line in cautions(results))
    assert ("content" in predictions.column_names) == (contents is not None)
    assert bool(results.metrics.by_content) == (contents is not None)


def test_names_count_whether_they_were_scored_or_not(tmp_path: Path) -> None:
    """Two models are compared on the same rows although one could not be scored on names."""
    said: list[int | None] = [*SAID[:6], None, None, None, None]
    results, _ = saved(tmp_path / "aside", said, [*CONTENTS])
    assert (results.metrics.scored, results.metrics.accuracy.n) == (6, 6)
    saved(tmp_path / "whole", [*SAID], [*CONTENTS])
    runs = [finished_in(tmp_path / name) for name in ("aside", "whole")]
    pairs = pair_rows(*runs)
    assert (pairs.first.num_rows, pairs.set_aside) == (6, 0)
    assert pairs.same.all()
    counts = count_clusters(runs)
    assert counts.asked.tolist() == [[2, 2]] * 3
    assert counts.right[:, 0].tolist() == counts.right[:, 1].tolist() == [1, 2, 1]
