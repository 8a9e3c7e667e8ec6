"""Files of a built probe: all there, as recorded, of one schema, and nothing beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kbprobe.format.canary import COLUMN
from kbprobe.format.dataset import CARD
from kbprobe.format.items import arrow_schema, huggingface_metadata
from kbprobe.format.manifest import MANIFEST
from release.checks.findings import REBUILD, Finding, some

if TYPE_CHECKING:
    import pyarrow as pa

    from release.checks.manifest import Layout

CROISSANT = "croissant.json"
RECORD = "release.json"
"""The record of a publication, beside the data of a published probe."""

KNOWN = (
    CARD,
    MANIFEST,
    CROISSANT,
    RECORD,
    "LICENSE",
    "LICENSE.txt",
    "NOTICE",
    "CITATION.cff",
    ".gitattributes",
)
"""Files that may be in a probe's folder beside its data."""

ANNOTATIONS = "annotations.jsonl"
"""A further file of a gold standard: the votes behind it."""

DATA_SUFFIXES = (".parquet", ".jsonl", ".json", ".csv", ".arrow")


def file_findings(folder: Path, layout: Layout, digests: Mapping[str, str]) -> Iterator[Finding]:
    """Compare the data files with the manifest.

    Args:
        folder: the probe's.
        layout: its manifest.
        digests: of each file that is there.
    """
    missing = [entry.path for entry in layout.files if entry.path not in digests]
    if missing:
        yield Finding("files", "failed", "files are missing", some(missing), REBUILD)
    else:
        yield Finding("files", "ok", f"all {len(layout.files)} data files are there")
    changed = [
        entry.path
        for entry in layout.files
        if entry.path in digests and digests[entry.path] != entry.sha256
    ]
    if changed:
        what = f"the content is not that of {MANIFEST}"
        yield Finding("checksums", "failed", what, some(changed), REBUILD)
    else:
        size = sum((folder / path).stat().st_size for path in digests)
        yield Finding("checksums", "ok", f"{size:,} bytes as recorded (SHA-256)")


def extra_findings(folder: Path, layout: Layout) -> Iterator[Finding]:
    """Find files that are neither data of the manifest nor known ones beside it."""
    recorded = {entry.path for entry in layout.files}
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() or path.is_symlink()]
    names = [path.relative_to(folder).as_posix() for path in found]
    known = {*KNOWN, *([ANNOTATIONS] if layout.annotation else [])}
    extra = [name for name in names if name not in recorded and name not in known]
    data = [name for name in extra if name.endswith(DATA_SUFFIXES)]
    if data:
        what = f"data that is not in {MANIFEST}"
        yield Finding("other files", "failed", what, some(data), "Move it elsewhere.")
    rest = [name for name in extra if name not in data]
    if rest:
        what = "files that build-probe did not write; they are not published"
        yield Finding("other files", "warning", what, some(rest), "Move them elsewhere.")
    if not extra:
        yield Finding("other files", "ok", "none")


def croissant_findings(folder: Path, layout: Layout) -> Iterator[Finding]:
    """Compare ``croissant.json``, where there is one, with the manifest."""
    path = folder / CROISSANT
    if not path.is_file():
        return
    try:
        distribution = json.loads(path.read_text(encoding="utf-8"))["distribution"]
        described = {one["@id"]: one["sha256"] for one in distribution}
    except (ValueError, KeyError, TypeError) as error:
        described, problem = None, f"it cannot be read: {error!r}"
    else:
        problem = "files and checksums are not those of the manifest"
    if described == {entry.path: entry.sha256 for entry in layout.files}:
        yield Finding("croissant", "ok", "files and checksums are those of the manifest")
    else:
        remedy = "Remove it: publishing writes it anew."
        yield Finding("croissant", "failed", problem, CROISSANT, remedy)


def schema_of(layout: Layout) -> pa.Schema:
    """Return the schema of the data: the item's, with a canary column if the manifest says so."""
    import pyarrow as pa

    schema = arrow_schema()
    return schema.append(pa.field(COLUMN, pa.string())) if layout.canary_column else schema


def schema_findings(folder: Path, layout: Layout) -> Iterator[Finding]:
    """Compare the Parquet files' types, Features and rows with the item schema and the manifest."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    wrong, rows = [], []
    for entry in layout.files:
        path = folder / entry.path
        if not path.is_file() or path.suffix != ".parquet":
            continue
        try:
            with pq.ParquetFile(path) as file:
                held, schema = file.metadata.num_rows, file.schema_arrow
        except (pa.ArrowException, OSError) as error:
            wrong.append(f"{entry.path} cannot be read ({error})")
            continue
        if held != entry.rows:
            rows.append(f"{entry.path} ({held:,} rows, {entry.rows:,} recorded)")
        if problem := _difference(schema, schema_of(layout)):
            wrong.append(f"{entry.path} ({problem})")
    if wrong:
        what = "the data does not have the item schema"
        yield Finding("schema", "failed", what, some(wrong), REBUILD)
    else:
        yield Finding("schema", "ok", "types and Hugging Face features are those of the item")
    if rows:
        what = f"the number of rows is not that of {MANIFEST}"
        yield Finding("row numbers", "failed", what, some(rows), REBUILD)


def _difference(schema: pa.Schema, expected: pa.Schema) -> str:
    """Say how a schema differs from the item's; empty if it does not."""
    if schema.names != expected.names:
        odd = sorted(set(schema.names) ^ set(expected.names)) or ["their order"]
        return f"columns: {some(odd)}"
    for field, other in zip(schema, expected, strict=True):
        if field.type != other.type:
            return f"{field.name} is {field.type}, not {other.type}"
    stored = (schema.metadata or {}).get(b"huggingface")
    if stored is None:
        return "no Hugging Face features"
    try:
        features = json.loads(stored)["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return "Hugging Face features that cannot be read"
    declared = json.loads(huggingface_metadata())["info"]["features"]
    if COLUMN in expected.names:
        declared[COLUMN] = {"dtype": "string", "_type": "Value"}
    return "" if features == declared else "other Hugging Face features"
