"""Runs of one command that forked processes execute side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.results.types import RESULTS
from evaluation.suites.run import RECORD
from kbprobe.checkpoint_files import local_weights_size
from tests.commands import interrupted, run_here
from tests.reliability.commands import _hash

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux can fork safely"),
    pytest.mark.usefixtures("in_world"),
]

SCORER = """
import os, signal, time
import numpy as np
from evaluation.models.capabilities import Capability
from evaluation.scorers.base import RowScorer, ScorerEntry

PARENT = os.getpid()

class Scorer(RowScorer):
    def choice_scores(self, items):
        forked = os.getpid() != PARENT
        print("forked" if forked else "not forked")
        {act}
        return np.arange(sum(len(item.choices) for item in items), dtype=float), {{}}

ENTRY = ScorerEntry(
    name="own", label="own", needs=Capability.NOTHING, make=lambda _: Scorer()
)
"""


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "evaluation.cli", *map(str, words)]


def run(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, which has not imported torch."""
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return done


def own_scorer(folder: Path, act: str = "pass") -> tuple[object, ...]:
    """Write a scorer that does something, and return the words that name it."""
    path = folder / "own.py"
    path.write_text(SCORER.format(act=act))
    return "-m", "none", "--scorer", f"{path}:ENTRY"


def hashes(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): _hash(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def timeless(line: str) -> object:
    return {**json.loads(line), "timings": None}


@pytest.mark.slow
def test_files_and_reports_do_not_depend_on_the_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a study that trains heads, whose runs one process executes together."""
    given = ("clozes", "questions", "--limit", "8", "--json", "--device", "cpu")
    train = ("clozes", "-m", "bert", "-m", "roberta", "--train", "8", "--limit", "8")
    ways = {}
    for workers in ("1", "2"):
        own = tmp_path / workers
        monkeypatch.setenv("KBPROBE_CACHE", str(own / "cache"))
        done = run(*given, "-m", "gpt2", "-m", "llama", "--workers", workers, "-o", own / "plain")
        run(*train, "--learner", "linear", "--workers", workers, "-o", own / "heads")
        wrote = [line.rpartition("/")[2] for line in done.stderr.splitlines()]
        files = {name: hashes(own / name) for name in ("plain", "heads")}
        ways[workers] = [timeless(line) for line in done.stdout.splitlines()], wrote, files
    assert ways["1"] == ways["2"]
    assert len(ways["2"][0]) == 4


def test_each_run_is_reported_in_the_order_asked_with_what_it_printed(tmp_path: Path) -> None:
    words = own_scorer(tmp_path, 'time.sleep(1 if "clozes" in str(items[0].id) else 0)')
    done = run("clozes", "questions", *words, "--workers", "2", "-o", tmp_path / "out", "--json")
    printed = done.stdout.splitlines()
    assert printed[::2] == ["forked", "forked"]
    probes = [json.loads(line)["probe"]["name"] for line in printed[1::2]]
    assert probes == ["clozes", "questions"]


def test_an_error_in_one_run_leaves_the_others_finished_and_is_named(tmp_path: Path) -> None:
    words = own_scorer(tmp_path)
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"question": 1}\n')
    done = run(bad, "clozes", "questions", *words, "--workers", "2", "-o", tmp_path / "out", code=1)
    assert "bad.jsonl with none: " in done.stderr
    assert len(list((tmp_path / "out").rglob(RESULTS))) == 2


@pytest.mark.parametrize(
    ("act", "code"),
    [("forked and os.kill(os.getpid(), signal.SIGKILL)", 0), ('raise ValueError("broken")', 1)],
    ids=["killed", "broken"],
)
def test_runs_whose_processes_end_are_repeated_by_the_command_itself(
    act: str, code: int, tmp_path: Path
) -> None:
    words = own_scorer(tmp_path, act)
    done = run("clozes", "questions", *words, "--workers", "2", "-o", tmp_path / "out", code=code)
    if code:
        assert "ValueError: broken" in done.stderr
    else:
        assert done.stdout.startswith("not forked\nnot forked\n")
        assert len(list((tmp_path / "out").rglob(RESULTS))) == 2


@pytest.mark.slow
def test_a_suite_is_the_same_with_any_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "probes: [clozes, questions]\nmodels: [gpt2, llama]\noptions: {limit: 8}\nseeds: [0, 1]\n"
    )
    records = {}
    for workers in ("1", "2"):
        monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / f"cache-{workers}"))
        out = tmp_path / workers
        run("suite", suite, "-o", out, "--workers", workers)
        records[workers] = (out / RECORD).read_bytes(), hashes(out / "runs")
    assert records["1"] == records["2"]


@pytest.mark.parametrize("group", [False, True], ids=["of the parent", "from the terminal"])
def test_an_interrupt_ends_all_processes_and_leaves_nothing(group: bool, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = own_scorer(tmp_path, f'open("{tmp_path}/at", "a").write("."); time.sleep(100)')
    at = tmp_path / "at"
    code, errors = interrupted(
        command("clozes", "questions", *words, "--no-cache", "--workers", "2", "-o", "out"),
        lambda: at.exists() and at.read_text() == "..",
        group,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert code == 130, errors
    assert "Interrupted" in errors
    assert not list(scratch.iterdir())
    assert not Path("out").exists() or not list(Path("out").rglob("*.json"))


def test_several_processes_are_for_the_cpu(tmp_path: Path) -> None:
    done = run_here(
        "evaluation.cli", "clozes", "questions", "-m", "gpt2", "--device", "cuda", "--workers", "2",
        "-o", tmp_path / "out",
    )  # fmt: skip
    assert done.returncode == 2
    assert "--workers 2 is for models that are loaded here, on the CPU" in done.stderr
    suite = tmp_path / "suite.yaml"
    options = '{endpoint: "http://127.0.0.1:9/v1", limit: 4}'
    suite.write_text(f"options: {options}\nmodels: [gpt2]\nprobes: [clozes, questions]\n")
    done = run_here("evaluation.cli", "suite", suite, "-o", tmp_path / "suite", "--workers", "2")
    assert done.returncode == 2
    assert "--workers 2 is for models that are loaded here, on the CPU" in done.stderr
    assert not list((tmp_path / "suite").rglob(RESULTS))


def test_the_size_of_weights_is_known_where_they_are_here(tmp_path: Path) -> None:
    assert local_weights_size("gpt2", None) == Path("gpt2/model.safetensors").stat().st_size
    (tmp_path / "tiny.gguf").write_bytes(b"12345")
    assert local_weights_size(str(tmp_path / "tiny.gguf"), None) == 5
    for name in ("somebody/not-fetched", "no repo/id at all", "./nowhere"):
        assert local_weights_size(name, None) is None
