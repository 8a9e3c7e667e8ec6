"""Score cards of a suite: means above chance, contamination, what is refused and exported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("torch", reason="scoring models needs torch")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

import evaluation
from builders.cli import main as build
from evaluation.cli import main
from evaluation.exports.command import export_command
from evaluation.results.intervals import corrected, linear, mean_of_independent, sum_of_independent
from evaluation.results.types import Estimate, read_results
from evaluation.results.words import limit_remark
from evaluation.studies.scorecard import Scorecard, _similarity, card_name
from kbprobe.errors import KbprobeError, UsageError
from tests.evaluation import tiny_causal
from tests.evaluation.test_exports import SCHEMAS

MODEL = "tiny-gpt2"
RECIPE = """
suite: few
output: few
format: jsonl
options: {test_rows: 120, train_rows: 60, validation_rows: 20, controls: false, variants: false}
probes:
  - probe: age_comparison
  - probe: multihop_comparison
  - {probe: wordnet_antonymy, options: {pos: [adjective]}}
"""
PROBES = ("age_comparison", "multihop_comparison", "wordnet_antonymy")
CHANCE = {"age_comparison": 1 / 2, "multihop_comparison": 1 / 3, "wordnet_antonymy": 1 / 5}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a suite, its sibling, and a model; it is the working directory."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "few.yaml").write_text(RECIPE)
    tiny_causal.write("gpt2", folder / MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for seed in ("0", "7"):
            with pytest.raises(SystemExit) as done:
                build(["--recipe", "few.yaml", "--seed", seed, "--no-audit"])
            assert done.value.code == 0
        yield folder


@pytest.fixture(scope="module")
def card(world: Path) -> Scorecard:
    """The score card with contamination, written to a folder."""
    made = evaluation.study("scorecard", "few", MODEL, fresh="few-seed-7", output="card")
    assert isinstance(made, Scorecard)
    return made


def predictions(world: Path, *place: str) -> Any:
    return evaluation.load(world.joinpath("card", *place, MODEL)).to_pandas()


def test_the_score_is_the_mean_above_chance(world: Path, card: Scorecard) -> None:
    (model,) = card.models
    assert (card.suite, card.standard) == ("few, seed 0", False)
    scores = []
    for one, name in zip(model.probes, PROBES, strict=True):
        rows = predictions(world, name)
        chance, right = CHANCE[name], rows.correct.mean()
        scores.append((right - chance) / (1 - chance))
        assert one.probe == name
        assert one.accuracy.value == pytest.approx(right)
        assert one.chance == pytest.approx(chance)
        assert one.score.value == pytest.approx(scores[-1])
        assert one.score.low < one.score.value < one.score.high
        assert (world / "card" / one.folder / "results.json").is_file()
        if one.strict_accuracy is not None:
            every = rows.groupby("cluster").correct.all().mean()
            assert one.strict_accuracy.value == pytest.approx(every)
    assert model.overall.score.value == pytest.approx(mean(scores))
    antonyms = predictions(world, "wordnet_antonymy")
    is_random = antonyms.distractor_family == "random"
    assert model.overall.near is not None
    near = antonyms[~is_random].correct.mean()
    assert model.overall.near.value == pytest.approx((near - 0.2) / 0.8)


def test_similarity_is_left_out_of_a_score(world: Path, card: Scorecard) -> None:
    (model,) = card.models
    beyond = []
    for part in model.probes:
        metrics = read_results(world / "card" / part.folder).metrics
        if metrics.similarity is None:
            assert part.beyond_similarity is None
            continue
        less = metrics.accuracy.value - metrics.similarity.accuracy.value
        assert part.beyond_similarity is not None
        assert part.beyond_similarity.value == pytest.approx(less / (1 - part.chance))
        beyond.append(part.beyond_similarity.value)
    assert beyond
    assert model.overall.beyond is not None
    assert model.overall.beyond.value == pytest.approx(mean(beyond))


def test_earlier_results_without_similarity_are_compared_with_it(
    world: Path, card: Scorecard
) -> None:
    antonyms = card.models[0].probes[-1]
    found = evaluation.load(world / "card" / antonyms.folder)
    metrics = found.results.metrics.model_copy(update={"similarity": None})
    earlier = found.results.model_copy(update={"metrics": metrics})
    similarity = found.results.metrics.similarity
    assert similarity is not None
    measured = _similarity(earlier, found.predictions)
    assert measured == similarity.model_copy(update={"differences": {}})


def test_contamination_is_the_difference_to_rows_of_other_clusters(
    world: Path, card: Scorecard
) -> None:
    found = card.models[0].contamination
    assert found is not None
    assert found.suite == "few, seed 7"
    differences = []
    for one in found.probes:
        rows, chance = predictions(world, "fresh", one.probe), CHANCE[one.probe]
        held = [
            json.loads(line)["cluster"]
            for split in ("train", "validation", "test")
            for line in (world / "few" / one.probe / "data" / f"{split}.jsonl").open()
        ]
        new = rows[~rows.cluster.isin(held)]
        assert (one.fresh_rows, one.fresh_clusters) == (len(new), new.cluster.nunique())
        assert one.fresh_clusters >= 30
        assert one.fresh.value == pytest.approx((new.correct.mean() - chance) / (1 - chance))
        differences.append(100 * (one.score.value - one.fresh.value))
    assert {one.probe for one in found.probes} | {*found.left_out} == {*PROBES}
    assert found.difference is not None
    assert found.difference.value == pytest.approx(mean(differences))
    assert found.difference.low < found.difference.value < found.difference.high


@pytest.mark.slow
def test_too_few_fresh_clusters_are_not_compared(world: Path) -> None:
    made = evaluation.study("scorecard", "few", MODEL, fresh="few-seed-7", limit=20)
    assert (made.suite, made.standard) == ("few, seed 0, a sample", False)
    found = made.models[0].contamination
    assert (found.difference, found.probes, found.left_out) == (None, [], [*PROBES])


def test_the_page_and_the_badge_show_the_score(world: Path, card: Scorecard) -> None:
    score = f"{100 * card.models[0].overall.score.value:.1f}".replace("-", "−")
    badge = (world / "card" / "badge.md").read_text()
    assert "| few, seed 0 | score | near | random | strict |" in badge
    assert f"| {MODEL} | {score} (" in badge
    page = (world / "card" / "scorecard.md").read_text()
    assert f"{MODEL}: {score} on few, seed 0" in page
    assert "not scores on the standard suite" in page
    assert "Scores on the suite, and on rows of few, seed 7" in page
    assert "**Beyond similarity**: accuracy less" in page


@pytest.mark.slow
def test_every_eval_ever_gets_the_means_and_the_runs(world: Path, card: Scorecard) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    words = ["card", "--to", "every-eval-ever", "--organization", "us", "-o", "out"]
    done = CliRunner().invoke(export_command, words)
    assert done.exception is None, done.output
    first, *rest = map(Path, done.output.splitlines())
    assert len(rest) == 2 * len(PROBES)  # none of the sibling
    schema = json.loads((SCHEMAS / "eval.schema.json").read_text())
    about = json.loads(first.read_text())
    jsonschema.validate(about, schema)
    means = {one["evaluation_result_id"]: one for one in about["evaluation_results"]}
    overall = card.models[0].overall
    assert means["few, seed 0/score"]["score_details"]["score"] == overall.score.value
    assert means.keys() == {f"few, seed 0/{name}" for name in ("score", "near", "random", "strict")}


def test_a_sample_is_not_the_suite(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["scorecard", "few/age_comparison", "few/multihop_comparison", "-m", MODEL]
    with pytest.raises(SystemExit) as done:
        main([*words, "--limit", "20", "-o", "sample", "--json"])
    assert done.value.code == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["suite"], found["standard"]) == (None, False)
    assert found["models"][0]["options"] == {"limit": 20}


@pytest.mark.parametrize(
    ("probes", "fresh", "words"),
    [
        ("few", "few", "has the seed of the suite"),
        ("few-seed-7/age_comparison", "few-seed-7/age_comparison", "has the seed of the suite"),
        ("few", "few-seed-7/age_comparison", "name the folder of a suite"),
        (MODEL, "few-seed-7", "holds a model"),
    ],
)
def test_what_is_no_sibling_is_refused(world: Path, probes: str, fresh: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        evaluation.study("scorecard", probes, MODEL, fresh=fresh)


def test_two_builds_of_a_suite_are_no_parts_of_one_mean(world: Path) -> None:
    with pytest.raises(UsageError, match=r"two builds of few.* with --fresh"):
        evaluation.study("scorecard", ["few", "few-seed-7/age_comparison"], MODEL)


def test_results_do_not_go_into_the_suite(world: Path) -> None:
    for probes in ("few", "few/age_comparison"):
        with pytest.raises(UsageError, match=r"holds the suite itself.* with -o"):
            evaluation.study("scorecard", probes, MODEL, output="few/results")


def test_less_than_a_cluster_is_no_whole_cluster_and_one_probe_has_a_name(
    world: Path,
) -> None:
    probe = "few/wordnet_antonymy"
    for seed in range(9):
        found = evaluation.evaluate(probe, "none", scorer="random", limit=1, seed=seed).results
        whole = "whole" if found.metrics.strict_accuracy else "is less than a cluster holds"
        assert whole in str(limit_remark(found))
    card = evaluation.study("scorecard", probe, "none", scorer="random")
    assert isinstance(card, Scorecard)
    assert card_name(card) == "wordnet_antonymy"


@pytest.mark.slow
def test_a_suite_whose_probes_were_built_again_is_refused(world: Path) -> None:
    shutil.copytree("few", "changed")
    words = ["age_comparison", "--test-rows", "60", "--no-audit", "--overwrite"]
    with pytest.raises(SystemExit):
        build([*words, "-o", "changed/age_comparison"])
    with pytest.raises(KbprobeError, match="holds other rows than the suite few"):
        evaluation.study("scorecard", "changed", MODEL, limit=20)


def test_independent_estimates_add_up() -> None:
    one, two = (
        Estimate(value=v, low=low, high=high, n=10, method="")
        for v, low, high in ((0.5, 0.2, 0.6), (0.3, 0.1, 0.7))
    )
    average = mean_of_independent([one, two])
    assert (average.value, average.low) == pytest.approx((0.4, 0.4 - (0.09 + 0.04) ** 0.5 / 2))
    less = sum_of_independent([(1.0, one), (-1.0, two)])
    # A lower first number, or a higher second one.
    assert less.low == pytest.approx(0.2 - (0.09 + 0.16) ** 0.5)
    assert less.high == pytest.approx(0.2 + (0.01 + 0.04) ** 0.5)
    assert linear(one, 2, -1).low == pytest.approx(-0.6)
    assert corrected(one, 0.2).value == pytest.approx(0.375)
