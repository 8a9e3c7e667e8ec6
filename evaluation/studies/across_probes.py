"""One model on several probes: its accuracies above chance, compared on rows that differ.

The rows of two probes cannot be paired. Their clusters are resampled apart from each other, and
taken to be independent, so that the interval of a difference is wider than that of two models on
the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from evaluation.report import cells
from evaluation.results import intervals
from evaluation.results.breakdown import scored_rows
from evaluation.results.intervals import Answers, DifferenceTest, corrected
from evaluation.results.types import METRIC_OF, Estimate
from evaluation.results.words import difference, p_value, with_p
from evaluation.studies.base import Finished
from evaluation.studies.table import Column, DataTable, Section


@dataclass(frozen=True)
class ProbeRun:
    """The model on one probe, on the rows that were scored."""

    run: Finished
    answers: Answers

    @classmethod
    def of(cls, run: Finished) -> ProbeRun:
        """Read the answers of a run."""
        _, right, cluster = scored_rows(run.predictions)
        return cls(run, Answers(right, cluster, run.results.metrics.chance))

    @property
    def name(self) -> str:
        """The probe, and its split."""
        probe = self.run.results.probe
        return f"{probe.name} ({probe.split})"

    @property
    def accuracy(self) -> Estimate:
        """Accuracy on the probe."""
        return self.run.results.metrics.accuracy

    @property
    def above_chance(self) -> Estimate:
        """Accuracy minus chance, as a share of what there is above chance."""
        return corrected(self.accuracy, self.answers.chance)


@dataclass(frozen=True)
class ProbePair:
    """The model on two probes.

    Attributes:
        first, second: A and B.
        seed: of the bootstraps.
    """

    first: ProbeRun
    second: ProbeRun
    seed: int

    @cached_property
    def test(self) -> DifferenceTest:
        """What B is above chance minus what A is, in points, with clusters unpaired."""
        return intervals.unpaired_test(self.first.answers, self.second.answers, self.seed)

    @property
    def p_value(self) -> float:
        """Two-sided p of the hypothesis that the difference is 0."""
        return self.test.p_value


def pairs_of_probes(runs: Sequence[ProbeRun], seed: int) -> list[ProbePair]:
    """Return all pairs of the probes that a model was run on."""
    return [ProbePair(first, second, seed) for first, second in combinations(runs, 2)]


_PROBES: dict[str, Column[ProbeRun]] = {
    "probe": Column("The probe, and its split.", lambda one: one.name),
    "metric": Column(
        "What predictions were made with: acc, acc_norm, ...",
        lambda one: METRIC_OF[one.run.results.metrics.normalization],
    ),
    "accuracy": Column("Share of the scored rows answered right.", lambda one: one.accuracy),
    "rows": Column("Rows scored.", lambda one: one.answers.right.size),
    "clusters": Column("Their clusters.", lambda one: np.unique(one.answers.cluster).size),
    "chance": Column("Mean of one over the number of choices.", lambda one: one.answers.chance),
    "above_chance": Column(
        "(accuracy - chance) / (1 - chance): 0 is chance, 1 all right.",
        lambda one: one.above_chance,
        cells.score,
    ),
}


def section_of_probes(
    label: str, runs: Sequence[ProbeRun], pairs: Sequence[ProbePair], holm_p: Mapping[int, float]
) -> Section:
    """Report a model on several probes.

    Args:
        label: the model.
        runs: its runs, one on each probe.
        pairs: all pairs of them.
        holm_p: the adjusted p of each pair, by its id.
    """
    contrasts: dict[str, Column[ProbePair]] = {
        "first": Column("A: a probe.", lambda pair: pair.first.name, head="A"),
        "second": Column("B: the other.", lambda pair: pair.second.name, head="B"),
        "difference": Column(
            "What B is above chance minus what A is, in percentage points of what there is above "
            "chance; clusters are resampled apart, as the rows differ.",
            lambda pair: pair.test.difference,
            cells.points,
            "B minus A",
        ),
        "p_value": Column(
            "Of the hypothesis that the difference is 0, two-sided: the level at which its "
            "interval ends at 0.",
            lambda pair: pair.p_value,
            p_value,
            "p",
        ),
        "p_holm": Column(
            "The p, adjusted for the number of pairs of all sections (Holm, 1979).",
            lambda pair: holm_p[id(pair)],
            p_value,
            "p (Holm)",
        ),
    }
    probes = DataTable("probes", runs, _PROBES)
    between = DataTable("across", pairs, contrasts)
    widest = max(pairs, key=lambda pair: abs(pair.test.difference.value))
    names = f"{widest.second.name} minus {widest.first.name}"
    gain = f"{difference(widest.test.difference)} of what there is above chance"
    largest = ", the largest difference" if len(pairs) > 1 else ""
    return Section(
        {"model": label},
        [probes, between],
        [
            probes.shown("Accuracy on each probe, and what of it is above chance", names=2),
            between.shown(
                "Unpaired differences of what is above chance, in points",
                [name for name in contrasts if name != "p_holm" or len(holm_p) > 1],
                names=2,
            ),
        ],
        [f"{with_p(f'{names}: {gain}', holm_p[id(widest)], len(holm_p))}{largest}."],
        [
            "Unpaired: the probes have different rows, and their clusters are taken to be "
            "independent of each other. Probes differ in more than what they are named after, such "
            "as their words, choices and wordings."
        ],
    )
