"""The options of the causal-LM scorer."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kbprobe.options import Metavar, Options


class CausalOptions(Options):
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
    chat: bool = Field(False, description="Use the tokenizer's chat template.")
    pack: bool = Field(True, description="Encode a question once for all of its choices.")
