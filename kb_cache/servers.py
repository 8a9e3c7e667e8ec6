"""What servers are called by and what they say: addresses, ``Retry-After``, texts of errors."""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
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
    """Tell whether an address is on this machine's loopback interface."""
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
