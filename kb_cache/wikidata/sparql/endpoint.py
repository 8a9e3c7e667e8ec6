"""Querying a SPARQL endpoint over HTTP, under the rules of a public service.

One request at a time, in all processes of this cache folder together; a pause between them; a
User-Agent that names kbprobe and a contact; Retry-After obeyed; growing pauses while a service
is in trouble, and a refusal to go on when they do not help. The rules are those of the Wikidata
query service (its user manual, "Query limits", and Wikimedia's User-Agent policy).

SPARQLWrapper would read errors without any limit, and leave redirections to urllib, which repeats
a query without its content or without encryption.
"""

from __future__ import annotations

import http.client
import logging
import math
import os
import random
import re
import ssl
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit
from urllib.request import HTTPErrorProcessor, ProxyHandler, Request, build_opener

from kb_cache import store
from kb_cache.wikidata.sparql import results
from kb_cache.wikidata.sparql.answers import slug
from kb_cache.wikidata.sparql.results import MalformedAnswer, server_message
from kb_cache.wikidata.sparql.types import (
    CONTACT_VARIABLE,
    PREFIXES,
    Answer,
    QueryTimeout,
    normalise,
)
from kbprobe import files
from kbprobe.cli import kbprobe_version
from kbprobe.errors import SourceError, UsageError, require
from kbprobe.files.locks import locked
from kbprobe.http import checked_url, is_loopback, printable, retry_after, within

#: Characters of a query above which it is sent by POST; some servers refuse longer addresses.
LONGEST_GET = 1500
#: Bytes of an error's body that are read.
_ERROR_BYTES = 1 << 18
_CHUNK = 1 << 18
_MOVED = (301, 302, 303, 307, 308)
_MOST_REDIRECTIONS = 5


class UnreadableResponse(ValueError):
    """A response that violates HTTP, or whose redirection is refused."""


class TooLong(UnreadableResponse):
    """A response that is longer than we allow."""


class Response(NamedTuple):
    """A server's response; ``body`` is uncompressed and whole, or the beginning of an error's."""

    status: int
    reason: str
    headers: Message
    body: bytes


def send(url: str, query: str, contact: str, timeout: float, max_bytes: int) -> Response:
    """Send a SELECT query and read the response.

    ``contact`` goes into the User-Agent; ``timeout`` (seconds) is for the whole, ``max_bytes`` for
    the uncompressed body.

    Raises:
        TooLong: the body is longer than ``max_bytes``.
        UnreadableResponse: the body is shorter than stated or badly compressed, or there was a
            refused redirection.
        OSError: the connection failed; TimeoutError if there was one.
        http.client.HTTPException: the response is not HTTP.
    """
    return within(timeout, _send, url, query, contact, timeout, max_bytes)


def _send(url: str, query: str, contact: str, timeout: float, max_bytes: int) -> Response:
    from SPARQLWrapper import GET, JSON, POST, SPARQLWrapper, __version__

    agent = f"kbprobe/{kbprobe_version()}{contact and f' ({contact})'} SPARQLWrapper/{__version__}"
    wrapper = SPARQLWrapper(url, returnFormat=JSON, agent=agent)
    # Request the format only in the header, not in parameters, whose names differ by server.
    wrapper.setOnlyConneg(True)
    # Not by setQuery, which guesses what kind of query it is, and can find "delete" in a string.
    wrapper.queryString = query
    wrapper.setMethod(POST if len(query) > LONGEST_GET else GET)
    wrapper.addCustomHttpHeader("Accept", "application/sparql-results+json")
    wrapper.addCustomHttpHeader("Accept-Encoding", "gzip")
    request = wrapper._createRequest()  # its query() would send it by urllib's global opener
    # No proxy can reach the loopback interface.
    opener = build_opener(ProxyHandler({} if is_loopback(url) else None), _AnyStatus)
    deadline = time.monotonic() + timeout
    redirections = 0
    while True:
        with opener.open(request, timeout=math.ceil(timeout)) as response:
            status, headers = response.status, response.headers
            location = headers.get("Location") if status in _MOVED else None
            if not location or redirections == _MOST_REDIRECTIONS:
                body = b""
                if status == 200:
                    body = _body(response, max_bytes, deadline, whole=True)
                else:  # the status says enough if the body cannot be read
                    with suppress(OSError, ValueError, HTTPException):
                        body = _body(response, _ERROR_BYTES, deadline, whole=False)
                return Response(status, str(response.reason), headers, body)
        request = redirected(request, location, contact)
        redirections += 1


class _AnyStatus(HTTPErrorProcessor):
    """Hand over responses of every status; redirections are followed by `send`."""

    def http_response(self, request: Request, response: HTTPResponse) -> HTTPResponse:
        return response

    https_response = http_response


