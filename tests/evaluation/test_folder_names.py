"""Folders of results: named by what was asked, shared by nothing else."""

import shutil
from pathlib import Path

import pytest
import torch

import evaluation
from evaluation.cli import main
from evaluation.names import folder_names, options_name
from evaluation.results.types import RESULTS, read_results
from evaluation.runs.identity import Identity
from evaluation.studies.base import StudyRequest
from evaluation.studies.registry import STUDIES
from tests.evaluation import tiny_masked
from tests.evaluation.test_evaluate import write_probe


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    (folder / "sizes").mkdir()
    write_probe(folder / "sizes" / "test.jsonl", rows=24)
    write_probe(folder / "sizes" / "dev.jsonl", rows=12)
    tiny_masked.write("bert-uncased", folder / "tuned" / "model")
    tiny_masked.write("roberta", folder / "other" / "model")
    return folder


@pytest.fixture(autouse=True)
def in_world(world, tmp_path, monkeypatch):
    monkeypatch.chdir(world)
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    torch.set_num_threads(1)
    yield
    shutil.rmtree(world / "results", ignore_errors=True)


def run(*words, code=0):
    with pytest.raises(SystemExit) as done:
        main([*map(str, words)])
    assert (done.value.code or 0) == code


def folder_of(study, values, models=("tuned/model",), tag="", **changes):
    request = StudyRequest.parse(STUDIES.get(study), ["sizes"], models, values)
    request = StudyRequest(request.study, request.probes, request.models, values=values, tag=tag)
    request = request.within(evaluation.cli.DEFAULT_PARENT)
    return request.spec("sizes", models[0], **changes).folder.as_posix()


def test_models_in_generic_folders_have_telling_names(world):
    names = folder_names(["tuned/model", "other/model", "FacebookAI/roberta-large"])
    assert list(names.values()) == ["tuned-model", "other-model", "FacebookAI--roberta-large"]


@pytest.mark.parametrize("last", ["model", "checkpoint-100", "final", "checkpoint", "7", "seed-1"])
def test_no_two_models_share_a_name(tmp_path, last):
    paths = [tmp_path / one / two / last for one in "ab" for two in ("run", "again")]
    for path in paths:
        path.mkdir(parents=True)
    names = folder_names(list(map(str, paths)))
    assert len(set(names.values())) == len(paths)
    assert all(name.endswith(last) and name != last for name in names.values())


def test_hub_ids_that_read_alike_get_other_folders():
    names = folder_names(["org/model", "org--model", "org/other"])
    assert len(set(names.values())) == 3
    assert names["org/other"] == "org--other"


@pytest.mark.parametrize(
    ("values", "tag", "expected"),
    [
        ({}, "", "results/sizes/tuned-model"),
        ({"limit": 20}, "", "results/sizes/tuned-model+limit-20"),
        ({"limit": 20, "limit_by": "rows"}, "", "results/sizes/tuned-model+limit-20+limit-by-rows"),
        ({"letters": True, "split": "dev"}, "", "results/sizes/tuned-model+split-dev+letters"),
        ({"config": "no_language"}, "b", "results/sizes-no_language/tuned-model+b"),
        ({"split": "test", "letters": False, "seed": 0}, "", "results/sizes/tuned-model"),
        ({"device": "cpu", "batch_tokens": 64, "cache": False}, "", "results/sizes/tuned-model"),
    ],
)
def test_a_folder_names_the_options_that_differ_from_their_defaults(values, tag, expected):
    assert folder_of("zero_shot", values, tag=tag) == expected


def test_a_study_s_folder_names_them_once():
    values = {"limit": 20}
    found = folder_of("curve", values, tag="b", train=5, train_seed=1)
    assert found == "results/curve+limit-20+b/sizes/tuned-model/train-5/train_seed-1"


def test_long_and_odd_values_are_short_stable_and_distinct():
    prompts = [{"prompt": f"Question: {{question}}\n{text}"} for text in ("A:", "Answer:")]
    names = [options_name(prompt) for prompt in prompts]
    assert len(set(names)) == 2
    assert names == [options_name(prompt) for prompt in prompts]
    assert all("/" not in name and "\n" not in name and len(name) < 20 for name in names)
    long = options_name({f"option_{n}": n for n in range(40)})
    assert len(long) <= 100
    assert long != options_name({f"option_{n}": n for n in range(41)})


