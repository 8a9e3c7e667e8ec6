"""The answers of SPARQL endpoints on disk; ``kb-cache`` lists, verifies and clears them.

Layout: ``CACHE/sparql/SLUG/HASH.json.gz``, one folder for each endpoint and one file for each
answer, named by the sha256 of the prepared query. Files are written atomically, so a run that is
killed loses nothing and the next one continues from there.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from kb_cache.base import Holding
from kb_cache.listing import age, date, row
from kb_cache.unpack import Allowance, unpacking
from kb_cache.wikidata.sparql.types import SparqlAnswer, Term, answer, answer_digest, answer_json
from kbprobe import files
from kbprobe.files.cache import cache_dir, usable

_FORMAT = 1
_SUFFIX = ".json.gz"
_ANSWER = re.compile(r"[0-9a-f]{64}\.json\.gz")


class DamagedAnswer(ValueError):
    """A file in the cache is damaged."""


class CachedAnswer(NamedTuple):
    """The answer to a prepared query and where it is from.

    ``version`` is what the endpoint (its address) stated of its data then, "" for nothing.
    """

    endpoint: str
    query: str
    version: str
    answer: SparqlAnswer


def slug(url: str) -> str:
    """Return a file name for an endpoint: readable, and different for every address."""
    parts = urlsplit(url)
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", parts.netloc + parts.path).strip("-.")
    return f"{plain[:60]}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"


def answers_dir() -> Path:
    """Return the folder of all cached answers (which need not exist)."""
    return cache_dir() / "sparql"


def answer_path(url: str, digest: str) -> Path:
    """Return the file of an endpoint's answer to a query (which need not exist)."""
    return answers_dir() / slug(url) / f"{digest}{_SUFFIX}"


def read(path: Path) -> CachedAnswer:
    """Read a cached answer, and compare it with its checksum.

    Raises:
        FileNotFoundError: there is no such file.
        DamagedAnswer: it has changed since it was written.
    """
    try:
        with path.open("rb") as file:
            packed = unpacking(file, ".gz")
            said = json.loads(Allowance(path.stat().st_size).read(packed))
        if said["format"] != _FORMAT:
            raise ValueError("another format")
        endpoint, query, date, version = map(said.get, ("endpoint", "query", "date", "version"))
        variables, rows = said["answer"]
        if not all(isinstance(text, str) for text in (endpoint, query, date, version, *variables)):
            raise TypeError("no text")
        terms = [tuple(None if term is None else Term(*term) for term in row) for row in rows]
        cached = CachedAnswer(endpoint, query, version, answer(variables, terms, date))
        stated = said["rows"], said["sha256"]
    except FileNotFoundError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedAnswer(f"it cannot be read: {error}") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedAnswer("it is not a cached answer, or one of another version") from error
    if stated != (len(cached.answer.rows), answer_digest(cached.answer)):
        raise DamagedAnswer("its rows do not match its checksum")
    digest = hashlib.sha256(cached.query.encode("utf-8", "surrogatepass")).hexdigest()
    if (path.parent.name, path.name) != (slug(cached.endpoint), f"{digest}{_SUFFIX}"):
        raise DamagedAnswer("it is the answer to another query")
    return cached


def write(path: Path, cached: CachedAnswer) -> None:
    """Write an answer atomically.

    Raises:
        CacheError: the cache folder cannot be written.
    """
    said = {
        "format": _FORMAT, "endpoint": cached.endpoint, "query": cached.query,
        "date": cached.answer.date, "version": cached.version, "rows": len(cached.answer.rows),
        "sha256": answer_digest(cached.answer), "answer": json.loads(answer_json(cached.answer)),
    }  # fmt: skip
    with usable(path.parent):
        files.write_file(path, gzip.compress(json.dumps(said).encode(), mtime=0))


def endpoints_answers() -> list[EndpointAnswers]:
    """Return the cached answers of each endpoint, sorted by name.

    Raises:
        CacheError: the cache folder cannot be read.
    """
    with usable(answers_dir()):
        folders = answers_dir().iterdir() if answers_dir().exists() else ()
        found = [EndpointAnswers(folder) for folder in sorted(folders) if folder.is_dir()]
    return [answers for answers in found if not answers.is_empty()]


class EndpointAnswers(Holding):
    """The cached answers of one endpoint; its name is "sparql-..."."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, f"sparql-{folder.name}"

    def row(self) -> dict[str, Any]:
        """Return the entry of ``kb-cache list --json``."""
        with usable(self.folder):
            stats = [path.stat() for path in self._files(_ANSWER)]
        times, now = [stat.st_mtime for stat in stats], time.time()
        newest, oldest = max(times, default=0.0), min(times, default=0.0)
        ages = dict.fromkeys((age(now - newest), age(now - oldest)))
        return row(
            self.name, kind="answers", rows={"answers": len(stats)},
            bytes=sum(stat.st_size for stat in stats), age=" to ".join(ages) if stats else "-",
            created=date(newest), oldest=date(oldest), folder=str(self.folder),
            endpoint=self._endpoint(),
        )  # fmt: skip

    def is_empty(self) -> bool:
        """Return whether the folder holds no answer: then it may be another program's."""
        return not self._files(_ANSWER) and not files.hidden(self.folder)

    def damage(self) -> list[str]:
        """Read every answer, and compare it with its checksum."""
        return [f"{path.name}: {problem}" for path, problem in self._damaged().items()]

    def repair(self) -> str:
        """Remove damaged answers."""
        self._unlink(self._damaged())
        return "damaged answers removed; they are asked for again when needed"

    def remove(self) -> bool:
        """Remove all answers and incomplete files; other files are kept."""
        self._unlink([*self._files(_ANSWER), *files.hidden(self.folder)])
        with usable(self.folder):
            if not any(self.folder.iterdir()):
                self.folder.rmdir()
        return True

    def _files(self, name: re.Pattern[str]) -> list[Path]:
        with usable(self.folder):
            return sorted(path for path in self.folder.iterdir() if name.fullmatch(path.name))

    def _unlink(self, paths: Iterable[Path]) -> None:
        with usable(self.folder):
            for path in paths:
                path.unlink(missing_ok=True)

    def _damaged(self) -> dict[Path, str]:
        found = {}
        for path in self._files(_ANSWER):
            try:
                read(path)
            except DamagedAnswer as error:
                found[path] = str(error)
            except FileNotFoundError:  # removed meanwhile
                continue
        return found

    def _endpoint(self) -> str:
        """The endpoint's address, "" if no answer of it can be read."""
        for path in self._files(_ANSWER):
            try:
                return read(path).endpoint
            except (DamagedAnswer, OSError):
                continue
        return ""
