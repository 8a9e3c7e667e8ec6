"""Texts that a model has read, given as files: which words and phrases occur in them, how often.

``--seen`` names the texts of the task that a model was trained on, ``--unigrams`` those of its
pre-training, or the counts of their words. A file is plain text, JSON or JSON lines, of which all
strings are read, or Parquet, likewise; any of them but Parquet may be gzipped. A folder stands for
all files in it that are not hidden.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from evaluation.content import content_hash
from kb_cache.frequency import words_of
from kbprobe.errors import UsageError
from kbprobe.files import file_sha256, regular_path
from kbprobe.parsing import json_value
from kbprobe.reading import MAX_TABLE_BYTES, check_plain, open_file, stamp_of

_COUNT = re.compile(r"([^\t]+)\t(\d+)")
_LIKE_COUNT = re.compile(
    r"""\s*(?:[^\t]+\t|[^\s,;]+[\s,;]\s*)["']?[-+]?\d[\d.,e+-]*["']?\s*(?:[\t,;].*)?"""
    r"|\s*\d+[\s,;]+[^\s,;]+\s*",
    re.IGNORECASE,
)
"""A line of a table of counts in another form: ``the,12``, ``the 12``, ``12 the``."""

_LOOKED_AT = 100
"""Lines at the beginning of a file that tell whether it is a table of counts."""


@dataclass(frozen=True)
class TextFiles:
    """The files that an option names.

    Attributes:
        option: the option as it is written, ``--seen``: for messages.
        source: the file or folder, as it was given.
    """

    option: str
    source: str

    def files(self) -> tuple[tuple[Path, tuple[int, int]], ...]:
        """Return the files, sorted, each with when it was changed and its size.

        Raises:
            UsageError: there is no such file, or no file in the folder.
        """
        path = Path(self.source)
        if path.is_dir():
            inside = (file for file in path.rglob("*") if file.is_file() and file.name[0] != ".")
            if not (found := sorted(inside)):
                raise UsageError(f"{self.option} {path}: there is no file in this folder")
        elif path.exists():
            _require_plain(path, self.option)
            found = [path]
        else:
            raise UsageError(
                f"{self.option} {path}: there is no such file or folder. Name a file of texts "
                "(.txt, .jsonl, .json or .parquet), or a folder of such files"
            )
        return tuple((file, stamp_of(file)) for file in found)

    @property
    def sha256(self) -> str:
        """A hash of the content of the file, or of all files in the folder."""
        return _sha256(self.files())

    def phrases(self, phrases: Collection[str]) -> Collection[str]:
        """Return those of some phrases that occur in the texts as whole words, whatever their case.

        Raises:
            UsageError: as :meth:`files`, or a file cannot be read.
        """
        return _phrases_in(self.files(), frozenset(phrases), self.option)

    def inverse_frequencies(self) -> Mapping[str, float]:
        """Return one over the share of each word among all words, whatever their case.

        A file whose first line is a word, a tab and a number gives such counts in every line; the
        words of any other are counted.

        Raises:
            UsageError: as :meth:`files`, a file cannot be read, there is no word in any, or one
                looks like a table of counts in another form.
        """
        return _frequencies(self.files(), self.option)[0]

    def word_count(self) -> int:
        """Return how many words there are in all; raises what :meth:`inverse_frequencies` does."""
        return _frequencies(self.files(), self.option)[1]


def _require_plain(path: Path, option: str) -> None:
    try:
        check_plain(path)
    except OSError as error:
        raise UsageError(f"{option} {path} cannot be read: {error.strerror}") from None


_Files = tuple[tuple[Path, tuple[int, int]], ...]


@lru_cache(maxsize=8)
def _sha256(files: _Files) -> str:
    if len(files) == 1:
        return file_sha256(files[0][0])
    return content_hash({"files": sorted(file_sha256(path) for path, _ in files)})


