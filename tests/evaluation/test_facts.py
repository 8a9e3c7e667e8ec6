"""Questions that rest on facts, evaluated with these: a toy probe and tiny seeded models."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import evaluation
import kbprobe
from builders.engine.options import ProbeOptions
from builders.engine.pipeline import build, write
from builders.engine.request import Request
from evaluation.cli import main
from evaluation.items.sources import open_probe
from evaluation.learners.finetune import kept
from evaluation.learners.finetune.training import finetune
from evaluation.models.handle import ModelHandle
from evaluation.results.analyses.facts import facts_of
from evaluation.results.types import (
    FACTS,
    PREDICTIONS,
    REPORT,
    RESULTS,
    read_results,
    write_results,
)
from evaluation.runs import executor
from evaluation.runs.evaluation import evaluate_run
from evaluation.runs.executor import open_sub_questions
from evaluation.runs.run import open_run
from evaluation.runs.spec import RunSpec
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.manifest import MOST_SIMILAR
from tests.builders import test_sub_questions as toy
from tests.evaluation import tiny_causal, tiny_multiple_choice
from tests.evaluation.test_evaluate import subprocess_environment

ROWS = 100
"""In the test split of the toy probe: each asks for a number two ahead, its facts for the next."""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A toy probe in the folder ``sums``, and tiny seeded models."""
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy, "SIZE", 3 * ROWS)
        options = ProbeOptions.parse({}, toy.NAME)
        write(build(Request(toy.PROBE, options)), folder / "sums")
    tiny_causal.write("gpt2", folder / "tiny-gpt2")
    tiny_multiple_choice.write(folder / "tiny-encoder", "Bert", "Model")
    return folder


pytestmark = pytest.mark.usefixtures("in_world")


def run(*words, code=0):
    with pytest.raises(SystemExit) as done:
        main([*map(str, words)])
    assert (done.value.code or 0) == code


def plain_reading(done: evaluation.Evaluation) -> dict[str, Any]:
    """Count what the block tells, row by row, from the probe and the two files of predictions."""
    facts = {row["id"]: row for row in done.facts.predictions.to_pylist()}
    rests_on = {row["id"]: row["fact_ids"] for row in kbprobe.load("sums")["test"]}
    known = {row["id"]: [facts[f]["correct"] for f in rests_on[row["id"]]] for row in rows_of(done)}
    right = {row["id"]: row["correct"] for row in rows_of(done)}
    return {
        "all": [right[name] for name, one in known.items() if all(one)],
        "some": [right[name] for name, one in known.items() if any(one) and not all(one)],
        "none": [right[name] for name, one in known.items() if not any(one)],
        "places": [sum(one[place] for one in known.values()) / len(known) for place in (0, 1)],
    }


def rows_of(done: evaluation.Evaluation) -> list[dict[str, Any]]:
    return done.predictions.to_pylist()


def test_shortcuts_have_the_intervals_of_the_manifest():
    metrics = evaluation.evaluate("sums", "none", scorer="random", facts=False).results.metrics
    audit = json.loads(Path("sums/manifest.json").read_text())["audit"]["baselines"]
    # Similarity is measured on the rows of the run, with their own interval.
    assert metrics.similarity is not None
    shortcuts = metrics.baseline_intervals.keys() - {MOST_SIMILAR}
    assert shortcuts
    assert {name: metrics.baseline_intervals[name] for name in shortcuts} == {
        name: (audit[name]["all"]["low"], audit[name]["all"]["high"]) for name in shortcuts
    }


