"""Fit the models of readers' judgements, cross-validate them, and write them as data.

    python benchmarks/fit_judged.py [--output FILE]

Reads builders/judged/data/pairs.csv and writes builders/judged/data/models.json, which says with
each model what it was fitted on and how well it predicts pairs of concepts that it has not seen.
Needs scikit-learn (extra ``release``).
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from builders.antonyms.pairs import sense_names
from builders.antonyms.senses import SenseColumns, antonym_features
from builders.engine.draw.likeness import Likeness, View, choice_similarities
from builders.engine.splits import connected_components
from builders.judged.model import DATA, JUDGED, MATCHED_PAIRS, MODELS, PAIRS, STRATA
from builders.wordnet.features import Glosses, features_of
from builders.wordnet.likeness import KINDS_OF_TEXTS, MOST_ALIKE, choice_texts, table_of
from builders.wordnet.planning import PROBE_OF
from builders.wordnet.synsets import generality, nodes_of, path_facts
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Floats, Ints, sorted_unique

FOLDS = 10
PENALTIES = (0.03, 0.1, 0.3, 1.0)
SCORES = {"true": 1.0, "arguable": 0.25, "false": 0.0}
"""How much each judgement counts as accepting a distractor as an answer. An arguable one is rarely
chosen next to a better answer."""
GOLD_SCORES = {"true": 1.0, "arguable": 1.0, "false": 0.0}
"""How much each judgement counts as accepting a gold: fully, unless a reader calls it wrong."""
ACCEPTED = {"hypernymy": 0.973, "hypernymy:far": 0.94, "hyponymy": 0.95}
"""Minimum share of accepted golds among those that pass a threshold, for golds one hop away and for
those farther away. Even of those that the models are surest of, readers reject one in twenty.
Farther below a noun, two readers accept 67% of what a model accepts (622 pairs): none passes."""
ARGUABLE = 0.07
"""Maximum share of distractors accepted as answers among those that pass a threshold. They are
judged by themselves; next to a better answer, fewer are accepted."""
BARS = {
    "definitions:sibling": 0.05,
    "hypernymy:field": 0.02,
    "hypernymy:sibling": 0.045,
    "hyponymy:field": 0.036,
    "hyponymy:other": 0.035,
    "synonymy:sibling": 0.04,
}
"""The same for particular kinds of pairs, whose rows were read as more or less sound than those of
other probes at the common bar."""
MATCHED = 0.02
"""The same in matched groups, with four distractors that are as similar as the gold."""
MATCHED_BARS = {
    "definitions:field": 0.023,
    "definitions:same_word": 0.02,
    "hypernymy:field": 0.037,
    "hypernymy:other": 0.0135,
    "hyponymy:field": 0.0168,
    "hyponymy:other": 0.0109,
}
"""The same for kinds of which the common one passes nearly all, or hardly any: chosen such that
about nine in ten pass. If no pairs in one lexicographer file did, the file would tell the answer.
"""
ENOUGH = 100
"""The least number of pairs of matched groups that thresholds are chosen by."""
PAIR_SCORES = {"true": 1.0, "arguable": 0.5, "false": 0.0}
OPPOSITE = 0.92
"""Minimum mean score of the antonyms that pass a threshold. For those in between, readers who have
to choose between *not* and *really* choose *not*."""
FEWEST = 30
"""Minimum number of pairs that pass a threshold."""
LEAST_WEIGHT = 0.03
"""Minimum weight of a feature (per standard deviation); others are dropped."""

Row = Mapping[str, str]


def main() -> None:
    """Fit every model and write them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=MODELS, metavar="FILE")
    output = parser.parse_args().output
    with PAIRS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["probe"] in JUDGED]
    wordnet = load_wordnet("3.0")
    models = {}
    for kind, graph, relation in (
        ("hypernymy", wordnet.hypernyms, "hypernym"),
        ("hyponymy", wordnet.hyponyms, "hyponym"),
    ):
        some = [row for row in rows if row["probe"] == kind and row["family"] == "gold"]
        concept, gold = synsets(wordnet, some, "concept"), synsets(wordnet, some, "gold")
        hops = np.array([int(row["hops"]) for row in some])
        names = wordnet.synsets["name"].combine_chunks()
        facts = path_facts(graph, concept, gold, hops, relation, names)
        ends = np.concatenate([facts.subject.codes, facts.object.codes])
        glosses = Glosses.of(wordnet, sorted_unique(ends))
        features = features_of(wordnet).of_gold(facts, concept, gold, glosses)
        models[f"{kind}_gold"] = fitted(
            features,
            scores(some, GOLD_SCORES),
            concept,
            {kind: hops == 1, f"{kind}:far": hops > 1},
            ACCEPTED,
        )
    some = [row for row in rows if row["family"] != "gold"]
    models["distractor"] = distractor_model(wordnet, some, [])
    with MATCHED_PAIRS.open(encoding="utf-8", newline="") as file:
        others = ("gold", "people")
        matched = [row for row in csv.DictReader(file) if row["family"] not in others]
    models["matched_distractor"] = distractor_model(wordnet, some, matched)
    models["matched_distractor"]["about"]["alike"] = alike(wordnet, matched)
    models["antonym"] = antonym_model(wordnet)
    output.write_text(json.dumps(models, indent=1) + "\n", encoding="utf-8")


