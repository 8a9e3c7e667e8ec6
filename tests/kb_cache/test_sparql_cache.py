"""Answers on disk: asked once, kept whole or not at all, used offline, shown and removed."""

from __future__ import annotations

import gzip
import json
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb_cache.wikidata.sparql import answers as sparql_answers
from kb_cache.wikidata.sparql.answers import EndpointAnswers
from kb_cache.wikidata.sparql.endpoint import WIKIDATA, QueryLimits, SparqlEndpoint
from kb_cache.wikidata.sparql.session import CachedEndpoint, NotCached, QuerySession, select_values
from kb_cache.wikidata.sparql.types import (
    QueryTimeout,
    Term,
    answer_digest,
    prepared,
    query_digest,
)
from kbprobe.errors import CacheError, SourceError, UsageError
from kbprobe.http import ServerError
from tests.kb_cache.conftest import REPOSITORY, RunCli
from tests.kb_cache.sparql_server import GOOD, Reply, ServerScript, results, serving

pytestmark = pytest.mark.usefixtures("fake_time")

QUERY = "\n  SELECT ?x  # all\n  WHERE { ?x a ?y }"
ROWS = ((Term("http://example.org/a"),), (Term("http://example.org/b"),))
DATE = results({"date": {"type": "literal", "value": "2026-11-20T10:00:00Z"}}, variables=["date"])
NOTHING = results(variables=["date"])


def source(server: ServerScript, **options: Any) -> CachedEndpoint:
    options.setdefault("now", lambda: "2026-11-21T10:00:00Z")
    endpoint = SparqlEndpoint(server.url, limits=QueryLimits(pause=0.0))
    return CachedEndpoint(endpoint, **options)


def files(server: ServerScript) -> list[Path]:
    """Everything in the endpoint's folder."""
    folder = sparql_answers.answer_path(server.url, "").parent
    return sorted(folder.iterdir()) if folder.is_dir() else []


def test_each_query_is_asked_once(server: ServerScript) -> None:
    first = source(server)
    assert not first.has(QUERY)
    assert first.select(QUERY).rows == ROWS
    assert first.select("SELECT ?x WHERE { ?x a ?y }").rows == ROWS
    assert source(server).select(QUERY).rows == ROWS
    assert server.queries == [prepared(QUERY)]
    assert source(server).has(QUERY)


def test_what_is_kept(server: ServerScript) -> None:
    server.reply_with(Reply(DATE), Reply())
    source(server).select(QUERY)
    (path,) = files(server)
    assert path.name == f"{query_digest(QUERY)}.json.gz"
    said = json.loads(gzip.decompress(path.read_bytes()))
    digest = said.pop("sha256")
    rows = [[list(term) for term in row] for row in ROWS]
    assert said == {
        "format": 1, "endpoint": server.url, "query": prepared(QUERY), "rows": 2,
        "date": "2026-11-21T10:00:00Z", "version": "2026-11-20T10:00:00Z", "answer": [["x"], rows],
    }  # fmt: skip
    assert digest == answer_digest(sparql_answers.read(path).answer)


def test_the_same_answer_makes_the_same_file(server: ServerScript) -> None:
    source(server).select(QUERY)
    (path,) = files(server)
    before = path.read_bytes()
    path.unlink()
    source(server).select(QUERY)
    assert path.read_bytes() == before


def test_dates_and_versions_are_those_of_the_answers(server: ServerScript) -> None:
    server.reply_with(Reply(DATE), Reply())
    source(server).select(QUERY)
    server.reply_with(Reply(b"", 500))
    later = QuerySession(source(server, now=lambda: "2027-01-01T00:00:00Z"))
    later.select(QUERY)
    assert later.queries[0].date == "2026-11-21T10:00:00Z"
    assert later.source.version == "2026-11-20T10:00:00Z"
    server.reply_with(Reply(DATE.replace(b"2026", b"2027")), Reply())
    later.select("SELECT ?x { ?x ?y wd:Q1 }")
    assert later.source.version == "2026-11-20T10:00:00Z to 2027-11-20T10:00:00Z"


