"""The summary of the study, ``power.json``, and what each number means."""

from __future__ import annotations

from pydantic import Field

from evaluation.results.types import Model

NAME = "power"
SCHEMA_VERSION = "1.0"


class PairPower(Model):
    """Two models, finished or assumed."""

    first: str | None = Field(description="Label of one run; null where models are assumed.")
    second: str | None = Field(description="Label of the other; null as above.")
    accuracy: float = Field(description="Accuracy of the first model.")
    difference: float | None = Field(
        description="Observed difference of the runs in points, second less first; null as above. "
        "The power is for the difference asked about, not for this one."
    )
    agreement: float = Field(description="Share of rows that both get right or both get wrong.")
    correlation: float | None = Field(
        description="Correlation of the differences of two rows of one cluster; null if no cluster "
        "has two rows."
    )
    variance: float = Field(
        description="Variance about 0 of the estimated difference of shares, times the clusters: "
        "what the test goes by."
    )
    unevenness: float = Field(description="Mean squared cluster size over the squared mean.")
    clusters_needed: int = Field(description="Clusters that show the difference at this power.")
    rows_needed: int = Field(description="Rows of so many clusters, at the mean rows of a cluster.")
    power: float = Field(description="Power with the clusters that there are.")
    least_difference: float | None = Field(
        description="Least difference in points that these clusters show at this power; null if "
        "they show none."
    )


class ProbePower(Model):
    """The power of a probe."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split.")
    rows: int = Field(description="Rows of the split, or that both runs scored.")
    clusters: int = Field(description="Clusters of these rows.")
    pairs: list[PairPower] = Field(description="Each pair of runs; one pair if models are assumed.")


class PowerSummary(Model):
    """All of ``power.json``."""

    schema_version: str = SCHEMA_VERSION
    difference: float = Field(description="The difference to be found, in points.")
    power: float = Field(description="The power wanted.")
    level: float = Field(description="The level of the two-sided test.")
    probes: list[ProbePower] = Field(description="Each probe.")