@pytest.mark.slow
def test_the_counts_are_those_of_a_plain_reading(tmp_path, capsys):
    run("sums", "--model", "tiny-gpt2", "-o", tmp_path / "out")
    shown = capsys.readouterr()
    done = evaluation.load(tmp_path / "out")
    block, counted = facts_of(done.results), plain_reading(done)
    # Facts of the last test rows are of the first numbers: other splits than theirs.
    assert block.asked == block.scored == ROWS + 1
    assert block.configs == ["facts"]
    assert block.left_out == {}
    rows = block.rows
    assert rows.rows == ROWS
    for part, name in ((rows.all_facts, "all"), (rows.some_facts, "some"), (rows.no_facts, "none")):
        assert part.rows == len(counted[name]) > 0, "each kind is there, so that each is tested"
        assert part.accuracy.value == pytest.approx(sum(counted[name]) / part.rows)
    assert rows.all_facts_share.value == pytest.approx(len(counted["all"]) / ROWS)
    assert rows.fails.value == pytest.approx(counted["all"].count(False) / ROWS)
    without = counted["some"].count(True) + counted["none"].count(True)
    assert rows.right_without.value == pytest.approx(without / ROWS)
    product = counted["places"][0] * counted["places"][1]
    assert rows.all_facts_independent == pytest.approx(product)
    accuracy = done.results.metrics.accuracy
    assert rows.accuracy == accuracy
    assert rows.fails_independent == pytest.approx(product * (1 - accuracy.value))
    assert rows.chance == block.chance == pytest.approx(1 / 3)
    assert rows.all_facts_chance == pytest.approx(1 / 9)
    assert rows.fails_chance == pytest.approx(2 / 27)
    assert [part.name for part in block.by_hops] == ["2 hops"]
    assert [part.name for part in block.by_relation] == ["after"]
    assert block.by_hops[0].rows == ROWS
    said = f"all facts right in {rows.all_facts.rows} of {ROWS} rows"
    assert said in shown.out
    assert "101 single facts" in shown.err
    assert "--no-facts" in shown.err


@pytest.mark.slow
def test_predictions_name_each_row_s_facts_and_count_those_right(tmp_path):
    done = evaluation.evaluate("sums", "tiny-gpt2")
    facts = done.facts.to_pandas().set_index("id").correct
    for row in rows_of(done):
        assert len(row["fact_ids"]) == 2
        assert row["facts_right"] == sum(facts[row["fact_ids"]])
    alone = evaluation.evaluate("sums", "tiny-gpt2", config="facts", split="test")
    both = done.facts.to_pandas().merge(alone.to_pandas(), on="id")
    assert len(both) == ROWS
    assert (both.prediction_x == both.prediction_y).all(), "asked as they would be alone"


def test_facts_of_a_limited_run_are_those_of_its_rows():
    done = evaluation.evaluate("sums", "tiny-gpt2", limit=10)
    named = {name for row in rows_of(done) for name in row["fact_ids"]}
    assert set(done.facts.to_pandas().id) == named
    assert facts_of(done.results).rows.rows == 10
    assert facts_of(done.results).rows.known is None, "ten clusters are too few"


@pytest.mark.slow
def test_without_facts_nothing_is_different(tmp_path, capsys):
    run("sums", "--model", "tiny-gpt2", "-o", tmp_path / "out", "--no-facts")
    assert "single facts" not in "".join(capsys.readouterr())
    assert {file.name for file in (tmp_path / "out").iterdir()} == {RESULTS, PREDICTIONS, REPORT}
    assert "facts" not in json.loads((tmp_path / "out" / RESULTS).read_text())
    done = evaluation.load(tmp_path / "out")
    assert facts_of(done.results) is done.facts is None
    assert "fact_ids" not in done.predictions.column_names
    assert 'id="facts"' not in (tmp_path / "out" / REPORT).read_text()
    # The config of the facts rests on nothing.
    assert evaluation.evaluate("sums", "tiny-gpt2", config="facts").facts is None


def test_the_rows_own_numbers_are_the_same_with_facts_and_without():
    one = evaluation.evaluate("sums", "tiny-gpt2")
    two = evaluation.evaluate("sums", "tiny-gpt2", facts=False)
    assert one.results.metrics == two.results.metrics
    assert one.results.scoring == two.results.scoring
    assert one.predictions.select(two.predictions.column_names).equals(two.predictions)


@pytest.mark.slow
def test_asked_again_it_is_found_and_missing_facts_are_added(tmp_path, capsys):
    out = tmp_path / "out"
    words = ("sums", "--model", "tiny-gpt2", "-o", out)
    run(*words, "--no-facts")
    before = json.loads((out / RESULTS).read_text())
    run(*words)
    after = json.loads((out / RESULTS).read_text())
    assert after["analyses"].pop("facts")["rows"]["rows"] == ROWS
    assert before.pop("checksums") != after.pop("checksums")
    assert after == before, "scored once, and only added to"
    written = (out / RESULTS).read_bytes()
    capsys.readouterr()
    for again in ((), ("--no-facts",)):
        run(*words, *again)
        assert "already holds exactly this" in capsys.readouterr().err
    shutil.rmtree(out / FACTS)
    assert evaluation.load(out).facts is None
    run(*words)
    assert (out / RESULTS).read_bytes() == written
    assert evaluation.load(out).facts is not None


