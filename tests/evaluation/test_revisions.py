"""Revisions of a model: found, ordered, evaluated one after another, and compared."""

from __future__ import annotations

import gc
import json
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import evaluation
from evaluation.cli import main
from evaluation.models import handle
from evaluation.models.revisions import find_revisions
from evaluation.results import intervals
from evaluation.results.histories import follow
from evaluation.studies.base import read_summary
from evaluation.studies.table import StudyTables
from kbprobe.errors import KbprobeError, UsageError
from tests.evaluation import tiny_masked
from tests.evaluation.test_curve_page import read
from tests.evaluation.test_curve_study import SENTENCES, write_split
from tests.release.hub_server import HubServer, let_through

STEPS = (1000, 0, 64, 512)


def write_checkpoints(folder: Path, names: list[str]) -> None:
    """Write a model with other weights under each name, the same each time."""
    first = tiny_masked.write("bert-uncased", folder / names[0])
    weights = load_file(first / "model.safetensors")
    for number, name in enumerate(names[1:], 1):
        shutil.copytree(first, folder / name)
        torch.manual_seed(number)
        moved = {key: w + 0.2 * torch.randn_like(w) for key, w in weights.items()}
        save_file(moved, folder / name / "model.safetensors", {"format": "pt"})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    write_split(folder / "ages", "test", SENTENCES[""], range(45))
    write_checkpoints(folder / "run", [f"checkpoint-{step}" for step in STEPS])
    return folder


