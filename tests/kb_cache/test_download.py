"""Downloads against servers that drop, lie, ignore and refuse, on the loopback interface."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kb_cache import download as download_module
from kb_cache.download import download
from kbprobe.errors import SourceError, UsageError

CONTENT = random.Random(0).randbytes(200_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
HALF = len(CONTENT) // 2


@dataclass
class Site:
    """What a server holds and how it misbehaves.

    Attributes:
        content: the file.
        etag: its validator; None for a server that gives none.
        ranges: whether it can send a part.
        states_length: whether it says how long the body is.
        drop_after: the bytes of each body after which it hangs up, a number for each answer;
            whole bodies once the list is used up.
        length_off: added to the Content-Length that it states.
        status: answers, used up like ``drop_after``; 200 afterwards.
        headers: sent in addition.
        shift: added to the first byte that it says it sends.
        asked: the Range header of every request.
    """

    content: bytes = CONTENT
    etag: str | None = '"1"'
    ranges: bool = True
    states_length: bool = True
    drop_after: list[int] = field(default_factory=list)
    length_off: int = 0
    status: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    shift: int = 0
    asked: list[str | None] = field(default_factory=list)

    def part(self, asked: str | None, if_range: str | None) -> int | None:
        """The first byte to send; None where the whole file is to be sent."""
        if asked is None or not self.ranges or if_range not in (None, self.etag):
            return None
        return int(asked.removeprefix("bytes=").removesuffix("-"))


class Handler(BaseHTTPRequestHandler):
    """Serves `Site` (an attribute of the server)."""

    def do_GET(self) -> None:
        site: Site = self.server.site  # type: ignore[attr-defined]
        asked = self.headers["Range"]
        site.asked.append(asked)
        if self.path == "/moved":
            self.answer(302, {"Location": "/file"})
            return
        if site.status and (status := site.status.pop(0)) != 200:
            self.answer(status, site.headers)
            return
        start = site.part(asked, self.headers["If-Range"])
        size = len(site.content)
        if start is not None and start >= size:
            self.answer(416, {"Content-Range": f"bytes */{size}"})
            return
        body = site.content[start or 0 :]
        headers = dict(site.headers)
        if site.states_length:
            headers["Content-Length"] = str(len(body) + site.length_off)
        if site.etag:
            headers["ETag"] = site.etag
        if start is not None:
            headers["Content-Range"] = f"bytes {start + site.shift}-{size - 1}/{size}"
        if site.drop_after:
            body = body[: site.drop_after.pop(0)]
        self.answer(200 if start is None else 206, headers, body)

    def answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download_module, "PAUSE", 0.0)
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def serve() -> Iterator[Callable[[Site], str]]:
    servers = []

    def start(site: Site) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.site = site  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/file"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


Serve = Callable[[Site], str]


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_a_file_arrives_whole_and_alone(serve: Serve, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file.gz"
    assert download(serve(Site()), target, sha256=SHA256, size=len(CONTENT)) == target
    assert target.read_bytes() == CONTENT
    assert visible(target.parent) == ["file.gz"]


def test_redirections_are_followed(serve: Serve, tmp_path: Path) -> None:
    url = serve(Site()).replace("/file", "/moved")
    download(url, tmp_path / "file", sha256=SHA256)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_progress_rises_to_the_whole(serve: Serve, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    download(serve(Site()), tmp_path / "file", progress=lambda *now: seen.append(now))
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert seen == sorted(seen)


def test_dropped_connections_are_taken_up_where_they_broke(serve: Serve, tmp_path: Path) -> None:
    site = Site(drop_after=[50_000, 1, 30_000])
    download(serve(site), tmp_path / "file", sha256=SHA256)
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert site.asked == [None, "bytes=50000-", "bytes=50001-", "bytes=80001-"]


def test_a_later_call_goes_on_where_an_earlier_one_ended(serve: Serve, tmp_path: Path) -> None:
    site = Site(drop_after=[HALF] + [0] * 10)
    url = serve(site)
    with pytest.raises(SourceError, match=r"100,000 bytes have arrived and are kept.*--from"):
        download(url, tmp_path / "file")
    assert not (tmp_path / "file").exists()
    assert len(site.asked) == 1 + download_module.ATTEMPTS - 1
    site.drop_after.clear()
    download(url, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert site.asked[-1] == f"bytes={HALF}-"
    assert visible(tmp_path) == ["file"]


def test_an_interrupted_download_is_kept(serve: Serve, tmp_path: Path) -> None:
    site = Site()
    url = serve(site)

    def interrupt(done: int, total: int | None) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(url, tmp_path / "file", progress=interrupt)
    assert not (tmp_path / "file").exists()
    download(url, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert site.asked[-1] is None or site.asked[-1].startswith("bytes=")


def test_parts_of_two_versions_are_never_joined(serve: Serve, tmp_path: Path) -> None:
    site = Site(drop_after=[HALF] + [0] * 10)
    url = serve(site)
    with pytest.raises(SourceError):
        download(url, tmp_path / "file")
    site.drop_after.clear()
    site.content, site.etag = CONTENT[::-1], '"2"'
    download(url, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT[::-1]


def test_without_validator_or_checksum_nothing_is_resumed(serve: Serve, tmp_path: Path) -> None:
    site = Site(etag=None, drop_after=[HALF])
    download(serve(site), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert site.asked == [None, None]


def test_a_checksum_allows_resuming_without_a_validator(serve: Serve, tmp_path: Path) -> None:
    site = Site(etag=None, drop_after=[HALF])
    download(serve(site), tmp_path / "file", sha256=SHA256)
    assert site.asked == [None, f"bytes={HALF}-"]


def test_a_server_that_ignores_ranges_starts_anew(serve: Serve, tmp_path: Path) -> None:
    site = Site(ranges=False, drop_after=[HALF, HALF + 1])
    download(serve(site), tmp_path / "file", sha256=SHA256)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_one_that_ignores_ranges_and_always_drops_is_given_up(serve: Serve, tmp_path: Path) -> None:
    site = Site(ranges=False, drop_after=[HALF] * 50)
    with pytest.raises(SourceError, match="ended after 100,000 of 200,000 bytes"):
        download(serve(site), tmp_path / "file")
    assert len(site.asked) == download_module.ATTEMPTS


def test_a_wrong_part_is_not_used(serve: Serve, tmp_path: Path) -> None:
    site = Site(shift=7, drop_after=[HALF])
    download(serve(site), tmp_path / "file", sha256=SHA256)
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert site.asked == [None, f"bytes={HALF}-", None]


def test_a_length_larger_than_the_body_is_noticed(serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="200,000 bytes"):
        download(serve(Site(length_off=5, ranges=False)), tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_a_length_smaller_than_the_body_is_noticed(serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"its sha256 is \w+, not"):
        download(serve(Site(length_off=-5)), tmp_path / "file", sha256=SHA256)
    assert visible(tmp_path) == []


def test_another_size_than_expected_is_noticed_at_once(serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="has 200,000 bytes; 7 were expected"):
        download(serve(Site()), tmp_path / "file", size=7)
    assert visible(tmp_path) == []


def test_an_endless_body_is_cut_off_at_the_expected_size(serve: Serve, tmp_path: Path) -> None:
    site = Site(content=CONTENT * 50, states_length=False)
    with pytest.raises(SourceError, match="sends more than the 1,000 bytes"):
        download(serve(site), tmp_path / "file", size=1000)
    assert visible(tmp_path) == []


def test_a_wrong_checksum_leaves_nothing(serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not the expected file"):
        download(serve(Site()), tmp_path / "file", sha256="0" * 64)
    assert visible(tmp_path) == []


@pytest.mark.parametrize(
    "site",
    [
        Site(content=b"whatever", headers={"Content-Type": "text/html; charset=utf-8"}),
        Site(content=b"\n<!DOCTYPE html><title>Log in</title>"),
        Site(content=b"<HTML><body>Log in</body></HTML>", states_length=False),
    ],
)
def test_a_web_page_is_not_the_file(serve: Serve, tmp_path: Path, site: Site) -> None:
    with pytest.raises(SourceError, match=r"web page instead of the file.*--from"):
        download(serve(site), tmp_path / "file")
    assert visible(tmp_path) == []


def test_a_missing_file_is_not_asked_for_again(serve: Serve, tmp_path: Path) -> None:
    site = Site(status=[404] * 9)
    with pytest.raises(SourceError, match=r"the server answers 404 .*--from"):
        download(serve(site), tmp_path / "file")
    assert len(site.asked) == 1


def test_a_busy_server_is_asked_again(serve: Serve, tmp_path: Path) -> None:
    site = Site(status=[503, 429])
    download(serve(site), tmp_path / "file", sha256=SHA256)
    assert len(site.asked) == 3


@pytest.mark.parametrize(("asked", "waited"), [("7", 7), ("86400", download_module.LONGEST_WAIT)])
def test_a_busy_server_is_given_the_time_it_asks_for(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, waited: int
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", slept.append)
    download(serve(Site(status=[503], headers={"Retry-After": asked})), tmp_path / "file")
    assert slept == [waited]


def test_no_server_at_all(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="the server cannot be reached"):
        download("http://127.0.0.1:9/file", tmp_path / "file")


def test_what_is_there_is_not_asked_for(serve: Serve, tmp_path: Path) -> None:
    site = Site()
    (tmp_path / "file").write_bytes(CONTENT)
    download(serve(site), tmp_path / "file", sha256=SHA256, size=len(CONTENT))
    assert site.asked == []


def test_a_target_of_other_content_is_replaced(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    download(serve(Site()), tmp_path / "file", sha256=SHA256)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_whole_part_needs_no_further_byte(serve: Serve, tmp_path: Path) -> None:
    site = Site()
    (tmp_path / "file.part").write_bytes(CONTENT)
    download(serve(site), tmp_path / "file", sha256=SHA256)
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert site.asked == [f"bytes={len(CONTENT)}-"]


def test_a_part_that_is_too_long_is_thrown_away(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT + b"more")
    download(serve(Site()), tmp_path / "file", sha256=SHA256)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_two_at_once_download_once(serve: Serve, tmp_path: Path) -> None:
    site = Site()
    url = serve(site)
    threads = [
        threading.Thread(target=download, args=(url, tmp_path / "file"), kwargs={"sha256": SHA256})
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert site.asked == [None]


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/file", "file:///etc/passwd", "x50k", ""])
def test_other_addresses_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only http and https"):
        download(url, tmp_path / "file")
