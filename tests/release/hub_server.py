"""A loopback server that speaks as much of the Hub's HTTP API as publishing and reading take.

It keeps repositories as commits over blobs, as git does, and large files apart, as LFS does. It
knows accounts and their rights, answers conditional commits, and can be told to fail: with a
status, by dropping the connection before or after it has done what was asked, or in the middle of
an upload.

    with HubServer() as hub:
        hub.account("hf_secret", "me")
        hub.fail("POST", "/commit/", status=500)
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Self

import pytest

import release
from kbprobe.errors import KbprobeError
from release.hub.publishing import Publication
from tests.release.hub_answers import Handler
from tests.release.hub_repos import (
    LARGE,
    Blob,
    Commit,
    Repo,
)

PAGE = 1000
TOKEN = "hf_" + "Zq7" * 11
REPO = "me/hypernyms"


def let_through(patch: pytest.MonkeyPatch) -> list[float]:
    """Let huggingface_hub ask a loopback server, with no token but those given; nothing waits.

    Returns:
        The seconds that would have been waited, as they come.
    """
    import huggingface_hub.constants as constants

    patch.setattr(constants, "HF_HUB_OFFLINE", False)
    patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    patch.setattr(constants, "HF_TOKEN_PATH", "/nowhere/token")
    patch.delenv("HF_TOKEN", raising=False)
    waited: list[float] = []
    patch.setattr("time.sleep", waited.append)
    return waited


def make_default(patch: pytest.MonkeyPatch, url: str, cache: Path) -> None:
    """Make a server the Hub of ``huggingface_hub`` and ``datasets``, with an empty cache."""
    import datasets
    import huggingface_hub.constants as constants

    place = url + "/{repo_id}/resolve/{revision}/{filename}"
    patch.setattr(constants, "ENDPOINT", url)
    patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", place)
    patch.setattr(constants, "HF_HUB_CACHE", str(cache / "hub"))
    patch.setattr(datasets.config, "HF_ENDPOINT", url)
    patch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    patch.setattr(datasets.config, "HF_DATASETS_CACHE", cache / "datasets")


@dataclass
class Fault:
    """Something that goes wrong, a number of times.

    Attributes:
        method, pattern: which requests it hits; the pattern is searched for in path and query.
        status, message, code, headers: the answer; status 0 lets the request through.
        drop: when to drop the connection.
        hook: called before the request is dealt with.
    """

    method: str
    pattern: str
    status: int = 0
    message: str = ""
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: Literal["", "before", "midway", "after"] = ""
    hook: Callable[[], None] | None = None
    times: int = 1

    def hits(self, method: str, path: str) -> bool:
        return self.times > 0 and method == self.method and bool(re.search(self.pattern, path))


@dataclass(frozen=True)
class Account:
    """Whom a token stands for, and whether it may write."""

    name: str
    writes: bool = True


@dataclass(frozen=True)
class Seen:
    """A request that arrived."""

    method: str
    path: str
    token: str
    sent: int


class HubServer:
    """The server, and what it holds."""

    def __init__(self, page: int = PAGE, part: int = 0) -> None:
        """Start with nothing.

        Args:
            page: entries on a page of a listing.
            part: size of the parts of which large files are to be sent; 0: in one piece.
        """
        self.page, self.part = page, part
        self.endless = False  # whether each page of a listing names another one
        self.repos: dict[str, Repo] = {}
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.accounts: dict[str, Account] = {}
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []
        self.lock = threading.RLock()
        handler = type("BoundHandler", (Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        """Serve from a thread."""
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def account(self, token: str, name: str, writes: bool = True) -> None:
        """Make a token known."""
        self.accounts[token] = Account(name, writes)

    def fail(self, method: str, pattern: str, **how: Any) -> Fault:
        """Let something go wrong; see :class:`Fault`."""
        fault = Fault(method, pattern, **how)
        self.faults.append(fault)
        return fault

    def put(
        self,
        repo: str,
        files: Mapping[str, bytes | None],
        branch: str = "main",
        message: str = "by hand",
    ) -> Commit:
        """Commit files to a repository as somebody else would; None removes one."""
        with self.lock:
            there = self.repos.setdefault(repo, Repo(repo))
            head = there.find(branch)
            held = dict(head.files) if head else {}
            for path, content in files.items():
                if content is None:
                    held.pop(path)
                elif path.endswith(LARGE):
                    sha256 = hashlib.sha256(content).hexdigest()
                    self.objects[sha256] = content
                    held[path] = Blob.pointer(sha256, len(content))
                else:
                    held[path] = Blob(content)
            return there.commit(branch, held, message)

    def content(self, repo: str, path: str, revision: str = "main") -> bytes:
        """Return a file's content."""
        commit = self.repos[repo].find(revision)
        assert commit is not None
        blob = commit.files[path]
        return self.objects[blob.sha256] if blob.sha256 else blob.content

    def paths(self, repo: str, revision: str = "main") -> set[str]:
        """Return the paths of a commit's files."""
        commit = self.repos[repo].find(revision)
        assert commit is not None
        return set(commit.files)

    def saw(self, method: str, path: str, token: str, sent: int) -> None:
        """Remember a request."""
        self.seen.append(Seen(method, path, token, sent))

    def asked(self, method: str, pattern: str) -> list[Seen]:
        """Return the requests that arrived, of a method, whose path has the pattern."""
        return [one for one in self.seen if one.method == method and re.search(pattern, one.path)]


# What tests ask of it.


def publish(hub: HubServer, folder: Path, repo: str = REPO, **options: Any) -> Publication:
    told: Publication = release.publish(
        folder, repo, **{"endpoint": hub.url, "token": TOKEN, **options}
    )
    return told


def refusal(hub: HubServer, folder: Path, repo: str = REPO, **options: Any) -> str:
    with pytest.raises(KbprobeError) as caught:
        publish(hub, folder, repo, **options)
    message = str(caught.value)
    assert TOKEN not in message
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return message
