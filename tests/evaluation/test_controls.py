"""Controls of a probe: the same rows in other wordings, compared by id with the probe itself."""

import json

import pytest

import evaluation
from evaluation import compare
from evaluation.cli import main
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.sealed import read_sealed
from tests.evaluation import tiny_masked

GOLDS = ("older", "younger")
CONTROLS = ("no_language", "perturbed")


def write_config(folder, sentence, rows=60, first=0):
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "test.jsonl").open("w") as file:
        for n in range(first, first + rows):
            row = {
                "id": f"row-{n}",
                "setup": "mc_mlm",
                "question": sentence.format(a=20 + n, b=80 - n),
                "choices": {"text": list(GOLDS), "label": ["A", "B"]},
                "answer": n % 2,
                "answerKey": "AB"[n % 2],
                "cluster": f"c{n // 3}",
            }
            file.write(json.dumps(row) + "\n")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    ages = folder / "ages"
    write_config(ages, "A {a} year old person is [MASK] than a {b} year old person.")
    write_config(ages / "no_language", "{a} [MASK] {b}")
    write_config(ages / "perturbed", "A {a} year old blah is [MASK] da a {b} year old blah.")
    write_config(ages / "elsewhere", "{a} [MASK] {b}", first=1000)
    write_config(ages / "half", "{a} [MASK] {b}", rows=30)
    for name in ("tiny-bert", "other-bert"):
        tiny_masked.write("bert-uncased", folder / name)
    return folder


pytestmark = pytest.mark.usefixtures("in_world")


def run(*words, code=0):
    with pytest.raises(SystemExit) as done:
        main([*map(str, words)])
    assert (done.value.code or 0) == code


def correct(config=None):
    done = evaluation.evaluate("ages", "tiny-bert", config=config)
    return done.to_pandas().set_index("id").correct


@pytest.mark.slow
def test_a_probe_is_compared_with_its_controls_row_by_row():
    own = correct()
    found = evaluation.study("compare", "ages", "tiny-bert", controls=CONTROLS)
    rows = found.tables["controls"]
    assert [row["control"] for row in rows] == [*CONTROLS]
    for row in rows:
        both = own.to_frame("own").join(correct(row["control"]).rename("other"))
        assert row["rows"] == len(both) == 60
        assert row["in_probe"].value == pytest.approx(both.own.mean())
        assert row["in_control"].value == pytest.approx(both.other.mean())
        difference = 100 * (both.own.mean() - both.other.mean())
        assert row["difference"].value == pytest.approx(difference)
        assert row["difference"].low <= difference <= row["difference"].high
        assert row["sensitivity"] == pytest.approx(max(0, difference))
        assert 0 < row["p_value"] <= 1


@pytest.mark.slow
def test_the_command_writes_runs_and_summary_and_prints_a_table(tmp_path, capsys):
    out = tmp_path / "out"
    words = ("ages", "--model", "tiny-bert", "-o", out)
    run("compare", "--controls", "no_language,perturbed", *words)
    shown = capsys.readouterr()
    assert "in the control" in shown.out
    for name in ("ages", "ages-no_language", "ages-perturbed"):
        assert evaluation.load(out / name / "tiny-bert").results.metrics.items == 60
    run("compare", "--controls", "no_language,perturbed", *words, "--json")
    shown = capsys.readouterr()
    assert json.loads(shown.out) == read_sealed(out / "compare.json", "", "2.0")
    assert shown.err.count("already holds exactly this") == 3
    before = evaluation.load(out / "ages" / "tiny-bert").results
    assert before.scoring.key == evaluation.evaluate("ages", "tiny-bert").results.scoring.key


@pytest.mark.slow
def test_a_limit_takes_the_same_rows_of_probe_and_control():
    found = evaluation.study("compare", "ages", "tiny-bert", controls=CONTROLS, limit=20)
    assert all(1 < row["rows"] <= 20 for row in found.tables["contrasts"])


@pytest.mark.slow
def test_models_are_evaluated_and_compared():
    found = evaluation.study("compare", "ages", ["tiny-bert", "other-bert"], limit=20, seed=1)
    assert [row["run"] for row in found.tables["runs"]] == ["tiny-bert", "other-bert"]
    (pair,) = found.tables["contrasts"]
    assert found.tables["controls"] == []
    done = evaluation.evaluate("ages", "other-bert", limit=20, seed=1).results
    assert pair["accuracy_second"] == done.metrics.accuracy, "the seed draws the rows as well"


def test_what_cannot_be_compared_is_refused_with_the_remedy(capsys):
    with pytest.raises(UsageError, match=r"elsewhere does not ask the rows .* 60 of its rows"):
        evaluation.study("compare", "ages", "tiny-bert", controls=("elsewhere",))
    with pytest.raises(UsageError, match=r"half does not ask the rows.*--controls"):
        evaluation.study("compare", "ages", "tiny-bert", controls=("half",))
    with pytest.raises(KbprobeError, match=r"no config 'perturbd'"):
        evaluation.study("compare", "ages", "tiny-bert", controls=("perturbd",))
    with pytest.raises(UsageError, match="sets config itself"):
        evaluation.study("compare", "ages", "tiny-bert", config="perturbed")
    with pytest.raises(UsageError, match=r"two runs or more: .*--controls"):
        evaluation.study("compare", "ages", "tiny-bert")
    done = evaluation.evaluate("ages", "tiny-bert", limit=5)
    with pytest.raises(UsageError, match="--controls names configs to evaluate, with --model"):
        compare(done, done, controls=CONTROLS)
    run("compare", "ages", "--model", "tiny-bert", "--config", "x", code=2)
    assert "--config" in capsys.readouterr().err
    run("compare", "ages", "ages", "--tag", "x", code=2)
    assert "name a model with --model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "message"),
    [("half", "does not ask the rows"), ("perturbd", "no config 'perturbd'")],
)
def test_what_is_wrong_is_found_before_a_model_is_opened(monkeypatch, config, message):
    monkeypatch.setattr("evaluation.runs.executor.ModelHandle", None)
    with pytest.raises(UsageError, match=message):
        evaluation.study("compare", "ages", "tiny-bert", controls=("no_language", config))


@pytest.mark.slow
def test_a_comparison_is_written_where_asked(tmp_path, capsys):
    runs = [tmp_path / model for model in ("tiny-bert", "other-bert")]
    for folder in runs:
        evaluation.evaluate("ages", folder.name, output=folder)
    capsys.readouterr()
    run("compare", *runs, "-o", tmp_path / "compared", "--json")
    written = read_sealed(tmp_path / "compared/compare.json", "", "2.0")
    assert written == json.loads(capsys.readouterr().out)