def test_a_version_is_never_needed(server: ServerScript) -> None:
    server.reply_with(Reply(b"no", 400), Reply())
    found = source(server)
    assert found.select(QUERY).rows == ROWS
    assert found.version == ""
    server.reply_with(Reply(DATE))
    assert source(server).version == "2026-11-20T10:00:00Z", "asked before any answer is used"
    assert source(server, offline=True).version == ""


def test_offline_opens_no_socket(server: ServerScript, monkeypatch: pytest.MonkeyPatch) -> None:
    source(server).select(QUERY)

    def refuse(*args: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    offline = CachedEndpoint(server.url, offline=True)
    assert offline.select(QUERY).rows == ROWS
    with pytest.raises(NotCached) as caught:
        offline.select("\n SELECT ?z\n { ?z ?z ?z }")
    digest = query_digest("SELECT ?z { ?z ?z ?z }")
    for part in (server.url, "'SELECT ?z'", digest[:12], "without --offline", "KBPROBE_CACHE"):
        assert part in str(caught.value)


def test_a_build_from_the_cache_needs_no_contact(server: ServerScript) -> None:
    public = CachedEndpoint(WIKIDATA)
    assert public.version == ""
    assert public.name == "wikidata-query.wikidata.org"
    with pytest.raises(UsageError, match="KBPROBE_CONTACT"):
        public.select(QUERY)
    kept = sparql_answers.CachedAnswer(WIKIDATA, prepared(QUERY), "", source(server).select(QUERY))
    sparql_answers.write(sparql_answers.answer_path(WIKIDATA, query_digest(QUERY)), kept)
    assert public.select(QUERY).rows == ROWS


def test_refresh_asks_once_more(server: ServerScript) -> None:
    source(server).select(QUERY)
    server.reply_with(Reply(NOTHING), Reply(results()))
    fresh = source(server, refresh=True)
    assert not fresh.has(QUERY)
    for _ in range(2):
        assert fresh.select(QUERY).rows == ()
    assert len(server.queries) == 2
    assert source(server, offline=True).select(QUERY).rows == ()


def test_a_failed_refresh_leaves_the_old_answer(server: ServerScript) -> None:
    source(server).select(QUERY)
    server.reply_with(Reply(b"no", 403))
    with pytest.raises(ServerError):
        source(server, refresh=True).select(QUERY)
    assert source(server).select(QUERY).rows == ROWS


def test_endpoints_do_not_share_answers(server: ServerScript) -> None:
    source(server).select(QUERY)
    with serving() as other:
        other.reply_with(Reply(NOTHING), Reply(results()))
        assert source(other).select(QUERY).rows == ()
    assert source(server).select(QUERY).rows == ROWS


def answers_there(server: ServerScript) -> list[Path]:
    """The answers alone; a writer may have been killed over another."""
    return [path for path in files(server) if not path.name.startswith(".")]


def changed(key: str, value: Any) -> Any:
    def change(content: bytes) -> bytes:
        return gzip.compress(
            json.dumps(json.loads(gzip.decompress(content)) | {key: value}).encode()
        )

    return change


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-5],
        lambda content: content[:40] + b"????" + content[44:],
        lambda content: gzip.compress(b"{}"),
        lambda content: gzip.compress(b"[" * 100_000),
        lambda content: gzip.compress(b"\xff"),
        changed("format", 2),
        changed("rows", 3),
        changed("sha256", "0" * 64),
        changed("query", "SELECT ?another {}"),
        changed("endpoint", "http://example.org/sparql"),
        changed("endpoint", 7),
        changed("answer", [["x"], [[["http://example.org/c", "uri", "", ""]]]]),
        changed("answer", [["x"], [[["a", "uri", "", "", ""]]]]),
        changed("answer", 7),
        changed("answer", [[7], []]),
    ],
)
def test_damaged_files_count_as_missing(
    server: ServerScript, caplog: pytest.LogCaptureFixture, damage: Any
) -> None:
    source(server).select(QUERY)
    (path,) = files(server)
    sound = path.read_bytes()
    path.write_bytes(damage(sound))
    with pytest.raises(NotCached, match=r"is damaged.*SELECT") as caught:
        source(server, offline=True).select(QUERY)
    assert str(path) in str(caught.value)
    (damage,) = EndpointAnswers(path.parent).damage()
    assert damage.startswith(f"{path.name}: it")
    with caplog.at_level(logging.WARNING):
        assert source(server).select(QUERY).rows == ROWS
    assert "asking again" in caplog.text
    assert path.read_bytes() == sound


