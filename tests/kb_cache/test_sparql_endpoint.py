"""Asking endpoints that refuse, stall, lie and break off, on the loopback interface."""

from __future__ import annotations

import gzip
import re
import ssl
import threading
import urllib.error
import urllib.request
from urllib.parse import urlencode

import pytest

from kb_cache.wikidata.sparql import endpoint as endpoint_module
from kb_cache.wikidata.sparql import endpoint as endpoints
from kb_cache.wikidata.sparql.answers import slug
from kb_cache.wikidata.sparql.endpoint import WIKIDATA, SparqlEndpoint
from kb_cache.wikidata.sparql.results import MalformedAnswer
from kb_cache.wikidata.sparql.types import QueryTimeout, Term, prepared
from kbprobe.errors import UsageError
from kbprobe.http import ServerError, checked_url
from tests.kb_cache.sparql_server import (
    GOOD,
    JSON,
    FakeTime,
    Reply,
    ServerScript,
    endpoint,
    results,
    serving,
)

QUERY = prepared("SELECT ?x { ?x a ?y }")
ROWS = ((Term("http://example.org/a"),), (Term("http://example.org/b"),))
TRACE = b"\njava.util.concurrent.TimeoutException\n\tat java.util.concurrent.FutureTask.get\n"


def test_what_is_sent(server: ServerScript, fake_time: FakeTime) -> None:
    found = SparqlEndpoint(server.url, contact="me@example.org").ask(QUERY)
    assert found.rows == ROWS
    (request,) = server.asked
    assert (request.method, request.query) == ("GET", QUERY)
    assert request.headers["Accept"] == JSON
    assert re.match(
        r"kbprobe/\S+ \(me@example\.org\) SPARQLWrapper/", request.headers["User-Agent"]
    )


def test_long_queries_are_posted(server: ServerScript, fake_time: FakeTime) -> None:
    query = prepared("SELECT ?x { VALUES ?x { " + "wd:Q42 " * 1000 + "} }")
    endpoint(server).ask(query)
    (request,) = server.asked
    assert (request.method, request.query) == ("POST", query)
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"


def test_gzip_is_understood(server: ServerScript, fake_time: FakeTime) -> None:
    server.reply_with(Reply(gzip.compress(GOOD), headers={"Content-Encoding": "gzip"}))
    assert endpoint(server).ask(QUERY).rows == ROWS


@pytest.mark.parametrize("word", ["delete", "insert data", "describe"])
def test_words_in_strings_do_not_change_what_is_asked(
    server: ServerScript, fake_time: FakeTime, word: str
) -> None:
    query = prepared(f'SELECT ?x {{ ?x rdfs:label "{word}" }}')
    endpoint(server).ask(query)
    assert server.asked[0].query == query


def test_only_select(server: ServerScript, fake_time: FakeTime) -> None:
    for query in ("ASK { ?a ?b ?c }", "INSERT DATA { wd:Q1 wdt:P1 wd:Q2 }", "CONSTRUCT WHERE {}"):
        with pytest.raises(UsageError, match=f"not: {query[:3]}"):
            endpoint(server).ask(prepared(query))
    assert not server.asked


@pytest.mark.parametrize(
    "url",
    ["", "query.wikidata.org", "ftp://example.org/", "file:///etc/passwd", "http://", "http://[::1",
     "http://a b/", "http://x/\r\nEvil: 1", "http://x/?q=1", "http://x/#f", "http://u:p@x/",
     "http://x:port/", "http://x:99999/"],
)  # fmt: skip
def test_addresses_that_will_not_do(url: str) -> None:
    with pytest.raises(UsageError):
        checked_url(url)


