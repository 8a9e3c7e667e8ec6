"""The options that every probe has, as typed models that refuse what they do not know.

A probe's own options extend :class:`ProbeOptions`. Command-line options, their help, the
card's table of parameters and the manifest are all made from these models.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from kb_cache.errors import UsageError, did_you_mean

SPLITS = ("train", "validation", "test")


class ProbeOptions(BaseModel):
    """Options common to all probes."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    choices: int = Field(5, ge=2, le=26, description="Choices of a question, the gold included.")
    train_rows: int = Field(
        3000, ge=0, description="Most rows of the train split, whole clusters at a time (0: all)."
    )
    split_shares: tuple[float, float, float] = Field(
        (0.25, 0.25, 0.5),
        description="Shares of the clusters in train, validation and test, before --train-rows.",
    )
    limit: int | None = Field(
        None, ge=1, description="Most rows in all, whole clusters at a time, seeded."
    )

    @field_validator("split_shares")
    @classmethod
    def _shares_add_up(cls, shares: tuple[float, float, float]) -> tuple[float, float, float]:
        if min(shares) < 0 or not math.isclose(sum(shares), 1.0, abs_tol=1e-6):
            raise ValueError("three numbers of 0 or more that add up to 1, such as 0.25,0.25,0.5")
        return shares

    @classmethod
    def parse(cls, values: dict[str, Any], probe: str) -> Self:
        """Validate options given by name.

        Raises:
            UsageError: a name is unknown or a value impossible; the message names the probe,
                the option as it is written on the command line, and the remedy.
        """
        for name in values:
            if name not in cls.model_fields:
                hint = did_you_mean(name, cls.model_fields)
                raise UsageError(f"{probe} has no option {option_name(name)}.{hint}")
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problems = "; ".join(explain(problem, option_name) for problem in error.errors())
            raise UsageError(f"{probe}: {problems}") from None


OptionsT = TypeVar("OptionsT", bound=ProbeOptions)


def explain(problem: Any, spell: Callable[[str], str] = str) -> str:
    """Put one of pydantic's validation errors in plain words, its place spelled by ``spell``."""
    message = str(problem["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    place = ".".join(str(part) for part in problem["loc"])
    if not place:
        return message
    return f"{spell(place)}: {message} (got {problem['input']!r})"


def spelled(value: Any) -> str:
    """Spell a value as the command line takes it: lists with commas."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def option_name(field: str) -> str:
    """Return the command-line option of a field: ``max_hops`` is ``--max-hops``."""
    return f"--{field.split('.')[0].replace('_', '-')}"