def test_a_cache_that_cannot_be_written(server: ServerScript, cache: Path) -> None:
    cache.mkdir()
    (cache / "sparql").write_text("a file is in the way")
    with pytest.raises(CacheError, match="KBPROBE_CACHE"):
        source(server).select(QUERY)


BAD = [
    Reply(GOOD[:-1]),
    Reply(GOOD[:40] + b"\njava.util.concurrent.TimeoutException"),
    Reply(b"<html>", kind="text/html"),
    Reply(b'{"exception": "no"}'),
    Reply(length=len(GOOD) + 1),
    Reply(GOOD, 500),
    Reply(GOOD, 203),
    Reply(raw=b""),
]


@pytest.mark.parametrize("bad", BAD)
def test_nothing_of_a_bad_answer_is_kept(server: ServerScript, bad: Reply) -> None:
    server.reply_with(Reply(NOTHING), bad)
    with pytest.raises(SourceError):
        source(server).select(QUERY)
    assert files(server) == []


headers = st.dictionaries(
    st.sampled_from(
        [
            "Retry-After",
            "Content-Encoding",
            "Location",
            "X-Y",
            "Transfer-Encoding",
            "Content-Length",
        ]
    ),
    st.one_of(
        st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=10),
        st.sampled_from(["gzip", "chunked", "0", "999999999999", "/", "http://[", "-1"]),
    ),
    max_size=2,
)


@pytest.mark.slow
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.one_of(st.just(200), st.integers(100, 599)),
    headers,
    st.sampled_from(["application/sparql-results+json", "text/html", "x", None]),
    st.integers(0, 2**32),
)
def test_anything_over_http(
    server: ServerScript, status: int, sent: dict[str, str], kind: str | None, seed: int
) -> None:
    """Status, headers and body at random: an answer that is right, or an error and no file."""
    chance = random.Random(seed)
    where = chance.randrange(len(GOOD))
    body = chance.choice([GOOD, GOOD[:where], GOOD[:where] + chance.randbytes(3) + GOOD[where:]])
    server.reply_with(Reply(NOTHING), Reply(body, status, sent, kind))
    endpoint = SparqlEndpoint(server.url, limits=QueryLimits(pause=0, attempts=2))
    query = f"SELECT ?x {{ ?x ?y {seed} }}"
    try:
        found = CachedEndpoint(endpoint, refresh=True).select(query)
    except SourceError as error:
        assert str(error).isprintable()  # noqa: PT017
        assert files(server) == []
    else:
        assert (status, len(found.rows)) == (200, 2)
        (path,) = files(server)
        path.unlink()
    for mark in (Path(os.environ["KBPROBE_CACHE"]) / "locks").glob("*.next"):
        mark.unlink()  # pauses of one example do not bind the next


SLOW_RUN = """
import sys
from kb_cache.wikidata.sparql.session import select_values
from kb_cache.wikidata.sparql.session import CachedEndpoint
from kb_cache.wikidata.sparql.endpoint import SparqlEndpoint, QueryLimits
films = [f"Q{n}" for n in range(1, 41)]
source = CachedEndpoint(SparqlEndpoint(sys.argv[1], limits=QueryLimits(pause=0.0)))
select_values(source, "SELECT ?x { $values ?x a ?y }", "x", films, chunk=1)
print(len(films))
"""


