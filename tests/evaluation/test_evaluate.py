"""A model on a probe from start to finish: by command, from Python, killed, shared, repeated."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import evaluation
from evaluation.cli import main
from evaluation.results.types import PREDICTIONS, REPORT, RESULTS
from kbprobe.errors import UsageError, how_to_install
from tests.evaluation import tiny_masked

ADJECTIVES = ["older", "younger", "larger", "smaller", "never", "always", "rarely", "often"]
NOUNS = ["dog", "cat", "mouse", "robin", "penguin", "car", "bus", "truck", "piano", "house"]


def write_probe(path: Path, rows: int = 120) -> Path:
    """An oLMpics-like file: clozes whose answers are single tokens or not, as it happens."""
    with path.open("w", encoding="utf-8") as file:
        for n in range(rows):
            first, second = NOUNS[n % 10], NOUNS[(n * 7 + n // 10 + 1) % 10]
            stem = f"A {first} is [MASK] {'than' if n % 2 else 'as a rule than'} a {second} {n}."
            texts = [ADJECTIVES[(n + step) % 8] for step in range(3)]
            choices = [{"label": "ABC"[k], "text": text} for k, text in enumerate(texts)]
            question = {"stem": stem, "choices": choices}
            row = {"id": f"row-{n}", "question": question, "answerKey": "ABC"[n % 3]}
            file.write(json.dumps(row) + "\n")
    return path


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with a probe ``sizes.jsonl`` and two tiny seeded masked LMs."""
    folder = tmp_path_factory.mktemp("world")
    write_probe(folder / "sizes.jsonl")
    tiny_masked.write("bert-uncased", folder / "tiny-bert")
    tiny_masked.write("roberta", folder / "tiny-roberta")
    return folder


pytestmark = pytest.mark.usefixtures("in_world")


def run(*words, code=0):
    with pytest.raises(SystemExit) as done:
        main([*map(str, words)])
    assert (done.value.code or 0) == code


def subprocess_environment(tmp_path, **more):
    # All that this process has: what chooses kernels (MKL_CBWR and others) changes last digits.
    cache = str(tmp_path / "cache")
    return {**os.environ, "KBPROBE_CACHE": cache, "OMP_NUM_THREADS": "1", **more}


@pytest.mark.slow
def test_results_predictions_and_report_are_written(tmp_path, capsys):
    out = tmp_path / "out"
    run("sizes.jsonl", "--model", "tiny-bert", "-o", out)
    assert {file.name for file in out.iterdir()} == {RESULTS, PREDICTIONS, REPORT}
    done = evaluation.load(out)
    frame = done.to_pandas()
    assert len(frame) == 120
    metrics = done.results.metrics
    assert metrics.accuracy.value == pytest.approx(frame.correct.mean())
    assert metrics.accuracy.method == "wilson", "these rows have no clusters"
    assert done.results.model.architecture == "BertForMaskedLM"
    shown = capsys.readouterr()
    assert f"{100 * metrics.accuracy.value:.1f} [" in shown.out
    assert "tiny-bert" in shown.out


def test_every_number_can_be_computed_again_from_the_predictions(tmp_path):
    done = evaluation.evaluate("sizes.jsonl", "tiny-bert", log_probs=True)
    for row in done.predictions.to_pylist():
        best = max(row["scores"])
        assert row["prediction"] == row["scores"].index(best)
        assert row["correct"] == (row["prediction"] == row["answer"])
        assert row["margin"] == pytest.approx(best - sorted(row["scores"])[-2], abs=1e-5)


