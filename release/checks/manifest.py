"""The layout of a manifest, as far as a release rests on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, field_validator

from kb_cache.base import with_credits
from kbprobe.errors import UsageError
from kbprobe.format.attribution import SourceRecord, sources_of
from kbprobe.format.dataset import DEFAULT_CONFIG
from kbprobe.format.items import SCHEMA_VERSION
from kbprobe.format.manifest import MANIFEST
from kbprobe.format.setups import SPLITS
from kbprobe.options import explain_all
from release.checks.findings import REBUILD

_HEX = r"^[0-9a-f]{64}$"


class _Part(BaseModel):
    """A part of a manifest; later versions may know more."""

    model_config = ConfigDict(extra="allow", frozen=True)


class DataFile(_Part):
    """A data file of a probe."""

    path: str
    config: str = DEFAULT_CONFIG
    split: str
    rows: int = Field(ge=0)
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=_HEX)

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or "\\" in path:
            raise ValueError("a path within the probe's folder, with forward slashes")
        return path

    @field_validator("split")
    @classmethod
    def _is_known(cls, split: str) -> str:
        if split not in SPLITS:
            raise ValueError(f"one of {', '.join(SPLITS)}")
        return split


class KnowledgeBase(_Part):
    """What a probe was built from."""

    name: str
    version: str
    digest: str
    licence: str

    @property
    def credited(self) -> list[SourceRecord]:
        """Each source with its attribution and citation, which old manifests lack."""
        return with_credits(sources_of(self.model_dump()))


class Counts(_Part):
    """What was counted when the probe was built."""

    rows: int
    splits: dict[str, int]
    concepts: int
    clusters: int
    unlabelled: int = 0


class SubQuestions(_Part):
    """A further config, with questions of its own."""

    counts: Counts
    audit: dict[str, Any] | None


class Request(_Part):
    """What was asked for."""

    options: dict[str, Any]
    seed: int
    format: str


class Layout(_Part):
    """A manifest."""

    probe: str
    about: str
    schema_version: str
    kbprobe_version: str
    request: Request
    knowledge_base: KnowledgeBase
    language: tuple[str, ...] = ("en",)
    counts: Counts
    audit: dict[str, Any] | None
    sub_questions: dict[str, SubQuestions] = Field(
        {}, validation_alias=AliasChoices("sub_questions", "companions")
    )
    variants: dict[str, Any] = {}
    files: tuple[DataFile, ...] = Field(min_length=1)
    canary_column: bool = False
    annotation: dict[str, Any] | None = None
    reading: dict[str, Any] | None = None
    adversaries: dict[str, Any] | None = None

    @property
    def configs(self) -> dict[str, list[DataFile]]:
        """The files of each config, in the manifest's order."""
        found: dict[str, list[DataFile]] = {}
        for entry in self.files:
            found.setdefault(entry.config, []).append(entry)
        return found

    @property
    def controls(self) -> list[str]:
        """The configs that show the default's rows another way: controls, and variants."""
        return [name for name in self.configs if name not in (DEFAULT_CONFIG, *self.sub_questions)]


class LayoutError(UsageError):
    """A manifest of another layout or schema version; ``problem`` says how it differs."""

    def __init__(self, problem: str, place: str | Path = MANIFEST) -> None:
        super().__init__(f"{place}: {problem}. {REBUILD}")
        self.problem = problem


def read_layout(manifest: Mapping[str, Any], place: str | Path = MANIFEST) -> Layout:
    """Validate a manifest's layout; ``place`` is where it was read, for messages.

    Raises:
        LayoutError: it is of another layout, or of a schema version that cannot be read.
    """
    try:
        layout = Layout.model_validate(manifest)
    except ValidationError as error:
        raise LayoutError(explain_all(error.errors()), place) from None
    major = SCHEMA_VERSION.split(".")[0]
    if layout.schema_version.split(".")[0] != major:
        problem = f"schema {layout.schema_version}; this version of kbprobe reads {major}.x"
        raise LayoutError(problem, place)
    if DEFAULT_CONFIG not in layout.configs:
        raise LayoutError(f"no file belongs to the config {DEFAULT_CONFIG!r}", place)
    return layout
