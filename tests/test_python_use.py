"""The functions of ``kbprobe`` as Python calls them: what they take, and what they refuse."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pytest

import evaluation
import kbprobe
import release
from evaluation.result import Result
from kbprobe.errors import UsageError
from tests.signatures import STUB, stub

ROOT = Path(__file__).resolve().parents[1]
FRAME = pd.DataFrame({"question": ["?"]})
LONG = "x" * 5000


@pytest.fixture(scope="module", autouse=True)
def apart(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBPROBE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def probe() -> datasets.DatasetDict:
    return kbprobe.build("age_comparison", limit=60)


@pytest.fixture(scope="module")
def results(probe: datasets.DatasetDict) -> list[Result]:
    # No model at all, in the two ways of saying so.
    first = kbprobe.evaluate(probe, None, scorer="random")
    return [first, kbprobe.evaluate(probe, "none", scorer="random", guess_seed=3)]


@pytest.mark.slow
def test_results_are_compared_in_a_list_as_one_by_one(
    results: list[Result], tmp_path: Path
) -> None:
    expected = kbprobe.compare(*results)
    assert kbprobe.compare(results) == expected
    frame = expected.to_pandas()
    assert len(frame) == len(next(iter(expected.tables.values())))
    assert "<table>" in expected._repr_html_()
    with pytest.raises(UsageError, match="there is no table 'x'"):
        expected.to_pandas("x")
    folders = [result.save(tmp_path / str(at)) for at, result in enumerate(results)]
    again: Any = evaluation.study("compare", folders)
    (ours,), (theirs,) = again.rows("contrasts"), expected.rows("contrasts")
    assert ours["difference"] == theirs["difference"]


def test_splits_in_a_dictionary_are_a_probe(
    probe: datasets.DatasetDict, results: list[Result]
) -> None:
    done = kbprobe.evaluate({**probe}, "none", scorer="random")  # type: ignore[arg-type]
    assert done.predictions.equals(results[0].predictions)


Call = Callable[[Any], Any]
BUILT = "the folder of a built probe"
PROBE = "a datasets.Dataset or DatasetDict. datasets.Dataset.from_pandas"
MODEL = "a loaded transformers model with its tokenizer"
REFUSED: dict[str, tuple[Call, list[Any], str]] = {
    "evaluate(probe": (lambda it: kbprobe.evaluate(it, "none"), [FRAME, [], None, 3, {}], PROBE),
    "evaluate(model": (
        lambda it: kbprobe.evaluate("probe", it),
        [["a", "b"], FRAME, None, 3, object(), LONG],
        MODEL,
    ),
    "evaluate(tokenizer": (
        lambda it: kbprobe.evaluate("probe", "model", tokenizer=it),
        ["gpt2"],
        "leave tokenizer out",
    ),
    "evaluate(output": (
        lambda it: kbprobe.evaluate("probe", "none", output=it),
        [3, ["a"], LONG],
        "the path of a folder, or None",
    ),
    "compare(results": (kbprobe.compare, [3, FRAME, None], "results that kbprobe.evaluate"),
    "build(name": (kbprobe.build, [["age_comparison"], None, 3], "the name of a probe"),
    "build(output": (
        lambda it: kbprobe.build("age_comparison", output=it),
        [3, FRAME],
        "the path of a folder, or None",
    ),
    "build(template": (lambda it: kbprobe.build("age_comparison", template=it), [3], "a YAML"),
    "build(seed": (
        lambda it: kbprobe.build("age_comparison", seed=it),
        ["x", 1.5, None, True],
        "a whole number",
    ),
    "build(config": (lambda it: kbprobe.build("age_comparison", config=it), [None, 3], "default"),
    "load(path": (kbprobe.load, [None, FRAME, ["a"], LONG, "a\0b"], BUILT),
    "publish(folder": (lambda it: kbprobe.publish(it, "me/x"), [None, FRAME], BUILT),
    "study(probes": (
        lambda it: evaluation.study("curve", it, "model"),
        [FRAME, None, [FRAME]],
        PROBE,
    ),
    "study(models": (
        lambda it: evaluation.study("curve", "probe", it),
        [object(), None, [FRAME]],
        "one loaded model of transformers with its tokenizer",
    ),
    "load(folder": (evaluation.load, [None, FRAME], "a folder of results"),
    "report_suite(folder": (evaluation.report_suite, [None, FRAME], "a folder of results"),
    "check(folder": (release.check, [None, FRAME], BUILT),
    "audit(folder": (release.audit, [None, FRAME], BUILT),
    "export(folder": (lambda it: release.export(it, "lm-eval", "out"), [None, FRAME], BUILT),
    "export(output": (lambda it: release.export("probe", "lm-eval", it), [None], "the folder to"),
    "verify(against": (lambda it: release.verify("me/x", against=it), [3, FRAME], BUILT),
}


@pytest.mark.parametrize("argument", REFUSED)
def test_arguments_of_other_kinds_are_refused_with_what_is_accepted(argument: str) -> None:
    call, values, accepted = REFUSED[argument]
    for value in values:
        with pytest.raises(UsageError) as refused:
            call(value)
        said = str(refused.value)
        assert said.startswith(f"{argument}=...)"), said
        assert accepted in said
        assert len(said) < 500


def test_a_probe_in_memory_is_not_published_and_names_no_repository(
    probe: datasets.DatasetDict, results: list[Result]
) -> None:
    with pytest.raises(UsageError, match="does not take a kbprobe ProbeSplits: give the folder"):
        kbprobe.publish(probe, "me/x")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"study\(probes=...\) does not take an evaluation Result"):
        evaluation.study("compare", results)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="is not the name of a dataset on the Hub: USER/NAME"):
        release.verify(None)  # type: ignore[arg-type]


def test_a_seed_of_numpy_is_a_seed(probe: datasets.DatasetDict) -> None:
    again = kbprobe.build("age_comparison", limit=60, seed=np.int64(0))  # type: ignore[arg-type]
    assert again["test"]["id"][:] == probe["test"]["id"][:]


@pytest.mark.slow
def test_a_star_import_needs_no_optional_package_and_replaces_no_built_in_name() -> None:
    program = """
