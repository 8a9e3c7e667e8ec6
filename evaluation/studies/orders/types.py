"""The summary of the study of orders, ``orders.json``, and what each number means."""

from __future__ import annotations

from pydantic import Field

from evaluation.results.sealed import Sealed
from evaluation.results.types import Estimate, Model
from evaluation.studies.variation.types import Variant, Variation

NAME = "orders"
SCHEMA_VERSION = "1.0"


class LetterRow(Model):
    """A letter, over all rows and orders in which a choice has it."""

    letter: str = Field(description="The letter.")
    accuracy: Estimate | None = Field(
        description="Accuracy where the gold has this letter; null where it never has."
    )
    chosen: Estimate = Field(description="Share of answers that are this letter.")
    expected: float = Field(
        description="Share of answers that would be, if each letter was equally likely: the mean "
        "of one over the number of choices."
    )


class ModelOrders(Model):
    """A model on a probe, its choices in several orders."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, as it was given.")
    chance: float = Field(description="Mean of one over the number of choices.")
    exhaustive: bool = Field(
        description="Whether these are all orders; if not, they were drawn for each question."
    )
    orders: list[Variant] = Field(
        description="Each order: by the letters that the choices have in the probe, in the order "
        "shown, or by the number that it was drawn with; the values of --order."
    )
    variation: Variation = Field(description="How accuracy and answers vary over the orders.")
    averaged: Estimate = Field(
        description="Accuracy of the choice with the best mean score over all orders."
    )
    letters: list[LetterRow] = Field(description="Each letter, of the rows scored in every order.")
    recall_deviation: float | None = Field(
        description="Standard deviation of accuracy over the letters of the gold (n), as Zheng et "
        "al. 2024 measure a preference for letters; null with one letter."
    )
    notes: list[str] = Field(description="What a reader must know.")


class OrdersSummary(Model, Sealed):
    """All of ``orders.json``."""

    schema_version: str = SCHEMA_VERSION
    models: list[ModelOrders] = Field(description="Each model on each probe.")
