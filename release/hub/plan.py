"""What publishing would change: the package compared with what the Hub holds."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kbprobe.errors import UsageError
from kbprobe.format.dataset import CARD
from kbprobe.format.licences import terms_of
from kbprobe.format.manifest import MANIFEST, Manifest, ManifestError, parse_manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from release.cards import LICENCE, LISTED, listed
from release.checks.files import DATA_SUFFIXES, RECORD, REGISTRATION
from release.checks.findings import some
from release.hub.client import Remote, RemoteFile
from release.hub.names import prefix_of, published_name
from release.hub.package import LocalFile, Package, ReleaseRecord, read_record
from release.hub.registration import merge_registration
from release.hub.repo_card import MergedCard, as_lists, hub_front, merge_card

State = Literal["new", "changed", "same", "deleted"]


@dataclass(frozen=True)
class Change:
    """A change of a file on the Hub; ``size`` is in bytes, for a deleted file its former size."""

    path: str
    state: State
    size: int


@dataclass(frozen=True)
class PublicationPlan:
    """Everything that publishing would change.

    Attributes:
        changes: each file of the package, the card, and deleted files of an earlier release.
        upload: the files to send, including the card.
        card: the card; ``kept`` names the changed entries that are kept.
        card_diff: the difference between the card on the Hub and the new one, as by ``diff -u``.
    """

    changes: tuple[Change, ...]
    upload: tuple[LocalFile, ...]
    delete: tuple[str, ...]
    card: MergedCard
    card_diff: str

    @property
    def empty(self) -> bool:
        """Whether the Hub already has all of it."""
        return not self.upload and not self.delete


@dataclass(frozen=True)
class Neighbour:
    """Another probe in the same repository: its config there, its manifest, its front matter."""

    config: str
    manifest: Manifest
    front: Mapping[str, Any]


def make_plan(package: Package, remote: Remote, replace: bool = False) -> PublicationPlan:
    """Compare a package with a repository at one commit.

    Raises:
        UsageError: the card cannot be merged; a file to be replaced is not the one that was
            published, and ``replace`` is not given; names or licences clash with those of another
            probe in the repository.
    """
    held, prefix = remote.files, prefix_of(package.config)
    before = _manifest_at(prefix, remote)
    if prefix and before is None and any(path.startswith(prefix) for path in held):
        raise UsageError(
            f"{prefix} on the Hub holds files, but no {MANIFEST} of kbprobe, and is not changed. "
            "Choose another --config-name."
        )
    neighbours = list(_neighbours(package.config, remote))
    _check_names(package, neighbours)
    record = _record_at(prefix, remote)
    hub = remote.content(CARD)
    hub_text = None if hub is None else hub.decode("utf-8", errors="replace")
    front, base = _shared_front(package, hub_text, record.front, neighbours)
    card = merge_card(package.config, front, package.text, hub_text, base)
    files = [LocalFile.of(CARD, card.text.encode()), *package.files]
    registered = merge_registration(
        package.registration, remote.content(REGISTRATION), record.registration
    )
    if registered is not None:
        files.insert(1, LocalFile.of(REGISTRATION, registered))
    changes = [Change(one.path, state_of(one, held.get(one.path)), one.size) for one in files]
    if not replace and (foreign := _foreign(changes, prefix, record, remote)):
        raise UsageError(
            f"the Hub holds other files than release-probe published there: {some(foreign)}. They "
            "are left alone. Publish to another repository, under another --config-name, or "
            "replace them with --replace."
        )
    upload = [one for one, change in zip(files, changes, strict=True) if change.state != "same"]
    outdated = _outdated(package, before, record, held, neighbours)
    if registered is None and REGISTRATION in held and record.registration:
        outdated.append(REGISTRATION)
    changes += [Change(path, "deleted", held[path].size) for path in outdated]
    sides = ((hub_text or "").splitlines(), card.text.splitlines())
    diff = difflib.unified_diff(*sides, "on the Hub", "to be published", lineterm="")
    return PublicationPlan(tuple(changes), tuple(upload), tuple(outdated), card, "\n".join(diff))


def manifest_folders(paths: Iterable[str]) -> Iterator[str]:
    """Return the config of each manifest in a repository: at its root, or in a folder of it."""
    for path in paths:
        folder, slash, name = path.rpartition("/")
        if name == MANIFEST and "/" not in folder:
            yield folder if slash else DEFAULT_CONFIG


def git_oid(content: bytes) -> str:
    """Return the name that git gives to a file's content."""
    head = f"blob {len(content)}\0".encode()
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()


def state_of(local: LocalFile, remote: RemoteFile | None) -> State:
    """Compare a file with the one on the Hub. Large files are not read for it."""
    if remote is None:
        return "new"
    if remote.sha256:
        same = remote.sha256 == local.sha256
    else:
        same = remote.size == local.size and remote.oid == git_oid(local.content())
    return "same" if same else "changed"