def test_python_and_command_give_the_same_bytes(tmp_path):
    run("sizes.jsonl", "--model", "tiny-bert", "-o", tmp_path / "one", "--no-cache")
    evaluation.evaluate("sizes.jsonl", "tiny-bert", output=tmp_path / "two", cache=False)
    one, two = (tmp_path / name / PREDICTIONS for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.slow
def test_asked_again_it_says_so_and_other_options_need_overwrite(tmp_path, capsys):
    out = tmp_path / "out"
    words = ("sizes.jsonl", "--model", "tiny-bert", "-o", out)
    run(*words)
    before = (out / RESULTS).read_bytes()
    capsys.readouterr()
    run(*words)
    assert "already holds exactly this" in capsys.readouterr().err
    assert (out / RESULTS).read_bytes() == before
    run(*words, "--log-probs", code=2)
    assert "--overwrite" in capsys.readouterr().err
    run(*words, "--log-probs", "--overwrite")
    assert evaluation.load(out).results.scoring.score == "log-likelihood"


def test_a_folder_of_the_users_is_left_alone(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    run("sizes.jsonl", "--model", "tiny-bert", "-o", tmp_path, "--overwrite", code=2)
    assert "did not write" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["notes.txt"]


@pytest.mark.slow
def test_scores_are_found_by_content_not_by_name(tmp_path, world):
    first = evaluation.evaluate("sizes.jsonl", "tiny-bert")
    again = evaluation.evaluate(world / "sizes.jsonl", world / "tiny-bert")
    assert first.results.timings.rows_per_second is not None
    assert again.results.timings.rows_per_second is None, "found in the cache"
    assert again.predictions.equals(first.predictions)
    for changed in (
        {"log_probs": True},
        {"dtype": "bfloat16"},
        {"batch_tokens": 64},
        {"limit": 50},
    ):
        other = evaluation.evaluate("sizes.jsonl", "tiny-bert", **changed)
        assert other.results.timings.rows_per_second is not None, changed
        assert other.results.scoring.key != first.results.scoring.key, changed


def test_several_models_and_probes_end_in_one_table(tmp_path, capsys):
    write_probe(Path("more.jsonl"), 30)
    probes, models = ["sizes.jsonl", "more.jsonl"], ["tiny-bert", "tiny-roberta"]
    run(*probes, "-m", models[0], "-m", models[1], "-o", tmp_path / "all")
    shown = capsys.readouterr().out
    for probe in probes:
        for model in models:
            assert (tmp_path / "all" / probe / model / RESULTS).is_file()
    assert len(re.findall(r"\[\d+\.\d, \d+\.\d\]", shown)) == 4


@pytest.mark.slow
def test_one_that_fails_does_not_stop_the_others(tmp_path, capsys):
    run("sizes.jsonl", "-m", "nowhere/at-all", "-m", "tiny-bert", "-o", tmp_path / "all", code=1)
    shown = capsys.readouterr()
    assert "nowhere/at-all" in shown.err
    assert "tiny-bert" in shown.out


@pytest.mark.slow
def test_json_is_one_line_a_run(tmp_path, capsys):
    run("sizes.jsonl", "-m", "tiny-bert", "-m", "tiny-roberta", "-o", tmp_path / "all", "--json")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["model"]["id"] for line in lines] == ["tiny-bert", "tiny-roberta"]


@pytest.mark.slow
def test_compare_and_report_by_command(tmp_path, capsys):
    run("sizes.jsonl", "-m", "tiny-bert", "-m", "tiny-roberta", "-o", tmp_path)
    folders = [tmp_path / "sizes.jsonl" / model for model in ("tiny-bert", "tiny-roberta")]
    capsys.readouterr()
    run("compare", *folders)
    assert " minus " in capsys.readouterr().out
    before = (folders[0] / REPORT).read_bytes()
    (folders[0] / REPORT).unlink()
    run("report", folders[0])
    assert (folders[0] / REPORT).read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sizes.jsonl"], "--model"),
        (["--model", "tiny-bert"], "PROBE"),
        (["sizes.jsonl", "--model", "tiny-bert", "--dtype", "float23"], "float32"),
        (["sizes.jsonl", "--model", "tiny-bert", "--limit", "0"], "--limit"),
        (["sizes.jsonl", "--model", "tiny-bert", "--letters"], "causal LM"),
        (["sizes.jsonl", "--model", "tiny-bert", "--train", "3"], "no split 'train'"),
        (["sizes.jsonl", "--model", "tiny-bert", "--keep-checkpoint", "x"], "--train"),
        (["sizes.jsonl", "--model", "tiny-bert", "--model-args", "x"], "key=value"),
        (["sizes.jsonl", "--model", "tiny-bert", "--split", "tset"], "tset"),
        (["sizes.jsonl", "--model", "--limit"], "--limit"),
        (["compare", "one"], "holds no results"),
        (["report", "nowhere"], "no folder nowhere"),
    ],
)
def test_wrong_requests_are_refused_with_the_remedy(words, message, capsys):
    run(*words, code=2)
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown


def test_unlabelled_rows_are_refused(tmp_path, capsys):
    row = {
        "id": "a",
        "question": "What?",
        "choices": {"text": ["x", "y"], "label": ["A", "B"]},
        "answer": -1,
        "answerKey": "",
        "setup": "mc_qa",
    }
    (tmp_path / "raw.jsonl").write_text(json.dumps(row) + "\n")
    run(tmp_path / "raw.jsonl", "--model", "tiny-bert", code=1)
    assert "label" in capsys.readouterr().err


def test_an_unknown_option_from_python_is_named():
    with pytest.raises(UsageError, match=r"no option --limits.*limit"):
        evaluation.evaluate("sizes.jsonl", "tiny-bert", limits=3)


