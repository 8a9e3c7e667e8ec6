"""What evaluation measures keeps its numbers."""

import json

import pytest
import torch

import evaluation
from tests.evaluation import golden_cases
from tests.evaluation.golden_cases import CASES, NUMBERS


@pytest.mark.parametrize("case", CASES)
def test_the_numbers_are_those_of_the_record(case, world, tmp_path, monkeypatch):
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path))
    torch.set_num_threads(1)
    expected = json.loads(NUMBERS.read_text())[case]
    found = golden_cases.numbers_of(evaluation.evaluate, world, case)
    scores, expected_scores = found.pop("scores"), expected.pop("scores")
    assert found == expected
    for row, expected_row in zip(scores, expected_scores, strict=True):
        # Other processors add up in another order.
        assert row == pytest.approx(expected_row, abs=1e-3)
