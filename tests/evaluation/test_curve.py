"""Learning curves: the numbers of synthetic runs against hand-computed ones."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import pytest

from evaluation.models.revisions import stem_of, step_of
from evaluation.results.analyses.fitting import Fitting
from evaluation.studies.curve import CURVE
from evaluation.studies.curve.document import remarks, sentences, untrained
from evaluation.studies.curve.numbers import PUBLISHED, code_length, weigh
from evaluation.studies.curve.record import CurveSummary, read_curves
from kbprobe.errors import UsageError
from kbprobe.format.sealed import write_sealed
from tests.evaluation.sample_curves import answers, curve_runs, finished_run, summary_of

SIZES = tuple(PUBLISHED)
ACCURACY = {62: 0.5, 125: 0.6, 250: 0.7, 500: 0.75, 1000: 0.8, 2000: 0.9, 4000: 0.85}
CONTROL = {62: 0.6, 125: 0.6, 250: 0.5, 500: 0.5, 1000: 0.5, 2000: 0.5, 4000: 0.5}


@pytest.fixture(scope="module")
def whole() -> CurveSummary:
    """One learner at the published sizes, with a control."""
    shares = {"probe": ACCURACY, "no_language": CONTROL}
    return summary_of(
        curve_runs(
            lambda rendering, size, _: shares[rendering][size],
            draws=1,
            renderings=("probe", "no_language"),
        )
    )


def test_ws_and_max_are_as_published(whole: CurveSummary) -> None:
    (one,) = whole.models
    curve = one.learners[0].own
    by_hand = 0.23 * 0.5 + 0.2 * 0.6 + 0.17 * 0.7 + 0.14 * 0.75 + 0.11 * 0.8 + 0.08 * 0.9
    by_hand += 0.07 * 0.85
    assert curve.ws.value == pytest.approx(by_hand)
    assert curve.ws.low < by_hand < curve.ws.high
    assert (curve.maximum.size, curve.maximum.accuracy.value) == (2000, pytest.approx(0.9))
    assert curve.maximum.accuracy.method == "two-way bootstrap, basic"
    assert one.weighting == "as published"
    assert [point.accuracy.value for point in curve.points] == pytest.approx(
        list(ACCURACY.values())
    )


def test_lang_sense_leaves_out_where_the_control_is_better(whole: CurveSummary) -> None:
    (found,) = whole.models[0].learners[0].lang_sense
    gains = {size: ACCURACY[size] - CONTROL[size] for size in SIZES}
    assert gains[62] < 0
    published = sum(PUBLISHED[size] * max(0, gain) for size, gain in gains.items())
    signed = sum(PUBLISHED[size] * gain for size, gain in gains.items())
    assert found.config == "no_language"
    assert found.value.value == pytest.approx(100 * published)
    assert found.difference.value == pytest.approx(100 * signed)
    assert found.difference.low < found.difference.value < found.difference.high


def test_what_the_first_rows_teach_is_told_from_what_was_known(whole: CurveSummary) -> None:
    first = whole.models[0].learners[0].first
    assert first.before is not None
    assert (first.size, first.before.value, first.after.value) == (62, 0.6, 0.5)
    assert first.taught.value == pytest.approx(-10)
    assert first.further.value == pytest.approx(35)
    alone = summary_of(curve_runs(lambda *_: 0.75, sizes=(62,), draws=2, zero_shot=None))
    first = alone.models[0].learners[0].first
    assert first.before is None
    assert first.taught.value == pytest.approx(25), "over chance"
    assert "There is no zero-shot accuracy" in untrained(alone.models[0])


def test_weights_are_renormalised_and_said_so() -> None:
    (one,) = summary_of(curve_runs(lambda *_: 0.5, sizes=(62, 250), draws=2)).models
    assert [held.weight for held in one.weights] == pytest.approx([0.23 / 0.4, 0.17 / 0.4])
    assert "renormalised without 125, 500, 1,000, 2,000, 4,000" in one.weighting
    assert one.left_out == [125, 500, 1000, 2000, 4000]
    assert any("left out, since train has fewer rows: 125" in text for text in remarks(one))
    weights, said = weigh([10, 62])
    assert weights == {10: 0.5, 62: 0.5}
    assert said.startswith("equal")
    assert sum(PUBLISHED.values()) == pytest.approx(1)


def test_means_are_over_draws_and_intervals_over_both() -> None:
    shares = (0.5, 0.6, 0.85)
    (one,) = summary_of(curve_runs(lambda _r, _s, draw: shares[draw], sizes=(62,))).models
    (point,) = one.learners[0].own.points
    assert point.draws == pytest.approx(list(shares))
    assert point.accuracy.value == pytest.approx(0.65)
    alone = (
        summary_of(curve_runs(lambda *_: 0.65, sizes=(62,), draws=1))
        .models[0]
        .learners[0]
        .own.points[0]
        .accuracy
    )
    spread, narrow = (e.high - e.low for e in (point.accuracy, alone))
    assert spread > 1.3 * narrow
    assert any("3 draws" in note for note in one.notes)


def test_selectivity_is_over_random_labels() -> None:
    shares = {"probe": 0.9, "random_labels": 0.55}
    runs = curve_runs(
        lambda rendering, *_: shares[rendering],
        sizes=(62, 125),
        draws=2,
        renderings=("probe", "random_labels"),
        block_bits=0.5,
    )
    (learner,) = summary_of(runs).models[0].learners
    assert [found.size for found in learner.selectivity] == [62, 125]
    for found in learner.selectivity:
        assert found.value.value == pytest.approx(35)
        assert found.value.low > 0
        assert found.seen == 0.25
    assert learner.lang_sense == []
    text = " ".join(sentences(summary_of(runs).models[0], learner))
    assert "selectivity" in text
    assert "25.0% of the test rows" in text


def test_the_code_length_is_the_uniform_first_block_and_the_learned_rest() -> None:
    runs = curve_runs(lambda *_: 0.7, sizes=(62, 125, 250), draws=2, block_bits=0.5)
    code = summary_of(runs).models[0].learners[0].own.code_length
    assert code is not None
    assert (code.rows, code.draws, code.uniform_bits) == (250, 2, 250)
    assert code.bits == pytest.approx(62 + 0.5 * (250 - 62))
    assert code.compression == pytest.approx(250 / code.bits)
    assert code.compression_deviation == pytest.approx(0)


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
    assert code is not None
    assert (code.draws, code.uniform_bits) == (2, 40)
    assert code.bits == pytest.approx(20 + 6)
    assert code.compression == pytest.approx((40 / 25 + 40 / 27) / 2)
    # Two rows of a block were set aside: they are in neither code.
    short = code_length({0: {10: fitting(8, 5.0), 20: last}}, 2.0)
    assert short is not None
    assert (short.rows, short.bits, short.compression_deviation) == (18, 25, None)
    assert code_length({0: {10: fitting(20, 5.0), 20: last}}, 2.0) is None
    assert code_length({0: {10: None, 20: None}}, 2.0) is None
    assert code_length({0: {10: last}}, 2.0) is None
    assert code_length({}, 2.0) is None


def test_baselines_come_strongest_first_and_chance_counts() -> None:
    (one,) = summary_of(curve_runs(lambda *_: 0.7, sizes=(62,), draws=2)).models
    assert [held.name for held in one.baselines] == ["majority <b>&", "the longest choice"]
    assert one.floor == ("majority <b>&", 0.58)
    weak = curve_runs(lambda *_: 0.7, sizes=(62,), draws=2, baselines={"weak": 0.2})
    assert summary_of(weak).models[0].floor == ("chance", 0.5)


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
    (found,) = summary.restarts
    assert found.models == 3
    assert (found.ws.mean, found.ws.deviation) == (pytest.approx(0.5), pytest.approx(0.05))
    assert [point.size for point in found.points] == [62, 125]
    assert found.trained_ws is not None
    assert found.trained_ws.value == pytest.approx(0.8)
    assert [one.random_init for one in summary.models] == [None, 0, 1, 2]
    assert "comes from pre-training" in " ".join(
        sentences(summary.models[0], summary.models[0].learners[0])
    )
    assert "pre-training" not in " ".join(
        sentences(summary.models[3], summary.models[3].learners[0])
    )


def test_revisions_of_a_model_make_a_series_by_training_step() -> None:
    runs = []
    for revision, share in (("step4000", 0.7), ("step1000", 0.5), ("main", 0.9)):
        runs += curve_runs(
            lambda *_, share=share: share, sizes=(62,), draws=1, revision=revision, model="org/m"
        )
    (series,) = summary_of(runs).series
    assert [(p.step, p.label) for p in series.points] == [(1000, "step1000"), (4000, "step4000")]
    assert [p.ws.value for p in series.points] == pytest.approx([0.5, 0.7])
    folders = curve_runs(lambda *_: 0.5, sizes=(62,), draws=1, model="runs/checkpoint-500")
    folders += curve_runs(lambda *_: 0.6, sizes=(62,), draws=1, model="runs/checkpoint-1500")
    (series,) = summary_of(folders).series
    assert series.model == "runs"
    assert [p.step for p in series.points] == [500, 1500]


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


def test_a_summary_is_read_again_as_written(whole: CurveSummary, tmp_path) -> None:
    write_sealed(tmp_path / "curve.json", whole.model_dump_json(indent=2))
    assert read_curves(tmp_path) == read_curves(tmp_path / "curve.json") == whole
    with pytest.raises(UsageError, match=r"holds no summary of the study curve.*Make it"):
        read_curves(tmp_path / "nowhere")
    held = json.loads(whole.model_dump_json())
    (tmp_path / "curve.json").write_text(json.dumps({**held, "schema_version": "9.0"}))
    with pytest.raises(UsageError, match=r"schema version 9\.0"):
        read_curves(tmp_path)
    (tmp_path / "curve.json").write_text('{"models": 1}')
    with pytest.raises(UsageError, match="lacks its checksums"):
        read_curves(tmp_path)


@pytest.mark.slow
def test_sentences_say_what_the_intervals_allow() -> None:
    def words(share: float, control: float) -> str:
        shares = {"probe": share, "perturbed": control}
        runs = curve_runs(
            lambda rendering, *_: shares[rendering],
            sizes=(62, 125),
            draws=2,
            renderings=("probe", "perturbed"),
            rows=300,
        )
        one = summary_of(runs).models[0]
        return " ".join(sentences(one, one.learners[0]))

    assert "the words of the question matter" in words(0.9, 0.5)
    assert "no evidence that the words" in words(0.7, 0.7)
    assert "the control is the easier of the two" in words(0.5, 0.9)
    assert "raise accuracy by" in words(0.9, 0.5)
    assert "not clearly above the strongest baseline" in words(0.5, 0.5)
    # The first point is not wholly above the floor of 58%, WS is, and nothing grows.
    flat = summary_of(curve_runs(lambda *_: 0.615, draws=2, rows=300)).models[0]
    text = " ".join(sentences(flat, flat.learners[0]))
    assert "was learnt from these rows." in text
    grown = summary_of(curve_runs(lambda _r, size, _d: 0.5 + size / 9000, draws=2)).models[0]
    assert "learnt from the probe's own rows" in " ".join(sentences(grown, grown.learners[0]))


def test_sizes_are_taken_from_the_runs_whatever_their_order() -> None:
    runs = curve_runs(lambda _r, size, _d: 0.5 + size / 1000, sizes=(62, 125, 250), draws=1)
    (one,) = summary_of(runs[::-1]).models
    assert one.sizes == [62, 125, 250]
    values = [point.accuracy.value for point in one.learners[0].own.points]
    assert all(before < after for before, after in pairwise(values))


def test_models_without_a_summary_of_their_own_probe_are_kept_apart() -> None:
    runs = curve_runs(lambda *_: 0.5, sizes=(62,), draws=1)
    runs += curve_runs(lambda *_: 0.6, sizes=(62,), draws=1, probe="objects")
    assert [one.probe for one in summary_of(runs).models] == ["ages", "objects"]
    lone = finished_run(answers(0.5), train=62, train_seed=0, learner="linear")
    assert summary_of([lone]).models[0].zero_shot == []