KILLED = """
import os, signal, sys
from evaluation.runs.score_cache import ScoreCache
write_part = ScoreCache.write_part
count = 0
def write_then_die(self, *args):
    global count
    write_part(self, *args)
    count += 1
    if count == 2:
        os.kill(os.getpid(), signal.SIGKILL)
ScoreCache.write_part = write_then_die
from evaluation.cli import main
main(sys.argv[1:])
"""


@pytest.mark.posix
@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on_and_ends_with_the_same_bytes(tmp_path):
    words = ["sizes.jsonl", "--model", "tiny-bert", "--batch-tokens", "64", "-o"]
    environment = subprocess_environment(tmp_path)
    command = [sys.executable, "-c", KILLED, *words, str(tmp_path / "out")]
    killed = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "out").exists()
    run(*words, tmp_path / "out")
    run(*words, tmp_path / "whole", "--no-cache")
    out, whole = (tmp_path / name / PREDICTIONS for name in ("out", "whole"))
    assert out.read_bytes() == whole.read_bytes()
    timings = [evaluation.load(tmp_path / name).results.timings for name in ("out", "whole")]
    assert timings[0].scored_sequences < timings[1].scored_sequences


def test_without_torch_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr("kbprobe.errors.find_spec", lambda name: None)
    run("sizes.jsonl", "--model", "tiny-bert", code=1)
    assert how_to_install("eval") in capsys.readouterr().err


def test_learning_from_the_rows_asked_is_refused(tmp_path, capsys):
    write_probe(tmp_path / "train.jsonl", 30)
    run(tmp_path / "train.jsonl", "--model", "tiny-bert", "--train", "5", code=2)
    assert "tested on training rows" in capsys.readouterr().err


@pytest.mark.slow
def test_overwrite_spares_what_is_not_ours(world, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    run("sizes.jsonl", "--model", "tiny-bert", "-o", out)
    (out / "notes.txt").write_text("mine")
    run("sizes.jsonl", "--model", "tiny-bert", "-o", out / "nested")
    run("sizes.jsonl", "--model", "tiny-bert", "--log-probs", "-o", out, "--overwrite")
    assert (out / "notes.txt").read_text() == "mine"
    logged = [evaluation.load(place).results.scoring.options for place in (out, out / "nested")]
    assert [options["log_probs"] for options in logged] == [True, False]
    before = (out / RESULTS).read_bytes()
    monkeypatch.chdir(out)
    words = (world / "sizes.jsonl", "--model", world / "tiny-bert", "-o", ".")
    run(*words, "--overwrite", code=2)
    assert "working directory" in capsys.readouterr().err
    assert (out / RESULTS).read_bytes() == before


def test_a_folder_that_cannot_be_written_is_found_out_before_scoring(capsys):
    run("sizes.jsonl", "--model", "tiny-bert", "-o", "/proc/nowhere/out", code=1)
    shown = capsys.readouterr().err
    assert "/proc/nowhere" in shown
    assert "-o" in shown


def test_markup_in_choices_is_shown_and_not_obeyed(tmp_path, capsys):
    choices = [{"label": "A", "text": "[/INST] ☃"}, {"label": "B", "text": "dog"}]
    rows = [
        {"id": n, "question": {"stem": "A [MASK].", "choices": choices}, "answerKey": "B"}
        for n in ("x",)
    ]
    choices_2 = [{"label": "A", "text": "cat"}, {"label": "B", "text": "dog"}]
    rows.append(
        {"id": "y", "question": {"stem": "A [MASK] is.", "choices": choices_2}, "answerKey": "B"}
    )
    path = tmp_path / "markup.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(path, "--model", "tiny-bert", "-o", tmp_path / "out")
    assert "1 of 2 rows set aside" in capsys.readouterr().out
    aside = evaluation.load(tmp_path / "out").results.metrics.set_aside
    assert all(": " not in reason for reason in aside), "counted by kind, not by candidate"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--normalization", "char"], "--normalization char"),
        (["--learning-rate", "0.1"], "--train N"),
        (["--revision", "main"], "--revision"),
        (["--model-args", "dtype=bfloat16"], "use --dtype"),
        (["--model-args", "no_such=1"], "--model-args"),
        (["--device", "meta"], "computes nothing"),
    ],
)
def test_options_that_would_mislead_are_refused(tmp_path, words, message, capsys):
    write_probe(tmp_path / "probe.jsonl", 6)
    run(tmp_path / "probe.jsonl", "--model", "tiny-bert", "-o", tmp_path / "out", *words, code=2)
    shown = capsys.readouterr().err
    assert message in shown
    assert "fault of kbprobe" not in shown
