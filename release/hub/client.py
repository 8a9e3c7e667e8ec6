"""A dataset's repository on the Hub, accessed through huggingface_hub.

huggingface_hub sends large files, commits and pages through listings, and retries those requests
itself. Reads that it attempts only once are retried here. Its errors become
:class:`release.hub.client.HubError`, without a reference to the original, which contains the
request's headers and so the token.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError
from kbprobe.files import file_sha256, scratch_folder
from kbprobe.http import TEMPORARY, Limits, ServerError, printable, retried, retry_after, within
from kbprobe.parsing import MAX_JSON_BYTES
from kbprobe.reading import read_bytes
from kbprobe.terminal import without_credentials

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, HfApi

    from release.hub.package import LocalFile

TOKENS = "https://huggingface.co/settings/tokens"
_TOKEN = re.compile(r"\bhf_(?:jwt|oauth)_[A-Za-z0-9._-]{16,}|\b(?:hf|api_org)_[A-Za-z0-9]{20,}")
_STORAGE = re.compile(r"\b(?:quota|storage|payment|upgrade|exceed)", re.IGNORECASE)
AGAIN = "Publish again: files that have arrived are not sent twice."

OFFLINE = "Offline"
"""The code of errors in huggingface_hub's offline mode."""

REMEDIES: Mapping[str | int, str] = {
    "storage": "the account's storage is full. Free some space, or get more.",
    "GatedRepo": "its files are gated. Ask for access on its page on the Hub.",
    "RevisionNotFound": "there is no such branch, tag or commit. Check --revision.",
    "RepoNotFound": "there is no such dataset, or it is private and this token cannot see it. "
    "Check the name, and whose token HF_TOKEN or hf auth login holds.",
    "anonymous": "this needs a token. Log in (hf auth login), or set HF_TOKEN.",
    401: f"the token is wrong or has expired. Create one at {TOKENS}, then log in again (hf auth "
    "login) or set HF_TOKEN.",
    403: "this token has no right to do that. Publish under a name of your own, or with a token "
    f"that has write access there ({TOKENS}).",
    404: "nothing is there. Check --endpoint and HF_ENDPOINT.",
    409: f"somebody else changed it at the same time. {AGAIN}",
    412: f"somebody else changed it at the same time. {AGAIN}",
    413: "what was sent is too large. Publish a smaller probe (build-probe --limit).",
    429: f"too many requests. Try again {{when}}. {AGAIN}",
    400: "the request was not accepted, for the reason given.",
    500: f"the Hub itself has a problem. Try again later. {AGAIN}",
}
"""What each refusal means and what to do: by kind, by the Hub's error code, by status."""


class HubError(ServerError):
    """The Hub refused, or cannot be reached.

    Attributes:
        code: its name of the error: ``RepoNotFound``, ``RevisionNotFound``, ``GatedRepo`` ...;
            ``OFFLINE`` if no request was made.
    """

    def __init__(
        self, message: str, status: int = 0, wait: float | None = None, code: str = ""
    ) -> None:
        super().__init__(message, status, wait, status in (0, *TEMPORARY) or status >= 500)
        self.code = code

    @property
    def unreachable(self) -> bool:
        """Whether there was no response: no network, or offline mode."""
        return self.status == 0 or self.code == OFFLINE

    @property
    def conflict(self) -> bool:
        """Whether somebody else has committed in the meantime."""
        return self.status in (409, 412)


