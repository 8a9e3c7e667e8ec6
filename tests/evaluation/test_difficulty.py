"""Difficulty of rows: the file of a suite, the rows spread over it, and what they predict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.items.difficulty import (
    Difficulty,
    prediction_error,
    read_difficulty,
    spread,
    write_difficulty,
)
from kbprobe.errors import UsageError
from kbprobe.format.suite import DIFFICULTY_HEAD

HEAD = ",".join(DIFFICULTY_HEAD)

cells = st.sampled_from([0.0, 1.0, np.nan])


@st.composite
def difficulties(draw: st.DrawFn) -> Difficulty:
    rows, models = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    right = draw(st.lists(cells, min_size=rows * models, max_size=rows * models))
    names = [f"model {number}, kind" for number in range(models)]
    ids = [f"{number:04x}" for number in range(rows)]
    return Difficulty(ids, names, np.array(right).reshape(rows, models))


@given(one=difficulties(), count=st.integers(1, 40))
def test_rows_are_spread_evenly_over_the_difficulty(one: Difficulty, count: int) -> None:
    found = spread(one, count)
    count = min(count, len(one.ids))
    assert len(set(found)) == len(found) == count
    share = dict(zip(one.ids, one.share, strict=True))
    shares = sorted(share.values())
    # Each stands for the rows around it, so their means are as close as neighbours are.
    chosen = [share[name] for name in found]
    assert chosen == sorted(chosen)
    assert abs(np.mean(chosen) - np.mean(shares)) <= 1 / count


@given(one=difficulties(), other=difficulties())
def test_the_file_holds_who_is_right(
    tmp_path_factory: pytest.TempPathFactory, one: Difficulty, other: Difficulty
) -> None:
    path = tmp_path_factory.mktemp("file") / "difficulty.csv"
    probes = {"a probe": one, "another": other}
    path.write_text(write_difficulty(probes, {k: v.share for k, v in probes.items()}))
    read = read_difficulty(path)
    assert read.keys() == probes.keys()
    for name, held in probes.items():
        assert list(read[name].ids) == list(held.ids)
        own = read[name].right[:, : len(held.models)]
        assert np.array_equal(own, held.right, equal_nan=True)
        assert np.isnan(read[name].right[:, len(held.models) :]).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "does not exist"),
        ("", "columns are not probe, id, models, right, point_biserial and one for each model"),
        (HEAD, "and one for each model"),
        ("probe,id\nx,y\n", "and one for each model"),
        (f"{HEAD},m\np,a,1,1,,yes\n", "line 2: 'yes' is not 1, 0 or empty"),
        (f"{HEAD},m,n\np,a,1,1,,1\n", "line 2 has 6 cells, not 7"),
        (f"{HEAD},m\np,a,1,1,,1\np,b,1\n", "line 3 has 3 cells, not 6"),
        (f"{HEAD},m\np,a,1,1,,1\np,a,1,1,,1\n", "line 3: the row a has a line already"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "difficulty.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=words) as told:
        read_difficulty(path)
    assert "evaluate-probe items DIR..." in str(told.value)


def test_rows_chosen_by_difficulty_predict_better_where_models_agree_on_it() -> None:
    generator = np.random.default_rng(0)
    difficulty = generator.random((600, 1))
    ability = np.linspace(0.1, 0.9, 9)
    ids = [f"{number:04x}" for number in range(600)]
    names = [f"model {number}, frozen" for number in range(9)]
    alike = Difficulty(ids, names, (difficulty < ability).astype(float))
    error = prediction_error({"p": (alike, 0.25)}, 50)
    assert error is not None
    assert error.spread < 0.7 * error.drawn
    unlike = Difficulty(ids, names, (generator.random((600, 9)) < ability).astype(float))
    error = prediction_error({"p": (unlike, 0.25)}, 50)
    assert error is not None
    assert error.spread > error.drawn / 2
    text = write_difficulty({"p": alike}, {"p": difficulty[:, 0] - 1})
    assert ",-0." in text  # a number, not a text
    # A model that scored nothing is none; runs of one are held out together: two are too few.
    alike.right[:, 2] = np.nan
    nothing = Difficulty(ids, ["one", "two", "three"], alike.right[:, :3])
    assert prediction_error({"p": (nothing, 0.25)}, 50) is None
    few = Difficulty(ids, ["one", "one, frozen", "two"], alike.right[:, :3])
    assert prediction_error({"p": (few, 0.25)}, 50) is None
