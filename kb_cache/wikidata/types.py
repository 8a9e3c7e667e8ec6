"""Wikidata in process: a dump, or a part of one, queried in SPARQL without a server.

from kb_cache.wikidata.load import load_wikidata

wikidata = load_wikidata("sample")
wikidata.select("SELECT ?spouse WHERE { wd:Q37079 wdt:P26 ?spouse }").rows
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kb_cache.knowledge import Loaded
from kb_cache.wikidata.sparql.results import parse
from kb_cache.wikidata.sparql.types import SparqlAnswer, prepared
from kbprobe.errors import SnapshotError, UsageError

if TYPE_CHECKING:
    from pyoxigraph import Store

KIND = "wikidata"
#: The subfolder of a snapshot that holds the engine's files.
STORE = "store"


@dataclass(frozen=True, eq=False)
class Wikidata(Loaded):
    """A snapshot of Wikidata's triples; a `kb_cache.wikidata.sparql.types.QuerySource`.

    Its digest names the text that was loaded, however it was compressed; its version is the
    beginning of the sha256 of the file.

    Attributes:
        folder: the engine's files; ``oxigraph serve-read-only`` takes it as well.
        store: the engine, open.
        triples: their number.
    """

    folder: Path
    store: Store
    triples: int

    def __len__(self) -> int:
        return self.triples

    def __repr__(self) -> str:
        return f"<Wikidata {self.name}: {len(self):,} triples, digest {self.digest[:12]}>"

    def select(self, query: str) -> SparqlAnswer:
        """Answer a SELECT query, which is given without prefixes.

        Raises:
            UsageError: it is not SPARQL 1.1, or not a SELECT query.
            SnapshotError: the engine cannot read its files.
        """
        from pyoxigraph import QueryResultsFormat, QuerySolutions

        try:
            found = self.store.query(prepared(query))
            if not isinstance(found, QuerySolutions):
                raise UsageError(f"not a SELECT query: {query.strip()}")
            # Through JSON, so that answers are processed like those of an endpoint.
            body = found.serialize(format=QueryResultsFormat.JSON)
        except SyntaxError as error:
            raise UsageError(f"the query is not SPARQL: {error}. It is: {query.strip()}") from error
        except OSError as error:
            raise SnapshotError(
                f"{self.name} cannot be read: {error}. See kb-cache verify {self.name}"
            ) from error
        return parse(body or b"", self.name)
