"""Answers of endpoints on disk: each is there as soon as it has come, and is never asked again."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from evaluation.endpoints.spans import Pair, Scored
from kb_cache.store import unusable
from kbprobe.errors import CacheError
from kbprobe.files import write_file

ENDPOINTS = "endpoints"
"""The folder of all answers, in kbprobe's cache."""

_FILE = "answers.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS models (digest TEXT PRIMARY KEY, tokens TEXT, log_probs TEXT);
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY, log_likelihood REAL, tokens INTEGER, prompt_tokens INTEGER, obstacle TEXT,
    straddles INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contexts (key BLOB PRIMARY KEY, tokens TEXT) WITHOUT ROWID;
"""
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
            rows = self._connection.execute("SELECT digest, tokens, log_probs FROM models")
            return [(digest, json.loads(one), json.loads(two)) for digest, one, two in rows]

    def add_model(self, digest: str, tokens: Sequence[str], log_probs: Sequence[float]) -> None:
        """Keep what answered; see :meth:`models`."""
        row = (digest, json.dumps(list(tokens)), json.dumps(list(log_probs)))
        with self._usable():
            self._connection.execute("INSERT OR IGNORE INTO models VALUES (?, ?, ?)", row)

    def find(self, digest: str, pair: Pair) -> Scored | None:
        """Return what a model of this digest answered; None: it has not been asked."""
        with self._usable():
            found = self._connection.execute(
                "SELECT log_likelihood, tokens, prompt_tokens, obstacle, straddles FROM answers "
                "WHERE key = ?",
                (_key(digest, *pair),),
            ).fetchone()
        if found is None:
            return None
        log_likelihood, tokens, prompt_tokens, obstacle, straddles = found
        return Scored(log_likelihood, tokens, prompt_tokens, obstacle, bool(straddles))

    def add(self, digest: str, pair: Pair, scored: Scored) -> None:
        """Keep an answer."""
        with self._usable():
            self._connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)",
                (_key(digest, *pair), *scored),
            )

    def find_context(self, digest: str, context: str) -> list[str] | None:
        """Return the tokens of a context that was sent alone; None: it was not."""
        with self._usable():
            found = self._connection.execute(
                "SELECT tokens FROM contexts WHERE key = ?", (_key(digest, context),)
            ).fetchone()
            return None if found is None else list(json.loads(found[0]))

    def add_context(self, digest: str, context: str, tokens: Sequence[str]) -> None:
        """Keep the tokens of a context that was sent alone."""
        with self._usable():
            self._connection.execute(
                "INSERT OR REPLACE INTO contexts VALUES (?, ?)",
                (_key(digest, context), json.dumps(list(tokens))),
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


def _key(digest: str, *texts: str) -> bytes:
    text = json.dumps([digest, *texts])
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
