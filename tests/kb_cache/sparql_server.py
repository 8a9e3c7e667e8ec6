"""A SPARQL endpoint on the loopback interface with scripted responses, good and bad."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kb_cache.wikidata.sparql.endpoint import QueryLimits, SparqlEndpoint

JSON = "application/sparql-results+json"


def results(*rows: dict[str, dict[str, str]], variables: Sequence[str] = ("x",)) -> bytes:
    """The body of an answer."""
    said: dict[str, Any] = {"head": {"vars": list(variables)}, "results": {"bindings": list(rows)}}
    return json.dumps(said).encode()


def iri(value: str) -> dict[str, str]:
    return {"type": "uri", "value": value}


GOOD = results({"x": iri("http://example.org/a")}, {"x": iri("http://example.org/b")})


@dataclass
class Reply:
    """One response: its parts, or the very bytes of it.

    ``stalls`` holds the body back until the end of the test, ``seconds`` for so long.
    """

    body: bytes = GOOD
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    kind: str | None = JSON
    length: int | None = None
    raw: bytes | None = None
    stalls: bool = False
    seconds: float = 0.0


@dataclass
class Request:
    method: str
    query: str
    headers: dict[str, str]


@dataclass
class ServerScript:
    """The replies of a server, in turn; the last one again and again.

    ``together`` is the greatest number of requests that were there at once.
    """

    replies: list[Reply] = field(default_factory=lambda: [Reply()])
    asked: list[Request] = field(default_factory=list)
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)
    there: int = 0
    together: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reply_with(self, *replies: Reply) -> None:
        self.replies = list(replies)

    @property
    def queries(self) -> list[str]:
        """What was asked, but for the question of the data's version."""
        return [request.query for request in self.asked if "dateModified" not in request.query]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.reply(parse_qs(urlsplit(self.path).query))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(parse_qs(body.decode()))

    def reply(self, parameters: dict[str, list[str]]) -> None:
        script: ServerScript = self.server.script  # type: ignore[attr-defined]
        query = parameters.get("query", [""])[0]
        script.asked.append(Request(self.command, query, dict(self.headers)))
        reply = script.replies.pop(0) if len(script.replies) > 1 else script.replies[0]
        with script.lock:
            script.there += 1
            script.together = max(script.together, script.there)
        time.sleep(reply.seconds)
        with script.lock:
            script.there -= 1
        self.close_connection = True
        if reply.raw is not None:
            self.wfile.write(reply.raw)
            return
        self.send_response(reply.status)
        if reply.kind is not None:
            self.send_header("Content-Type", reply.kind)
        self.send_header(
            "Content-Length", str(len(reply.body) if reply.length is None else reply.length)
        )
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if reply.stalls:
            script.released.wait(10)
        self.wfile.write(reply.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # clients that hang up are what is tested


@contextmanager
def serving() -> Iterator[ServerScript]:
    """A server and its script."""
    server = Server(("127.0.0.1", 0), Handler)
    script = server.script = ServerScript()  # type: ignore[attr-defined]
    script.url = f"http://127.0.0.1:{server.server_port}/sparql"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield script
    finally:
        script.released.set()
        server.shutdown()
        server.server_close()


class FakeTime:
    """Stands in for the module ``time``: sleeping sets it forward, each look by ``tick``."""

    def __init__(self) -> None:
        self.seconds, self.tick = 1_800_000_000.0, 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    def time(self) -> float:
        self.seconds += self.tick
        return self.seconds

    monotonic = time


def endpoint(server: ServerScript, **limits: float) -> SparqlEndpoint:
    """A client of a server."""
    return SparqlEndpoint(server.url, limits=QueryLimits(**limits))  # type: ignore[arg-type]
