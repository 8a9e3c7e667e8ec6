"""What clients of servers have in common: retries, sessions, and what messages show."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest
from requests import PreparedRequest, Response

from kbprobe.http import (
    Limits,
    ServerError,
    is_allowed_redirect,
    open_session,
    printable,
    retried,
    within,
)

LIMITS = Limits(attempts=3, backoff=2.0, longest_wait=60.0)


class Server:
    """Fails with each error in turn, and then answers 7."""

    def __init__(self, *errors: ServerError) -> None:
        self.errors, self.paused = list(errors), list[float]()

    def attempt(self) -> int:
        if self.errors:
            raise self.errors.pop(0)
        return 7

    def ask(self, again: str = "") -> int:
        return retried(self.attempt, LIMITS, lambda error, wait: self.paused.append(wait), again)


def test_transient_errors_are_retried_with_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbprobe.http.random.random", lambda: 0.5)
    busy = partial(ServerError, "busy", 503, transient=True)
    server = Server(busy(), busy(wait=30.0))
    assert (server.ask(), server.paused) == (7, [2.0, 30.0])


@pytest.mark.parametrize(
    ("errors", "attempts", "message"),
    [
        ([ServerError("no", 403)], 1, r"^no$"),
        ([ServerError("no", 403, wait=99.0)], 1, r"^no$"),
        ([ServerError("later", 429, 61.0, transient=True)], 1, "^later It asks to wait 61 s. Go$"),
        ([ServerError("oh", transient=True)] * 3, 3, r"^oh That was attempt 3 of as many. Go$"),
    ],
)
def test_the_last_error_is_raised(errors: list[ServerError], attempts: int, message: str) -> None:
    server = Server(*errors)
    with pytest.raises(ServerError, match=message):
        server.ask("Go")
    assert len(server.paused) == attempts - 1


def test_messages_show_no_credentials() -> None:
    said = "\n http://me:pass@host/ takes\x1b no s3cret\n more"
    assert printable(said, secret="s3cret") == "http://[...]@host/ takes no [key]"
    assert printable("s3cret" * 50, 20, "s3cret", "*") == "*" * 17 + "..."


@pytest.mark.parametrize(
    ("before", "target", "allowed"),
    [
        ("http://a/", "https://b/", True),
        ("https://a/", "http://a/", False),
        ("http://a/", "file:///etc/passwd", False),
        ("http://a/", "ftp://a/", False),
    ],
)
def test_redirections(before: str, target: str, allowed: bool) -> None:
    assert is_allowed_redirect(before, target) == allowed
    response = Response()
    response.status_code, response.url = 302, before
    response.headers["Location"] = target
    assert open_session(LIMITS).get_redirect_target(response) is None
    if allowed:
        assert open_session(LIMITS, 5).get_redirect_target(response) == target
    else:
        with pytest.raises(ValueError, match="which is not allowed"):
            open_session(LIMITS, 5).get_redirect_target(response)


def test_a_session_that_signs_takes_no_credentials_from_files() -> None:
    def sign(request: PreparedRequest) -> PreparedRequest:
        request.headers["Authorization"] = "Bearer key"
        return request

    session = open_session(Limits(attempts=1), proxies=False, sign=sign)
    assert (session.auth, session.trust_env) == (sign, False)
    assert session.headers["User-Agent"] == "kbprobe"
    assert session.get_adapter("https://a/").max_retries.total == 0  # type: ignore[attr-defined]


def test_a_thread_waits_for_its_own_calls_and_none_is_left_when_it_has_ended() -> None:
    before, used, errors = threading.active_count(), list[int](), list[str]()

    def fail() -> None:
        raise ValueError("no")

    def call() -> None:
        used.extend(within(60, threading.get_ident) for _ in range(2))
        for seconds, function in ((60, fail), (0.01, partial(time.sleep, 0.5))):
            try:
                within(seconds, function)
            except (ValueError, TimeoutError) as error:
                errors.append(str(error))
        used.append(within(60, threading.get_ident))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert used[0] == used[1] != used[2], "an abandoned thread calls nothing else"
    assert errors == ["no", "it took longer than 0 s"]
    assert within(60, int) == 0
    deadline = time.monotonic() + 60
    while threading.active_count() > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
