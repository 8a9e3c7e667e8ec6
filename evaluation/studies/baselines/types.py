"""The summary of the study of baselines, ``baselines.json``, and what each number means."""

from __future__ import annotations

from pydantic import Field

from evaluation.results.types import Estimate, Model

NAME = "baselines"
SCHEMA_VERSION = "1.0"


class Measured(Model):
    """The accuracy of a baseline, or of a model beside the baselines."""

    name: str = Field(description="Name of the scorer or learner; for another model, its id.")
    reads: str = Field(description="What it sees of a row, in words.")
    model: str = Field(description="none, or the model that was used.")
    train_rows: int | None = Field(description="Rows trained on; null: not trained.")
    draws: list[float] = Field(
        description="Accuracy with each draw of training rows, or of guesses, by its seed."
    )
    accuracy: Estimate = Field(
        description="Mean over the draws; the interval resamples test clusters and draws."
    )
    over_chance: Estimate = Field(description="Accuracy minus chance, in percentage points.")
    seconds: float = Field(description="Total time of all draws when first run.")
    unknown_words: int | None = Field(
        description="Number of distinct words without a vector in the rows evaluated; null if not "
        "reported."
    )


class LeftOut(Model):
    """A baseline that was not run."""

    name: str = Field(description="Its name.")
    why: str = Field(description="Why it was not run.")


class Measurement(Model):
    """The baselines of one probe."""

    probe: str = Field(description="The probe's name.")
    source: str = Field(description="Folder, file or Hub id, as it was given.")
    config: str | None = Field(description="Its config; null: the default one.")
    split: str = Field(description="The split evaluated.")
    setups: list[str] = Field(description="Setups of its rows.")
    rows: int = Field(description="Rows evaluated.")
    clusters: int = Field(description="Clusters that they belong to.")
    fingerprint: str = Field(description="sha256 of the rows evaluated.")
    chance: float = Field(description="Mean of one over the number of choices.")
    train_rows: int = Field(description="Rows of its train split; 0 if there is none.")
    baselines: list[Measured] = Field(description="The baselines, in the order of the registry.")
    beside: list[Measured] = Field(description="Other results on the same rows.")
    left_out: list[LeftOut] = Field(description="Baselines that could not be run.")
    notes: list[str] = Field(description="Caveats for the reader.")


class BaselinesSummary(Model):
    """The baselines of one or more probes."""

    schema_version: str = Field(SCHEMA_VERSION, description="Version of this schema.")
    probes: list[Measurement] = Field(description="One entry for each probe.")
