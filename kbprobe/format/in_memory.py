"""Metadata of probes that are datasets in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datasets import Dataset, DatasetDict, DatasetInfo
from pydantic import ValidationError, field_validator

from kbprobe.format.manifest import DataFile, Manifest, plain_json
from kbprobe.tables import PlainTable

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 5
"""The rows that a notebook shows."""


@dataclass
class ProbeDatasetInfo(DatasetInfo):  # type: ignore[misc]
    """The info of a dataset that holds a split of a probe.

    Attributes:
        manifest: the part of the probe's manifest that concerns these rows; copies keep it.
    """

    manifest: dict[str, Any] | None = None


class ProbeSplits(DatasetDict):  # type: ignore[misc]
    """The splits of a config of a probe: a ``DatasetDict`` that shows itself in short."""

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows of all splits, with a first column ``split``."""
        import pandas as pd

        frames = {name: rows.to_pandas() for name, rows in self.items()}
        joined: pd.DataFrame = pd.concat(frames, names=["split"])
        return joined.reset_index("split").reset_index(drop=True)

    @property
    def left_out(self) -> dict[str, int]:
        """How many facts, questions or rows were left out, by reason, most first."""
        manifest = getattr(next(iter(self.values())).info, "manifest", None) or {}
        dropped = manifest.get("counts", {}).get("dropped", {})
        return dict(sorted(dropped.items(), key=lambda pair: -pair[1]))

    def __repr__(self) -> str:
        info = next(iter(self.values())).info
        counts = ", ".join(f"{name} {rows.num_rows:,}" for name, rows in self.items())
        more = "; see left_out" if self.left_out else ""
        return f"ProbeSplits({info.dataset_name!r}, {info.config_name!r}: {counts} rows{more})"

    def _repr_html_(self) -> str:
        shown = [row for rows in self.values() for row in rows.take(min(SHOWN, len(rows)))][:SHOWN]
        cells = [
            [
                row["question"],
                " / ".join(row["choices"]["text"]),
                row["answerKey"],
                row["relation"],
                row["distractor_family"],
            ]
            for row in shown
        ]
        head = ["question", "choices", "answer", "relation", "family"]
        return PlainTable(head, cells).html(repr(self))


class UnwrittenManifest(Manifest):
    """The manifest of a probe in memory, which has no files."""

    files: tuple[DataFile, ...] = ()

    @field_validator("files")
    @classmethod
    def _have_the_default(cls, files: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
        return files


def dataset_info(manifest: Mapping[str, Any], config: str) -> ProbeDatasetInfo:
    """Return the metadata of a dataset in memory: probe, config and manifest.

    A config of sub-questions has counts and an audit of its own.
    """
    own = {**manifest, **manifest.get("sub_questions", {}).get(config, {})}
    return ProbeDatasetInfo(
        description=manifest["about"],
        license=manifest["knowledge_base"]["licence"],
        dataset_name=manifest["probe"],
        config_name=config,
        manifest=plain_json({**own, "files": [], "sub_questions": {}}),
    )


def manifest_of(rows: Dataset, split: str) -> Manifest | None:
    """Return the manifest of a split in memory; None if rows were added or removed."""
    try:
        manifest = UnwrittenManifest.model_validate(getattr(rows.info, "manifest", None))
    except ValidationError:
        return None
    return manifest if manifest.counts.splits.get(split) == len(rows) else None
