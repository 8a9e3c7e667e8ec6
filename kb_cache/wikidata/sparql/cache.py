"""A SPARQL endpoint behind its cache of answers: asked once, then read from the disk."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

from kb_cache import store
from kb_cache.servers import checked_url, printable
from kb_cache.wikidata.sparql import answers
from kb_cache.wikidata.sparql.endpoint import Endpoint, Limits
from kb_cache.wikidata.sparql.session import utc_now
from kb_cache.wikidata.sparql.types import Answer, prepared, query_digest
from kbprobe.errors import MissingDependencyError, SourceError, UsageError

logger = logging.getLogger(__name__)

#: Wikidata's statement of its own age; other graphs have no such triple, and so no version.
VERSION_QUERY = "SELECT ?date WHERE { <http://www.wikidata.org> schema:dateModified ?date }"


class NotCached(SourceError):
    """An answer is needed offline and is not there."""


class CachedEndpoint:
    """An endpoint behind the answers it gave before: a source that asks each query once.

    Attributes:
        url: the endpoint's address.
        name: for the manifest.
        licence: SPDX expression of the data's licence.
    """

    def __init__(
        self,
        endpoint: str | Endpoint,
        offline: bool = False,
        refresh: bool = False,
        name: str | None = None,
        licence: str = "CC0-1.0",
        limits: Limits | None = None,
        now: Callable[[], str] = utc_now,
    ) -> None:
        """Prepare; nothing is read or sent yet.

        Args:
            endpoint: one, or its address; then it is made when an answer is first missing, so
                that a build from the cache needs neither contact nor SPARQLWrapper.
            offline: use cached answers alone and never open a connection.
            refresh: ask every query once more, and replace cached answers.
            name: by default "wikidata-HOST".
            licence: of the data.
            limits: of an endpoint given by its address.
            now: the date of answers.
        """
        self._endpoint = endpoint if isinstance(endpoint, Endpoint) else None
        self.url = endpoint.url if isinstance(endpoint, Endpoint) else checked_url(endpoint)
        self.name = name or f"wikidata-{urlsplit(self.url).hostname}"
        self.licence = licence
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

    def select(self, query: str) -> Answer:
        """Answer a SELECT query from the cache, or ask the endpoint and keep the answer.

        Raises:
            NotCached: it is not there, or damaged, and we are offline.
            QueryTimeout: it was too expensive for the endpoint.
            SourceError: the endpoint gave no valid answer; see `Endpoint.ask`.
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
                    f"to get it; or set {store.CACHE_VARIABLE} to the cache that has it."
                )
            endpoint, version = self._opened(), self._stated_version()
            found = replace(endpoint.ask(prepared(query)), date=self._now())
            cached = answers.CachedAnswer(self.url, prepared(query), version, found)
            answers.write(path, cached)
        self._used.add(digest)
        self._versions.add(cached.version)
        return cached.answer

    def _stated_version(self) -> str:
        """The endpoint's statement of its data version, asked once; "" if it makes none."""
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

    def _opened(self) -> Endpoint:
        if self._endpoint is None:
            self._endpoint = Endpoint(self.url, limits=self._limits)
        return self._endpoint
