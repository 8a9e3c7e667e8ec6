"""docs/other-tools.md: its loop over minicons scores as kbprobe does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import builders
import evaluation
from tests.evaluation import tiny_causal

PAGE = Path(__file__).resolve().parents[2] / "docs" / "other-tools.md"


def test_the_minicons_example_gives_the_accuracy_of_kbprobe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("minicons.scorer", reason="compares with minicons")
    code = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)[0]
    model = tiny_causal.write("bloom", tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    builders.build("wordnet_hypernymy", output="probes/wordnet_hypernymy", limit=200)

    for old, new in (("HuggingFaceTB/SmolLM2-135M", str(model)), ("range(100)", "range(30)")):
        assert old in code
        code = code.replace(old, new)
    exec(compile(code, str(PAGE), "exec"), {})
    theirs = float(capsys.readouterr().out)

    done = evaluation.evaluate("probes/wordnet_hypernymy", model, normalization="sum")
    assert theirs == pytest.approx(done.to_pandas().correct[:30].mean())