@pytest.mark.slow
def test_other_options_go_to_other_folders_and_none_is_refused(capsys):
    for further in ((), ("--limit", 6), ("--split", "dev"), ("--seed", 3), ("--tag", "again")):
        run("sizes", "--model", "tuned/model", *further)
    run("sizes", "--model", "other/model")
    found = sorted(path.parent.name for path in evaluation.cli.DEFAULT_PARENT.rglob(RESULTS))
    assert found == [
        "other-model",
        "tuned-model",
        "tuned-model+again",
        "tuned-model+limit-6",
        "tuned-model+seed-3",
        "tuned-model+split-dev",
    ]
    run("sizes", "--model", "tuned/model", "--limit", 6)
    assert "already holds exactly this" in capsys.readouterr().err


def test_results_and_table_say_of_how_many_rows_and_clusters(capsys):
    run("sizes", "--model", "tuned/model", "--limit", 6, "--limit-by", "rows")
    shown = capsys.readouterr().out
    assert "6 of 24" in shown
    assert "6 of 24 rows (--limit 6" in shown
    folder = evaluation.cli.DEFAULT_PARENT / "sizes" / "tuned-model+limit-6+limit-by-rows"
    probe = read_results(folder).probe
    assert (probe.rows, probe.clusters, probe.split_rows, probe.split_clusters) == (6, 6, 24, 24)
    assert "6 of 24 rows" in (folder / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("further", "differences"),
    [
        (("--limit", 6), ["--limit is not given there and 6 now"]),
        (("--split", "dev"), ["--split is test there and dev now"]),
        (("--seed", 2), ["--seed is 0 there and 2 now"]),
        (("--multi-piece", "skip"), ["--multi-piece is pll there and skip now"]),
        (("--batch-tokens", 64), ["--batch-tokens is 1024 there and 64 now"]),
        (("--dtype", "bfloat16"), ["--dtype is float32 there and bfloat16 now"]),
    ],
)
def test_a_folder_with_other_results_is_refused_by_each_difference(
    tmp_path, further, differences, capsys
):
    out = tmp_path / "out"
    run("sizes", "--model", "tuned/model", "-o", out)
    before = (out / RESULTS).read_bytes()
    capsys.readouterr()
    run("sizes", "--model", "tuned/model", "-o", out, *further, code=2)
    said = capsys.readouterr().err
    assert all(difference in said for difference in differences), said
    assert f"-o {out}+" in said
    assert "--overwrite" in said
    assert (out / RESULTS).read_bytes() == before
    # The folder that it names keeps both.
    other = said.partition("such as -o ")[2].partition(")")[0]
    run("sizes", "--model", "tuned/model", "-o", other, *further)
    assert read_results(Path(other)).probe.name == "sizes"


def test_another_model_or_changed_rows_are_named(tmp_path, world, capsys):
    out = tmp_path / "out"
    run("sizes", "--model", "tuned/model", "-o", out)
    run("sizes", "--model", "other/model", "-o", out, code=2)
    assert "--model is tuned/model there and other/model now" in capsys.readouterr().err
    probe = tmp_path / "sizes"
    shutil.copytree(world / "sizes", probe)
    (probe / "test.jsonl").write_text((world / "sizes" / "dev.jsonl").read_text())
    run(probe, "--model", "tuned/model", "-o", out, code=2)
    assert "the probe's content is " in capsys.readouterr().err


def test_a_tag_beside_a_folder_of_one_s_own_is_refused(tmp_path, capsys):
    run("sizes", "--model", "tuned/model", "-o", tmp_path / "x", "--tag", "b", code=2)
    assert f"-o {tmp_path / 'x'}+b" in capsys.readouterr().err
    run("sizes", "--model", "tuned/model", "--tag", "../b", code=2)
    assert "use letters, digits" in capsys.readouterr().err


def test_only_what_decides_results_is_a_difference() -> None:
    there = {"limit": 30, "limit_by": "clusters", "model": "a", "the checkpoint's content": "1"}
    results = Identity("key", {**there, "seed": 0}, rows=24)

    def differing(key: str | None = None, **now: object) -> list[str]:
        return [one.name for one in results.differences(Identity(key, now))]

    # A limit above the number of rows draws all of them.
    assert differing(limit=None) == differing(limit=24, limit_by="rows") == []
    assert differing(limit=23) == ["limit"]
    # What a request leaves open is none; what a run lacks is.
    assert differing(seed=1, letters=True) == ["seed"]
    assert differing("key", **there) == ["seed"]
    # Another model explains another content.
    content = {"the checkpoint's content": "2"}
    assert differing(**content) == ["the checkpoint's content"]
    assert differing(model="b", **content) == ["model"]
