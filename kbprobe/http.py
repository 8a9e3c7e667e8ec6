"""Requests to servers: sessions, retries, deadlines, sizes, and what messages may show.

Connections are those of requests and urllib3. Every client of a server uses the same addresses
(`checked_url`), limits (`Limits`), errors (`ServerError`) and retries (`retried`), and shows what
a server sends with `printable`, which removes credentials.
"""

from __future__ import annotations

import ipaddress
import random
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar, cast
from urllib.parse import urljoin, urlsplit

from kbprobe.errors import KbprobeError, SourceError, UsageError
from kbprobe.terminal import without_credentials

if TYPE_CHECKING:
    from requests import PreparedRequest, Response, Session

USER_AGENT = "kbprobe"
TEMPORARY = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which the same request may succeed."""
MESSAGE = 200
"""Maximum number of characters shown of a server's message."""
_CHUNK = 1 << 16

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class ServerError(SourceError):
    """A server refuses a request, cannot be reached, or answers in a form that is not known.

    Attributes:
        status: that of HTTP; 0 if there was no response.
        wait: the seconds after which the server asks to be asked again; None if it does not say.
        transient: whether the same request may succeed later.
    """

    def __init__(
        self, message: str, status: int = 0, wait: float | None = None, transient: bool = False
    ) -> None:
        super().__init__(message)
        self.status, self.wait, self.transient = status, wait, transient

    def add(self, sentence: str) -> None:
        """Add a sentence to the message."""
        self.args = (f"{self} {sentence}",)


class RequestRefused(ServerError):
    """The server refuses a request, and would refuse it again.

    Attributes:
        said: the server's message.
        body: what it sent, with codes besides the message.
    """

    def __init__(self, message: str, status: int, said: str, body: str = "") -> None:
        super().__init__(message, status)
        self.said, self.body = said, body


class BudgetSpent(SourceError):
    """The next request would exceed the budget."""


class Stopped(KbprobeError):
    """Another request failed, so this one is not retried."""


@dataclass(frozen=True)
class Limits:
    """Limits on time, attempts and amount of requests to a server. Times are in seconds.

    Attributes:
        timeout: the time limit for a whole answer.
        attempts: the maximum number of attempts of a request, if another one may help.
        backoff: the pause before the second attempt, plus or minus half; doubled each time.
        longest_wait: the longest pause that a server may ask for; beyond it we give up.
        max_bytes: the maximum size of an answer.
        requests: the maximum number of requests, including repeated ones; None for any number.
    """

    timeout: float = 120.0
    attempts: int = 6
    backoff: float = 1.0
    longest_wait: float = 300.0
    max_bytes: int = 32 << 20
    requests: int | None = None


class Reply(NamedTuple):
    """A server's response; unless it is ``complete``, its body was longer than allowed."""

    status: int
    reason: str
    headers: Mapping[str, str] | Message
    body: bytes
    complete: bool = True


