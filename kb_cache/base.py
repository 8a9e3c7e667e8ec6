"""The kinds of knowledge bases that can be fetched: their interface and registry.

A *kind* (`Kind`) says how WordNet, ConceptNet, ... are fetched and compiled, and whom to credit for
them. What a probe is built from is in `kb_cache.knowledge`.

A kind is registered as "module:attribute" and imported only when it is used. Other packages
register theirs in the entry point group ``kbprobe.knowledge_bases``; see
docs/add-a-knowledge-base.md.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import Field, model_validator

from kbprobe.errors import KbprobeError, SourceError, UsageError, did_you_mean
from kbprobe.files import file_sha256
from kbprobe.format.licences import UNSTATED, licences, parts_of
from kbprobe.options import Metavar, Options
from kbprobe.plugins import entry_points, left_out, of_others

if TYPE_CHECKING:
    import pyarrow as pa

#: Kind -> where it is defined, as "module:attribute".
KINDS: dict[str, str] = {
    "conceptnet": "kb_cache.conceptnet.kind:CONCEPTNET",
    "corpus": "kb_cache.corpora.kind:CORPUS",
    "gcide": "kb_cache.gcide.kind:GCIDE",
    "omw": "kb_cache.omw.kind:OMW",
    "ontology": "kb_cache.ontologies.kind:ONTOLOGIES",
    "table": "kb_cache.tables.kind:TABLES",
    "vectors": "kb_cache.vectors.kind:VECTORS",
    "wikidata": "kb_cache.wikidata.kind:WIKIDATA",
    "wordnet": "kb_cache.wordnet.kind:WORDNET",
}
ENTRY_POINTS = "kbprobe.knowledge_bases"

#: Called with the amount done and the total amount, or None if that is unknown.
Progress = Callable[[int, int | None], None]

CREDITS = ("licence", "attribution", "citation")

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+-]+")
_ENDINGS = re.compile(
    r"(\.(csv|tsv|txt|jsonl?|parquet|xml|db|sqlite|nt|nq|ttl|obo|owl|rdf|skos|gz|bz2|xz|zip))+$",
    re.IGNORECASE,
)
_SPDX = re.compile(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*")


class FetchOptions(Options):
    """Options of ``kb-cache fetch KIND``; a kind adds its own. ``source`` is ``--from`` there."""

    source: Path | None = Field(None, description="The file, folder or archive to compile.")
    name: Annotated[str, Metavar("NAME")] = Field(
        "", description="Name of the entry; by default made of the version or the file's name."
    )

    def recorded(self) -> dict[str, Any]:
        """Return the options that a snapshot records, to compile it again in the same way."""
        return self.model_dump(mode="json", exclude={"source", "name"})


class OwnDataOptions(FetchOptions):
    """Options of kinds of which people may have other editions, under other terms."""

    licence: Annotated[str, Metavar("SPDX")] = Field(
        "", description="Licence of the data (SPDX), where it is not the usual one of this kind."
    )
    attribution: Annotated[str, Metavar("TEXT")] = Field(
        "", description="Text that credits the data's authors; needed with --licence."
    )
    citation: Annotated[str, Metavar("BIBTEX")] = Field(
        "", description="BibTeX entry of the work to cite."
    )
    language: Annotated[str, Metavar("CODE")] = Field(
        "en", pattern="^[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$", description="Language of the data."
    )

    @model_validator(mode="after")
    def _credited(self) -> Self:
        if not self.licence:
            return self
        if not _SPDX.fullmatch(self.licence):
            raise ValueError(
                f"--licence {self.licence!r} is not an SPDX licence expression such as CC0-1.0 "
                "or 'CC-BY-4.0 AND MIT'"
            )
        asking = [
            part
            for part in parts_of(self.licence)
            if part not in licences() or licences()[part].asks
        ]
        if asking and not self.attribution:
            raise ValueError(
                f"data under {' AND '.join(asking)} must be credited, and kbprobe cannot know to "
                "whom: state it with --attribution TEXT"
            )
        return self


@dataclass(frozen=True)
class Download:
    """A file that can be downloaded; ``bytes`` is None if the size is unknown."""

    url: str
    sha256: str
    bytes: int | None = None


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Convert the operating system's errors to a `SourceError` that names the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise SourceError(f"no such file: {path}") from error
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from error


def versions_of(*packages: str) -> dict[str, str]:
    """Return the versions of installed packages, for `Compiled.created_by`."""
    return {name: version(name) for name in packages}


def version_of(file_name: str) -> str:
    """Derive a version from a file name, without endings and invalid characters.

    >>> version_of("glove.6B.50d.txt.gz"), version_of("my triples.csv")
    ('glove.6B.50d', 'my-triples')
    """
    return _NOT_IN_NAMES.sub("-", _ENDINGS.sub("", file_name))


def own_identity(kind: str, file_name: str, digest: str) -> dict[str, str]:
    """Return the name, version and digest of a file that is read without being fetched first."""
    version = version_of(file_name)
    return {"name": f"{kind}-{version}", "version": version, "digest": digest}


@dataclass(frozen=True)
class Source:
    """The original files of a knowledge base, found and hashed but not yet compiled.

    Attributes:
        path: the file, folder or archive.
        sha256: of every file that was read, by name.
        version: the version stated in the files, or derived from their name; None if unknown.
    """

    path: Path
    sha256: Mapping[str, str]
    version: str | None

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Hash a source that is a single file; its version is derived from its name.

        Raises:
            SourceError: it cannot be read.
        """
        with readable(path):
            return cls(path, {path.name: file_sha256(path)}, version_of(path.name))


