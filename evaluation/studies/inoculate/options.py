"""The options of the study of inoculation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from kbprobe.options import Metavar, Options, option_name

TIMES = {"none": 0, "x1": 1, "x2": 2}
"""Rows of the original task for each row of the probe, by the value of ``--add-original``."""


class InoculateOptions(Options):
    """Which training sets and settings to try, and the original task."""

    original: Annotated[str | None, Metavar("TASK")] = Field(
        None,
        min_length=1,
        description="The task that the models were trained for: a dataset of questions with "
        "choices, as a folder, a file or a Hub id. Required.",
    )
    sizes: tuple[int, ...] = Field(
        (100, 250, 500, 1000, 2000, 3000),
        min_length=1,
        description="Numbers of probe rows to train on; by default, those of these sizes for "
        "which the train split has enough rows.",
    )
    learning_rates: tuple[float, ...] = Field(
        (1e-5, 2e-5, 5e-5), min_length=1, description="Peak learning rates to try for each size."
    )
    epoch_counts: tuple[int, ...] = Field(
        (1, 3), min_length=1, description="Numbers of epochs to try for each size."
    )
    seeds: int = Field(3, ge=1, description="Draws of training rows for each setting.")
    add_original: Literal["none", "x1", "x2"] = Field(
        "none",
        description="Also train on rows of the original task: as many as rows of the probe (x1), "
        "or twice as many (x2).",
    )

    @model_validator(mode="after")
    def _numbers_are_possible(self) -> InoculateOptions:
        for name in ("sizes", "learning_rates", "epoch_counts"):
            values = getattr(self, name)
            if min(values) <= 0:
                raise ValueError(f"{option_name(name)} must be positive")
            if list(values) != sorted(set(values)):
                raise ValueError(f"{option_name(name)} must be strictly increasing")
        return self
