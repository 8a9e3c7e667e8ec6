"""Reading the files of a WordNet database, from a folder or an archive, into memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kb_cache.base import Source
from kb_cache.unpack import read_files, sha256_of
from kb_cache.wordnet.types import LEXNAMES
from kbprobe.errors import SourceError

DATA_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
INDEX_FILES = ("index.noun", "index.verb", "index.adj", "index.adv")
EXCEPTION_FILES = ("noun.exc", "verb.exc", "adj.exc", "adv.exc")
REQUIRED = DATA_FILES + INDEX_FILES
OPTIONAL = (*EXCEPTION_FILES, "lexnames", "cntlist.rev", "index.sense", "LICENSE.txt", "LICENSE")

#: Folders in which the known distributions keep their files, in the order in which we look.
_LAYOUTS = ("", "wordnet", "dict", "corpora/wordnet", "package/dict")

#: Far above any WordNet (15 MB), far below what exhausts memory.
_MAX_FILE_BYTES = 256 * 2**20

_VERSION = re.compile(rb"[Ww]ord[Nn]et (?:Release )?(\d+(?:\.\d+)*\+?) Copyright")

_LEXNAME_CLASS = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}


@dataclass(frozen=True)
class WordNetSource(Source):
    """The files of one WordNet, in memory, with what had to be supplied to make it complete.

    ``sha256`` has the files that were really there; ``version`` is that of the licence header.

    Attributes:
        files: contents by base name; every name of the NLTK layout is present.
        notes: one sentence for each file that was missing and how it was replaced.
        licence: the licence text.
    """

    files: Mapping[str, bytes]
    notes: tuple[str, ...]
    licence: bytes


def read_source(path: Path | str) -> WordNetSource:
    """Read a WordNet database in the layout that NLTK reads: a folder, a zip or a tar.

    Raises:
        SourceError: the path cannot be read, or a file that cannot be done without is missing.
    """
    path = Path(path).expanduser().absolute()
    found = read_files(
        path, (REQUIRED + OPTIONAL).__contains__, DATA_FILES.__contains__, layouts=_LAYOUTS,
        largest=_MAX_FILE_BYTES, title="a WordNet",
    )  # fmt: skip
    missing = [name for name in REQUIRED if name not in found]
    if missing:
        raise SourceError(
            f"{path} is not a WordNet database: {', '.join(missing)} missing. Give the folder or "
            "archive that holds data.noun, index.noun and the other files (often called dict/)."
        )
    licence = found.get("LICENSE.txt") or found.get("LICENSE") or _licence_of(found["data.noun"])
    version = _VERSION.search(found["data.noun"][:4096]) or _VERSION.search(licence)
    files, notes = _complete(found)
    return WordNetSource(
        path=path,
        files=files,
        sha256=sha256_of(found),
        notes=notes,
        version=version.group(1).decode() if version else None,
        licence=licence,
    )


def _licence_of(data_file: bytes) -> bytes:
    """The licence that heads every data file, without its line numbers."""
    lines = []
    for line in data_file.splitlines():
        if not line.startswith(b"  "):
            break
        lines.append(re.sub(rb"^\s*\d+ ?", b"", line).rstrip())
    return b"\n".join(lines) + b"\n"


def _complete(found: Mapping[str, bytes]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Add files that NLTK requires and some distributions lack."""
    files, notes = dict(found), []
    if "lexnames" not in files:
        lines = (
            f"{number:02d}\t{name}\t{_LEXNAME_CLASS[name.partition('.')[0]]}\n"
            for number, name in enumerate(LEXNAMES)
        )
        files["lexnames"] = "".join(lines).encode()
        notes.append("lexnames was missing; the standard list was used.")
    if "cntlist.rev" not in files:
        if "index.sense" in files:
            files["cntlist.rev"] = _counts_from_index(files["index.sense"])
            notes.append("cntlist.rev was missing; counts come from index.sense.")
        else:
            files["cntlist.rev"] = b""
            notes.append("cntlist.rev and index.sense were missing; all counts are 0.")
    for name in EXCEPTION_FILES:
        if name not in files:
            files[name] = b""
            notes.append(f"{name} was missing; irregular forms come from lemminflect alone.")
    return files, tuple(notes)


def _counts_from_index(index_sense: bytes) -> bytes:
    """Turn ``key offset sense count`` into cntlist.rev's ``key sense count``, zeros left out."""
    rows = []
    for number, line in enumerate(index_sense.splitlines(), start=1):
        fields = line.split()
        if len(fields) != 4 or not fields[3].isdigit():
            raise SourceError(
                f"index.sense, line {number}: expected 'key offset sense count', found "
                f"{line[:80].decode(errors='replace')!r}"
            )
        if fields[3] != b"0":
            rows.append(b" ".join((fields[0], fields[2], fields[3])))
    return b"\n".join(rows) + b"\n"
