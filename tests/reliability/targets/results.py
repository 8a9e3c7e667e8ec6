"""Results of evaluations, learning curves, cached scores and vectors, as other commands read them.

What carries checksums must be refused unless it says the same as before.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.evaluation.saved_runs import save_run
from tests.reliability.target import Refused, Target

_SAID = [0, 1, 2, 0, None, 0, 1, 0]
_CLUSTERS = list("aabbccdd")
_FAMILIES = ["sibling", "random"] * 4


def _run(folder: Path) -> list[Path]:
    made = save_run(folder / "run", "org/model", _SAID, _CLUSTERS, families=_FAMILIES)
    shutil.copytree(made, folder / "sound")
    return [made / "results.json", made / "predictions.parquet"]


def _read(path: Path) -> Any:
    from evaluation.runs.folders import load

    found = load(path.parent)
    return found.results.model_dump(), found.predictions.to_pylist()


def _unchanged(path: Path) -> Any:
    sound = path.parent.parent / "sound" / path.name
    if path.suffix == ".json":
        found, held = _json(path), _json(sound)
        # What else the checksums may list is not there, and no part of the results.
        same = isinstance(found, dict) and {**found, "checksums": held["checksums"]} == held
    else:
        same = path.read_bytes() == sound.read_bytes()
    if not same:
        raise Refused("changed")
    return _read(sound)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Refused(str(error)) from error


def _compare(path: Path) -> Any:
    from evaluation import compare

    return compare([path.parent, path.parent.parent / "sound"]).rows("contrasts")[0]["rows"]


def _curves(folder: Path) -> list[Path]:
    from kbprobe.format.sealed import write_sealed
    from tests.evaluation.sample_curves import summary_of
    from tests.evaluation.test_medals import runs_of

    summary = summary_of(runs_of(0.9, 0.5))
    write_sealed(folder / "curve.json", summary.model_dump_json(indent=2))
    return [folder / "curve.json"]


def _read_curves(path: Path) -> int:
    from evaluation.studies.curve.numbers import read_curves

    return len(read_curves(path)[1])


def _score_cache(folder: Path) -> Any:
    from evaluation.runs.score_cache import ScoreCache

    return ScoreCache({"test": 1}, folder)


@cache
def _scores() -> tuple[Any, Any]:
    from evaluation.results.metrics import Scores

    starts = np.arange(0, 61, 3)
    values = np.random.default_rng(0).normal(size=60)
    return Scores(values, np.arange(60), {2: "odd"}, {"counted": 3}, "logit", 20, 90, 7), starts


def _cached(folder: Path) -> list[Path]:
    cache_entry = _score_cache(folder)
    cache_entry.write(*_scores())
    return [cache_entry.folder / "scores.parquet"]


def _read_cached(path: Path) -> bool:
    """Whether scores are found; others than those written raise an AssertionError."""
    scores, starts = _scores()
    found = _score_cache(path.parents[1]).read(starts)
    if found is not None:
        np.testing.assert_equal(asdict(found), asdict(scores))
    return found is not None


def _stored(folder: Path) -> list[Path]:
    _vectors(folder)
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and path.name != "about.json"
    )


def _vectors(folder: Path) -> Any:
    """Read the vectors of four texts, computing those that are not stored."""
    from evaluation.frozen.store import VectorStore
    from evaluation.workers import ALONE

    store = VectorStore(folder, {"test": 1}, "model")
    texts = [(f"text {at}",) for at in range(4)]
    reader: Any = _Reader
    return store.get(texts, reader, 64, ALONE, lambda *_: None)


class _Reader:
    """Gives each text the vector of its length and its last character."""

    parameters = 7

    def encode(self, texts: Any) -> Any:
        self._texts = texts
        return self

    @property
    def lengths(self) -> Any:
        return np.full(len(self._texts), 2)

    def vectors(self, _: Any, batch: Any) -> Any:
        rows = [self._texts[row][0] for row in batch.tolist()]
        return np.array([[len(text), ord(text[-1])] for text in rows], np.float32)


def _read_stored(path: Path) -> list[list[float]]:
    found = _vectors(path.parents[1])
    assert (found.tokens, found.parameters) == (8, 7)
    np.testing.assert_equal(found.vectors, [[6, ord(str(at))] for at in range(4)])
    return list(found.vectors.tolist())


TARGETS = [
    Target("results", _run, _read, _unchanged, both_refuse=False),
    Target("results-compared", _run, _compare, names_file=False),
    Target("curves", _curves, _read_curves, names_file=False),
    Target("scores", _cached, _read_cached),
    Target("vectors-stored", _stored, _read_stored),
]
