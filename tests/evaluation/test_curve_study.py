"""The study of learning curves: its runs, its command, and what it refuses."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import evaluation
from evaluation.cli import main
from evaluation.models.capabilities import Capability
from evaluation.models.handle import ModelHandle
from evaluation.options import ModelOptions
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import StudyRequest
from evaluation.studies.curve import CURVE
from evaluation.studies.curve.axes import expand, suitable_learners
from kbprobe.errors import UsageError
from tests.evaluation import tiny_causal, tiny_masked

SENTENCES = {
    "": "A {a} year old person is [MASK] than a {b} year old person.",
    "no_language": "{a} [MASK] {b}",
    "perturbed": "A {a} year old blah is [MASK] da a {b} year old blah.",
}


def write_split(folder: Path, split: str, sentence: str, rows: range) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{split}.jsonl").open("w") as file:
        for n in rows:
            one, two = 20 + n * 7 % 60, 21 + n * 11 % 60
            row = {
                "id": f"row-{n}",
                "setup": "mc_mlm",
                "question": sentence.format(a=one, b=two),
                "choices": {"text": ["older", "younger"], "label": ["A", "B"]},
                "answer": int(one < two),
                "answerKey": "AB"[one < two],
                "cluster": f"c{n // 3}",
                "arguments": [{"name": "a", "value": str(one)}, {"name": "b", "value": str(two)}],
            }
            file.write(json.dumps(row) + "\n")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    for config, sentence in SENTENCES.items():
        write_split(folder / "ages" / config, "test", sentence, range(45))
        write_split(folder / "ages" / config, "train", sentence, range(100, 140))
    write_split(folder / "untrained", "test", SENTENCES[""], range(9))
    tiny_masked.write("bert-uncased", folder / "tiny-bert")
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def in_world(world, cache, monkeypatch):
    monkeypatch.chdir(world)
    monkeypatch.setenv("KBPROBE_CACHE", str(cache))


def run(*words, code=0):
    with pytest.raises(SystemExit) as done:
        main([*map(str, words)])
    assert (done.value.code or 0) == code


def specs_of(probes=("ages",), models=("tiny-bert",), **options) -> list[RunSpec]:
    return list(expand(StudyRequest.parse(CURVE, probes, models, options, Path("out"))))


def test_runs_are_renderings_by_learners_by_sizes_by_draws():
    specs = specs_of(
        sizes=(5, 10, 20), seeds=2, learners=("linear", "mlp"), controls=True, random_labels=True
    )
    kinds = Counter((s.run.learner, s.run.config, s.run.labels, s.run.train) for s in specs)
    trained = {kind: n for kind, n in kinds.items() if kind[3] is not None}
    assert set(trained.values()) == {2}
    assert len(trained) == 2 * 4 * 3
    assert Counter(s.run.config for s in specs if s.run.train is None) == {
        None: 1,
        "no_language": 1,
        "perturbed": 1,
    }
    assert {s.run.train_seed for s in specs if s.run.train} == {0, 1}
    assert {s.run.seed for s in specs} == {0}
    folders = [s.folder for s in specs]
    assert len(set(folders)) == len(folders)
    assert not any(one in other.parents for one in folders for other in folders), (
        "no run's folder is within that of another"
    )


def test_sizes_from_a_thousand_have_fewer_draws_and_blocks_lead_to_the_next_size():
    options = StudyRequest.parse(CURVE, ["ages"], ["m"], {"seeds": 4, "large_seeds": 2}).options
    assert [len(options.draws(size)) for size in (62, 500, 1000, 4000)] == [4, 4, 2, 2]
    specs = specs_of(sizes=(5, 10, 40), seeds=1, learners=("linear",))
    ahead = {s.run.train: s.options.get("next_size") for s in specs}
    assert ahead == {None: None, 5: 10, 10: 40, 40: None}
    full = specs_of(sizes=(5, 10), seeds=1, learners=("full",))
    assert not any("next_size" in spec.options for spec in full)


def test_sizes_that_train_lacks_the_rows_for_are_left_out():
    assert {s.run.train for s in specs_of(sizes=(20, 40, 80), seeds=1)} == {None, 20, 40}
    with pytest.raises(UsageError, match=r"has 40 rows to train.*--sizes 10,20,40.*--train-rows"):
        specs_of()
    with pytest.raises(UsageError, match=r"no size is possible.*--train-rows 4000"):
        specs_of(probes=("untrained",))


def test_options_go_to_the_runs_that_take_them():
    specs = specs_of(sizes=(5,), seeds=1, learners=("linear",), epochs=2, multi_piece="skip")
    assert [sorted(spec.options) for spec in specs] == [["multi_piece"], ["epochs"]]
    with pytest.raises(UsageError, match=r"--shots is for .*causal LM.*which none of these runs"):
        specs_of(sizes=(5,), learners=("linear",), shots=1)
    for wrong in ({"train": 5}, {"config": "x"}, {"labels": "random"}, {"learner": "linear"}):
        with pytest.raises(UsageError, match=r"sets .* itself"):
            specs_of(**wrong)
    with pytest.raises(UsageError, match=r"--sizes.* must be strictly increasing"):
        specs_of(sizes=(10, 5))
    with pytest.raises(UsageError, match="--revision names one"):
        specs_of(revisions=("a", "b"), revision="c")
    with pytest.raises(UsageError, match="no learner"):
        specs_of(sizes=(5,), learners=("liner",))


def test_each_model_gets_those_of_the_named_learners_that_it_can_be_used_with(world):
    tiny_causal.write("gpt2", world / "tiny-gpt2")
    options = {"sizes": (5,), "seeds": 1, "models": ("tiny-bert", "tiny-gpt2")}
    specs = specs_of(learners=("linear", "mlp"), **options)
    fitted = {(spec.model, spec.run.learner) for spec in specs if spec.run.train}
    assert fitted == {("tiny-bert", "linear"), ("tiny-bert", "mlp"), ("tiny-gpt2", "linear")}
    with pytest.raises(UsageError, match="--learners mlp: none of the models"):
        specs_of(sizes=(5,), learners=("linear", "mlp"), models=("tiny-gpt2",))
    for learners, instead in ((("majority",), "in place"), (("majority", "mlp"), "as well")):
        with pytest.raises(UsageError, match=f"majority reads no model.* --model none {instead}"):
            specs_of(learners=learners)
    with pytest.raises(UsageError, match="no learner suits tiny-gpt2"):
        specs_of(learners=("mlp",), **options)


def test_learners_suit_model_and_rows():
    masked, causal = Capability.MASKED_SCORES, Capability.CAUSAL_SCORES
    states = Capability.HIDDEN_STATES
    assert suitable_learners(masked | states, frozenset({"mc_mlm"}))[:2] == ("linear", "mlp")
    assert suitable_learners(causal | states, frozenset({"mc_mlm"})) == ("linear",)
    assert suitable_learners(causal | states, frozenset({"mc_qa"})) == ("frozen",)
    assert suitable_learners(masked | states, frozenset({"mc_qa"})) == ("frozen", "full")
    assert suitable_learners(masked | states, frozenset({"nli"})) == ()


@pytest.mark.slow
def test_the_command_writes_summary_and_page_and_finds_finished_runs(tmp_path, capsys):
    words = ["curve", "ages", "--model", "tiny-bert", "-o", tmp_path, "--learners", "linear"]
    words += ["--sizes", "5,10,80", "--seeds", "2", "--epochs", "1", "--controls"]
    words += ["--random-labels"]
    run(*words, "--json")
    shown = capsys.readouterr()
    summary = json.loads(shown.out)
    held = json.loads((tmp_path / "curve.json").read_text())
    del held["checksums"]
    assert held == summary
    tables = summary["tables"]
    assert tables["models"][0]["left_out"] == [80]
    assert [curve["rendering"] for curve in tables["curves"]] == [
        "probe",
        "no_language",
        "perturbed",
        "random_labels",
    ]
    assert tables["curves"][0]["coded_rows"] == tables["curves"][0]["uniform_bits"] == 10
    points = {(point["rendering"], point["size"]): point for point in tables["runs"]}
    assert sorted(size for rendering, size in points if rendering == "probe" and size) == [5, 10]
    assert points["random_labels", 5]["seen"] is not None
    page = (tmp_path / "curve.html").read_text()
    assert "ages (test), tiny-bert" in page
    assert not list(tmp_path.rglob("report.html")), "runs need no pages of their own"
    folders = tmp_path / "ages-no_language" / "tiny-bert" / "learner-linear" / "train-10"
    values = [
        evaluation.load(folders / f"train_seed-{draw}").results.metrics.accuracy.value
        for draw in (0, 1)
    ]
    assert points["no_language", 10]["draws"] == pytest.approx(values)
    before = (tmp_path / "curve.json").read_bytes(), page
    run(*words)
    shown = capsys.readouterr()
    assert "LangSense" in shown.out
    assert "curve.html" in shown.err
    assert ((tmp_path / "curve.json").read_bytes(), (tmp_path / "curve.html").read_text()) == before


def test_random_models_run_beside_the_trained_one():
    options = {"sizes": (5,), "seeds": 1, "learners": ("linear",), "random_init": 2, "epochs": 1}
    summary = evaluation.study("curve", "ages", "tiny-bert", **options)
    models = summary.tables["models"]
    assert [model["random_init"] for model in models] == [None, 0, 1]
    assert summary.tables["restarts"][0]["models"] == 2
    assert len({model["zero_shot"].value for model in models}) > 1


def test_random_weights_depend_on_their_seed_alone():
    def weights(seed: int | None):
        from evaluation.models.capabilities import MASKED_LM

        handle = ModelHandle("tiny-bert", ModelOptions(random_weights=seed))
        model, _ = handle.load(MASKED_LM)
        return handle.checkpoint.weights_sha256, model.get_input_embeddings().weight.detach()

    stored, first, again, second = weights(None), weights(0), weights(0), weights(1)
    assert len({sha for sha, _ in (stored, first, second)}) == 3
    assert first[0] == again[0]
    assert first[1].equal(again[1])
    assert not first[1].equal(second[1])
    assert not first[1].equal(stored[1])


def test_help_names_every_option(capsys):
    run("curve", "--help")
    shown = re.sub(r"\s+", " ", capsys.readouterr().out)
    for option in ("--sizes", "--large-seeds", "--controls", "--random-init", "--revisions"):
        assert option in shown
