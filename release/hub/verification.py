"""Verifying a published dataset against the manifests that were published with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kbprobe.errors import BUILT, KbprobeError, UsageError, optional_path
from kbprobe.format.dataset import CARD
from kbprobe.format.manifest import (
    MANIFEST,
    ForeignManifest,
    Manifest,
    ManifestError,
    parse_manifest,
    read_manifest,
)
from kbprobe.parsing import MAX_JSON_BYTES
from kbprobe.reading import read_bytes
from release.cards import by_config, data_paths
from release.checks.files import DATA_SUFFIXES, RECORD, REGISTRATION
from release.checks.findings import CheckFindings, Finding, failure, judged, some
from release.hub.client import MAIN, Hub, Remote
from release.hub.names import prefix_of, published_name
from release.hub.package import ReleaseRecord, read_record
from release.hub.plan import manifest_folders
from release.hub.registration import unread_tasks
from release.hub.repo_card import hub_front

AGAIN = "Publish it again (--replace replaces it), or ask the person who changed it."
LARGEST_TEXT = 64 << 20
"""Maximum size of a manifest or a card, in bytes."""


@dataclass(frozen=True)
class Verification(CheckFindings):
    """The findings in a published dataset, at one commit."""

    repo_id: str
    commit: str


def verify(
    repo_id: str,
    *,
    revision: str = MAIN,
    download: bool = False,
    against: str | Path | None = None,
    endpoint: str | None = None,
    token: str | None = None,
) -> Verification:
    """Verify a published dataset against its manifests.

    The Hub keeps large files under the SHA-256 of their content, which it checks when they
    arrive. These are therefore compared without fetching them; other files are fetched and hashed.

    Args:
        repo_id: ``USER/NAME``.
        revision: a branch, a tag or a commit.
        download: fetch and hash large files too.
        against: folder of a built probe, whose manifest must be among those published.
        endpoint: the endpoint of the Hub [HF_ENDPOINT].
        token: a token for private datasets [HF_TOKEN, or that of ``hf auth login``].

    Raises:
        UsageError: ``against`` holds no probe.
        KbprobeError: the dataset cannot be read, or holds no manifest of kbprobe.
    """
    local = None
    if (folder := optional_path("verify(against=...)", against, BUILT)) is not None:
        read_manifest(folder)
        local = read_bytes(folder / MANIFEST, MAX_JSON_BYTES)
    remote = Hub(repo_id, endpoint, token).read(revision)
    findings = tuple(_Verifier(remote, download).run(local))
    return Verification(findings, repo_id, remote.commit)


@dataclass(frozen=True)
class _Verifier:
    """Verifies one commit of a dataset."""

    remote: Remote
    download: bool

    def run(self, local: bytes | None) -> Iterator[Finding]:
        manifests = {
            config: self._text(prefix_of(config) + MANIFEST)
            for config in manifest_folders(sorted(self.remote.files))
        }
        if not manifests:
            raise KbprobeError(
                f"{self.remote.hub.repo_id} at {self.remote.commit[:8]} holds no {MANIFEST} of "
                "kbprobe: there is nothing to verify it against. Check the name and --revision."
            )
        found = {}
        for config, content in manifests.items():
            try:
                found[config] = parse_manifest(content)
            except ForeignManifest:
                continue
            except ManifestError as error:
                yield failure("manifest", error.problem, prefix_of(config) + MANIFEST, AGAIN)
        for config, manifest in found.items():
            what = f"{manifest.probe} as {config}, schema {manifest.schema_version}"
            yield Finding("manifest", "ok", what)
            yield from self._data(config, manifest)
            yield from self._record(config, manifest)
        recorded = {prefix_of(name) + one.path for name, own in found.items() for one in own.files}
        recorded |= {path for name in found for path in self._recorded(name).files}
        data = [path for path in sorted(self.remote.files) if path.endswith(DATA_SUFFIXES)]
        if extra := [path for path in data if path not in recorded]:
            yield Finding("other files", "warning", "data that is in no manifest", some(extra))
        if found:
            yield from self._card(found)
            yield from self._registration()
        if local is not None:
            yield _compared(local, manifests)

    def _text(self, path: str) -> bytes:
        size = self.remote.files[path].size
        if size > LARGEST_TEXT:
            raise KbprobeError(
                f"{path} of {self.remote.hub.repo_id} has {size:,} bytes: kbprobe writes no such "
                "file"
            )
        return self.remote.content(path) or b""

    def _data(self, config: str, manifest: Manifest) -> Iterator[Finding]:
        """Compare the data files with the manifest."""
        missing, changed, known, fetched = [], [], 0, 0
        for entry in manifest.files:
            path = prefix_of(config) + entry.path
            there = self.remote.files.get(path)
            if there is None:
                missing.append(path)
            elif there.size != entry.bytes:
                changed.append(f"{path} ({there.size:,} bytes, {entry.bytes:,} recorded)")
            elif self._sha256(path) != entry.sha256:
                changed.append(path)
            elif there.sha256 and not self.download:
                known += entry.bytes
            else:
                fetched += entry.bytes
        yield from judged("files", "files are missing", missing, remedy=AGAIN)
        what = f"the content is not that of {prefix_of(config)}{MANIFEST}"
        same = (
            f"all {len(manifest.files)} data files match the manifest ({known:,} bytes by the "
            f"Hub's own checksums, {fetched:,} bytes fetched)"
        )
        yield from judged("checksums", what, changed, "" if missing else same, AGAIN)

    def _sha256(self, path: str) -> str:
        recorded = "" if self.download else self.remote.files[path].sha256
        return recorded or self.remote.sha256(path)

    def _recorded(self, config: str) -> ReleaseRecord:
        """Return the record of the publication; an empty one if it is missing or damaged."""
        path = prefix_of(config) + RECORD
        content = self._text(path) if path in self.remote.files else None
        return read_record(content) or ReleaseRecord()

    def _record(self, config: str, manifest: Manifest) -> Iterator[Finding]:
        """Compare the files other than the probe's own data with the record of the publication."""
        path = prefix_of(config) + RECORD
        own = {prefix_of(config) + entry.path for entry in manifest.files}
        if path not in self.remote.files:
            yield Finding("record", "warning", f"no {path}: release-probe did not publish it")
        elif (record := read_record(self._text(path))) is None:
            yield failure("record", "it cannot be read", path, AGAIN)
        else:
            changed = [
                name
                for name, sha256 in record.files.items()
                if name not in self.remote.files
                or (name not in own and self._sha256(name) != sha256)
            ]
            same = f"{len(record.files)} files match {path}"
            yield from judged("record", "changed since it was published", changed, same, AGAIN)

    def _card(self, found: Mapping[str, Manifest]) -> Iterator[Finding]:
        """Check that ``load_dataset`` loads the files in the manifests."""
        if CARD not in self.remote.files:
            yield failure("card", "there is none", CARD, AGAIN)
            return
        try:
            front = hub_front(self._text(CARD).decode("utf-8", errors="replace"))
        except UsageError as error:
            yield failure("card", str(error), CARD, "")
            return
        configs = by_config(front.get("configs"))
        expected = {
            published_name(name, config): {
                (entry.split, prefix_of(config) + entry.path) for entry in entries
            }
            for config, manifest in found.items()
            for name, entries in manifest.configs.items()
        }
        wrong = [name for name in expected if data_paths(configs.get(name, {})) != expected[name]]
        what = "its configs do not list the files of the manifest"
        same = "load_dataset finds the files of every manifest"
        yield from judged("card", what, wrong, same, AGAIN)

    def _registration(self) -> Iterator[Finding]:
        """Check that each task of ``eval.yaml`` names a config and a split of the card."""
        if REGISTRATION not in self.remote.files or CARD not in self.remote.files:
            return
        try:
            front = hub_front(self._text(CARD).decode("utf-8", errors="replace"))
            unread = unread_tasks(self._text(REGISTRATION), front.get("configs"))
        except UsageError as error:
            yield failure("tasks", str(error), REGISTRATION, AGAIN)
            return
        what = "the card does not list the config and split that a task reads"
        same = f"each task of {REGISTRATION} reads a config of the card"
        yield from judged("tasks", what, unread, same, AGAIN)


def _compared(local: bytes, manifests: Mapping[str, bytes]) -> Finding:
    """Compare the manifest of a local probe with those published."""
    for config, content in manifests.items():
        if content == local:
            return Finding("against", "ok", f"its manifest is that of {config}")
    what = "no published manifest is that of the local probe"
    return failure("against", what, remedy="It is another build: compare their requests.")