@dataclass(frozen=True)
class Engine:
    """Files of a snapshot in addition to tables: a storage engine's, or an array to be mapped.

    Attributes:
        folder: name of the snapshot's subfolder that holds them.
        digest: sha256 of their content; an engine may store the same content as different bytes.
        counts: number of items in them, by kind of item ("triples").
    """

    folder: str
    digest: str
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Compiled:
    """The result of compiling source files.

    Attributes:
        description: a description of the source.
        tables: by name.
        texts: additional files by name (a licence).
        notes: information for users: what was left out, what was missing and how it was replaced.
        created_by: versions of the packages on which the content depends.
        engine: files that a storage engine wrote into the snapshot's folder.
        version: the version of the data; by default that of the source, or else the entry's name.
    """

    description: str
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    texts: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    created_by: Mapping[str, str] = field(default_factory=dict)
    engine: Engine | None = None
    version: str = ""


UNLICENSED = "No licence was stated: state it with --licence and --attribution."
"""The note on a snapshot of data without one."""


def notice_of(attribution: str) -> dict[str, bytes]:
    """Return the files by name that credit the authors of what is compiled; none for nobody."""
    return {"NOTICE.txt": f"{attribution}\n".encode()} if attribution else {}


class Holding(ABC):
    """An item of the cache that ``kb-cache`` lists, verifies and clears under its ``name``.

    ``embedded`` items come with kbprobe and cannot be removed.
    """

    name: str
    embedded = False

    @abstractmethod
    def row(self) -> dict[str, Any]:
        """Return the entry of ``kb-cache list --json``."""

    @abstractmethod
    def damage(self) -> list[str]:
        """Compare every byte with its checksum; return a sentence for each fault."""

    @abstractmethod
    def repair(self) -> str:
        """Repair damage, or raise a KbprobeError; return what was done."""

    @abstractmethod
    def remove(self) -> bool:
        """Remove it, or raise a KbprobeError; return whether anything was removed."""


S = TypeVar("S", bound=Source)
O = TypeVar("O", bound=FetchOptions)  # noqa: E741


