"""Prediction overlap: how similar the answers of models are, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, stdev

import numpy as np
from pydantic import Field

from evaluation.report import cells
from evaluation.results import intervals
from evaluation.results.types import Estimate, Model
from evaluation.results.words import coefficient, last_name, name_or_count, percent
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.labels import (
    Labelled,
    LabelledRun,
    accuracy_table,
    labelled_by_probe,
)
from evaluation.studies.pairing import PairedRows, pair_rows
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.document import (
    Caveats,
    Document,
    Findings,
    HeatMap,
    Number,
    Scale,
    Section,
    Table,
    Text,
)
from kbprobe.options import Options


class OverlapOptions(Options):
    """How answers are compared."""

    partial: bool = Field(False, description="Compare the rows that each pair shares, if not all.")
    seed: int = Field(0, ge=0, description="Seed of the bootstrap.")


class OverlapRun(LabelledRun):
    """One of the runs on a probe."""

    model: str = Field(description="The model's id.")
    random_weights: int | None = Field(
        description="Seed that its weights were drawn with; null where they were not."
    )


class Kappa(Model):
    """Cohen's kappa of two models being right: 0 if independent, 1 if right on the same rows."""

    value: float = Field(description="The coefficient.")
    low: float | None = Field(
        description="Lower end of its 95% interval, by cluster bootstrap; null where fewer than 30 "
        "clusters hold a row that both get right or wrong, or one that a single model gets right."
    )
    high: float | None = Field(description="Upper end; null as above.")

    def number(self, rows: int = 0) -> Estimate | float:
        """Return kappa with its interval, if there is one."""
        if self.low is None or self.high is None:
            return self.value
        return Estimate(
            value=self.value, low=self.low, high=self.high, n=rows, method="cluster bootstrap"
        )

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return coefficient(self.value)
        return f"{coefficient(self.value)} ({coefficient(self.low)} to {coefficient(self.high)})"


class PairOverlap(Model):
    """Two runs on the rows that both scored."""

    first: str = Field(description="Label of one run.")
    second: str = Field(description="Label of the other.")
    only_first: int = Field(description="Rows that only the first run was asked.")
    only_second: int = Field(description="Rows that only the second run was asked.")
    set_aside: int = Field(description="Rows asked of both, but not scored by one or both.")
    compared: int = Field(description="Rows scored by both, on which all numbers are computed.")
    clusters: int = Field(description="Clusters that these rows belong to.")
    overlap: Estimate = Field(description="Share of rows with the same prediction.")
    expected_overlap: float = Field(
        description="Expected share for independent models with the same accuracies, if each wrong "
        "choice is equally likely."
    )
    both_wrong: int = Field(
        description="Rows of three choices or more that both get wrong. With two choices, errors "
        "always agree."
    )
    error_overlap: Estimate | None = Field(
        description="Share of these rows with the same wrong choice; null where there are none."
    )
    expected_error_overlap: float | None = Field(
        description="Expected share if each wrong choice is equally likely: the mean of one over "
        "the number of wrong choices; null as above."
    )
    kappa: Kappa | None = Field(
        description="Error consistency (Geirhos et al. 2020): Cohen's kappa of both being right. "
        "Unlike overlap it does not rise with accuracy. Null if both models are right on "
        "all rows, or both on none."
    )


class Restarts(Model):
    """Models of one architecture whose weights were drawn at random."""

    model: str = Field(description="The model whose architecture they have.")
    labels: list[str] = Field(description="Labels of their runs.")
    accuracy: float = Field(description="Their mean accuracy.")
    deviation: float = Field(description="Standard deviation of their accuracies (n - 1).")
    overlap: float = Field(description="Mean overlap over pairs of them.")
    kappa: float | None = Field(description="Mean kappa over pairs; null if one is null.")


