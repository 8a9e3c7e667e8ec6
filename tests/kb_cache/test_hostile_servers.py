"""Servers that keep us waiting, send too much, or send us elsewhere; on the loopback interface."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kb_cache import download as download_module
from kb_cache.download import download
from kb_cache.wikidata.sparql.endpoint import QueryLimits, SparqlEndpoint
from kb_cache.wikidata.sparql.types import QueryTimeout, prepared
from kbprobe.errors import SourceError
from kbprobe.http import within

QUERY = prepared("SELECT ?x { ?x a ?y }")
#: Seconds between two bytes of a server that drips.
DRIP = 0.1

Send = Callable[[Callable[[bytes], None]], None]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Send], str]]:
    """Return a function that starts a server: each connection is answered by ``send``."""
    monkeypatch.setattr(download_module, "PAUSE", 0.0)
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    servers: list[socketserver.ThreadingTCPServer] = []

    def start(send: Send) -> str:
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while self.rfile.readline().strip():
                    pass
                with suppress(OSError):  # the client hangs up, as it should
                    send(self.wfile.write)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = allow_reuse_address = True
            block_on_close = False

        server = Server(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}/file"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def dripping(text: bytes, after: bytes = b"") -> Send:
    """Send something at once, then a byte at a time, without end."""

    def send(write: Callable[[bytes], None]) -> None:
        write(after)
        while True:
            for byte in text:
                write(bytes([byte]))
                time.sleep(DRIP)

    return send


def redirecting(target: str) -> Send:
    return lambda write: write(
        f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()
    )


HEADERS = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


def test_a_download_that_drips_is_given_up(
    serve: Callable[[Send], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download_module, "PATIENCE", 1.0)
    url = serve(dripping(b"x", HEADERS))
    began = time.monotonic()
    with pytest.raises(SourceError, match=r"less than 1,024 bytes a second.*--from") as raised:
        download(url, tmp_path / "file")
    assert url in str(raised.value)
    assert time.monotonic() - began < 5
    assert (tmp_path / "file.part").stat().st_size > 0


def test_a_download_whose_headers_drip_is_given_up(
    serve: Callable[[Send], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download_module, "BEGIN", 1.0)
    began = time.monotonic()
    with pytest.raises(SourceError, match=r"sent no file within 1 s.*--from"):
        download(serve(dripping(b"X-Header: x\r\n", HEADERS[:17])), tmp_path / "file")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("length", ["Content-Length: 3000000\r\n", ""])
def test_a_download_without_end_is_refused(
    serve: Callable[[Send], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: str
) -> None:
    monkeypatch.setattr(download_module, "LARGEST", 1_000_000)

    def send(write: Callable[[bytes], None]) -> None:
        write(f"HTTP/1.1 200 OK\r\n{length}\r\n".encode())
        while True:
            write(bytes(100_000))

    with pytest.raises(SourceError, match=r"sends more than 1,000,000 bytes.*--from"):
        download(serve(send), tmp_path / "file")
    assert not (tmp_path / "file.part").exists()


def test_redirections_are_counted(serve: Callable[[Send], str], tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="Exceeded 5 redirects"):
        download(serve(redirecting("/file")), tmp_path / "file")


JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/sparql-results+json\r\n\r\n"


@pytest.mark.parametrize("reply", [dripping(b" ", JSON), dripping(b"X-Header: x\r\n", JSON[:17])])
def test_an_answer_that_drips_is_given_up(serve: Callable[[Send], str], reply: Send) -> None:
    endpoint = SparqlEndpoint(serve(reply), limits=QueryLimits(timeout=1.0, attempts=1, pause=0.0))
    began = time.monotonic()
    with pytest.raises(QueryTimeout, match=r"within 1 s.*limits=QueryLimits\(timeout="):
        endpoint.ask(QUERY)
    assert time.monotonic() - began < 5


def test_an_answer_without_end_is_refused(serve: Callable[[Send], str]) -> None:
    def send(write: Callable[[bytes], None]) -> None:
        write(JSON)
        while True:
            write(b" " * 100_000)

    limits = QueryLimits(max_bytes=1_000_000, attempts=1, pause=0.0)
    with pytest.raises(QueryTimeout, match=r"1,000,000 bytes.*limits=QueryLimits\(max_bytes="):
        SparqlEndpoint(serve(send), limits=limits).ask(QUERY)


def test_within_passes_results_and_errors_on() -> None:
    assert within(5, int, "7") == 7
    with pytest.raises(ValueError, match="invalid literal"):
        within(5, int, "x")
    with pytest.raises(TimeoutError, match="longer than"):
        within(0.05, time.sleep, 1)
