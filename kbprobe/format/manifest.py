"""The manifest of a built probe: what was asked for, and what is in its folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from kbprobe.errors import UsageError, did_you_mean
from kbprobe.format.licences import SourceRecord
from kbprobe.format.setups import DEFAULT_CONFIG, SPLITS
from kbprobe.intervals import Estimate
from kbprobe.parsing import json_value, validated
from kbprobe.reading import read_bytes

MANIFEST = "manifest.json"
MAX_BYTES = 64 << 20
"""Maximum size of a manifest in bytes."""

SCHEMA_VERSION = "1.3"
"""Version of the item schema; it only grows within a major version."""
REBUILD = "Build the probe again."
_READ_BESIDE = ("README.md", "baselines.json", "annotations.jsonl")
"""Files next to a manifest that commands read although it does not list them."""

_Found = TypeVar("_Found")
_HEX = r"^[0-9a-f]{64}$"


class Part(BaseModel):
    """A part of a manifest; later versions may know more."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)


_LONGEST_NAME = 255
"""Maximum bytes of a file name; file systems reject longer ones."""


class DataFile(Part):
    """One data file: where it is in the probe's folder, and what identifies its content.

    The default config's files are in ``data/``, those of another config in ``CONFIG/data/``.

    ``rows_sha256`` hashes only ids, questions, choices and answers: it distinguishes "other rows"
    from "the same rows, encoded by another version of Arrow". Writers other than kbprobe leave it
    out.
    """

    path: str
    config: str = DEFAULT_CONFIG
    split: str
    rows: int = Field(ge=0)
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=_HEX)
    rows_sha256: str = Field("", pattern=f"{_HEX}|^$")

    @property
    def rows_digest(self) -> str:
        """The digest of the rows, or that of the whole file if there is none."""
        return self.rows_sha256 or self.sha256

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        pure = PurePosixPath(path)
        if not pure.parts or pure.is_absolute() or ".." in pure.parts or set("\\\0") & set(path):
            raise ValueError("expected a path within the probe's folder, with forward slashes")
        if max(len(part.encode("utf-8", "surrogatepass")) for part in pure.parts) > _LONGEST_NAME:
            raise ValueError(f"expected names of at most {_LONGEST_NAME} bytes")
        return path

    @field_validator("split")
    @classmethod
    def _is_known(cls, split: str) -> str:
        if split not in SPLITS:
            raise ValueError(f"expected one of {', '.join(SPLITS)}")
        return split


class SplitFiles(NamedTuple):
    """The files of a split of a config, in order: one, or several of a large build."""

    config: str
    split: str
    files: tuple[DataFile, ...]

    @property
    def rows(self) -> int:
        """The number of rows in them."""
        return sum(file.rows for file in self.files)

    @property
    def rows_digest(self) -> str:
        """The digest of the rows, given how they are divided into files."""
        digests = [file.rows_digest for file in self.files]
        if len(digests) == 1:
            return digests[0]
        return hashlib.sha256(json.dumps(digests).encode()).hexdigest()


class KnowledgeBase(Part):
    """What a probe was built from; the names of several ``sources`` are joined by "+"."""

    name: str
    version: str
    digest: str
    licence: str
    sources: tuple[SourceRecord, ...] = ()


class Fewer(Part):
    """How many rows an option asked for, how many there were, and why these are fewer."""

    asked: int
    rows: int
    reason: str


class Counts(Part):
    """What was counted when the probe was built; ``fewer`` by option."""

    rows: int = Field(ge=0)
    splits: dict[str, int]
    concepts: int
    clusters: int
    unlabelled: int = 0
    fewer: dict[str, Fewer] = {}


MOST_SIMILAR = "most similar choice"
"""The baseline that picks the choice most similar to the question (:mod:`kbprobe.similarity`)."""


class EncoderDigest(Part):
    """An encoder of texts."""

    name: str = Field(min_length=1, description="Its name, as it was given.")
    sha256: str = Field(pattern=_HEX, description="Hash of its weights and configuration.")


class MatchedOn(Part):
    """The encoders by whose similarity the choices were put together.

    The place of the gold in the order of similarity to the question is brought near to uniform for
    each of them, so that they do badly on the rows by construction.
    """

    encoders: tuple[EncoderDigest, ...] = Field(min_length=1)


def on_matching(names: Sequence[str]) -> str:
    """Return a sentence on what it means that choices are matched on these encoders."""
    *first, last = names
    return (
        f"Choices are matched on {', '.join(first)}{' and ' * bool(first)}{last}: encoders used "
        "for matching do badly by construction, and are not to be ranked on these rows."
    )