class ProbeOverlap(Model):
    """Several models on one probe."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split.")
    chance: float = Field(description="Mean of one over the number of choices.")
    runs: list[OverlapRun] = Field(description="The runs, as they were given.")
    pairs: list[PairOverlap] = Field(description="Each run with every later one.")
    restarts: list[Restarts] = Field(description="Random restarts, where there are two or more.")


class MeanOverlap(Model):
    """Two models, averaged over all probes."""

    first: str = Field(description="Label of one model.")
    second: str = Field(description="Label of the other.")
    overlap: Estimate = Field(
        description="Mean over probes; intervals assume that probes are independent of each other."
    )
    error_overlap: Estimate | None = Field(
        description="Mean over probes; null if it is null on a probe."
    )
    kappa: Kappa | None = Field(description="Likewise.")


class OverlapSummary(Model):
    """All of ``overlap.json``."""

    schema_version: str = "1.0"
    probes: list[ProbeOverlap] = Field(description="Each probe.")
    mean: list[MeanOverlap] = Field(
        description="Means over probes; empty if there is one, or not all models are on all probes."
    )


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> OverlapSummary:
    """Compare the answers of each pair of runs on each probe.

    Raises:
        UsageError: a probe has a single run, or runs on different rows with ``partial`` off.
    """
    held = labelled_by_probe(finished, "overlap")
    probes = [_probe(runs, request.options) for runs in held]
    return OverlapSummary(probes=probes, mean=_means(probes))


def _probe(runs: Sequence[Labelled], options: OverlapOptions) -> ProbeOverlap:
    pairs = [
        _pair(pair_rows(one, two, partial=options.partial), (label, other), options.seed)
        for (one, label), (two, other) in combinations(runs, 2)
    ]
    first = runs[0][0].evaluation.results
    described = [_describe(held) for held in runs]
    return ProbeOverlap(
        probe=first.probe.name,
        split=first.probe.split,
        chance=first.metrics.chance,
        runs=described,
        pairs=pairs,
        restarts=_restarts(described, pairs),
    )


def _describe(held: Labelled) -> OverlapRun:
    model = held.run.evaluation.results.model
    own = dict(held.record())
    return OverlapRun(**own, model=model.id, random_weights=model.random_weights)


def _restarts(runs: Sequence[OverlapRun], pairs: Sequence[PairOverlap]) -> list[Restarts]:
    """Summarise random restarts, for each architecture that has several."""
    by_model: dict[str, list[OverlapRun]] = {}
    for run in runs:
        if run.random_weights is not None:
            by_model.setdefault(run.model, []).append(run)
    found = []
    for model, held in by_model.items():
        if len(held) < 2:
            continue
        labels = [run.label for run in held]
        among = [pair for pair in pairs if pair.first in labels and pair.second in labels]
        kappas = [pair.kappa.value for pair in among if pair.kappa is not None]
        values = [run.accuracy.value for run in held]
        found.append(
            Restarts(
                model=model,
                labels=labels,
                accuracy=fmean(values),
                deviation=stdev(values),
                overlap=fmean(pair.overlap.value for pair in among),
                kappa=fmean(kappas) if len(kappas) == len(among) else None,
            )
        )
    return found


def _means(probes: Sequence[ProbeOverlap]) -> list[MeanOverlap]:
    """Average over probes, if there are several and all models were run on all of them."""
    labels = [run.label for run in probes[0].runs]
    if len(probes) < 2 or any({r.label for r in one.runs} != set(labels) for one in probes):
        return []
    means = []
    for first, second in combinations(labels, 2):
        held = [
            next(pair for pair in one.pairs if {pair.first, pair.second} == {first, second})
            for one in probes
        ]
        means.append(
            MeanOverlap(
                first=first,
                second=second,
                overlap=intervals.mean_of_independent([pair.overlap for pair in held]),
                error_overlap=_mean_estimate([pair.error_overlap for pair in held]),
                kappa=_mean_kappa(held),
            )
        )
    return means


def _mean_estimate(estimates: Sequence[Estimate | None]) -> Estimate | None:
    held = [one for one in estimates if one is not None]
    return intervals.mean_of_independent(held) if len(held) == len(estimates) else None


def _mean_kappa(pairs: Sequence[PairOverlap]) -> Kappa | None:
    numbers = [pair.kappa.number(pair.compared) for pair in pairs if pair.kappa is not None]
    if len(numbers) < len(pairs):
        return None
    known = [number for number in numbers if isinstance(number, Estimate)]
    if len(known) < len(pairs):
        values = (pair.kappa.value for pair in pairs if pair.kappa is not None)
        return Kappa(value=fmean(values), low=None, high=None)
    mean = intervals.mean_of_independent(known)
    return Kappa(value=mean.value, low=mean.low, high=mean.high)


def _pair(paired: PairedRows, labels: tuple[str, str], seed: int) -> PairOverlap:
    """Measure two runs on the rows that both scored."""
    (right, also_right), cluster, same = paired.right, paired.clusters, paired.same
    wrong_choices = paired.choices - 1
    # With two choices, two wrong answers are always the same.
    errors = ~right & ~also_right & (wrong_choices > 1)
    one, two = float(right.mean()), float(also_right.mean())
    hit_by_chance = float((1 / np.maximum(wrong_choices, 1)).mean())
    return PairOverlap(
        first=labels[0],
        second=labels[1],
        only_first=paired.only_first,
        only_second=paired.only_second,
        set_aside=paired.set_aside,
        compared=right.size,
        clusters=int(cluster.max()) + 1,
        overlap=intervals.accuracy(same, cluster, seed),
        expected_overlap=one * two + (1 - one) * (1 - two) * hit_by_chance,
        both_wrong=int(errors.sum()),
        error_overlap=intervals.accuracy(same[errors], cluster[errors], seed)
        if errors.any()
        else None,
        expected_error_overlap=float((1 / wrong_choices[errors]).mean()) if errors.any() else None,
        kappa=_kappa(right, also_right, cluster, seed),
    )


def _kappa(right: Bools, also_right: Bools, cluster: Ints, seed: int) -> Kappa | None:
    cells = 2 * right.astype(np.int64) + also_right
    counts = np.bincount(cells, minlength=4).astype(np.float64)
    value = float(kappas_of(counts[None])[0])
    if np.isnan(value):
        return None
    agree = right == also_right
    low, high = intervals.of_counts(cells, 4, agree, cluster, kappas_of, seed) or (None, None)
    return Kappa(value=value, low=low, high=high)


def kappas_of(totals: Floats) -> Floats:
    """Return Cohen's kappa of tables of two yes-or-no answers.

    Args:
        totals: rows with neither, only the second, only the first, and both, shape [tables, 4].

    Returns:
        Shape [tables]; NaN where both answers never vary, so that they agree by necessity.

    >>> kappas_of(np.array([[20.0, 10.0, 5.0, 15.0], [10.0, 0.0, 0.0, 10.0]])).round(2).tolist()
    [0.4, 1.0]
    """
    neither, second, first, both = totals.T
    n = totals.sum(axis=1)
    observed = (neither + both) / n
    one, two = (first + both) / n, (second + both) / n
    expected = one * two + (1 - one) * (1 - two)
    varies = expected < 1
    found: Floats = np.divide(
        observed - expected, 1 - expected, out=np.full_like(n, np.nan), where=varies
    )
    return found


def _document(summary: OverlapSummary) -> Document:
    names = [one.probe for one in summary.probes]
    labels = dict.fromkeys(run.label for one in summary.probes for run in one.runs)
    sections = [
        Section(
            f"{one.probe} ({one.split})",
            [
                Findings(_sentences(one)),
                Caveats(_caveats(one)),
                *_maps([run.label for run in one.runs], one.pairs),
                accuracy_table(one.runs, one.chance),
                _table(one.pairs),
            ],
        )
        for one in summary.probes
    ]
    if summary.mean:
        note = (
            "Each probe has equal weight. Intervals assume that the probes are independent of each "
            "other."
        )
        maps = _maps([run.label for run in summary.probes[0].runs], summary.mean)
        sections.append(Section(f"Mean over {len(names)} probes", [Text(note, note=True), *maps]))
    return Document(
        "Prediction overlap",
        f"{len(labels)} models on {name_or_count(names, 'probes')}",
        sections,
        reading=[
            "**Prediction overlap** rises with accuracy: two models that are right on 90% of the "
            "questions agree on at least 80% of them. So it does not measure what models have in "
            "common unless their accuracies are the same.",
            "**Error consistency** (Geirhos et al. 2020) corrects for that: it measures whether "
            "models are right on the same questions more often than independent models of the same "
            "accuracies would be. Independent models have a kappa of 0. Questions that are easy or "
            "hard for all models raise it, so it does not prove that two models work in the same "
            "way.",
            "**Error overlap** is the share of the questions that both get wrong on which they "
            "make the same wrong choice. If each wrong choice were equally likely, this share "
            "would be one over the number of wrong choices; distractors that are more attractive "
            "than others raise it for all models.",
            "**Intervals**, at 95%, resample whole clusters of questions.",
        ],
    )


def _maps(labels: Sequence[str], pairs: Sequence[PairOverlap | MeanOverlap]) -> list[HeatMap]:
    """Return the heat maps of kappa, of overlap, and of agreement on errors if there is any."""
    maps: list[tuple[str, Scale, list[Number | None]]] = [
        (
            "Error consistency: Cohen’s kappa of being right on the same questions. 0: as "
            "independent models; 1: on exactly the same.",
            "coefficient",
            [_kappa_of(pair) for pair in pairs],
        ),
        (
            "Prediction overlap: share of questions with the same answer. It rises with accuracy.",
            "share",
            [pair.overlap for pair in pairs],
        ),
        (
            "Agreement on errors: of the questions that both get wrong, the share with the same "
            "wrong choice.",
            "share",
            [pair.error_overlap for pair in pairs],
        ),
    ]
    names = [(pair.first, pair.second) for pair in pairs]
    return [
        HeatMap.of_pairs(
            caption, "model / model", labels, dict(zip(names, numbers, strict=True)), scale
        )
        for caption, scale, numbers in maps
        if any(number is not None for number in numbers)
    ]


def _kappa_of(pair: PairOverlap | MeanOverlap) -> Estimate | float | None:
    return None if pair.kappa is None else pair.kappa.number()


def _table(pairs: Sequence[PairOverlap]) -> Table:
    return Table.of(
        pairs,
        {
            "models": lambda pair: f"{pair.first} and {pair.second}",
            "same answer": lambda pair: cells.share(pair.overlap),
            "expected": lambda pair: cells.share(pair.expected_overlap),
            "same wrong choice": lambda pair: cells.share(pair.error_overlap),
            "expected of errors": lambda pair: cells.share(pair.expected_error_overlap),
            "kappa": lambda pair: cells.coefficient(_kappa_of(pair)),
            "rows": lambda pair: cells.count(pair.compared),
            "both wrong": lambda pair: cells.count(pair.both_wrong),
        },
        "Each pair of models on the questions that both answered. Expected: for independent models "
        "with the same accuracies, if each wrong choice is equally likely.",
    )


def _sentences(one: ProbeOverlap) -> list[str]:
    """Describe a probe: the most and least similar models, similar errors, and restarts."""
    found = []
    known = [pair for pair in one.pairs if pair.kappa is not None]
    if known:
        ranked = sorted(known, key=_kappa_value, reverse=True)
        found.append(_consistency("Most consistent: ", ranked[0]))
        if len(ranked) > 1:
            found.append(_consistency("Least consistent: ", ranked[-1]))
    alike = [pair for pair in one.pairs if _errors_alike(pair)]
    if alike:
        names = "; ".join(_errors(pair) for pair in alike[:5])
        more = f"; and {len(alike) - 5} more" if len(alike) > 5 else ""
        found.append(f"Same wrong choice more often than by chance: {names}{more}.")
    for held in one.restarts:
        kappa = "" if held.kappa is None else f", kappa {coefficient(held.kappa)}"
        found.append(
            f"{len(held.labels)} random initialisations of {last_name(held.model)}: accuracy "
            f"{percent(held.accuracy)} with a standard deviation of {100 * held.deviation:.1f} "
            f"points; they give the same answer to {percent(held.overlap)} of the rows{kappa}."
        )
    return found


def _caveats(one: ProbeOverlap) -> list[str]:
    """Return caveats about the numbers."""
    found = []
    left = [pair for pair in one.pairs if pair.only_first or pair.only_second or pair.set_aside]
    if left:
        least = min(pair.compared for pair in left)
        found.append(
            f"{len(left)} of {len(one.pairs)} pairs are compared only on the rows that both "
            f"scored, at least {least:,}."
        )
    if all(pair.both_wrong == 0 for pair in one.pairs):
        found.append(
            "Error overlap is not shown: with two choices, two wrong answers are the same."
        )
    elif few := [pair for pair in one.pairs if 0 < pair.both_wrong < 50]:
        found.append(
            f"{len(few)} of {len(one.pairs)} pairs have fewer than 50 rows that both get wrong: "
            "look at the intervals."
        )
    return found


def _kappa_value(pair: PairOverlap) -> float:
    return 0.0 if pair.kappa is None else pair.kappa.value


def _consistency(lead: str, pair: PairOverlap) -> str:
    return (
        f"{lead}{pair.first} and {pair.second}, kappa {pair.kappa}; the same answer to "
        f"{percent(pair.overlap.value)} of the rows, where {percent(pair.expected_overlap)} is "
        "expected of independent models with these accuracies."
    )


def _errors_alike(pair: PairOverlap) -> bool:
    if pair.error_overlap is None or pair.expected_error_overlap is None:
        return False
    return pair.error_overlap.low > pair.expected_error_overlap


def _errors(pair: PairOverlap) -> str:
    errors, expected = pair.error_overlap, pair.expected_error_overlap
    if errors is None or expected is None:
        raise ValueError("the pair has no row that both get wrong")
    return f"{pair.first} and {pair.second} ({percent(errors.value)}, chance {percent(expected)})"


OVERLAP = Study(
    name="overlap",
    help="Prediction overlap: how similar the answers of models are, for each pair of results.",
    expand=None,
    summarise=_summarise,
    document=_document,
    options=OverlapOptions,
    least=2,
)
"""The study."""