def hub_error(error: BaseException, action: str, endpoint: str, token: str | None) -> HubError:
    """Convert an error of huggingface_hub, or of the underlying HTTP library, to ours.

    ``action`` says what was being done, and to what; ``token`` is kept out of the message.
    """
    from huggingface_hub.errors import OfflineModeIsEnabled, RepositoryNotFoundError

    if isinstance(error, OfflineModeIsEnabled):
        return HubError(
            f"{action}: HF_HUB_OFFLINE is set, so the Hub is not asked. Unset it.",
            400,
            code=OFFLINE,
        )
    status, said, headers = _response_of(error)
    said = redact(said, token)
    if not status and isinstance(error, ValueError):  # a 200 response that makes no sense
        full = f" Perhaps {REMEDIES['storage']}" if _STORAGE.search(said) else ""
        return HubError(f"{action}: the Hub does not accept it ({said}).{full}", 400)
    if not status:
        return HubError(
            f"{action}: the Hub at {without_credentials(endpoint)} cannot be reached, or the "
            f"connection broke ({said}). Check the network, and HF_ENDPOINT. {AGAIN}"
        )
    code = str(headers.get("X-Error-Code") or "")
    # The Hub does not distinguish "forbidden" from "missing" for anonymous users.
    if not code and (status == 404 or isinstance(error, RepositoryNotFoundError)):
        code = "RepoNotFound"
    is_full = status == 402 or (status in (400, 403, 413) and bool(_STORAGE.search(said)))
    anonymous = status == 401 and not token
    kinds: list[str | int] = ["storage"] * is_full + [code] + ["anonymous"] * anonymous + [status]
    kind = next((one for one in kinds if one in REMEDIES), 500 if status >= 500 else 400)
    wait = _wait(headers)
    remedy = REMEDIES[kind].format(when="in a few minutes" if wait is None else f"in {wait:,.0f} s")
    reason = f" ({said})" if said else ""
    return HubError(f"{action}: the Hub answers {status}{reason}: {remedy}", status, wait, code)


def redact(text: str, token: str | None) -> str:
    r"""Return a text on one line, without the token or anything else that looks like one.

    >>> redact("Bearer hf_abcdefghijklmnopqrst\nis bad", None)
    'Bearer (token) is bad'
    """
    text = _TOKEN.sub("(token)", " ".join(text.split()))
    return printable(text, 500, secret=token, shown="(token)")


def _response_of(error: BaseException) -> tuple[int, str, Mapping[str, Any]]:
    """Find the server's response behind an error: status, message, headers."""
    cause: BaseException | None = error
    while cause is not None:
        error = cause
        response = getattr(error, "response", None)
        if response is not None:
            said = getattr(error, "server_message", None) or response.headers.get("X-Error-Message")
            return int(response.status_code), str(said or ""), response.headers
        cause = error.__cause__
    return 0, f"{type(error).__name__}: {error}", {}


def _wait(headers: Mapping[str, Any]) -> float | None:
    asked = retry_after(str(headers.get("Retry-After") or ""), time.time())
    if asked is not None:
        return asked
    limit = re.search(r"r\s*=\s*0\s*;\s*t\s*=\s*(\d+)", str(headers.get("RateLimit") or ""))
    return float(limit[1]) if limit else None


_REPO_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9_][\w.-]{0,95}", re.ASCII)

MAIN = "main"
ATTEMPTS = 4
"""Maximum number of attempts of a request that fails for a transient reason."""
PAUSE = 1.0
"""Seconds before the second attempt; each further one waits twice as long."""
LONGEST_WAIT = 60.0
"""If the Hub asks us to wait longer than this, in seconds, we stop and say so."""
MAX_LISTED = 100_000
"""Maximum number of files, or of pull requests, of a repository."""
LISTING = 600.0
"""Seconds within which a listing must end."""
TIMEOUT = 60.0
"""Seconds without a response after which a connection counts as dead."""


@dataclass(frozen=True)
class RemoteFile:
    """A file on the Hub.

    ``oid`` is git's hash of its content, or of the pointer to it; ``sha256`` is the SHA-256 of the
    content if it is stored as a large file, otherwise empty.
    """

    size: int
    oid: str
    sha256: str


@dataclass(frozen=True)
class Remote:
    """A repository at one commit; ``commit`` is empty if there is no repository yet."""

    hub: Hub
    commit: str = ""
    private: bool = False
    files: Mapping[str, RemoteFile] = field(default_factory=dict)

    def content(self, path: str) -> bytes | None:
        """Fetch a small file; None if there is none."""
        if path not in self.files:
            return None
        with self.hub.download(path, self.commit) as file:
            return read_bytes(file, MAX_JSON_BYTES)

    def sha256(self, path: str) -> str:
        """Fetch a file of any size, and hash it."""
        with self.hub.download(path, self.commit) as file:
            return file_sha256(file)


