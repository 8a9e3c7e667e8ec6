"""Repositories of the loopback Hub: commits over blobs, and how the Hub's answers spell them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LARGE = (".parquet", ".arrow", ".gz", ".zip", ".bin")
"""What is stored as a large file."""


def git_oid(content: bytes) -> str:
    """Return the name that git gives to a blob."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass(frozen=True)
class Blob:
    """A file of a commit; of a large one, the pointer to its content."""

    content: bytes
    sha256: str = ""
    size: int = 0

    @classmethod
    def pointer(cls, sha256: str, size: int) -> Blob:
        text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n"
        return cls(text.encode(), sha256, size)

    @property
    def oid(self) -> str:
        return git_oid(self.content)


@dataclass(frozen=True)
class Commit:
    """A commit: its files, its message and its parent."""

    oid: str
    files: Mapping[str, Blob]
    message: str
    parent: str


@dataclass
class Repo:
    """A dataset's repository."""

    name: str
    private: bool = False
    gated: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    pulls: dict[str, str] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.commit("main", {".gitattributes": Blob(b"*.parquet filter=lfs\n")}, "initial commit")

    def find(self, revision: str) -> Commit | None:
        names = {**self.branches, **self.tags, **self.pulls}
        return self.commits.get(names.get(revision, revision))

    def commit(self, branch: str, files: Mapping[str, Blob], message: str) -> Commit:
        refs = self.pulls if branch.startswith("refs/pr/") else self.branches
        parent = refs.get(branch, "")
        content = [
            len(self.commits),
            parent,
            message,
            {path: one.oid for path, one in files.items()},
        ]
        oid = hashlib.sha1(json.dumps(content).encode()).hexdigest()
        self.commits[oid] = Commit(oid, dict(files), message, parent)
        refs[branch] = oid
        return self.commits[oid]


def entry(path: str, blob: Blob, name: str = "path") -> dict[str, Any]:
    size = blob.size if blob.sha256 else len(blob.content)
    entry: dict[str, Any] = {"type": "file", "oid": blob.oid, "size": size, name: path}
    if blob.sha256:
        entry["lfs"] = {
            "oid": blob.sha256,
            "sha256": blob.sha256,
            "size": size,
            "pointerSize": len(blob.content),
        }
    return entry


def children(commit: Commit, folder: str, recursive: bool) -> list[dict[str, Any]]:
    start = f"{folder}/" if folder else ""
    entries: dict[str, dict[str, Any]] = {}
    for path, blob in sorted(commit.files.items()):
        if not path.startswith(start):
            continue
        steps = path.removeprefix(start).split("/")
        for depth in range(1, len(steps) if recursive else min(len(steps), 2)):
            parent = start + "/".join(steps[:depth])
            entries[parent] = {"type": "directory", "oid": "0" * 40, "size": 0, "path": parent}
        if recursive or len(steps) == 1:
            entries[path] = entry(path, blob)
    return list(entries.values())


def listed(commit: Commit, paths: list[str]) -> list[dict[str, Any]]:
    found = []
    for path in paths:
        if path in commit.files:
            found.append(entry(path, commit.files[path]))
        elif any(one.startswith(f"{path}/") for one in commit.files):
            found.append({"type": "directory", "oid": "0" * 40, "size": 0, "path": path})
    return found


def refs(repo: Repo) -> dict[str, Any]:
    def named(refs: Mapping[str, str], start: str) -> list[dict[str, str]]:
        return [
            {"name": name.removeprefix("refs/"), "ref": f"{start}{name}", "targetCommit": oid}
            for name, oid in refs.items()
        ]

    return {
        "branches": named(repo.branches, "refs/heads/"),
        "tags": named(repo.tags, "refs/tags/"),
        "converts": [],
        "pullRequests": named(repo.pulls, ""),
    }


def discussions(repo: Repo) -> dict[str, Any]:
    found = [
        {
            "title": "a pull request",
            "num": int(name.rsplit("/", 1)[1]),
            "author": {"name": "me"},
            "createdAt": "2024-01-01T00:00:00.000Z",
            "status": "open",
            "repo": {"name": repo.name, "type": "dataset"},
            "isPullRequest": True,
        }
        for name in repo.pulls
        if name not in repo.closed
    ]
    return {"discussions": found, "count": len(found), "start": 0}


def modes(commit: Commit, asked: Any) -> dict[str, Any]:
    files = []
    for one in asked["files"]:
        path = one["path"]
        blob = commit.files.get(path)
        mode = "lfs" if path.endswith(LARGE) else "regular"
        oid = {} if blob is None else {"oid": blob.sha256 or blob.oid}
        files.append({"path": path, "uploadMode": mode, "shouldIgnore": False, **oid})
    return {"files": files}
