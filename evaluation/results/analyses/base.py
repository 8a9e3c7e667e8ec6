"""The interface of analyses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from evaluation.results.types import Model, Results
from kbprobe.document import Part

if TYPE_CHECKING:
    import pyarrow as pa


class ResultFiles(NamedTuple):
    """The input of a report; ``facts`` are predictions of the facts that rows rest on, if any."""

    results: Results
    predictions: pa.Table
    facts: pa.Table | None = None


@dataclass(frozen=True)
class Analysis:
    """Numbers and a section of the report for the probes that it applies to.

    Attributes:
        name: its key among ``analyses`` in ``results.json``, and the id of its section.
        link: the section's name in the list of sections.
        title: the title of the section.
        parts: makes the section's parts of the files and, if there is one, of the block in
            ``results.json``, without which it is not called; empty if there is nothing to say.
        block: the schema of what it adds to ``results.json``, if anything.
        columns: the columns that it adds to ``predictions.parquet``: Arrow types by name.
    """

    name: str
    link: str
    title: str
    parts: Callable[..., Sequence[Part | None]]
    block: type[Model] | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    def section(self, files: ResultFiles) -> Sequence[Part | None]:
        """Return the parts of its section of the report; none if there is nothing to say."""
        if self.block is None:
            return self.parts(files)
        block = files.results.analysis(self.name, self.block)
        return () if block is None else self.parts(files, block)
