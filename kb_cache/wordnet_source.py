"""Reading the files of a WordNet database, from a folder or an archive, into memory.

Nothing is ever unpacked to disk: members of an archive are picked by their base names, so a
hostile member path ("../../x") has nowhere to go.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kb_cache.errors import SourceError

DATA_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
INDEX_FILES = ("index.noun", "index.verb", "index.adj", "index.adv")
EXCEPTION_FILES = ("noun.exc", "verb.exc", "adj.exc", "adv.exc")
REQUIRED = DATA_FILES + INDEX_FILES
OPTIONAL = (*EXCEPTION_FILES, "lexnames", "cntlist.rev", "index.sense", "LICENSE.txt", "LICENSE")

#: Folders in which the known distributions keep their files, in the order in which we look.
_LAYOUTS = ("", "wordnet", "dict", "corpora/wordnet", "package/dict")

#: Far above any WordNet (15 MB), far below what an archive made to exhaust memory unpacks to.
_MAX_FILE_BYTES = 256 * 2**20

_VERSION = re.compile(rb"[Ww]ord[Nn]et (?:Release )?(\d+(?:\.\d+)*\+?) Copyright")

#: The lexicographer files in the order of their numbers. The list has not changed since
#: WordNet 1.5, so it can stand in for a distribution's missing ``lexnames`` file.
# fmt: off
LEXNAMES = (
    "adj.all", "adj.pert", "adv.all", "noun.Tops", "noun.act", "noun.animal", "noun.artifact",
    "noun.attribute", "noun.body", "noun.cognition", "noun.communication", "noun.event",
    "noun.feeling", "noun.food", "noun.group", "noun.location", "noun.motive", "noun.object",
    "noun.person", "noun.phenomenon", "noun.plant", "noun.possession", "noun.process",
    "noun.quantity", "noun.relation", "noun.shape", "noun.state", "noun.substance", "noun.time",
    "verb.body", "verb.change", "verb.cognition", "verb.communication", "verb.competition",
    "verb.consumption", "verb.contact", "verb.creation", "verb.emotion", "verb.motion",
    "verb.perception", "verb.possession", "verb.social", "verb.stative", "verb.weather",
    "adj.ppl",
)
# fmt: on
_LEXNAME_CLASS = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}


@dataclass(frozen=True)
class WordNetSource:
    """The files of one WordNet, in memory, with what had to be supplied to make it complete.

    Attributes:
        path: the folder or archive that they came from.
        files: contents by base name; every name of the NLTK layout is present.
        sha256: digests of the files that were really there.
        notes: one sentence for each file that was missing and how it was replaced.
        version: as the licence header states it ("3.0"), or None.
        licence: the licence text.
    """

    path: Path
    files: Mapping[str, bytes]
    sha256: Mapping[str, str]
    notes: tuple[str, ...]
    version: str | None
    licence: bytes


def read_source(path: Path | str) -> WordNetSource:
    """Read a WordNet database in the layout that NLTK reads.

    Args:
        path: a folder, a zip or a (compressed) tar, which holds the files at its top or in one
            of the folders ``wordnet/``, ``dict/``, ``corpora/wordnet/``, ``package/dict/``.

    Raises:
        SourceError: the path cannot be read, or a file that cannot be done without is missing.
    """
    path = Path(path).expanduser().absolute()
    try:
        found = _read_folder(path) if path.is_dir() else _read_archive(path)
    except FileNotFoundError as error:
        raise SourceError(f"no such file or folder: {path}") from error
    except (OSError, zipfile.BadZipFile, tarfile.TarError, EOFError, RuntimeError) as error:
        raise SourceError(f"cannot read {path}: {error}") from error
    missing = [name for name in REQUIRED if name not in found]
    if missing:
        raise SourceError(
            f"{path} is not a WordNet database: {', '.join(missing)} missing. Give the folder or "
            "archive that holds data.noun, index.noun and their fellows (often called dict/)."
        )
    sha256 = {name: hashlib.sha256(content).hexdigest() for name, content in found.items()}
    licence = found.get("LICENSE.txt") or found.get("LICENSE") or _licence_of(found["data.noun"])
    version = _VERSION.search(found["data.noun"][:4096]) or _VERSION.search(licence)
    files, notes = _complete(found)
    return WordNetSource(
        path=path,
        files=files,
        sha256=dict(sorted(sha256.items())),
        notes=notes,
        version=version.group(1).decode() if version else None,
        licence=licence,
    )


def _read_folder(path: Path) -> dict[str, bytes]:
    folders = [path / layout for layout in _LAYOUTS]
    folder = next((f for f in folders if any((f / name).is_file() for name in DATA_FILES)), path)
    wanted = [folder / name for name in REQUIRED + OPTIONAL]
    return {file.name: file.read_bytes() for file in wanted if file.is_file()}


def _read_archive(path: Path) -> dict[str, bytes]:
    with ExitStack() as stack:
        read: Callable[[str], bytes]
        if zipfile.is_zipfile(path):
            archive = stack.enter_context(zipfile.ZipFile(path))
            sizes = {m.filename: m.file_size for m in archive.infolist() if not m.is_dir()}
            read = archive.read
        elif tarfile.is_tarfile(path):
            tar = stack.enter_context(tarfile.open(path))
            sizes = {m.name: m.size for m in tar.getmembers() if m.isfile()}

            def read(name: str) -> bytes:
                member = tar.extractfile(name)
                return member.read() if member else b""
        else:
            raise SourceError(f"{path} is neither a folder nor a zip or tar archive")
        members = _choose_members(list(sizes))
        for name, member in members.items():
            if sizes[member] > _MAX_FILE_BYTES:
                raise SourceError(
                    f"{path}: {member} unpacks to {sizes[member]:,} bytes; no WordNet's {name} "
                    "is that large"
                )
        return {name: read(member) for name, member in members.items()}


def _choose_members(members: list[str]) -> dict[str, str]:
    """Map base names to members, all from the folder nearest the top that has a data file."""
    homes = {
        (len(p.parts), str(p.parent)) for m in members if (p := PurePosixPath(m)).name in DATA_FILES
    }
    if not homes:
        return {}
    _, home = min(homes)
    chosen = {p.name: m for m in members if str((p := PurePosixPath(m)).parent) == home}
    return {name: m for name, m in chosen.items() if name in REQUIRED + OPTIONAL}


def _licence_of(data_file: bytes) -> bytes:
    """The licence that heads every data file, without its line numbers."""
    lines = []
    for line in data_file.splitlines():
        if not line.startswith(b"  "):
            break
        lines.append(re.sub(rb"^\s*\d+ ?", b"", line).rstrip())
    return b"\n".join(lines) + b"\n"


def _complete(found: Mapping[str, bytes]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Add what NLTK demands and some distributions leave out."""
    files = dict(found)
    notes = []
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
