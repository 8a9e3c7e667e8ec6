"""One request to a SPARQL endpoint, sent by SPARQLWrapper within limits of bytes and time.

SPARQLWrapper reads errors without any limit and leaves redirections to urllib, which would repeat
a query without its content or without encryption. Handlers of urllib mend both: `_Redirections`
and `_BoundedBodies`.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import math
import re
import threading
import time
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.response import addinfourl

from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError

#: Characters of a query above which it is sent by POST; some servers refuse longer addresses.
LONGEST_GET = 1500
#: Bytes of an error's body that are read.
_ERROR_BYTES = 1 << 18
_CHUNK = 1 << 18
#: Held while urllib's process-wide opener is replaced.
_OPENER = threading.Lock()


class UnreadableResponse(ValueError):
    """A response that breaks the rules of HTTP, or redirects where we do not go."""


class TooLong(UnreadableResponse):
    """A response that is longer than we allow."""


class Response(NamedTuple):
    """A server's response; ``body`` is uncompressed and whole, or the beginning of an error's."""

    status: int
    reason: str
    headers: Message
    body: bytes


def checked_url(url: str) -> str:
    """Return the address of an endpoint in the form that names its cached answers.

    Raises:
        UsageError: it is not one of http or https, or holds "?", "#", or a password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageError(f"{url!r} is no address: {error}") from error
    if parts.scheme not in ("http", "https") or not host or re.search(r"[^\x21-\x7e]", url):
        raise UsageError(f"{url!r} is no address of an endpoint: give http://... or https://...")
    if "?" in url or "#" in url:
        raise UsageError(f"{url!r} holds '?' or '#'; give the endpoint's plain address")
    if "@" in parts.netloc:
        raise UsageError("the endpoint's address holds a user or password; that is not supported")
    host = f"[{host}]" if ":" in host else host
    shown = "" if port in (None, {"http": 80, "https": 443}[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{shown}{parts.path or '/'}"


def is_loopback(url: str) -> bool:
    """Tell whether an address is on this machine's loopback interface."""
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def send(url: str, query: str, contact: str, timeout: float, max_bytes: int) -> Response:
    """Send a SELECT query and read the response.

    Args:
        url: the endpoint.
        query: what is sent.
        contact: for the User-Agent; "" for none.
        timeout: in seconds, for the whole.
        max_bytes: of the body, uncompressed.

    Raises:
        TooLong: the body is longer than ``max_bytes``.
        UnreadableResponse: the body is shorter than stated or badly compressed, or there was a
            redirection to where we do not go.
        OSError: the connection failed; TimeoutError if there was one.
        http.client.HTTPException: the response is not HTTP.
    """
    from SPARQLWrapper import JSON, POST, SPARQLWrapper, __version__
    from SPARQLWrapper.SPARQLExceptions import SPARQLWrapperException

    agent = f"kbprobe/{kbprobe_version()}{contact and f' ({contact})'} SPARQLWrapper/{__version__}"
    wrapper = SPARQLWrapper(url, returnFormat=JSON, agent=agent)
    # Ask for the format in the header alone, not in parameters that each server names otherwise.
    wrapper.setOnlyConneg(True)
    # Not by setQuery, which guesses what kind of query it is, and can find "delete" in a string.
    wrapper.queryString = query
    if len(query) > LONGEST_GET:
        wrapper.setMethod(POST)
    wrapper.setTimeout(math.ceil(timeout))
    wrapper.addCustomHttpHeader("Accept", "application/sparql-results+json")
    wrapper.addCustomHttpHeader("Accept-Encoding", "gzip")
    handlers: list[urllib.request.BaseHandler] = [_Redirections(contact)]
    if is_loopback(url):  # which no proxy can reach
        handlers.append(urllib.request.ProxyHandler({}))
    with _OPENER, _urllib_uses(*handlers, _BoundedBodies(max_bytes, time.monotonic() + timeout)):
        try:
            response: Any = wrapper.query().response
        except HTTPError as error:
            response = error
        except SPARQLWrapperException as error:  # for some statuses; it has read the body
            response = error.__context__
            response.seek(0)
        except UnreadableResponse:
            raise
        except ValueError as error:
            raise UnreadableResponse(f"it redirects to what is no address ({error})") from error
    with response:
        return Response(response.code, response.reason, response.headers, response.read())


@contextmanager
def _urllib_uses(*handlers: urllib.request.BaseHandler) -> Iterator[None]:
    """Send this thread's requests through some handlers; `_OPENER` must be held.

    SPARQLWrapper takes none, but sends by urllib's process-wide opener.
    """
    thread, ours = threading.get_ident(), urllib.request.build_opener(*handlers)
    before = urllib.request._opener  # type: ignore[attr-defined]

    class Opener(urllib.request.OpenerDirector):
        def open(self, *args: Any, **options: Any) -> Any:
            mine = threading.get_ident() == thread
            opener = ours if mine else before or urllib.request.build_opener()
            return opener.open(*args, **options)

    urllib.request.install_opener(Opener())
    try:
        yield
    finally:
        urllib.request.install_opener(before)


class _Redirections(urllib.request.HTTPRedirectHandler):
    """Follow redirections to http and https, and ask the same there."""

    max_redirections = 5
    max_repeats = 2

    def __init__(self, contact: str) -> None:
        self._contact = contact

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any,
        newurl: str,
    ) -> urllib.request.Request:  # fmt: skip
        """Return the request to make instead.

        Python's own would turn POST into GET and so lose the query; queries may be repeated.
        """
        problems = {
            "which is not http or https": urlsplit(newurl).scheme not in ("http", "https"),
            "which is not encrypted": req.type == "https" and urlsplit(newurl).scheme == "http",
            "where we need a contact": not self._contact and not is_loopback(newurl),
        }
        for problem in filter(problems.get, problems):
            raise UnreadableResponse(f"it redirects to {newurl[:80]!r}, {problem}")
        own = ("Host", "Content-length")
        kept = {key: value for key, value in req.header_items() if key not in own}
        return urllib.request.Request(newurl, req.data, kept, req.origin_req_host, True)


class _BoundedBodies(urllib.request.BaseHandler):
    """Read each body at once, within the limits, and unpack it; of an error the beginning."""

    handler_order = 100  # before the handlers of errors and redirections, which read the body

    def __init__(self, max_bytes: int, deadline: float) -> None:
        self._max_bytes, self._deadline = max_bytes, deadline

    def http_response(self, request: urllib.request.Request, response: Any) -> addinfourl:
        """Return the response with its body in memory."""
        body = b""
        with response:
            if response.status == 200:
                body = self._read(response, self._max_bytes, whole=True)
            else:  # the status says enough if the body cannot be read
                with suppress(OSError, ValueError, http.client.HTTPException):
                    body = self._read(response, _ERROR_BYTES, whole=False)
        read = addinfourl(io.BytesIO(body), response.headers, response.url, response.status)
        read.msg = read.reason = str(response.reason)  # type: ignore[attr-defined]
        return read

    https_response = http_response

    def _read(self, response: Any, limit: int, whole: bool) -> bytes:
        """The body, uncompressed. Unless ``whole``, what is beyond the limit is left."""
        headers = response.headers
        encoding = headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip", "x-gzip", ""):
            raise UnreadableResponse(f"it is compressed as {encoding[:20]!r}, unlike requested")
        unzip = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
        received, body = 0, bytearray()
        while len(body) <= limit and (chunk := response.read1(_CHUNK)):
            received += len(chunk)
            if time.monotonic() > self._deadline:
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
        if stated and not chunked and (not stated.isdigit() or int(stated) != received):
            raise UnreadableResponse(f"{received:,} of {stated[:20]!r} bytes have arrived")
        if unzip and (not unzip.eof or unzip.unused_data):
            raise UnreadableResponse("its compressed data has no end, or goes on after it")
        return bytes(body)
