"""Reading of files that come from users, within limits; the readers of all formats begin here.

A pipe would block, a device or a sparse file has no end: only regular files are opened, and what
is held in memory has a limit. Messages name the file.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from kbprobe.errors import UsageError

MAX_TEXT_BYTES = 1 << 24
"""Maximum bytes of a text that people write or read, such as a card; kbprobe's have 50 KB."""
MAX_TABLE_BYTES = 1 << 30
"""Maximum bytes of a table as text (JSON lines, CSV), which is held in memory."""
_NOT_PLAIN = "it is not a plain file"
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


def check_plain(path: Path) -> None:
    """Check that a path leads to a regular file, for libraries that open it themselves.

    Raises:
        OSError: it is something else, or cannot be looked at.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, _NOT_PLAIN, str(path))


def stamp_of(path: Path) -> tuple[int, int]:
    """Return when a file was last changed, and its size; zeros if it is absent."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def open_file(path: Path) -> BufferedReader:
    """Open a regular file, to read it in pieces.

    Raises:
        OSError: it is something else (a pipe would block), or cannot be opened.
    """
    check_plain(path)
    descriptor = os.open(path, _FLAGS)  # does not block, if it has become a pipe by now
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    raise OSError(errno.EINVAL, _NOT_PLAIN, str(path))


def read_bytes(path: Path, limit: int, remedy: str = "") -> bytes:
    """Return the content of a regular file of at most ``limit`` bytes.

    Args:
        path: the file.
        limit: its maximum size.
        remedy: a sentence for messages that says what to do.

    Raises:
        FileNotFoundError: there is no such file.
        UsageError: it is not a regular file, too large, or cannot be read.
    """
    try:
        with open_file(path) as file:
            content = file.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(*error.args) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise UsageError(sentence(f"{path} cannot be read: {reason}", remedy)) from None
    if len(content) > limit:
        problem = f"{path} has more than {limit:,} bytes, the most that is read"
        raise UsageError(sentence(problem, remedy))
    return content


def read_text(path: Path, limit: int = MAX_TEXT_BYTES, remedy: str = "") -> str:
    """Return the text of a regular file in UTF-8, with the line ends of Unix; see `read_bytes`."""
    content = read_bytes(path, limit, remedy)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(sentence(f"{path} {not_utf8(error)}", remedy)) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def not_utf8(error: UnicodeDecodeError) -> str:
    r"""Say where a content is not UTF-8.

    >>> try:
    ...     b"a\nb\xff".decode()
    ... except UnicodeDecodeError as error:
    ...     not_utf8(error)
    'is not UTF-8 text (line 2, byte 4)'
    """
    line = error.object.count(b"\n", 0, error.start) + 1
    return f"is not UTF-8 text (line {line:,}, byte {error.start + 1:,})"


def sentence(problem: str, remedy: str) -> str:
    """Return a problem, followed by what to do about it."""
    return f"{problem.rstrip('.')}. {remedy}" if remedy else problem