class BaselineCell(Estimate):
    """The accuracy of a baseline of the audit on some of the rows, and how it compares to chance.

    In a manifest, the value is ``accuracy`` and n is ``rows``.
    """

    model_config = ConfigDict(extra="allow")

    value: float = Field(alias="accuracy")
    n: int = Field(alias="rows")
    method: str = "t over clusters"
    verdict: str = ""


class OracleReport(Part):
    """How often an oracle of partial knowledge is right.

    ``families`` has a share for each distractor family, for all rows (``all``) and, where there are
    random and other distractors, for the rows with other distractors (``near``).
    """

    knows: str
    target: float
    families: dict[str, float]
    hops: dict[str, float] = {}

    @field_validator("families")
    @classmethod
    def _cover_all(cls, families: dict[str, float]) -> dict[str, float]:
        if "all" not in families:
            raise ValueError("no share over 'all' families")
        return families


class Audit(Part):
    """The accuracies of shortcuts; ``baselines`` by name, then by distractor family.

    ``oracles`` gives, by name, the accuracies of oracles that know part of what is asked.
    """

    baselines: dict[str, dict[str, BaselineCell]]
    flags: tuple[str, ...]
    chance: float
    scored_rows: int
    bar: str = "the bar"
    leakage: dict[str, int] = {}
    oracles: dict[str, OracleReport] = {}

    @field_validator("baselines")
    @classmethod
    def _cover_all(
        cls, baselines: dict[str, dict[str, BaselineCell]]
    ) -> dict[str, dict[str, BaselineCell]]:
        if lacking := [name for name, cells in baselines.items() if "all" not in cells]:
            raise ValueError(f"{lacking[0]!r} has no accuracy over 'all' families")
        return baselines


class SubQuestions(Part):
    """An additional config, with its own questions."""

    counts: Counts
    audit: Audit | None


class RecordedRequest(Part):
    """What was asked for."""

    probe: str = ""
    options: dict[str, Any]
    seed: int
    format: Literal["parquet", "jsonl"] = "parquet"
    audit: bool = True
    template_digest: str = ""
    knowledge_base: str = ""


class Sources(Part):
    """The wording files that a probe was built with."""

    sources: tuple[str, ...] = ("",)


class Annotation(Part):
    """How the rows were labelled, and by whom: people, language models."""

    annotator_kind: str | None = None
    vote_accuracy: Estimate | None = None


class Record(Part):
    """Findings about a probe made after it was built (see ``release.cards``)."""

    summary: str
    rows_digest: str
    passed: bool = False


