"""Querying a source: with a cache of answers, with a record, for many values in chunks."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from kb_cache.wikidata.sparql import answers
from kb_cache.wikidata.sparql.endpoint import QueryLimits, SparqlEndpoint
from kb_cache.wikidata.sparql.types import (
    WIKIDATA_ENTITY,
    QuerySource,
    QueryTimeout,
    SparqlAnswer,
    answer,
    answer_digest,
    prepared,
    query_digest,
)
from kbprobe.errors import MissingDependencyError, SourceError, UsageError
from kbprobe.files.cache import CACHE_VARIABLE
from kbprobe.http import checked_url, printable

#: Values asked for in one query.
CHUNK = 200

_WIKIDATA_ID = re.compile(r"[QPL][1-9][0-9]*")
_IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\]*')
_TAGGED = re.compile(r'"(?:[^"\\\n\r]|\\[\\"nr])*"@[A-Za-z]+(?:-[A-Za-z0-9]+)*')
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: A query for some values.
QueryFor = Callable[[Sequence[str]], str]


class RecordedQuery(NamedTuple):
    """A query that was sent and its answer, as a manifest records them.

    ``query`` and ``answer`` are sha256 (hex) of the prepared query and of the answer (see
    `answer_digest`), ``date`` is when it was given (ISO 8601, UTC), ``rows`` their number.
    """

    query: str
    date: str
    rows: int
    answer: str


def utc_now() -> str:
    """Return the time as answers are dated: ISO 8601, UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class QuerySession:
    """Sends queries to a source and records them."""

    def __init__(self, source: QuerySource, now: Callable[[], str] = utc_now) -> None:
        self.source = source
        self._now = now
        self._recorded: dict[str, RecordedQuery] = {}
        self._answers: dict[str, str] = {}

    @property
    def queries(self) -> list[RecordedQuery]:
        """Each query once, in the order of asking."""
        return list(self._recorded.values())

    @property
    def digest(self) -> str:
        """A sha256 over all queries and answers, in hex.

        It depends neither on the source and the date nor on the order of asking, nor on whether
        an endpoint needed a query in smaller parts (`select_values`).
        """
        pairs = json.dumps(sorted(self._answers.items()), separators=(",", ":"))
        return hashlib.sha256(pairs.encode()).hexdigest()

    def select(self, query: str) -> SparqlAnswer:
        """Send a query to the source and record it."""
        found = self._ask(query)
        self._answers[query_digest(query)] = self._recorded[query_digest(query)].answer
        return found

    def select_part(self, query: QueryFor, values: Sequence[str]) -> SparqlAnswer:
        """Ask for some values, in halves if all together are too expensive for the source."""
        found = self._ask_or_halve(query, values)
        self._answers[query_digest(query(values))] = answer_digest(found)
        return found

    def _ask(self, query: str) -> SparqlAnswer:
        found = self.source.select(query)
        digest = query_digest(query)
        if digest not in self._recorded:
            self._recorded[digest] = RecordedQuery(
                digest, found.date or self._now(), len(found.rows), answer_digest(found)
            )
        return found

    def _ask_or_halve(self, query: QueryFor, values: Sequence[str]) -> SparqlAnswer:
        if not self._halved_before(query, values):
            try:
                return self._ask(query(values))
            except QueryTimeout:
                if len(values) == 1:
                    raise
        middle = len(values) // 2
        return _join(
            [self._ask_or_halve(query, half) for half in (values[:middle], values[middle:])]
        )

    def _halved_before(self, query: QueryFor, values: Sequence[str]) -> bool:
        """Whether the source has the first half and not the whole: that was too expensive.

        So a later run, which may be offline, need not try the whole again.
        """
        has: Callable[[str], bool] | None = getattr(self.source, "has", None)
        if len(values) == 1 or has is None or has(query(values)):
            return False
        half = values[: len(values) // 2]
        return has(query(half)) or self._halved_before(query, half)


def select_values(
    source: QuerySource | QuerySession,
    query: str,
    variable: str,
    values: Iterable[str],
    chunk: int = CHUNK,
) -> SparqlAnswer:
    """Ask a query for many values of one variable, some at a time.

    A chunk that is too expensive for the source is halved and asked again, down to single values.

    Args:
        source: what to ask; a `QuerySession` records each query that was really answered.
        query: holds ``$values`` once, where ``VALUES ?variable { ... }`` is put. It must select
            the variable (or group by it), so that the answers to chunks add up to the whole's.
        variable: its name, without "?".
        values: IRIs, ids of Wikidata ("Q42"), or literals as `tagged_literal` writes them. They are
            sorted and used once, so that the chunks are the same every time.
        chunk: values asked for in one query.

    Returns:
        All rows, sorted. Without values nothing is asked, and there are neither variables nor
        rows.

    Raises:
        QueryTimeout: a single value was too expensive.
        SourceError: there is no valid answer.
        UsageError: the query does not hold ``$values`` once, or a value is no IRI.
    """
    if query.count("$values") != 1 or chunk < 1 or not _VARIABLE.fullmatch(variable):
        raise UsageError(
            "a query for chunks of values holds $values once, its variable is a plain name, and "
            f"its chunks are of 1 or more values; not {variable!r}, {chunk} and: {query.strip()}"
        )
    before, after = query.split("$values")

    def query_for(part: Sequence[str]) -> str:
        return f"{before}VALUES ?{variable} {{ {' '.join(map(_written, part))} }}{after}"

    wanted = sorted({_iri(value) for value in values})
    parts = [wanted[start : start + chunk] for start in range(0, len(wanted), chunk)]
    session = source if isinstance(source, QuerySession) else QuerySession(source)
    return _join([session.select_part(query_for, part) for part in parts])


def _join(answers: Sequence[SparqlAnswer]) -> SparqlAnswer:
    """Join the answers to the parts of a query."""
    heads = {found.variables for found in answers}
    if len(heads) > 1:
        raise SourceError(f"parts of one query were answered with different variables: {heads}")
    return answer(heads.pop() if heads else (), (row for found in answers for row in found.rows))


def tagged_literal(text: str, language: str) -> str:
    """Return a text with a language tag as written in a query."""
    return f'"{text.translate(_ESCAPES)}"@{language}'


def _iri(value: str) -> str:
    if _WIKIDATA_ID.fullmatch(value):
        return WIKIDATA_ENTITY + value
    if not _IRI.fullmatch(value) and not _TAGGED.fullmatch(value):
        raise UsageError(
            f"{value!r} is neither an id of Wikidata, such as Q42, nor an IRI, nor a literal"
        )
    return value


def _written(iri: str) -> str:
    """Return a value as written in a query: short, if it is one of Wikidata's entities."""
    if _TAGGED.fullmatch(iri):
        return iri
    short = iri.removeprefix(WIKIDATA_ENTITY)
    return f"wd:{short}" if short != iri and _WIKIDATA_ID.fullmatch(short) else f"<{iri}>"


logger = logging.getLogger(__name__)

#: Wikidata's statement of its own age; other graphs have no such triple, and so no version.
VERSION_QUERY = "SELECT ?date WHERE { <http://www.wikidata.org> schema:dateModified ?date }"


class NotCached(SourceError):
    """An answer is needed offline but is not cached."""


class CachedEndpoint:
    """An endpoint with a cache of its answers: a source that sends each query once.

    Attributes:
        url: the endpoint's address.
        name: "wikidata-HOST", for the manifest.
        licence: SPDX expression of the data's licence.
    """

    licence = "CC0-1.0"

    def __init__(
        self,
        endpoint: str | SparqlEndpoint,
        offline: bool = False,
        refresh: bool = False,
        limits: QueryLimits | None = None,
        now: Callable[[], str] = utc_now,
    ) -> None:
        """Prepare; nothing is read or sent yet.

        Args:
            endpoint: one, or its address; then it is made when an answer is first missing, so
                that a build from the cache needs neither contact nor SPARQLWrapper.
            offline: use only cached answers and never open a connection.
            refresh: send every query again, and replace cached answers.
            limits: of an endpoint given by its address.
            now: the date of answers.
        """
        self._endpoint = endpoint if isinstance(endpoint, SparqlEndpoint) else None
        self.url = endpoint.url if isinstance(endpoint, SparqlEndpoint) else checked_url(endpoint)
        self.name = f"wikidata-{urlsplit(self.url).hostname}"
        self.offline, self._refresh, self._limits, self._now = offline, refresh, limits, now
        self._stated: str | None = None
        self._used: set[str] = set()
        self._versions: set[str] = set()

    @property
    def version(self) -> str:
        """The endpoint's statement of its data version when it gave the answers used so far.

        "FIRST to LAST" if that changed meanwhile. Before any answer is used the endpoint is
        asked, unless offline.
        """
        versions = sorted(self._versions) or [self._stated_version()]
        return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"

    def has(self, query: str) -> bool:
        """Return whether `select` would find the answer in the cache."""
        digest = query_digest(query)
        if self._refresh and not self.offline and digest not in self._used:
            return False
        return answers.answer_path(self.url, digest).is_file()

    def select(self, query: str) -> SparqlAnswer:
        """Answer a SELECT query from the cache, or ask the endpoint and keep the answer.

        Raises:
            NotCached: it is missing or damaged, and we are offline.
            QueryTimeout: it was too expensive for the endpoint.
            SourceError: the endpoint gave no valid answer; see `SparqlEndpoint.ask`.
            UsageError: it is not a SELECT query, or the endpoint needs a contact.
            CacheError: the cache folder cannot be used.
        """
        digest = query_digest(query)
        path, shown = answers.answer_path(self.url, digest), repr(printable(query, 100))
        cached = None
        try:
            cached = answers.read(path) if self.has(query) else None
        except FileNotFoundError:  # removed in the meantime
            pass
        except answers.DamagedAnswer as error:
            if self.offline:
                raise NotCached(
                    f"the cached answer {path} is damaged ({error}), and we are offline: the "
                    f"query {shown} cannot be answered. Run once without --offline to ask for it "
                    "again."
                ) from error
            logger.warning("the cached answer %s is damaged (%s); asking again", path, error)
        if cached is None:
            if self.offline:
                raise NotCached(
                    f"offline, and no answer of {self.url} is cached for the query {shown} "
                    f"(sha256 {digest[:12]}). Run once without --offline, with the same options, "
                    f"to get it; or set {CACHE_VARIABLE} to the cache that has it."
                )
            endpoint, version = self._opened(), self._stated_version()
            found = replace(endpoint.ask(prepared(query)), date=self._now())
            cached = answers.CachedAnswer(self.url, prepared(query), version, found)
            answers.write(path, cached)
        self._used.add(digest)
        self._versions.add(cached.version)
        return cached.answer

    def _stated_version(self) -> str:
        """Return the data version that the endpoint states, requested once; "" if none."""
        if self._stated is None:
            self._stated = ""
            if not self.offline:
                try:
                    rows = self._opened().ask(prepared(VERSION_QUERY), attempts=1).rows
                except (SourceError, UsageError, MissingDependencyError) as error:
                    logger.warning("%s states no version of its data: %s", self.url, error)
                else:
                    self._stated = max((row[0].value for row in rows if row[0]), default="")
        return self._stated

    def _opened(self) -> SparqlEndpoint:
        if self._endpoint is None:
            self._endpoint = SparqlEndpoint(self.url, limits=self._limits)
        return self._endpoint
