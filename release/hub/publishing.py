"""Publishing of a built probe on the Hub, in one commit that preserves others' changes.

The check comes first. Then the repository is read at one commit, the changes are planned, and they
are committed on top of exactly that commit: if somebody else commits first, the repository is read
and the changes are planned again. So publishing the same probe twice changes nothing the second
time, and an interrupted publication can be continued.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from kbprobe.errors import BUILT, KbprobeError, UsageError, path_argument
from kbprobe.files import scratch_folder
from kbprobe.format.manifest import MANIFEST, read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.options import Options
from release.checks.checking import check
from release.checks.findings import CheckReport, some
from release.hub.client import (
    AGAIN,
    ATTEMPTS,
    LONGEST_WAIT,
    MAIN,
    PAUSE,
    Hub,
    HubError,
    Remote,
    RemoteFile,
)
from release.hub.names import add_canary_column, check_name
from release.hub.package import LocalFile, Package, pack
from release.hub.plan import PublicationPlan, make_plan, state_of

Progress = Callable[[str], None]

DRY_ATTEMPTS = 2
"""Maximum attempts of a dry run to reach the Hub, which it does not require."""

PULL_REQUESTS = 20
"""Number of open pull requests searched, newest first, for one with the same content."""

_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


@dataclass(frozen=True)
class Publication:
    """The result of publishing.

    Attributes:
        url: the page of the dataset, or of the pull request if one was made.
        commit: the commit with the probe; empty after a dry run for a nonexistent repository.
        changed: whether a commit was made (or would be, for a dry run).
        tag: the tag of the commit; empty if there is none.
        unread: why the Hub could not be read; a dry run then compares with an empty repository.
    """

    repo_id: str
    url: str
    commit: str
    changed: bool
    dry_run: bool
    tag: str
    plan: PublicationPlan
    report: CheckReport
    unread: str = ""

    @property
    def forced(self) -> tuple[str, ...]:
        """Names of the failed checks that ``force`` ignored."""
        return tuple(one.name for one in self.report.failed)

    def as_dict(self) -> dict[str, Any]:
        """Return it in a form that JSON can represent."""
        names = ("repo_id", "url", "commit", "changed", "dry_run", "tag", "unread")
        return {
            **{name: getattr(self, name) for name in names},
            "forced": list(self.forced),
            "files": [
                {"path": one.path, "state": one.state, "bytes": one.size}
                for one in self.plan.changes
            ],
            "kept": list(self.plan.card.kept),
            "card_diff": self.plan.card_diff,
        }


class PublishOptions(Options):
    """How to publish; see :func:`publish`."""

    private: bool = False
    revision: str = MAIN
    tag: str = ""
    create_pr: bool = False
    config_name: str = DEFAULT_CONFIG
    message: str = ""
    force: bool = False
    dry_run: bool = False
    replace: bool = False
    canary_column: bool = False

    def check(self) -> None:
        """Refuse mutually exclusive options, and invalid names."""
        if self.config_name != DEFAULT_CONFIG:
            check_name(self.config_name)
        if self.tag and self.create_pr:
            raise UsageError(
                "--tag and --create-pr exclude each other: a pull request is not a release before "
                "it is merged. Tag it then, by publishing once more."
            )
        if self.tag and (not _TAG.fullmatch(self.tag) or ".." in self.tag):
            raise UsageError(f"--tag {self.tag!r} is not a valid tag; use one like v1.0")
        if self.create_pr and self.revision != MAIN:
            raise UsageError("--create-pr opens pull requests against main: leave --revision out")


def publish(
    folder: str | Path,
    repo_id: str,
    *,
    endpoint: str | None = None,
    token: str | None = None,
    progress: Progress = lambda _: None,
    **options: Any,
) -> Publication:
    """Publish a built probe on the Hub.

    Args:
        folder: the probe, as ``build-probe`` wrote it.
        repo_id: ``USER/NAME``; the repository is created if there is none.
        endpoint: the endpoint of the Hub [HF_ENDPOINT].
        token: a token with write access [HF_TOKEN, or that of ``hf auth login``].
        progress: called with a line about each step.
        **options: ``private`` (for a new repository), ``revision`` (a branch), ``tag``,
            ``create_pr``, ``config_name`` (in a repository of several probes), ``message`` (of
            the commit), ``force`` (although the check failed), ``dry_run``, ``replace``
            (files that others put there), ``canary_column``.

    Returns:
        The commit and what it changed; no changes if the Hub already had all of it.

    Raises:
        UsageError: the options, the folder, or the card on the Hub do not allow it.
        KbprobeError: the check failed; or the Hub refused
            (:class:`release.hub.client.HubError`).
    """
    chosen = PublishOptions.parse(options, "publish")
    chosen.check()
    folder = path_argument("publish(folder=...)", folder, BUILT)
    read_manifest(folder)  # report problems with the folder before asking for a token
    hub = Hub(repo_id, endpoint, token)
    if not chosen.dry_run:
        hub.require_token()
    with _with_canary(folder) if chosen.canary_column else nullcontext(folder) as source:
        progress("Checking the probe")
        report = check(source)
        _require_sound(report, forced=chosen.dry_run or chosen.force)
        with scratch_folder() as scratch:
            package = pack(
                source,
                report,
                scratch,
                repo_id=repo_id,
                config=chosen.config_name,
                version=chosen.tag,
            )
            return _Publishing(hub, package, chosen, report, progress).run()


def _require_sound(report: CheckReport, forced: bool) -> None:
    """Refuse a probe whose check failed; even if forced, if files differ from the record."""
    problems = [f"{one.name}: {one.what}" for one in report.failed]
    broken = [one for one in report.failed if one.name in ("manifest", "files", "checksums")]
    if broken:
        what = "; ".join(f"{one.name}: {one.what} ({one.where})" for one in broken)
        raise KbprobeError(
            f"{report.folder} does not match its {MANIFEST}, and is not published, not even with "
            f"--force: {what}. Build the probe again."
        )
    if problems and not forced:
        raise KbprobeError(
            f"the check of {report.folder} failed ({some(problems)}). `release-probe check "
            f"{report.folder}` says what to do about each. --force publishes all the same, and the "
            "card then says so."
        )


@contextmanager
def _with_canary(folder: Path) -> Iterator[Path]:
    """Make a temporary copy of a probe whose rows have the canary."""
    with scratch_folder() as parent:
        copy = parent / folder.resolve().name
        add_canary_column(folder, copy)
        yield copy


@dataclass(frozen=True)
class _Publishing:
    """One publication, over as many attempts as it takes."""

    hub: Hub
    package: Package
    options: PublishOptions
    report: CheckReport
    progress: Progress

    def run(self) -> Publication:
        pause = PAUSE
        for attempt in count(1):
            self.progress(f"Reading {self.hub.repo_id}")
            try:
                remote = self._read()
            except HubError as error:
                if not self.options.dry_run or not error.unreachable:
                    raise
                plan = self._plan(Remote(self.hub))
                unread = str(error).removesuffix(AGAIN).rstrip()
                return replace(self._result(plan, "", True), unread=unread)
            if not remote.commit and not self.options.dry_run:
                remote = self._create()
            plan = self._plan(remote)
            if not remote.commit or self.options.dry_run:
                return self._result(plan, remote.commit, not plan.empty)
            done = self._commit(remote, plan)
            if isinstance(done, Publication):
                return done
            problem: HubError = done
            if (problem.wait or 0) > LONGEST_WAIT:
                raise problem
            if attempt == ATTEMPTS:
                break
            self.progress(f"{problem} Reading again")
            time.sleep(problem.wait or (0 if problem.conflict else pause))
            pause *= 2
        nothing = "; nothing was committed" if problem.conflict else ""
        raise HubError(f"{problem} It failed {ATTEMPTS} times in a row{nothing}.", problem.status)

    def _read(self) -> Remote:
        """Read the branch, or the one that a new branch will start from."""
        attempts = DRY_ATTEMPTS if self.options.dry_run else ATTEMPTS
        try:
            return self.hub.read(self.options.revision, attempts)
        except HubError as error:
            if error.code == "RepoNotFound":
                return Remote(self.hub)
            if error.code != "RevisionNotFound" or self.options.revision == MAIN:
                raise
        remote = self.hub.read(MAIN)
        if not self.options.dry_run:
            self.hub.create_branch(self.options.revision, remote.commit)
        return remote

    def _create(self) -> Remote:
        """Create the repository, and read it: somebody else may have been faster."""
        self.progress(f"Creating {self.hub.repo_id}")
        self.hub.create(self.options.private)
        self.hub.read(MAIN)
        return self._read()

    def _plan(self, remote: Remote) -> PublicationPlan:
        if remote.commit and self.options.private and not remote.private:
            raise UsageError(
                f"{self.hub.repo_id} is public, but --private was given. Make it private in its "
                f"settings ({self.hub.url}/settings), or leave --private out."
            )
        plan = make_plan(self.package, remote, self.options.replace)
        for file in plan.upload:
            if isinstance(file.source, bytes) and self.hub.is_secret(file.source):
                raise KbprobeError(
                    f"{file.path} holds a token of the Hub, and is not published. Remove it, and "
                    "revoke it if anybody else has seen it."
                )
        if self.options.tag and remote.commit:
            self._check_tag()
        return plan

    def _check_tag(self) -> None:
        """Refuse to publish files that differ from an existing tag's, since tags are not moved."""
        commit = self.hub.tags().get(self.options.tag)
        if commit is None:
            return
        if differing := _differing(self.package.files, self.hub.files(commit)):
            raise UsageError(
                f"the tag {self.options.tag} of {self.hub.repo_id} is another version (commit "
                f"{commit[:8]}; {differing[0]} differs), and tags are not moved. Choose another "
                "--tag."
            )

    def _commit(self, remote: Remote, plan: PublicationPlan) -> Publication | HubError:
        """Make the commit and the tag; return an error if reading and planning again may help."""
        if plan.empty:
            return self._result(plan, remote.commit, False)
        options = self.options
        if options.create_pr and (found := self._same_pull_request(plan)):
            return found
        size = sum(one.size for one in plan.upload)
        self.progress(f"Publishing {len(plan.upload)} files ({size:,} bytes)")
        uploaded = self.hub.upload(plan.upload, options.revision, options.create_pr)
        try:
            commit, page = self.hub.commit(
                uploaded,
                plan.delete,
                parent=remote.commit,
                revision=options.revision,
                message=self._message(),
                create_pr=options.create_pr,
            )
        except HubError as error:
            if not error.conflict and not error.transient:
                raise
            # It may have succeeded although the response was lost: reading again shows that.
            return error
        return self._result(plan, commit, True, page)

    def _same_pull_request(self, plan: PublicationPlan) -> Publication | None:
        """Find an open pull request that already has exactly this content."""
        for revision, page in self.hub.open_pull_requests()[:PULL_REQUESTS]:
            held = self.hub.files(revision)
            if not _differing(plan.upload, held) and not held.keys() & plan.delete:
                return self._result(plan, self.hub.read(revision).commit, False, page)
        return None

    def _message(self) -> str:
        version = f" {self.options.tag}" if self.options.tag else ""
        return (
            self.options.message or f"Publish {self.package.manifest.probe}{version} with kbprobe"
        )

    def _result(
        self, plan: PublicationPlan, commit: str, changed: bool, page: str = ""
    ) -> Publication:
        tag, dry_run = self.options.tag, self.options.dry_run
        if tag and not dry_run and tag not in self.hub.tags():
            self.progress(f"Tagging {tag}")
            self.hub.tag(tag, commit, self._message())
        url = page or self.hub.url
        return Publication(self.hub.repo_id, url, commit, changed, dry_run, tag, plan, self.report)


def _differing(files: Sequence[LocalFile], held: Mapping[str, RemoteFile]) -> list[str]:
    """Return the paths of files that differ from those on the Hub."""
    return [one.path for one in files if state_of(one, held.get(one.path)) != "same"]
