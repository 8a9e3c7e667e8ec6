"""Querying a SPARQL endpoint over HTTP, under the rules of a public service.

One request at a time, in all processes of this cache folder together; a pause between them; a
User-Agent that names kbprobe and a contact; Retry-After obeyed; growing pauses while a service
is in trouble, and a refusal to go on when they do not help. The rules are those of the Wikidata
query service (its user manual, "Query limits", and Wikimedia's User-Agent policy).

Requests are made by SPARQLWrapper, whose connections and redirections are urllib's; answers are
read here, within limits of time and size. SECURITY.md says what that leaves unbounded.
"""

from __future__ import annotations

import ast
import gzip
import io
import logging
import math
import os
import re
import ssl
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit

from kb_cache.wikidata.sparql import results
from kb_cache.wikidata.sparql.answers import slug
from kb_cache.wikidata.sparql.results import MalformedAnswer, server_message
from kb_cache.wikidata.sparql.types import (
    CONTACT_VARIABLE,
    PREFIXES,
    QueryTimeout,
    SparqlAnswer,
    normalise,
)
from kbprobe import files
from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError, require
from kbprobe.files.cache import cache_dir, unusable
from kbprobe.files.locks import locked
from kbprobe.http import (
    BudgetSpent,
    Limits,
    Reply,
    ServerError,
    checked_url,
    is_allowed_redirect,
    is_loopback,
    printable,
    retried,
    retry_after,
    within,
)

#: Characters of a query above which it is sent by POST; some servers refuse longer addresses.
LONGEST_GET = 1500
#: Bytes of an error's body that are kept.
_ERROR_BYTES = 1 << 18


def send(url: str, query: str, contact: str, timeout: float, max_bytes: int) -> Reply:
    """Send a SELECT query and read the response; its body is uncompressed.

    ``contact`` goes into the User-Agent; ``timeout`` (seconds) is for the whole, ``max_bytes`` for
    the uncompressed body of an answer. Of an error's body, only the beginning is kept.

    Raises:
        ServerError: the answer was redirected elsewhere.
        ValueError: the body is shorter than stated or badly compressed, or an address invalid.
        OSError: the connection failed; TimeoutError if there was no response in time.
        http.client.HTTPException: the response is not HTTP.
    """
    return within(timeout, _send, url, query, contact, timeout, max_bytes)


def _send(url: str, query: str, contact: str, timeout: float, max_bytes: int) -> Reply:
    from SPARQLWrapper import GET, JSON, POST, SELECT, SPARQLWrapper, __version__
    from SPARQLWrapper.SPARQLExceptions import SPARQLWrapperException

    agent = f"kbprobe/{kbprobe_version()}{contact and f' ({contact})'} SPARQLWrapper/{__version__}"
    wrapper = SPARQLWrapper(url, returnFormat=JSON, agent=agent)
    # Request the format only in the header, not in parameters, whose names differ by server.
    wrapper.setOnlyConneg(True)
    wrapper.setQuery(query)
    # It guesses what kind of query it is, and can find "delete" in a prefix.
    wrapper.queryType = SELECT
    wrapper.setMethod(POST if len(query) > LONGEST_GET else GET)
    wrapper.setTimeout(math.ceil(timeout))
    wrapper.addCustomHttpHeader("Accept", "application/sparql-results+json")
    wrapper.addCustomHttpHeader("Accept-Encoding", "gzip")
    try:
        with wrapper.query().response as response:  # not converted: that has no limit of size
            _check_redirection(url, response.geturl(), query)
            return _reply(response, max_bytes)
    except HTTPError as error:
        with error:
            return _error_reply(error, error.fp)
    except SPARQLWrapperException as error:
        # It has read the whole body, and shows it as Python writes bytes.
        body = str(error).partition("Response:\n")[2]
        cause = error.__context__
        if not isinstance(cause, HTTPError):
            raise
        return _error_reply(cause, io.BytesIO(ast.literal_eval(body) if body else b""))