def redirected(request: Request, location: str, contact: str) -> Request:
    """Return the same request for another address; urllib's own would lose a posted query.

    Raises:
        UnreadableResponse: the redirection is refused.
    """
    try:
        url = urljoin(request.full_url, location)
        scheme, loopback = urlsplit(url).scheme, is_loopback(url)
    except ValueError as error:
        raise UnreadableResponse(f"it redirects to what is no address ({error})") from error
    problems = {
        "which is not http or https": scheme not in ("http", "https"),
        "which is not encrypted": request.type == "https" and scheme == "http",
        "where we need a contact": not contact and not loopback,
    }
    for problem in filter(problems.get, problems):
        raise UnreadableResponse(f"it redirects to {url[:80]!r}, {problem}")
    own = ("Host", "Content-length")
    kept = {key: value for key, value in request.header_items() if key not in own}
    return Request(url, request.data, kept, request.origin_req_host, unverifiable=True)


def _body(response: HTTPResponse, limit: int, deadline: float, whole: bool) -> bytes:
    """Read a body and unpack it. Unless ``whole``, anything beyond the limit is ignored."""
    headers = response.headers
    encoding = headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise UnreadableResponse(f"it is compressed as {encoding[:20]!r}, unlike requested")
    unzip = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
    received, body = 0, bytearray()
    while len(body) <= limit and (chunk := response.read1(_CHUNK)):
        received += len(chunk)
        if time.monotonic() > deadline:
            raise TimeoutError("the answer took too long to arrive")
        try:
            body += unzip.decompress(chunk, limit - len(body) + 1) if unzip else chunk
        except zlib.error as error:
            raise UnreadableResponse(f"its compression is damaged ({error})") from error
    if not whole:
        return bytes(body[:limit])
    if len(body) > limit:
        raise TooLong(f"it is longer than the {limit:,} bytes that are allowed")
    stated = headers.get("Content-Length", "").strip()
    chunked = headers.get("Transfer-Encoding", "").strip().lower() == "chunked"
    if stated and not chunked and (not stated.isdecimal() or int(stated) != received):
        raise UnreadableResponse(f"{received:,} of {stated[:20]!r} bytes have arrived")
    if unzip and (not unzip.eof or unzip.unused_data):
        raise UnreadableResponse("its compressed data has no end, or goes on after it")
    return bytes(body)


logger = logging.getLogger(__name__)

WIKIDATA = "https://query.wikidata.org/sparql"
#: Seconds for which an endpoint can ask for a pause; the longest ban of Wikidata's service.
LONGEST_PAUSE = 86400.0

_CONTACT = re.compile(r"[^@\s()<>]+@[^@\s()<>]+\.[^@\s()<>]+|https?://[^\s()<>]+")
#: After the PREFIX and BASE of a normalised query.
_SELECT = re.compile(r"(?:(?:PREFIX [^<]*|BASE ?)<[^>]*> ?)*SELECT\b", re.IGNORECASE)
#: Headers by which Virtuoso reports that it left out rows.
_PARTIAL = ("X-SPARQL-MaxRows", "X-SPARQL-Anytime", "X-SQL-State")
_NO_ENDPOINT = "See whether this is the address of a SPARQL 1.1 endpoint."
_REMEDIES = {
    400: "It could not read the query.",
    **dict.fromkeys((401, 403), "It does not let us ask; its operators can say why."),
    **dict.fromkeys((413, 414), "The query is too long for it: ask for fewer values at a time."),
    **dict.fromkeys((*range(300, 400), 404, 405, 406, 410), _NO_ENDPOINT),
}


class EndpointError(SourceError):
    """The endpoint refuses the query, or cannot be reached."""


class BudgetSpent(SourceError):
    """The session has used up its limits."""


@dataclass(frozen=True)
class Limits:
    """Limits on the use of an endpoint, and on waiting for it. Times are in seconds.

    Attributes:
        timeout: the time limit for one answer, a bit more than the endpoint's own limit.
        pause: the pause between the end of one request and the next.
        attempts: the maximum number of attempts of a query, if another one may help.
        backoff: the pause before the second attempt, plus or minus half; doubled each time.
        longest_wait: the longest pause that a server may ask for; beyond it we give up.
        max_bytes: of one answer, uncompressed.
        requests: the maximum number of requests of a session.
        seconds: the maximum time that a session may wait for answers.
        failures: the maximum number of consecutive queries that may fail.
    """

    timeout: float = 70.0
    pause: float = 1.0
    attempts: int = 5
    backoff: float = 5.0
    longest_wait: float = 300.0
    max_bytes: int = 256 * 2**20
    requests: int = 2000
    seconds: float = 7200.0
    failures: int = 3


