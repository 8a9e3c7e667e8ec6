"""Medals: what the rule awards, and curves of several folders joined, with their medals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import evaluation
from evaluation.cli import main
from evaluation.studies.base import Finished
from evaluation.studies.curve.numbers import Medal, award, read_curves
from kbprobe.errors import UsageError
from kbprobe.format.sealed import write_sealed
from tests.evaluation.sample_curves import curve_runs, curves_of, summary_of
from tests.evaluation.test_curve_page import read

ROWS = 300


def runs_of(
    share: float, control: float | None = None, learner: str = "linear", **options: object
) -> list[Finished]:
    shares = {"probe": share, "perturbed": control or 0.0}
    given: dict[str, object] = {"sizes": (62, 125), "draws": 2, "rows": ROWS, "zero_shot": 0.55}
    return curve_runs(
        lambda rendering, *_: shares[rendering],
        renderings=("probe",) if control is None else ("probe", "perturbed"),
        learner=learner,
        **(given | options),  # type: ignore[arg-type]
    )


def medal_of(*runs: list[Finished]) -> Medal:
    """The medal of one model; the audit's strongest baseline is 58%, halfway is 79%."""
    return award(curves_of([run for several in runs for run in several])[0])


def test_success_is_above_the_floor_half_of_the_way_and_above_the_controls() -> None:
    medal = medal_of(runs_of(0.9, 0.6))
    assert (medal.award, medal.learner, medal.controls) == ("success", "linear", 1)
    assert medal.way == pytest.approx((0.9 - 0.58) / 0.42)
    assert medal.floor == "majority <b>&"
    assert "exceeds WS on each control" in medal.reason
    assert medal_of(runs_of(0.9)).controls == 0


@pytest.mark.parametrize(
    ("share", "control", "why"),
    [(0.75, 0.5, "40.5% of the way"), (0.9, 0.9, "is not clearly above WS on perturbed language")],
)
def test_what_is_above_the_floor_and_no_more_is_partial(
    share: float, control: float, why: str
) -> None:
    medal = medal_of(runs_of(share, control))
    assert medal.award == "partial"
    assert why in medal.reason


def test_zero_shot_or_fine_tuning_alone_is_partial() -> None:
    zero = medal_of(runs_of(0.5, zero_shot=0.9))
    assert zero.award == "partial"
    assert zero.reason.startswith("zero-shot accuracy is above")
    tuned = medal_of(runs_of(0.95, learner="full"))
    assert (tuned.award, tuned.learner, tuned.way) == ("partial", None, None)
    assert "no learner was run on the frozen model" in tuned.reason
    both = medal_of(runs_of(0.5), runs_of(0.95, learner="full", zero_shot=None))
    assert both.award == "partial"
    assert "WS of full is above" in both.reason


def test_none_is_what_the_floor_reaches() -> None:
    medal = medal_of(runs_of(0.58))
    assert medal.award == "none"
    assert medal.way == pytest.approx(0)
    below = medal_of(runs_of(0.5))
    assert below.award == "none"
    assert below.way is not None
    assert below.way < 0


def test_learners_without_a_model_raise_the_floor(save: Callable[..., Path]) -> None:
    folder = save("both", runs_of(0.75), runs_of(0.74, learner="mlm_baseline", model="none"))
    (medal,) = evaluation.study("curve", folder).tables["medals"]
    assert medal["model"] == "bert", "what needs no model gets no medal"
    assert (medal["floor"], medal["award"]) == ("WS of mlm_baseline", "none")
    assert medal_of(runs_of(0.75)).award == "partial"


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Write the curves of some runs into a folder, as the study does."""

    def write(name: str, *runs: list[Finished]) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        summary = summary_of([run for several in runs for run in several])
        write_sealed(folder / "curve.json", summary.model_dump_json(indent=2))
        return folder

    return write


def test_an_edited_curve_is_refused(save: Callable[..., Path]) -> None:
    folder = save("ages", runs_of(0.9, 0.5))
    path = folder / "curve.json"
    path.write_text(path.read_text().replace("0.9", "0.99"))
    with pytest.raises(UsageError, match=r"curve\.json was changed.*Run evaluate-probe curve"):
        read_curves(folder)


@pytest.mark.slow
def test_curves_of_several_folders_are_joined(
    save: Callable[..., Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ages = save("ages", runs_of(0.9, 0.5), runs_of(0.5, model="org/gpt"))
    objects = save("objects", runs_of(0.7, probe="objects"), runs_of(0.5, random_weights=0))
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as done:
        main(["curve", str(ages), str(objects / "curve.json"), "-o", str(out)])
    assert not done.value.code
    shown = capsys.readouterr()
    assert "success" in shown.out
    assert "curve.html, curve.json, curve.md" in shown.err
    _, joined = read_curves(out)
    summary = json.loads((out / "curve.json").read_text())
    assert [(medal["probe"], medal["model"]) for medal in summary["tables"]["medals"]] == [
        ("ages", "bert"),
        ("ages", "org/gpt"),
        ("objects", "bert"),
    ]
    assert [len(read_curves(place)[1]) for place in (ages, objects)] == [2, 2]
    assert len(joined) == 4
    text = (out / "curve.md").read_text()
    assert "◐ partial" in text
    assert "**Medals** compare with the floor" in text, "the rule"
    page = (out / "curve.html").read_text()
    assert read(page).tags["script"] == 0
    assert "✔ success" in page
    with pytest.raises(SystemExit):
        main(["curve", str(ages), "--json"])
    medals = json.loads(capsys.readouterr().out)["tables"]["medals"]
    assert medals[0]["award"] == "success"


def test_what_cannot_be_joined_is_refused(save: Callable[..., Path], tmp_path: Path) -> None:
    one, two = save("one", runs_of(0.7)), save("two", runs_of(0.8))
    with pytest.raises(UsageError, match=r"one and .*two both hold curves of bert on ages"):
        evaluation.study("curve", [one, two])
    with pytest.raises(UsageError, match="holds no summary of the study curve"):
        evaluation.study("curve", tmp_path)
    with pytest.raises(UsageError, match="at least one folder"):
        evaluation.study("curve", [])
    with pytest.raises(UsageError, match="--sizes is for runs"):
        evaluation.study("curve", one, sizes=(62,))
    random = save("random", runs_of(0.7, random_weights=0))
    assert evaluation.study("curve", random).tables["medals"] == []
