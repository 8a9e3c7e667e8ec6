"""Base of the records of studies, whose fields may be named after facts about a run."""

from __future__ import annotations

from typing import Any, Self

from evaluation.results.types import Model
from evaluation.studies.base import Finished


class Record(Model):
    """A part of a study's summary, as JSON, with the meaning of each field."""

    @classmethod
    def of(cls, run: Finished, **given: Any) -> Self:
        """Make a record of the ``given`` fields, and of a run's facts for the other fields."""
        said = {name: value for name, value in run.said.items() if name in cls.model_fields}
        return cls(**{**said, **given})
