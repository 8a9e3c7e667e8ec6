"""Recorded baselines: accuracies on a built probe without a language model.

``baselines.json`` is in the probe's folder, and the card has a table of its figures. Evaluation
writes it and the release check reads it; neither imports the other, so the shared code is here. The
file identifies the measured rows by their digests, so it is out of date once the probe is rebuilt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from kbprobe.audit.verdicts import AuditTable, Line
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import write_file
from kbprobe.files.targets import taking
from kbprobe.format.card import with_section
from kbprobe.format.dataset import BASELINES, CARD, read_sound
from kbprobe.format.manifest import Manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.intervals import Estimate
from kbprobe.parsing import MAX_JSON_BYTES
from kbprobe.reading import read_bytes

TITLE = "Baselines"
"""The section of the card."""

FORMAT = "1.0"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BaselineFigure(_Part):
    """The accuracy of one baseline; shares are between 0 and 1."""

    name: str = Field(min_length=1, description="Of the scorer or learner.")
    reads: str = Field(description="Description of what it sees of a row.")
    train_rows: int | None = Field(ge=1, description="Rows trained on; null: not trained.")
    draws: int = Field(ge=1, description="Draws that the accuracy is the mean of.")
    accuracy: float = Field(ge=0, le=1, description="Share of the rows answered right.")
    low: float = Field(ge=0, le=1, description="Lower end of its 95% interval.")
    high: float = Field(ge=0, le=1, description="Upper end of its 95% interval.")
    sha256: str | None = Field(
        None,
        description="Hash of a model's weights and configuration; left out where none was used.",
    )

    @model_serializer(mode="wrap")
    def _without_a_missing_hash(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        shown: dict[str, Any] = dump(self)
        return {name: value for name, value in shown.items() if (name, value) != ("sha256", None)}

    @property
    def label(self) -> str:
        """The name, with the number of rows trained on."""
        trained = self.train_rows is not None
        return f"{self.name}, trained on {self.train_rows:,} rows" if trained else self.name

    def line(self, rows: int, chance: float) -> Line:
        """Return the line of a table."""
        ends = {"low": self.low, "high": self.high}
        accuracy = Estimate(value=self.accuracy, n=rows, method="mean over draws", **ends)
        trained = "–" if self.train_rows is None else f"{self.train_rows:,} rows"
        return Line((self.name, self.reads, trained, str(self.draws)), accuracy, chance)


class BaselineFigures(_Part):
    """All of ``baselines.json``."""

    format: str = Field(FORMAT, description="Version of this format.")
    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated, of the default config.")
    rows: int = Field(ge=1, description="Rows evaluated.")
    chance: float = Field(ge=0, le=1, description="Mean of one over the number of choices.")
    rows_sha256: dict[str, str] = Field(
        description="Digest of the rows of each split that was read (see the manifest)."
    )
    kbprobe_version: str = Field(description="The version that measured.")
    figures: list[BaselineFigure] = Field(min_length=1, description="The baselines.")

    @property
    def summary(self) -> str:
        """The figures on one line."""
        shares = ", ".join(f"{one.name} {one.accuracy:.1%}" for one in self.figures)
        return f"{shares}; chance {self.chance:.1%}"

    def is_of(self, manifest: Manifest) -> bool:
        """Return whether a manifest describes the rows that were measured."""
        return self.rows_sha256 == rows_digests(manifest, list(self.rows_sha256))

    def card_section(self) -> str:
        """Return the section of the card, without its heading."""
        about = (
            f"What is reached without a language model on the {self.rows:,} rows of "
            f"{self.split}, where chance is {self.chance:.1%}. Accuracy is the mean over the draws "
            "of training rows, with its 95% interval."
        )
        lines = [figure.line(self.rows, self.chance) for figure in self.figures]
        table = AuditTable(("baseline", "reads", "trained on", "draws"), lines)
        return f"{about}\n\n{table.markdown()}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def rows_digests(manifest: Manifest, splits: Sequence[str]) -> dict[str, str]:
    """Return the digests of the rows of the default config's splits."""
    digests: dict[str, str] = {}
    for one in manifest.files_of(DEFAULT_CONFIG):
        # The digest of a split of several files combines theirs.
        before = digests.get(one.split)
        digests[one.split] = one.rows_digest if before is None else _digest(before, one.rows_digest)
    return {split: digests[split] for split in splits if split in digests}


def record_baselines(folder: Path, figures: BaselineFigures) -> None:
    """Write figures into a built probe's folder and card, replacing earlier ones.

    Raises:
        UsageError: the folder holds no probe, its card cannot be read, or the figures are of
            other rows.
        KbprobeError: a data file is missing or damaged, or a file cannot be written.
    """
    with taking(folder):
        manifest, card = read_sound(folder)
        if not figures.is_of(manifest):
            raise UsageError(f"{folder}: the baselines were measured on other rows. Measure again.")
        try:
            # The card first: figures that the card lacks would fail the check.
            write_file(folder / CARD, with_section(card, TITLE, figures.card_section()))
            write_file(folder / BASELINES, figures.model_dump_json(indent=2) + "\n")
        except OSError as error:
            raise KbprobeError(
                f"the baselines cannot be written to {folder}: {error.strerror or error}"
            ) from error


def read_baselines(folder: Path) -> BaselineFigures | None:
    """Read the figures on record; None where there are none.

    Raises:
        UsageError: they cannot be read; the message says what is wrong.
    """
    path = folder / BASELINES
    remedy = f"Delete it, and record them again: evaluate-probe baselines {folder} --record"
    try:
        figures = BaselineFigures.model_validate_json(read_bytes(path, MAX_JSON_BYTES))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        what = f"{place} {problem['msg']}".strip()
        raise UsageError(f"{path} cannot be read: {what}. {remedy}") from None
    if figures.format != FORMAT:
        raise UsageError(
            f"{path} has format {figures.format}, and this kbprobe reads {FORMAT}. {remedy}"
        )
    return figures