def test_one_address_one_slug() -> None:
    assert checked_url("HTTPS://Query.Wikidata.org:443/sparql") == WIKIDATA
    urls = ["http://x/a-b", "http://x/a/b", "http://x/a_b", "https://x/a-b", "http://[::1]:8/a"]
    slugs = {slug(url) for url in urls}
    assert len(slugs) == len(urls)
    assert all(re.fullmatch(r"[A-Za-z0-9.-]+", slug) for slug in slugs)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, b'SPARQL-QUERY: queryStr=SELECT\njava.lang.Exception: Lexical error at line 1',
         "java.lang.Exception: Lexical error at line 1. It could not read the query"),
        (400, b'{"exception": "Parse error", "status": "ERROR"}', "400 Bad Request: Parse error. "),
        (401, b"", "401 Unauthorized. It does not let us ask"),
        (403, b"<html><head><style>x{}</style></head>You are banned", "You are banned"),
        (404, b"\xff\xfe\x00", "address of a SPARQL 1.1 endpoint"),
        (410, b"x" * 10**6, r"xxx\.\.\.\. "),
        (413, b"", "too long"),
        (414, b"", "too long"),
    ],
)  # fmt: skip
def test_errors_that_are_final(
    server: ServerScript, fake_time: FakeTime, status: int, body: bytes, message: str
) -> None:
    server.reply_with(Reply(body, status))
    with pytest.raises(ServerError, match=message) as caught:
        endpoint(server).ask(QUERY)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"upstream request timeout", 504),
        Reply(b"SPARQL-QUERY: x" + TRACE, 500),
        Reply(GOOD[:60] + TRACE),
        Reply(b'{"exception": "Operation timed out.", "status": "ERROR"}'),
        Reply(TRACE, kind="text/plain"),
        Reply(headers={"X-SPARQL-MaxRows": "10000"}),
    ],
)
def test_too_much(server: ServerScript, fake_time: FakeTime, reply: Reply) -> None:
    server.reply_with(reply)
    with pytest.raises(QueryTimeout, match="less at a time"):
        endpoint(server).ask(QUERY)
    assert len(server.asked) == 1


HEADER = b"HTTP/1.1 200 OK\r\nContent-Type: application/sparql-results+json\r\n"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"<!doctype html><title>Log in</title>", kind="text/html"),
        Reply(kind="text/html"),
        Reply(kind=None),
        Reply(b""),
        Reply(status=204, body=b""),
        Reply(status=206),
        Reply(GOOD[:-1]),
        Reply(GOOD + b"!!!!>># An error has occurred while exporting the query result"),
        Reply(GOOD[:50] + b"\njava.lang.NullPointerException\n\tat x"),
        Reply(b'{"head": {}, "boolean": true}'),
        Reply(length=len(GOOD) + 10),
        Reply(length=len(GOOD) - 10),
        Reply(headers={"Content-Encoding": "gzip"}),
        Reply(gzip.compress(GOOD)[:-9], headers={"Content-Encoding": "gzip"}),
        Reply(gzip.compress(GOOD) + b"more", headers={"Content-Encoding": "gzip"}),
        Reply(headers={"Content-Encoding": "br"}),
        Reply(raw=HEADER + b"Transfer-Encoding: chunked\r\n\r\nfff\r\n" + GOOD),
        Reply(raw=HEADER + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + GOOD),
        Reply(raw=HEADER + b"Content-Length: many\r\n\r\n" + GOOD),
        Reply(raw=HEADER + b"X: " + b"y" * 70000 + b"\r\n\r\n" + GOOD),
        Reply(raw=b"SSH-2.0-OpenSSH_9.6\r\n"),
        Reply(raw=b"HTTP/1.1 twohundred OK\r\n\r\n" + GOOD),
        Reply(status=302, headers={"Location": "file:///etc/passwd"}),
        Reply(status=302, headers={"Location": "ftp://127.0.0.1/x"}),
        Reply(status=302, headers={"Location": "http://[::1/x"}),
        Reply(status=302, headers={"Location": ""}),
        Reply(status=302),
    ],
)  # fmt: skip
def test_what_is_not_accepted(server: ServerScript, fake_time: FakeTime, reply: Reply) -> None:
    server.reply_with(reply)
    with pytest.raises((MalformedAnswer, ServerError)) as caught:
        endpoint(server, attempts=2).ask(QUERY)
    assert str(caught.value).isprintable()
    server.reply_with(reply, Reply())
    if not 300 <= reply.status < 400:
        assert endpoint(server, attempts=2).ask(QUERY).rows == ROWS


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("posted", [False, True])
def test_only_answers_to_the_same_query_come_from_elsewhere(
    server: ServerScript, fake_time: FakeTime, status: int, posted: bool
) -> None:
    query = prepared("SELECT ?x { VALUES ?x { " + "wd:Q42 " * (1000 if posted else 1) + "} }")
    with serving() as other:
        for same in (True, False):
            target = f"{other.url}?{urlencode({'query': query})}" if same else other.url
            server.reply_with(Reply(b"", status, {"Location": target}))
            if same and not posted:
                assert endpoint(server).ask(query).rows == ROWS
            elif not same:
                with pytest.raises(ServerError, match="address"):
                    endpoint(server).ask(query)


