"""Downloads of large files.

A download is resumed, checked, and never half written. Connections, redirections, retries and
``Retry-After`` are those of requests and urllib3; incomplete data is kept next to the target as
``NAME.part``, with ``NAME.part.json`` recording which version of the file the server was sending,
and the target appears in one step when it is complete and its checksum is right.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from kbprobe.errors import SourceError, UsageError
from kbprobe.files import file_sha256
from kbprobe.files.locks import locked
from kbprobe.http import Limits, open_session, within

if TYPE_CHECKING:
    from requests import Response, Session

Progress = Callable[[int, int | None], None]

#: Consecutive attempts without new data before we give up.
ATTEMPTS = 5
#: Seconds before the second attempt; each further one waits twice as long.
PAUSE = 1.0
#: Seconds that a busy server can have us wait (Retry-After).
LONGEST_WAIT = 60
#: Seconds without a byte after which a connection counts as dead.
TIMEOUT = 60.0
#: Seconds until a server begins to send the file: with what it redirects to, and all attempts.
BEGIN = 600.0
#: Minimum bytes per second on average over that many seconds; slower downloads never finish.
SLOWEST, PATIENCE = 1024, 60.0
#: Redirections in a row.
REDIRECTIONS = 5
#: Bytes of a file whose size was not known beforehand.
LARGEST = 64 << 30

_CHUNK = 1 << 18
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_UNSATISFIED_RANGE = re.compile(r"bytes \*/(\d+)")
_WEB_PAGE = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype html|html)\b", re.IGNORECASE)


class _Interrupted(Exception):
    """A transfer ended early; another attempt may get further."""


def download(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    size: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Download a file, resuming an earlier incomplete download.

    A target that exists and has the given checksum and size is left alone, without a request.
    Two processes that want the same target take turns.

    Args:
        url: http or https; redirections are followed, but not from https to http.
        target: the file to write, which is returned; its folder is made.
        sha256: that of the whole file, in hex. Without it, a file is accepted if it has the length
            that the server states.
        size: that of the whole file, in bytes.
        progress: called with (bytes received, bytes in all or None if the server does not say).

    Raises:
        SourceError: there is no such file, the server sent something else (a web page, another
            length, another checksum) or redirects where we do not go, the connection failed too
            often, or is slower than `SLOWEST`. What was received is kept for the next attempt
            unless it is known to be wrong.
        UsageError: the URL is not one of http or https.
        CacheError: another process has been downloading the same file for too long.
        OSError: the file cannot be written.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise UsageError(f"cannot download {url}: only http and https addresses are supported")
    part = target.with_name(f"{target.name}.part")

    def received() -> int:
        with suppress(OSError):
            return part.stat().st_size
        return -1

    lock = target.with_name(f".{target.name}.lock")
    with locked(lock, f"downloading {target}", advance=received):
        complete = target.is_file() and size in (None, target.stat().st_size)
        if not complete or (sha256 is not None and file_sha256(target) != sha256.lower()):
            _Transfer(url, target, sha256, size, progress).run()
    return target


@dataclass
class _Transfer:
    """One download, over as many connections as it takes; the fields are `download`'s."""

    url: str
    target: Path
    sha256: str | None
    size: int | None
    progress: Progress | None

    def __post_init__(self) -> None:
        self.part = self.target.with_name(f"{self.target.name}.part")
        self.note = self.target.with_name(f"{self.target.name}.part.json")

    def run(self) -> None:
        """Fetch, check and put into place."""
        furthest, failures = -1, 0
        limits = Limits(attempts=ATTEMPTS, backoff=PAUSE, longest_wait=LONGEST_WAIT)
        with open_session(limits, REDIRECTIONS) as session:
            while True:
                try:
                    self._fetch_rest(session)
                    break
                except _Interrupted as error:
                    done = self._received()
                    # A server that restarts each time and always breaks off at the same place makes
                    # no progress, although bytes arrive.
                    failures = 1 if done > furthest else failures + 1
                    furthest = max(furthest, done)
                    if failures >= ATTEMPTS:
                        raise self._failed(f"{error}, {ATTEMPTS} times in a row") from error
                    time.sleep(PAUSE * 2 ** (failures - 1))
        if self.sha256 is not None and (found := file_sha256(self.part)) != self.sha256.lower():
            self._refuse(
                f"{self.url} is not the expected file: its sha256 is {found}, not {self.sha256}. "
                "It may have been damaged on the way: try again; or it was replaced by another "
                "version"
            )
        os.replace(self.part, self.target)
        self.note.unlink(missing_ok=True)

    def _received(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def _refuse(self, why: str) -> NoReturn:
        """Discard what was received, since it is not what was requested, and raise an error."""
        self._discard()
        raise SourceError(why)

    def _refuse_size(self) -> NoReturn:
        self._refuse(
            f"{self.url} sends more than {LARGEST:,} bytes. Get the file in another way and give "
            "it with --from."
        )

    def _refuse_web_page(self) -> NoReturn:
        self._refuse(
            f"{self.url} answers with a web page instead of the file: perhaps a login page or a "
            "notice of your network's. Open the address in a browser, or get the file in another "
            "way and give it with --from."
        )

    def _failed(self, why: str) -> SourceError:
        return SourceError(
            f"downloading {self.url} failed: {why}. {self._received():,} bytes have arrived and "
            "are kept: the same command resumes from there. Or get the file in another way and "
            "give it with --from."
        )

    def _fetch_rest(self, session: Session) -> None:
        """Fetch what is missing over one connection, or raise `_Interrupted`."""
        from requests import RequestException
        from requests.exceptions import InvalidSchema, TooManyRedirects

        done = self._received()
        if self.size is not None and done == self.size and self.sha256 is not None:
            return
        validator = self._validator()
        if validator is None and self.sha256 is None:
            done = 0  # nothing would show whether the two parts belong together
        headers = {"Accept-Encoding": "identity"}
        if done:
            headers |= {"Range": f"bytes={done}-"} | ({"If-Range": validator} if validator else {})
        try:
            response = within(
                BEGIN, session.get, self.url, headers=headers, stream=True, timeout=TIMEOUT
            )
        except TimeoutError as error:
            raise self._failed(f"the server sent no file within {BEGIN:.0f} s") from error
        except (InvalidSchema, TooManyRedirects) as error:
            raise self._failed(str(error).rstrip(".")) from error
        except RequestException as error:
            raise self._failed(f"the server cannot be reached ({error})") from error
        with response:
            start, total = self._extent(response, done)
            if start != total or not done:
                self._receive(response, start, total)

    def _extent(self, response: Response, done: int) -> tuple[int, int | None]:
        """The first byte that a response holds, and the length of the whole file if known."""
        said = response.headers.get("Content-Range", "")
        if response.status_code == 416 and done:
            match = _UNSATISFIED_RANGE.match(said)
            if match and int(match[1]) == done and self.size in (None, done):
                return done, done  # nothing was missing
            self._discard()
            raise _Interrupted("the bytes received before do not fit the server's file")
        if not response.ok:
            raise SourceError(
                f"cannot download {self.url}: the server answers {response.status_code} "
                f"{response.reason}. Get the file in another way and give it with --from."
            )
        if response.headers.get("Content-Type", "").partition(";")[0].strip() == "text/html":
            self._refuse_web_page()
        start, total = 0, None
        if response.status_code == 206:
            match = _CONTENT_RANGE.match(said)
            if match is None or int(match[1]) != done:
                self._discard()
                raise _Interrupted("the server sent another part than the one asked for")
            start, total = done, int(match[2]) if match[2] != "*" else None
        elif (length := response.headers.get("Content-Length", "")).isdecimal():
            total = int(length)
        if (total or 0) > LARGEST:
            self._refuse_size()
        if self.size is not None and total not in (None, self.size):
            self._refuse(
                f"{self.url} has {total:,} bytes; {self.size:,} were expected: the file was "
                "replaced by another version, or what answers is not its server"
            )
        if not start:
            etag = response.headers.get("ETag", "")
            validator = etag if etag.startswith('"') else response.headers.get("Last-Modified")
            self.part.unlink(missing_ok=True)  # it may belong to another version than the note
            self.note.write_text(
                json.dumps({"url": self.url, "validator": validator}),
                encoding="utf-8",
                newline="\n",
            )
        return start, self.size if total is None else total

    def _receive(self, response: Response, done: int, total: int | None) -> None:
        """Write a body to the file, from byte ``done`` on."""
        from urllib3.exceptions import HTTPError

        slow = _SlowConnection(done)
        with self.part.open("r+b" if done else "wb") as file:
            file.truncate(done)
            file.seek(done)
            try:
                while True:
                    if self.progress:
                        self.progress(done, total)
                    # Not iter_content: it loses the last bytes before a connection breaks.
                    chunk = response.raw.read1(_CHUNK, decode_content=False)
                    if not chunk:
                        break
                    if done == 0 and _WEB_PAGE.match(chunk):
                        self._refuse_web_page()
                    done += len(chunk)
                    if slow.now(done):
                        file.flush()
                        raise self._failed(
                            f"the server sent less than {SLOWEST:,} bytes a second for "
                            f"{PATIENCE:.0f} s"
                        )
                    if done > LARGEST:
                        self._refuse_size()
                    if total is not None and done > total:
                        self._refuse(f"{self.url} sends more than the {total:,} bytes it should be")
                    file.write(chunk)
                complete = total is None or done == total
            except HTTPError:
                complete = False
            file.flush()
            os.fsync(file.fileno())
        if not complete:
            of_all = "" if total is None else f" of {total:,}"
            raise _Interrupted(f"the connection ended after {done:,}{of_all} bytes")

    def _validator(self) -> str | None:
        """The version that the note states of the bytes received, None if it is of no use."""
        try:
            note = json.loads(self.note.read_text(encoding="utf-8"))
            validator = note["validator"] if note["url"] == self.url else None
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        return validator if isinstance(validator, str) else None


class _SlowConnection:
    """Return whether a connection brings less than `SLOWEST` bytes a second over `PATIENCE`."""

    def __init__(self, done: int) -> None:
        """Begin to measure, with this many bytes received."""
        self._began, self._done = time.monotonic(), done

    def now(self, done: int) -> bool:
        """Check the clock; ``done`` bytes have been received."""
        passed = time.monotonic() - self._began
        if passed < PATIENCE:
            return False
        slow = done - self._done < SLOWEST * passed
        self._began, self._done = time.monotonic(), done
        return slow