def distractor_model(
    wordnet: WordNet, rows: Sequence[Row], matched: Sequence[Row]
) -> dict[str, Any]:
    """Fit the model of distractors.

    With pairs of ``matched`` groups, the thresholds are those for such pairs, where there are
    enough of them.
    """
    some = [*rows, *matched]
    concept, gold, node = (synsets(wordnet, some, end) for end in ("concept", "gold", "candidate"))
    features = features_of(wordnet).beside(concept, gold, node)
    of_probe = {kind: np.array([row["probe"] == kind for row in some]) for kind in JUDGED}
    features |= {kind: marked * 1.0 for kind, marked in of_probe.items()}
    near = features_of(wordnet).stratum(concept, gold, node)
    kinds = {
        f"{kind}:{name}": marked & (near == at)
        for kind, marked in of_probe.items()
        for at, name in enumerate(STRATA)
    }
    bars = dict.fromkeys(kinds, ARGUABLE) | BARS
    own = np.arange(len(some)) >= len(rows)
    for name, marked in kinds.items():
        if (marked & own).sum() >= ENOUGH:
            kinds[name], bars[name] = marked & own, MATCHED_BARS.get(name, MATCHED)
    return fitted(features, scores(some, SCORES), concept, kinds, bars)


def alike(wordnet: WordNet, matched: Sequence[Row]) -> dict[str, list[float]]:
    """Return how far readers accept distractors that are too similar to the gold, and others.

    A probe's first value is that of pairs that its matched draws rule out (``MOST_ALIKE``).
    """
    nodes, found = nodes_of(wordnet, generality(wordnet), True), {}
    for relation, most in MOST_ALIKE.items():
        probe = PROBE_OF[relation]
        rows = [row for row in matched if row["probe"] == probe]
        kinds = KINDS_OF_TEXTS[relation]
        table = table_of(kinds.choice)
        sides = [
            table.rows_of(choice_texts(kinds, nodes, synsets(wordnet, rows, end)))
            for end in ("gold", "candidate")
        ]
        known = (sides[0] >= 0) & (sides[1] >= 0)
        texts = np.concatenate([side[known] for side in sides])
        vectors = [table.vectors(at, texts) for at in range(len(table.encoders))]
        views = tuple(map(View, table.encoders, vectors, vectors))
        left, right = np.split(np.arange(texts.size), 2)
        likeness = Likeness(views, left, right, most)
        beyond = choice_similarities(views, left, right) > likeness.most_similarity
        accepted = scores(rows, SCORES)[known]
        found[probe] = [round(float(accepted[some].mean()), 4) for some in (beyond, ~beyond)]
    return found


