"""The options of scorers that put items to a causal LM."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from evaluation.items.orders import Order
from kbprobe.options import MAX_SEED, Metavar, Options, option_name

_LATER = frozenset({"order", "shots_seed", "shots_order"})
"""Options that were added later: cached scores were stored without them."""


class PromptOptions(Options):
    """How items are put to a causal LM."""

    shots: int = Field(
        0, ge=0, le=64, description="Solved examples from train before each question."
    )
    prompt: Annotated[str | None, Metavar("TEXT")] = Field(
        None,
        description="What stands before the choice, with {question} in it (and {choices} with "
        "--letters); none: the question.",
    )
    letters: bool = Field(
        False, description="Show lettered choices, score the letters, average over orders."
    )
    order: Annotated[str | None, Metavar("ORDER")] = Field(
        None,
        description="With --letters: show the choices in this order alone instead of averaging: "
        "letters of the choices as the probe has them, such as CAB, or a number, which draws an "
        "order for each question.",
    )
    shots_seed: int | None = Field(
        None, ge=0, le=MAX_SEED, description="Seed of the examples of --shots; none: --seed."
    )
    shots_order: int | None = Field(
        None,
        ge=0,
        le=MAX_SEED,
        description="Put the examples of --shots in an order drawn with this seed; none: as they "
        "were drawn.",
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
        for name in ("shots_seed", "shots_order"):
            if getattr(self, name) is not None and not self.shots:
                raise ValueError(f"{option_name(name)} varies examples: give --shots N as well")
        return self

    @model_serializer(mode="wrap")
    def _named_where_given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out later options that were not given, so that earlier cached scores stay valid."""
        held: dict[str, Any] = dump(self)
        return {k: value for k, value in held.items() if value is not None or k not in _LATER}


class CausalOptions(PromptOptions):
    """Those of prompts, and what a checkpoint that is loaded here can do besides."""

    chat: bool = Field(False, description="Use the tokenizer's chat template.")
    pack: bool = Field(True, description="Encode a question once for all of its choices.")


class NeutralOptions(Options):
    """The neutral text of pointwise mutual information."""

    neutral: Annotated[str, Metavar("WORDS")] = Field(
        "",
        description="What stands in place of the question where choices are scored without it; it "
        "goes through --prompt and --chat as a question does.",
    )
