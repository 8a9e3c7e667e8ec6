"""The summary of the study of overlap, ``overlap.json``, and what each number means."""

from __future__ import annotations

from pydantic import Field

from evaluation.results.types import Estimate, Model

NAME = "overlap"
SCHEMA_VERSION = "1.0"


class OverlapRun(Model):
    """One of the runs on a probe."""

    label: str = Field(description="The model, and what distinguishes it from the others.")
    folder: str = Field(description="The folder of its results.")
    model: str = Field(description="The model's id.")
    random_weights: int | None = Field(
        description="Seed that its weights were drawn with; null where they were not."
    )
    accuracy: Estimate = Field(description="Accuracy on the rows that it scored.")


class Kappa(Model):
    """Cohen's kappa of two models being right: 0 if independent, 1 if right on the same rows."""

    value: float = Field(description="The coefficient.")
    low: float | None = Field(
        description="Lower end of its 95% interval, by cluster bootstrap; null where fewer than 30 "
        "clusters hold a row that both get right or wrong, or one that a single model gets right."
    )
    high: float | None = Field(description="Upper end; null as above.")

    def estimate(self, rows: int) -> Estimate | None:
        """Return it with its interval; None where there is none."""
        if self.low is None or self.high is None:
            return None
        return Estimate(
            value=self.value, low=self.low, high=self.high, n=rows, method="cluster bootstrap"
        )


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

    schema_version: str = SCHEMA_VERSION
    probes: list[ProbeOverlap] = Field(description="Each probe.")
    mean: list[MeanOverlap] = Field(
        description="Means over probes; empty if there is one, or not all models are on all probes."
    )
