"""Exports of results: the Hub's format, with its pull request, and Every Eval Ever's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from evaluation.exports.command import export_command
from evaluation.results.types import read_results, write_results
from kbprobe.errors import KbprobeError, UsageError
from tests.evaluation.saved_runs import save_run
from tests.release.hub_server import TOKEN, HubServer, let_through

MANIFESTS = Path(__file__).parent.parent / "data" / "manifests"
SCHEMAS = Path(__file__).parent.parent / "data" / "every_eval_ever"
COMMIT = "5" * 40
DATASET, MODEL = "me/antonyms", "you/tiny"
PATH = ".eval_results/me--antonyms.yaml"


def export(*words: str | Path) -> list[str]:
    # click keeps what asks for help at a command's first use.
    done = CliRunner().invoke(export_command, [str(word) for word in words])
    if done.exception is not None:
        raise done.exception
    return done.output.splitlines()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return save_run(tmp_path / "run", MODEL, [0, 0, 0, 1, None], probe="antonym_negation")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    let_through(monkeypatch)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with HubServer() as server:
        server.account(TOKEN, "me")
        yield server


def test_an_entry_says_what_was_measured_and_how(run: Path, tmp_path: Path) -> None:
    (path,) = export(
        run, "--to", "hub", "--dataset", DATASET, "--revision", COMMIT, "-o", tmp_path / "o"
    )
    assert path == str(tmp_path / "o" / PATH)
    (entry,) = yaml.safe_load(Path(path).read_text())
    accuracy = read_results(run).metrics.accuracy
    assert entry["value"] == 75.0 == 100 * accuracy.value
    assert entry["dataset"] == {
        "id": DATASET,
        "task_id": "kbprobe_antonym_negation",
        "revision": COMMIT,
    }
    assert f"interval {100 * accuracy.low:.1f} to {100 * accuracy.high:.1f}" in entry["notes"]
    assert "4 of 5 rows scored" in entry["notes"]


def test_the_hub_library_reads_the_file(run: Path, tmp_path: Path) -> None:
    import huggingface_hub as hub

    parse = getattr(hub, "parse_eval_result_entries", None)
    if parse is None:
        pytest.skip("this huggingface_hub cannot read results yet")
    (path,) = export(run, "--to", "hub", "--dataset", DATASET, "--revision", COMMIT, "-o", tmp_path)
    (entry,) = parse(yaml.safe_load(Path(path).read_text()))
    assert (entry.dataset_id, entry.dataset_revision, entry.value) == (DATASET, COMMIT, 75.0)


def test_other_tasks_of_the_file_are_kept(run: Path, tmp_path: Path) -> None:
    control = save_run(tmp_path / "c", MODEL, [1, 1], probe="antonym_negation-no_language")
    words = ("--to", "hub", "--dataset", DATASET, "--revision", COMMIT, "-o", tmp_path / "o")
    export(run, *words)
    (path,) = export(control, *words)
    held = yaml.safe_load(Path(path).read_text())
    assert {one["dataset"]["task_id"]: one["value"] for one in held} == {
        "kbprobe_antonym_negation": 75.0,
        "kbprobe_antonym_negation_no_language": 0.0,
    }


def test_what_would_mislead_is_refused(run: Path, tmp_path: Path) -> None:
    words = ("--to", "hub", "--dataset", DATASET, "--revision", COMMIT, "-o", tmp_path / "o")
    other = save_run(tmp_path / "b", "you/other", [0])
    drawn = save_run(tmp_path / "d", MODEL, [0], random_weights=1)
    with pytest.raises(UsageError, match="several models"):
        export(run, other, *words)
    with pytest.raises(UsageError, match="random weights"):
        export(drawn, *words)
    with pytest.raises(UsageError, match="both hold results"):
        export(run, run, *words)
    with pytest.raises(UsageError, match="--dataset"):
        export(run, "--to", "hub")
    assert not (tmp_path / "o").exists()


BOMB = "- &a0 {dataset: {id: x, task_id: y}}\n" + "".join(
    f"- &a{n} {{<<: [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (BOMB, "more than 100,000 values"),
        ("[" * 70 + "]" * 70, "nested more than 64 levels"),
        ("# " + "x" * (1 << 20), "more than 1,048,576 bytes"),
        ("- !!python/name:os.system x", "not a kind of value"),
        ("a: b", "does not hold a list of results"),
        ("[", "is not YAML: line 1"),
    ],
)
def test_a_file_of_others_is_read_within_limits(
    run: Path, tmp_path: Path, content: str, problem: str
) -> None:
    path = tmp_path / PATH
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(UsageError, match=rf"{path.name}.* {problem}.*Correct it by hand"):
        export(run, "--to", "hub", "--dataset", DATASET, "--revision", COMMIT, "-o", tmp_path)
    assert path.read_text() == content


def sampled(run: Path, rows: int) -> Path:
    """Let results be those of a sample of a split."""
    held = read_results(run)
    probe = held.probe.model_copy(update={"split_rows": rows})
    scoring = held.scoring.model_copy(update={"options": {**held.scoring.options, "limit": 5}})
    write_results(held.model_copy(update={"probe": probe, "scoring": scoring}), run)
    return run


def test_a_sample_of_the_rows_is_refused_or_marked(run: Path, tmp_path: Path) -> None:
    folder, output = sampled(run, 4_000), tmp_path / "o"
    with pytest.raises(UsageError, match=r"5 of 4,000 rows \(--limit 5\).*Evaluate all of them"):
        export(folder, "--to", "hub", "--dataset", DATASET, "--revision", COMMIT, "-o", output)
    assert not output.exists()
    path, _ = export(folder, "--to", "every-eval-ever", "--organization", "A lab", "-o", output)
    (result,) = json.loads(Path(path).read_text())["evaluation_results"]
    assert "5 of the 4,000 rows (--limit 5)" in result["metric_config"]["evaluation_description"]
    assert result["source_data"]["additional_details"]["rows_of_split"] == "4000"


def test_a_probe_beside_others_is_found_by_its_name_there(hub: HubServer, tmp_path: Path) -> None:
    first, second = (path.read_bytes() for path in sorted(MANIFESTS.rglob("*.json"))[:2])
    hub.put(DATASET, {"manifest.json": first, "ours/manifest.json": second})
    request = json.loads(second)["request"]
    run = save_run(tmp_path / "run", MODEL, [0, 1], request=request)
    words = ("--to", "hub", "--dataset", DATASET, "--endpoint", hub.url, "-o", tmp_path / "o")
    with pytest.raises(UsageError, match=r"as ours.* with --config-name ours"):
        export(run, *words)
    (path,) = export(run, *words, "--config-name", "ours")
    assert yaml.safe_load(Path(path).read_text())[0]["dataset"]["task_id"] == "kbprobe_made_ours"
    with pytest.raises(UsageError, match="--config-name and --create-pr are options of --to hub"):
        export(run, "--to", "every-eval-ever", "--config-name", "ours")


def test_the_revision_is_the_commit_with_the_evaluated_build(
    hub: HubServer, tmp_path: Path
) -> None:
    content = next(iter(sorted(MANIFESTS.rglob("*.json")))).read_bytes()
    request = json.loads(content)["request"]
    head = hub.put(DATASET, {"manifest.json": content}).oid
    run = save_run(tmp_path / "run", MODEL, [0, 1], request=request)
    words = ("--to", "hub", "--dataset", DATASET, "--endpoint", hub.url, "-o", tmp_path / "o")
    (path,) = export(run, *words)
    assert yaml.safe_load(Path(path).read_text())[0]["dataset"]["revision"] == head
    another = save_run(tmp_path / "b", MODEL, [0], request=request | {"seed": 999})
    with pytest.raises(UsageError, match="no probe that was built as"):
        export(another, *words)
    with pytest.raises(UsageError, match="no such revision"):
        export(run, *words, "--revision", "v9")


def test_one_pull_request_is_opened(hub: HubServer, run: Path, tmp_path: Path) -> None:
    held: list[dict[str, Any]] = [{"dataset": {"id": DATASET, "task_id": "mine"}, "value": 1.5}]
    hub.put(MODEL, {PATH: yaml.safe_dump(held).encode()})
    words = ("--to", "hub", "--dataset", DATASET, "--revision", COMMIT, "-o", tmp_path / "o")
    words += ("--create-pr", MODEL, "--endpoint", hub.url)
    first = export(run, *words)[-1]
    repo = hub.repos[MODEL]
    assert list(repo.pulls) == ["refs/pr/1"]
    asked = yaml.safe_load(hub.content(MODEL, PATH, "refs/pr/1"))
    assert asked[0] == held[0]
    assert asked[1]["value"] == 75.0
    assert yaml.safe_load(hub.content(MODEL, PATH)) == held
    # The same one is not opened twice.
    assert export(run, *words)[-1].rsplit("/", 1)[1] == first.rsplit("/", 1)[1] == "1"
    assert list(repo.pulls) == ["refs/pr/1"]
    with pytest.raises(UsageError, match="no such repository"):
        export(run, *words, "--create-pr", "you/missing")
    hub.fail("POST", "/commit/", status=403, message="not yours")
    hub.put(MODEL, {PATH: b""})
    with pytest.raises(KbprobeError, match="not yours") as refused:
        export(run, *words)
    assert TOKEN not in str(refused.value)


@pytest.mark.slow
def test_every_eval_ever_has_its_schema(run: Path, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    paths = export(run, "--to", "every-eval-ever", "--organization", "A lab", "-o", tmp_path / "o")
    about = json.loads(Path(paths[0]).read_text())
    rows = [json.loads(line) for line in Path(paths[1]).read_text().splitlines()]
    schema = json.loads((SCHEMAS / "eval.schema.json").read_text())
    jsonschema.validate(about, schema)
    of_rows = json.loads((SCHEMAS / "instance_level_eval.schema.json").read_text())
    for row in rows:
        jsonschema.validate(row, of_rows)
        assert row["evaluation_id"] == about["evaluation_id"]
    (result,) = about["evaluation_results"]
    assert result["score_details"]["score"] == sum(row["evaluation"]["score"] for row in rows) / 4
    assert [row["output"]["raw"] for row in rows] == [["gold"]] * 3 + [["wrong"]]
    detail = about["detailed_evaluation_results"]
    content = (tmp_path / "o" / detail["file_path"]).read_bytes()
    assert detail["checksum"] == hashlib.sha256(content).hexdigest()
    assert detail["total_rows"] == len(rows) == 4
