"""Answers of endpoints on disk: each is stored as soon as it arrives, and never requested again."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kb_cache.store import unusable
from kbprobe.errors import CacheError
from kbprobe.files import write_file

ENDPOINTS = "endpoints"
"""The folder of all answers, in kbprobe's cache."""

_FILE = "answers.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS sealed (
    kind TEXT, key BLOB, content BLOB, seal BLOB, PRIMARY KEY (kind, key)
) WITHOUT ROWID;
"""
"""Each row carries a checksum of its content and key: a damaged one is asked again."""
_MODELS = "SELECT key, content, seal FROM sealed WHERE kind = 'model'"
_ENTRY = "SELECT key, content, seal FROM sealed WHERE kind = ? AND key = ?"
_BUSY = 60.0
"""Seconds that another process may write."""


class AnswerStore:
    """The answers of one model of one endpoint; for one thread, and for several processes."""

    def __init__(self, url: str, model: str, root: Path) -> None:
        """Open the store, or make it.

        Args:
            url: of the endpoint.
            model: as the endpoint calls it.
            root: the folder of all caches.

        Raises:
            CacheError: the folder cannot be written, or the file is damaged.
        """
        name = hashlib.sha256(json.dumps([url, model]).encode()).hexdigest()[:32]
        self._folder = root / ENDPOINTS / name
        about = self._folder / "about.json"
        with self._usable():
            if not about.is_file():
                write_file(about, json.dumps({"endpoint": url, "model": model}))
            self._connection = sqlite3.connect(
                self._folder / _FILE, timeout=_BUSY, isolation_level=None
            )
            # Damaged text must fail the checksum of its row, not the reading of the whole file.
            self._connection.text_factory = bytes
            # Commits wait for no disk, and neither a kill nor a power cut damages the file.
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def models(self) -> list[tuple[str, list[str], list[float]]]:
        """Return what answered so far: its digest, and tokens and log-probabilities of a text."""
        with self._usable():
            rows = self._connection.execute(_MODELS).fetchall()
            return [tuple(found) for row in rows if (found := _opened("model", *row)) is not None]

    def add_model(self, digest: str, tokens: Sequence[str], log_probs: Sequence[float]) -> None:
        """Keep what answered; see :meth:`models`."""
        self._add("model", digest.encode(), (digest, list(tokens), list(log_probs)))

    def find(self, kind: str, *request: str) -> Any:
        """Return what was kept of the answer to a request; None: it has not been sent.

        Args:
            kind: ``answer``, ``context`` (its tokens, where it was sent alone) or ``reply``.
            request: the digest of the model, and the texts that were sent.
        """
        with self._usable():
            row = self._connection.execute(_ENTRY, (kind, _key(*request))).fetchone()
            return None if row is None else _opened(kind, *row)

    def add(self, kind: str, content: Any, *request: str) -> None:
        """Keep an answer that JSON can hold; see :meth:`find`."""
        self._add(kind, _key(*request), content)

    def _add(self, kind: str, key: bytes, content: Any) -> None:
        told = json.dumps(content).encode()
        with self._usable():
            self._connection.execute(
                "INSERT OR REPLACE INTO sealed VALUES (?, ?, ?, ?)",
                (kind, key, told, _seal(kind, key, told)),
            )

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise unusable(self._folder, error) from error
        except (sqlite3.Error, ValueError) as error:
            raise CacheError(
                f"{self._folder / _FILE}, which holds the answers of an endpoint, cannot be used "
                f"({error}). If it is damaged, remove it: what it holds is asked again."
            ) from error


def _seal(kind: str, key: bytes, content: bytes) -> bytes:
    return hashlib.sha256(b"\0".join((kind.encode(), key.hex().encode(), content))).digest()


def _opened(kind: str, key: Any, content: Any, seal: Any) -> Any:
    """Return the content of a row; None where it is not what was written."""
    whole = isinstance(key, bytes) and isinstance(content, bytes)
    return json.loads(content) if whole and _seal(kind, key, content) == seal else None


def _key(*request: str) -> bytes:
    return hashlib.blake2b(json.dumps(request).encode(), digest_size=16).digest()
