"""Wikidata as a kind of knowledge base: how a dump is read and loaded, and whom to credit.

RDF files are read as a stream, in bounded memory. N-Triples and N-Quads (W3C, 2014) are read in
pieces of whole lines, so that a malformed line can be named, or left out, without touching its
neighbours. Turtle has no such lines: one parser reads it from the start to the first error.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from kb_cache.base import (
    Compiled,
    Engine,
    Holding,
    Kind,
    OwnDataOptions,
    Progress,
    Source,
    readable,
)
from kb_cache.unpack import DAMAGE, LineTooLong, MalformedLines, UnpackedFile
from kb_cache.wikidata.sparql.answers import endpoints_answers
from kb_cache.wikidata.sparql.types import CONTACT_VARIABLE, WIKIDATA_ENTITY
from kb_cache.wikidata.types import KIND, STORE
from kbprobe.errors import CacheError, SourceError, UsageError
from kbprobe.files.cache import OTHER_CACHE
from kbprobe.options import named
from kbprobe.reading import open_file

if TYPE_CHECKING:
    from pyoxigraph import Quad, Store

#: File name suffixes, without ".gz" or ".bz2", and the formats that they denote.
FORMATS = {"nt": "N-Triples", "nq": "N-Quads", "ttl": "Turtle"}

_SUFFIX = re.compile(rf"\.({'|'.join(FORMATS)})(\.gz|\.bz2)?$", re.IGNORECASE)
#: Bytes of text that are parsed at a time.
_PIECE = 1 << 20
#: Bytes of a line; none is longer.
_LONGEST_LINE = 1 << 26
#: With --lenient, so many malformed lines are left out, or this share of all, whichever is more.
TOLERATED, TOLERATED_SHARE = 10, 0.5
#: Positions in pyoxigraph's messages, before and after the error itself.
_PLACE = re.compile(r"^Parser error .*?: (?=\S)|\s*\(line \d+\)$", re.DOTALL)


@dataclass
class RdfFile:
    """An RDF file, plain or compressed, and what `triples` saw of it.

    Attributes:
        path: where it is.
        lenient: leave malformed lines out (see `TOLERATED`) instead of giving up at the first.
        malformed: the lines left out.
        digest: sha256 (hex) of the unpacked text, once it has been read to its end.

    Raises:
        UsageError: the file's name does not tell its format, or the format cannot be read
            leniently.
    """

    path: Path
    lenient: bool = False
    digest: str = ""

    def __post_init__(self) -> None:
        self.malformed = MalformedLines(self.path)
        if self.format == "ttl" and self.lenient:
            raise UsageError(
                f"{self.path} is Turtle, in which no line can be left out; --lenient is for "
                "N-Triples and N-Quads"
            )

    @property
    def format(self) -> str:
        """A key of `FORMATS`, by the file's name.

        Raises:
            UsageError: the name ends otherwise.
        """
        if match := _SUFFIX.search(self.path.name):
            return match[1].lower()
        raise UsageError(
            f"the name of {self.path} does not say what it holds: it should end in "
            f"{', '.join(f'.{ending}' for ending in FORMATS)}, with or without .gz or .bz2"
        )

    def triples(self, progress: Progress | None = None) -> Iterator[Quad]:
        """Stream the triples in the file's order; those of named graphs go to the default one.

        Blank nodes keep the names that they have in the file.

        Raises:
            SourceError: the file cannot be read or is malformed; the message names the line.
        """
        digest = hashlib.sha256()
        with readable(self.path), open_file(self.path) as file:
            try:
                text = UnpackedFile(file, progress, digest)
                yield from self._turtle(text) if self.format == "ttl" else self._lines(text)
            except LineTooLong as error:
                raise SourceError(
                    f"{self.path} has {error}: it is not {FORMATS[self.format]}"
                ) from error
            except DAMAGE as error:
                raise SourceError(f"{self.path} is damaged: {error}. Get it again") from error
        self.digest = digest.hexdigest()

    def _turtle(self, text: UnpackedFile) -> Iterator[Quad]:
        from pyoxigraph import RdfFormat, parse

        try:
            yield from parse(text, RdfFormat.TURTLE)  # type: ignore[arg-type]  # read() is enough
        except SyntaxError as error:
            raise self._malformed(error.lineno or 0, error) from error

    def _lines(self, text: UnpackedFile) -> Iterator[Quad]:
        done = 0
        for piece in text.blocks(_PIECE, _LONGEST_LINE):
            try:
                found = self._parse(piece)
            except SyntaxError as error:
                if not self.lenient:
                    raise self._malformed(done + (error.lineno or 0), error) from error
                found = self._well_formed(piece, done)
                self._check_share(done + piece.count(b"\n"))
            yield from found
            done += piece.count(b"\n")

    def _parse(self, text: bytes) -> list[Quad]:
        from pyoxigraph import Quad, RdfFormat, parse

        if self.format == "nt":
            return list(parse(text, RdfFormat.N_TRIPLES))
        return [Quad(q.subject, q.predicate, q.object) for q in parse(text, RdfFormat.N_QUADS)]

    def _well_formed(self, piece: bytes, done: int) -> list[Quad]:
        """The triples of a piece's well-formed lines; the others are counted."""
        found: list[Quad] = []
        for number, line in enumerate(piece.split(b"\n"), done + 1):
            try:
                found += self._parse(line)
            except SyntaxError as error:
                self.malformed.add(number, _reason(error))
        return found

    def _check_share(self, lines: int) -> None:
        """Refuse a file of which most lines are malformed, whatever it is."""
        count = self.malformed.count
        if count > max(TOLERATED, TOLERATED_SHARE * lines):
            raise SourceError(
                f"{self.path}: {count:,} of the first {lines:,} lines are malformed, too many to "
                f"leave out: it is not {FORMATS[self.format]}. {'; '.join(self.malformed.first)}"
            )

    def _malformed(self, line: int, error: SyntaxError) -> SourceError:
        remedy = "Get it again, or correct that line"
        if self.format != "ttl":
            remedy += ", or leave all such lines out with --lenient"
        return SourceError(
            f"{self.path}, line {line:,}: not {FORMATS[self.format]}: {_reason(error)}. {remedy}"
        )