class Manifest(Part):
    """All of ``manifest.json``."""

    probe: str = Field(min_length=1)
    about: str
    schema_version: str
    kbprobe_version: str
    request: RecordedRequest
    knowledge_base: KnowledgeBase
    language: tuple[str, ...] = ("en",)
    template: Sources = Sources()
    environment: dict[str, str] = {}
    counts: Counts
    audit: Audit | None
    sub_questions: dict[str, SubQuestions] = {}
    variants: dict[str, Any] = {}
    files: tuple[DataFile, ...] = Field(min_length=1)
    canary_column: bool = False
    annotation: Annotation | None = None
    matching: MatchedOn | None = None
    reading: Record | None = None
    adversaries: Record | None = None

    @field_validator("schema_version")
    @classmethod
    def _is_read_here(cls, version: str) -> str:
        major = SCHEMA_VERSION.split(".")[0]
        if version.split(".")[0] != major:
            raise ValueError(f"this version of kbprobe reads {major}.x")
        return version

    @field_validator("files")
    @classmethod
    def _have_the_default(cls, files: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
        if all(entry.config != DEFAULT_CONFIG for entry in files):
            raise ValueError(f"no file belongs to the config {DEFAULT_CONFIG!r}")
        return files

    @property
    def configs(self) -> dict[str, list[DataFile]]:
        """The files of each config, in the manifest's order."""
        return _grouped(self.files, "config")

    @property
    def controls(self) -> list[str]:
        """The configs that show the default config's rows in another way: controls and variants."""
        return [name for name in self.configs if name not in (DEFAULT_CONFIG, *self.sub_questions)]

    def files_of(self, config: str) -> list[DataFile]:
        """Return the files of a config, or raise a UsageError that names the configs."""
        return self._one_of(self.configs, config, "config")

    def _one_of(self, found: Mapping[str, _Found], name: str, what: str) -> _Found:
        if name not in found:
            raise UsageError(
                f"{self.probe} has no {what} {name!r}.{did_you_mean(name, found)} "
                f"It has: {', '.join(found)}."
            )
        return found[name]

    def split_files(self, config: str) -> dict[str, SplitFiles]:
        """Return the files of each split of a config.

        Raises:
            UsageError: there is no such config.
        """
        found = _grouped(self.files_of(config), "split")
        return {split: SplitFiles(config, split, tuple(files)) for split, files in found.items()}

    def files_of_split(self, config: str, split: str) -> SplitFiles:
        """Return the files of a split of a config, or raise a UsageError that names the splits."""
        return self._one_of(self.split_files(config), split, "split")

    @property
    def rows_digest(self) -> str:
        """A digest of the rows of all configs and splits, however they are encoded."""
        rows = sorted((entry.path, entry.rows_digest) for entry in self.files)
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    @property
    def content(self) -> dict[str, Any]:
        """The manifest as plain data, as it was read, without added defaults."""
        return self.model_dump(mode="json", exclude_unset=True, by_alias=True)


def _grouped(files: Iterable[DataFile], by: str) -> dict[str, list[DataFile]]:
    found: dict[str, list[DataFile]] = {}
    for entry in files:
        found.setdefault(getattr(entry, by), []).append(entry)
    return found


class ManifestError(UsageError):
    """A manifest that is damaged or has another layout; ``problem`` says how it differs."""

    def __init__(self, problem: str, place: str) -> None:
        super().__init__(f"{place}{problem}. {REBUILD}")
        self.problem = problem


class ForeignManifest(ManifestError):
    """JSON that no version of kbprobe wrote."""


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write ``manifest.json``: sorted and indented, with the same bytes for the same content."""
    (folder / MANIFEST).write_bytes(manifest_text(manifest).encode())


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """Return the text of ``manifest.json``."""
    text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False, default=jsonable)
    return text + "\n"


def plain_json(value: Any) -> Any:
    """Return a value as it would be after a round trip through JSON."""
    return json.loads(json.dumps(value, default=jsonable))


def jsonable(value: Any) -> Any:
    """Convert values that a manifest holds in memory to types that JSON can hold."""
    if isinstance(value, DataFile):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} cannot stand in a manifest")


def holds_manifest(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder has a manifest, of whatever kind: `read_manifest` refuses a pipe."""
    return os.path.lexists(os.path.join(folder, MANIFEST))


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a built probe.

    Args:
        folder: a probe's folder, or the path of its manifest.

    Raises:
        ManifestError: it is damaged, or of a schema that this version does not read; or a file of
            the probe is a link that leads out of the folder.
        UsageError: the folder holds no probe.
    """
    path = folder / MANIFEST if folder.is_dir() else folder
    try:
        content = read_bytes(path, MAX_BYTES, REBUILD)
    except FileNotFoundError:
        raise UsageError(
            f"{folder} holds no built probe (no {MANIFEST}). "
            "Build one with: build-probe NAME -o DIR"
        ) from None
    manifest = parse_manifest(content, str(path))
    _refuse_links(path, manifest)
    return manifest


def _refuse_links(path: Path, manifest: Manifest) -> None:
    """Refuse links that lead out of a manifest's folder, since its contents may be published.

    Links of the Hub's cache, which lead to its ``blobs``, are allowed.
    """
    place = Path(os.path.realpath(path.parent))
    snapshots = [folder for folder in place.parents if folder.name == "snapshots"]
    allowed = [place, *(folder.with_name("blobs") for folder in snapshots)]
    for name in (MANIFEST, *_READ_BESIDE, *(entry.path for entry in manifest.files)):
        real = Path(os.path.realpath(place / name))
        if not any(real.is_relative_to(folder) for folder in allowed):
            raise ManifestError(
                f"{name} is a link to {real}, outside of the folder, and is not followed: put the "
                "file itself there",
                f"{path}: ",
            )


def parse_manifest(content: bytes, place: str = "") -> Manifest:
    """Parse the bytes of a manifest; ``place`` is where they were read, for messages.

    Raises:
        ForeignManifest: they are not a manifest of kbprobe.
        ManifestError: they are not JSON, or a damaged manifest.
    """
    where = f"{place}: " if place else ""
    try:
        value = json_value(content, "it")
    except UsageError as error:
        raise ManifestError(str(error), where) from None
    if not isinstance(value, dict) or "probe" not in value:
        raise ForeignManifest("it is not a manifest of kbprobe", where)
    try:
        return validated(value, Manifest, "it is damaged")
    except UsageError as error:
        raise ManifestError(str(error), where) from None
