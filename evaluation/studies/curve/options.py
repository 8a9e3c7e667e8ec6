"""The options of the study of learning curves."""

from __future__ import annotations

from pydantic import Field, model_validator

from kbprobe.options import Options, option_name

LARGE = 1000
"""From this many rows on fewer draws are trained on, as published."""

CONTROLS = ("no_language", "perturbed")
"""The configs of a probe that are its controls."""


class CurveOptions(Options):
    """What curves are made of."""

    sizes: tuple[int, ...] = Field(
        (62, 125, 250, 500, 1000, 2000, 4000),
        min_length=1,
        description="Rows to train on; those that train has too few rows for are left out.",
    )
    seeds: int = Field(
        6, ge=1, description=f"Draws of training rows for each size below {LARGE:,}."
    )
    large_seeds: int = Field(3, ge=1, description=f"Draws for each size from {LARGE:,} on.")
    learners: tuple[str, ...] = Field(
        (), description="What is fitted, by name; none: those that suit model and probe."
    )
    controls: bool = Field(
        False,
        description="Make the curves of the controls as well, the configs "
        f"{' and '.join(CONTROLS)}, and LangSense.",
    )
    random_labels: bool = Field(
        False, description="Make the curves on random labels as well, and selectivity."
    )
    revisions: tuple[str, ...] = Field(
        (), description="Revisions of each model, such as its training steps: a series."
    )
    random_init: int = Field(
        0,
        ge=0,
        description="Make the curves of so many randomly initialised models of each "
        "architecture as well.",
    )

    @model_validator(mode="after")
    def _sizes_grow(self) -> CurveOptions:
        if any(size < 1 for size in self.sizes):
            raise ValueError(f"{option_name('sizes')} are rows to train on: 1 or more")
        if list(self.sizes) != sorted(set(self.sizes)):
            raise ValueError(f"{option_name('sizes')} must grow, each given once")
        return self

    def draws(self, size: int) -> range:
        """Return the seeds of the draws for a size."""
        return range(self.large_seeds if size >= LARGE else self.seeds)
