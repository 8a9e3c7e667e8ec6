"""Common helpers for querying servers: addresses, requested pauses, deadlines."""

from __future__ import annotations

import ipaddress
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import ParamSpec, TypeVar
from urllib.parse import urlsplit

from kbprobe.errors import UsageError

MESSAGE = 200
"""Characters of a server's message that are shown."""


def checked_url(url: str) -> str:
    """Return the address of an endpoint in the form that names its cached answers.

    Raises:
        UsageError: it is not one of http or https, or holds "?", "#", or a password.
    """
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
    if "@" in parts.netloc:
        raise UsageError("the endpoint's address holds a user or password; that is not supported")
    host = f"[{host}]" if ":" in host else host
    shown = "" if port in (None, {"http": 80, "https": 443}[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{shown}{parts.path or '/'}"


def is_loopback(url: str) -> bool:
    """Return whether an address is on this machine's loopback interface."""
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


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


def printable(text: str, length: int = MESSAGE) -> str:
    """Return the first line that is not empty, cut, without control characters."""
    lines = ("".join(c if c.isprintable() else " " for c in line) for line in text.splitlines())
    line = next((" ".join(line.split()) for line in lines if line.strip()), "")
    return line if len(line) <= length else line[: length - 3] + "..."


_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


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
    lives until its connection or the process ends.

    Raises:
        TimeoutError: it takes longer than ``seconds``.
    """
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function(*args, **kwargs))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(f"it took longer than {seconds:.0f} s")
    if errors:
        raise errors[0]
    return results[0]
