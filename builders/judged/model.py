"""Models of readers' judgements: how likely a reader is to accept a statement about a pair.

Readers judged pairs of a word in its context and a candidate as true, arguable or false
(``data/pairs.csv``; who they are: docs/soundness.md). A logistic regression for each question that
matters here is fitted on features of the two nodes by ``benchmarks/fit_judged.py``, which writes
``data/models.json``: what a knowledge base states is evidence, these models decide.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from kbprobe.arrays import Floats

DATA = Path(__file__).with_name("data")
MODELS = DATA / "models.json"
PAIRS = DATA / "pairs.csv"
MATCHED_PAIRS = DATA / "matched_pairs.csv"
"""Distractors of matched groups, judged later: used only there, so that other draws stay."""
KINDS = DATA / "kinds.csv"
ALONE = DATA / "alone.csv"
CLASSES = DATA / "classes.csv"

CROSSES = {"clear-cut": 0.0, "overlapping": 0.5, "cross-cutting": 1.0}
"""Numeric values of labels for how much a class overlaps with the classes next to it."""

JUDGED_WORDNET = "3.0"
"""Version of WordNet that was judged; in others a name may refer to another sense."""

STRATA = ("other", "field", "sibling", "same_word")
"""How near a distractor is to the gold or to the word asked about: in another lexicographer file,
in the same one, with the same parent, or a sense of the word. Each has its own threshold."""

JUDGED = ("definitions", "hypernymy", "hyponymy", "meronymy", "synonymy")
"""The WordNet probes whose pairs were judged: features of the model of distractors."""


@dataclass(frozen=True)
class JudgedModel:
    """A logistic regression.

    Attributes:
        intercept, weights: of the features as they are.
        thresholds: by kind of pair (a probe, or a probe and its stratum): from this chance on a
            gold is accepted often enough; up to this chance a distractor is taken for an answer
            rarely enough.
    """

    intercept: float
    weights: Mapping[str, float]
    thresholds: Mapping[str, float]

    def chance(self, features: Mapping[str, Floats]) -> Floats:
        """Return the probability of each pair; ``features`` hold a value for each pair."""
        score = self.intercept + sum(
            weight * features[name] for name, weight in self.weights.items()
        )
        return logistic(np.asarray(score))


def logistic(score: Floats) -> Floats:
    """Return the probability of a score (log-odds)."""
    return np.asarray(1.0 / (1.0 + np.exp(-score)))


@cache
def judged_model(name: str) -> JudgedModel:
    """Return one of the fitted models."""
    fitted = json.loads(MODELS.read_text(encoding="utf-8"))[name]
    return JudgedModel(fitted["intercept"], fitted["weights"], fitted["thresholds"])


@cache
def judgements(probe: str, path: Path = PAIRS) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return what readers judged of a probe's pairs: (concept, candidate) -> their labels."""
    columns = _columns(path)
    labels = zip(columns["reader_a"], columns["reader_b"], strict=True)
    pairs = zip(columns["probe"], columns["concept"], columns["candidate"], labels, strict=True)
    return {
        (concept, candidate): tuple(filter(None, some))
        for asked, concept, candidate, some in pairs
        if asked == probe
    }


@cache
def judged_kinds() -> Mapping[tuple[str, str], float]:
    """Return how far readers accept that a synset is a kind of another, for all judged pairs.

    1: all say that it is true; 0: all say that it is false; 0.5: it is arguable, or they differ.
    Readers saw the definitions of both, or the word in its sentence.
    """
    up, down = (judgements(probe).items() for probe in ("hypernymy", "hyponymy"))
    found = dict(up) | {(lower, upper): labels for (upper, lower), labels in down}
    return _worth(found | _labels(KINDS))


@cache
def judged_alone() -> Mapping[tuple[str, str], float]:
    """Return how far readers accept that a synset is a kind of another, as `judged_kinds` does.

    Readers saw the words of the lower one without their definition, as hyponymy shows its choices.
    """
    return _worth(_labels(ALONE))


@cache
def judged_matched(probe: str) -> Mapping[tuple[str, str], float]:
    """Return how far readers accept the distractors of a probe's matched groups as answers.

    Pairs are (concept, candidate); the values are those of `judged_kinds`.
    """
    return _worth(judgements(probe, MATCHED_PAIRS))


def _labels(path: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    columns = _columns(path)
    labels = zip(*(columns[name] for name in columns if name.startswith("reader")), strict=True)
    pairs = zip(columns["kind"], columns["of"], labels, strict=True)
    return {(lower, upper): tuple(filter(None, some)) for lower, upper, some in pairs}


def _worth(labels: Mapping[tuple[str, str], tuple[str, ...]]) -> dict[tuple[str, str], float]:
    worth = {frozenset({"true"}): 1.0, frozenset({"false"}): 0.0}
    return {pair: worth.get(frozenset(some), 0.5) for pair, some in labels.items()}


@cache
def judged_classes() -> Mapping[str, float]:
    """Return how much each judged synset overlaps with its neighbours; see `CROSSES`."""
    columns = _columns(CLASSES)
    return {
        name: CROSSES[label]
        for name, label in zip(columns["class"], columns["reader_a"], strict=True)
    }


@cache
def _columns(path: Path) -> Mapping[str, Sequence[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return dict(zip(header, zip(*rows, strict=True), strict=True))
