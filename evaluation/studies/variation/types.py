"""How answers vary over several runs of one model on the same rows: what studies of it share."""

from __future__ import annotations

from pydantic import Field

from evaluation.results.types import Estimate, Model


class Variant(Model):
    """One of the runs."""

    label: str = Field(description="What distinguishes it from the others.")
    folder: str | None = Field(description="The folder of its results; null: none were written.")
    accuracy: Estimate = Field(description="Accuracy on the rows that it scored.")
    scored: int = Field(description="Rows that it scored.")
    set_aside: int = Field(description="Rows that it did not score.")


class Variation(Model):
    """What differs between the runs.

    All numbers but the first four are of the rows scored in every run.
    """

    rows: int = Field(description="Rows asked in every run.")
    scored: int = Field(description="Rows scored in every run.")
    partly: int = Field(description="Rows scored in some runs, and set aside in others.")
    set_aside: int = Field(description="Rows scored in no run.")
    runs: int = Field(description="The number of runs.")
    accuracy: Estimate = Field(
        description="Mean accuracy over the runs. Its interval resamples clusters of rows, with "
        "these runs."
    )
    deviation: float = Field(description="Standard deviation of accuracy over the runs (n - 1).")
    lowest: float = Field(description="The least accuracy of a run.")
    highest: float = Field(description="The greatest accuracy of a run.")
    always: Estimate = Field(description="Share of rows answered right in every run.")
    ever: Estimate = Field(description="Share of rows answered right in at least one run.")
    flipped: Estimate = Field(
        description="Share of rows whose answer (the choice, not its letter) is not the same in "
        "all runs."
    )
    consistency: Estimate = Field(
        description="Share of pairs of runs with the same answer, averaged over rows."
    )
