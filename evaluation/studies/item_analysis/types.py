"""The summary of the study, ``items.json``, and what each number means."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from evaluation.results.types import Estimate, Model

NAME = "items"
SCHEMA_VERSION = "1.0"
SUSPECTED = math.log(100)
"""Evidence from which a key is suspected. If one key in a hundred is wrong, such an item's is as
likely wrong as right."""

Remark = Literal["suspected key", "no model right", "every model right", "negative correlation"]


class ItemsRun(Model):
    """One of the runs on a probe."""

    label: str = Field(description="The model, and what distinguishes it from the others.")
    folder: str = Field(description="The folder of its results.")
    accuracy: Estimate = Field(description="Accuracy on the rows that it scored.")


class ItemRow(Model):
    """One item, and what the models answered."""

    id: str = Field(description="The item's id.")
    cluster: str = Field(description="Its cluster.")
    question: str = Field(description="Its text; the premise first, if it has one.")
    choices: list[str] = Field(description="Texts of the choices.")
    key: int = Field(description="Number of the choice that counts as right, from 0.")
    rival: int | None = Field(
        description="The choice other than the key that speaks most against it; null if no model "
        "chose another one than the key."
    )
    said: list[int | None] = Field(
        description="Each run's choice, in the order of the runs; null if it did not score the "
        "item."
    )
    models: int = Field(description="Runs that scored it.")
    right: int = Field(description="Runs that chose the key.")
    for_rival: int = Field(description="Runs that chose the rival.")
    point_biserial: float | None = Field(
        description="Correlation of being right on it with accuracy on all other items, over the "
        "runs; null if all are right or all wrong."
    )
    evidence: float = Field(
        description="Natural log of how many times likelier the answers are if the rival is right "
        "rather than the key, where each run is right as often as on the other items, and "
        "independently of other runs."
    )
    remarks: list[Remark] = Field(description="What stands out.")


class ProbeItems(Model):
    """The items of a probe."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split.")
    chance: float = Field(description="Mean of one over the number of choices.")
    runs: list[ItemsRun] = Field(description="The runs, as they were given.")
    alike: list[list[str]] = Field(
        description="Labels of runs that gave the same answer to every item: they count twice."
    )
    suspected: int = Field(
        description="Items whose key is suspected: evidence of at least ln 100, and two runs or "
        "more for the rival."
    )
    none_right: int = Field(description="Items that no run gets right.")
    all_right: int = Field(description="Items that every run gets right.")
    negative: int = Field(description="Items with a negative point-biserial correlation.")
    mean_point_biserial: float | None = Field(
        description="Mean over the items that have one; null if none has."
    )
    items: list[ItemRow] = Field(
        description="The items, in the order to read them: by evidence, then by correlation."
    )


class ItemsSummary(Model):
    """All of ``items.json``."""

    schema_version: str = SCHEMA_VERSION
    rows: int = Field(description="Items of each probe that are shown.")
    probes: list[ProbeItems] = Field(description="Each probe.")