def antonym_model(wordnet: WordNet) -> dict[str, Any]:
    """Fit the model of antonyms on the pairs of words that readers judged."""
    with (DATA / "word_pairs.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["relation"] == "antonym"]
    senses = SenseColumns.of(wordnet, ("adjective", "noun", "verb"), min_zipf=0.0)
    row_of = {name: row for row, name in enumerate(sense_names(wordnet).to_pylist())}
    paths = [[row_of[name] for name in row["path"].split()] for row in rows]
    asked = [not any(senses.defect[sense] for sense in path) for path in paths]
    rows, paths = list(compress(rows, asked)), list(compress(paths, asked))
    features = antonym_features(senses, paths, [row["relations"].split("; ") for row in rows])
    group = connected_components([path[0], path[-1]] for path in paths)
    return fitted(
        features,
        scores(rows, PAIR_SCORES),
        np.array([group[path[0]] for path in paths]),
        {"antonym_negation": np.ones(len(rows), bool)},
        {"antonym_negation": OPPOSITE},
    )


def synsets(wordnet: WordNet, rows: Sequence[Row], end: str) -> Ints:
    """Return the synsets at one end of some pairs."""
    return np.array([wordnet.synset_id(row[end]) for row in rows])


def scores(rows: Sequence[Row], worth: Mapping[str, float]) -> Floats:
    """Return the mean value of the readers' judgements of each pair."""
    judged = [[row[name] for name in row if name.startswith("reader")] for row in rows]
    return np.array([np.mean([worth[label] for label in labels if label]) for labels in judged])


def fitted(
    features: Mapping[str, Floats],
    target: Floats,
    concept: Ints,
    of_kind: Mapping[str, Bools],
    bars: Mapping[str, float],
) -> dict[str, Any]:
    """Fit a ridge logistic regression whose penalty is the best over folds of concepts.

    The threshold of a kind of pairs is chosen such that the pairs beyond it, as predicted by models
    that have not seen their concepts, reach the bar on average. No pair of a kind without a bar
    passes.
    """
    names = sorted(features)
    table = np.stack([features[name] for name in names], axis=1)
    trials = [(held_out(table, target, concept, penalty), penalty) for penalty in PENALTIES]
    predicted, penalty = min(trials, key=lambda trial: log_loss(trial[0], target))
    kept = np.abs(fit(table, target, penalty)[1]) * table.std(axis=0) >= LEAST_WEIGHT
    names = [name for name, keep in zip(names, kept, strict=True) if keep]
    table = table[:, kept]
    predicted = held_out(table, target, concept, penalty)
    intercept, weights = fit(table, target, penalty)
    passing = {
        name: threshold(predicted[some], target[some], bars[name]) if name in bars else (1.0, 0.0)
        for name, some in of_kind.items()
    }
    about = {
        "passing": {name: share for name, (_, share) in passing.items()},
        "pairs": int(target.size),
        "accepted": round(float(target.mean()), 4),
        "penalty": penalty,
        "log_loss": round(log_loss(predicted, target), 4),
        "log_loss_of_the_mean": round(log_loss(np.full(target.size, target.mean()), target), 4),
        "calibration": calibration(predicted, target),
    }
    print(json.dumps(about))
    coefficients = {name: round(float(w), 5) for name, w in zip(names, weights, strict=True)}
    return {
        "about": about,
        "intercept": round(intercept, 5),
        "thresholds": {name: round(value, 5) for name, (value, _) in passing.items()},
        "weights": coefficients,
    }


def threshold(predicted: Floats, target: Floats, bar: float) -> tuple[float, float]:
    """Return the threshold of some pairs, and the share of them that pass it."""
    low = bar < 0.5
    if target.size < FEWEST:
        return float(not low), 0.0
    order = np.argsort(predicted if low else -predicted)
    mean = np.cumsum(target[order]) / np.arange(1, target.size + 1)
    passing = np.flatnonzero(mean <= bar if low else mean >= bar)
    last = max([FEWEST - 1, *passing.tolist()])
    if last + 1 == target.size:
        return float(low), 1.0
    return float(predicted[order[last]]), round((last + 1) / target.size, 4)


def held_out(table: Floats, target: Floats, group: Ints, penalty: float) -> Floats:
    """Predict each pair with a model fitted on pairs of other concepts."""
    from sklearn.model_selection import GroupKFold

    predicted = np.zeros(target.size)
    for train, test in GroupKFold(FOLDS).split(table, groups=group):
        intercept, weights = fit(table[train], target[train], penalty)
        predicted[test] = 1 / (1 + np.exp(-(intercept + table[test] @ weights)))
    return predicted


def fit(table: Floats, target: Floats, penalty: float) -> tuple[float, Floats]:
    """Fit on shares instead of labels: pairs count as partly accepted and partly rejected."""
    from sklearn.linear_model import LogisticRegression

    mean, spread = table.mean(axis=0), np.maximum(table.std(axis=0), 1e-9)
    scaled = (table - mean) / spread
    model = LogisticRegression(C=penalty, max_iter=5000)
    label = np.repeat([1, 0], target.size)
    model.fit(np.concatenate([scaled] * 2), label, np.concatenate([target, 1 - target]))
    weights = model.coef_[0] / spread
    return float(model.intercept_[0] - weights @ mean), weights


def log_loss(predicted: Floats, target: Floats) -> float:
    """Return the mean negative log-likelihood of the shares."""
    return float(-(target * np.log(predicted) + (1 - target) * np.log(1 - predicted)).mean())


def calibration(predicted: Floats, target: Floats, parts: int = 8) -> list[list[float]]:
    """Return the mean prediction and the mean target of each eighth, from low to high."""
    order = np.array_split(np.argsort(predicted), parts)
    return [
        [round(float(predicted[some].mean()), 4), round(float(target[some].mean()), 4)]
        for some in order
    ]


if __name__ == "__main__":
    main()