def _check_redirection(url: str, final: str, query: str) -> None:
    """Check that an answer from another address is one to the same query; urllib loses a POST's."""
    asked = parse_qs(urlsplit(final).query).get("query") == [query]
    if final != url and not (asked and is_allowed_redirect(url, final)):
        raise ServerError(
            f"{url} redirects to {printable(final.partition('?')[0], 80)!r}, where the query does "
            "not follow, or is not encrypted. If that is the right address, give it instead."
        )


def _reply(response: HTTPResponse, limit: int) -> Reply:
    """Read a body, and check that it is whole, unless it is longer than the limit."""
    headers = response.headers
    encoding = headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise ValueError(f"it is compressed as {encoding[:20]!r}, unlike requested")
    body = response.read(limit + 1)
    stated = headers.get("Content-Length", "").strip()
    chunked = headers.get("Transfer-Encoding", "").strip().lower() == "chunked"
    whole = not stated or chunked or len(body) > limit
    if not whole and (not stated.isdecimal() or int(stated) != len(body)):
        raise ValueError(f"{len(body):,} of {stated[:20]!r} bytes have arrived")
    if "gzip" in encoding and len(body) <= limit:
        body = _unzipped(body, limit + 1)
    return Reply(response.status, response.reason, headers, body[:limit], len(body) <= limit)


def _unzipped(body: bytes, limit: int) -> bytes:
    try:
        return gzip.GzipFile(fileobj=io.BytesIO(body)).read(limit)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"its compression is damaged ({error})") from error


def _error_reply(error: HTTPError, stream: IO[bytes]) -> Reply:
    """Return an error's response; its status says enough if the body cannot be read."""
    zipped, body = "gzip" in error.headers.get("Content-Encoding", "").lower(), b""
    with suppress(OSError, ValueError, HTTPException):
        start = stream.read(_ERROR_BYTES)
        body = _unzipped(start, _ERROR_BYTES) if zipped else start
    return Reply(error.code, error.reason, error.headers, body)


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


@dataclass(frozen=True)
class QueryLimits(Limits):
    """Limits on the use of an endpoint. Times are in seconds.

    The time limit for an answer is a bit more than Wikidata's own; the size is of one answer,
    uncompressed; the number of requests is that of a session.

    Attributes:
        pause: the pause between the end of one request and the next.
        seconds: the maximum time that a session may wait for answers.
        failures: the maximum number of consecutive queries that may fail.
    """

    timeout: float = 70.0
    attempts: int = 5
    backoff: float = 5.0
    max_bytes: int = 256 * 2**20
    requests: int = 2000
    pause: float = 1.0
    seconds: float = 7200.0
    failures: int = 3


def default_limits(url: str) -> QueryLimits:
    """Return the limits of an endpoint; a local one, on the loopback interface, needs no pause."""
    return QueryLimits(pause=0.0) if is_loopback(url) else QueryLimits()


