"""Evaluations that need the same training, at once: one trains, none removes what others load."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reliability.commands import Stage, staged

pytestmark = [pytest.mark.slow, pytest.mark.posix]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("stage")) as made:
        yield made


@pytest.mark.parametrize("apart", [0.05, 1.0])
def test_evaluations_share_a_training(stage: Stage, apart: float) -> None:
    stage.clear()
    words = [
        *(str(stage.inputs / "probe"), "--model", str(stage.inputs / "model")),
        *("--device", "cpu", "--learner", "full_mlm", "--train", "24", "--epochs", "1"),
    ]
    runs = [
        stage.at("evaluation.cli", *words, "--seed", "3", "--limit", str(9 - at), "-o", f"r{at}")
        for at in range(4)
    ]
    for ended in stage.run(*runs, apart=apart):
        assert ended.code == 0, ended.said
    left = [path for path in (stage.world / "cache/finetuned").rglob("*") if path.is_file()]
    assert left == []
