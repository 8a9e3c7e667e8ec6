"""The options of the study of baselines."""

from __future__ import annotations

from pydantic import Field

from kbprobe.options import Options


class BaselinesOptions(Options):
    """Which baselines are run, and where their accuracies go."""

    baselines: tuple[str, ...] = Field(
        (),
        description="Scorers and learners that need no model, by name; none: all that apply to "
        "the rows.",
    )
    rows: int = Field(3000, ge=1, description="Rows to train on; all if the train split has fewer.")
    seeds: int = Field(3, ge=1, description="Draws of training rows, and of guesses.")
    beside: tuple[str, ...] = Field(
        (), description="Folders of results on the same rows, to show next to the baselines."
    )
    record: bool = Field(
        False, description="Also write the accuracies to the probe's folder and its card."
    )
