"""The options of the study of learning curves."""

from __future__ import annotations

from pydantic import Field, model_validator

from kbprobe.options import Options, option_name

LARGE = 1000
"""Sizes of at least this many rows use fewer draws, as published."""

CONTROLS = ("no_language", "perturbed")
"""The configs of a probe that are its controls."""


class CurveOptions(Options):
    """Options for computing learning curves."""

    sizes: tuple[int, ...] = Field(
        (62, 125, 250, 500, 1000, 2000, 4000),
        min_length=1,
        description="Numbers of training rows; sizes larger than the train split are left out.",
    )
    seeds: int = Field(
        6, ge=1, description=f"Draws of training rows for each size below {LARGE:,}."
    )
    large_seeds: int = Field(3, ge=1, description=f"Draws for each size of {LARGE:,} or more.")
    learners: tuple[str, ...] = Field(
        (), description="Learners by name; none: all that apply to the model and the probe."
    )
    controls: bool = Field(
        False,
        description="Also compute curves on the controls (the configs "
        f"{' and '.join(CONTROLS)}) and LangSense.",
    )
    random_labels: bool = Field(
        False, description="Also compute curves on random labels, and selectivity."
    )
    revisions: tuple[str, ...] = Field(
        (), description="Revisions of each model to compare, such as 'step*' or 'checkpoint-*'."
    )
    random_init: int = Field(
        0,
        ge=0,
        description="Also compute curves for this many randomly initialised models of each "
        "architecture.",
    )

    @model_validator(mode="after")
    def _sizes_grow(self) -> CurveOptions:
        if any(size < 1 for size in self.sizes):
            raise ValueError(f"{option_name('sizes')} must be numbers of rows: 1 or more")
        if list(self.sizes) != sorted(set(self.sizes)):
            raise ValueError(f"{option_name('sizes')} must be strictly increasing")
        return self

    def draws(self, size: int) -> range:
        """Return the seeds of the draws for a size."""
        return range(self.large_seeds if size >= LARGE else self.seeds)