import builtins, sys
sys.modules.update(torch=None, transformers=None)
from kbprobe import *
import kbprobe
assert not set(kbprobe.__all__) & set(dir(builtins)), kbprobe.__all__
assert list is builtins.list and __name__ == "__main__"
assert all(callable(globals()[name]) for name in kbprobe.__all__)
assert kbprobe.list is list_probes and "ProbeCallback" in dir(kbprobe)
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_the_stub_has_the_options_that_there_are() -> None:
    assert STUB.read_text(encoding="utf-8") == stub() + "\n", (
        "kbprobe/__init__.pyi is out of date: run python -m tests.signatures"
    )


MYPY = """
[mypy]
strict = True
follow_imports = silent
ignore_missing_imports = True
[mypy-torch.*,transformers.*,pandas.*,numpy.*,pyarrow.*,scipy.*,rich.*,huggingface_hub.*]
follow_imports = skip
"""


@pytest.mark.slow
@pytest.mark.needs("mypy")
def test_type_checkers_know_the_options(tmp_path: Path) -> None:
    calls, settings = ROOT / "tests" / "data" / "calls.py", tmp_path / "mypy.ini"
    settings.write_text(MYPY)
    checked = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", str(calls), "--config-file", str(settings)),
            *("--cache-dir", str(tmp_path / "cache"), "--no-error-summary"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    said = re.findall(r"calls\.py:(\d+): error: (.*)", checked.stdout)
    lines = calls.read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if "# wrong" in line}
    assert {int(number) for number, _ in said} == wrong, checked.stdout + checked.stderr
    assert any('did you mean "max_hops"' in message for _, message in said)
    assert any('did you mean "limit"' in message for _, message in said)
