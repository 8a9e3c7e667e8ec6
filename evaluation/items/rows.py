"""Rows read from files, by line, and what is said of those that cannot be scored."""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kbprobe.errors import KbprobeError

UNLABELLED = "has no answer yet"

_LISTED = 5
"""Bad rows listed one by one; the rest are counted."""


class Problem(NamedTuple):
    """Why a row cannot be scored: where it is (1-based), which field, and what is wrong."""

    place: int
    field: str
    what: str


class Unreadable(NamedTuple):
    """A row that could not be read at all, and why."""

    what: str


@dataclass(frozen=True)
class Records:
    """Rows as read, not yet parsed.

    Attributes:
        unit: what places count: line, row or item.
        rows: each row's place, from 1, and what it holds: any JSON value, or
            :class:`Unreadable`. Iterate over it once: rows are read lazily, since holding
            many of them at once takes five times as long.
    """

    unit: str
    rows: Iterable[tuple[int, Any]]


def read_json(path: Path) -> Records:
    """Read a file of JSON lines or one JSON list, gzipped or not.

    Raises:
        KbprobeError: the file cannot be read, or is not UTF-8 text. A bad line does not raise;
            it is :class:`Unreadable`.
    """
    data = _content(path)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise KbprobeError(f"{path} is UTF-16. Save it as UTF-8.")
    data = data.removeprefix(codecs.BOM_UTF8)
    if data[:4096].lstrip().startswith(b"["):
        return _json_list(path, data)
    # Not splitlines: it also ends lines at characters that may occur within text.
    lines = enumerate(data.split(b"\n"), 1)
    return Records("line", ((place, _json_line(line)) for place, line in lines if line.strip()))


def _json_line(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return Unreadable(_json_problem(error))


def _content(path: Path) -> bytes:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                return file.read()
        return path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise KbprobeError(f"{path} cannot be read: {error}") from None


def _json_list(path: Path, data: bytes) -> Records:
    try:
        rows = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise KbprobeError(
            f"{path}: {_json_problem(error)}. The file must be one JSON list, or an object a line."
        ) from None
    return Records("item", enumerate(rows, 1))


def _json_problem(error: ValueError | RecursionError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: byte {error.start + 1} is 0x{error.object[error.start]:02x}"
    if isinstance(error, json.JSONDecodeError):
        where = f"line {error.lineno}, " if error.lineno > 1 else ""
        return f"not JSON: {error.msg} at {where}character {error.colno}"
    if isinstance(error, RecursionError):
        return "not JSON that can be read: nested too deeply"
    return f"not JSON that can be read: {error}"


def refusal(source: str, unit: str, problems: Sequence[Problem], total: int) -> str:
    """Word the refusal of a file: the first bad rows by place and field, the rest by number."""
    unlabelled = [problem for problem in problems if problem.what == UNLABELLED]
    if len(unlabelled) == len(problems):
        return (
            f"{source}: {len(unlabelled):,} of {total:,} rows have no answer yet (the first at "
            f"{unit} {unlabelled[0].place}), and nothing is scored on the others alone. Label "
            "them (answer: the index of the right choice), or name a split that has answers."
        )
    lines = [f"{source}: {len(problems):,} of {total:,} rows cannot be scored:"]
    for place, name, what in problems[:_LISTED]:
        lines.append(f"  {unit} {place}: {name} {what}" if name else f"  {unit} {place}: {what}")
    if len(problems) > _LISTED:
        lines.append(f"  and {len(problems) - _LISTED:,} more")
    lines.append("Nothing is scored on the other rows alone. Correct these, or take them out.")
    return "\n".join(lines)
