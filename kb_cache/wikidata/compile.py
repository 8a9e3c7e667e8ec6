"""Loading a dump of Wikidata into an Oxigraph store."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from pyoxigraph import Literal, NamedNode, Store
from pyoxigraph import __version__ as pyoxigraph_version

from kb_cache.base import Compiled, Engine, Progress
from kb_cache.store import OTHER_CACHE
from kb_cache.wikidata.source import RdfFile
from kb_cache.wikidata.types import STORE
from kbprobe.errors import CacheError, SourceError

#: Triples written at a time. More are no faster and take more memory: with half a million it is
#: twice as much for files of 1.5 million triples. This many keep it at 0.2 GB however long the
#: file.
BATCH = 100_000
#: The statement of a dump about itself in its first lines: subject and property.
_DUMPED = "http://wikiba.se/ontology#Dump", "http://schema.org/dateModified"


def load_dump(source: RdfFile, sha256: str, folder: Path, progress: Progress) -> Compiled:
    """Write a new store into a subfolder of a snapshot's folder.

    The beginning of the file's sha256 is the version. ``progress`` is called with how many bytes
    of the file have been read, and its size.

    Raises:
        SourceError: the file cannot be read, is malformed, or holds no triple.
        CacheError: the store cannot be written.
    """
    count, day = _load(source, folder / STORE, progress)
    description = f"Wikidata from {source.path.name}"
    return Compiled(
        description=f"{description}, a dump of {day}" if day else description,
        notes=source.malformed.notes,
        created_by={"pyoxigraph": pyoxigraph_version},
        engine=Engine(STORE, source.digest, {"triples": count}),
        version=sha256[:12],
    )


def _load(source: RdfFile, folder: Path, progress: Progress) -> tuple[int, str]:
    """Write a store; return how many triples it holds and the day of the dump, "" if not stated.

    When this returns or raises, the engine has closed its files.
    """
    dumped = NamedNode(_DUMPED[0]), NamedNode(_DUMPED[1])
    triples = source.triples(progress)
    try:
        written = Store(str(folder))
        try:
            while batch := list(islice(triples, BATCH)):
                written.bulk_extend(batch)
            written.optimize()
            count = len(written)
            dates = [quad.object for quad in written.quads_for_pattern(*dumped, None)]
        finally:
            del written
    except OSError as error:  # the source's own errors have become SourceErrors
        raise CacheError(
            f"the store in {folder} cannot be written: {error}. {OTHER_CACHE}"
        ) from error
    if not count:
        left_out = "".join(f" ({note})" for note in source.malformed.notes)
        raise SourceError(f"{source.path} holds no triple{left_out}")
    days = sorted(date.value[:10] for date in dates if isinstance(date, Literal))
    return count, days[-1] if days else ""
