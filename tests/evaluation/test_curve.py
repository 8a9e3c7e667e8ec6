"""Learning curves: the numbers of synthetic runs against hand-computed ones."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest

from evaluation.models.revisions import stem_of, step_of
from evaluation.results.analyses.fitting import Fitting
from evaluation.studies.base import Finished
from evaluation.studies.curve import CURVE
from evaluation.studies.curve.numbers import (
    PUBLISHED,
    ModelCurves,
    code_length,
    read_curves,
    report,
    weigh,
)
from evaluation.studies.table import StudyTables
from kbprobe.document import Chart
from kbprobe.errors import UsageError
from kbprobe.format.sealed import write_sealed
from tests.evaluation.sample_curves import (
    answers,
    curve_runs,
    curves_of,
    finished_run,
    summary_of,
)

SIZES = tuple(PUBLISHED)
ACCURACY = {62: 0.5, 125: 0.6, 250: 0.7, 500: 0.75, 1000: 0.8, 2000: 0.9, 4000: 0.85}
CONTROL = {62: 0.6, 125: 0.6, 250: 0.5, 500: 0.5, 1000: 0.5, 2000: 0.5, 4000: 0.5}


@pytest.fixture(scope="module")
def whole() -> ModelCurves:
    """One learner at the published sizes, with a control."""
    shares = {"probe": ACCURACY, "no_language": CONTROL}
    (model,) = curves_of(
        curve_runs(
            lambda rendering, size, _: shares[rendering][size],
            draws=1,
            renderings=("probe", "no_language"),
        )
    )
    return model


def test_ws_and_max_are_as_published(whole: ModelCurves) -> None:
    (curve,) = whole.own
    by_hand = 0.23 * 0.5 + 0.2 * 0.6 + 0.17 * 0.7 + 0.14 * 0.75 + 0.11 * 0.8 + 0.08 * 0.9
    by_hand += 0.07 * 0.85
    assert curve.ws.value == pytest.approx(by_hand)
    assert curve.ws.low < by_hand < curve.ws.high
    assert curve.max_size == 2000
    assert curve.maximum.value == pytest.approx(0.9)
    assert curve.maximum.method == "two-way bootstrap, basic"
    assert whole.about.weighting == "as published"
    accuracies = [point.accuracy.value for point in whole.points(curve)]
    assert accuracies == pytest.approx(list(ACCURACY.values()))


def test_lang_sense_leaves_out_where_the_control_is_better(whole: ModelCurves) -> None:
    control = whole.curves[1]
    gains = {size: ACCURACY[size] - CONTROL[size] for size in SIZES}
    assert gains[62] < 0
    published = sum(PUBLISHED[size] * max(0, gain) for size, gain in gains.items())
    signed = sum(PUBLISHED[size] * gain for size, gain in gains.items())
    assert control.rendering == "no_language"
    assert control.lang_sense is not None
    assert control.lang_sense.value == pytest.approx(100 * published)
    assert control.lost is not None
    assert control.lost.value == pytest.approx(100 * signed)
    assert control.lost.low < control.lost.value < control.lost.high


def test_what_the_first_rows_teach_is_told_from_what_was_known(whole: ModelCurves) -> None:
    assert whole.about.zero_shot is not None
    assert whole.about.zero_shot.value == 0.6
    assert whole.own[0].taught.value == pytest.approx(-10)
    assert whole.own[0].further.value == pytest.approx(35)
    (alone,) = curves_of(curve_runs(lambda *_: 0.75, sizes=(62,), draws=2, zero_shot=None))
    assert alone.about.zero_shot is None
    assert alone.own[0].taught.value == pytest.approx(25), "over chance"


def test_weights_are_renormalised() -> None:
    summary = summary_of(curve_runs(lambda *_: 0.5, sizes=(62, 250), draws=2))
    weights = [point["weight"] for point in summary.tables["runs"]]
    assert weights == [None, pytest.approx(0.23 / 0.4), pytest.approx(0.17 / 0.4)]
    assert summary.tables["models"][0]["left_out"] == [125, 500, 1000, 2000, 4000]
    notes = " ".join(summary.notes)
    assert "renormalised without 125, 500, 1,000, 2,000, 4,000" in notes
    assert "left out, since train has fewer rows: 125" in notes
    equal, how = weigh([10, 62])
    assert equal == {10: 0.5, 62: 0.5}
    assert how.startswith("equal")
    assert sum(PUBLISHED.values()) == pytest.approx(1)


def test_means_are_over_draws_and_intervals_over_both() -> None:
    shares = (0.5, 0.6, 0.85)
    summary = summary_of(curve_runs(lambda _r, _s, draw: shares[draw], sizes=(62,)))
    point = summary.tables["runs"][1]
    assert point["draws"] == pytest.approx(list(shares))
    assert point["accuracy"].value == pytest.approx(0.65)
    alone = summary_of(curve_runs(lambda *_: 0.65, sizes=(62,), draws=1)).tables["runs"][1]
    spread, narrow = (row["accuracy"].high - row["accuracy"].low for row in (point, alone))
    assert spread > 1.3 * narrow
    assert any("3 draws" in note for note in summary.notes)


def test_selectivity_is_over_random_labels() -> None:
    shares = {"probe": 0.9, "random_labels": 0.55}
    runs = curve_runs(
        lambda rendering, *_: shares[rendering],
        sizes=(62, 125),
        draws=2,
        renderings=("probe", "random_labels"),
        block_bits=0.5,
    )
    (model,) = curves_of(runs)
    points = [point for point in model.runs if point.rendering == "random_labels"]
    assert [point.size for point in points] == [62, 125]
    for point in points:
        assert point.selectivity is not None
        assert point.selectivity.value == pytest.approx(35)
        assert point.selectivity.low > 0
        assert point.seen == 0.25
    assert all(curve.lang_sense is None for curve in model.curves)


def test_the_code_length_is_the_uniform_first_block_and_the_learned_rest() -> None:
    runs = curve_runs(lambda *_: 0.7, sizes=(62, 125, 250), draws=2, block_bits=0.5)
    (curve,) = curves_of(runs)[0].own
    assert (curve.coded_rows, curve.coded_draws, curve.uniform_bits) == (250, 2, 250)
    bits = 62 + 0.5 * (250 - 62)
    assert curve.online_bits == pytest.approx(bits)
    assert curve.compression == pytest.approx(250 / bits)
    assert curve.compression_deviation == pytest.approx(0)


def test_code_length_takes_the_draws_of_all_sizes_alone() -> None:
    def fitting(rows: int, bits: float | None) -> Fitting:
        return Fitting(train_loss=0.1, next_rows=rows, next_bits=bits)

    last = fitting(0, None)
    draws = {
        0: {10: fitting(10, 5.0), 20: last},
        1: {10: fitting(10, 7.0), 20: last},
        2: {10: fitting(0, None)},
    }
    code = code_length(draws, math.log2(4))
    assert (code["coded_draws"], code["uniform_bits"]) == (2, 40)
    assert code["online_bits"] == pytest.approx(20 + 6)
    assert code["compression"] == pytest.approx((40 / 25 + 40 / 27) / 2)
    # Two rows of a block were skipped: they are in neither code.
    short = code_length({0: {10: fitting(8, 5.0), 20: last}}, 2.0)
    assert (short["coded_rows"], short["online_bits"]) == (18, 25)
    assert short["compression_deviation"] is None
    for incomplete in ({10: fitting(20, 5.0), 20: last}, {10: None, 20: None}, {10: last}):
        assert code_length({0: incomplete}, 2.0) == {}
    assert code_length({}, 2.0) == {}


def test_baselines_come_strongest_first_and_chance_counts() -> None:
    (model,) = curves_of(curve_runs(lambda *_: 0.7, sizes=(62,), draws=2))
    names = [baseline.name for baseline in model.baselines]
    assert names == ["majority <b>&", "the longest choice"]
    assert (model.about.floor, model.about.floor_accuracy) == ("majority <b>&", 0.58)
    (weak,) = curves_of(curve_runs(lambda *_: 0.7, sizes=(62,), draws=2, baselines={"weak": 0.2}))
    assert (weak.about.floor, weak.about.floor_accuracy) == ("chance", 0.5)


def test_random_restarts_are_put_beside_the_trained_model() -> None:
    runs = curve_runs(lambda *_: 0.8, sizes=(62, 125), draws=1, zero_shot=None)
    for seed, share in enumerate((0.45, 0.5, 0.55)):
        runs += curve_runs(
            lambda *_, share=share: share,
            sizes=(62, 125),
            draws=1,
            zero_shot=None,
            random_weights=seed,
        )
    summary = summary_of(runs)
    rows = summary.tables["restarts"]
    assert [(row["size"], row["models"]) for row in rows] == [(None, 3), (62, 3), (125, 3)]
    assert (rows[0]["mean"], rows[0]["deviation"]) == (pytest.approx(0.5), pytest.approx(0.05))
    assert rows[0]["trained"].value == pytest.approx(0.8)
    assert [row["random_init"] for row in summary.tables["models"]] == [None, 0, 1, 2]
    # Each model has a sentence on the untrained model, and one on its learner.
    assert "comes from pre-training" in summary.sentences[1]
    assert "pre-training" not in " ".join(summary.sentences[2:])


def test_revisions_of_a_model_make_a_series_by_training_step() -> None:
    runs = []
    for revision, share in (("step4000", 0.7), ("step1000", 0.5), ("main", 0.9)):
        runs += curve_runs(
            lambda *_, share=share: share, sizes=(62,), draws=1, revision=revision, model="org/m"
        )
    charts = _series(summary_of(runs))
    assert [chart.panels[0].lines[0].x for chart in charts] == [[1000, 4000]]
    folders = curve_runs(lambda *_: 0.5, sizes=(62,), draws=1, model="runs/checkpoint-500")
    folders += curve_runs(lambda *_: 0.6, sizes=(62,), draws=1, model="runs/checkpoint-1500")
    (chart,) = _series(summary_of(folders))
    assert chart.panels[0].title == "runs, linear"
    (line, _) = chart.panels[0].lines
    values = [number.value for number in line.y if not isinstance(number, float)]
    assert values == pytest.approx([0.5, 0.6])


def _series(summary: StudyTables) -> list[Chart]:
    assert summary.document is not None
    sections = {section.title: section for section in summary.document.sections}
    return [part for part in sections["By training step"].parts if isinstance(part, Chart)]


def test_steps_are_read_off_names() -> None:
    names = ("global_step120", "step143000", "ckpt_7", "stage2-step9000-tokens38B", "9000")
    assert [step_of(name) for name in names] == [120, 143000, 7, 9000, 9000]
    assert step_of("step1.5k") == 1500
    assert [step_of(name) for name in ("main", "bert-base-uncased", "v1.5")] == [None, None, None]
    assert stem_of("a/checkpoint-10") == "a"


def test_what_is_printed_says_how_few_draws_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    summary = summary_of(curve_runs(lambda *_: 0.7, sizes=(62,), draws=1))
    CURVE.display(summary)
    shown = capsys.readouterr().out
    assert "a single draw of rows" in shown
    assert "70.0" in shown


def test_a_summary_is_read_again_as_written(whole: ModelCurves, tmp_path: Path) -> None:
    summary = report([whole])
    write_sealed(tmp_path / "curve.json", summary.model_dump_json(indent=2))
    assert read_curves(tmp_path)[1] == read_curves(tmp_path / "curve.json")[1] == [whole]
    with pytest.raises(UsageError, match=r"holds no summary of the study curve.*Make it"):
        read_curves(tmp_path / "nowhere")
    content = json.loads(summary.model_dump_json())
    (tmp_path / "curve.json").write_text(json.dumps({**content, "schema_version": "9.0"}))
    with pytest.raises(UsageError, match=r"schema version 9\.0"):
        read_curves(tmp_path)


@pytest.mark.slow
def test_sentences_say_what_the_intervals_allow() -> None:
    def words(runs: list[Finished]) -> str:
        return " ".join(summary_of(runs).sentences)

    assert "not clearly above the strongest baseline" in words(curve_runs(lambda *_: 0.5, draws=2))
    # The first point is not wholly above the floor of 58%, WS is, and nothing grows.
    flat = curve_runs(lambda *_: 0.615, draws=2, rows=300)
    assert "was learnt from these rows." in words(flat)
    grown = curve_runs(lambda _r, size, _d: 0.5 + size / 9000, draws=2)
    assert "learnt from the probe's own rows" in words(grown)


def test_sizes_are_taken_from_the_runs_whatever_their_order() -> None:
    runs = curve_runs(lambda _r, size, _d: 0.5 + size / 1000, sizes=(62, 125, 250), draws=1)
    (model,) = curves_of(runs[::-1])
    points = model.points(model.own[0])
    assert [point.size for point in points] == [62, 125, 250]
    assert all(a.accuracy.value < b.accuracy.value for a, b in pairwise(points))


def test_models_without_a_summary_of_their_own_probe_are_kept_apart() -> None:
    runs = curve_runs(lambda *_: 0.5, sizes=(62,), draws=1)
    runs += curve_runs(lambda *_: 0.6, sizes=(62,), draws=1, probe="objects")
    assert [model.place["probe"] for model in curves_of(runs)] == ["ages", "objects"]
    lone = finished_run(answers(0.5), train=62, train_seed=0, learner="linear")
    assert curves_of([lone])[0].about.zero_shot is None
