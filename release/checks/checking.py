"""The check before a release: everything that a careful reader would check in a built probe.

Files are hashed and read in threads; rows are checked a column at a time, by index.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kbprobe.errors import BUILT, path_argument
from kbprobe.files import file_sha256
from kbprobe.format.manifest import MANIFEST, ManifestError, read_manifest
from release.checks.findings import CheckReport, Finding, failure, once

WORKERS = 2


def check(folder: str | Path) -> CheckReport:
    """Check a built probe: files, rows, splits, audit, card and licence against the manifest.

    Returns:
        A finding for everything that was checked: what was found, where, and what to do about it.
            ``report.passed`` says whether nothing failed.

    Raises:
        UsageError: the folder holds no probe, or its manifest is not one of kbprobe.
    """
    path = path_argument("check(folder=...)", folder, BUILT)
    return CheckReport(tuple(_findings(path)), path)


def _findings(folder: Path) -> Iterator[Finding]:
    from release.checks import cards, files, rows

    try:
        manifest = read_manifest(folder)
    except ManifestError as error:
        yield failure("manifest", error.problem, MANIFEST)
        return
    yield Finding("manifest", "ok", f"{manifest.probe}, schema {manifest.schema_version}")
    there = [entry for entry in manifest.files if (folder / entry.path).is_file()]
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        digests = {entry.path: pool.submit(file_sha256, folder / entry.path) for entry in there}
        schemas = list(files.schema_findings(folder, manifest))
        readable = not any(finding.verdict == "failed" for finding in schemas)
        complete = len(there) == len(manifest.files)
        found = once(rows.row_findings(folder, manifest, pool)) if readable and complete else []
        hashed = {path: job.result() for path, job in digests.items()}
    yield from files.file_findings(folder, manifest, hashed)
    yield from files.extra_findings(folder, manifest)
    yield from files.croissant_findings(folder, manifest)
    yield from schemas
    if not found:
        yield failure("rows", "not checked: files are missing or of another schema")
    yield from found
    yield from cards.audit_findings(manifest)
    yield from cards.card_findings(folder, manifest)
    yield from cards.record_findings(folder, manifest)
    yield from cards.baseline_findings(folder, manifest)
