"""Agreement of answers against counts by hand; labels, several probes, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.cli import main
from evaluation.studies.base import StudyRequest, summarise_folders
from evaluation.studies.compare import COMPARE
from evaluation.studies.compare.agreement import Agreement, kappas_of
from evaluation.studies.compare.record import CompareOptions, Comparison
from kbprobe.errors import UsageError
from tests.evaluation.saved_runs import save_run
from tests.evaluation.test_curve_page import read

Save = Callable[..., Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write the folder of a run whose predictions are given."""
    count = iter(range(100))

    def write(model: str, *arguments: Any, **named: Any) -> Path:
        return save_run(tmp_path / f"run{next(count)}", model, *arguments, **named)

    return write


def compare(*folders: Path, output: Path | None = None, **options: Any) -> Comparison:
    request = StudyRequest(COMPARE, options=CompareOptions(**options), output=output)
    summary: Comparison = summarise_folders(request, folders)
    return summary


def agreement(*folders: Path) -> Agreement:
    """Return the agreement of two runs."""
    (pair,) = compare(*folders).pairs
    return pair.agreement


def render(summary: Comparison) -> str:
    """Return the page of a summary."""
    return COMPARE.files(summary)["compare.html"]


def independent(
    seed: int, shares: tuple[float, ...], rows: int = 1_500, errors_alike: bool = False
) -> list[list[int]]:
    """Return answers of models that are right independently of each other."""
    random = np.random.default_rng(seed)
    tempting = random.integers(1, 3, rows)
    answers = []
    for share in shares:
        wrong = tempting if errors_alike else random.integers(1, 3, rows)
        answers.append(np.where(random.random(rows) < share, 0, wrong).tolist())
    return answers


def test_two_runs_by_hand(save: Save) -> None:
    one = save("one", [0, 0, 1, 2, 1, None], list("aabbcc"))
    two = save("two", [0, 1, 0, 1, 1, 0], list("aabbcc"))
    pair = agreement(one, two)
    assert pair.overlap.value == pytest.approx(2 / 5)
    # Both are right on 2 of 5 rows; errors of three choices fall on either of two.
    assert pair.expected_overlap == pytest.approx(0.4 * 0.4 + 0.6 * 0.6 / 2)
    assert pair.both_wrong == 2
    assert pair.error_overlap is not None
    assert (pair.error_overlap.value, pair.expected_error_overlap) == (0.5, 0.5)
    assert pair.kappa is not None
    # Agreement on being right: rows 0, 3 and 4; by chance .4 x .4 + .6 x .6.
    assert pair.kappa.value == pytest.approx((3 / 5 - 0.52) / (1 - 0.52))
    assert pair.kappa.low is None, "three clusters are too few for an interval"


def test_independent_models_share_what_is_expected(save: Save) -> None:
    clusters = [f"c{row // 3}" for row in range(1_500)]
    answers = independent(0, (0.8, 0.7))
    pair = agreement(*(save(f"m{n}", a, clusters) for n, a in enumerate(answers)))
    assert pair.overlap.low < pair.expected_overlap < pair.overlap.high
    assert pair.overlap.value > 0.5, "overlap is high without anything in common"
    assert pair.kappa is not None
    assert pair.kappa.low is not None
    assert pair.kappa.high is not None
    assert pair.kappa.low < 0 < pair.kappa.high
    assert pair.error_overlap is not None
    assert pair.error_overlap.low < 0.5 < pair.error_overlap.high


def test_errors_that_are_alike_are_found(save: Save) -> None:
    answers = independent(1, (0.4, 0.4), errors_alike=True)
    summary = compare(*(save(f"m{n}", a) for n, a in enumerate(answers)))
    pair = summary.pairs[0].agreement
    assert pair.error_overlap is not None
    assert pair.error_overlap.value == 1.0
    page = render(summary)
    assert "Same wrong choice more often than by chance: m0 and m1 (100.0%" in page


def test_two_choices_tell_nothing_of_errors(save: Save) -> None:
    folders = [save(m, [0, 1, 1], choices=("yes", "no")) for m in ("one", "two")]
    summary = compare(*folders)
    pair = summary.pairs[0].agreement
    assert (pair.both_wrong, pair.error_overlap, pair.expected_error_overlap) == (0, None, None)
    assert pair.expected_overlap == pytest.approx(1 / 9 + 4 / 9)
    assert "two wrong answers are the same" in render(summary)


