"""The request policy of an endpoint's client: contact, turns, pauses, retries, budgets."""

from __future__ import annotations

import multiprocessing
import threading
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from kb_cache.wikidata.sparql.endpoint import (
    WIKIDATA,
    QueryLimits,
    SparqlEndpoint,
    postpone,
    turn_file,
)
from kb_cache.wikidata.sparql.types import Term, prepared
from kbprobe.errors import UsageError
from kbprobe.files.locks import locked
from kbprobe.http import BudgetSpent, ServerError, retry_after
from tests.kb_cache.sparql_server import FakeTime, Reply, ServerScript, endpoint

QUERY = prepared("SELECT ?x { ?x a ?y }")
ROWS = ((Term("http://example.org/a"),), (Term("http://example.org/b"),))


@pytest.mark.parametrize(
    "contact",
    ["", "nobody", "me@example.org\r\nX-Evil: 1", "me@example.org\n", "a b@c.de", "ä@example.org",
     "ftp://example.org", "me@example.org) evil (", "http://"],
)  # fmt: skip
def test_public_endpoints_need_a_contact(monkeypatch: pytest.MonkeyPatch, contact: str) -> None:
    monkeypatch.setenv("KBPROBE_CONTACT", contact)
    if contact == "me@example.org\n":  # white space around it does no harm
        assert SparqlEndpoint(WIKIDATA).contact == "me@example.org"
        return
    with pytest.raises(UsageError, match="KBPROBE_CONTACT"):
        SparqlEndpoint(WIKIDATA)


def test_pause_between_requests(server: ServerScript, fake_time: FakeTime) -> None:
    for _ in range(3):  # the pause holds from one session to the next
        endpoint(server, pause=2.0).ask(QUERY)
    assert fake_time.slept == [2.0, 2.0]


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_obeyed(server: ServerScript, fake_time: FakeTime, status: int) -> None:
    date = format_datetime(datetime.fromtimestamp(fake_time.seconds + 100, UTC), usegmt=True)
    server.reply_with(
        Reply(b"slow down", status, {"Retry-After": "42"}),
        Reply(b"slow down", status, {"Retry-After": date}),
        Reply(),
    )
    assert endpoint(server, pause=0.0).ask(QUERY).rows == ROWS
    assert fake_time.slept == [42.0, 58.0]


def test_retry_after_binds_other_sessions(server: ServerScript, fake_time: FakeTime) -> None:
    server.reply_with(Reply(b"", 429, {"Retry-After": "200"}), Reply())
    with pytest.raises(ServerError, match="429"):
        endpoint(server).ask(QUERY, attempts=1)
    assert endpoint(server).ask(QUERY).rows == ROWS
    assert fake_time.slept == [200.0]


def test_retry_after_beyond_the_longest_wait(server: ServerScript, fake_time: FakeTime) -> None:
    server.reply_with(Reply(b"", 429, {"Retry-After": "4000"}))
    for _ in range(2):  # the second is not even asked
        with pytest.raises(ServerError, match=r"wait 4000 s.*is kept"):
            endpoint(server).ask(QUERY)
    assert (len(server.asked), fake_time.slept) == (1, [])


def test_retry_after_in_words() -> None:
    now = 1_800_000_000.0
    assert retry_after("120", now) == 120
    assert retry_after(" 0 ", now) == 0
    ahead = datetime.fromtimestamp(now + 60, UTC)
    assert retry_after(format_datetime(ahead, usegmt=True), now) == 60
    assert retry_after(ahead.strftime("%A, %d-%b-%y %H:%M:%S GMT"), now) == 60
    assert retry_after(ahead.strftime("%a %b %d %H:%M:%S %Y"), now) == 60
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now) == 0
    for said in (
        "",
        "soon",
        "-5",
        "1e3",
        "12.5",
        "9" * 30,
        "Wed, 99 Oct 2015 07:28:00 GMT",
        "\x00",
    ):
        assert retry_after(said, now) is None


def test_budget_of_requests(server: ServerScript, fake_time: FakeTime) -> None:
    asked = endpoint(server, requests=2)
    asked.ask(QUERY)
    asked.ask(QUERY)
    with pytest.raises(BudgetSpent, match=r"has made 2 requests.*What has been answered is kept"):
        asked.ask(QUERY)
    assert len(server.asked) == 2


def test_budget_of_seconds(server: ServerScript, fake_time: FakeTime) -> None:
    fake_time.tick = 1.0
    asked = endpoint(server, seconds=3.0)
    while asked.seconds < 3.0:
        asked.ask(QUERY)
    with pytest.raises(BudgetSpent, match=r"spent \d+ s"):
        asked.ask(QUERY)
    assert 1 <= len(server.asked) <= 3


def test_no_hammering(server: ServerScript, fake_time: FakeTime) -> None:
    server.reply_with(Reply(b"no", 403))
    asked = endpoint(server, failures=3)
    for _ in range(3):
        with pytest.raises(ServerError, match="403"):
            asked.ask(QUERY)
    server.reply_with(Reply())
    with pytest.raises(ServerError, match=r"3 queries in a row failed.*not queried again"):
        asked.ask(QUERY)
    assert len(server.asked) == 3


def test_failures_in_a_row_are_forgiven_by_an_answer(
    server: ServerScript, fake_time: FakeTime
) -> None:
    asked = endpoint(server, failures=2)
    for _ in range(3):
        server.reply_with(Reply(b"no", 403))
        with pytest.raises(ServerError, match="403"):
            asked.ask(QUERY)
        server.reply_with(Reply())
        asked.ask(QUERY)


def test_one_request_at_a_time(server: ServerScript, fake_time: FakeTime) -> None:
    """Another session, of this process or another, waits until the endpoint is free."""
    done = threading.Event()

    def ask() -> None:
        endpoint(server).ask(QUERY)
        done.set()

    with locked(turn_file(server.url, "lock"), "asking"):
        threading.Thread(target=ask, daemon=True).start()
        assert not done.wait(0.3)
        assert not server.asked
    assert done.wait(10)


def _ask_slowly(url: str) -> None:
    SparqlEndpoint(url, limits=QueryLimits(pause=0.0)).ask(QUERY)


@pytest.mark.slow
def test_processes_take_turns(server: ServerScript) -> None:
    server.reply_with(Reply(seconds=0.1))
    spawn = multiprocessing.get_context("spawn")
    others = [spawn.Process(target=_ask_slowly, args=(server.url,)) for _ in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join(30)
    assert [other.exitcode for other in others] == [0, 0]
    assert (len(server.asked), server.together) == (2, 1)


def test_a_clock_that_was_wrong_does_not_stop_us(server: ServerScript, fake_time: FakeTime) -> None:
    postpone(server.url, fake_time.seconds + 10 * 365 * 86400)
    assert endpoint(server).ask(QUERY).rows == ROWS
    assert fake_time.slept == []
