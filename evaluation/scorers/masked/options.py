"""The options of the masked-LM scorer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kbprobe.options import Options

MultiPiece = Literal["pll", "skip", "error"]


class MaskedOptions(Options):
    """How a masked LM scores choices."""

    multi_piece: MultiPiece = Field(
        "pll",
        description="Candidates of several pieces: pseudo-log-likelihood (pll), set the item "
        "aside (skip), or stop (error).",
    )
    log_probs: bool = Field(
        False, description="Log-probabilities over the vocabulary instead of logits."
    )
