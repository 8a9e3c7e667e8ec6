"""What the records of studies share: fields that are named as what is said of a run."""

from __future__ import annotations

from typing import Any, Self

from evaluation.results.types import Model
from evaluation.studies.base import Finished


class Record(Model):
    """A part of a study's summary: what it says, as JSON, and what each field means."""

    @classmethod
    def of(cls, run: Finished, **given: Any) -> Self:
        """Make a record of the ``given`` fields, and of what is said of a run by other names."""
        said = {name: value for name, value in run.said.items() if name in cls.model_fields}
        return cls(**{**said, **given})
