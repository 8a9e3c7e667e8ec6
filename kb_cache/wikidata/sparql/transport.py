"""One request to a SPARQL endpoint: written by SPARQLWrapper, sent within limits of bytes and time.

SPARQLWrapper would read errors without any limit, and leave redirections to urllib, which repeats
a query without its content or without encryption.
"""

from __future__ import annotations

import math
import time
import zlib
from contextlib import suppress
from email.message import Message
from http.client import HTTPException, HTTPResponse
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit
from urllib.request import HTTPErrorProcessor, ProxyHandler, Request, build_opener

from kb_cache.servers import is_loopback, within
from kbprobe.cli import kbprobe_version

#: Characters of a query above which it is sent by POST; some servers refuse longer addresses.
LONGEST_GET = 1500
#: Bytes of an error's body that are read.
_ERROR_BYTES = 1 << 18
_CHUNK = 1 << 18
_MOVED = (301, 302, 303, 307, 308)
_MOST_REDIRECTIONS = 5


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


def send(url: str, query: str, contact: str, timeout: float, max_bytes: int) -> Response:
    """Send a SELECT query and read the response.

    ``contact`` goes into the User-Agent; ``timeout`` (seconds) is for the whole, ``max_bytes`` for
    the uncompressed body.

    Raises:
        TooLong: the body is longer than ``max_bytes``.
        UnreadableResponse: the body is shorter than stated or badly compressed, or there was a
            redirection to where we do not go.
        OSError: the connection failed; TimeoutError if there was one.
        http.client.HTTPException: the response is not HTTP.
    """
    return within(timeout, _send, url, query, contact, timeout, max_bytes)


def _send(url: str, query: str, contact: str, timeout: float, max_bytes: int) -> Response:
    from SPARQLWrapper import GET, JSON, POST, SPARQLWrapper, __version__

    agent = f"kbprobe/{kbprobe_version()}{contact and f' ({contact})'} SPARQLWrapper/{__version__}"
    wrapper = SPARQLWrapper(url, returnFormat=JSON, agent=agent)
    # Ask for the format in the header alone, not in parameters that each server names otherwise.
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
    """Return the request that asks the same elsewhere; urllib's own would lose a posted query.

    Raises:
        UnreadableResponse: we do not go there.
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
    """Read a body and unpack it. Unless ``whole``, what is beyond the limit is left."""
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