class Hub:
    """A dataset's repository on the Hub."""

    def __init__(self, repo_id: str, endpoint: str | None = None, token: str | None = None) -> None:
        """Use the usual endpoint and token (HF_ENDPOINT; HF_TOKEN, hf auth login) unless given.

        Raises:
            UsageError: ``repo_id`` is not USER/NAME.
        """
        from huggingface_hub import HfApi, constants, get_token

        if not isinstance(repo_id, str) or not _REPO_ID.fullmatch(repo_id):
            raise UsageError(f"{repo_id!r} is not the name of a dataset on the Hub: USER/NAME")
        self.repo_id = repo_id
        self.endpoint = (endpoint or constants.ENDPOINT).rstrip("/")
        self._token = token or get_token()
        self._api: HfApi = HfApi(
            endpoint=self.endpoint,
            token=self._token or False,
            library_name="kbprobe",
            library_version=kbprobe_version(),
        )

    def __repr__(self) -> str:
        """Return the repository's name, without the token."""
        return f"Hub({self.repo_id!r}, {without_credentials(self.endpoint)!r})"

    @property
    def url(self) -> str:
        """The page of the dataset."""
        return f"{without_credentials(self.endpoint)}/datasets/{self.repo_id}"

    def require_token(self) -> None:
        """Raise a UsageError if there is no token."""
        if not self._token:
            raise UsageError(
                "publishing needs a token of the Hub, and none is set. Create one with write "
                f"access at {TOKENS}; then log in (hf auth login), set HF_TOKEN, or give "
                "--token-file."
            )

    def is_secret(self, content: bytes) -> bool:
        """Return whether content contains the token, or something that looks like one."""
        text = content.decode("utf-8", errors="replace")
        return bool((self._token and self._token in text) or _TOKEN.search(text))

    def read(self, revision: str, attempts: int = ATTEMPTS) -> Remote:
        """Read a revision: its commit, and the files of that commit.

        ``attempts`` is the maximum number of attempts if it fails for a transient reason.

        Raises:
            HubError: it cannot be read; ``status`` is 401 or 404 if it does not exist.
        """
        info = self._call(
            "reading", self._api.repo_info, revision=revision, timeout=TIMEOUT, attempts=attempts
        )
        if info.id.lower() != self.repo_id.lower():
            raise UsageError(f"{self.repo_id} has been renamed to {info.id}. Use that name.")
        return Remote(self, str(info.sha), bool(info.private), self.files(str(info.sha)))

    def files(self, revision: str) -> dict[str, RemoteFile]:
        """List the files of a revision."""
        entries = self._call("listing", self._api.list_repo_tree, recursive=True, revision=revision)
        return {
            one.path: RemoteFile(one.size, one.blob_id, one.lfs.sha256 if one.lfs else "")
            for one in entries
            if hasattr(one, "blob_id")
        }

    def tags(self) -> dict[str, str]:
        """Return the commit of each tag."""
        refs = self._call("reading the tags of", self._api.list_repo_refs, attempts=ATTEMPTS)
        return {one.name: one.target_commit for one in refs.tags}

    def open_pull_requests(self) -> list[tuple[str, str]]:
        """Return the revision and the page of each open pull request, newest first."""
        found = self._call(
            "reading the pull requests of",
            self._api.get_repo_discussions,
            discussion_type="pull_request",
            discussion_status="open",
            attempts=ATTEMPTS,
        )
        return [(f"refs/pr/{one.num}", str(one.url)) for one in found]

    @contextmanager
    def download(self, path: str, commit: str) -> Iterator[Path]:
        """Fetch a file of a commit, which is available within the block."""
        with scratch_folder() as folder:
            fetch, action = self._api.hf_hub_download, f"fetching {path} of"
            options: dict[str, Any] = {"revision": commit, "cache_dir": folder}
            yield Path(self._call(action, fetch, path, attempts=ATTEMPTS, **options))

    def create(self, private: bool) -> None:
        """Create the repository; an existing one is left alone."""
        self._call("creating", self._api.create_repo, private=private, exist_ok=True)

    def create_branch(self, name: str, commit: str) -> None:
        """Create a branch that starts at a commit; an existing one is left alone."""
        create, action = self._api.create_branch, f"creating the branch {name} of"
        self._call(action, create, branch=name, revision=commit, exist_ok=True)

    def upload(
        self, files: Sequence[LocalFile], revision: str, create_pr: bool
    ) -> list[CommitOperationAdd]:
        """Send large files ahead of the commit: those that have arrived are not sent again.

        Returns:
            The operations for :meth:`commit`; small files go with the commit.
        """
        from huggingface_hub import CommitOperationAdd

        additions = []
        for file in files:
            source = file.source if isinstance(file.source, bytes) else str(file.source)
            addition = CommitOperationAdd(file.path, source)
            # The check has already hashed it.
            addition.upload_info.sha256 = bytes.fromhex(file.sha256)
            additions.append(addition)
        self._call(
            "uploading to",
            self._api.preupload_lfs_files,
            additions,
            revision=revision,
            create_pr=create_pr,
            free_memory=False,
        )
        return additions

    def commit(
        self,
        uploaded: Sequence[CommitOperationAdd],
        deleted: Sequence[str],
        *,
        parent: str,
        revision: str,
        message: str,
        create_pr: bool = False,
    ) -> tuple[str, str]:
        """Commit uploaded files and deletions at once, only on top of ``parent``.

        Returns:
            The commit, and the page of the pull request if one was requested.

        Raises:
            HubError: ``conflict`` is set if the revision is no longer at ``parent``.
        """
        from huggingface_hub import CommitOperationDelete

        made = self._call(
            "committing to",
            self._api.create_commit,
            [*uploaded, *(CommitOperationDelete(path) for path in deleted)],
            commit_message=message,
            parent_commit=parent,
            revision=revision,
            create_pr=create_pr,
        )
        return made.oid, made.pr_url or ""

    def tag(self, name: str, commit: str, message: str) -> None:
        """Tag a commit."""
        options: dict[str, Any] = {"tag": name, "tag_message": message, "revision": commit}
        self._call(f"tagging {name} of", self._api.create_tag, attempts=ATTEMPTS, **options)

    def _call(
        self, action: str, call: Callable[..., Any], *args: Any, attempts: int = 1, **options: Any
    ) -> Any:
        """Call a method of HfApi for this repository; ``action`` is for messages ("reading").

        A request is made up to ``attempts`` times while its failure is transient.
        """
        from huggingface_hub import errors

        # The base of the errors of whichever HTTP library huggingface_hub uses.
        http_error: Any = errors.HfHubHTTPError.__bases__[0]
        known = (http_error, errors.EntryNotFoundError, errors.LocalTokenNotFoundError)
        place = f"{action} {self.repo_id}"

        def attempt() -> Any:
            try:
                found = call(self.repo_id, *args, repo_type="dataset", **options)
                return self._listed(place, found) if isinstance(found, Iterator) else found
            except (*known, ConnectionError, ValueError, RuntimeError) as error:
                # A RuntimeError with a cause means a failed upload.
                if isinstance(error, RuntimeError) and error.__cause__ is None:
                    raise
                problem = hub_error(error, place, self.endpoint, self._token)
            raise problem  # outside the handler, so that it does not refer to the original error

        limits = Limits(attempts=attempts, backoff=PAUSE, longest_wait=LONGEST_WAIT)
        return retried(attempt, limits, lambda error, wait: time.sleep(wait))

    def _listed(self, place: str, entries: Iterator[Any]) -> list[Any]:
        """Return a listing, whose pages may have no end, and may be empty."""
        try:
            found = within(LISTING, list, islice(entries, MAX_LISTED + 1))
        except TimeoutError:
            raise HubError(
                f"{place}: the listing did not end within {LISTING:.0f} s. Check HF_ENDPOINT.", 400
            ) from None
        if len(found) > MAX_LISTED:
            raise HubError(
                f"{place}: the listing has more than {MAX_LISTED:,} entries, the most that are "
                "read. Use a repository for the probe alone.",
                400,
            )
        return found