@lru_cache(maxsize=8)
def _phrases_in(files: _Files, phrases: frozenset[str], option: str) -> frozenset[str]:
    # By their first word, and then as sequences of words.
    wanted: dict[str, dict[tuple[str, ...], set[str]]] = {}
    for phrase in phrases:
        if words := tuple(words_of(phrase)):
            wanted.setdefault(words[0], {}).setdefault(words, set()).add(phrase)
    found: set[str] = set()
    for path, _ in files:
        for text in _texts(path, option):
            read = tuple(words_of(text))
            for at, word in enumerate(read):
                if not (own := wanted.get(word)):
                    continue
                for words in [words for words in own if read[at : at + len(words)] == words]:
                    found |= own.pop(words)
    return frozenset(found)


@lru_cache(maxsize=2)
def _frequencies(files: _Files, option: str) -> tuple[Mapping[str, float], int]:
    """Return one over the share of each word, and the number of all words."""
    counts: Counter[str] = Counter()
    for path, _ in files:
        counted = None  # whether the file is one of counts: its first line tells
        texts = _texts(path, option)
        first = [*islice(texts, _LOOKED_AT)]
        _refuse_table(first, f"{option} {path}")
        for text in chain(first, texts):
            match = _COUNT.fullmatch(text) if counted is not False else None
            if match is None and counted:
                raise UsageError(
                    f"{option} {path}: {text[:60]!r} is not a word, a tab and a number, as its "
                    "first line is"
                )
            counted = match is not None
            if match is None:
                counts.update(words_of(text))
            else:
                counts[match[1].lower()] += int(match[2])
    total = counts.total()
    if not total:
        raise UsageError(
            f"{option}: there is no word in {', '.join(str(path) for path, _ in files)}"
        )
    return {word: total / count for word, count in counts.items() if count}, total


def _refuse_table(first: Sequence[str], name: str) -> None:
    """Refuse a file of counts in another form, which would be read as prose of words and numbers.

    Raises:
        UsageError: half of its first lines or more look like it, and the very first is not a count.
    """
    if not first or _COUNT.fullmatch(first[0]):
        return
    if 2 * sum(_LIKE_COUNT.fullmatch(text) is not None for text in first) >= len(first):
        raise UsageError(
            f"{name} looks like a table of counts, but not one that can be read: its first line is "
            f"{first[0][:60]!r}. Write a word, a tab and a whole number in each line, such as "
            "the<TAB>1024, without a header"
        )


def _texts(path: Path, option: str) -> Iterator[str]:
    """Yield the texts of a file, none of them empty: its lines, or all strings in its rows.

    Raises:
        UsageError: it cannot be read, is not UTF-8, or is not JSON though its name says so.
    """
    name = f"{option} {path}"
    kind = Path(path.name.removesuffix(".gz")).suffix
    try:
        if kind == ".parquet":
            yield from _parquet_texts(path)
            return
        with _opened(path) as file:
            if kind == ".json":
                content = file.read(MAX_TABLE_BYTES + 1)
                if len(content) > MAX_TABLE_BYTES:
                    raise UsageError(f"{name} is too large: write its texts as JSON lines (.jsonl)")
                yield from _strings(json_value(content, name))
                return
            for number, line in enumerate(file, 1):
                if not (text := line.rstrip("\r\n")):
                    continue
                if kind == ".jsonl":
                    yield from _strings(json_value(text, f"{name}, line {number:,},"))
                else:
                    yield text
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not text in UTF-8") from None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise UsageError(f"{name} cannot be read: {error}") from None


def _opened(path: Path) -> IO[str]:
    raw: Any = open_file(path)
    if path.suffix == ".gz":
        raw = gzip.GzipFile(fileobj=raw)
    return io.TextIOWrapper(raw, encoding="utf-8")


def _parquet_texts(path: Path) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(regular_path(path)) as file:
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    yield from _strings(row)
    except pa.ArrowException as error:
        raise ValueError(error) from None


def _strings(value: Any) -> Iterator[str]:
    """Yield all strings in a value of JSON, without the names of fields."""
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