def test_circular_redirections(server: ServerScript, fake_time: FakeTime) -> None:
    server.reply_with(Reply(b"", 302, {"Location": server.url}))
    with pytest.raises(ServerError, match="302"):
        endpoint(server).ask(QUERY)
    assert len(server.asked) < 10


@pytest.mark.parametrize("zipped", [False, True])
def test_answers_have_a_longest_length(
    server: ServerScript, fake_time: FakeTime, zipped: bool
) -> None:
    body = results(*[{"x": {"type": "literal", "value": "x" * 1000}}] * 2000)
    headers = {"Content-Encoding": "gzip"} if zipped else {}
    server.reply_with(Reply(gzip.compress(body) if zipped else body, headers=headers))
    with pytest.raises(QueryTimeout, match="longer than the 100,000 bytes"):
        endpoint(server, max_bytes=100_000).ask(QUERY)
    assert len(endpoint(server).ask(QUERY).rows) == 2000


@pytest.mark.parametrize("status", [302, 400, 404, 429, 500, 503])
def test_of_errors_the_beginning_is_read(server: ServerScript, status: int) -> None:
    server.reply_with(Reply(b"x" * 5_000_000, status))
    response = endpoints.send(server.url, QUERY, "", timeout=10, max_bytes=10**9)
    assert (response.status, set(response.body)) == (status, {ord("x")})
    assert len(response.body) < 500_000


def test_other_threads_send_as_before(
    server: ServerScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.reply_with(Reply(seconds=0.2), Reply(b"plain" * 100))
    before = urllib.request.build_opener()
    monkeypatch.setattr(urllib.request, "_opener", before)
    asking = threading.Thread(target=endpoints.send, args=(server.url, QUERY, "", 10, 200))
    asking.start()
    while not server.asked:
        assert asking.is_alive()
    with urllib.request.urlopen(server.url, timeout=10) as response:
        assert response.read() == b"plain" * 100, "more than the limit of the other thread"
    asking.join()
    assert urllib.request._opener is before  # type: ignore[attr-defined]


def test_a_server_that_stalls(server: ServerScript, fake_time: FakeTime) -> None:
    server.reply_with(Reply(stalls=True))
    with pytest.raises(QueryTimeout, match="no answer within"):
        endpoint(server, timeout=1).ask(QUERY)


def test_nobody_there(server: ServerScript, fake_time: FakeTime) -> None:
    nowhere = SparqlEndpoint("http://127.0.0.1:9/sparql")
    with pytest.raises(ServerError, match=r"cannot be reached.*--offline"):
        nowhere.ask(QUERY)
    assert nowhere.requests == 5


def test_certificates_are_not_negotiable(
    server: ServerScript, fake_time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def distrust(*args: object) -> None:
        tried.append(args)
        raise urllib.error.URLError(ssl.SSLCertVerificationError("self-signed certificate"))

    monkeypatch.setattr(endpoint_module, "send", distrust)
    with pytest.raises(ServerError, match="SSLCertVerificationError"):
        endpoint(server).ask(QUERY)
    assert len(tried) == 1


def test_answers_that_come_unencrypted_are_refused() -> None:
    query = urlencode({"query": QUERY})
    endpoints._check_redirection(WIKIDATA, f"https://example.org/sparql?{query}", QUERY)
    with pytest.raises(ServerError, match="not encrypted"):
        endpoints._check_redirection(WIKIDATA, f"http://example.org/sparql?{query}", QUERY)


@pytest.mark.parametrize("status", [400, 500, 502])
def test_errors_may_be_compressed(server: ServerScript, fake_time: FakeTime, status: int) -> None:
    headers = {"Content-Encoding": "gzip"}
    server.reply_with(Reply(gzip.compress(b"it's \\ \xc3\xa9"), status, headers))
    with pytest.raises(ServerError, match=r": it's \\ é\. "):
        endpoint(server, attempts=1).ask(QUERY)