class SparqlEndpoint:
    """A SPARQL 1.1 endpoint, for one session.

    Attributes:
        url: its address.
        requests: made in this session.
        seconds: spent waiting for its answers.
    """

    def __init__(
        self, url: str = WIKIDATA, contact: str | None = None, limits: QueryLimits | None = None
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

    def ask(self, query: str, attempts: int | None = None) -> SparqlAnswer:
        """Ask a prepared SELECT query (`kb_cache.wikidata.sparql.types.prepared`).

        Raises:
            QueryTimeout: it was too expensive for the endpoint.
            ServerError: the endpoint refuses it or cannot be reached, or asks for a longer
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
            raise ServerError(
                f"{self._failures} queries in a row failed at {self.url}; it is not queried again "
                "in this session. Find out what is wrong there, then start again: what has been "
                "answered is kept."
            )
        try:
            found = retried(
                partial(self._attempt, query),
                replace(self.limits, attempts=attempts or self.limits.attempts),
                self._postpone,
                "Start again later: what has been answered is kept.",
            )
        except ServerError:
            self._failures += 1
            raise
        except OSError as error:  # the network's own have become ServerErrors
            raise unusable(turn_file(self.url, "lock").parent, error) from error
        self._failures = 0
        return found

    def _attempt(self, query: str) -> SparqlAnswer:
        try:
            with self._turn():
                reply = self._send(query)
            return self._read(reply)
        except ServerError as error:
            if error.wait:  # it binds other sessions even if this one gives up
                postpone(self.url, time.time() + error.wait)
            raise

    def _postpone(self, error: ServerError, wait: float) -> None:
        """Have the next turn wait, whichever process has it."""
        logger.warning("%s Another attempt is due in %.0f s.", error, wait)
        postpone(self.url, time.time() + wait)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until no other process uses this endpoint and its pause is over."""
        with locked(turn_file(self.url, "lock"), f"asking {self.url}"):
            now = time.time()
            wait = postponed(self.url, now) - now
            if wait > self.limits.longest_wait + self.limits.pause:
                until = datetime.fromtimestamp(now + wait, UTC).strftime("%Y-%m-%d %H:%M")
                raise ServerError(
                    f"{self.url} asks clients to wait {wait:.0f} s, until {until} UTC. Start "
                    "again then: what has been answered is kept."
                )
            if wait > 0:
                time.sleep(wait)
            try:
                yield
            finally:
                postpone(self.url, time.time() + self.limits.pause)

    def _send(self, query: str) -> Reply:
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
            reply = send(self.url, query, self.contact, limits.timeout, limits.max_bytes)
            if reply.status == 200 and not reply.complete:
                raise QueryTimeout(
                    f"{self.url} sent no answer that can be taken: it is longer than the "
                    f"{limits.max_bytes:,} bytes that are allowed. Ask for less at a time, or "
                    "allow more in Python: Endpoint(URL, limits=QueryLimits(max_bytes=...))."
                )
            return reply
        except TimeoutError as error:
            raise QueryTimeout(
                f"{self.url} gave no answer within {limits.timeout:.0f} s. Ask for less at a "
                "time, or later, or wait longer in Python: Endpoint(URL, "
                "limits=QueryLimits(timeout=...))."
            ) from error
        except ValueError as error:
            raise MalformedAnswer(self.url, printable(str(error))) from error
        except (HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            raise ServerError(
                f"{self.url} cannot be reached ({type(reason).__name__}: "
                f"{printable(str(reason))}). See whether the address is right and the network is "
                "there; what has been answered is kept, and --offline uses that alone.",
                transient=not isinstance(reason, ssl.SSLCertVerificationError),
            ) from error
        finally:
            self.seconds += time.monotonic() - start

    def _read(self, reply: Reply) -> SparqlAnswer:
        """Return the answer in a reply, or raise what its status or content means."""
        status, headers, body = reply.status, reply.headers, reply.body
        kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if status == 200 and (left_out := [name for name in _PARTIAL if name in headers]):
            raise QueryTimeout(
                f"{self.url} left rows out ({left_out[0]}: {printable(headers[left_out[0]], 40)}). "
                "Ask for less at a time."
            )
        if status == 200 and kind in ("application/sparql-results+json", "application/json"):
            return results.parse(body, self.url)
        said = server_message(body)
        may_be_too_expensive = status == 200 or status >= 500
        if status == 504 or (may_be_too_expensive and results.is_too_expensive(body)):
            raise QueryTimeout(
                f"the query was too expensive for {self.url} (status {status}"
                f"{said and f': {said}'}). Ask for less at a time."
            )
        if status == 200:
            problem = f"it is of type {kind} and begins {said!r}"
            raise MalformedAnswer(self.url, problem)
        if 200 < status < 300:
            raise MalformedAnswer(self.url, f"its status is {status}, not 200")
        asked = headers.get("Retry-After", "") if status in (429, 503) else ""
        raise ServerError(
            f"{self.url} answers {status} {printable(reply.reason, 40)}"
            f"{said and f': {said}'}. {_REMEDIES.get(status, 'Try again later.')}",
            status,
            min(retry_after(asked, time.time()) or 0.0, LONGEST_PAUSE),
            transient=status in (408, 425, 429) or status >= 500,
        )


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
    return cache_dir() / "locks" / f"sparql-{slug(url)}.{ending}"


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
