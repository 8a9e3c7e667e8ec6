"""A number with its interval: what most of the results are made of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Model(BaseModel):
    """A part of the results: frozen, and without fields that are not declared."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Estimate(Model):
    """A number with its 95% confidence interval.

    Shares are between 0 and 1, differences in percentage points.
    """

    value: float = Field(description="The number itself.")
    low: float = Field(description="Lower end of its 95% interval.")
    high: float = Field(description="Upper end of its 95% interval.")
    n: int = Field(description="Rows, or clusters, that it was computed from.")
    method: str = Field(
        description="How the interval was made: wilson; cluster bootstrap; "
        "wilson, effective n; combined wilson; t over clusters."
    )