def _neighbours(config: str, remote: Remote) -> Iterator[Neighbour]:
    """Find the other probes of a repository."""
    for other in manifest_folders(remote.files):
        manifest = None if other == config else _manifest_at(prefix_of(other), remote)
        if manifest is not None:
            yield Neighbour(other, manifest, _record_at(prefix_of(other), remote).front)


def _check_names(package: Package, neighbours: Sequence[Neighbour]) -> None:
    """Refuse a probe with a config of the same name as another probe's in the repository."""
    own = {one["config_name"] for one in package.front["configs"]}
    for other in neighbours:
        names = {published_name(name, other.config) for name in other.manifest.configs}
        names |= {one["config_name"] for one in other.front.get("configs", ())}
        if both := sorted(own & names):
            raise UsageError(
                f"the repository holds {other.manifest.probe} as {other.config}, with a config "
                f"{both[0]!r}; this probe has one of the same name. Choose another --config-name."
            )


def _foreign(
    changes: Sequence[Change], prefix: str, record: ReleaseRecord, remote: Remote
) -> list[str]:
    """Return the files to be replaced that have changed since they were published."""
    return [
        one.path
        for one in changes
        if one.state == "changed"
        and one.path not in (CARD, REGISTRATION, prefix + RECORD)
        and (remote.files[one.path].sha256 or remote.sha256(one.path)) != record.files.get(one.path)
    ]


def _record_at(prefix: str, remote: Remote) -> ReleaseRecord:
    return read_record(remote.content(prefix + RECORD)) or ReleaseRecord()


def _manifest_at(prefix: str, remote: Remote) -> Manifest | None:
    try:
        return parse_manifest(remote.content(prefix + MANIFEST) or b"")
    except ManifestError:
        return None


def _outdated(
    package: Package,
    before: Manifest | None,
    record: ReleaseRecord,
    held: Mapping[str, RemoteFile],
    neighbours: Sequence[Neighbour],
) -> list[str]:
    """Return the data files of the earlier release that are no longer part of the probe.

    A file that differs from that release's record is not the one that was published, and is kept.
    """
    used = {one.path for one in package.files}
    used |= {
        prefix_of(one.config) + entry.path for one in neighbours for entry in one.manifest.files
    }
    earlier = before.files if before else ()
    recorded = {prefix_of(package.config) + entry.path: entry for entry in earlier}
    built = [
        path
        for path, entry in recorded.items()
        if path in held
        and path not in used
        and held[path].sha256 in ("", entry.sha256)
        and held[path].size == entry.bytes
    ]
    made = [
        path
        for path, sha256 in record.files.items()
        if path not in recorded
        and path not in used
        and path.endswith(DATA_SUFFIXES)
        and path in held
        and held[path].sha256 == sha256
    ]
    return built + made


def _shared_front(
    package: Package, hub: str | None, base: Mapping[str, Any], neighbours: Sequence[Neighbour]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Adapt the front matter of a probe to a repository that holds others too.

    Returns:
        The front matter to merge, and what it was when the probe was published last.
    """
    theirs = as_lists(hub_front(hub)) if hub else {}
    front, was = dict(package.front), dict(base)
    own = {one["config_name"] for one in (*front["configs"], *was.get("configs", ()))}
    has_default = any(
        one.get("default")
        for one in theirs.get("configs") or ()
        if one.get("config_name") not in own
    )
    for side in (front, was):
        if side.get("configs"):
            side["configs"] = [
                _with_default(one, not has_default and at == 0)
                for at, one in enumerate(side["configs"])
            ]
    if not neighbours:
        return front, was
    others = [one.front for one in neighbours]
    for key in LISTED[:-2]:
        # An entry shared with another probe of the repository must not be removed.
        shared = {value for one in others for value in listed(one.get(key))}
        if key in was:
            was[key] = [value for value in listed(was[key]) if value not in shared]
    for key in [key for key in front if key not in (*LISTED, *LICENCE)]:
        if key in theirs:  # the first probe's name is that of the whole repository
            was[key] = front[key]
    front = _with_licence(front, package, neighbours)
    for key in LICENCE:
        if key in theirs and theirs[key] in [one.get(key) for one in (was, *others)]:
            was[key] = theirs[key]
    return front, was


def _with_default(config: Mapping[str, Any], default: bool) -> dict[str, Any]:
    """Return a config with or without ``default: true``, after its name."""
    name, *rest = ((key, value) for key, value in config.items() if key != "default")
    return dict([name, *([("default", True)] if default else []), *rest])


def _with_licence(
    front: Mapping[str, Any], package: Package, neighbours: Sequence[Neighbour]
) -> dict[str, Any]:
    """Set a repository's licence to one that is compatible with all of its probes."""
    manifests = [package.manifest, *(one.manifest for one in neighbours)]
    terms = terms_of(" AND ".join(dict.fromkeys(one.knowledge_base.licence for one in manifests)))
    if terms.problem:
        names = ", ".join(one.config for one in neighbours)
        raise UsageError(
            f"{package.config} cannot share a repository with {names}: {terms.problem} Publish it "
            "in a repository of its own."
        )
    rest = {key: value for key, value in front.items() if key not in LICENCE}
    return {**rest, **terms.front_matter}