def checked_url(url: str) -> str:
    """Return the address of an endpoint in the form that names its cached answers.

    Raises:
        UsageError: it is not one of http or https, or holds "?", "#", or a password.
    """
    if re.match(r"(?:[^/]*://)?[^/]*@", url):
        raise UsageError("the endpoint's address holds a user or password; that is not supported")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageError(f"{url!r} is not an address: {error}") from error
    if parts.scheme not in ("http", "https") or not host or re.search(r"[^\x21-\x7e]", url):
        raise UsageError(
            f"{url!r} is not the address of an endpoint: give http://... or https://..."
        )
    if "?" in url or "#" in url:
        raise UsageError(f"{url!r} holds '?' or '#'; give the endpoint's plain address")
    host = f"[{host}]" if ":" in host else host
    shown = "" if port in (None, {"http": 80, "https": 443}[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{shown}{parts.path or '/'}"


def is_loopback(url: str) -> bool:
    """Return whether an address is on this machine's loopback interface."""
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def is_allowed_redirect(url: str, target: str) -> bool:
    """Return whether a redirection stays with http and https, and does not leave encryption."""
    before, scheme = urlsplit(url).scheme, urlsplit(target).scheme
    return scheme in ("http", "https") and (before, scheme) != ("https", "http")


def retry_after(said: str, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, None if it is malformed.

    It holds seconds, or an HTTP date (RFC 9110, section 10.2.3). ``now`` is in seconds since 1970.
    """
    said = said.strip()
    if re.fullmatch(r"[0-9]{1,9}", said):
        return float(said)
    try:
        date = parsedate_to_datetime(said)
    except (ValueError, TypeError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, date.timestamp() - now)


def printable(
    text: str, length: int = MESSAGE, secret: str | None = None, shown: str = "[key]"
) -> str:
    """Return the first line that is not empty, cut, without control characters or credentials.

    ``shown`` stands for the ``secret`` wherever it occurs.
    """
    if secret:
        text = text.replace(secret, shown)
    lines = ("".join(c if c.isprintable() else " " for c in line) for line in text.splitlines())
    line = without_credentials(next((" ".join(x.split()) for x in lines if x.strip()), ""))
    return line if len(line) <= length else line[: length - 3] + "..."


def within(
    seconds: float,
    function: Callable[_Parameters, _Result],
    *args: _Parameters.args,
    **kwargs: _Parameters.kwargs,
) -> _Result:
    """Return what a function returns, or raise what it raises, if it does so in time.

    Socket timeouts apply to each piece that arrives, so that a server can keep us waiting forever
    with a byte per second; until its headers end, checking the clock between pieces does not help.
    The function therefore runs in a thread. If it takes longer, it is abandoned, and the thread
    lives until its connection or the process ends. Threads other than the main one, which may send
    many requests, keep theirs for the next call.

    Raises:
        TimeoutError: it takes longer than ``seconds``.
    """
    helper = _own.__dict__.pop("helper", None) or _Helper()
    results: SimpleQueue[tuple[_Result, None] | tuple[None, BaseException]] = SimpleQueue()
    helper.calls.put((partial(function, *args, **kwargs), results))
    try:
        result, error = results.get(timeout=seconds)
    except Empty:
        raise TimeoutError(f"it took longer than {seconds:.0f} s") from None
    if threading.current_thread() is not threading.main_thread():
        _own.helper = helper
    del helper  # The traceback of an error would keep it.
    if error is not None:
        raise error
    return cast(_Result, result)


_own = threading.local()
"""Each thread's helper."""


class _Helper:
    """A thread that calls functions for another one, until that one has ended."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=_call_all, args=(self.calls,), daemon=True).start()

    def __del__(self) -> None:
        self.calls.put(None)


def _call_all(calls: SimpleQueue[Any]) -> None:
    for function, results in iter(calls.get, None):
        try:
            results.put((function(), None))
        except BaseException as error:
            results.put((None, error))
        del function, results  # They are not kept alive by a thread that waits.


def retried(
    attempt: Callable[[], _Result],
    limits: Limits,
    pause: Callable[[ServerError, float], object],
    again: str = "",
) -> _Result:
    """Return what an attempt returns, repeated while its `ServerError` is transient.

    Args:
        attempt: makes the request.
        limits: of attempts and pauses. The pause is the one that the server asks for, or the
            growing one of ``backoff`` if that is longer.
        pause: called with the error and the seconds to wait before the next attempt.
        again: what to do later, for the message when no further attempt is made.

    Raises:
        ServerError: it is not transient, the server asks for a longer pause than ``longest_wait``,
            or all attempts failed.
    """
    for number in range(1, limits.attempts + 1):
        try:
            return attempt()
        except ServerError as error:
            asked = error.wait or 0.0
            too_long = asked > limits.longest_wait
            if error.transient and again and too_long:
                error.add(f"It asks to wait {asked:.0f} s. {again}")
            elif error.transient and again and 1 < number == limits.attempts:
                error.add(f"That was attempt {number} of as many. {again}")
            if not error.transient or too_long or number == limits.attempts:
                raise
            spread = 0.5 + random.random()  # nosec B311 # no secret depends on it
            grown = limits.backoff * 2 ** (number - 1) * spread
            pause(error, max(asked, min(grown, limits.longest_wait)))
    raise ValueError("at least one attempt is made")


def open_session(
    limits: Limits,
    redirects: int = 0,
    proxies: bool = True,
    sign: Callable[[PreparedRequest], PreparedRequest] | None = None,
) -> Session:
    """Return a session that asks again if a server is busy or cannot be reached.

    Redirections are followed only to http and https, and never from https to http.

    Args:
        limits: of attempts and pauses; with one attempt nothing is repeated.
        redirects: the maximum number in a row; with 0 none is followed.
        proxies: whether those of the environment are used.
        sign: adds credentials to a request; without it, requests takes those of ``.netrc``.
    """
    from requests import Session
    from requests.adapters import HTTPAdapter
    from requests.exceptions import InvalidSchema
    from urllib3 import Retry

    class Careful(Session):
        def get_redirect_target(self, resp: Response) -> str | None:
            target = super().get_redirect_target(resp) if redirects else None
            if target is not None and not is_allowed_redirect(
                resp.url, url := urljoin(resp.url, target)
            ):
                raise InvalidSchema(f"it redirects to {printable(url, 80)!r}, which is not allowed")
            return target

    retries = Retry(
        limits.attempts - 1,
        read=None if limits.attempts > 1 else False,  # a timeout is to be known as one
        status_forcelist=TEMPORARY,
        backoff_factor=limits.backoff,
        raise_on_status=False,
        retry_after_max=int(limits.longest_wait),
    )
    session = Careful()
    session.max_redirects = redirects
    session.trust_env = proxies
    session.headers["User-Agent"] = USER_AGENT
    if sign is not None:
        session.auth = sign
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(max_retries=retries))
    return session


class JsonRequest:
    """A request with JSON, which is sent any number of times; redirections are not followed.

    Address, headers and proxies are worked out once, which takes longer than sending.
    """

    def __init__(self, session: Session, method: str, url: str) -> None:
        """Prepare the request of a session, without content."""
        from requests import Request

        headers = {"Content-Type": "application/json"}
        self._session = session
        self._prepared = session.prepare_request(Request(method, url, headers))
        settings: Any = session.merge_environment_settings(url, {}, True, None, None)
        self._settings = settings

    def exchange(self, limits: Limits, data: str | None = None) -> Reply:
        """Send the request with some content, and read the response.

        Raises:
            TimeoutError: the whole takes longer than the limit.
            OSError: the connection failed; requests' own errors are of this kind.
        """
        return within(limits.timeout, self._send, limits, data)

    def _send(self, limits: Limits, data: str | None) -> Reply:
        request = self._prepared.copy()
        request.prepare_body(data, None)
        with self._session.send(
            request, allow_redirects=False, timeout=limits.timeout, **self._settings
        ) as response:
            body = bytearray()
            for chunk in response.iter_content(_CHUNK):
                body += chunk
                if len(body) > limits.max_bytes:
                    break
            complete = len(body) <= limits.max_bytes
            return Reply(
                response.status_code, response.reason, response.headers, bytes(body), complete
            )