KILLED = """
import os, signal, sys
from evaluation.runs.score_cache import ScoreCache
write_part = ScoreCache.write_part
count = 0
def write_then_die(self, *args):
    global count
    write_part(self, *args)
    count += 1
    if count == int(os.environ["DIE_AT"]):
        os.kill(os.getpid(), signal.SIGKILL)
ScoreCache.write_part = write_then_die
from evaluation.cli import main
main(sys.argv[1:])
"""


def same_files(one: Path, other: Path) -> bool:
    names = (PREDICTIONS, f"{FACTS}/{PREDICTIONS}")
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


@pytest.mark.slow  # as without facts
@pytest.mark.posix
def test_killed_within_the_facts_it_goes_on_and_ends_with_the_same_bytes(tmp_path):
    words = ["sums", "--model", "tiny-gpt2", "--batch-tokens", "64"]
    whole = evaluation.evaluate("sums", "tiny-gpt2", batch_tokens=64, output=tmp_path / "whole")
    parts = whole.results.timings.scored_sequences
    shutil.rmtree(tmp_path / "cache")
    die_at = 1 + len(list_parts(tmp_path, words))
    command = [sys.executable, "-c", KILLED, *words, "-o", str(tmp_path / "out")]
    environment = subprocess_environment(tmp_path, DIE_AT=str(die_at))
    killed = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "out").exists()
    run(*words, "-o", tmp_path / "out")
    done = evaluation.load(tmp_path / "out")
    assert done.results.timings.scored_sequences == 0 < parts, "the rows were scored before"
    timings = [one.facts.results.timings for one in (done, whole)]
    assert 0 < timings[0].scored_sequences < timings[1].scored_sequences, "and a part of the facts"
    assert facts_of(done.results) == facts_of(whole.results)
    assert same_files(tmp_path / "out", tmp_path / "whole")


def list_parts(tmp_path, words):
    """The parts that the rows alone are scored in."""
    from evaluation.runs.score_cache import ScoreCache

    with pytest.MonkeyPatch.context() as patch:
        written: list[int] = []
        write_part = ScoreCache.write_part

        def counted(self, part, *rest):
            written.append(part)
            write_part(self, part, *rest)

        patch.setattr(ScoreCache, "write_part", counted)
        patch.setenv("KBPROBE_CACHE", str(tmp_path / "elsewhere"))
        run(*words, "-o", tmp_path / "rows", "--no-facts")
    return written