@pytest.fixture(autouse=True)
def in_world(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    monkeypatch.setenv("KBPROBE_CACHE", str(world / "cache"))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    import huggingface_hub.constants as constants

    let_through(monkeypatch)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    with HubServer() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        files = f"{server.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        yield server


def study(model: str = "run", revisions: Any = ("checkpoint-*",), **options: Any) -> Any:
    return evaluation.study("revisions", "ages", model, revisions=revisions, **options)


def command(*words: Any, code: int = 0) -> None:
    with pytest.raises(SystemExit) as done:
        main([*map(str, words)])
    assert (done.value.code or 0) == code


def names(patterns: list[str], model: str = "run") -> list[str]:
    return [one.name for one in find_revisions(model, patterns)]


def test_checkpoints_of_a_folder_are_in_the_order_of_steps() -> None:
    ordered = [f"checkpoint-{step}" for step in sorted(STEPS)]
    assert names(["checkpoint-*"]) == ordered
    assert names(["checkpoint-512", "checkpoint-*"]) == ordered, "each once"
    assert names(["checkpoint-1*", "checkpoint-0"]) == ["checkpoint-0", "checkpoint-1000"]
    assert names(["run/checkpoint-64"], ".") == ["run/checkpoint-64"]
    with pytest.raises(UsageError, match=r"no checkpoint 'step\*'. It has checkpoint-0, checkp"):
        names(["step*"])
    for outside in ("../run/checkpoint-0", "/tmp/*", "."):
        with pytest.raises(UsageError, match="name checkpoints within run"):
            names([outside])
    with pytest.raises(UsageError, match="--model none is neither"):
        names(["a"], "none")
    with pytest.raises(UsageError, match="no such file or folder"):
        names(["a"], "./nowhere")


def test_names_without_a_step_stay_where_they_were_given(hub: HubServer) -> None:
    for branch in ("step1000", "step512", "step0", "a/step64"):
        hub.put("me/m", {"config.json": b"{}"}, branch=branch)
    hub.repos["me/m"].tags["v1.0"] = hub.repos["me/m"].branches["main"]
    assert names(["step*"], "me/m") == ["step0", "step512", "step1000"]
    assert names(["*step*"], "me/m") == ["step0", "a/step64", "step512", "step1000"]
    assert names(["main", "step*"], "me/m") == ["main", "step0", "step512", "step1000"]
    assert names(["v*", "main"], "me/m") == ["v1.0", "main"]
    with pytest.raises(UsageError, match=r"me/m has no branch or tag 'iter\*'. It has step0, "):
        names(["iter*"], "me/m")
    with pytest.raises(UsageError, match="me/nowhere is neither a folder here nor"):
        names(["*"], "me/nowhere")
    asked = len(hub.seen)
    assert names(["f00d", "main"], "me/m") == ["f00d", "main"]
    assert len(hub.seen) == asked, "names are not looked up"
    hub.fail("GET", "/refs", drop="before", times=9)
    with pytest.raises(KbprobeError, match=r"--revisions step\*: only the Hub can tell"):
        names(["step*"], "me/m")


def naive(one: StudyTables, world: Path) -> list[np.ndarray[Any, np.dtype[np.bool_]]]:
    """Evaluate each checkpoint alone."""
    return [
        evaluation.evaluate("ages", world / "run" / row["revision"])
        .to_pandas()["correct"]
        .to_numpy(bool)
        for row in one.tables["runs"]
    ]


@pytest.fixture(scope="module")
def summary(world: Path) -> StudyTables:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(world)
        patch.setenv("KBPROBE_CACHE", str(world / "cache"))
        found: StudyTables = study()
    return found


def test_numbers_are_those_of_each_revision_alone(world: Path, summary: StudyTables) -> None:
    rows, questions = summary.tables["runs"], summary.tables["questions"]
    (about,) = summary.tables["probes"]
    assert [row["step"] for row in rows] == sorted(STEPS)
    assert about["by_step"]
    right = naive(summary, world)
    clusters = np.array([int(asked["cluster"][1:]) for asked in questions])
    for place, row in enumerate(rows):
        assert row["accuracy"].value == pytest.approx(right[place].mean())
        for name, earlier, later in (
            ("since_first", 0, place),
            ("since_previous", place - 1, place),
            ("until_last", place, len(right) - 1),
        ):
            if earlier == later or earlier < 0:
                assert row[name] is None
                continue
            before, now = right[earlier], right[later]
            assert row[name] == intervals.paired_difference(before, now, clusters, 0)
        if place:
            before, now = right[place - 1], right[place]
            assert row["became_right"] == pytest.approx((now & ~before).mean())
            assert row["became_wrong"] == pytest.approx((before & ~now).mean())
    for number, asked in enumerate(questions):
        told = [bool(answers[number]) for answers in right]
        assert asked["answers"] == "".join("wr"[now] for now in told)
        turns = [(p, now) for p, now in enumerate(told) if p and now != told[p - 1]]
        learnt = [rows[p]["revision"] for p, now in turns if now]
        forgotten = [rows[p]["revision"] for p, now in turns if not now]
        assert asked["learnt"] == (learnt[-1] if learnt else None)
        assert asked["forgotten"] == (forgotten[-1] if forgotten else None)
        assert asked["changes"] == len(turns)
    for place, row in enumerate(rows):
        held = [asked for asked in questions if asked["learnt"] == row["revision"]]
        assert row["learnt_for_good"] == sum("w" not in asked["answers"][place:] for asked in held)
    assert about["always_right"] == sum(set(asked["answers"]) == {"r"} for asked in questions)


def test_a_question_that_is_not_scored_stays_as_it_was() -> None:
    answers = np.array([[-1, 1, 0], [0, -1, 1], [1, 1, -1], [-1, 0, 0]])
    found = follow(answers)
    assert found.learnt.tolist() == [2, -1, 1]
    assert found.forgotten.tolist() == [-1, 3, 3]
    assert found.changes.tolist() == [1, 1, 2]
    assert (found.settled(2, right=True), found.settled(3, right=False)) == (1, 2)
    assert found.settled(1, right=True) == 0, "it was forgotten later"


@pytest.mark.slow
def test_the_command_names_what_failed_and_keeps_the_others(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(world / "run", tmp_path / "run")
    weights = tmp_path / "run" / "checkpoint-64" / "model.safetensors"
    kept = weights.rename(tmp_path / "kept")
    words = ["ages", "-m", tmp_path / "run", "--revisions", "checkpoint-*"]
    words += ["-o", tmp_path / "out"]
    command("revisions", *words, "--json", code=1)
    shown = capsys.readouterr()
    assert "checkpoint-64: " in shown.err
    assert "holds no weights" in shown.err
    tables = json.loads(shown.out)["tables"]
    assert [failed["revision"] for failed in tables["failed"]] == ["checkpoint-64"]
    assert [row["step"] for row in tables["runs"]] == [0, 512, 1000]
    page = (tmp_path / "out" / "revisions.html").read_text()
    assert "checkpoint-64 could not be evaluated" in page
    reader = read(page)
    assert reader.tags["script"] == 0
    before = sorted((tmp_path / "out").rglob("results.json"))
    stamps = [path.stat().st_mtime_ns for path in before]
    kept.rename(weights)
    command("revisions", *words)
    shown = capsys.readouterr()
    assert "since previous" in shown.out
    assert [path.stat().st_mtime_ns for path in before] == stamps, "the others are found again"
    record = tmp_path / "out" / "revisions.json"
    found = read_summary(record, "revisions", StudyTables, "2.0", "")
    assert [row["step"] for row in found.tables["runs"]] == [0, 64, 512, 1000]
    assert found.tables["failed"] == []
    lines = (tmp_path / "out" / "revisions.csv").read_text().splitlines()
    assert len(lines) == 1 + 45
    assert not list((tmp_path / "out").rglob("report.html"))
    record.write_text(record.read_text().replace("Questions that none has right", "Others"))
    with pytest.raises(UsageError, match="was changed after kbprobe wrote it"):
        read_summary(record, "revisions", StudyTables, "2.0", "")


@pytest.mark.slow
def test_revisions_of_the_hub_are_evaluated_by_their_commits(
    world: Path, hub: HubServer, tmp_path: Path
) -> None:
    for step in (512, 64):
        folder = world / "run" / f"checkpoint-{step}"
        files: dict[str, bytes | None] = {p.name: p.read_bytes() for p in folder.iterdir()}
        hub.put("me/m", files, branch=f"step{step}")
    hub.put("me/m", {"config.json": b"{}"}, branch="step512-broken")
    tables = study("me/m", ("step*",), output=tmp_path).tables
    assert [row["revision"] for row in tables["runs"]] == ["step64", "step512"]
    assert [failed["revision"] for failed in tables["failed"]] == ["step512-broken"]
    heads = hub.repos["me/m"].branches
    assert [row["commit"] for row in tables["runs"]] == [heads["step64"], heads["step512"]]
    here = study(revisions=("checkpoint-64", "checkpoint-512")).tables["runs"]
    assert [row["accuracy"] for row in tables["runs"]] == [row["accuracy"] for row in here]
    assert (tmp_path / "ages" / "me--m" / "revision-step64" / "results.json").is_file()


@pytest.mark.slow
def test_one_model_is_in_memory_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before the weights of a revision are read, those of the revision before are gone."""
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    seen: list[weakref.ref[Any]] = []
    alive: list[int] = []
    original = handle.load_model

    def loading(*arguments: Any, **named: Any) -> Any:
        alive.append(sum(one() is not None for one in seen))
        model = original(*arguments, **named)
        seen.append(weakref.ref(model))
        return model

    monkeypatch.setattr(handle, "load_model", loading)
    gc.collect()
    study(revisions=("checkpoint-0", "checkpoint-64"), limit=9)
    assert alive == [0, 0]


def test_what_cannot_be_a_series_is_refused() -> None:
    with pytest.raises(UsageError, match="name the revisions with --revisions, such as"):
        study(revisions=())
    with pytest.raises(UsageError, match=r"stands for a single revision of run \(checkpoint-0\)"):
        study(revisions=("checkpoint-0",))
    with pytest.raises(UsageError, match="sets revision itself"):
        study(revision="main")
    with pytest.raises(KbprobeError, match="nowhere"):
        evaluation.study("revisions", "./nowhere", "run", revisions=("checkpoint-*",))
