"""What a learner of heads reports about its training, in the results of each run."""

from __future__ import annotations

from pydantic import Field

from evaluation.results.types import Model

NAME = "fitting"


class Fitting(Model):
    """How a head was fitted, and how well it tells the answers of rows that it has not seen."""

    train_loss: float = Field(description="Cross-entropy of the last epoch, nats a row.")
    next_rows: int = Field(
        description="Rows of the draw that follow those fitted on and were asked next; 0: none."
    )
    next_bits: float | None = Field(
        description="Code length of their answers in bits, by the probabilities that the head "
        "gives: a block of the online code (Voita and Titov 2020). Null where none were asked."
    )
    seen: float | None = Field(
        None,
        description="With random labels: share of the rows whose answer the rows fitted on tell, "
        "since they have the same first argument. Null with gold labels.",
    )
