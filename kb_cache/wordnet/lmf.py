"""Reading WN-LMF files, the exchange format of the Global Wordnet Association.

`read_lmf` reads them with the package wn, which checks their structure. A file holds one lexicon,
with synsets and relations of its own (Open English WordNet, OdeNet) or with words for those of
Princeton WordNet (the lexicons of the Open Multilingual Wordnet).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kb_cache.base import Source, readable
from kb_cache.unpack import DAMAGE, UnpackedFile, is_tar, read_files, read_unpacked
from kbprobe.errors import SourceError, require
from kbprobe.files import file_sha256
from kbprobe.reading import open_file

if TYPE_CHECKING:
    from wn.lmf import LexicalResource

LARGEST = 1 << 30
"""Maximum size of an unpacked lexicon in bytes: ten times that of Open English WordNet."""

_DECLARATIONS = (b"<?xml", b"\xef\xbb\xbf<?xml")

_LICENCES: Mapping[str, str] = {
    r"creativecommons\.org/licenses/(by|by-sa)/(\d\.\d)": "CC-{0}-{1}",
    r"creativecommons\.org/publicdomain/zero": "CC0-1.0",
    r"wordnet(code)?\.princeton\.edu": "LicenseRef-WordNet",
    r"opensource\.org/licenses/mit": "MIT",
    r"apache\.org/licenses/license-2\.0": "Apache-2.0",
}
"""Pattern of a lexicon's licence, in lower case -> its SPDX id."""


@dataclass(frozen=True)
class LmfSource(Source):
    """A lexicon of a WN-LMF file, read.

    Attributes:
        lexicon: as `wn.lmf.load` gives it.
        texts: base names of files beside it in an archive (licence, citation) -> their content.
    """

    lexicon: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def language(self) -> str:
        """The language of the words, as a BCP 47 code."""
        return str(self.lexicon["language"])

    def credits(self) -> dict[str, str]:
        """Return ``licence`` ("" if it is not known), ``attribution`` and ``citation``."""
        lexicon = self.lexicon
        where = f" ({lexicon['url']})" if lexicon.get("url") else ""
        cited = self.texts.get("citation.bib", b"").decode(errors="replace").strip()
        said = f" {lexicon['citation'].strip()}" if lexicon.get("citation") else ""
        return {
            "licence": spdx_of(lexicon["license"]),
            "attribution": f"Contains {lexicon['label']} {lexicon['version']}{where}, licence "
            f"{lexicon['license']}.{said}",
            "citation": cited if cited.startswith("@") else "",
        }


def spdx_of(licence: str) -> str:
    """Return the SPDX id of a licence as a lexicon states it, by address or id; "": not known.

    >>> spdx_of("https://creativecommons.org/licenses/by-sa/4.0/"), spdx_of("on request")
    ('CC-BY-SA-4.0', '')
    """
    for pattern, spdx in _LICENCES.items():
        if found := re.search(pattern, licence.lower()):
            return spdx.format(*(part.upper() for part in found.groups() if part))
    return licence if re.fullmatch(r"[A-Za-z]+[A-Za-z0-9.]*(-[A-Za-z0-9.]+)+", licence) else ""


def is_lmf(path: Path) -> bool:
    """Return whether a file, or the only XML file of a tar archive, is for `read_lmf`."""
    if not path.is_file():
        return False
    with readable(path), open_file(path) as file:
        try:
            head = UnpackedFile(file).read(16)
        except DAMAGE:
            return False
    return head.startswith(_DECLARATIONS) or (is_tar(path) and bool(_of_archive(path)))


def read_lmf(path: Path) -> LmfSource:
    """Read a WN-LMF file: .xml, compressed with gzip or bzip2, or in a tar archive.

    Raises:
        MissingDependencyError: the package wn is not installed.
        SourceError: it cannot be read, is not WN-LMF, or holds no lexicon or several.
    """
    require("wn", "lmf", "Reading WN-LMF")
    import wn.lmf

    texts: dict[str, bytes] = {}
    if is_tar(path):
        texts = _of_archive(path)
        content = texts.pop(next(name for name in texts if name.endswith(".xml")))
    else:
        content = read_unpacked(path, LARGEST)
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / "lexicon.xml"
        plain.write_bytes(content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n"))
        try:
            resource = wn.lmf.load(plain, progress_handler=None)
        except (wn.Error, LookupError, ValueError, AssertionError) as error:
            raise SourceError(f"{path} is not a sound WN-LMF file: {error}") from error
    lexicon = _only_lexicon(path, resource)
    return LmfSource(
        path,
        {path.name: file_sha256(path)},
        f"{lexicon['id']}-{lexicon['version']}",
        lexicon=lexicon,
        texts=texts,
    )


def _only_lexicon(path: Path, resource: LexicalResource) -> Mapping[str, Any]:
    found: list[Mapping[str, Any]] = [dict(lexicon) for lexicon in resource["lexicons"]]
    whole = [lexicon for lexicon in found if "extends" not in lexicon]
    if len(whole) != 1:
        names = ", ".join(f"{lexicon['id']} {lexicon['version']}" for lexicon in found) or "none"
        raise SourceError(
            f"{path} should hold one whole lexicon; it holds {names}. Give a file of one"
        )
    return whole[0]


def _of_archive(path: Path) -> dict[str, bytes]:
    """Return the only XML file of an archive and the texts beside it; nothing without one."""

    def is_xml(name: str) -> bool:
        return name.endswith(".xml")

    def wanted(name: str) -> bool:
        return is_xml(name) or name in ("LICENSE", "citation.bib")

    found = read_files(
        path, wanted, is_xml, layouts=("",), largest=LARGEST, title="a WN-LMF lexicon"
    )
    return found if sum(map(is_xml, found)) == 1 else {}