class Kind(ABC, Generic[S, O]):
    """How one kind of knowledge base is fetched and compiled, and whom to credit for it.

    Its docstring is the help of ``kb-cache fetch NAME``.

    Attributes:
        name: its name in ``kb-cache`` and snapshots ("wordnet").
        title: its display name ("WordNet").
        options: the model of its options.
        licence, attribution, citation, language: see `kb_cache.knowledge.Loaded`; options of
            these names take precedence.
        contents: a format string for the contents of a snapshot, with the sizes of its tables.
        download: what to download if ``--from`` is not given; if None, it must be given.
        downloaded_name: the name of the downloaded entry, without "NAME-".
        packages: the optional packages that compiling needs.
        extra: the extra of kbprobe that installs them.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    options: type[O]
    licence: str
    attribution: str = ""
    citation: str = ""
    language: str = "en"
    contents: str = ""
    download: Download | None = None
    downloaded_name: str = ""
    packages: tuple[str, ...] = ()
    extra: str = ""

    @property
    def needs_source(self) -> bool:
        """Whether ``--from`` must be given because there is no default source."""
        return self.download is None

    def locate(self, options: O) -> Path | None:
        """Return the path of the source; None if it has to be downloaded.

        Raises:
            UsageError: the options contradict each other.
        """
        return options.source.expanduser().absolute() if options.source else None

    def download_for(self, options: O) -> Download | None:
        """Return what to download if there is no path; None if a path must be given.

        Raises:
            UsageError: the options do not name anything that can be downloaded.
        """
        return self.download

    def credits_of(self, options: O, source: S) -> dict[str, str]:
        """Return ``licence``, ``attribution`` and ``citation`` of what is compiled."""
        # Data under another licence is different data, by other authors.
        usual = {} if getattr(options, "licence", "") else self.usual_credits(options, source)
        found = {name: getattr(options, name, "") or usual.get(name, "") for name in CREDITS}
        return {**found, "licence": found["licence"] or UNSTATED}

    def usual_credits(self, options: O, source: S) -> Mapping[str, str]:
        """Return whom to credit if the options do not say: the kind's own authors."""
        return {name: getattr(self, name) for name in CREDITS}

    @abstractmethod
    def read(self, path: Path, options: O) -> S:
        """Find and hash the files of a source.

        Raises:
            SourceError: they cannot be read, or belong to another kind.
        """

    @abstractmethod
    def compile(self, source: S, options: O, folder: Path, progress: Progress) -> Compiled:
        """Compile the files into tables. Deterministic: the same files give the same content.

        ``folder`` is the snapshot's still empty folder, for the files of a storage engine.

        Raises:
            SourceError: a file is malformed; the message names file and line.
        """

    def language_of(self, options: O, source: S) -> str:
        """Return the language of what is compiled; see `kb_cache.knowledge.Loaded`."""
        return getattr(options, "language", "") or self.language

    def stand_in(self) -> str:
        """Return what is used if nothing was fetched ("the package x"); "" for nothing."""
        return ""

    @property
    def remedy(self) -> str:
        """Return the command that makes the first entry of this kind, for lists and messages."""
        source = " --from FILE" if self.needs_source else ""
        return f"kb-cache fetch {self.name}{source}"

    def holdings(self) -> Iterator[Holding]:
        """Yield what this kind keeps in the cache in addition to snapshots."""
        yield from ()

    def entry_name(self, name: str) -> str:
        """Prefix a name with "KIND-" unless it has the prefix."""
        return name if name.startswith(f"{self.name}-") else f"{self.name}-{name}"

    def how_to_add(self, name: str) -> str:
        """Return a sentence on how to create an entry of that name, for messages."""
        return f"Add one with: {self.fetch_command(name)}"

    def fetch_command(self, name: str, source: str = "") -> str:
        """Return the command that creates an entry of that name, for messages."""
        short = name.removeprefix(f"{self.name}-")
        if not source and self.download and short == self.downloaded_name:
            return f"kb-cache fetch {self.name}"
        return f"kb-cache fetch {self.name} --from {source or 'PATH'} --name {short}"


AnyKind = Kind[Any, Any]


@cache
def _installed() -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        if taken := KINDS.get(entry.name) or found.get(entry.name):
            error = KbprobeError(f"the name belongs to {taken}; {entry.value} needs another")
            left_out("knowledge base", entry.name, error)
        else:
            of_others(entry.module)
            found[entry.name] = entry.value
    return found


def register(kind: str, where: str) -> None:
    """Register a kind, given as "module:attribute", for this process."""
    KINDS[kind] = where


def kind_names() -> list[str]:
    """Return all kinds (built in, installed and registered), sorted, without importing any."""
    return sorted({*_installed(), *KINDS})


def find_kind(name: str) -> AnyKind:
    """Import a kind.

    Raises:
        UsageError: there is no kind of that name.
        KbprobeError: the package that provides it cannot be imported.
    """
    where = KINDS.get(name) or _installed().get(name)
    if where is None:
        known = kind_names()
        raise UsageError(
            f"there is no kind of knowledge base {name!r}.{did_you_mean(name, known)} "
            f"There are: {', '.join(known)}."
        )
    module, _, attribute = where.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:
        raise KbprobeError(
            f"the package that provides the knowledge base {name!r} ({where}) cannot be imported: "
            f"{error!r}. Repair or uninstall it."
        ) from error
    if not isinstance(found, Kind):
        raise KbprobeError(f"{where} is not a kind of knowledge base (a kb_cache.base.Kind)")
    return found


def usable_kinds(names: Iterable[str] | None = None) -> Iterator[AnyKind]:
    """Import kinds, by default all; kinds that cannot be used are skipped with a warning."""
    for name in kind_names() if names is None else names:
        try:
            yield find_kind(name)
        except KbprobeError as error:
            left_out("knowledge base", name, error)


def kind_of_entry(name: str) -> AnyKind | None:
    """Return the kind that an entry's name begins with, or None if no usable kind matches."""
    kind = next((kind for kind in kind_names() if name.startswith(f"{kind}-")), None)
    return next(usable_kinds([kind]), None) if kind else None
