"""The options of the study: prompts by name, and seeds of their examples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from evaluation.scorers.causal.options import CausalOptions
from kbprobe.errors import UsageError
from kbprobe.options import MAX_SEED, Metavar, Options
from kbprobe.parsing import read_yaml

Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]

VARIED = ("prompt", "letters", "chat", "shots")
"""Options that a prompt of the file may set."""

_REMEDY = (
    "Write a name and a template on each line, such as \"qa: 'Question: {question}\\nAnswer:'\"."
)
_NAME = re.compile(r"\w[\w.,=@+-]{0,59}")
_MOST = 1000


class PromptsOptions(Options):
    """What is varied; each prompt is combined with each seed and each order of examples."""

    prompts: Annotated[dict[str, dict[str, Any]], Metavar("FILE")] = Field(
        {},
        description="YAML file of prompts by name: templates as --prompt takes them, or options "
        f"({', '.join(VARIED)}) of each.",
    )
    shots_seeds: tuple[Seed, ...] = Field(
        (), description="Seeds that draw the examples of --shots: a run with each."
    )
    shots_orders: tuple[Seed, ...] = Field(
        (), description="Seeds of orders of the examples of --shots: a run with each."
    )

    @field_validator("prompts", mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        source = "prompts"
        if isinstance(value, str | Path):
            if not str(value).strip():
                raise ValueError("must be a YAML file of prompts by name")
            source = str(value)
            try:
                value = read_yaml(Path(value), _REMEDY)
            except FileNotFoundError:
                raise ValueError("must be a YAML file of prompts by name that exists") from None
        if not isinstance(value, Mapping) or len(value) > _MOST:
            raise UsageError(f"{source} must hold prompts by name, at most {_MOST:,}. {_REMEDY}")
        return {name: _options_of(source, name, held) for name, held in value.items()}

    @field_validator("shots_seeds", "shots_orders")
    @classmethod
    def _distinct(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(value))


def _options_of(source: str, name: Any, held: Any) -> dict[str, Any]:
    """Return the options that a prompt sets, validated one by one.

    Raises:
        UsageError: the name cannot name a folder; an option is unknown or impossible.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"{source}: {name!r} cannot name a prompt, whose results go to a folder of that name: "
            "use letters, digits, _ and - . , = @ + (60 at most)"
        )
    given = {"prompt": held} if isinstance(held, str) else held
    if (
        not isinstance(given, Mapping)
        or not given
        or not all(isinstance(key, str) for key in given)
    ):
        raise UsageError(f"{source}: {name} must be a template or options by name. {_REMEDY}")
    if odd := [key for key in given if key not in VARIED]:
        raise UsageError(
            f"{source}: {name} has no option {odd[0]!r}. There are: {', '.join(VARIED)}"
        )
    own = CausalOptions.parse(dict(given), f"{source}: {name}")
    return {key: getattr(own, key) for key in given}
