"""Checks of a built probe's files: present, as recorded, with one schema, and no others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from kbprobe.errors import UsageError
from kbprobe.files import regular_path
from kbprobe.format.card import COLUMN
from kbprobe.format.dataset import ANNOTATIONS, BASELINES, CARD, DATA
from kbprobe.format.items import arrow_schema
from kbprobe.format.manifest import MANIFEST
from kbprobe.format.parquet import VIEWER_BYTES
from kbprobe.parsing import read_record
from release.checks.findings import REBUILD, Finding, failure, judged, some
from release.exports.flat import flat_name

if TYPE_CHECKING:
    import pyarrow as pa

    from kbprobe.format.manifest import Manifest

GIT = "git+https"
"""The format of a repository in Croissant."""

CROISSANT = "croissant.json"
RECORD = "release.json"
"""The record of a publication, next to the data of a published probe."""

REGISTRATION = "eval.yaml"
"""What makes a published probe a benchmark of the Hub."""

KNOWN = (
    CARD, MANIFEST, BASELINES, CROISSANT, RECORD, REGISTRATION, "LICENSE", "LICENSE.txt", "NOTICE",
    "CITATION.cff", ".gitattributes",
)  # fmt: skip
"""Files that may be in a probe's folder besides its data."""

DATA_SUFFIXES = (".parquet", ".jsonl", ".arrow", ".csv")


def file_findings(
    folder: Path, manifest: Manifest, digests: Mapping[str, str]
) -> Iterator[Finding]:
    """Compare the data files with the manifest, given the digest of each existing file."""
    recorded = {entry.path: entry.sha256 for entry in manifest.files}
    missing = [path for path in recorded if path not in digests]
    there = f"all {len(manifest.files)} data files are there"
    yield from judged("files", "files are missing", missing, there)
    changed = [path for path, sha256 in digests.items() if sha256 != recorded[path]]
    size = sum((folder / path).stat().st_size for path in digests)
    same = f"{size:,} bytes as recorded (SHA-256)"
    yield from judged("checksums", f"the content is not that of {MANIFEST}", changed, same)


def extra_findings(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """Find files that are neither data in the manifest nor other known files."""
    known = {*KNOWN, *(entry.path for entry in manifest.files)}
    known |= {ANNOTATIONS} if manifest.annotation else set()
    flat = _flat_folders(manifest)
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() or path.is_symlink()]
    names = [path.relative_to(folder).as_posix() for path in found]
    extra = [name for name in names if name not in known and not name.startswith(flat)]
    data = [name for name in extra if name.endswith((*DATA_SUFFIXES, ".json"))]
    what = f"data that is not in {MANIFEST}"
    yield from judged("other files", what, data, "" if extra else "none", "Move it elsewhere.")
    if rest := [name for name in extra if name not in data]:
        what = "files that build-probe did not write; they are not published"
        yield Finding("other files", "warning", what, some(rest), "Move them elsewhere.")


def _flat_folders(manifest: Manifest) -> tuple[str, ...]:
    """Return the folders of flat rows in a published probe, which publishing rewrites."""
    return tuple(f"{flat_name(config)}/{DATA}/" for config in manifest.configs)


class _Resource(BaseModel):
    """A data file, a set of files or a repository, as Croissant describes it."""

    id: str = Field(alias="@id")
    kind: str = Field("", alias="@type")
    format: str = Field("", alias="encodingFormat")
    sha256: str = ""


class _Croissant(BaseModel):
    """The files of a Croissant description."""

    distribution: list[_Resource]


def croissant_findings(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """Compare ``croissant.json``, if it exists, with the manifest."""
    path = folder / CROISSANT
    if not path.is_file():
        return
    problem = "files and checksums are not those of the manifest"
    try:
        held = read_record(path, _Croissant)
        described = {
            entry.id: entry.sha256
            for entry in held.distribution
            if entry.kind == "cr:FileObject" and entry.format != GIT
            if not entry.id.startswith(_flat_folders(manifest))
        }
    except UsageError as error:
        described, problem = {}, f"it cannot be read: {error}"
    if described == {entry.path: entry.sha256 for entry in manifest.files}:
        yield Finding("croissant", "ok", "files and checksums are those of the manifest")
    else:
        yield failure("croissant", problem, CROISSANT, "Remove it: publishing writes it anew.")


def item_schema(version: str, canary: bool) -> pa.Schema:
    """Return the schema of data files, Features included: the item's, and the canary's column."""
    import pyarrow as pa

    schema = arrow_schema(version)
    if not canary:
        return schema
    metadata = json.loads(schema.metadata[b"huggingface"])
    metadata["info"]["features"][COLUMN] = {"dtype": "string", "_type": "Value"}
    schema = schema.append(pa.field(COLUMN, pa.string()))
    return schema.with_metadata({"huggingface": json.dumps(metadata, separators=(",", ":"))})


def schema_findings(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """Compare the Parquet files' types, Features and rows with the item schema and the manifest."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    wrong, rows, large = [], [], []
    expected = item_schema(manifest.schema_version, manifest.canary_column)
    for entry in manifest.files:
        path = folder / entry.path
        if not path.is_file() or path.suffix != ".parquet":
            continue
        try:
            with pq.ParquetFile(regular_path(path)) as file:
                held, schema = file.metadata.num_rows, file.schema_arrow
                groups = map(file.metadata.row_group, range(file.num_row_groups))
                most = max((group.total_byte_size for group in groups), default=0)
        except (pa.ArrowException, OSError, ValueError) as error:
            wrong.append(f"{entry.path} cannot be read ({error})")
            continue
        if held != entry.rows:
            rows.append(f"{entry.path} ({held:,} rows, {entry.rows:,} recorded)")
        if most > VIEWER_BYTES:
            large.append(f"{entry.path} ({most:,} bytes)")
        if problem := _difference(schema, expected):
            wrong.append(f"{entry.path} ({problem})")
    same = "types and Hugging Face features are those of the item"
    yield from judged("schema", "the data does not have the item schema", wrong, same)
    if large:
        what = f"row groups of more than {VIEWER_BYTES:,} bytes: the Hub may not show their rows"
        yield Finding("row groups", "warning", what, some(large), REBUILD)
    yield from judged("row numbers", f"the number of rows is not that of {MANIFEST}", rows)


def _difference(schema: pa.Schema, expected: pa.Schema) -> str:
    """Return how a schema differs from the one expected; empty if it does not."""
    if schema.names != expected.names:
        odd = sorted(set(schema.names) ^ set(expected.names)) or ["their order"]
        return f"columns: {some(odd)}"
    for field, other in zip(schema, expected, strict=True):
        if field.type != other.type:
            return f"{field.name} is {field.type}, not {other.type}"
    declared = expected.metadata[b"huggingface"]
    if (stored := (schema.metadata or {}).get(b"huggingface")) is None:
        return "no Hugging Face features"
    try:
        same = json.loads(stored)["info"]["features"] == json.loads(declared)["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return "Hugging Face features that cannot be read"
    return "" if same else "other Hugging Face features"