@pytest.mark.slow
def test_several_processes_share_the_work(tmp_path):
    words = ["sums", "--model", "tiny-gpt2", "--batch-tokens", "128", "--device", "cpu", "-o"]
    # What `accelerate launch` starts for several GPUs; on a CPU it would start one process.
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"),
        *("-m", "evaluation.cli", *words, str(tmp_path / "shared")),
    ]
    done = subprocess.run(
        command, env=subprocess_environment(tmp_path), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    run(*words, tmp_path / "alone", "--no-cache")
    assert same_files(tmp_path / "shared", tmp_path / "alone")
    both = [evaluation.load(tmp_path / name) for name in ("shared", "alone")]
    assert facts_of(both[0].results) == facts_of(both[1].results)
    timings = [one.results.timings for one in both]
    assert 0 < timings[0].scored_sequences < timings[1].scored_sequences, "the leader did a part"
    assert done.stdout.count("toy_composition (test)") == 1, "one process alone talks"


@pytest.mark.slow
def test_the_report_shows_failures_with_their_facts_and_is_made_again_the_same(tmp_path):
    out = tmp_path / "out"
    done = evaluation.evaluate("sums", "tiny-gpt2", output=out)
    page = (out / REPORT).read_text()
    known = facts_of(done.results).rows.all_facts
    assert f"all facts right of {known.rows} of {ROWS} questions" in page
    shown = page.split("All facts right, and the question wrong</h3>")[1].split("</section>")[0]
    failed = {
        row["id"]: row["fact_ids"]
        for row in rows_of(done)
        if row["facts_right"] == 2 and not row["correct"]
    }
    examples = [name for name in failed if f"<code>{name}</code>" in shown]
    assert len(examples) == min(3, len(failed)) > 0
    facts = {row["id"]: row for row in done.facts.predictions.to_pylist()}
    for name in (name for example in examples for name in failed[example]):
        assert facts[name]["question"] in shown
        assert facts[name]["choices"][facts[name]["answer"]] in shown
    for folder in (out, out / FACTS):
        before = (folder / REPORT).read_bytes()
        run("report", folder)
        assert (folder / REPORT).read_bytes() == before
    shutil.rmtree(out / FACTS)
    run("report", out)
    assert "no examples can be shown" in (out / REPORT).read_text()


@pytest.mark.slow
def test_facts_of_another_run_are_not_shown(tmp_path, capsys):
    for name, limit in (("one", 20), ("two", 30)):
        evaluation.evaluate("sums", "tiny-gpt2", limit=limit, output=tmp_path / name)
    shutil.rmtree(tmp_path / "one" / FACTS)
    shutil.copytree(tmp_path / "two" / FACTS, tmp_path / "one" / FACTS)
    run("report", tmp_path / "one", code=2)
    assert "holds other facts" in capsys.readouterr().err


@pytest.mark.slow
def test_compare_takes_results_with_facts_and_without(tmp_path, capsys):
    evaluation.evaluate("sums", "tiny-gpt2", output=tmp_path / "with")
    options = {"normalization": "sum", "facts": False}
    evaluation.evaluate("sums", "tiny-gpt2", output=tmp_path / "without", **options)
    run("compare", tmp_path / "with", tmp_path / "without")
    assert " minus " in capsys.readouterr().out


@pytest.mark.slow
def test_a_model_trained_on_the_rows_is_asked_the_facts(tmp_path, monkeypatch):
    times = []
    monkeypatch.setattr(kept, "finetune", lambda *a, **k: times.append(1) or finetune(*a, **k))
    options = {"train": 12, "epochs": 1, "seed": 1}
    done = evaluation.evaluate("sums", "tiny-encoder", limit=20, **options)
    assert len(times) == 1
    assert done.facts.results.model.finetuning == done.results.model.finetuning
    assert done.facts.results.model.finetuning["train"] == 12
    assert facts_of(done.results).rows.rows == 20
    assert not any((tmp_path / "cache" / "finetuned").iterdir()), "the trained model is gone"
    again = evaluation.evaluate("sums", "tiny-encoder", limit=20, **options)
    assert len(times) == 1
    assert again.facts.predictions.equals(done.facts.predictions)


def test_a_model_trained_on_facts_alone_is_asked_both(tmp_path):
    kept = str(tmp_path / "trained")
    options = {"config": "facts", "train": 12, "epochs": 1, "keep_checkpoint": kept}
    assert evaluation.evaluate("sums", "tiny-encoder", limit=10, **options).facts is None
    done = evaluation.evaluate("sums", kept, limit=10)
    assert done.results.scoring.scorer == "multiple_choice"
    assert facts_of(done.results).rows.rows == 10


@pytest.mark.slow
def test_facts_of_all_splits_are_learnt_before_the_rows(tmp_path, capsys):
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    words = ("sums", "--model", "tiny-encoder", "--train", "16", "--epochs", "1")
    run(*words, "--facts-first", "--keep-checkpoint", checkpoint, "-o", out)
    record = json.loads((checkpoint / kept.RECORD).read_text())
    facts = [part for name in ("train", "validation", "test") for part in facts_in(name)]
    assert record["first_rows"] == len(facts)
    assert record["rows"] == 16
    assert len(record["losses"]) == 1
    plain = evaluation.evaluate("sums", "tiny-encoder", train=16, epochs=1)
    again = evaluation.evaluate("sums", "tiny-encoder", train=16, epochs=1, facts_first=True)
    scores = [one.predictions.column("scores").to_pylist() for one in (plain, again)]
    assert scores[0] != scores[1]
    assert scores[1] == evaluation.load(out).predictions.column("scores").to_pylist()


@pytest.mark.slow
def test_facts_are_learnt_once_for_all_draws_of_rows(tmp_path, monkeypatch):
    trained = []

    def counted(model, tokenizer, items, *rest, **named):
        trained.append(len(items))
        return finetune(model, tokenizer, items, *rest, **named)

    monkeypatch.setattr(kept, "finetune", counted)
    monkeypatch.setattr(kept, "_LEARNT", {})
    options = {"epochs": 1, "facts_first": True, "facts": False, "cache": False}
    draws = [(16, 1), (16, 2), (8, 1)]
    scores = {}
    for train, seed in draws:
        done = evaluation.evaluate("sums", "tiny-encoder", train=train, train_seed=seed, **options)
        scores[train, seed] = done.predictions.column("scores").to_pylist()
    facts = sum(len(facts_in(name)) for name in ("train", "validation", "test"))
    assert trained == [facts, 16, 16, 8]
    # As if the facts were learnt anew for each.
    kept._LEARNT.clear()
    again = evaluation.evaluate("sums", "tiny-encoder", train=8, train_seed=1, **options)
    assert trained[-2:] == [facts, 8]
    assert again.predictions.column("scores").to_pylist() == scores[8, 1]
    assert len({str(one) for one in scores.values()}) == len(draws)


def facts_in(split):
    return kbprobe.load("sums", config="facts")[split]


def test_facts_first_needs_rows_that_rest_on_facts(capsys):
    words = ("--model", "tiny-encoder", "--train", "8", "--facts-first")
    run("sums", "--config", "facts", *words, code=2)
    assert "rest on no facts" in capsys.readouterr().err


@pytest.mark.slow
def test_shots_before_facts_are_other_facts():
    spec = RunSpec.parse("sums", "tiny-gpt2", {"shots": 2})
    facts = open_sub_questions(open_run(spec, ModelHandle("tiny-gpt2", spec.run)))
    asked = {item.id for item in facts.rows.items}
    examples = {item.id for item in facts.train.items}
    in_train = set(kbprobe.load("sums", config="facts")["train"]["id"])
    assert len(asked & in_train) == 1
    assert examples == in_train - asked
    done = evaluation.evaluate("sums", "tiny-gpt2", limit=5, shots=2)
    assert facts_of(done.results).rows.rows == 5


@pytest.mark.slow
def test_facts_are_found_on_the_hub_as_in_a_folder(world, tmp_path, monkeypatch):
    import datasets

    from evaluation.items import sources
    from kbprobe.format.manifest import read_manifest

    def builder(_place, _source, config):
        return datasets.load_dataset_builder(
            str(world / "sums"), config, cache_dir=str(tmp_path / "datasets")
        )

    monkeypatch.setattr(sources, "_builder", builder)
    monkeypatch.setattr(sources, "_hub_manifest", lambda *_: read_manifest(world / "sums"))
    far, near = (evaluation.evaluate(source, "tiny-gpt2") for source in ("org/sums", "sums"))
    assert facts_of(far.results) == facts_of(near.results) is not None
    assert far.facts.results.probe.source == "org/sums"


def test_links_are_read_from_json_lines_as_from_parquet(world, tmp_path):
    rows = kbprobe.load("sums")["test"].to_list()
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    one, two = open_probe("sums"), open_probe(str(tmp_path / "test.jsonl"))
    assert one.links == two.links
    assert one.links.fact_ids[3] == tuple(rows[3]["fact_ids"])
    assert one.take([3, 1]).links.fact_ids == (one.links.fact_ids[3], one.links.fact_ids[1])
    assert open_probe("sums", config="facts").links is None
    # Without the manifest nobody knows which config asks for them.
    assert evaluation.evaluate(tmp_path / "test.jsonl", "tiny-gpt2").facts is None
    rows[0]["fact_ids"] = [3]
    (tmp_path / "test.jsonl").write_text(json.dumps(rows[0]) + "\n")
    with pytest.raises(KbprobeError, match="line 1: fact_ids must be a list of ids"):
        open_probe(str(tmp_path / "test.jsonl"))


def test_results_of_before_there_were_facts_are_read_and_written_the_same(tmp_path):
    out = tmp_path / "out"
    evaluation.evaluate("sums", "tiny-gpt2", facts=False, output=out)
    text = (out / RESULTS).read_text()
    results = read_results(out)
    assert "facts" not in json.loads(text)
    assert facts_of(results) is None
    write_results(results, out)
    assert (out / RESULTS).read_text() == text
    assert "facts" not in results.model_dump()


def test_what_facts_cannot_be_asked_is_said_with_the_remedy(monkeypatch):
    def refusing(run, *rest):
        if run.rows.name.endswith("-facts"):
            raise UsageError("all 4 items were set aside")
        return evaluate_run(run, *rest)

    monkeypatch.setattr(executor, "evaluate_run", refusing)
    with pytest.raises(UsageError, match=r"toy_composition-facts: all 4.*--no-facts"):
        evaluation.evaluate("sums", "tiny-gpt2")


@pytest.mark.slow
def test_the_command_evaluates_the_rows_with_their_facts(tmp_path, capsys):
    run("sums", "--model", "tiny-gpt2", "-o", tmp_path / "out")
    shown = capsys.readouterr()
    facts = facts_of(evaluation.load(tmp_path / "out").results)
    assert f"single facts: {100 * facts.accuracy.value:.1f}" in shown.out
    for share in (facts.rows.right_without, facts.rows.known_fails):
        assert f"{100 * share.value:.1f} of rows" in shown.out
