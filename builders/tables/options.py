"""The options of the probe facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from builders.engine.options import DrawOptions
from kbprobe.options import RARE, Metavar, named

ALL = ("all", "yes")
"""What says that every relation is closed."""


class FactOptions(DrawOptions):
    """Options of facts."""

    WITHOUT = ("variants", "random_share")  # there is one family
    DEFAULTS = named(split_shares=(0.0, 0.0, 1.0), train_rows=0)
    TRAINING = named(split_shares=(0.6, 0.1, 0.3))

    table: Annotated[str, Metavar("FILE")] = Field(
        "",
        description="The table of facts: CSV, TSV, JSON lines or Parquet (.csv, .tsv, .jsonl, "
        ".parquet; the first three also with .gz); the name of one in the cache (kb-cache fetch "
        "table); or hub:ID[:CONFIG[:SPLIT]], a dataset of the Hugging Face Hub.",
    )
    columns: Annotated[tuple[str, ...], Metavar("ROLE=COLUMN,...")] = Field(
        (),
        description="The columns of subject, relation and object, where they are not called so "
        "(subject=name,relation=property,object=value), and those of further roles: kind and "
        "subject_kind (distractors are of the gold's kind), other_names (of objects), sentence "
        "(which asks for the object), split, and year (only the latest fact is asked for). split= "
        "says that a column of a usual name is something else.",
    )
    relations: Annotated[tuple[str, ...], Metavar("NAME,...")] = Field(
        (),
        description="The relations to ask about; in a table with a row for each subject, the "
        "columns. By default all, where a column names them.",
    )
    separator: Annotated[str, Metavar("TEXT")] = Field(
        "", description="What separates several objects in a cell, such as '|'."
    )
    no_answer: Annotated[tuple[str, ...], Metavar("TEXT,...")] = Field(
        (),
        description="Texts of cells that state nothing, besides '-', '?', 'n/a', 'unknown' and the "
        "like.",
    )
    closed: Annotated[tuple[str, ...], Metavar("NAME,...")] = Field(
        (),
        description="The relations of which the table states all objects of each subject ('all' or "
        "'yes': every relation), so that what it does not state is false. Others are asked about "
        "only if no subject has several objects.",
    )
    functional: Annotated[tuple[str, ...], Metavar("NAME,...")] = Field(
        (),
        description="The relations with one object for each subject: where the table states "
        "several, they contradict each other, and the subject is not asked about.",
    )
    transitive: Annotated[tuple[str, ...], Metavar("NAME,...")] = Field(
        (),
        description="The relations that are transitive, such as 'part of': what is reached in "
        "several steps is no distractor.",
    )
    inverse: bool = Field(
        False, description="Ask for the subjects of objects as well: 'is the capital of which?'."
    )
    hops: int = Field(1, ge=1, le=2, description="With 2, ask for the objects of objects as well.")
    tolerance: Annotated[float | None, Metavar("NUMBER")] = Field(
        None,
        ge=0,
        le=10,
        description="Numbers that differ by less than this share of the larger one are not choices "
        "of the same question (by default 0.1; of years and dates, only the same year).",
    )
    min_objects: Annotated[int, RARE] = Field(
        20, ge=2, description="Minimum number of different objects of a relation that is asked for."
    )

    @field_validator("table", mode="before")
    @classmethod
    def _is_kept(cls, table: Any) -> str:
        if isinstance(table, str):
            return table
        from builders.tables.stored import stored_table

        return stored_table(table)

    @field_validator("columns", mode="before")
    @classmethod
    def _from_mapping(cls, columns: Any) -> Any:
        if isinstance(columns, Mapping):
            return [f"{role}={name}" for role, name in columns.items()]
        return columns

    @field_validator("columns")
    @classmethod
    def _are_pairs(cls, columns: tuple[str, ...]) -> tuple[str, ...]:
        for column in columns:
            role, equals, _ = column.partition("=")
            if not (role and equals):
                raise ValueError(f"{column!r} is not ROLE=COLUMN, such as subject=name")
        return columns

    @model_validator(mode="after")
    def _not_both(self) -> FactOptions:
        if both := {*self.closed} & {*self.functional}:
            raise ValueError(f"--closed and --functional exclude each other: {min(both)!r}")
        return self