@pytest.mark.slow
@pytest.mark.posix
def test_a_killed_run_goes_on(server: ServerScript, cache: Path) -> None:
    server.reply_with(Reply(NOTHING), Reply(seconds=0.02))

    def run() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", SLOW_RUN, server.url],
            cwd=REPOSITORY, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"KBPROBE_CACHE": str(cache), "PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip

    killed = run()
    deadline = time.monotonic() + 30
    while len(answers_there(server)) < 10 and time.monotonic() < deadline:
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    time.sleep(0.1)  # for the server to note what was asked last
    kept = answers_there(server)
    assert 10 <= len(kept) < 40
    assert EndpointAnswers(kept[0].parent).damage() == []
    had = {sparql_answers.read(path).query for path in kept}
    before = len(server.queries)
    printed, _ = run().communicate(timeout=60)
    assert printed == "40\n"
    again = server.queries[before:]
    assert len(again) == len(set(again)) == 40 - len(kept)
    assert not had & set(again)


def test_halves_are_found_offline(server: ServerScript) -> None:
    """A chunk that was too much is answered from its halves, which is what the cache has."""
    server.reply_with(Reply(NOTHING), Reply(b"", 504), Reply())
    query, films = "SELECT ?x { $values ?x a ?y }", ["Q1", "Q2", "Q3"]
    online = QuerySession(source(server))
    found = select_values(online, query, "x", films)
    assert len(server.queries) == 3
    offline = QuerySession(CachedEndpoint(server.url, offline=True))
    assert select_values(offline, query, "x", films) == found
    assert offline.digest == online.digest
    assert offline.queries == online.queries
    (sparql_answers.answer_path(server.url, online.queries[1].query)).unlink()
    with pytest.raises(NotCached, match=online.queries[1].query[:12]):
        select_values(QuerySession(CachedEndpoint(server.url, offline=True)), query, "x", films)


def test_timeouts_pass_through(server: ServerScript) -> None:
    server.reply_with(Reply(NOTHING), Reply(b"", 504))
    with pytest.raises(QueryTimeout):
        source(server).select(QUERY)


def test_commands(server: ServerScript, run_cli: RunCli) -> None:
    source(server).select(QUERY)
    source(server).select("SELECT ?x { ?x ?y wd:Q1 }")
    old, new = files(server)
    os.utime(old, (time.time() - 5 * 86400,) * 2)
    name = f"sparql-{old.parent.name}"

    line = next(line for line in run_cli("list").stdout.splitlines() if line.startswith(name))
    shown = ["-", "answers", "2", "answers", "0.0", "MB", "new", "to", "5", "days", "cache"]
    assert line.split()[1:] == shown
    (row,) = (row for row in json.loads(run_cli("list", "--json").stdout) if row["name"] == name)
    assert (row["rows"], row["kind"], row["endpoint"]) == ({"answers": 2}, "answers", server.url)
    assert row["bytes"] == old.stat().st_size + new.stat().st_size
    assert row["oldest"] < row["created"]

    assert f"{name}: sound" in run_cli("verify").stdout
    new.write_bytes(new.read_bytes()[:-9])
    result = run_cli("verify", name)
    assert (result.returncode, new.name in result.stderr) == (1, True)
    assert run_cli("verify", name, "--repair").returncode == 0
    assert files(server) == [old]

    other = old.parent.parent / "other-00000000"
    other.mkdir()
    (old.parent / f".{'0' * 64}.json.gz.new-kbprobe-00000000").write_text("a dying writer's")
    assert run_cli("clear", name, "--yes").stdout == f"{name}: removed\n"
    assert not old.parent.exists()
    source(server).select(QUERY)
    assert name in run_cli("clear", "--all", input="n\n").stdout
    assert files(server)
    assert run_cli("clear", "--all", "--yes").returncode == 0
    assert list(sparql_answers.answers_dir().iterdir()) == [other]  # not an endpoint's
