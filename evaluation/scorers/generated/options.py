"""The options of scorers that have a model write its answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evaluation.options import ChatOption
from evaluation.scorers.causal.options import PromptOptions
from kbprobe.options import RARE, Metavar

INSTRUCTED = "Question: {question}\n{choices}\nAnswer with the letter of the right choice alone."
"""The default prompt of a chat."""


class GenerationOptions(PromptOptions, ChatOption):
    """How a model is asked for the letter of a choice; choices are lettered in any case."""

    system: Annotated[str | None, Metavar("TEXT"), RARE] = Field(
        None, description="System prompt of a chat, before the question."
    )
    max_tokens: Annotated[int, RARE] = Field(
        256,
        ge=1,
        le=1 << 20,
        description="Maximum length of a written answer in tokens; models that reason first need "
        "several thousand.",
    )


class ChatOptions(GenerationOptions):
    """Those of all written answers, and how they are read from an endpoint."""

    answers: Annotated[Literal["auto", "letters", "text"], RARE] = Field(
        "auto",
        description="What of an endpoint's answer is used: the probabilities of letters as its "
        "first token, or its text; auto: the probabilities where the endpoint gives them.",
    )
