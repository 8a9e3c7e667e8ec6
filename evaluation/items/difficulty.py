"""Difficulty of a suite's rows: which models get each right, and the rows that stand for all.

The file ``difficulty.csv`` next to ``suite.json`` has a line for each row of the suite's test
splits. ``evaluate-probe items`` writes it; that of a standard suite comes with kbprobe. A Rasch
model would order the rows as the share of models that are right does, its sufficient statistic.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kbprobe.arrays import Floats, Ints
from kbprobe.errors import UsageError
from kbprobe.format.suite import DIFFICULTY, DIFFICULTY_HEAD, suite_of
from kbprobe.tables import csv_text

ROWS = 100
"""Rows of each probe that stand for all of it."""

_DRAWS = 10
"""Selections of rows over which the error of a prediction is averaged."""


@dataclass(frozen=True)
class Difficulty:
    """Which models are right on the rows of a probe.

    Attributes:
        ids: the rows.
        models: labels of the models.
        right: 1 where a model is right, 0 where it is wrong, NaN where it did not score the row;
            shape [rows, models].
    """

    ids: Sequence[str]
    models: Sequence[str]
    right: Floats

    @property
    def share(self) -> Floats:
        """Share of the models that are right on each row, 0.5 if none scored it: shape [rows]."""
        return _share(self.right)


def _share(right: Floats) -> Floats:
    scored = (~np.isnan(right)).sum(axis=1)
    return np.where(scored, np.nansum(right, axis=1) / np.maximum(scored, 1), 0.5)


def write_difficulty(probes: Mapping[str, Difficulty], correlations: Mapping[str, Floats]) -> str:
    """Return the file's text: rows by probe and id; a cell is empty where a value is unknown."""
    models = list(dict.fromkeys(model for one in probes.values() for model in one.models))
    lines: list[Sequence[object]] = [(*DIFFICULTY_HEAD, *models)]
    for probe, one in probes.items():
        for at in np.argsort(np.asarray(one.ids)):
            said = dict(zip(one.models, one.right[at], strict=True))
            known = [value for value in said.values() if not np.isnan(value)]
            cells = [said.get(model, np.nan) for model in models]
            correlation = correlations[probe][at]
            lines.append(
                (
                    *(probe, one.ids[at], len(known), int(sum(known))),
                    "" if np.isnan(correlation) else round(float(correlation), 3),
                    *("" if np.isnan(cell) else int(cell) for cell in cells),
                )
            )
    return csv_text(lines, line_end="\n")


def read_difficulty(path: Path) -> dict[str, Difficulty]:
    """Read the difficulty of the rows of each probe of a suite.

    Raises:
        UsageError: the file is missing or damaged.
    """
    again = (
        "That of a standard suite comes with it (build-probe --suite NAME). For another one, write "
        "it from results of several models with evaluate-probe items DIR... -o OUT, and copy "
        f"OUT/{DIFFICULTY} there."
    )
    held: dict[str, dict[str, list[float]]] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file)
            head = next(lines, [])
            models = head[len(DIFFICULTY_HEAD) :]
            if tuple(head[: len(DIFFICULTY_HEAD)]) != DIFFICULTY_HEAD or not models:
                raise ValueError(
                    f"its columns are not {', '.join(DIFFICULTY_HEAD)} and one for each model"
                )
            for line in lines:
                where = f"line {lines.line_num}"
                if len(line) != len(head):
                    raise ValueError(f"{where} has {len(line)} cells, not {len(head)}")
                cells = line[len(DIFFICULTY_HEAD) :]
                if wrong := {*cells} - {*_CELLS}:
                    raise ValueError(f"{where}: {min(wrong)!r} is not 1, 0 or empty")
                rows = held.setdefault(line[0], {})
                if line[1] in rows:
                    raise ValueError(f"{where}: the row {line[1]} has a line already")
                rows[line[1]] = [_CELLS[cell] for cell in cells]
    except FileNotFoundError:
        raise UsageError(
            f"{path} does not exist: the difficulty of rows is not known. {again}"
        ) from None
    except (OSError, ValueError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read: {error}. {again}") from None
    return {
        probe: Difficulty([*rows], models, np.array([*rows.values()]))
        for probe, rows in held.items()
    }


_CELLS = {"": np.nan, "0": 0.0, "1": 1.0}


def difficulty_file(probe: str) -> Path:
    """Return the path of the file that belongs to a probe of a suite.

    Raises:
        UsageError: the probe belongs to no suite.
    """
    if (found := suite_of(probe)) is None:
        raise UsageError(
            f"{probe} is no probe of a suite, so the difficulty of its rows is not known: draw "
            "rows with --limit-by rows, or name a suite or one of its probes"
        )
    return found[0] / DIFFICULTY


def spread(difficulty: Difficulty, count: int) -> list[str]:
    """Return the ids of rows at equal distances in the order of difficulty, the same for all."""
    return [difficulty.ids[at] for at in _spread(difficulty.share, difficulty.ids, count, 0)]


def _spread(share: Floats, ids: Sequence[str], count: int, seed: int) -> Ints:
    # Many rows are equally difficult: their order is drawn.
    drawn = [hashlib.sha256(f"{seed}\0{name}".encode()).digest()[:8] for name in ids]
    order = np.lexsort((np.frombuffer(b"".join(drawn), ">u8"), share))
    count = min(count, len(ids))
    return order[((np.arange(count) + 0.5) * len(ids) / count).astype(np.int64)]


@dataclass(frozen=True)
class PredictionError:
    """How far accuracy on some rows is from that on all, for a model held out.

    Attributes:
        spread: of rows spread over their difficulty for the other models.
        drawn: of as many rows drawn at random.
    """

    spread: float
    drawn: float


def prediction_error(
    probes: Mapping[str, tuple[Difficulty, float]], count: int
) -> PredictionError | None:
    """Measure how well rows chosen by difficulty predict the score on all rows.

    Each model in turn is held out, with all its runs (labels that start alike, up to a comma), and
    rows are chosen by the others.

    Args:
        probes: of each probe its rows' difficulty, and the accuracy of guessing.
        count: rows of each probe.

    Returns:
        Root mean squares over models and draws, of the score (the mean over the probes of accuracy
        above chance, where 1 is all right); None with fewer than three models.
    """
    models = [name.split(",")[0] for name in next(iter(probes.values()))[0].models]
    errors: dict[bool, list[float]] = {True: [], False: []}
    held_out = set()
    for at, model in enumerate(models):
        others = [number for number, other in enumerate(models) if other != model]
        away = np.zeros((2, _DRAWS))
        scored = 0
        for one, chance in probes.values():
            known = np.flatnonzero(~np.isnan(one.right[:, at]))
            if not len(known):
                continue
            scored += 1
            right, ids = one.right[known, at], [one.ids[row] for row in known.tolist()]
            share = _share(one.right[known][:, others])
            for by_difficulty in errors:
                for seed in range(_DRAWS):
                    chosen = _spread(share * by_difficulty, ids, count, seed)
                    error = (right[chosen].mean() - right.mean()) / (1 - chance)
                    away[int(by_difficulty), seed] += error
        if scored:
            held_out.add(model)
            for by_difficulty, found in errors.items():
                found.extend(away[int(by_difficulty)] / scored)
    if len(held_out) < 3:
        return None
    return PredictionError(*(float(np.sqrt(np.mean(np.square(e)))) for e in errors.values()))
