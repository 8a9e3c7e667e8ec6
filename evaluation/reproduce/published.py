"""The published numbers, read from ``data/published.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kbprobe.parsing import read_yaml, validated

PUBLISHED = Path(__file__).parent / "data" / "published.yaml"

Value: TypeAlias = float | None


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PublishedTable(_Part):
    """A table of a paper.

    Attributes:
        source: where it is in the paper.
        columns: names of its columns.
        rows: cells by the name of the row, in the order of the columns: a number, or one for each
            measure.
        measures: what the numbers of a cell are.
        form: how they are written.
        people: accuracy of people, where the paper gives it outside the rows.
        evaluated: rows that the numbers of a probe are of, by probe.
    """

    source: str = Field(min_length=1)
    columns: tuple[str, ...] = Field(min_length=1)
    rows: Mapping[str, tuple[Value | tuple[Value, ...], ...]] = Field(min_length=1)
    measures: tuple[str, ...] = ("accuracy",)
    form: str = "{accuracy}"
    people: float | None = None
    evaluated: Mapping[str, int] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_a_matrix(self) -> PublishedTable:
        for name, cells in self.rows.items():
            if len(cells) != len(self.columns):
                raise ValueError(f"{name} has {len(cells)} cells for {len(self.columns)} columns")
            if any(len(cell) != len(self.measures) for cell in map(_values, cells)):
                raise ValueError(f"{name}: a cell needs a number for each of {self.measures}")
        return self

    def cells(self, name: str) -> list[Sequence[Value]]:
        """Return the cells of a row, each with a number for each measure."""
        return [_values(cell) for cell in self.rows[name]]


class PublishedPaper(_Part):
    """A paper: how it is cited, and its tables by name."""

    paper: str = Field(min_length=1)
    tables: Mapping[str, PublishedTable] = Field(min_length=1)


def _values(cell: Value | Sequence[Value]) -> Sequence[Value]:
    return cell if isinstance(cell, Sequence) else (cell,)


class _File(BaseModel):
    papers: Mapping[str, PublishedPaper]


@lru_cache(maxsize=1)
def published_papers() -> Mapping[str, PublishedPaper]:
    """Read the published numbers of all papers, by the name of the paper."""
    read = {"papers": read_yaml(PUBLISHED)}
    return validated(read, _File, str(PUBLISHED)).papers
