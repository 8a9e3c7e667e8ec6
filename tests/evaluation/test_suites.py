"""Suites: what a file declares is run once, whatever the order, and by whomever."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from evaluation.cli import main
from evaluation.executors.base import Ended
from evaluation.runs.costs import forecast
from evaluation.runs.spec import RunSpec
from evaluation.suites.file import read_suite
from evaluation.suites.run import RECORD, SCHEMA_VERSION, SuitePlan, SuiteRecord, run_suite
from kbprobe.errors import UsageError
from kbprobe.files import patterns
from kbprobe.files.patterns import matching_paths
from kbprobe.format.sealed import read_sealed
from tests.evaluation import golden_cases
from tests.evaluation.endpoint_server import Fault, serving


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    golden_cases.write_world(folder)
    for probe in ("clozes", "questions"):
        (folder / "probes" / probe).mkdir(parents=True)
        for path in (folder / probe).glob("*.jsonl"):
            shutil.copy(path, folder / "probes" / probe)
    return folder


pytestmark = pytest.mark.usefixtures("in_world")


def declare(folder: Path, **parts: object) -> Path:
    """Write a suite file of two probes and two models, or of other parts."""
    whole = {"probes": ["probes/*"], "models": ["gpt2", "llama"], "options": {"limit": 8}, **parts}
    path = folder / "suite.yaml"
    path.write_text(yaml.safe_dump(whole))
    return path


def read_record(folder: Path) -> SuiteRecord:
    return SuiteRecord.model_validate(read_sealed(folder / RECORD, "", SCHEMA_VERSION))


def run(*words: object, code: int = 0) -> None:
    with pytest.raises(SystemExit) as done:
        main(["suite", *map(str, words)])
    assert (done.value.code or 0) == code


def plan_of(path: Path, output: Path) -> SuitePlan:
    return SuitePlan.of(*read_suite(path, output))


def test_a_suite_runs_once_and_then_only_what_is_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results"
    run(declare(tmp_path), "-o", output)
    assert "4 runs, 0 of them finished before; 0 failed" in capsys.readouterr().err
    first = (output / RECORD).read_bytes()
    times = {path: path.stat().st_mtime_ns for path in (output / "runs").rglob("*")}
    run(declare(tmp_path, probes=["probes/questions", "probes/clozes"]), "-o", output)
    assert "4 runs, 4 of them finished before" in capsys.readouterr().err
    assert (output / RECORD).read_bytes() == first
    assert (output / "report.html").is_file()
    run(declare(tmp_path, models=["bert", "llama", "gpt2"]), "-o", output, "--json")
    said = capsys.readouterr()
    assert "6 runs, 4 of them finished before" in said.err
    assert all(path.stat().st_mtime_ns == time for path, time in times.items() if path.is_file())
    record = read_record(output)
    assert record.model_dump(mode="json") == json.loads(said.out)
    assert [one.key for one in record.runs] == sorted(one.key for one in record.runs)
    assert all(0 < (one.rows or 0) <= 8 for one in record.runs)


def test_keys_depend_on_contents_and_not_on_names_or_order(world: Path, tmp_path: Path) -> None:
    plan = plan_of(declare(tmp_path, seeds=[0, 1]), tmp_path / "a")
    assert len(plan.runs) == 8
    other = declare(tmp_path, models=["llama", "gpt2"], seeds=[1, 0, 1], probes=["./probes/*"])
    assert plan_of(other, tmp_path / "b").runs.keys() == plan.runs.keys()
    shutil.copytree(world / "gpt2", tmp_path / "renamed")
    shutil.copytree(world / "probes", tmp_path / "moved")
    moved = declare(
        tmp_path, probes=[f"{tmp_path}/moved/*"], models=[f"{tmp_path}/renamed", "llama"],
        seeds=[0, 1],
    )  # fmt: skip
    assert plan_of(moved, tmp_path / "b").runs.keys() == plan.runs.keys()
    with (tmp_path / "moved/questions/test.jsonl").open("a") as file:
        file.write("\n")
    changed = plan_of(moved, tmp_path / "b").runs.keys()
    assert len(changed & plan.runs.keys()) == 4
    limited = declare(tmp_path, seeds=[0, 1], options={"limit": 9})
    assert not plan_of(limited, tmp_path / "b").runs.keys() & plan.runs.keys()


def test_a_failed_run_stops_nothing_else(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(world / "gpt2", broken)
    (broken / "model.safetensors").write_bytes(b"damaged")
    path = declare(tmp_path, models=[str(broken), "gpt2"])
    run(path, "-o", tmp_path / "out", code=1)
    said = capsys.readouterr()
    assert "4 runs, 0 of them finished before; 2 failed" in said.err
    states = {(one.model, one.state) for one in read_record(tmp_path / "out").runs}
    assert states == {(str(broken), "failed"), ("gpt2", "finished")}
    shutil.copy(world / "gpt2" / "model.safetensors", broken)
    run(path, "-o", tmp_path / "out")
    # The mended model is gpt2 under another name: nothing is left to run.
    assert "2 runs, 2 of them finished before; 0 failed" in capsys.readouterr().err


class Flaky:
    """Fails each run as often as it is told, and writes no results."""

    def __init__(self, times: int, lasting: bool = False) -> None:
        self.times, self.lasting = times, lasting
        self.tried: dict[str, int] = {}

    def execute(self, specs: Sequence[RunSpec]) -> Iterator[Ended]:
        for at, spec in reversed(list(enumerate(specs))):
            tried = self.tried[str(spec.folder)] = self.tried.get(str(spec.folder), 0) + 1
            yield Ended(at, "lost" if tried <= self.times else None, self.lasting)


@pytest.mark.parametrize(("lasting", "tries"), [(False, 3), (True, 1)])
def test_what_may_pass_is_tried_again(tmp_path: Path, lasting: bool, tries: int) -> None:
    plan, executor = plan_of(declare(tmp_path), tmp_path / "out"), Flaky(9, lasting)
    done = run_suite(plan, executor, retries=2)
    assert set(executor.tried.values()) == {tries}
    assert done.failed
    assert {one.error for one in done.record.runs} == {"lost"}


@pytest.mark.slow
def test_studies_share_runs_and_have_summaries(tmp_path: Path) -> None:
    curve = {"study": "curve", "options": {"sizes": [4, 8], "seeds": 1, "learners": ["frozen"]}}
    path = declare(
        tmp_path, probes=["questions"], models=["gpt2"], studies=["zero_shot", curve], options={}
    )
    run(path, "-o", tmp_path / "out")
    record = read_record(tmp_path / "out")
    both = [one for one in record.runs if len(one.studies) == 2]
    assert [one.options for one in both] == [{}], "the curve's point without training"
    assert len(record.runs) == 3
    assert (tmp_path / "out/studies/curve/curve.json").is_file()


def test_a_dry_run_says_what_is_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = declare(tmp_path, models=["gpt2"])
    run(path, "-o", tmp_path / "out", "--dry-run", "--sample", 4, "--json")
    told = json.loads(capsys.readouterr().out)
    assert not (tmp_path / "out").exists()
    assert (told["runs"][0]["finished"], len(told["runs"])) == (False, 2)
    run(path, "-o", tmp_path / "out")
    run(path, "-o", tmp_path / "out", "--dry-run")
    assert "2 runs, 2 of them finished; to evaluate: 0 rows" in capsys.readouterr().out


def test_a_forecast_counts_training_once_for_all_runs_that_share_it() -> None:
    plain = RunSpec.parse("probes/questions", "bert", {"limit": 8, "limit_by": "rows"})
    tuned = plain.vary(learner="full", train=4, epochs=2)
    heads = [plain.vary(learner="frozen", train=size) for size in (4, 6)]
    again = replace(tuned, probe="probes/clozes").vary(train_on="probes/questions")
    found = forecast([plain, tuned, *heads, again], sample=0)
    assert [cost.passes for cost in found.costs] == [8, 8 + 3 * 2 * 4, 8 + 4, 2, 8]
    assert found.totals["unknown"] == 5
    lost = forecast([replace(plain, probe="nowhere")])
    assert "nowhere" in lost.problems[0]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"probs": ["x"]}, r"suite\.yaml: probs.*not permitted|unknown"),
        ({"probes": []}, r"suite\.yaml: probes"),
        ({"probes": ["nowhere/*"]}, r"probes: there is no probe at 'nowhere/\*'"),
        ({"probes": ["nowhere"]}, "no file or folder 'nowhere'"),
        ({"models": [{"model": "gpt2", "option": {}}]}, r"models\.0\.option"),
        ({"studies": ["zero_shots"]}, r"studies\.0: .*zero_shots.*zero_shot"),
        ({"studies": ["items"]}, r"studies\.0: items takes folders of results"),
        ({"options": {"limits": 3}}, r"studies\.0 \(zero_shot\) has no option --limits.*limit"),
        ({"options": {"limit": "many"}}, "--limit"),
        ({"seeds": ["a"]}, r"seeds\.0"),
        (
            {"seeds": list(range(10_000)), "models": [f"m{n}" for n in range(10_000)]},
            "declares 200,000,000 runs",
        ),
        ({"options": {"train_learner": "finetune", "keep_checkpoint": "/x"}}, "outside of the wor"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(
    tmp_path: Path, parts: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        plan_of(declare(tmp_path, **parts), tmp_path / "out")


def test_a_file_writes_only_within_the_working_directory(world: Path, tmp_path: Path) -> None:
    for place in (str(tmp_path / "elsewhere"), "../elsewhere"):
        with pytest.raises(UsageError, match=f"output: {place} is outside .*: -o {place}"):
            read_suite(declare(tmp_path, output=place))
    assert read_suite(declare(tmp_path, output=str(world / "out")))[1] == world / "out"


@pytest.mark.posix
def test_a_pattern_ends_in_a_loop_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c/d"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "up").symlink_to(tmp_path)
        (tmp_path / name / "rows.jsonl").touch()
    monkeypatch.chdir(tmp_path)
    found = sorted(matching_paths("**/*.jsonl", "probes"))
    assert found == ["a/rows.jsonl", "b/rows.jsonl", "c/d/rows.jsonl"]
    assert "a/up/b/rows.jsonl" in matching_paths("*/**/rows.*", "probes")
    monkeypatch.setattr(patterns, "MAX_FOLDERS", 3)
    for pattern in ("**/*.jsonl", "/".join("*" * 60)):
        with pytest.raises(UsageError, match=r"probes: .* more than 3 folders"):
            list(matching_paths(pattern, "probes"))


@pytest.mark.parametrize("executor", [(), ("--executor", "ray"), ("--dry-run",)])
@pytest.mark.parametrize("place", ["options", "models", "studies"])
def test_a_file_cannot_allow_code_of_checkpoints(
    world: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    place: str,
    executor: tuple[str, ...],
) -> None:
    folder = with_code(world, tmp_path)
    consent = {"trust_remote_code": True}
    parts: dict[str, object] = {
        "options": consent,
        "models": [{"model": str(folder), "options": consent}],
        "studies": [{"study": "zero_shot", "options": consent}],
    }
    path = declare(tmp_path, **{"models": [str(folder)], place: parts[place]})
    run(path, *executor, code=2)
    said = capsys.readouterr().err
    assert f"{path}: {place}" in said
    assert "trust_remote_code: a file cannot allow" in said
    assert "--trust-remote-code" in said
    assert not (tmp_path / "code-ran").exists()


@pytest.mark.parametrize("name", ["weights_only", "allow_all_kernels", "trust_remote_code"])
def test_neither_can_arguments_of_a_model(tmp_path: Path, name: str) -> None:
    for value in ({name: True}, f"{name}=true"):
        path = declare(tmp_path, models=[{"model": "gpt2", "options": {"model_args": value}}])
        with pytest.raises(UsageError, match=f"{name} does not go into --model-args"):
            read_suite(path)


def test_the_command_line_allows_code_of_checkpoints(world: Path, tmp_path: Path) -> None:
    served = {"model": "served", "options": {"endpoint": "http://localhost:1/v1"}}
    path = declare(tmp_path, models=[str(with_code(world, tmp_path)), served])
    allowed = [
        request.defaults.run.trust_remote_code
        for request in read_suite(path, trust_remote_code=True)[0]
    ]
    assert allowed == [True, False], "a model behind an endpoint brings no code"
    path = declare(tmp_path, models=[str(tmp_path / "coded")])
    run(path, "--dry-run", "--sample", 0)
    assert not (tmp_path / "code-ran").exists()
    run(path, "--dry-run", "--sample", 0, "--trust-remote-code")
    assert (tmp_path / "code-ran").exists()


def test_a_key_goes_only_to_an_endpoint_that_the_command_line_names(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KBPROBE_API_KEY", "sk-secret-key")
    with serving(None, None, write=lambda asked: "B") as server:
        options = {"endpoint": server.url, "chat": True, "limit": 2}
        path = declare(tmp_path, models=["tiny"], options=options)
        run(path)
        assert len(server.headers) > 1
        assert not any("Authorization" in headers for headers in server.headers)
        path = declare(tmp_path, models=["tiny"], options={**options, "limit": 3})
        server.faults = [Fault(401)]
        run(path, code=1)
        assert f"--key-for {server.url}" in capsys.readouterr().err
        run(path, "--key-for", f"{server.url}/", "--key-for", "http://127.0.0.1:9/v1")
        assert server.headers[-1]["Authorization"] == "Bearer sk-secret-key"
    path = declare(tmp_path, models=["tiny"], options={**options, "send_key": True})
    with pytest.raises(UsageError, match=r"options.send_key: a file cannot .* --key-for URL"):
        read_suite(path)


def with_code(world: Path, folder: Path) -> Path:
    """Write a checkpoint whose code leaves the file ``code-ran`` in a folder."""
    shutil.copytree(world / "gpt2", folder / "coded")
    config = json.loads((folder / "coded/config.json").read_text())
    config |= {"model_type": "custom", "auto_map": {"AutoConfig": "code.Config"}}
    (folder / "coded/config.json").write_text(json.dumps(config))
    (folder / "coded/code.py").write_text(
        f"open({str(folder / 'code-ran')!r}, 'w').close()\n"
        "from transformers import PretrainedConfig\n"
        "class Config(PretrainedConfig):\n    model_type = 'custom'\n"
    )
    return folder / "coded"


def test_options_of_ray_need_ray(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(declare(tmp_path), "--address", "auto", code=2)
    assert "--address is for --executor ray" in capsys.readouterr().err


@pytest.mark.slow
def test_a_suite_in_this_process_imports_no_ray(tmp_path: Path) -> None:
    path = declare(tmp_path, probes=["questions"], models=["gpt2"])
    code = (
        "import sys\nfrom evaluation.cli import main\n"
        f"try: main(['suite', {str(path)!r}, '-o', {str(tmp_path / 'out')!r}])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert 'ray' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