def _reason(error: SyntaxError) -> str:
    """Return pyoxigraph's error, without control characters."""
    said = _PLACE.sub("", str(error.msg or error))
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in said)


#: Triples written at a time. More are no faster and take more memory: with half a million it is
#: twice as much for files of 1.5 million triples. This many keep it at 0.2 GB however long the
#: file.
BATCH = 100_000
#: What a dump says of an entity that was merged into another, which statements may still name.
_REDIRECT = "http://www.w3.org/2002/07/owl#sameAs"
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
    from pyoxigraph import __version__ as pyoxigraph_version

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
    from pyoxigraph import Literal, NamedNode, Store

    dumped = NamedNode(_DUMPED[0]), NamedNode(_DUMPED[1])
    triples = source.triples(progress)
    try:
        written = Store(str(folder))
        try:
            while batch := list(islice(triples, BATCH)):
                written.bulk_extend(batch)
            _follow_redirects(written)
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


def _follow_redirects(store: Store) -> None:
    """Replace entities that were merged into others, where statements name them."""
    from pyoxigraph import NamedNode, Quad

    redirects = {
        quad.subject: quad.object
        for quad in store.quads_for_pattern(None, NamedNode(_REDIRECT), None)
        if isinstance(quad.subject, NamedNode)
        and isinstance(quad.object, NamedNode)
        and quad.subject.value.startswith(WIKIDATA_ENTITY)
    }
    for old, new in redirects.items():
        passed = {old}
        while new in redirects and new not in passed:
            passed.add(new)
            new = redirects[new]
        for quad in list(store.quads_for_pattern(None, None, old)):
            store.remove(quad)
            store.add(Quad(quad.subject, quad.predicate, new))


_PREFIX = re.compile(rf"^{KIND}[-_]")


class WikidataOptions(OwnDataOptions):
    """Options of ``kb-cache fetch wikidata``."""

    DEFAULTS = named(language="mul")
    HELP = named(
        language="Language of the labels; mul: of many languages.",
        source="A dump, or a part of one: N-Triples (.nt), N-Quads (.nq) or Turtle (.ttl), "
        "plain, gzip or bzip2.",
    )
    lenient: bool = Field(False, description="Skip malformed lines, and report how many.")


class WikidataKind(Kind[Source, WikidataOptions]):
    """Load a dump of Wikidata, or a part of one, to query it without a server.

    It becomes an Oxigraph store in the cache.
    """

    name = KIND
    title = "a dump of Wikidata"
    options = WikidataOptions
    licence = "CC0-1.0"
    attribution = (
        "Contains data of Wikidata (https://www.wikidata.org), which its contributors have "
        "dedicated to the public domain (CC0 1.0)."
    )
    citation = """@article{vrandecic-kroetzsch-2014,
  title   = {{Wikidata}: A Free Collaborative Knowledgebase},
  author  = {Vrande{\\v{c}}i{\\'c}, Denny and Kr{\\"o}tzsch, Markus},
  journal = {Communications of the ACM},
  volume  = {57},
  number  = {10},
  pages   = {78--85},
  year    = {2014}
}"""
    language = "mul"
    contents = "{triples:,} triples"
    packages = ("pyoxigraph",)
    extra = "wikidata"

    def stand_in(self) -> str:
        """Name the query service, where it may be asked."""
        able = find_spec("SPARQLWrapper") and os.environ.get(CONTACT_VARIABLE)
        return "the Wikidata query service" if able else ""

    @property
    def remedy(self) -> str:
        """Load a dump, or let the query service know whom to write to."""
        return (
            f"{super().remedy} (then --dump NAME); or set {CONTACT_VARIABLE} to your e-mail "
            "address to ask the query service"
        )

    def read(self, path: Path, options: WikidataOptions) -> Source:
        """Hash the file; its name must tell the format."""
        RdfFile(path, options.lenient)  # refuses names that do not
        source = Source.of_file(path)
        return replace(source, version=_PREFIX.sub("", source.version or ""))

    def compile(
        self, source: Source, options: WikidataOptions, folder: Path, progress: Progress
    ) -> Compiled:
        """Load the triples into an Oxigraph store."""
        dump = RdfFile(source.path, options.lenient)
        return load_dump(dump, source.sha256[source.path.name], folder, progress)

    def holdings(self) -> Iterator[Holding]:
        """Yield the cached answers of each endpoint."""
        yield from endpoints_answers()


WIKIDATA = WikidataKind()