def test_kappa_is_null_where_nothing_varies(save: Save) -> None:
    assert agreement(save("one", [0, 0]), save("two", [0, 0])).kappa is None
    assert np.isnan(kappas_of(np.array([[5.0, 0.0, 0.0, 0.0]]))).all()


def test_several_probes_and_their_mean(save: Save, tmp_path: Path) -> None:
    folders = []
    for number, probe in enumerate(("ages", "sizes")):
        answers = independent(number, (0.6, 0.5, 0.4))
        folders += [
            save(f"m{n}", a, probe=probe, ids=[f"{probe}{row}" for row in range(len(a))])
            for n, a in enumerate(answers)
        ]
    summary = compare(*folders, output=tmp_path / "out")
    assert [pair.probe for pair in summary.pairs] == ["ages"] * 3 + ["sizes"] * 3
    assert [run.group for run in summary.runs] == [0, 0, 0, 1, 1, 1]
    assert summary.difference[0][3] is None, "rows of two probes are not compared"
    assert summary.of_group(1).difference[0][0] == 0
    assert len(summary.mean) == 3
    for number, mean in enumerate(summary.mean):
        held = [summary.pairs[at].agreement for at in (number, number + 3)]
        assert mean.overlap.value == pytest.approx(np.mean([p.overlap.value for p in held]))
        widths = [p.overlap.high - p.overlap.low for p in held]
        assert mean.overlap.high - mean.overlap.low < max(widths), "two probes tell more than one"
    written = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert Comparison.model_validate(written) == summary
    page = (tmp_path / "out" / "compare.html").read_text()
    assert read(page).tags["script"] == 0
    assert "Mean over 2 probes" in page
    assert page == render(summary), "the same bytes each time"
    # Without one of the models on one of the probes there is no mean.
    assert compare(*folders[:-1]).mean == []


def test_labels_tell_runs_apart(save: Save) -> None:
    trained = {"learner": "full", "train": 500, "seed": 0}
    folders = [
        save("org/m", [0, 1]),
        save("org/m", [0, 1], random_weights=0),
        save("org/m", [1, 1], random_weights=1),
        save("org/m", [0, 0], finetuning=trained),
        save("org/m", [0, 1], finetuning=trained | {"train": 100}),
        save("none", [0, 1], finetuning=trained | {"learner": "esim"}),
        save("none", [0, 1]),
    ]
    one = compare(*folders)
    assert [run.label for run in one.runs] == [
        "org/m",
        "org/m, random weights 0",
        "org/m, random weights 1",
        "org/m, full, 500 rows",
        "org/m, full, 100 rows",
        "esim",
        "multiple_choice",
    ]
    (restarts,) = one.restarts
    assert restarts.labels == ["org/m, random weights 0", "org/m, random weights 1"]
    assert (restarts.accuracy, restarts.overlap) == (0.25, 0.5)
    assert restarts.deviation == pytest.approx(np.std([0.5, 0.0], ddof=1))
    assert "2 random initialisations of org/m" in render(one)


def test_the_same_run_twice_is_named_by_its_folders(save: Save) -> None:
    folders = [save("m", [0, 1]), save("m", [0, 1])]
    assert [run.label for run in compare(*folders).runs] == [f"m, {folder}" for folder in folders]


def test_a_probe_with_a_single_run_is_refused(save: Save) -> None:
    one = save("one", [0, 1], ids=["a", "b"])
    other = save("three", [0, 1], ids=["x", "y"], probe="other")
    with pytest.raises(UsageError, match=rf"{other} holds the only results on other \(test\)"):
        compare(one, one, other)


def test_the_former_command_prints_the_comparison(
    save: Save, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [str(save(m, a)) for m, a in (("one", [0, 1, 1]), ("two", [0, 2, 0]))]
    with pytest.raises(SystemExit) as stopped:
        main(["overlap", *folders])
    assert stopped.value.code == 0
    shown = capsys.readouterr()
    assert "overlap is now: evaluate-probe compare" in shown.err
    assert "33.3% (" in shown.out
    assert "fewer than 50 rows" in shown.out
