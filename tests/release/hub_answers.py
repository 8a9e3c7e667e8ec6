"""How the loopback Hub answers: rights first, then what was asked for."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.release.hub_repos import (
    Blob,
    Commit,
    Repo,
    children,
    discussions,
    entry,
    listed,
    modes,
    refs,
)

if TYPE_CHECKING:
    from tests.release.hub_server import Account, HubServer

Answer = tuple[int, Mapping[str, str], bytes]
"""Status, headers and content."""


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str, code: str = "", url: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.url = status, message, code, url


NOT_FOUND = Refused(404, "Repository not found", "RepoNotFound")


class Handler(BaseHTTPRequestHandler):
    """Answers one connection's requests."""

    hub: HubServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # It holds a body back until its head is acknowledged: 40 ms.

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    # One request.

    def _answer(self) -> None:
        fault = next((one for one in self.hub.faults if one.hits(self.command, self.path)), None)
        if fault:
            fault.times -= 1
        if fault and fault.drop in ("before", "midway"):
            if fault.drop == "midway":
                self.rfile.read(int(self.headers.get("Content-Length", 0)) // 2)
            self._drop()
            return
        body = self._body()
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.hub.saw(self.command, self.path, token, len(body))
        if fault and fault.hook:
            fault.hook()
        try:
            if fault and fault.status:
                raise Refused(fault.status, fault.message or "something went wrong", fault.code)
            with self.hub.lock:
                status, headers, content = self._route(body, token)
        except Refused as refused:
            more = dict(fault.headers) if fault else {}
            self._refuse(refused, more)
            return
        if fault and fault.drop == "after":
            self._drop()
            return
        self._send(status, headers, content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _drop(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _refuse(self, refused: Refused, headers: Mapping[str, str]) -> None:
        named = {"X-Error-Message": refused.message, "X-Error-Code": refused.code}
        told = {"error": refused.message} | ({"url": refused.url} if refused.url else {})
        content = json.dumps(told).encode()
        self._send(refused.status, {**{k: v for k, v in named.items() if v}, **headers}, content)

    def _send(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    # Where requests go.

    def _route(self, body: bytes, token: str) -> Answer:
        parts = urlsplit(self.path)
        path, query = parts.path, parse_qs(parts.query)
        if token and token not in self.hub.accounts:
            raise Refused(401, "Invalid credentials in Authorization header")
        account = self.hub.accounts.get(token)
        if path == "/api/whoami-v2":
            if account is None:
                raise Refused(401, "Invalid username or password.")
            return _json({"type": "user", "name": account.name, "orgs": [], "auth": {}})
        if path == "/api/validate-yaml":
            return _json({"errors": [], "warnings": []})
        if path == "/api/repos/create":
            return self._create(json.loads(body), account)
        if found := re.fullmatch(r"/lfs/([0-9a-f]{64})(?:/(\d+|complete|verify))?", path):
            return self._store(found[1], found[2] or "", body)
        if found := re.fullmatch(r"/datasets/([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            asked = json.loads(body)
            # What is meant for a pull request names no branch, and takes no right to write to one.
            self._writable(found[1], account, pull="ref" not in asked)
            return _json(self._batch(asked))
        if found := re.fullmatch(r"(?:/datasets)?/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            repo = self._readable(found[1], account, content=True)
            return self._resolve(repo, unquote(found[2]), unquote(found[3]))
        if found := re.fullmatch(
            r"/api/(?:datasets|models)/([^/]+/[^/]+)(?:/([^/]+)(?:/(.+))?)?", path
        ):
            rest = unquote(found[3] or "")
            return self._dataset(found[1], found[2] or "revision", rest, query, body, account)
        raise Refused(404, f"no route {self.command} {path}")

    def _dataset(
        self,
        name: str,
        what: str,
        rest: str,
        query: Mapping[str, list[str]],
        body: bytes,
        account: Account | None,
    ) -> Answer:
        if what == "revision":
            repo = self._readable(name, account)
            commit = self._commit(repo, rest or "main")
            siblings = [entry(path, blob, "rfilename") for path, blob in commit.files.items()]
            info = {"id": repo.name, "sha": commit.oid, "private": repo.private, "tags": []}
            return _json({**info, "gated": repo.gated, "downloads": 0, "siblings": siblings})
        if what == "tree":
            return self._tree(self._readable(name, account), rest, query)
        if what == "paths-info":
            commit = self._commit(self._readable(name, account), rest)
            asked = parse_qs(body.decode()).get("paths", [])
            return _json(listed(commit, asked))
        if what == "refs":
            repo = self._readable(name, account)
            return _json(refs(repo))
        if what == "discussions":
            repo = self._readable(name, account)
            return _json(discussions(repo))
        if what == "preupload":
            repo = self._writable(name, account, pull="create_pr" in query)
            return _json(modes(self._commit(repo, rest), json.loads(body)))
        if what == "commit":
            repo = self._writable(name, account, pull="create_pr" in query)
            return self._receive(repo, rest, body, "create_pr" in query)
        if what in ("tag", "branch"):
            return self._ref(self._writable(name, account), what, rest, json.loads(body))
        raise Refused(404, f"no route {what}")

    # Rights.

    def _readable(self, name: str, account: Account | None, content: bool = False) -> Repo:
        repo = self.hub.repos.get(name)
        owner = name.split("/")[0]
        if repo is None or (repo.private and (account is None or account.name != owner)):
            # Who is not known learns no more than that.
            raise (
                NOT_FOUND
                if account
                else Refused(401, "Invalid username or password.", "RepoNotFound")
            )
        if content and repo.gated and (account is None or account.name != owner):
            raise Refused(403, "Access to this dataset is restricted.", "GatedRepo")
        return repo

    def _writable(self, name: str, account: Account | None, pull: bool = False) -> Repo:
        if account is None:
            raise Refused(401, "Invalid username or password.")
        repo = self._readable(name, account)
        if not account.writes or (account.name != name.split("/")[0] and not pull):
            raise Refused(403, "You don't have the rights to write to this repository")
        return repo

    def _commit(self, repo: Repo, revision: str) -> Commit:
        commit = repo.find(revision)
        if commit is None:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit

    # What requests do.

    def _create(self, asked: Any, account: Account | None) -> Answer:
        if account is None:
            raise Refused(401, "Invalid username or password.")
        owner = asked.get("organization") or account.name
        name = f"{owner}/{asked['name']}"
        if name in self.hub.repos:
            page = f"{self.hub.url}/datasets/{name}"
            raise Refused(409, "You already created this dataset repo", url=page)
        if owner != account.name or not account.writes:
            raise Refused(403, f'You don\'t have the rights to create a dataset under "{owner}"')
        private = asked.get("visibility") == "private" or asked.get("private") is True
        self.hub.repos[name] = Repo(name, private)
        return _json({"url": f"{self.hub.url}/datasets/{name}"})

    def _tree(self, repo: Repo, rest: str, query: Mapping[str, list[str]]) -> Answer:
        names = (*repo.branches, *repo.tags, *repo.pulls, *repo.commits)
        revision = next((one for one in names if rest == one or rest.startswith(f"{one}/")), rest)
        commit = self._commit(repo, revision)
        folder = rest.removeprefix(revision).strip("/")
        recursive = query.get("recursive", [""])[0].lower() == "true"
        entries = children(commit, folder, recursive)
        if folder and not entries:
            raise Refused(404, f"{folder} does not exist", "EntryNotFound")
        start = int(query.get("cursor", ["0"])[0])
        end = start + self.hub.page
        path = urlsplit(self.path).path
        more = f"{self.hub.url}{path}?recursive={recursive}&cursor={end}"
        headers = (
            {"Link": f'<{more}>; rel="next"'} if end < len(entries) or self.hub.endless else {}
        )
        return 200, headers, json.dumps(entries[start:end]).encode()

    def _batch(self, asked: Any) -> Any:
        answers = []
        for one in asked["objects"]:
            at = f"{self.hub.url}/lfs/{one['oid']}"
            answer = {"oid": one["oid"], "size": one["size"]}
            if one["oid"] not in self.hub.objects:
                header: dict[str, str] = {}
                href = at
                if self.hub.part:
                    count = -(-one["size"] // self.hub.part)
                    header = {str(number): f"{at}/{number}" for number in range(1, count + 1)}
                    header["chunk_size"] = str(self.hub.part)
                    href = f"{at}/complete"
                upload = {"href": href, "header": header}
                answer["actions"] = {"upload": upload, "verify": {"href": f"{at}/verify"}}
            answers.append(answer)
        return {"transfer": "multipart" if self.hub.part else "basic", "objects": answers}

    def _store(self, oid: str, what: str, body: bytes) -> Answer:
        if what.isdigit():
            self.hub.parts.setdefault(oid, {})[int(what)] = body
            return 200, {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}, b""
        if what == "verify":
            held = self.hub.objects.get(oid)
            if held is None or len(held) != json.loads(body)["size"]:
                raise Refused(422, "the object is not as announced")
            return _json({})
        if what == "complete":
            pieces = self.hub.parts.pop(oid)
            body = b"".join(pieces[one["partNumber"]] for one in json.loads(body)["parts"])
        if hashlib.sha256(body).hexdigest() != oid:
            raise Refused(400, "the content does not have the announced checksum")
        self.hub.objects[oid] = body
        return _json({})

    def _receive(self, repo: Repo, revision: str, body: bytes, pull: bool) -> Answer:
        base = self._commit(repo, revision)
        lines = [json.loads(line) for line in body.splitlines()]
        header = lines[0]["value"]
        parent = header.get("parentCommit")
        if parent and parent != base.oid and not pull:
            raise Refused(412, "A commit has happened since. Please refresh and try again.")
        files = dict(base.files)
        for line in lines[1:]:
            self._apply(files, line["key"], line["value"])
        branch = revision
        if pull:
            branch = f"refs/pr/{len(repo.pulls) + 1}"
            repo.pulls[branch] = base.oid
        commit = repo.commit(branch, files, header["summary"])
        page = f"{self.hub.url}/datasets/{repo.name}"
        answer = {
            "success": True,
            "commitOid": commit.oid,
            "commitUrl": f"{page}/commit/{commit.oid}",
        }
        if pull:
            answer["pullRequestUrl"] = f"{page}/discussions/{branch.rsplit('/', 1)[1]}"
        return _json(answer)

    def _apply(self, files: dict[str, Blob], key: str, value: Any) -> None:
        path = value["path"]
        if key == "file":
            files[path] = Blob(base64.b64decode(value["content"]))
        elif key == "lfsFile":
            if value["oid"] not in self.hub.objects:
                raise Refused(400, f"LFS pointer pointed to a file that does not exist: {path}")
            files[path] = Blob.pointer(value["oid"], len(self.hub.objects[value["oid"]]))
        elif key == "deletedFile" and files.pop(path, None) is None:
            raise Refused(404, "A file with this name doesn't exist", "EntryNotFound")

    def _ref(self, repo: Repo, what: str, rest: str, asked: Any) -> Answer:
        refs = repo.tags if what == "tag" else repo.branches
        name = asked["tag"] if what == "tag" else rest
        if name in refs:
            raise Refused(409, f"Reference {name} already exists")
        start = rest if what == "tag" else asked.get("startingPoint", "main")
        refs[name] = self._commit(repo, start).oid
        return _json({})

    def _resolve(self, repo: Repo, revision: str, path: str) -> Answer:
        commit = self._commit(repo, revision)
        blob = commit.files.get(path)
        if blob is None:
            raise Refused(404, "Entry not found", "EntryNotFound")
        content = self.hub.objects[blob.sha256] if blob.sha256 else blob.content
        headers = {
            "X-Repo-Commit": commit.oid,
            "ETag": f'"{blob.sha256 or blob.oid}"',
            "Content-Type": "application/octet-stream",
            "Accept-Ranges": "bytes",
        }
        if blob.sha256:
            headers |= {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{blob.sha256}"'}
        if found := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            start, end = int(found[1]), int(found[2] or len(content) - 1)
            headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
            return 206, headers, content[start : end + 1]
        return 200, headers, content


def _json(value: Any) -> Answer:
    return 200, {}, json.dumps(value).encode()
