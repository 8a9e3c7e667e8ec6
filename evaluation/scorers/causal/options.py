"""The options of scorers that put items to a causal LM."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from evaluation.items.orders import Order
from evaluation.options import ChatOption
from kbprobe.options import MAX_SEED, RARE, Metavar, Options, option_name


class PromptOptions(Options):
    """How items are put to a causal LM."""

    shots: int = Field(
        0,
        ge=0,
        le=64,
        description="Solved training examples before each question.",
    )
    prompt: Annotated[str | None, Metavar("TEXT")] = Field(
        None,
        description="Prompt with {question} in it (and {choices} with --letters).",
    )
    letters: bool = Field(
        False,
        description="Show and score lettered choices, averaged over orders.",
    )
    order: Annotated[str | None, Metavar("ORDER"), RARE] = Field(
        None,
        description="With --letters: show the choices in this order only, instead of averaging. "
        "Either letters, such as CAB for the third choice of the probe, the first and the second; "
        "or a number, the seed of a random order for each question.",
    )
    orders: Annotated[int | None, RARE] = Field(
        None,
        ge=1,
        le=5040,
        description="With --letters: number of orders of its choices that each question is asked "
        "in; by default as many as it has choices, each of which takes each letter once.",
    )
    shots_seed: Annotated[int | None, RARE] = Field(
        None,
        ge=0,
        le=MAX_SEED,
        description="Random seed of the examples of --shots; by default --seed.",
    )
    shots_order: Annotated[int | None, RARE] = Field(
        None,
        ge=0,
        le=MAX_SEED,
        description="Shuffle the examples of --shots with this seed; by default they stay in the "
        "order in which they were drawn.",
    )

    @field_validator("prompt")
    @classmethod
    def _one_spelling(cls, value: str | None) -> str | None:
        """Write line breaks as on the command line, so that scores of one prompt have one key."""
        return None if value is None else value.replace("\n", "\\n")

    @field_validator("order", mode="before")
    @classmethod
    def _spelled_order(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        return Order.parse(value).text if isinstance(value, str) else value

    @model_validator(mode="after")
    def _has_what_it_varies(self) -> Self:
        if self.order is not None and not self.letters:
            raise ValueError("--order is the order of lettered choices: give --letters as well")
        if self.orders is not None and self.order is not None:
            raise ValueError("--orders is how many orders there are, and --order names one of them")
        for name in ("shots_seed", "shots_order"):
            if getattr(self, name) is not None and not self.shots:
                raise ValueError(f"{option_name(name)} varies examples: give --shots N as well")
        return self


class CausalOptions(PromptOptions, ChatOption):
    """Options of prompts, and further ones for checkpoints that are loaded here."""

    pack: Annotated[bool, RARE] = Field(
        True, description="Encode a question once for all of its choices."
    )


class NeutralOptions(Options):
    """The neutral text of pointwise mutual information."""

    neutral: Annotated[str, Metavar("WORDS"), RARE] = Field(
        "",
        description="Text that replaces the question when choices are scored without it; --prompt "
        "and --chat apply to it as to a question.",
    )