def default_limits(url: str) -> Limits:
    """Return the limits of an endpoint; a local one, on the loopback interface, needs no pause."""
    return Limits(pause=0.0) if is_loopback(url) else Limits()


class _Retry(Exception):
    """An attempt failed, but another may succeed after at least ``wait`` seconds."""

    def __init__(self, error: SourceError, wait: float = 0.0) -> None:
        super().__init__(str(error))
        self.error, self.wait = error, wait


class Endpoint:
    """A SPARQL 1.1 endpoint, for one session.

    Attributes:
        url: its address.
        requests: made in this session.
        seconds: spent waiting for its answers.
    """

    def __init__(
        self, url: str = WIKIDATA, contact: str | None = None, limits: Limits | None = None
    ) -> None:
        """Prepare requests; nothing is sent yet.

        ``contact`` is an e-mail address or URL for the endpoint's operators, by default that of
        the environment variable KBPROBE_CONTACT. An endpoint on this machine's own loopback
        interface needs none.

        Raises:
            UsageError: the URL or the contact is not valid, or a contact is missing.
            MissingDependencyError: SPARQLWrapper is not installed.
        """
        self.url = checked_url(url)
        contact = os.environ.get(CONTACT_VARIABLE, "") if contact is None else contact
        self.contact = _checked_contact(contact.strip(), self.url)
        require("SPARQLWrapper", "wikidata", f"asking the endpoint {self.url}")
        self.limits = limits or default_limits(self.url)
        self.requests = 0
        self.seconds = 0.0
        self._failures = 0

    def ask(self, query: str, attempts: int | None = None) -> Answer:
        """Ask a prepared SELECT query (`kb_cache.wikidata.sparql.types.prepared`).

        Raises:
            QueryTimeout: it was too expensive for the endpoint.
            EndpointError: the endpoint refuses it or cannot be reached, or asks for a longer
                pause than we accept; or too many queries in a row have failed.
            MalformedAnswer: its response is not a valid answer.
            BudgetSpent: the session may not send more requests.
            UsageError: it is not a SELECT query.
            CacheError: the cache folder, where processes take turns, cannot be used.
        """
        if not _SELECT.match(query):
            shown = printable(query.removeprefix(normalise(PREFIXES)))
            raise UsageError(f"only SELECT queries can be asked, not: {shown}")
        if self._failures >= self.limits.failures:
            raise EndpointError(
                f"{self._failures} queries in a row failed at {self.url}; it is not queried again "
                "in this session. Find out what is wrong there, then start again: what has been "
                "answered is kept."
            )
        try:
            found = self._with_retries(query, attempts or self.limits.attempts)
        except (EndpointError, MalformedAnswer):
            self._failures += 1
            raise
        except OSError as error:  # the network's own have become EndpointErrors
            raise store.unusable(turn_file(self.url, "lock").parent, error) from error
        self._failures = 0
        return found

    def _with_retries(self, query: str, attempts: int) -> Answer:
        backoff = self.limits.backoff
        while True:
            attempts -= 1
            try:
                with self._turn():
                    response = self._send(query)
                return self._read(response)
            except _Retry as retry:
                spread = 0.5 + random.random()  # nosec B311 # no secret depends on it
                pause = min(backoff * spread, self.limits.longest_wait)
                wait = max(retry.wait, pause if attempts else 0.0)
                # The next turn waits for it, whichever process has it.
                postpone(self.url, time.time() + wait)
                if not attempts:
                    raise retry.error from retry
                logger.warning("%s Another attempt is due in %.0f s.", retry.error, wait)
                backoff *= 2

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until no other process uses this endpoint and its pause is over."""
        with locked(turn_file(self.url, "lock"), f"asking {self.url}"):
            now = time.time()
            wait = postponed(self.url, now) - now
            if wait > self.limits.longest_wait + self.limits.pause:
                until = datetime.fromtimestamp(now + wait, UTC).strftime("%Y-%m-%d %H:%M")
                raise EndpointError(
                    f"{self.url} asks clients to wait {wait:.0f} s, until {until} UTC. Start "
                    "again then: what has been answered is kept."
                )
            if wait > 0:
                time.sleep(wait)
            try:
                yield
            finally:
                postpone(self.url, time.time() + self.limits.pause)

    def _send(self, query: str) -> Response:
        """Make one request within the budget."""
        limits = self.limits
        if self.requests >= limits.requests or self.seconds >= limits.seconds:
            raise BudgetSpent(
                f"this session has made {self.requests:,} requests to {self.url} and spent "
                f"{self.seconds:,.0f} s; its limits are {limits.requests:,} and "
                f"{limits.seconds:,.0f} s. What has been answered is kept: start again to go on, "
                "ask for less, or load a dump with: kb-cache fetch wikidata --from FILE"
            )
        self.requests += 1
        start = time.monotonic()
        try:
            return send(self.url, query, self.contact, limits.timeout, limits.max_bytes)
        except TooLong as error:
            raise QueryTimeout(
                f"{self.url} sent no answer that can be taken: {error}. Ask for less at a time, "
                "or allow more in Python: Endpoint(URL, limits=Limits(max_bytes=...))."
            ) from error
        except UnreadableResponse as error:
            raise _Retry(MalformedAnswer(self.url, str(error))) from error
        except TimeoutError as error:
            raise QueryTimeout(
                f"{self.url} gave no answer within {limits.timeout:.0f} s. Ask for less at a "
                "time, or later, or wait longer in Python: Endpoint(URL, "
                "limits=Limits(timeout=...))."
            ) from error
        except (http.client.HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            ours = EndpointError(
                f"{self.url} cannot be reached ({type(reason).__name__}: "
                f"{printable(str(reason))}). See whether the address is right and the network is "
                "there; what has been answered is kept, and --offline uses that alone."
            )
            final = isinstance(reason, ssl.SSLCertVerificationError)
            raise (ours if final else _Retry(ours)) from error
        finally:
            self.seconds += time.monotonic() - start

    def _read(self, response: Response) -> Answer:
        """Return the answer in a response, or raise what its status or content means."""
        status, headers, body = response.status, response.headers, response.body
        kind = headers.get_content_type()
        if status == 200 and (partial := [name for name in _PARTIAL if name in headers]):
            raise QueryTimeout(
                f"{self.url} left rows out ({partial[0]}: {printable(headers[partial[0]], 40)}). "
                "Ask for less at a time."
            )
        if status == 200 and kind in ("application/sparql-results+json", "application/json"):
            try:
                return results.parse(body, self.url)
            except MalformedAnswer as error:
                raise _Retry(error) from error
        said = server_message(body)
        may_be_too_expensive = status == 200 or status >= 500
        if status == 504 or (may_be_too_expensive and results.is_too_expensive(body)):
            raise QueryTimeout(
                f"the query was too expensive for {self.url} (status {status}"
                f"{said and f': {said}'}). Ask for less at a time."
            )
        if status == 200:
            problem = f"it is of type {kind} and begins {said!r}"
            raise _Retry(MalformedAnswer(self.url, problem))
        if 200 < status < 300:
            raise _Retry(MalformedAnswer(self.url, f"its status is {status}, not 200"))
        refusal = EndpointError(
            f"{self.url} answers {status} {printable(response.reason, 40)}"
            f"{said and f': {said}'}. {_REMEDIES.get(status, 'Try again later.')}"
        )
        if status not in (408, 425, 429) and status < 500:
            raise refusal
        asked = headers.get("Retry-After", "") if status in (429, 503) else ""
        raise _Retry(refusal, min(retry_after(asked, time.time()) or 0.0, LONGEST_PAUSE))


def _checked_contact(contact: str, url: str) -> str:
    if not contact and is_loopback(url):
        return ""
    if contact and _CONTACT.fullmatch(contact) and contact.isascii() and contact.isprintable():
        return contact
    wrong = f"{printable(contact, 60)!r} is neither" if contact else "it is not set"
    raise UsageError(
        f"{url} is asked only with a contact, so that its operators can write to you if there is a "
        f"problem: set {CONTACT_VARIABLE} to your e-mail address, or to a URL that says who you "
        f"are ({wrong})."
    )


def turn_file(url: str, ending: str) -> Path:
    """Return the file by which processes take turns at an endpoint.

    ``lock`` is held by the process that asks, ``next`` holds the earliest time of a request.
    """
    return store.cache_dir() / "locks" / f"sparql-{slug(url)}.{ending}"


def postpone(url: str, until: float) -> None:
    """Keep all processes from using an endpoint before a time, or a later one set before.

    Raises:
        OSError: the cache folder cannot be written.
    """
    files.write_file(turn_file(url, "next"), repr(max(until, postponed(url, until))))


def postponed(url: str, now: float) -> float:
    """Return the time before which an endpoint must not be asked (seconds since 1970), 0 if none.

    Times more than a day ahead are ignored: some clock must have been wrong.
    """
    try:
        until = float(turn_file(url, "next").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return 0.0
    return until if math.isfinite(until) and until <= now + LONGEST_PAUSE else 0.0
